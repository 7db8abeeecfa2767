/* SPDX-License-Identifier: MIT */
/* sql/aggregates.h - stddev, median, percentile, which SQLite lacks.
 *
 *   stddev(x)         sample standard deviation; NULL for fewer than two values
 *   median(x)         percentile(x, 50)
 *   percentile(x, p)  p from 0 to 100: the value at position p / 100 * (n - 1) of the n values in
 *                     order, counted from 0, interpolated between neighbours. NULL for no values
 *
 * NULLs are skipped. Texts count as the numbers they begin with, as in SQLite's avg(). */
#ifndef TMK_SQL_AGGREGATES_H
#define TMK_SQL_AGGREGATES_H

#include <sqlite3.h>

/* Returns an SQLite result code. */
int tmk_aggregates_register(sqlite3 *db);

#endif
