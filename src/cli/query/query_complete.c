/* SPDX-License-Identifier: MIT */
/* cli/query/query_complete.c - see query_complete.h.
 *
 * What may stand there follows from the word before: tables behind FROM and JOIN; else columns of
 * the tables that the statement names, which are likely, then all else. */
#include "cli/query/query_complete.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/query/dot_commands.h"
#include "cli/query/sql_words.h"
#include "kit/grow.h"
#include "sql/sql.h"
#include "sql/table_doc.h"

struct finder {
    struct tmk_completions *c;
    const char *word; /* what is typed of it */
    bool is_lower;    /* keywords as well are to be in small letters */
};

static void add_completion(struct finder *f, const char *name, size_t n, const char *ending)
{
    struct tmk_completions *c = f->c;
    if (n < c->n_typed || sqlite3_strnicmp(name, f->word, (int)c->n_typed) != 0)
        return;
    char *word = tmk_xarena_format(&c->texts, "%.*s%s", (int)n, name, ending);
    for (uint64_t i = 0; i < c->n; i++)
        if (sqlite3_stricmp(c->words[i], word) == 0)
            return;
    if (TMK_GROW(c->words, c->n + 1, c->room) < 0)
        tmk_die("out of memory");
    c->words[c->n++] = word;
}

/* ---- sources ---- */

static void add_columns(struct finder *f, const struct tmk_sql_table *table)
{
    for (size_t i = 0; i < table->n_columns; i++)
        add_completion(f, table->columns[i].name, strlen(table->columns[i].name), "");
}

static void add_tables(struct finder *f)
{
    size_t n_tables, n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables);
    for (size_t i = 0; i < n_tables; i++) {
        const char *bare = tmk_sql_bare_name(&tables[i], &n);
        bool has_schema = bare != tables[i].name;
        add_completion(f, has_schema ? tables[i].name : bare,
                       has_schema ? strlen(tables[i].name) : n, "");
    }
}

static void add_keywords(struct finder *f, const char *const *keywords, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *word = tmk_xarena_text(&f->c->texts, keywords[i], strlen(keywords[i]));
        for (char *letter = word; f->is_lower && *letter; letter++)
            *letter = (char)tolower((unsigned char)*letter);
        add_completion(f, word, strlen(word), "");
    }
}

static void add_functions(struct finder *f, sqlite3 *db)
{
    sqlite3_stmt *list = NULL;
    if (sqlite3_prepare_v2(db, "SELECT DISTINCT name FROM pragma_function_list", -1, &list, NULL) !=
        SQLITE_OK)
        return;
    while (sqlite3_step(list) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(list, 0);
        if (name && isalpha((unsigned char)*name))
            add_completion(f, name, strlen(name), "(");
    }
    sqlite3_finalize(list);
}

/* ---- where the word stands ---- */

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void end_group(struct tmk_completions *c, uint64_t from)
{
    if (c->n > from)
        qsort(c->words + from, (size_t)(c->n - from), sizeof *c->words, compare_words);
}

static bool is_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

/* Add the columns of all tables that have this name or alias; with "", of all that are named. */
static bool add_named(struct finder *f, const char *statement, const char *name)
{
    struct tmk_sql_named named[TMK_SQL_NAMED_MOST];
    unsigned n = tmk_sql_named_tables(statement, named);
    bool found = false;
    for (unsigned i = 0; i < n; i++) {
        size_t n_bare;
        const char *bare = tmk_sql_bare_name(named[i].table, &n_bare);
        bool is_it = !*name || sqlite3_stricmp(named[i].alias, name) == 0 ||
                     (strlen(name) == n_bare && sqlite3_strnicmp(bare, name, (int)n_bare) == 0);
        if (is_it)
            add_columns(f, named[i].table);
        found |= is_it;
    }
    return found;
}

/* Behind "name.": columns of that table, or tables of that schema. */
static void find_behind_dot(struct finder *f, const char *statement, const char *owner)
{
    size_t n_tables, n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables), *table;
    if (add_named(f, statement, owner))
        return;
    table = tmk_sql_find_table(owner);
    if (table)
        add_columns(f, table);
    for (size_t i = 0; i < n_tables; i++) {
        const char *bare = tmk_sql_bare_name(&tables[i], &n);
        if (bare != tables[i].name &&
            sqlite3_strnicmp(tables[i].name, owner, (int)strlen(owner)) == 0)
            add_completion(f, bare, n, "");
    }
}

