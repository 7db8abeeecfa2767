/* SPDX-License-Identifier: MIT */
/* cli/output/chart.h - a curve in block characters, with sizes at its side and times below. */
#ifndef TMK_CLI_OUTPUT_CHART_H
#define TMK_CLI_OUTPUT_CHART_H

#include <stdint.h>
#include <stdio.h>

enum { TMK_CHART_COLUMNS = 64, TMK_CHART_ROWS = 8 };

/* Draw `n` values from `start_ns` to `end_ns`, a column for each. */
void tmk_chart_write(FILE *out, const uint64_t *values, uint32_t n, uint64_t start_ns,
                     uint64_t end_ns);

/* Write a horizontal bar for `part` of `whole`, at most `width` columns wide, into `buffer` of 3 *
 * width + 4 bytes. Returns it. */
const char *tmk_bar(uint64_t part, uint64_t whole, unsigned width, char *buffer);

#endif
