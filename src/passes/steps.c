/* SPDX-License-Identifier: MIT */
/* passes/steps.c - see steps.h.
 *
 * Whether memory grows is judged by what is alive when a step ends. The first tenth is left out
 * (caches fill, optimizers make their state); the rest is cut into four windows, and each
 * window's least value is taken, which a spike does not change. If these four rise each time, and
 * the last is above all of the first window, memory grows, however little; if they differ by less
 * than a thousandth, it is steady; if they fall each time, it shrinks. A fitted line was
 * rejected: it calls one late spike a growth. */
#include "passes/steps.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum { N_WINDOWS = 4, STEADY_PART = 1000, FIRST_SHOWN = 3 };

struct tmk_steps {
    const struct tmk_step_row **rows;
    uint64_t n_rows, room;
    uint64_t n_before;
};

const struct tmk_step_row *tmk_steps_peak(const struct tmk_process *p, bool any_device,
                                          uint16_t device)
{
    const struct tmk_step_row *best = NULL;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if ((any_device || row->device == device) && (!best || row->peak_bytes > best->peak_bytes))
            best = row;
    }
    return best;
}

const struct tmk_step_row *tmk_steps_last(const struct tmk_process *p, uint16_t device)
{
    for (uint64_t i = tmk_reader_n_step_rows(p->reader); i > 0; i--) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i - 1);
        if (row->device == device)
            return row;
    }
    return NULL;
}

/* ---- rows ---- */

int tmk_steps_open(const struct tmk_process *p, uint16_t device, struct tmk_steps **ret_steps)
{
    struct tmk_steps *s = calloc(1, sizeof *s);
    if (!s)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if (row->device != device)
            continue;
        if (row->step == TMK_NO_STEP) {
            s->n_before += row->n_allocs;
            continue;
        }
        if (TMK_GROW(s->rows, s->n_rows + 1, s->room) < 0) {
            tmk_steps_close(s);
            return TMK_ENOMEM;
        }
        s->rows[s->n_rows++] = row;
    }
    *ret_steps = s;
    return 0;
}

struct tmk_steps *tmk_steps_close(struct tmk_steps *s)
{
    if (!s)
        return NULL;
    free(s->rows);
    free(s);
    return NULL;
}

uint64_t tmk_steps_n(const struct tmk_steps *s)
{
    return s->n_rows;
}

const struct tmk_step_row *tmk_steps_get(const struct tmk_steps *s, uint64_t i)
{
    return s->rows[i];
}

/* ---- trend ---- */

/* The last row is mostly open, and a step that was cut short says nothing about its end. */
static uint64_t n_finished_steps(const struct tmk_steps *s)
{
    uint64_t n = s->n_rows;
    while (n > 0 && s->rows[n - 1]->open)
        n--;
    return n;
}

struct window {
    uint64_t low, high; /* rows with the least and the most bytes at their end */
};

static struct window look_at_window(const struct tmk_steps *s, uint64_t from, uint64_t to)
{
    struct window w = {from, from};
    for (uint64_t i = from + 1; i < to; i++) {
        if (s->rows[i]->end_bytes < s->rows[w.low]->end_bytes)
            w.low = i;
        if (s->rows[i]->end_bytes > s->rows[w.high]->end_bytes)
            w.high = i;
    }
    return w;
}

static void judge_steps_trend(const struct tmk_steps *s, uint64_t n, struct tmk_steps_digest *d)
{
    uint64_t first = n / 10 + 1, span = n - first;
    struct window w[N_WINDOWS];
    uint64_t least[N_WINDOWS], low = UINT64_MAX, high = 0;
    bool rises = true, falls = true;
    for (uint64_t i = 0; i < N_WINDOWS; i++) {
        w[i] = look_at_window(s, first + span * i / N_WINDOWS, first + span * (i + 1) / N_WINDOWS);
        least[i] = s->rows[w[i].low]->end_bytes;
        low = least[i] < low ? least[i] : low;
        high = least[i] > high ? least[i] : high;
        rises &= i == 0 || least[i] > least[i - 1];
        falls &= i == 0 || least[i] < least[i - 1];
    }
    rises &= least[N_WINDOWS - 1] > s->rows[w[0].high]->end_bytes;
    d->trend = rises                              ? TMK_STEPS_TREND_GROWING
               : high - low <= high / STEADY_PART ? TMK_STEPS_TREND_STEADY
               : falls                            ? TMK_STEPS_TREND_SHRINKING
                                                  : TMK_STEPS_TREND_VARYING;
    if (d->trend == TMK_STEPS_TREND_GROWING || d->trend == TMK_STEPS_TREND_SHRINKING)
        d->bytes_per_step = ((double)least[N_WINDOWS - 1] - (double)least[0]) /
                            (double)(w[N_WINDOWS - 1].low - w[0].low);
}

struct tmk_steps_digest tmk_steps_digest(const struct tmk_steps *s)
{
    struct tmk_steps_digest d = {.n_steps = s->n_rows, .n_before = s->n_before};
    uint64_t n = n_finished_steps(s);
    if (n > 0)
        d.mean_ns = (s->rows[n - 1]->end_ns - s->rows[0]->start_ns) / n;
    if (n >= TMK_STEPS_TREND_MIN_STEPS)
        judge_steps_trend(s, n, &d);
    return d;
}

/* ---- picking ---- */

static int compare_row_numbers(const void *va, const void *vb)
{
    const uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;
    return (a > b) - (a < b);
}

/* Insert the numbers of the `n` rows in [from, to) with the largest peaks into a short sorted
 * list; of two equal rows the earlier counts. */
static void pick_largest(const struct tmk_steps *s, uint64_t from, uint64_t to, uint64_t n,
                         uint64_t *ret)
{
    uint64_t kept = 0;
    for (uint64_t i = from; i < to; i++) {
        uint64_t at = kept;
        while (at > 0 && s->rows[i]->peak_bytes > s->rows[ret[at - 1]]->peak_bytes)
            at--;
        if (at >= n)
            continue;
        kept += kept < n;
        for (uint64_t k = kept - 1; k > at; k--)
            ret[k] = ret[k - 1];
        ret[at] = i;
    }
}

uint64_t tmk_steps_pick(const struct tmk_steps *s, uint64_t n_shown, uint64_t *ret)
{
    uint64_t n = 0;
    if (s->n_rows <= n_shown) {
        for (; n < s->n_rows; n++)
            ret[n] = n;
        return n;
    }
    uint64_t edge = n_shown / 3 < FIRST_SHOWN ? n_shown / 3 : FIRST_SHOWN;
    for (uint64_t i = 0; i < edge; i++) {
        ret[n++] = i;
        ret[n++] = s->n_rows - 1 - i;
    }
    pick_largest(s, edge, s->n_rows - edge, n_shown - n, ret + n);
    qsort(ret, (size_t)n_shown, sizeof *ret, compare_row_numbers);
    return n_shown;
}