static void find_anything(struct finder *f, sqlite3 *db, const char *statement)
{
    static const char *const keywords[] = {
        "ALL",          "AND",       "AS",     "ASC",          "BETWEEN",  "BY",      "CASE",
        "CAST",         "CROSS",     "DESC",   "DISTINCT",     "ELSE",     "END",     "ESCAPE",
        "EXCEPT",       "EXISTS",    "FILTER", "FOLLOWING",    "FROM",     "GLOB",    "GROUP BY",
        "HAVING",       "IN",        "INNER",  "INTERSECT",    "IS",       "ISNULL",  "JOIN",
        "LEFT",         "LIKE",      "LIMIT",  "MATERIALIZED", "NOT",      "NOTNULL", "NULL",
        "NULLS",        "OFFSET",    "ON",     "OR",           "ORDER BY", "OUTER",   "OVER",
        "PARTITION BY", "PRECEDING", "RANGE",  "RECURSIVE",    "REGEXP",   "ROWS",    "SELECT",
        "THEN",         "UNBOUNDED", "UNION",  "USING",        "VALUES",   "WHEN",    "WHERE",
        "WINDOW",       "WITH"};
    size_t n_tables;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables);
    struct tmk_completions *c = f->c;
    add_named(f, statement, "");
    end_group(c, 0);
    c->n_likely = c->n;
    add_keywords(f, keywords, TMK_N(keywords));
    add_functions(f, db);
    add_tables(f);
    for (size_t i = 0; i < n_tables && *f->word; i++)
        add_columns(f, &tables[i]);
}

/* Returns where the word that ends `typed` begins. */
static const char *start_of_word(const char *typed)
{
    const char *end = typed + strlen(typed);
    while (end > typed && is_in_word(end[-1]))
        end--;
    return end;
}

/* Take the last two words before `to`; a name before a dot is `owner`. */
static void take_context(const char *typed, const char *to, struct tmk_sql_word *ret_before,
                         char *owner)
{
    struct tmk_sql_word w, before = {0}, older = {0};
    while (tmk_sql_word_next(&typed, &w) && w.start < to) {
        older = before;
        before = w;
    }
    *ret_before = before;
    *owner = '\0';
    if (before.text[0] == '.' && !before.is_name && older.is_name)
        memcpy(owner, older.text, sizeof older.text);
}

static bool is_tables_place(const struct tmk_sql_word *before)
{
    return before->is_name && (sqlite3_stricmp(before->text, "from") == 0 ||
                               sqlite3_stricmp(before->text, "join") == 0);
}

static void find_in_statement(struct finder *f, sqlite3 *db, const char *typed, const char *rest)
{
    static const char *const first[] = {"EXPLAIN", "PRAGMA", "SELECT", "VALUES", "WITH"};
    struct tmk_sql_word before;
    char owner[TMK_SQL_WORD_BYTES];
    char *statement = tmk_xarena_format(&f->c->texts, "%s%s", typed, rest);
    take_context(typed, f->word, &before, owner);
    if (*owner)
        find_behind_dot(f, statement, owner);
    else if (!before.text[0])
        add_keywords(f, first, TMK_N(first));
    else if (is_tables_place(&before))
        add_tables(f);
    else
        find_anything(f, db, statement);
}

/* ---- dot commands ---- */

static void find_choice(struct finder *f, const char *choices)
{
    for (size_t n; *choices; choices += n + (choices[n] == '|')) {
        n = strcspn(choices, "|");
        add_completion(f, choices, n, "");
    }
}

static void find_dot_command(struct finder *f, const char *typed)
{
    size_t n_commands;
    const struct tmk_dot_command *commands = tmk_dot_commands(&n_commands);
    size_t n_name = strcspn(typed, " \t");
    bool is_name = typed + n_name >= f->word;
    if (is_name)
        f->word = typed, f->c->n_typed = strlen(typed);
    for (size_t i = 0; i < n_commands; i++) {
        const struct tmk_dot_command *d = &commands[i];
        if (is_name)
            add_completion(f, d->name, strlen(d->name), "");
        else if (strlen(d->name) == n_name && strncmp(d->name, typed, n_name) == 0 &&
                 d->takes_table)
            add_tables(f);
        else if (strlen(d->name) == n_name && strncmp(d->name, typed, n_name) == 0 && d->choices)
            find_choice(f, d->choices);
    }
}

/* ---- all of it ---- */

void tmk_completions_find(struct tmk_completions *c, sqlite3 *db, const char *typed,
                          const char *rest)
{
    *c = (struct tmk_completions){0};
    typed = tmk_sql_skip_blanks(typed);
    struct finder f = {.c = c, .word = start_of_word(typed)};
    c->n_typed = strlen(f.word);
    f.is_lower = islower((unsigned char)*f.word);
    if (*typed == '.')
        find_dot_command(&f, typed);
    else
        find_in_statement(&f, db, typed, rest);
    end_group(c, c->n_likely);
    if (c->n_likely == 0)
        c->n_likely = c->n;
}

void tmk_completions_fini(struct tmk_completions *c)
{
    free(c->words);
    tmk_arena_fini(&c->texts);
}

size_t tmk_completions_common(const struct tmk_completions *c)
{
    size_t n = c->n_likely ? strlen(c->words[0]) : 0;
    for (uint64_t i = 1; i < c->n_likely; i++) {
        size_t same = 0;
        while (same < n && tolower((unsigned char)c->words[i][same]) ==
                               tolower((unsigned char)c->words[0][same]))
            same++;
        n = same;
    }
    return n;
}
