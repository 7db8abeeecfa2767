/* SPDX-License-Identifier: MIT */
/* interop/out/tables_out.h - the tables of a run (sql/sql.h) in files: one as CSV or JSON, or all
 * of them in a database of SQLite's own that needs no tidemark to be asked.
 *
 * A table's columns are decoded as a whole, so memory is that of the largest table. */
#ifndef TMK_INTEROP_OUT_TABLES_OUT_H
#define TMK_INTEROP_OUT_TABLES_OUT_H

#include "interop/out/export.h"
#include "sql/sql.h"

/* The table that a name stands for: "allocations", "torch_trace" or "python.torch_trace",
 * "timeline(100)". NULL: there is none. */
const struct tmk_sql_table *tmk_export_find_table(const char *name);
bool tmk_export_has_column(const struct tmk_sql_table *table, const char *column);

struct tmk_export_table {
    const char *name; /* as find_table knows it */
    bool is_json;     /* else CSV */
    bool is_safe;     /* CSV without formulas, see kit/csv.h */
    int64_t rank;     /* of this one alone; -1: of all */
};

/* With x->any_device false, rows of that device alone: the table must have such a column. */
int tmk_export_table(const struct tmk_export *x, const struct tmk_export_table *t, FILE *out,
                     struct tmk_export_notes *ret, struct tmk_error *err);

/* Into the file at `path`, which is empty or new: every table but those that want an argument.
 * Schema python's torch_trace is table torch_trace. */
int tmk_export_sqlite(const struct tmk_export *x, const char *path, struct tmk_export_notes *ret,
                      struct tmk_error *err);

#endif
