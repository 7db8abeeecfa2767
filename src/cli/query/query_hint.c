/* SPDX-License-Identifier: MIT */
/* cli/query/query_hint.c - see query_hint.h.
 *
 * SQLite names the wrong word in its message, in one of the few forms of `forms` below. The
 * statement is not parsed: its words tell which tables it names (sql_words.h), and that is enough
 * to answer. */
#include "cli/query/query_hint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/front/command.h"
#include "cli/output/xalloc.h"
#include "cli/query/sql_words.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/utf8.h"
#include "sql/sql.h"
#include "sql/table_doc.h"

enum { NAMES_MOST = 6, LINE_WIDTH = 76, LEAST_PART = 4 };

struct hint {
    FILE *out;
    const char *lead;
    sqlite3 *db;
    const char *sql;
    struct tmk_sql_named named[TMK_SQL_NAMED_MOST];
    unsigned n_named;
};

/* ---- lists of names ---- */

/* Names in order of their distance from a word, each once. Borrowed, or from the arena. */
struct names {
    const char *typed;
    unsigned n;
    const char *items[NAMES_MOST];
    unsigned distances[NAMES_MOST];
};

static void insert_name(struct names *list, const char *name, unsigned distance)
{
    unsigned at = 0;
    for (unsigned i = 0; i < list->n; i++)
        if (sqlite3_stricmp(list->items[i], name) == 0)
            return;
    while (at < list->n && list->distances[at] <= distance)
        at++;
    if (at == NAMES_MOST)
        return;
    if (list->n < NAMES_MOST)
        list->n++;
    for (unsigned i = list->n - 1; i > at; i--) {
        list->items[i] = list->items[i - 1];
        list->distances[i] = list->distances[i - 1];
    }
    list->items[at] = name;
    list->distances[at] = distance;
}

static bool contains_word(const char *name, const char *part)
{
    size_t n = strlen(part);
    for (; n >= LEAST_PART && strlen(name) >= n; name++)
        if (sqlite3_strnicmp(name, part, (int)n) == 0)
            return true;
    return false;
}

/* Returns whether so many letters may be wrong in the word: two in a long one. */
static bool is_slip(const char *typed, unsigned distance)
{
    return distance <= (strlen(typed) > LEAST_PART ? 2 : 1) && distance < strlen(typed);
}

/* Add `name` if the word may be a slip of it or a part of it. */
static void consider_near(struct names *list, const char *name)
{
    unsigned distance = tmk_name_distance(list->typed, name);
    if (is_slip(list->typed, distance))
        insert_name(list, name, distance);
    else if (contains_word(name, list->typed))
        insert_name(list, name, 3);
}

/* Drop all but the nearest. */
static void keep_nearest(struct names *list)
{
    while (list->n > 0 && list->distances[list->n - 1] > list->distances[0])
        list->n--;
}

/* Write "a", "a or b", "a, b or c". */
static void write_names(FILE *out, const struct names *list, const char *last)
{
    for (unsigned i = 0; i < list->n; i++)
        tmk_print(out, "%s%s", i == 0 ? "" : i + 1 == list->n ? last : ", ", list->items[i]);
}

static void ask_back(const struct hint *h, struct names *list)
{
    keep_nearest(list);
    fprintf(h->out, P_("%sdid you mean "), h->lead);
    write_names(h->out, list, P_(" or "));
    fputs("?\n", h->out);
}

/* ---- where it is wrong ---- */

/* Returns the place of the word in the statement; NULL when it is not there. */
static const char *find_word(const char *sql, const char *word)
{
    const char *dot = strrchr(word, '.'), *name = dot ? dot + 1 : word;
    struct tmk_sql_word w;
    while (tmk_sql_word_next(&sql, &w))
        if (sqlite3_stricmp(w.text, name) == 0)
            return w.start;
    return NULL;
}

/* Show the line around `at`, and below it where. */
static void point_at(const struct hint *h, const char *at)
{
    const char *from = at, *to = at + strcspn(at, "\r\n");
    while (from > h->sql && from[-1] != '\n')
        from--;
    char *before = tmk_xformat("%.*s", (int)(at - from), from);
    char *line = tmk_xformat("%.*s", (int)(to - from), from);
    for (char *c = line; *c; c++)
        if (*c == '\t')
            *c = ' ';
    for (char *c = before; *c; c++)
        if (*c == '\t')
            *c = ' ';
    size_t column = tmk_utf8_width(before);
    const char *shown = line;
    while (column > LINE_WIDTH / 2 && tmk_utf8_width(line) > LINE_WIDTH && *shown) {
        size_t width;
        tmk_utf8_shown(&shown, &width);
        column -= width < column ? width : column;
    }
    fputs("  ", h->out);
    tmk_utf8_write(h->out, shown, LINE_WIDTH);
    fprintf(h->out, "\n  %*s^\n", (int)column, "");
    free(before);
    free(line);
}

/* ---- what was meant ---- */

