/* SPDX-License-Identifier: MIT */
/* tests/tools/line_at.c - lines of Python instructions, by our decoder of line tables.
 *
 *     line_at [--runs] <TABLES
 *
 * With --runs tables of layout 311 are made runs first, as the packer does, in parts of at most 100
 * bytes.
 *
 * Each line of the input is a code object: layout, first line, size of its bytecode, the table in
 * hexadecimal (- when it is empty). Each line of the output: its instructions' lines, in order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "trace/layout.h"
#include "trace/pylines.h"

static size_t bytes_of(const char *hex, uint8_t *ret)
{
    size_t n = hex[0] == '-' ? 0 : strlen(hex) / 2;
    for (size_t i = 0; i < n; i++)
        sscanf(hex + 2 * i, "%2hhx", &ret[i]);
    return n;
}

/* Runs in place of a table: their length; the table's when it cannot be made such. */
static size_t make_runs(uint8_t *table, size_t n)
{
    static uint8_t runs[1 << 19];
    struct tmk_sink out = tmk_sink_of(runs, sizeof runs);
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < 100 ? n - at : 100;
        while (at + part < n && part > 0 && !(table[at + part] & 0x80))
            part--;
        if (part == 0 || !tmk_pylines_runs(table + at, part, &out)) {
            fprintf(stderr, "no entries at byte %zu\n", at);
            exit(1);
        }
    }
    memcpy(table, runs, tmk_sink_length(&out));
    return tmk_sink_length(&out);
}

int main(int n_arguments, char **arguments)
{
    bool as_runs = n_arguments > 1 && strcmp(arguments[1], "--runs") == 0;
    static char hex[1 << 20];
    static uint8_t table[1 << 19];
    uint32_t layout, first_line, size;
    while (scanf("%" SCNu32 " %" SCNu32 " %" SCNu32 " %1048575s", &layout, &first_line, &size,
                 hex) == 4) {
        struct tmk_pylines lines;
        size_t n = bytes_of(hex, table);
        if (as_runs && layout == TMK_PY_LINES_311) {
            layout = TMK_PY_LINES_RUNS;
            n = make_runs(table, n);
        }
        tmk_pylines_init(&lines, layout, first_line, table, n);
        for (uint32_t offset = 0; offset < size; offset += 2)
            printf("%s%" PRIu32, offset ? " " : "", tmk_pylines_at(&lines, offset));
        putchar('\n');
    }
    return 0;
}
