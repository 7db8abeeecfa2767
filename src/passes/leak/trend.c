/* SPDX-License-Identifier: MIT */
/* passes/leak/trend.c - see trend.h.
 *
 * A line fitted through the levels was rejected, as in monitor/growth.h: it rises with every
 * sawtooth that ends high. Between two rises the floor has grown by exactly what was kept, so the
 * rate is the median over all pairs of rises that lie half of all rises apart. That is exact for
 * a regular leak, however seldom it leaks, and neither a swing nor an unusual end changes it. The
 * first quarter of the rises is left out, since programs warm up.
 *
 * A cache that fills rises slower and slower. Two tests tell that from a random rise, each with
 * one mistake in a thousand: Laplace's for a trend (rises of an even rate lie around the middle
 * of the time on average) and Kendall's (of any two rises the later is as often the larger). */
#include "passes/leak/trend.h"

#include <math.h>
#include <stdlib.h>

#define CLEARLY 3.0 /* standard deviations */
#define LEAST_CONFIDENCE 0.5
enum { N_PARTS = 3, LEAST_SHARE = 10, WARM_UP_PART = 4, BURST_LEAST = 3 };

static void find_floors(const uint64_t *levels, uint32_t n, uint64_t *ret)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = n; i-- > 0;) {
        least = levels[i] < least ? levels[i] : least;
        ret[i] = least;
    }
}

static void find_rises(const uint64_t *floors, uint32_t n, struct tmk_trend *r)
{
    for (uint32_t i = 1; i < n; i++) {
        r->rose[i] = floors[i] > floors[i - 1];
        if (!r->rose[i])
            continue;
        if (r->n_rises++ == 0)
            r->first = i;
        r->last = i;
    }
}

static int by_value(const void *va, const void *vb)
{
    const double a = *(const double *)va, b = *(const double *)vb;
    return (a > b) - (a < b);
}

static void measure_rate(const uint64_t *floors, const uint64_t *steps, struct tmk_trend *r)
{
    uint32_t rises[TMK_TREND_MAX_LEVELS] = {0}, n = 0, n_left_out = r->n_rises / WARM_UP_PART;
    double rates[TMK_TREND_MAX_LEVELS] = {0};
    for (uint32_t i = r->first; i <= r->last; i++)
        if (r->rose[i] && n_left_out > 0)
            n_left_out--;
        else if (r->rose[i])
            rises[n++] = i;
    uint32_t apart = n / 2, n_rates = n - apart;
    for (uint32_t i = 0; i < n_rates; i++) {
        uint32_t from = rises[i], to = rises[i + apart];
        rates[i] = (double)(floors[to] - floors[from]) / (double)(steps[to] - steps[from]);
    }
    qsort(rates, n_rates, sizeof *rates, by_value);
    r->per_step = (rates[(n_rates - 1) / 2] + rates[n_rates / 2]) / 2;
    r->from = rises[0];
    r->to = rises[n - 1];
}

/* The line's life is cut into parts as long as its mean pause; the rule of succession turns the
 * number of parts in which it rose into the probability that it rises in the next. */
static double trend_confidence(const struct tmk_trend *r, uint32_t n)
{
    double pause = (double)(r->last - r->first) / (r->n_rises - 1);
    uint32_t n_parts = (uint32_t)((n - 1 - r->first) / pause), n_risen = 0, last_part = UINT32_MAX;
    for (uint32_t i = r->first + 1; i < n; i++) {
        uint32_t part = (uint32_t)((i - r->first - 0.5) / pause);
        if (r->rose[i] && part != last_part && part < n_parts) {
            n_risen++;
            last_part = part;
        }
    }
    return (n_risen + 1.0) / (n_parts + 2.0);
}

static bool is_growth_even(const uint64_t *floors, uint32_t n, const struct tmk_trend *r)
{
    uint32_t start = r->first - 1, span = n - 1 - start;
    for (uint32_t i = 0; i < N_PARTS; i++) {
        uint64_t from = floors[start + span * i / N_PARTS];
        uint64_t to = floors[start + span * (i + 1) / N_PARTS];
        if (to - from < r->bytes / LEAST_SHARE)
            return false;
    }
    return true;
}

static bool is_growth_going_on(uint32_t n, const struct tmk_trend *r)
{
    uint32_t longest = 1, last = r->first;
    for (uint32_t i = r->first + 1; i <= r->last; i++)
        if (r->rose[i]) {
            longest = i - last > longest ? i - last : longest;
            last = i;
        }
    return n - 1 - r->last <= 2 * longest;
}

