/* SPDX-License-Identifier: MIT */
/* interop/out/result_out.h - the rows of an SQL statement as CSV or JSON, written as they come.
 *
 * JSON is one object: {"columns": [names], "rows": [{name: value}, ...]}, a line a row. */
#ifndef TMK_INTEROP_OUT_RESULT_OUT_H
#define TMK_INTEROP_OUT_RESULT_OUT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

#include "kit/csv.h"
#include "kit/json.h"

struct tmk_result_out {
    sqlite3_stmt *statement; /* owned by the caller */
    bool is_json;
    int n_columns;
    struct tmk_json json;
    struct tmk_csv csv;
};

/* Write the names of the columns. kit/csv.h explains `is_safe`. */
void tmk_result_out_begin(struct tmk_result_out *r, sqlite3_stmt *statement, bool is_json,
                          bool is_safe, FILE *out);
/* Write the statement's current row. */
void tmk_result_out_row(struct tmk_result_out *r);
void tmk_result_out_end(struct tmk_result_out *r);

#endif
