/* SPDX-License-Identifier: MIT */
/* trace/pylines.c - see pylines.h.
 *
 * The line is a running sum in all layouts; each has its own way to write the terms. Layout 311
 * spends nine tenths of its bytes on columns and on ranges of the same line; runs leave them out.
 */
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

/* Entries say where a line begins, not where it ends: this applies the entries that begin by
 * `offset`. */
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

/* Reads a number with six bits a byte, lowest first; the high bit would begin another entry. */
static uint32_t take_line_number(struct tmk_pylines *p)
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
    uint32_t value = take_line_number(p);
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
            (void)take_line_number(p);
    }
    if (p->in.bad) {
        p->is_finished = true;
        return;
    }
    p->end += (head & 7u) * INSTRUCTION_BYTES + INSTRUCTION_BYTES;
    p->line += difference;
    p->has_line = code != 15;
}

/* ---- runs ---- */

/* The low bits of a run tell how its line follows from the one before. */
enum { RUN_NO_LINE, RUN_NEXT_LINE, RUN_LINE_BEFORE, RUN_DIFFERENCE, RUN_BITS = 2 };

static void next_line_run(struct tmk_pylines *p)
{
    uint64_t head = tmk_view_varint(&p->in);
    unsigned how = head & 3;
    int64_t difference = how == RUN_NEXT_LINE ? 1 : how == RUN_LINE_BEFORE ? -1 : 0;
    if (how == RUN_DIFFERENCE)
        difference = tmk_view_zigzag(&p->in);
    bool is_far = difference < -(int64_t)UINT32_MAX || difference > (int64_t)UINT32_MAX;
    uint64_t n_more = head >> RUN_BITS;
    if (p->in.bad || is_far || n_more >= TMK_LINES_MAX_BYTES * UINT64_C(8)) {
        p->is_finished = true;
        return;
    }
    p->end += (n_more + 1) * INSTRUCTION_BYTES;
    p->line += difference;
    p->has_line = how != RUN_NO_LINE;
}

struct line_run {
    uint64_t n; /* instructions; 0: none yet */
    int64_t difference;
    bool has_line;
};

static void put_line_run(struct tmk_sink *out, const struct line_run *run)
{
    if (run->n == 0)
        return;
    unsigned how = !run->has_line          ? RUN_NO_LINE
                   : run->difference == 1  ? RUN_NEXT_LINE
                   : run->difference == -1 ? RUN_LINE_BEFORE
                                           : RUN_DIFFERENCE;
    tmk_sink_varint(out, (run->n - 1) << RUN_BITS | how);
    if (how == RUN_DIFFERENCE)
        tmk_sink_zigzag(out, run->difference);
}

bool tmk_pylines_runs(const uint8_t *bytes, size_t n, struct tmk_sink *out)
{
    struct tmk_pylines p;
    struct line_run run = {0};
    tmk_pylines_init(&p, TMK_PY_LINES_311, 0, bytes, n);
    while (tmk_view_left(&p.in) > 0) {
        uint64_t end = p.end;
        int64_t line = p.line;
        next_range_311(&p);
        if (p.is_finished)
            return false;
        struct line_run next = {(p.end - end) / INSTRUCTION_BYTES, p.line - line, p.has_line};
        if (run.n > 0 && next.has_line == run.has_line && next.difference == 0) {
            run.n += next.n;
            continue;
        }
        put_line_run(out, &run);
        run = next;
    }
    put_line_run(out, &run);
    return !out->full;
}

/* ---- asking ---- */

static void go_to_offset(struct tmk_pylines *p, uint64_t offset)
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
    case TMK_PY_LINES_RUNS:
        while (!p->is_finished && p->end <= offset) {
            if (tmk_view_left(&p->in) > 0)
                next_line_run(p);
            else
                p->is_finished = true;
        }
        break;
    default:
        p->is_finished = true;
    }
}

uint32_t tmk_pylines_at(struct tmk_pylines *p, uint64_t offset)
{
    go_to_offset(p, offset);
    if (p->is_finished)
        return p->first_line;
    if (!p->has_line)
        return 0;
    return p->line >= 0 && p->line <= INT32_MAX ? (uint32_t)p->line : p->first_line;
}
