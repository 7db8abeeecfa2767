/* SPDX-License-Identifier: MIT */
/* monitor/growth.c - see growth.h. */
#include "monitor/growth.h"

enum { N_PARTS = 30, THIRD = N_PARTS / 3, HALF = N_PARTS / 2 };

struct history_parts {
    uint64_t floors[N_PARTS], ceilings[N_PARTS];
    bool seen[N_PARTS];
};

/* ---- cutting into parts ---- */

static void take_part_entry(struct history_parts *p, unsigned part,
                            const struct tmk_history_entry *e)
{
    if (!p->seen[part] || e->min_bytes < p->floors[part])
        p->floors[part] = e->min_bytes;
    if (!p->seen[part] || e->max_bytes > p->ceilings[part])
        p->ceilings[part] = e->max_bytes;
    p->seen[part] = true;
}

/* A part without samples gets the values of the part before it. The first part has the first
 * sample. */
static void fill_empty_parts(struct history_parts *p)
{
    for (unsigned i = 1; i < N_PARTS; i++) {
        if (p->seen[i])
            continue;
        p->floors[i] = p->floors[i - 1];
        p->ceilings[i] = p->ceilings[i - 1];
    }
}

/* The entries of a history from some moment on. */
struct history_end {
    const struct tmk_history_entry *entries;
    uint64_t n;
};

static struct history_end end_of_history(const struct tmk_history *h, uint64_t from_ns)
{
    uint64_t first = 0;
    while (first < h->n && h->entries[first].start_ns < from_ns)
        first++;
    return (struct history_end){h->entries + first, h->n - first};
}

static uint64_t span_of_history(const struct history_end *h)
{
    return h->n ? h->entries[h->n - 1].end_ns - h->entries[0].start_ns : 0;
}

static void cut_history(const struct history_end *h, struct history_parts *ret)
{
    uint64_t start = h->entries[0].start_ns, span = span_of_history(h) + 1;
    *ret = (struct history_parts){0};
    for (uint64_t i = 0; i < h->n; i++) {
        const struct tmk_history_entry *e = &h->entries[i];
        uint64_t middle = e->start_ns + (e->end_ns - e->start_ns) / 2 - start;
        take_part_entry(ret, (unsigned)((unsigned __int128)middle * N_PARTS / span), e);
    }
    fill_empty_parts(ret);
}

/* ---- judging ---- */

static double floor_rank_of(const uint64_t *floors)
{
    int up = 0;
    for (unsigned i = 0; i < N_PARTS; i++)
        for (unsigned j = i + 1; j < N_PARTS; j++)
            up += (floors[j] > floors[i]) - (floors[j] < floors[i]);
    return (double)up / (N_PARTS * (N_PARTS - 1) / 2);
}

static int64_t signed_difference(uint64_t later, uint64_t earlier)
{
    return (int64_t)(later - earlier);
}

/* Whether every third of the time has its share of the growth. `lowest`: the lowest floor from each
 * part on. */
static bool rises_throughout(const uint64_t *lowest, int64_t growth)
{
    return signed_difference(lowest[THIRD], lowest[0]) >= growth / 10 &&
           signed_difference(lowest[2 * THIRD], lowest[THIRD]) >= growth / 10 &&
           signed_difference(lowest[N_PARTS - 1], lowest[2 * THIRD]) >= growth / 10;
}

static bool rises_faster(const uint64_t *lowest, int64_t growth)
{
    int64_t first = signed_difference(lowest[THIRD], lowest[0]);
    int64_t second = signed_difference(lowest[2 * THIRD], lowest[THIRD]);
    int64_t third = signed_difference(lowest[N_PARTS - 1], lowest[2 * THIRD]);
    int64_t half = signed_difference(lowest[2 * THIRD + THIRD / 2], lowest[2 * THIRD]);
    return first > 0 && second >= 2 * first && third >= 2 * second && half >= growth / 10 &&
           third - half >= growth / 10;
}

/* Whether use was ever so much lower than it had been before. */
static bool falls_back(const struct history_parts *p, int64_t least)
{
    uint64_t highest = 0;
    bool falls = false;
    for (unsigned i = 0; i < N_PARTS; i++) {
        falls |= i > 0 && signed_difference(highest, p->floors[i]) > least;
        highest = p->ceilings[i] > highest ? p->ceilings[i] : highest;
    }
    return falls;
}

static bool reaches_new_highs(const struct history_parts *p, int64_t growth)
{
    uint64_t before = 0, at_end = p->ceilings[N_PARTS - 1];
    for (unsigned i = 0; i < HALF; i++)
        before = p->ceilings[i] > before ? p->ceilings[i] : before;
    if (p->ceilings[N_PARTS - 2] > at_end) /* the last part may have only half a swing */
        at_end = p->ceilings[N_PARTS - 2];
    return signed_difference(at_end, before) >= growth / 4;
}

static uint64_t count_samples(const struct history_end *h)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < h->n; i++)
        n += h->entries[i].n_samples;
    return n;
}

struct tmk_growth tmk_growth_judge(const struct tmk_history *h, uint64_t from_ns, uint64_t least_ns)
{
    struct history_end end = end_of_history(h, from_ns);
    struct history_parts p;
    uint64_t lowest[N_PARTS];
    if (count_samples(&end) < TMK_GROWTH_LEAST_SAMPLES || span_of_history(&end) < least_ns)
        return (struct tmk_growth){0};
    cut_history(&end, &p);
    lowest[N_PARTS - 1] = p.floors[N_PARTS - 1];
    for (unsigned i = N_PARTS - 1; i-- > 0;)
        lowest[i] = p.floors[i] < lowest[i + 1] ? p.floors[i] : lowest[i + 1];
    int64_t growth = signed_difference(lowest[N_PARTS - 1], lowest[0]);
    bool is_new = growth > 0 && reaches_new_highs(&p, growth);
    return (struct tmk_growth){
        .is_known = true,
        .is_steady = is_new && (rises_throughout(lowest, growth) || rises_faster(lowest, growth)),
        .is_faster = is_new && rises_faster(lowest, growth),
        .falls = falls_back(&p, growth > 0 ? growth / 4 : 0),
        .bytes = signed_difference(p.floors[N_PARTS - 1], p.floors[0]),
        .span_ns = span_of_history(&end),
        .rank = floor_rank_of(p.floors),
    };
}

int64_t tmk_growth_of_series(const int64_t *values, unsigned n)
{
    int64_t floors[TMK_GROWTH_SERIES_MOST], bounds[4];
    if (n < 4 || n > TMK_GROWTH_SERIES_MOST)
        return 0;
    floors[n - 1] = values[n - 1] < values[n - 2] ? values[n - 1] : values[n - 2];
    floors[n - 2] = floors[n - 1];
    for (unsigned i = n - 2; i-- > 0;)
        floors[i] = values[i] < floors[i + 1] ? values[i] : floors[i + 1];
    for (unsigned third = 0; third < 4; third++)
        bounds[third] = floors[(n - 1) * third / 3];
    int64_t growth = bounds[3] - bounds[0];
    for (unsigned third = 0; third < 3; third++)
        if ((bounds[third + 1] - bounds[third]) * 10 < growth)
            return 0;
    return growth > 0 ? growth : 0;
}

bool tmk_growth_is_leak(const struct tmk_growth *g, uint64_t threshold_bytes)
{
    return g->is_steady && g->bytes > 0 && (uint64_t)g->bytes >= threshold_bytes;
}
