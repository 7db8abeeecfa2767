/* SPDX-License-Identifier: MIT */
/* sql/table_peak.c - the table peak: the blocks alive when the most bytes were allocated, the
 * first time.
 *
 * Each process has its own moment, on the device with its largest peak. blockrows.h has the
 * columns. */
#include "passes/peak.h"
#include "sql/blockrows.h"
#include "sql/schema.h"

static int fill_peak(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_moment moment = {.kind = TMK_MOMENT_PEAK, .any_device = true};
    return tmk_block_rows_at(f, &moment, err);
}

const struct tmk_vtab_def tmk_vtab_peak = {
    .doc =
        {.name = "peak",
         .meaning = "the blocks alive at each process's high-water mark",
         .columns = tmk_block_columns,
         .n_columns = TMK_N_BLOCK_COLUMNS,
         .example = "SELECT category, sum(size) FROM peak GROUP BY category ORDER BY 2 DESC",
         .more =
             {"SELECT module, count(*) AS blocks, sum(size) AS bytes FROM peak GROUP BY module "
              "ORDER BY bytes DESC",
              "SELECT f.file, f.line, sum(p.size) AS bytes FROM peak p JOIN frames f ON f.stack_id "
              "= p.stack_id AND f.depth = 0 GROUP BY f.file, f.line ORDER BY bytes DESC LIMIT 10"}},
    .name = "peak",
    .specs = tmk_block_specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_peak,
};
