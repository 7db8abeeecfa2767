/* SPDX-License-Identifier: MIT */
/* sql/table_allocations.c - the table allocations: every block that was ever made. blockrows.h
 * has the columns.
 *
 *     SELECT category, count(*), sum(size) FROM allocations GROUP BY category;
 *     SELECT module, sum(size) FROM allocations WHERE free_ns IS NULL GROUP BY module;
 *     SELECT s.text, sum(a.size) FROM allocations a JOIN stacks s ON s.id = a.stack_id GROUP BY 1;
 */
#include "sql/blockrows.h"
#include "sql/schema.h"

static int fill_allocations(struct tmk_fill *f, struct tmk_error *err)
{
    return tmk_block_rows(f, TMK_BLOCKS_ALL, err);
}

const struct tmk_vtab_def tmk_vtab_allocations = {
    .doc = {.name = "allocations",
            .meaning = "every block that was ever made",
            .columns = tmk_block_columns,
            .n_columns = TMK_N_BLOCK_COLUMNS,
            .example = "SELECT category, count(*), sum(size) FROM allocations GROUP BY category"},
    .name = "allocations",
    .specs = tmk_block_specs,
    .scope = TMK_SCOPE_PROCESS,
    .rows_per_event = 1,
    .fill = fill_allocations,
};
