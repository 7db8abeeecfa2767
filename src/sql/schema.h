/* SPDX-License-Identifier: MIT */
/* sql/schema.h - the definition of a table: columns, scope, and how to make its rows.
 *
 * A table is one file, table_<name>.c, with one `struct tmk_vtab_def`, declared below and listed in
 * sql.c. Its columns are an X-macro, which gives the column numbers that the code uses, the
 * declaration for SQLite, and the documentation:
 *
 *     #define COLUMNS(X)                                                                \
 *         X(step, INT, TMK_ORDER_STEP, "training step; NULL before the first")             \
 *         X(module, TEXT, TMK_FEW, "dotted path of the module")
 *     enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
 *     static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
 *     static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};
 *
 * fill() makes rows for one segment at a time: all rows of one process or, where a chunk of
 * events is enough by itself, of one chunk. fill() must make the same rows every time, whatever
 * columns are wanted: columns that a later query needs are joined to those that exist. */
#ifndef TMK_SQL_SCHEMA_H
#define TMK_SQL_SCHEMA_H

#include <stdint.h>

#include "base/error.h"
#include "sql/rows.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "sql/walk.h"

#define TMK_SQL_TYPE_INT "INTEGER"
#define TMK_SQL_TYPE_COUNT "INTEGER"
#define TMK_SQL_TYPE_TEXT "TEXT"
#define TMK_SQL_TYPE_MB "REAL"
#define TMK_SQL_TYPE_SECONDS "REAL"

#define TMK_COLUMN_NUMBER(name, kind, flags, meaning) COL_##name,
#define TMK_COLUMN_DOC(name, kind, flags, meaning) {#name, TMK_SQL_TYPE_##kind, meaning},
#define TMK_COLUMN_SPEC(name, kind, flags, meaning) {TMK_CELL_##kind, flags},

enum tmk_scope { TMK_SCOPE_PROCESS, TMK_SCOPE_CHUNK };

enum { TMK_MAX_ARGS = 2 };

struct tmk_fill {
    struct tmk_textpool *pool;
    struct tmk_source *source;
    uint32_t chunk;        /* TMK_SCOPE_CHUNK: number in source->chunks */
    const int64_t *args;   /* of a table-valued function */
    struct tmk_walk *walk; /* kept between segments, so that neighbours are read on from there */
    struct tmk_rows *rows; /* empty; to be filled */
};

/* Set a text that may go away; NULL: unknown. */
static inline void tmk_fill_text(struct tmk_fill *f, uint32_t column, uint64_t row,
                                 const char *text)
{
    if (text && tmk_rows_want(f->rows, column))
        tmk_rows_text(f->rows, column, row, tmk_textpool_keep(f->pool, text));
}

struct tmk_vtab_def {
    struct tmk_sql_table doc;
    const char *schema; /* database to make it in; NULL: main */
    const char *name;   /* in that schema */
    const struct tmk_column_spec *specs;
    uint8_t scope;          /* enum tmk_scope */
    uint8_t rows_per_event; /* for the planner: 1 when about each event is a row, 0: few rows */
    uint8_t n_args;
    const char *arg_names[TMK_MAX_ARGS];
    int64_t arg_defaults[TMK_MAX_ARGS];
    /* Make the rows. Returns 0, TMK_ENOMEM or TMK_EIO. Damage is skipped: rows up to it, or none.
     */
    int (*fill)(struct tmk_fill *f, struct tmk_error *err);
};

extern const struct tmk_vtab_def tmk_vtab_accounting, tmk_vtab_allocations, tmk_vtab_devices,
    tmk_vtab_events, tmk_vtab_forecast, tmk_vtab_frames, tmk_vtab_live_at, tmk_vtab_marks,
    tmk_vtab_modules, tmk_vtab_ooms, tmk_vtab_parameters, tmk_vtab_peak, tmk_vtab_processes,
    tmk_vtab_ranges, tmk_vtab_stacks, tmk_vtab_steps, tmk_vtab_samples, tmk_vtab_segments,
    tmk_vtab_tensors, tmk_vtab_timeline, tmk_vtab_torch_trace;
extern const struct tmk_vtab_def tmk_vtab_fragmentation, tmk_vtab_leaks, tmk_vtab_whatif;
extern const struct tmk_vtab_def tmk_vtab_explanations;

#endif