/* The most that it ever fell below a level that it had reached. */
static uint64_t largest_fall(const uint64_t *levels, uint32_t n)
{
    uint64_t highest = 0, fall = 0;
    for (uint32_t i = 0; i < n; i++) {
        highest = levels[i] > highest ? levels[i] : highest;
        fall = highest - levels[i] > fall ? highest - levels[i] : fall;
    }
    return fall;
}

static void count_bursts(const uint64_t *levels, uint32_t n, struct tmk_trend *r)
{
    uint64_t low = levels[0];
    uint32_t n_up = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (levels[i] >= levels[i - 1]) {
            n_up += levels[i] > levels[i - 1];
            continue;
        }
        uint64_t fall = levels[i - 1] - levels[i];
        if (n_up >= BURST_LEAST && fall >= (levels[i - 1] - low) / 2) {
            r->n_bursts++;
            r->burst_bytes = fall > r->burst_bytes ? fall : r->burst_bytes;
        }
        low = levels[i];
        n_up = 0;
    }
}

/* True when rises come less and less often. */
static bool are_rises_rarer(uint32_t n, const struct tmk_trend *r)
{
    double sum = 0, n_later = r->n_rises - 1, span = n - r->first;
    for (uint32_t i = r->first + 1; i < n; i++)
        sum += r->rose[i] ? i - r->first - 0.5 * (n - r->first) : 0;
    return sum / n_later < -CLEARLY * span / sqrt(12 * n_later);
}

/* True when rises get smaller and smaller, and the last of them are less than half of the first. */
static bool are_rises_smaller(const uint64_t *floors, const struct tmk_trend *r)
{
    uint64_t sizes[TMK_TREND_MAX_LEVELS] = {0}, early = 0, late = 0;
    uint32_t n = 0, n_third;
    double score = 0;
    for (uint32_t i = r->from; i <= r->last; i++)
        if (r->rose[i])
            sizes[n++] = floors[i] - floors[i - 1];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++)
            score += (sizes[k] > sizes[i]) - (sizes[k] < sizes[i]);
    n_third = n / N_PARTS;
    for (uint32_t i = 0; i < n_third; i++) {
        early += sizes[i];
        late += sizes[n - 1 - i];
    }
    double deviation = sqrt((double)n * (n - 1) * (2.0 * n + 5) / 18);
    return late < early / 2 && score < -CLEARLY * deviation;
}

static enum tmk_trend_kind trend_kind_of(const uint64_t *levels, const uint64_t *floors, uint32_t n,
                                         const struct tmk_trend *r)
{
    if (!is_growth_going_on(n, r) || !is_growth_even(floors, n, r) ||
        r->bytes / 2 <= largest_fall(levels, n))
        return TMK_TREND_NONE;
    if (r->n_rises < TMK_TREND_LEAST_RISES || n - r->first < TMK_TREND_LEAST_SPAN)
        return TMK_TREND_FEW;
    if (r->confidence < LEAST_CONFIDENCE || are_rises_rarer(n, r) || are_rises_smaller(floors, r))
        return TMK_TREND_SLOWING;
    return TMK_TREND_LEAK;
}

void tmk_trend_judge(const uint64_t *levels, const uint64_t *steps, uint32_t n,
                     struct tmk_trend *ret)
{
    uint64_t floors[TMK_TREND_MAX_LEVELS];
    *ret = (struct tmk_trend){0};
    if (n < 2)
        return;
    find_floors(levels, n, floors);
    find_rises(floors, n, ret);
    count_bursts(levels, n, ret);
    if (ret->n_rises == 0)
        return;
    ret->bytes = floors[n - 1] - floors[ret->first - 1];
    if (ret->n_rises < TMK_TREND_LEAST_RISES_NAMED)
        return;
    measure_rate(floors, steps, ret);
    ret->confidence = trend_confidence(ret, n);
    ret->kind = trend_kind_of(levels, floors, n, ret);
}

double tmk_trend_together(const struct tmk_trend *a, const struct tmk_trend *b)
{
    uint32_t n_both = 0, n_either = 0;
    for (uint32_t i = 0; i < TMK_TREND_MAX_LEVELS; i++) {
        n_both += a->rose[i] && b->rose[i];
        n_either += a->rose[i] || b->rose[i];
    }
    return n_either ? (double)n_both / n_either : 0;
}
