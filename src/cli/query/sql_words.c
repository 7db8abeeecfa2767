/* SPDX-License-Identifier: MIT */
/* cli/query/sql_words.c - see sql_words.h. */
#include "cli/query/sql_words.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "sql/sql.h"

const char *tmk_sql_skip_blanks(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n\f;");
        if (strncmp(text, "--", 2) == 0) {
            text += strcspn(text, "\n");
        } else if (strncmp(text, "/*", 2) == 0) {
            const char *end = strstr(text + 2, "*/");
            text = end ? end + 2 : text + strlen(text);
        } else {
            return text;
        }
    }
}

/* ---- words ---- */

static bool begins_name(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (c & 0x80);
}

static bool is_in_name(char c)
{
    return begins_name(c) || isdigit((unsigned char)c) || c == '$';
}

/* Returns the end of what a quote at `at` begins; a doubled quote does not end it. */
static const char *end_of_quoted(const char *at)
{
    char quote = *at == '[' ? ']' : *at;
    for (at++; *at; at++) {
        if (*at != quote)
            continue;
        if (at[1] != quote || quote == ']')
            return at + 1;
        at++;
    }
    return at;
}

static void set_word(struct tmk_sql_word *w, const char *from, const char *to)
{
    snprintf(w->text, sizeof w->text, "%.*s", (int)(to - from), from);
}

/* Take a name in quotes. */
static void take_quoted(struct tmk_sql_word *w)
{
    w->end = end_of_quoted(w->start);
    bool is_closed = w->end - w->start > 1 && strchr("\"`]", w->end[-1]);
    set_word(w, w->start + 1, w->end - is_closed);
    w->is_name = true;
}

bool tmk_sql_word_next(const char **at, struct tmk_sql_word *ret)
{
    const char *p = *at;
    for (;;) {
        p += strspn(p, ";");
        p = tmk_sql_skip_blanks(p);
        if (*p == '\'')
            p = end_of_quoted(p);
        else if (isdigit((unsigned char)*p))
            while (is_in_name(*p) || *p == '.')
                p++;
        else
            break;
    }
    *ret = (struct tmk_sql_word){.start = p, .end = p + 1};
    if (!*p)
        return false;
    if (*p == '"' || *p == '`' || *p == '[') {
        take_quoted(ret);
    } else if (begins_name(*p)) {
        while (is_in_name(*ret->end))
            ret->end++;
        ret->is_name = true;
        set_word(ret, p, ret->end);
    } else {
        set_word(ret, p, p + 1);
    }
    *at = ret->end;
    return true;
}

bool tmk_sql_is_keyword(const char *word)
{
    return sqlite3_keyword_check(word, (int)strlen(word)) != 0;
}

/* ---- tables ---- */

const char *tmk_sql_bare_name(const struct tmk_sql_table *table, size_t *ret_n)
{
    const char *dot = strchr(table->name, '.');
    const char *name = dot ? dot + 1 : table->name;
    *ret_n = strcspn(name, "(");
    return name;
}

const struct tmk_sql_table *tmk_sql_find_table(const char *name)
{
    size_t n_tables, n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables);
    for (size_t i = 0; i < n_tables; i++) {
        const char *bare = tmk_sql_bare_name(&tables[i], &n);
        if ((strlen(name) == n && sqlite3_strnicmp(bare, name, (int)n) == 0) ||
            sqlite3_stricmp(tables[i].name, name) == 0)
            return &tables[i];
    }
    return NULL;
}

bool tmk_sql_has_column(const struct tmk_sql_table *table, const char *name)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (sqlite3_stricmp(table->columns[i].name, name) == 0)
            return true;
    return false;
}

/* Take the alias behind a table, if there is one: "steps s", "live_at(o.time_ns) AS l". */
static void take_alias(const char *at, struct tmk_sql_named *named)
{
    struct tmk_sql_word w;
    int depth = 0;
    do {
        if (!tmk_sql_word_next(&at, &w))
            return;
        depth += w.text[0] == '(' && !w.is_name ? 1 : w.text[0] == ')' && !w.is_name ? -1 : 0;
    } while (depth > 0 || (w.text[0] == ')' && !w.is_name));
    if (sqlite3_stricmp(w.text, "as") == 0 && !tmk_sql_word_next(&at, &w))
        return;
    if (w.is_name && !tmk_sql_is_keyword(w.text))
        memcpy(named->alias, w.text, sizeof named->alias);
}

/* Returns whether tables still stand behind this keyword. */
static bool leads_to_table(const char *keyword, bool is_in_from)
{
    static const char *const opening[] = {"from", "join", NULL};
    static const char *const between[] = {"as",    "left",  "right",   "full", "inner",
                                          "outer", "cross", "natural", NULL};
    for (unsigned i = 0; opening[i]; i++)
        if (sqlite3_stricmp(keyword, opening[i]) == 0)
            return true;
    for (unsigned i = 0; between[i]; i++)
        if (sqlite3_stricmp(keyword, between[i]) == 0)
            return is_in_from;
    return false;
}

/* A name is a table's where a table may stand: behind FROM, JOIN, a comma or a schema. */
unsigned tmk_sql_named_tables(const char *sql, struct tmk_sql_named *ret)
{
    struct tmk_sql_word before = {0}, w;
    unsigned n = 0;
    bool is_in_from = false;
    while (n < TMK_SQL_NAMED_MOST && tmk_sql_word_next(&sql, &w)) {
        const struct tmk_sql_table *table = w.is_name ? tmk_sql_find_table(w.text) : NULL;
        bool may_stand = before.is_name ? leads_to_table(before.text, false)
                                        : before.text[0] == ',' || before.text[0] == '.';
        if (w.is_name && tmk_sql_is_keyword(w.text)) {
            is_in_from = leads_to_table(w.text, is_in_from);
        } else if (table && is_in_from && may_stand) {
            ret[n] = (struct tmk_sql_named){.table = table};
            take_alias(sql, &ret[n++]);
        }
        before = w;
    }
    return n;
}
