/* SPDX-License-Identifier: MIT */
/* cli/query/tables_text.c - see tables_text.h. */
#include "cli/query/tables_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/front/command.h"
#include "cli/output/sheet.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "cli/query/sql_words.h"
#include "kit/language.h"
#include "kit/table.h"
#include "sql/sql.h"

static bool has_part(const char *name, const char *part)
{
    size_t n = strlen(part);
    for (; *name; name++)
        if (sqlite3_strnicmp(name, part, (int)n) == 0)
            return true;
    return n == 0;
}

static size_t widest_name(const struct tmk_sql_table *tables, size_t n)
{
    size_t widest = 0;
    for (size_t i = 0; i < n; i++)
        widest = strlen(tables[i].name) > widest ? strlen(tables[i].name) : widest;
    return widest;
}

unsigned tmk_tables_write_names(FILE *out, const char *part)
{
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    int widest = (int)widest_name(tables, n);
    unsigned n_written = 0;
    for (size_t i = 0; i < n; i++) {
        if (part && !has_part(tables[i].name, part))
            continue;
        fprintf(out, "%-*s  %s\n", widest, tables[i].name, P_(tables[i].meaning));
        n_written++;
    }
    return n_written;
}

/* Write the names of the columns below the meaning, as many in a line as there is room for. */
static void write_column_names(FILE *out, const struct tmk_sql_table *table, size_t indent)
{
    size_t at = indent, width = tmk_width_of(out);
    fprintf(out, "%*s%s", (int)indent, "", tmk_role_on(out, TMK_ROLE_DETAIL));
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *name = table->columns[i].name, *sign = i + 1 < table->n_columns ? "," : "";
        size_t n = strlen(name) + strlen(sign);
        if (i > 0 && at + 1 + n > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (i > 0) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%s%s", name, sign);
        at += n;
    }
    fprintf(out, "%s\n", tmk_role_off(out, TMK_ROLE_DETAIL));
}

void tmk_tables_write_all(FILE *out)
{
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    size_t widest = widest_name(tables, n);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "%s%-*s%s  %s\n", tmk_role_on(out, TMK_ROLE_STRONG), (int)widest,
                tables[i].name, tmk_role_off(out, TMK_ROLE_STRONG), P_(tables[i].meaning));
        write_column_names(out, &tables[i], widest + 2);
    }
}

/* ---- one table ---- */

static void write_query(FILE *out, const char *query)
{
    char *text = tmk_xformat("%s;", query);
    tmk_sheet_wrap(out, text, "  ");
    free(text);
}

void tmk_tables_write_examples(FILE *out, const struct tmk_sql_table *table)
{
    static const char *const general[] = {"steps", "allocations", "peak", "leaks", "processes"};
    for (size_t i = 0; !table && i < TMK_N(general); i++)
        write_query(out, tmk_sql_find_table(general[i])->example);
    if (!table)
        return;
    write_query(out, table->example);
    for (size_t i = 0; i < TMK_N(table->more); i++)
        if (table->more[i])
            write_query(out, table->more[i]);
}

void tmk_tables_write_one(FILE *out, const struct tmk_sql_table *table)
{
    static const struct tmk_column columns[] = {
        {NULL, TMK_LEFT, TMK_FIXED}, {NULL, TMK_LEFT, TMK_FIXED}, {NULL, TMK_LEFT, TMK_SHRINK}};
    struct tmk_sheet sheet = tmk_sheet_on(out);
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (size_t c = 0; c < table->n_columns; c++) {
        tmk_table_cell(t, table->columns[c].name);
        tmk_table_cell(t, table->columns[c].type);
        tmk_table_cell(t, P_(table->columns[c].meaning));
    }
    tmk_sheet_heading(&sheet, table->name);
    tmk_sheet_text(&sheet, "%s", P_(table->meaning));
    fputc('\n', out);
    tmk_sheet_table(&sheet, t);
    fprintf(out, "\n%s%s%s\n", tmk_role_on(out, TMK_ROLE_STRONG), P_("To try:"),
            tmk_role_off(out, TMK_ROLE_STRONG));
    tmk_tables_write_examples(out, table);
}

void tmk_tables_write_schema(FILE *out, const struct tmk_sql_table *table)
{
    size_t widest = 0;
    for (size_t i = 0; i < table->n_columns; i++) {
        size_t n = strlen(table->columns[i].name);
        widest = n > widest ? n : widest;
    }
    fprintf(out, "-- %s\nCREATE TABLE %s (\n", P_(table->meaning), table->name);
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct tmk_sql_column *c = &table->columns[i];
        fprintf(out, "  %-*s %s%-*s -- %s\n", (int)widest, c->name, c->type,
                (int)(8 - strlen(c->type)), i + 1 < table->n_columns ? "," : "", P_(c->meaning));
    }
    fprintf(out, ");\n");
}

const char *tmk_tables_nearest(const char *name)
{
    unsigned best = 3;
    const char *nearest = NULL;
    size_t n_tables, n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n_tables);
    for (size_t i = 0; i < n_tables; i++) {
        const char *bare = tmk_sql_bare_name(&tables[i], &n);
        char *text = tmk_xformat("%.*s", (int)n, bare);
        unsigned distance = tmk_name_distance(name, text);
        if (distance < best && distance < strlen(name)) {
            best = distance;
            nearest = tables[i].name;
        }
        free(text);
    }
    return nearest;
}
