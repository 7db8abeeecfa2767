/* SPDX-License-Identifier: MIT */
/* passes/leak/survival.c - see survival.h.
 *
 * Whether growth slows down or speeds up is asked by two tests, each with one mistake in a
 * thousand. Laplace's, for a trend: cohorts of an even rate lie around the middle of the time on
 * average. Kendall's: of any two cohorts the later is as often the larger. */
#include "passes/leak/survival.h"

#include <math.h>

#define CLEARLY 3.0 /* standard deviations */

enum {
    LIFE_PARTS = 3, /* a usual age of more than a third of the life was not seen often enough */
    BURST_LEAST = 3,
};

static void take_out_setup(struct tmk_survivors *s, struct tmk_survival *r)
{
    if (r->n < 2 || r->first != 0 || s->bytes[0] / 2 * (r->n - 1) <= r->bytes - s->bytes[0])
        return;
    r->bytes -= s->bytes[0];
    r->blocks -= s->blocks[0];
    s->bytes[0] = s->blocks[0] = 0;
    r->n--;
    for (r->first = 1; s->bytes[r->first] == 0; r->first++)
        ;
}

static void sum_survivors(struct tmk_survivors *s, struct tmk_survival *r)
{
    for (uint32_t i = 0; i <= s->at; i++) {
        if (s->bytes[i] == 0)
            continue;
        if (r->n++ == 0)
            r->first = i;
        r->last = i;
        r->bytes += s->bytes[i];
        r->blocks += s->blocks[i];
    }
    take_out_setup(s, r);
}

/* The longest pause between two of them. */
static uint32_t longest_pause(const struct tmk_survivors *s, const struct tmk_survival *r,
                              uint32_t *ret_shortest)
{
    uint32_t longest = 0, shortest = UINT32_MAX, last = r->first;
    for (uint32_t i = r->first + 1; i <= r->last; i++)
        if (s->bytes[i] > 0) {
            longest = i - last > longest ? i - last : longest;
            shortest = i - last < shortest ? i - last : shortest;
            last = i;
        }
    *ret_shortest = shortest;
    return longest;
}

/* The last look before which a block can have been made that is old now. */
static uint32_t horizon_of(const struct tmk_survivors *s)
{
    return s->usual_age < s->at ? s->at - s->usual_age : 0;
}

/* Positive when cohorts come more and more often, in standard deviations. */
static double trend_of_times(const struct tmk_survivors *s, const struct tmk_survival *r)
{
    double sum = 0, n_later = r->n - 1, span = horizon_of(s) + 1.0 - r->first;
    for (uint32_t i = r->first + 1; i <= r->last; i++)
        sum += s->bytes[i] > 0 ? i - r->first - 0.5 * span : 0;
    return n_later > 0 ? sum / n_later / (span / sqrt(12 * n_later)) : 0;
}

/* Positive when they get larger and larger, likewise, if the last third is twice as large as the
 * first or the other way round; else 0. */
static double trend_of_sizes(const struct tmk_survivors *s, const struct tmk_survival *r)
{
    uint32_t places[512], n = 0;
    double score = 0, early = 0, late = 0;
    for (uint32_t i = r->first; i <= r->last; i++)
        if (s->bytes[i] > 0)
            places[n++] = i;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++)
            score += (s->bytes[places[k]] > s->bytes[places[i]]) -
                     (s->bytes[places[k]] < s->bytes[places[i]]);
    for (uint32_t i = 0; i < n / 3; i++) {
        early += (double)s->bytes[places[i]];
        late += (double)s->bytes[places[n - 1 - i]];
    }
    if (!s->has_steps || (late < 2 * early && early < 2 * late))
        return 0;
    return score / sqrt((double)n * (n - 1) * (2.0 * n + 5) / 18);
}

static void measure_rate(const struct tmk_survivors *s, struct tmk_survival *r)
{
    uint64_t bytes = 0, blocks = 0;
    uint32_t quarter = r->last - (r->last - r->first) / 4;
    r->from = r->first;
    for (uint32_t i = r->first; r->pace == TMK_PACE_FASTER && i <= quarter && i < r->last; i++)
        if (s->bytes[i] > 0)
            r->from = i;
    for (uint32_t i = r->from + 1; i <= r->last; i++) {
        bytes += s->bytes[i];
        blocks += s->blocks[i];
    }
    double steps = (double)(s->n_before[r->last] - s->n_before[r->from]);
    r->per_step = steps > 0 ? (double)bytes / steps : 0;
    r->blocks_per_step = steps > 0 ? (double)blocks / steps : 0;
}

