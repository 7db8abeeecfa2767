/* SPDX-License-Identifier: MIT */
/* cli/output/chart.h - a curve in block characters, with sizes at its side and times below. */
#ifndef TMK_CLI_OUTPUT_CHART_H
#define TMK_CLI_OUTPUT_CHART_H

#include <stdint.h>
#include <stdio.h>

/* TMK_CHART_COLUMNS: where nobody asked about the width, as in JSON. */
enum { TMK_CHART_COLUMNS = 64, TMK_CHART_MOST = 240, TMK_CHART_ROWS = 8 };

/* Draw `n` values from `start_ns` to `end_ns`, a column for each. */
void tmk_chart_write(FILE *out, const uint64_t *values, uint32_t n, uint64_t start_ns,
                     uint64_t end_ns);

/* Returns how many values a chart on `out` has room for: 64 on 80 columns, at most TMK_CHART_MOST.
 */
unsigned tmk_chart_columns(FILE *out);

#endif
