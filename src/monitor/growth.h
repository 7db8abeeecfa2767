/* SPDX-License-Identifier: MIT */
/* monitor/growth.h - judge whether memory use grows, as with a leak, or only goes up and down.
 *
 * A training's memory swings with every step, so single values say nothing. The time watched is cut
 * into 30 equal parts, each with its floor (the least use in it) and its ceiling. A floor that is
 * undercut later was only the low end of a swing, so each floor counts as the lowest from there on:
 *
 *         ╱│ ╱│ ╱│           ╱│╱          growth = last floor - first floor
 *        ╱ │╱ │╱ │        ╱│╱             it grows when
 *       ╱  ╱  ╱  │     ╱│╱                  each third of the time has a tenth of that or more,
 *     sawtooth: floor   leak: floor and     and the ceiling of the end is over all ceilings of the
 *     and ceiling stay  ceiling rise        first half by a quarter of it or more
 *
 * Growth that gets faster and faster has little of itself in the first third: it counts as well
 * when each third has twice as much as the one before, and each half of the last third a tenth of
 * all.
 *
 * So neither a swing, nor one step up (a model was loaded), nor a rise that has ended or has only
 * begun counts. A swing longer than the time watched cannot be told from a leak, nor can a program
 * that starts: so a shorter time than `least_ns` is not judged. */
#ifndef TMK_MONITOR_GROWTH_H
#define TMK_MONITOR_GROWTH_H

#include "monitor/history.h"

enum { TMK_GROWTH_LEAST_SAMPLES = 12 };
#define TMK_GROWTH_LEAST_NS 30000000000u /* unless told otherwise */

struct tmk_growth {
    bool is_known;    /* there were enough samples, for long enough; else the rest is 0 */
    bool is_steady;   /* use grows by the rule above, by however little */
    bool is_faster;   /* ... and faster and faster */
    bool falls;       /* once it was a quarter of the growth lower than it had been before */
    int64_t bytes;    /* last floor - first floor; negative: use shrinks */
    uint64_t span_ns; /* the time watched */
    double rank;      /* Kendall's tau of the floors over time: 1 always up, 0 no trend */
};

/* Judge what was seen from `from_ns` on. */
struct tmk_growth tmk_growth_judge(const struct tmk_history *h, uint64_t from_ns,
                                   uint64_t least_ns);

/* Judge a short series of counts: by how much its floor rises, if it does in each third of it; else
 * 0. The last floor is that of the last two values. python/tidemark/_growth.py has the same rule.
 */
enum { TMK_GROWTH_SERIES_MOST = 16 };
int64_t tmk_growth_of_series(const int64_t *values, unsigned n);

/* Whether use grows, by at least `threshold_bytes`. */
bool tmk_growth_is_leak(const struct tmk_growth *g, uint64_t threshold_bytes);

#endif
