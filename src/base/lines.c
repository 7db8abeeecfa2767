/* SPDX-License-Identifier: MIT */
/* base/lines.c - see lines.h. */
#include "base/lines.h"

#include <string.h>

const char *tmk_lines_field(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0)
            return line + n + strspn(line + n, "\t ");
    }
    return "";
}

uint64_t tmk_lines_bytes(const char *text)
{
    const uint64_t none = 1ull << 62;
    uint64_t value = 0;
    if (*text < '0' || *text > '9')
        return UINT64_MAX;
    for (; *text >= '0' && *text <= '9' && value < none; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value < none ? value : UINT64_MAX;
}
