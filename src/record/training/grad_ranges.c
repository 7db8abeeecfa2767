/* SPDX-License-Identifier: MIT */
/* record/training/grad_ranges.c - see grad_ranges.h. */
#include "record/training/grad_ranges.h"

#include "record/core/intern.h"
#include "trace/kinds.h"

static const char *const mode_names[TMK_N_GRAD_MODES] = {
    [TMK_GRAD_ON] = TMK_RANGE_ENABLE_GRAD,
    [TMK_GRAD_OFF] = TMK_RANGE_NO_GRAD,
    [TMK_GRAD_INFERENCE] = TMK_RANGE_INFERENCE_MODE,
};

/* The mode on record with the innermost `n` ranges left out. */
static uint8_t mode_without(const struct tmk_grad_ranges *g, unsigned n)
{
    return g->n > n ? g->open[g->n - 1 - n].mode : g->around;
}

struct tmk_grad_ranges tmk_grad_ranges_inside(const struct tmk_grad_ranges *outer)
{
    return (struct tmk_grad_ranges){.now = outer->now, .around = mode_without(outer, 0)};
}

void tmk_grad_ranges_settle(struct tmk_lane *lane, struct tmk_grad_ranges *g, uint16_t n_calls)
{
    if (mode_without(g, 0) == g->now)
        return;
    if (g->n > 0 && g->open[g->n - 1].n_calls == n_calls && mode_without(g, 1) == g->now) {
        tmk_lane_put(lane, TMK_KIND_POP, 0, 0, TMK_RANGE_GRAD_MODE, 0);
        g->n--;
        return;
    }
    if (g->n == TMK_MAX_GRAD_RANGES)
        return;
    uint32_t name = tmk_intern_string(lane, mode_names[g->now]);
    tmk_lane_put(lane, TMK_KIND_PUSH, 0, name, TMK_RANGE_GRAD_MODE, 0);
    g->open[g->n].mode = g->now;
    g->open[g->n++].n_calls = n_calls;
}

void tmk_grad_ranges_leave(struct tmk_lane *lane, struct tmk_grad_ranges *g, uint16_t n_calls)
{
    while (tmk_grad_ranges_ended(g, n_calls))
        g->n--;
    tmk_grad_ranges_settle(lane, g, n_calls);
}
