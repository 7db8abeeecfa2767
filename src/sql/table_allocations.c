/* SPDX-License-Identifier: MIT */
/* sql/table_allocations.c - the table allocations: every block that was ever made. blockrows.h
 * has the columns. */
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
            .example = "SELECT category, count(*), sum(size) FROM allocations GROUP BY category",
            .more = {"SELECT module, count(*) AS blocks, sum(size) AS bytes FROM allocations WHERE "
                     "free_ns IS NULL GROUP BY module ORDER BY bytes DESC",
                     "SELECT f.file, f.line, sum(a.size) AS bytes FROM allocations a JOIN frames f "
                     "ON f.stack_id = a.stack_id AND f.depth = 0 GROUP BY f.file, f.line ORDER BY "
                     "bytes DESC LIMIT 10"}},
    .name = "allocations",
    .specs = tmk_block_specs,
    .scope = TMK_SCOPE_PROCESS,
    .rows_per_event = 1,
    .fill = fill_allocations,
};
