/* SPDX-License-Identifier: MIT */
/* sql/bins.h - the rows of a table sorted into bins, one for each combination of key values.
 *
 * The columns that a query needs are copied once, row by row, each to the end of its bin: one
 * pass over segments that are decoded in the cache and then forgotten. Reading a bin is then as
 * quick as reading natural order, while an index of row numbers would fetch each value from
 * somewhere else. Key columns are not copied, since a bin has one value of each. Bytes take half
 * the memory where they are multiples of 256, as the blocks of accelerators are: getting memory
 * is most of the cost. */
#ifndef TMK_SQL_BINS_H
#define TMK_SQL_BINS_H

#include "sql/plan.h"
#include "sql/rows.h"
#include "sql/slab.h"
#include "sql/store.h"

struct tmk_bin_block { /* rows of one bin; columns one after the other in `bytes` */
    struct tmk_bin_block *next, *previous;
    uint32_t n, room;
    uint64_t bytes[];
};

struct tmk_bin {
    struct tmk_bin_block *first, *last;
};

struct tmk_bins {
    const struct tmk_store *store;
    uint8_t n_keys;
    uint8_t keys[TMK_MAX_KEYS];
    uint64_t wanted;    /* columns copied; keys are not among them */
    uint64_t shortened; /* those of them that are TMK_CELL_SHORT_MB here */
    bool by_row;
    struct tmk_bounds bounds;
    uint32_t n_pins;

    struct tmk_bin *bins;
    int64_t *values; /* n_keys for each bin; texts by their number */
    uint64_t n_bins, bin_room, value_room;
    size_t offsets[TMK_MAX_COLUMNS +
                   1]; /* bytes before a column, with room for one row; last: row ids */
    size_t row_bytes;
    struct tmk_slabs slabs;
};

/* Sort the store's rows into bins. *ret_bins is the caller's. */
int tmk_bins_open(struct tmk_store *store, const struct tmk_plan *plan,
                  const struct tmk_bounds *bounds, struct tmk_bins **ret_bins,
                  struct tmk_error *err);
struct tmk_bins *tmk_bins_close(struct tmk_bins *b);

/* True when the bins hold what the plan asks for. */
bool tmk_bins_fit(const struct tmk_bins *b, const struct tmk_plan *plan,
                  const struct tmk_bounds *bounds);

/* The numbers of the bins that pass the plan's filters, in its order; malloc'ed. */
int tmk_bins_select(const struct tmk_bins *b, const struct tmk_plan *plan, sqlite3_value **values,
                    uint64_t **ret_order, uint64_t *ret_n);

/* The cells of a block of bin `i`. */
void tmk_bins_cells(const struct tmk_bins *b, uint64_t i, const struct tmk_bin_block *block,
                    uint64_t wanted, struct tmk_column_values *cells);
/* The row ids of a block; NULL when they were not asked for. */
const uint64_t *tmk_bins_row_ids(const struct tmk_bins *b, const struct tmk_bin_block *block);

#endif
