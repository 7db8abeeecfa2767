/* SPDX-License-Identifier: MIT */
/* cli/query/sql_words.h - what can be told about a statement without parsing it: its words, and the
 * tables that it names. It may be half typed or wrong: that is when this is asked. */
#ifndef TMK_CLI_QUERY_SQL_WORDS_H
#define TMK_CLI_QUERY_SQL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "sql/table_doc.h"

enum { TMK_SQL_WORD_BYTES = 64 };

/* A name or keyword without its quotes, cut to the buffer; or a sign: "(", ",", ".". */
struct tmk_sql_word {
    const char *start, *end; /* in the statement, quotes included */
    bool is_name;
    char text[TMK_SQL_WORD_BYTES];
};

/* Returns `text` behind blanks, semicolons and comments, as SQLite has them: a comment without an
 * end ends the text. */
const char *tmk_sql_skip_blanks(const char *text);

/* Takes the next word and moves *at behind it. False at the end. Texts, numbers and comments are
 * passed over. */
bool tmk_sql_word_next(const char **at, struct tmk_sql_word *ret);

/* A table that a statement names. */
struct tmk_sql_named {
    const struct tmk_sql_table *table;
    char alias[TMK_SQL_WORD_BYTES]; /* "" when it has none */
};

enum { TMK_SQL_NAMED_MOST = 16 };

/* Lists the tables that `sql` names, in its order. Returns how many. */
unsigned tmk_sql_named_tables(const char *sql, struct tmk_sql_named *ret);
/* Returns the table of that name, with or without schema and arguments; NULL when there is none. */
const struct tmk_sql_table *tmk_sql_find_table(const char *name);
/* Returns the name of a table without its schema; *ret_n is its length, without arguments. */
const char *tmk_sql_bare_name(const struct tmk_sql_table *table, size_t *ret_n);
bool tmk_sql_has_column(const struct tmk_sql_table *table, const char *name);

bool tmk_sql_is_keyword(const char *word);

#endif
