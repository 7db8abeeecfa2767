/* SPDX-License-Identifier: MIT */
/* sql/scan.h - carries out a plan: slice after slice of rows, each with its columns in arrays.
 *
 * Inside a slice the next row is one addition away and a value one array access, so that a query
 * costs what SQLite costs. A slice is a segment or the part of it in bounds, the rows of one step
 * of one process where processes are merged, or a block of a bin. */
#ifndef TMK_SQL_SCAN_H
#define TMK_SQL_SCAN_H

#include "sql/bins.h"
#include "sql/rows.h"
#include "sql/store.h"

enum { TMK_KEPT_BINS = 4 };

/* An open table: its store and the bins that earlier queries made. */
struct tmk_table_data {
    struct tmk_store store;
    struct tmk_bins *bins[TMK_KEPT_BINS]; /* most recently used first */
};

void tmk_table_data_fini(struct tmk_table_data *t);

struct tmk_merge_source; /* one process of a merge */

struct tmk_scan {
    /* The slice: rows `row`, row + stride, ... up to `last`, which is one of them. */
    uint64_t row, last;
    int64_t stride; /* 1 or -1 */
    bool done;      /* there is no row any more */
    struct tmk_column_values cells[TMK_MAX_COLUMNS];

    /* Private to scan.c. */
    struct tmk_table_data *table;
    const struct tmk_plan *plan;
    struct tmk_bounds bounds;
    int (*next)(struct tmk_scan *s, struct tmk_error *err); /* the next slice */
    struct tmk_segment *pinned;
    uint32_t n_left; /* natural: segments not yet visited */
    struct tmk_merge_source *merged;
    struct tmk_bins *bins;
    bool own_bins;
    uint64_t *order; /* of bins */
    uint64_t n_order, at;
    const struct tmk_bin_block *block;
    uint64_t n_before, n_slice; /* rows of earlier slices and of this one, for row ids */
};

/* Begin a scan. `values` are those of the plan's filters. Zero a scan before its first use; end()
 * releases what it holds and may be called at any time, repeatedly. */
int tmk_scan_begin(struct tmk_scan *s, struct tmk_table_data *table, const struct tmk_plan *plan,
                   sqlite3_value **values, struct tmk_error *err);
void tmk_scan_end(struct tmk_scan *s);

/* A number for the row that is the same in every plan that filters by a key or does not use
 * bins. */
int64_t tmk_scan_row_id(const struct tmk_scan *s);

#endif
