/* SPDX-License-Identifier: MIT */
/* cli/output/chart.c - see chart.h. Everything is counted in eighths of a character. */
#include "cli/output/chart.h"

#include <stdbool.h>
#include <string.h>

#include "kit/amount.h"

enum { LABEL_WIDTH = 12 };

static const char *const upward[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const rightward[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

/* Returns how many of `eighths` a value fills; at least one, unless it is 0. */
static unsigned filled_eighths(uint64_t value, uint64_t whole, unsigned eighths)
{
    if (value == 0 || whole == 0)
        return 0;
    unsigned n = (unsigned)((double)value / (double)whole * eighths + 0.5);
    return n == 0 ? 1 : n > eighths ? eighths : n;
}

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
    fprintf(out, "%*s %s", LABEL_WIDTH - 2, label, labelled ? "┤" : "│");
    unsigned below = (TMK_CHART_ROWS - 1 - row) * 8;
    uint32_t end = n;
    while (end > 0 && filled_eighths(values[end - 1], most, TMK_CHART_ROWS * 8) <= below)
        end--;
    for (uint32_t i = 0; i < end; i++) {
        unsigned height = filled_eighths(values[i], most, TMK_CHART_ROWS * 8);
        unsigned here = height <= below ? 0 : height - below > 8 ? 8 : height - below;
        fputs(upward[here], out);
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
    fprintf(out, "%*s └", LABEL_WIDTH - 2, "0 B");
    for (uint32_t i = 0; i < n; i++)
        fputs("─", out);
    fputc('\n', out);
    write_times(out, n, start_ns, end_ns);
}

const char *tmk_bar(uint64_t part, uint64_t whole, unsigned width, char *buffer)
{
    unsigned eighths = filled_eighths(part, whole, width * 8);
    char *at = buffer;
    for (; eighths >= 8; eighths -= 8)
        at = stpcpy(at, rightward[8]);
    stpcpy(at, rightward[eighths]);
    return buffer;
}
