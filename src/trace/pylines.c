/* SPDX-License-Identifier: MIT */
/* trace/pylines.c - see pylines.h.
 *
 * The line is a running sum in all layouts; each has its own way to write the terms. */
#include "trace/pylines.h"

#include "trace/layout.h"

enum { NO_LINE = -128, INSTRUCTION_BYTES = 2, MAX_SHIFT = 30 };

void tmk_pylines_init(struct tmk_pylines *p, uint32_t layout, uint32_t first_line,
                      const uint8_t *bytes, size_t n)
{
    *p = (struct tmk_pylines){.in = tmk_view_of(bytes, n),
                              .layout = layout,
                              .first_line = first_line,
                              .line = first_line,
                              .is_finished = n == 0};
}

static uint8_t take_byte(struct tmk_pylines *p)
{
    return p->in.at < p->in.end ? *p->in.at++ : (uint8_t)tmk_view_fail(&p->in);
}

/* ---- layout 39 ---- */

/* Entries say where a line begins, not where it ends: apply those that begin by `offset`. */
static void go_to_39(struct tmk_pylines *p, uint64_t offset)
{
    while (tmk_view_left(&p->in) >= 2 && p->end + p->in.at[0] <= offset) {
        p->end += take_byte(p);
        p->line += (int8_t)take_byte(p);
    }
    p->has_line = true;
}

/* ---- layout 310 ---- */

static void next_range_310(struct tmk_pylines *p)
{
    if (tmk_view_left(&p->in) < 2) {
        p->is_finished = true;
        return;
    }
    p->end += take_byte(p);
    int8_t difference = (int8_t)take_byte(p);
    p->has_line = difference != NO_LINE;
    if (p->has_line)
        p->line += difference;
}

/* ---- layout 311 ---- */

/* Six bits a byte, lowest first; the high bit would begin another entry. */
static uint32_t take_number(struct tmk_pylines *p)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift <= MAX_SHIFT; shift += 6) {
        uint8_t byte = take_byte(p);
        if (byte & 0x80)
            break;
        value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64) && value <= UINT32_MAX)
            return (uint32_t)value;
    }
    return (uint32_t)tmk_view_fail(&p->in);
}

static int64_t take_signed(struct tmk_pylines *p)
{
    uint32_t value = take_number(p);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static void skip_columns(struct tmk_pylines *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (take_byte(p) & 0x80)
            (void)tmk_view_fail(&p->in);
}

static void next_range_311(struct tmk_pylines *p)
{
    uint8_t head = take_byte(p);
    unsigned code = head >> 3 & 15;
    int64_t difference = 0;
    if (!(head & 0x80))
        (void)tmk_view_fail(&p->in);
    if (code <= 9) {
        skip_columns(p, 1);
    } else if (code <= 12) {
        difference = code - 10;
        skip_columns(p, 2);
    } else if (code <= 14) {
        difference = take_signed(p);
        for (unsigned i = 0; code == 14 && i < 3; i++)
            (void)take_number(p);
    }
    if (p->in.bad) {
        p->is_finished = true;
        return;
    }
    p->end += (head & 7u) * INSTRUCTION_BYTES + INSTRUCTION_BYTES;
    p->line += difference;
    p->has_line = code != 15;
}

/* ---- asking ---- */

static void go_to(struct tmk_pylines *p, uint64_t offset)
{
    switch (p->layout) {
    case TMK_PY_LINES_39:
        go_to_39(p, offset);
        break;
    case TMK_PY_LINES_310:
        while (!p->is_finished && p->end <= offset)
            next_range_310(p);
        break;
    case TMK_PY_LINES_311:
        while (!p->is_finished && p->end <= offset)
            next_range_311(p);
        break;
    default:
        p->is_finished = true;
    }
}

uint32_t tmk_pylines_at(struct tmk_pylines *p, uint64_t offset)
{
    go_to(p, offset);
    if (p->is_finished)
        return p->first_line;
    if (!p->has_line)
        return 0;
    return p->line >= 0 && p->line <= INT32_MAX ? (uint32_t)p->line : p->first_line;
}
