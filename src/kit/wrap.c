/* SPDX-License-Identifier: MIT */
/* kit/wrap.c - see wrap.h.
 *
 * One walk over the characters remembers the last place where the line may end. It ends there only
 * if that leaves no more than two thirds of it empty. */
#include "kit/wrap.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kit/utf8.h"

/* Signs that close what stands before them. */
static bool is_closing(uint32_t c)
{
    static const uint32_t closing[] = {')',    ']',    '}',    ',',    '.',    ':',    ';',
                                       '!',    '?',    0x3001, 0x3002, 0x300b, 0x300d, 0x300f,
                                       0x3011, 0xff01, 0xff09, 0xff0c, 0xff1a, 0xff1b, 0xff1f};
    for (size_t i = 0; i < sizeof closing / sizeof closing[0]; i++)
        if (closing[i] == c)
            return true;
    return false;
}

/* Whether a line may end behind `c`, with `next` (which takes `next_columns`) behind it. */
static bool may_break(uint32_t c, size_t columns, uint32_t next, size_t next_columns)
{
    if (next_columns == 0 || next == ' ' || c == ' ')
        return next == ' ' && c != ' ';
    if ((columns == 2 || next_columns == 2) && !is_closing(next))
        return true;
    return c < 0x80 && strchr("/._:,", (int)c) && !is_closing(next);
}

struct place {
    size_t columns;
    const char *end;
};

size_t tmk_wrap_line(const char *text, size_t width, const char **ret_rest)
{
    struct place full = {.end = text}, best = full;
    bool has_break = false;
    const char *at = text;
    size_t written = 0, columns, next_columns;
    for (uint32_t c = tmk_utf8_shown(&at, &columns), next; c != 0; c = next) {
        const char *after = at;
        next = tmk_utf8_shown(&after, &next_columns);
        written += columns;
        if (written > width)
            break;
        full = (struct place){written, at};
        if (next == 0 || may_break(c, columns, next, next_columns)) {
            best = full;
            has_break = true;
        }
        at = after;
        columns = next_columns;
    }
    if (!has_break || best.columns < width / 3)
        best = full;
    *ret_rest = best.end + strspn(best.end, " ");
    return best.columns;
}
