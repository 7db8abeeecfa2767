/* SPDX-License-Identifier: MIT */
/* sql/table_live_at.c - the table live_at(t): the blocks alive t ns after the run's start, after
 * all events of that moment; without t, those alive at its end. blockrows.h has the columns. */
#include "passes/peak.h"
#include "sql/blockrows.h"
#include "sql/schema.h"

static int fill_live_at(struct tmk_fill *f, struct tmk_error *err)
{
    uint64_t offset_ns = f->source->p->offset_ns;
    if (f->args[0] < 0 || (uint64_t)f->args[0] < offset_ns)
        return 0; /* the process had not begun */
    struct tmk_moment moment = {
        .kind = TMK_MOMENT_TIME, .time_ns = (uint64_t)f->args[0] - offset_ns, .any_device = true};
    return tmk_block_rows_at(f, &moment, err);
}

const struct tmk_vtab_def tmk_vtab_live_at = {
    .doc =
        {.name = "live_at(t)",
         .meaning = "the blocks alive t ns after the run's start",
         .columns = tmk_block_columns,
         .n_columns = TMK_N_BLOCK_COLUMNS,
         .example = "SELECT device, sum(size) FROM live_at(1000000000) GROUP BY device",
         .more =
             {"SELECT tensor, category, size FROM live_at(1000000000) ORDER BY size DESC LIMIT 10",
              "SELECT s.step, (SELECT sum(size) FROM live_at(s.end_ns)) AS bytes FROM steps s "
              "LIMIT 10"}},
    .name = "live_at",
    .specs = tmk_block_specs,
    .scope = TMK_SCOPE_PROCESS,
    .n_args = 1,
    .arg_names = {"t"},
    .arg_defaults = {INT64_MAX},
    .fill = fill_live_at,
};
