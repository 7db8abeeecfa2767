/* SPDX-License-Identifier: MIT */
/* cli/output/chart.c - see chart.h. */
#include "cli/output/chart.h"

#include <stdbool.h>
#include <string.h>

#include "cli/output/terminal.h"
#include "kit/amount.h"
#include "kit/glyph.h"

/* The columns for labels, and for all that is not the curve. */
enum { LABEL_WIDTH = 12, MARGIN = LABEL_WIDTH + 4 };

static uint64_t largest_value(const uint64_t *values, uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static void write_row(FILE *out, const uint64_t *values, uint32_t n, uint64_t most, unsigned row)
{
    char label[TMK_AMOUNT_BYTES] = "";
    bool labelled = row == 0 || row == TMK_CHART_ROWS / 2;
    if (labelled)
        tmk_size_text(row == 0 ? most : most / 2, label);
    fprintf(out, "%*s %s", LABEL_WIDTH - 2, label, tmk_glyph(labelled ? "┤" : "│"));
    unsigned below = (TMK_CHART_ROWS - 1 - row) * 8;
    uint32_t end = n;
    while (end > 0 && tmk_eighths(values[end - 1], most, TMK_CHART_ROWS * 8) <= below)
        end--;
    for (uint32_t i = 0; i < end; i++) {
        unsigned height = tmk_eighths(values[i], most, TMK_CHART_ROWS * 8);
        unsigned here = height <= below ? 0 : height - below > 8 ? 8 : height - below;
        fputs(tmk_glyph_upward(here), out);
    }
    fputc('\n', out);
}

/* Write times under the left end, the middle and the right end. */
static void write_times(FILE *out, uint32_t n, uint64_t start_ns, uint64_t end_ns)
{
    char left[TMK_AMOUNT_BYTES], middle[TMK_AMOUNT_BYTES], right[TMK_AMOUNT_BYTES];
    tmk_time_text(start_ns, left);
    tmk_time_text(start_ns + (end_ns - start_ns) / 2, middle);
    tmk_time_text(end_ns, right);
    int to_middle = (int)(n / 2) - (int)strlen(middle) / 2 - (int)strlen(left);
    int to_right = (int)n - (int)(n / 2) - ((int)strlen(middle) - (int)strlen(middle) / 2) -
                   (int)strlen(right);
    fprintf(out, "%*s%s%*s%s%*s%s\n", LABEL_WIDTH, "", left, to_middle, "", middle, to_right, "",
            right);
}

void tmk_chart_write(FILE *out, const uint64_t *values, uint32_t n, uint64_t start_ns,
                     uint64_t end_ns)
{
    uint64_t most = largest_value(values, n);
    for (unsigned row = 0; row < TMK_CHART_ROWS; row++)
        write_row(out, values, n, most, row);
    fprintf(out, "%*s %s", LABEL_WIDTH - 2, "0 B", tmk_glyph("└"));
    for (uint32_t i = 0; i < n; i++)
        fputs(tmk_glyph("─"), out);
    fputc('\n', out);
    write_times(out, n, start_ns, end_ns);
}

unsigned tmk_chart_columns(FILE *out)
{
    unsigned width = tmk_width_of(out);
    return width - MARGIN < TMK_CHART_MOST ? width - MARGIN : TMK_CHART_MOST;
}
