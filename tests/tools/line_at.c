/* SPDX-License-Identifier: MIT */
/* tests/tools/line_at.c - lines of Python instructions, by our decoder of line tables.
 *
 *     line_at <TABLES
 *
 * Each line of the input is a code object: layout, first line, size of its bytecode, the table in
 * hexadecimal (- when it is empty). Each line of the output: its instructions' lines, in order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/pylines.h"

static size_t bytes_of(const char *hex, uint8_t *ret)
{
    size_t n = hex[0] == '-' ? 0 : strlen(hex) / 2;
    for (size_t i = 0; i < n; i++)
        sscanf(hex + 2 * i, "%2hhx", &ret[i]);
    return n;
}

int main(void)
{
    static char hex[1 << 20];
    static uint8_t table[1 << 19];
    uint32_t layout, first_line, size;
    while (scanf("%" SCNu32 " %" SCNu32 " %" SCNu32 " %1048575s", &layout, &first_line, &size,
                 hex) == 4) {
        struct tmk_pylines lines;
        tmk_pylines_init(&lines, layout, first_line, table, bytes_of(hex, table));
        for (uint32_t offset = 0; offset < size; offset += 2)
            printf("%s%" PRIu32, offset ? " " : "", tmk_pylines_at(&lines, offset));
        putchar('\n');
    }
    return 0;
}