/* The site's life is cut into parts as long as its mean pause; the rule of succession turns the
 * number of parts with a cohort into the probability that the next part has one. */
static double succession(const struct tmk_survivors *s, const struct tmk_survival *r)
{
    double pause = (double)(r->last - r->first) / (r->n - 1);
    uint32_t n_parts = (uint32_t)((horizon_of(s) - r->first) / pause), n = 0, last = UINT32_MAX;
    for (uint32_t i = r->first + 1; i <= r->last; i++) {
        uint32_t part = (uint32_t)((i - r->first - 0.5) / pause);
        if (s->bytes[i] > 0 && part != last && part < n_parts) {
            n++;
            last = part;
        }
    }
    return (n + 1.0) / (n_parts + 2.0);
}

static enum tmk_survival_kind survival_kind_of(const struct tmk_survivors *s,
                                               const struct tmk_survival *r, uint32_t longest,
                                               double trend)
{
    uint32_t horizon = horizon_of(s);
    bool stopped = horizon > r->last && horizon - r->last > 2 * longest;
    bool passes = 2 * s->n_earlier_kept < s->n_earlier; /* a buffer: others take their place */
    if (s->usual_age * LIFE_PARTS > s->at || stopped || passes)
        return TMK_SURVIVAL_NONE;
    if (r->n < TMK_LEAST_COHORTS || s->at - r->first + 1 < TMK_LEAST_COHORT_SPAN)
        return TMK_SURVIVAL_FEW;
    return trend < -CLEARLY ? TMK_SURVIVAL_SLOWING : TMK_SURVIVAL_LEAK;
}

void tmk_survival_judge(struct tmk_survivors *s, struct tmk_survival *ret)
{
    uint32_t shortest;
    *ret = (struct tmk_survival){0};
    sum_survivors(s, ret);
    if (ret->n < TMK_LEAST_COHORTS_NAMED)
        return;
    uint32_t longest = longest_pause(s, ret, &shortest);
    double times = trend_of_times(s, ret), sizes = trend_of_sizes(s, ret);
    ret->every = longest == shortest ? longest : 0;
    ret->kind = survival_kind_of(s, ret, longest, times < sizes ? times : sizes);
    ret->pace = times > CLEARLY || sizes > CLEARLY ? TMK_PACE_FASTER : TMK_PACE_EVEN;
    measure_rate(s, ret);
    ret->confidence = succession(s, ret);
}

uint32_t tmk_last_moment(const uint64_t *levels, uint32_t n)
{
    uint64_t most = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++)
        most = levels[i] > most ? levels[i] : most;
    for (uint32_t i = 0; i < n; i++)
        last = levels[i] >= most - most / 2 ? i : last;
    return last;
}

struct tmk_bursts tmk_bursts_of(const uint64_t *levels, uint32_t n)
{
    struct tmk_bursts r = {0};
    uint64_t low = n ? levels[0] : 0;
    uint32_t n_up = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (levels[i] >= levels[i - 1]) {
            n_up += levels[i] > levels[i - 1];
            continue;
        }
        uint64_t fall = levels[i - 1] - levels[i];
        if (n_up >= BURST_LEAST && fall >= (levels[i - 1] - low) / 2) {
            r.n++;
            r.bytes = fall > r.bytes ? fall : r.bytes;
        }
        low = levels[i];
        n_up = 0;
    }
    return r;
}

struct tmk_floor tmk_floor_of(const uint64_t *levels, uint32_t n)
{
    struct tmk_floor r = {0};
    uint64_t floor = n ? levels[n - 1] : 0;
    for (uint32_t i = n; i-- > 0;) {
        r.n_rises += levels[i] < floor;
        floor = levels[i] < floor ? levels[i] : floor;
    }
    r.bytes = n ? levels[n - 1] - floor : 0;
    uint64_t most = floor + r.bytes - r.bytes / 20;
    for (uint32_t i = n; i-- > 0 && r.bytes > 0 && levels[i] >= most;)
        r.last = i;
    return r;
}
