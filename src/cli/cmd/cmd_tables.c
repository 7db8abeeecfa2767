/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_tables.c - the tables that a query can name, with their columns. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "kit/table.h"
#include "kit/tree.h"
#include "sql/sql.h"
#include "sql/table_doc.h"

static void print_tables_json(const struct tmk_sql_table *tables, size_t n)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_list(&t, "tables");
    for (size_t i = 0; i < n; i++) {
        tmk_tree_object(&t, NULL);
        tmk_tree_text(&t, "name", tables[i].name);
        tmk_tree_text(&t, "meaning", tables[i].meaning);
        tmk_tree_text(&t, "example", tables[i].example);
        tmk_tree_list(&t, "columns");
        for (size_t c = 0; c < tables[i].n_columns; c++) {
            tmk_tree_object(&t, NULL);
            tmk_tree_text(&t, "name", tables[i].columns[c].name);
            tmk_tree_text(&t, "type", tables[i].columns[c].type);
            tmk_tree_text(&t, "meaning", tables[i].columns[c].meaning);
            tmk_tree_end(&t);
        }
        tmk_tree_end(&t);
        tmk_tree_end(&t);
    }
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}

static void print_sql_table(struct tmk_sheet *sheet, const struct tmk_sql_table *table)
{
    static const struct tmk_column columns[] = {
        {NULL, TMK_LEFT, TMK_FIXED}, {NULL, TMK_LEFT, TMK_FIXED}, {NULL, TMK_LEFT, TMK_FIXED}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (size_t c = 0; c < table->n_columns; c++) {
        tmk_table_cell(t, table->columns[c].name);
        tmk_table_cell(t, table->columns[c].type);
        tmk_table_cell(t, table->columns[c].meaning);
    }
    tmk_sheet_heading(sheet, table->name);
    tmk_sheet_text(sheet, "%s", table->meaning);
    tmk_sheet_table(sheet, t);
    printf("  e.g. %s\n", table->example);
}

/* Returns whether `name` means a table. "timeline" means "timeline(n)", too. */
static bool is_asked_table(const struct tmk_sql_table *table, const char *name)
{
    size_t n = strcspn(table->name, "(");
    return strcmp(table->name, name) == 0 ||
           (strlen(name) == n && strncmp(table->name, name, n) == 0);
}

static int run_tables(const struct tmk_args *args)
{
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    const char *wanted = args->operands[0];
    struct tmk_sheet sheet = {.out = stdout, .colour = tmk_wants_colour(stdout)};
    bool found = false;
    if (!wanted && tmk_args_get(args, "json")) {
        print_tables_json(tables, n);
        return TMK_EXIT_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (wanted && !is_asked_table(&tables[i], wanted))
            continue;
        found = true;
        if (tmk_args_get(args, "json"))
            print_tables_json(&tables[i], 1);
        else
            print_sql_table(&sheet, &tables[i]);
    }
    if (!found)
        tmk_say("there is no table '%s'; see: tidemark tables", wanted ? wanted : "");
    return found ? TMK_EXIT_OK : TMK_EXIT_USAGE;
}

static const struct tmk_option options[] = {
    {"json", 0, NULL, NULL, "print one JSON object"},
};

static const char *const json_keys[] = {
    "tables\teach: name meaning example, columns: name type meaning",
    NULL,
};

static const char *const examples[] = {
    "tidemark tables",
    "every table, its columns and a query to try on each",
    "tidemark tables allocations",
    "one table",
    NULL,
};

const struct tmk_command tmk_cmd_tables = {
    .name = "tables",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "List the tables of `tidemark query`, with their columns",
    .usage = "[TABLE] [options]",
    .options = options,
    .n_options = TMK_N(options),
    .max_operands = 1,
    .operand = TMK_OPERAND_NONE,
    .json = json_keys,
    .examples = examples,
    .run = run_tables,
};
