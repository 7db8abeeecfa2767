/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_tables.c - the tables that a query can name, with their columns. */
#include <string.h>

#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/query/sql_words.h"
#include "cli/query/tables_text.h"
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
        tmk_tree_list(&t, "examples");
        tmk_tree_text(&t, NULL, tables[i].example);
        for (size_t k = 0; k < TMK_N(tables[i].more); k++)
            tmk_tree_text(&t, NULL, tables[i].more[k]);
        tmk_tree_end(&t);
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

static int run_tables(const struct tmk_args *args)
{
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n), *table = NULL;
    const char *wanted = args->operands[0];
    bool is_json = tmk_args_get(args, "json") != NULL;
    if (wanted && !(table = tmk_sql_find_table(wanted))) {
        const char *nearest = tmk_tables_nearest(wanted);
        if (nearest)
            tmk_say("there is no table '%s'; did you mean %s?", wanted, nearest);
        else
            tmk_say("there is no table '%s'; see: tidemark tables", wanted);
        return TMK_EXIT_USAGE;
    }
    if (is_json)
        print_tables_json(table ? table : tables, table ? 1 : n);
    else if (table)
        tmk_tables_write_one(stdout, table);
    else
        tmk_tables_write_all(stdout);
    return TMK_EXIT_OK;
}

static const struct tmk_option options[] = {
    {"json", 0, NULL, NULL, "print one JSON object"},
};

static const char *const json_keys[] = {
    "tables\teach: name meaning example examples, columns: name type meaning",
    NULL,
};

static const char *const examples[] = {
    "tidemark tables",
    "every table with its columns",
    "tidemark tables allocations",
    "one table: types and meaning of its columns, queries to try",
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
    .is_paged = true,
    .operand = TMK_OPERAND_TABLE,
    .json = json_keys,
    .examples = examples,
    .run = run_tables,
};
