/* SPDX-License-Identifier: MIT */
/* passes/diff/diff_steps.c - see diff_steps.h. */
#include "passes/diff/diff_steps.h"

#include <stdlib.h>

#include "base/error.h"
#include "passes/steps.h"
#include "trace/state.h"

enum { WARM_UP_PART = 10, MIN_STEPS = 2, APART_PART = 100 };

struct tmk_diff_steps {
    struct tmk_diff_step *rows;
    uint64_t n;
    bool is_settled[2];
    uint64_t settled_bytes[2];
};

static int compare_step_numbers(const void *va, const void *vb)
{
    const struct tmk_diff_step *a = va, *b = vb;
    return (a->step > b->step) - (a->step < b->step);
}

static int compare_step_bytes(const void *va, const void *vb)
{
    const uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;
    return (a > b) - (a < b);
}

static int settle_side(struct tmk_diff_steps *s, unsigned side, const struct tmk_steps *steps)
{
    uint64_t n = tmk_steps_n(steps);
    while (n > 0 && tmk_steps_get(steps, n - 1)->open)
        n--;
    uint64_t first = n / WARM_UP_PART + 1, n_kept = n > first ? n - first : 0;
    if (n_kept < MIN_STEPS)
        return 0;
    uint64_t *peaks = malloc(n_kept * sizeof *peaks);
    if (!peaks)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < n_kept; i++)
        peaks[i] = tmk_steps_get(steps, first + i)->peak_bytes;
    qsort(peaks, n_kept, sizeof *peaks, compare_step_bytes);
    s->is_settled[side] = true;
    s->settled_bytes[side] = peaks[n_kept / 2];
    free(peaks);
    return 0;
}

static void add_side_steps(struct tmk_diff_steps *s, unsigned side, const struct tmk_steps *steps)
{
    for (uint64_t i = 0; i < tmk_steps_n(steps); i++) {
        const struct tmk_step_row *row = tmk_steps_get(steps, i);
        struct tmk_diff_step step = {.step = row->step};
        step.has[side] = true;
        step.peak_bytes[side] = row->peak_bytes;
        s->rows[s->n++] = step;
    }
}

/* Join rows of the same number, with the larger peak of each side. */
static void join_equal_steps(struct tmk_diff_steps *s)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        struct tmk_diff_step *last = n ? &s->rows[n - 1] : NULL;
        if (!last || last->step != s->rows[i].step) {
            s->rows[n++] = s->rows[i];
            continue;
        }
        for (unsigned side = 0; side < 2; side++) {
            last->has[side] |= s->rows[i].has[side];
            if (s->rows[i].peak_bytes[side] > last->peak_bytes[side])
                last->peak_bytes[side] = s->rows[i].peak_bytes[side];
        }
    }
    s->n = n;
}

static int read_steps(struct tmk_diff_steps *s, struct tmk_steps *const steps[2])
{
    s->rows = calloc(tmk_steps_n(steps[0]) + tmk_steps_n(steps[1]) + 1, sizeof *s->rows);
    if (!s->rows || settle_side(s, 0, steps[0]) < 0 || settle_side(s, 1, steps[1]) < 0)
        return TMK_ENOMEM;
    add_side_steps(s, 0, steps[0]);
    add_side_steps(s, 1, steps[1]);
    qsort(s->rows, s->n, sizeof *s->rows, compare_step_numbers);
    join_equal_steps(s);
    return 0;
}

int tmk_diff_steps_open(const struct tmk_process *const processes[2], const uint16_t devices[2],
                        struct tmk_diff_steps **ret_steps)
{
    struct tmk_diff_steps *s = calloc(1, sizeof *s);
    struct tmk_steps *steps[2] = {NULL, NULL};
    int rc = s ? tmk_steps_open(processes[0], devices[0], &steps[0]) : TMK_ENOMEM;
    if (rc == 0)
        rc = tmk_steps_open(processes[1], devices[1], &steps[1]);
    if (rc == 0)
        rc = read_steps(s, steps);
    tmk_steps_close(steps[0]);
    tmk_steps_close(steps[1]);
    if (rc < 0)
        tmk_diff_steps_close(s);
    else
        *ret_steps = s;
    return rc;
}

struct tmk_diff_steps *tmk_diff_steps_close(struct tmk_diff_steps *s)
{
    if (!s)
        return NULL;
    free(s->rows);
    free(s);
    return NULL;
}

uint64_t tmk_diff_steps_n(const struct tmk_diff_steps *s)
{
    return s->n;
}

const struct tmk_diff_step *tmk_diff_steps_get(const struct tmk_diff_steps *s, uint64_t i)
{
    return &s->rows[i];
}

bool tmk_diff_steps_settled(const struct tmk_diff_steps *s, unsigned side, uint64_t *ret_bytes)
{
    if (s->is_settled[side])
        *ret_bytes = s->settled_bytes[side];
    return s->is_settled[side];
}

static uint64_t peak_difference(const struct tmk_diff_step *r)
{
    if (!r->has[0] || !r->has[1])
        return 0;
    return r->peak_bytes[0] > r->peak_bytes[1] ? r->peak_bytes[0] - r->peak_bytes[1]
                                               : r->peak_bytes[1] - r->peak_bytes[0];
}

static bool is_step_apart(const struct tmk_diff_step *r)
{
    uint64_t larger = r->peak_bytes[0] > r->peak_bytes[1] ? r->peak_bytes[0] : r->peak_bytes[1];
    return peak_difference(r) > larger / APART_PART;
}

bool tmk_diff_steps_apart(const struct tmk_diff_steps *s, int64_t *ret_step)
{
    for (uint64_t i = 0; i < s->n; i++)
        if (is_step_apart(&s->rows[i])) {
            *ret_step = s->rows[i].step;
            return true;
        }
    return false;
}

/* ---- picking ---- */

static bool is_step_picked(const uint64_t *picked, uint64_t n, uint64_t number)
{
    for (uint64_t i = 0; i < n; i++)
        if (picked[i] == number)
            return true;
    return false;
}

/* The row with the largest change that is not picked yet; n: none. */
static uint64_t largest_unpicked_step(const struct tmk_diff_steps *s, const uint64_t *picked,
                                      uint64_t n)
{
    uint64_t best = s->n;
    for (uint64_t i = 0; i < s->n; i++)
        if (!is_step_picked(picked, n, i) &&
            (best == s->n || peak_difference(&s->rows[i]) > peak_difference(&s->rows[best])))
            best = i;
    return best;
}

uint64_t tmk_diff_steps_pick(const struct tmk_diff_steps *s, uint64_t n_shown, uint64_t *ret)
{
    uint64_t n = 0;
    if (s->n <= n_shown) {
        for (; n < s->n; n++)
            ret[n] = n;
        return n;
    }
    uint64_t wanted[] = {0, 1, s->n - 1, 0};
    while (wanted[3] + 1 < s->n && !is_step_apart(&s->rows[wanted[3]]))
        wanted[3]++;
    for (unsigned i = 0; i < 4; i++)
        if (!is_step_picked(ret, n, wanted[i]))
            ret[n++] = wanted[i];
    while (n < n_shown) {
        ret[n] = largest_unpicked_step(s, ret, n);
        n++;
    }
    qsort(ret, n, sizeof *ret, compare_step_bytes);
    return n;
}
