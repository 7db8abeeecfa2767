/* SPDX-License-Identifier: MIT */
/* sql/plan.h - how a query will read a table: which columns, which rows, in which order.
 *
 * Made when SQLite asks for the best index, carried out when it filters. There are two ways to
 * read: in natural order (the order of the trace; from the end backwards; processes merged by a
 * column that only rises), or from bins, which hold the rows of each combination of values of a few
 * key columns, in natural order inside. */
#ifndef TMK_SQL_PLAN_H
#define TMK_SQL_PLAN_H

#include <sqlite3.h>

#include "sql/store.h"

enum { TMK_MAX_KEYS = 4, TMK_MAX_FILTERS = 16 };

enum tmk_filter_op {
    TMK_FILTER_EQ,
    TMK_FILTER_GT,
    TMK_FILTER_GE,
    TMK_FILTER_LT,
    TMK_FILTER_LE,
    TMK_FILTER_NOT_NULL,
    TMK_FILTER_IS_NULL,
    TMK_FILTER_ARG, /* argument number `column` of a table-valued function */
};

struct tmk_filter { /* the n-th takes the n-th value */
    uint8_t op;
    uint8_t column;
};

struct tmk_plan {
    uint64_t wanted; /* columns */
    int bounded_by;  /* column in order that filters bound; -1: none */
    int merge_by;    /* column in order to merge the processes by; -1: one after the other */
    bool backwards;  /* natural order from its end, also inside bins */
    bool by_row;     /* rows of bins are asked for their rowid */
    uint8_t n_keys;  /* 0: natural order */
    uint8_t keys[TMK_MAX_KEYS];
    bool falling[TMK_MAX_KEYS]; /* bins of larger keys first */
    uint8_t n_filters;
    struct tmk_filter filters[TMK_MAX_FILTERS];
};

bool tmk_plan_same(const struct tmk_plan *a, const struct tmk_plan *b);

/* Fill *ret_plan and what `info` is to be told, but for idxNum. SQLITE_CONSTRAINT when an argument
 * of a table-valued function cannot be had this way. */
int tmk_plan_make(struct tmk_store *store, sqlite3_index_info *info, struct tmk_plan *ret_plan);

/* Narrow *bounds by one comparison of an integer column with a value; exactly as SQLite compares.
 */
void tmk_bounds_narrow(struct tmk_bounds *bounds, enum tmk_filter_op op, sqlite3_value *value);

#endif
