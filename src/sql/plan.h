/* SPDX-License-Identifier: MIT */
/* sql/plan.h - how a query reads a table: which columns, which rows, in which order.
 *
 * A plan is made when SQLite asks for the best index, and carried out when it filters. There are
 * two ways to read: in natural order (the order of the trace; or from its end backwards; or
 * processes merged by a column that only rises), or from bins, which hold the rows of each
 * combination of values of a few key columns, in natural order inside. */
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

struct tmk_filter { /* the n-th filter takes the n-th value */
    uint8_t op;
    uint8_t column;
};

struct tmk_plan {
    uint64_t wanted; /* columns */
    int bounded_by;  /* ordered column that filters bound; -1: none */
    int merge_by;    /* ordered column by which processes are merged; -1: one after the other */
    bool backwards;  /* natural order from its end, also inside bins */
    bool by_row;     /* the query asks for the rowid of rows in bins */
    uint8_t n_keys;  /* 0: natural order */
    uint8_t keys[TMK_MAX_KEYS];
    bool falling[TMK_MAX_KEYS]; /* bins of larger keys first */
    uint8_t n_filters;
    struct tmk_filter filters[TMK_MAX_FILTERS];
};

bool tmk_plan_same(const struct tmk_plan *a, const struct tmk_plan *b);

/* Fill *ret_plan, and `info` except for idxNum. Returns SQLITE_CONSTRAINT when an argument of a
 * table-valued function is not available this way. */
int tmk_plan_make(struct tmk_store *store, sqlite3_index_info *info, struct tmk_plan *ret_plan);

/* Narrow *bounds by comparing an integer column with a value, exactly as SQLite compares. */
void tmk_bounds_narrow(struct tmk_bounds *bounds, enum tmk_filter_op op, sqlite3_value *value);

#endif
