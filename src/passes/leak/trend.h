/* SPDX-License-Identifier: MIT */
/* passes/leak/trend.h - tells whether a series of levels rises as a leak does. leaks.h has the
 * rule.
 *
 *     level   ╱╲ ╱╲╱       floor: the least from there to the end
 *            ╱  ╳  └ floor     a rise is a place where the floor is higher than before it
 *           ╱__╱ ‾ */
#ifndef TMK_PASSES_LEAK_TREND_H
#define TMK_PASSES_LEAK_TREND_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TMK_TREND_MAX_LEVELS = 512,
    TMK_TREND_LEAST_RISES = 4,
    TMK_TREND_LEAST_RISES_NAMED = 3,
    TMK_TREND_LEAST_SPAN = 8
};

enum tmk_trend_kind {
    TMK_TREND_NONE,
    TMK_TREND_LEAK,    /* it still rises, evenly, for long enough, by more than it fell back */
    TMK_TREND_FEW,     /* likewise, but only three times, or over less than eight levels */
    TMK_TREND_SLOWING, /* likewise, but slower and slower */
};

struct tmk_trend {
    enum tmk_trend_kind kind;
    uint32_t n_rises;     /* 0: the rest is 0 */
    uint32_t first, last; /* numbers of the levels that were higher than the floor before */
    uint32_t from, to;    /* the first and last rise that the rate is measured by */
    uint64_t bytes;       /* last floor less the floor before the first rise */
    double per_step;
    double confidence;
    uint32_t n_bursts;    /* times that it fell back after having risen three times or more */
    uint64_t burst_bytes; /* the largest of them */
    bool rose[TMK_TREND_MAX_LEVELS];
};

/* Judge `n` levels, at most TMK_TREND_MAX_LEVELS; steps[i] is how many steps had ended at level
 * i. */
void tmk_trend_judge(const uint64_t *levels, const uint64_t *steps, uint32_t n,
                     struct tmk_trend *ret);

/* The part of all rises that both share: 1 when they always rise together. */
double tmk_trend_together(const struct tmk_trend *a, const struct tmk_trend *b);

#endif
