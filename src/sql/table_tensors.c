/* SPDX-License-Identifier: MIT */
/* sql/table_tensors.c - the table tensors: the blocks that were named. blockrows.h has the
 * columns. */
#include "sql/blockrows.h"
#include "sql/schema.h"

static int fill_tensors(struct tmk_fill *f, struct tmk_error *err)
{
    return tmk_block_rows(f, TMK_BLOCKS_NAMED, err);
}

const struct tmk_vtab_def tmk_vtab_tensors = {
    .doc =
        {.name = "tensors",
         .meaning = "the blocks that were given a name",
         .columns = tmk_block_columns,
         .n_columns = TMK_N_BLOCK_COLUMNS,
         .example = "SELECT tensor, size FROM tensors ORDER BY size DESC LIMIT 10",
         .more =
             {"SELECT category, count(DISTINCT tensor) AS tensors FROM tensors GROUP BY category",
              "SELECT tensor, count(*) AS blocks FROM tensors GROUP BY tensor HAVING count(*) > 1 "
              "ORDER BY blocks DESC LIMIT 10"}},
    .name = "tensors",
    .specs = tmk_block_specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_tensors,
};
