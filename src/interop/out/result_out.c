/* SPDX-License-Identifier: MIT */
/* interop/out/result_out.c - see result_out.h. */
#include "interop/out/result_out.h"

#include <stdio_ext.h>

static const char *text_of_column(const struct tmk_result_out *r, int i)
{
    return (const char *)sqlite3_column_text(r->statement, i);
}

static bool is_number_type(int type)
{
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

void tmk_result_out_begin(struct tmk_result_out *r, sqlite3_stmt *statement, bool is_json,
                          bool is_safe, FILE *out)
{
    *r = (struct tmk_result_out){
        .statement = statement, .is_json = is_json, .n_columns = sqlite3_column_count(statement)};
    __fsetlocking(out,
                  FSETLOCKING_BYCALLER); /* no other thread writes: locking at each call is waste */
    if (!is_json) {
        tmk_csv_init(&r->csv, out, is_safe);
        for (int i = 0; i < r->n_columns; i++)
            tmk_csv_text(&r->csv, sqlite3_column_name(statement, i));
        tmk_csv_end_row(&r->csv);
        return;
    }
    tmk_json_init(&r->json, out, 2);
    tmk_json_object(&r->json, NULL);
    r->json.lines = 1; /* the names in one line, then a line a row */
    tmk_json_array(&r->json, "columns");
    for (int i = 0; i < r->n_columns; i++)
        tmk_json_text(&r->json, NULL, sqlite3_column_name(statement, i));
    tmk_json_end(&r->json);
    r->json.lines = 2;
    tmk_json_array(&r->json, "rows");
}

static void write_column_value(struct tmk_result_out *r, int i)
{
    const char *name = sqlite3_column_name(r->statement, i);
    switch (sqlite3_column_type(r->statement, i)) {
    case SQLITE_INTEGER:
        tmk_json_i64(&r->json, name, sqlite3_column_int64(r->statement, i));
        break;
    case SQLITE_FLOAT:
        tmk_json_double(&r->json, name, sqlite3_column_double(r->statement, i));
        break;
    case SQLITE_NULL:
        tmk_json_null(&r->json, name);
        break;
    default:
        tmk_json_text(&r->json, name, text_of_column(r, i));
        break;
    }
}

void tmk_result_out_row(struct tmk_result_out *r)
{
    if (r->is_json)
        tmk_json_object(&r->json, NULL);
    for (int i = 0; i < r->n_columns; i++) {
        if (r->is_json)
            write_column_value(r, i);
        else if (is_number_type(sqlite3_column_type(r->statement, i)))
            tmk_csv_number(&r->csv, text_of_column(r, i));
        else
            tmk_csv_text(&r->csv, text_of_column(r, i));
    }
    if (r->is_json)
        tmk_json_end(&r->json);
    else
        tmk_csv_end_row(&r->csv);
}

void tmk_result_out_end(struct tmk_result_out *r)
{
    if (!r->is_json)
        return;
    tmk_json_end(&r->json);
    tmk_json_end(&r->json);
}
