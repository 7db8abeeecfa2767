/* SPDX-License-Identifier: MIT */
/* sql/table_doc.h - what `tidemark tables` and the docs say about a table and its columns. */
#ifndef TMK_SQL_TABLE_DOC_H
#define TMK_SQL_TABLE_DOC_H

#include <stddef.h>

struct tmk_sql_column {
    const char *name;
    const char *type; /* INTEGER, REAL, TEXT */
    const char *meaning;
};
struct tmk_sql_table {
    const char
        *name; /* as written in a query: "allocations", "python.torch_trace", "timeline(n)" */
    const char *meaning; /* one sentence */
    const struct tmk_sql_column *columns;
    size_t n_columns;
    const char *example; /* a query that runs */
    const char *more[2]; /* and two others */
};

#endif