static void hint_table(const struct hint *h, const char *word)
{
    struct names near = {.typed = word};
    struct tmk_arena texts = {0};
    const char *dot = strrchr(word, '.');
    size_t n_tables, n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables);
    near.typed = dot ? dot + 1 : word;
    for (size_t i = 0; i < n_tables; i++) {
        const char *bare = tmk_sql_bare_name(&tables[i], &n);
        consider_near(&near, tmk_xarena_text(&texts, bare, n));
    }
    for (unsigned i = 0; i < near.n; i++) { /* as it is written in a query */
        const struct tmk_sql_table *table = tmk_sql_find_table(near.items[i]);
        if (table && strchr(table->name, '.'))
            near.items[i] = table->name;
    }
    if (near.n > 0)
        ask_back(h, &near);
    else
        fprintf(h->out, P_("%swhat there is: tidemark tables\n"), h->lead);
    tmk_arena_fini(&texts);
}

static const struct tmk_sql_named *find_alias(const struct hint *h, const char *name, size_t n)
{
    for (unsigned i = 0; i < h->n_named; i++) {
        size_t n_bare;
        const char *bare = tmk_sql_bare_name(h->named[i].table, &n_bare);
        const char *alias = h->named[i].alias;
        if ((strlen(alias) == n && sqlite3_strnicmp(alias, name, (int)n) == 0) ||
            (!*alias && n_bare == n && sqlite3_strnicmp(bare, name, (int)n) == 0))
            return &h->named[i];
    }
    return NULL;
}

static void consider_columns(struct names *near, const struct tmk_sql_table *table)
{
    for (size_t i = 0; i < table->n_columns; i++)
        consider_near(near, table->columns[i].name);
}

/* Say which other tables have the column, where that many are of use. */
static void say_who_has(const struct hint *h, const char *column)
{
    struct names who = {.typed = column};
    size_t n_tables;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables);
    for (size_t i = 0; i < n_tables; i++)
        if (tmk_sql_has_column(&tables[i], column))
            insert_name(&who, tables[i].name, 0);
    tmk_print(h->out, P_("%s%s is a column of "), h->lead, column);
    write_names(h->out, &who, who.n == NAMES_MOST ? ", " : P_(" and "));
    fprintf(h->out, "%s\n", who.n == NAMES_MOST ? P_(" and others") : "");
}

/* List what columns there are. */
static void list_columns(const struct hint *h, const struct tmk_sql_table *table)
{
    size_t at = strlen(h->lead);
    at += (size_t)fprintf(h->out, P_("%s%s has"), h->lead, table->name) - at;
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *name = table->columns[i].name;
        if (at + strlen(name) + 2 > LINE_WIDTH)
            at = (size_t)fprintf(h->out, "\n   ") - 1;
        at += (size_t)fprintf(h->out, " %s%s", name, i + 1 < table->n_columns ? "," : "");
    }
    fputc('\n', h->out);
}

/* Add the columns of the tables that the statement names; with an owner, of that one. */
static void consider_named(const struct hint *h, const struct tmk_sql_named *owner,
                           struct names *near)
{
    for (unsigned i = 0; i < h->n_named; i++)
        if (!owner || owner == &h->named[i])
            consider_columns(near, h->named[i].table);
}

/* Returns the column that the word is, or is a slip of, in any table; NULL when there is none. */
static const char *find_column(const char *name)
{
    struct names near = {.typed = name};
    size_t n_tables;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables);
    for (size_t i = 0; i < n_tables; i++)
        if (tmk_sql_has_column(&tables[i], name))
            return name;
    for (size_t i = 0; i < n_tables; i++)
        consider_columns(&near, &tables[i]);
    return near.n > 0 && near.distances[0] <= 2 ? near.items[0] : NULL;
}

static void hint_column(const struct hint *h, const char *word)
{
    const char *dot = strrchr(word, '.'), *name = dot ? dot + 1 : word;
    const struct tmk_sql_named *owner = dot ? find_alias(h, word, (size_t)(dot - word)) : NULL;
    struct names near = {.typed = name};
    consider_named(h, owner, &near);
    const char *elsewhere = near.n == 0 || near.distances[0] > 2 ? find_column(name) : NULL;
    if (near.n == 0 && elsewhere) { /* "alocated": peak_allocated has what was meant in it */
        near.typed = elsewhere;
        consider_named(h, owner, &near);
    }
    if (near.n > 0)
        ask_back(h, &near);
    if (elsewhere)
        say_who_has(h, elsewhere);
    if (near.n > 0 || elsewhere)
        return;
    if (owner || h->n_named == 1)
        list_columns(h, owner ? owner->table : h->named[0].table);
    else
        fprintf(h->out, P_("%swhat there is: tidemark tables\n"), h->lead);
}

