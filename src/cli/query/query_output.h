/* SPDX-License-Identifier: MIT */
/* cli/query/query_output.h - the rows of a statement as a table, JSON or CSV.
 *
 * Rows are written as they come. Only a table holds rows back, to find the widths of its columns.
 */
#ifndef TMK_CLI_QUERY_QUERY_OUTPUT_H
#define TMK_CLI_QUERY_QUERY_OUTPUT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tmk_query_format { TMK_QUERY_TABLE, TMK_QUERY_JSON, TMK_QUERY_CSV };

struct tmk_query_style {
    enum tmk_query_format format;
    bool is_safe;   /* CSV without formulas */
    uint64_t limit; /* rows that are shown; 0: all */
    size_t width;   /* columns that a table may take; 0: as many as it needs. Where they are too
                     * few for a table, each row is a paragraph with a line for each column. */
};

struct tmk_query_rows {
    uint64_t n_shown, n_more; /* what of the rest was counted */
    bool has_uncounted;       /* counting the rest took too long: there are more */
};

/* Writes the rows of `statement` to stdout. `rc` is what the first sqlite3_step() returned.
 * Returns SQLITE_DONE or the code of the error that ended the rows. */
int tmk_query_output(sqlite3_stmt *statement, int rc, const struct tmk_query_style *style,
                     struct tmk_query_rows *ret_rows);

#endif
