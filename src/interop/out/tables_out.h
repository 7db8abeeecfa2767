/* SPDX-License-Identifier: MIT */
/* interop/out/tables_out.h - the tables of a run (sql/sql.h) as files: one as CSV or JSON, or all
 * of them in a plain SQLite database, which can be queried without tidemark.
 *
 * A table's columns are decoded as a whole, so memory is that of the largest table. */
#ifndef TMK_INTEROP_OUT_TABLES_OUT_H
#define TMK_INTEROP_OUT_TABLES_OUT_H

#include "interop/out/export.h"
#include "sql/table_doc.h"

/* Find the table that a name stands for: "allocations", "torch_trace" or "python.torch_trace",
 * "timeline(100)". NULL: there is none. */
const struct tmk_sql_table *tmk_export_find_table(const char *name);
bool tmk_export_has_column(const struct tmk_sql_table *table, const char *column);

struct tmk_export_table {
    const char *name; /* as find_table knows it */
    bool is_json;     /* else CSV */
    bool is_safe;     /* CSV without formulas, see kit/csv.h */
    int64_t rank;     /* only this rank; -1: all of them */
};

/* With x->any_device false, write only that device's rows: the table must have a device column. */
int tmk_export_table(const struct tmk_export *x, const struct tmk_export_table *t, FILE *out,
                     struct tmk_export_notes *ret, struct tmk_error *err);

/* Write every table but those that need an argument into the file at `path`, which is empty or
 * new. Schema python's torch_trace is table torch_trace. */
int tmk_export_sqlite(const struct tmk_export *x, const char *path, struct tmk_export_notes *ret,
                      struct tmk_error *err);

#endif