static void hint_ambiguous(const struct hint *h, const char *word)
{
    struct names who = {.typed = word};
    struct tmk_arena texts = {0};
    for (unsigned i = 0; i < h->n_named; i++) {
        size_t n;
        const char *bare = tmk_sql_bare_name(h->named[i].table, &n), *alias = h->named[i].alias;
        if (tmk_sql_has_column(h->named[i].table, word))
            insert_name(&who,
                        tmk_xarena_format(&texts, "%.*s.%s", *alias ? (int)strlen(alias) : (int)n,
                                          *alias ? alias : bare, word),
                        0);
    }
    if (who.n > 1) {
        fprintf(h->out, "%swrite ", h->lead);
        write_names(h->out, &who, " or ");
        fputc('\n', h->out);
    }
    tmk_arena_fini(&texts);
}

/* Add the functions that the connection knows. */
static void consider_functions(const struct hint *h, struct names *near, struct tmk_arena *texts)
{
    sqlite3_stmt *list = NULL;
    if (sqlite3_prepare_v2(h->db, "SELECT DISTINCT name FROM pragma_function_list", -1, &list,
                           NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(list) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(list, 0);
        if (name)
            consider_near(near, tmk_xarena_text(texts, name, strlen(name)));
    }
    sqlite3_finalize(list);
}

static void hint_function(const struct hint *h, const char *word)
{
    const struct tmk_sql_table *table = tmk_sql_find_table(word);
    if (table) {
        fprintf(h->out, P_("%s%s is a table: SELECT * FROM %s\n"), h->lead, word, table->name);
        return;
    }
    struct names near = {.typed = word};
    struct tmk_arena texts = {0};
    consider_functions(h, &near, &texts);
    if (near.n > 0)
        ask_back(h, &near);
    tmk_arena_fini(&texts);
}

/* FORM is FROM with two letters in the wrong order, which counts as one. */
static bool is_keyword_slip(const char *word, const char *keyword)
{
    return is_slip(word, tmk_name_distance(word, keyword));
}

/* A keyword with a slip stands where the text is refused, or just before: "SELECT a FORM b" takes
 * FORM as a new name of the column. */
static void hint_keyword(const struct hint *h, const char *word)
{
    static const char *const keywords[] = {
        "SELECT", "FROM",  "WHERE", "GROUP",  "ORDER",   "HAVING",  "LIMIT",  "DISTINCT", "JOIN",
        "LEFT",   "UNION", "WITH",  "VALUES", "EXPLAIN", "BETWEEN", "OFFSET", "PRAGMA"};
    const char *at = find_word(h->sql, word), *sql = h->sql;
    struct tmk_sql_word w, before = {0};
    while (at && tmk_sql_word_next(&sql, &w) && w.start < at)
        before = w;
    const char *const suspects[] = {word, before.text};
    for (size_t s = 0; s < TMK_N(suspects); s++) {
        struct names near = {.typed = suspects[s]};
        if (tmk_sql_is_keyword(suspects[s]))
            continue;
        for (size_t i = 0; i < TMK_N(keywords); i++)
            if (is_keyword_slip(suspects[s], keywords[i]))
                insert_name(&near, keywords[i], tmk_name_distance(suspects[s], keywords[i]));
        near.n = near.n > 1 ? 1 : near.n;
        if (near.n > 0) {
            ask_back(h, &near);
            return;
        }
    }
}

/* ---- SQLite's messages ---- */

static const struct {
    const char *before, *after; /* of the word; after NULL: up to the end, or " - " */
    void (*answer)(const struct hint *h, const char *word);
} forms[] = {
    {"no such table: ", NULL, hint_table},
    {"no such column: ", NULL, hint_column},
    {"no such function: ", NULL, hint_function},
    {"ambiguous column name: ", NULL, hint_ambiguous},
    {"near \"", "\": syntax error", hint_keyword},
};

/* Take the word that the message is about out of it. */
static bool take_word(const char *message, size_t form, char *word)
{
    size_t n_before = strlen(forms[form].before);
    if (strncmp(message, forms[form].before, n_before) != 0)
        return false;
    const char *from = message + n_before;
    const char *to = strstr(from, forms[form].after ? forms[form].after : " - ");
    if (!to && forms[form].after)
        return false;
    to = to ? to : from + strlen(from);
    if (to - from > 1 && *from == '"' && to[-1] == '"')
        from++, to--;
    snprintf(word, TMK_SQL_WORD_BYTES, "%.*s", (int)(to - from), from);
    return true;
}

void tmk_query_hint(FILE *out, const char *lead, sqlite3 *db, const char *sql, const char *message,
                    int offset)
{
    struct hint h = {.out = out, .lead = lead, .db = db, .sql = sql};
    char word[TMK_SQL_WORD_BYTES] = "";
    size_t form = 0;
    while (form < TMK_N(forms) && !take_word(message, form, word))
        form++;
    h.n_named = tmk_sql_named_tables(sql, h.named);
    tmk_print(out, "%s%s\n", lead, message);
    const char *at = offset >= 0 && (size_t)offset <= strlen(sql) ? sql + offset : NULL;
    if (!at && form < TMK_N(forms))
        at = find_word(sql, word);
    if (at)
        point_at(&h, at);
    if (form < TMK_N(forms))
        forms[form].answer(&h, word);
}
