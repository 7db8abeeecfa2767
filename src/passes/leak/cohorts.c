/* SPDX-License-Identifier: MIT */
/* passes/leak/cohorts.c - see cohorts.h. */
#include "passes/leak/cohorts.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"

enum {
    LATELY = 16,        /* cohorts of the same end that are looked at before one is added */
    FIRST_MERGE = 1024, /* cohorts */
    USUAL_PERCENT = 97, /* a few blocks of a site that outlive the rest do not make old age usual */
    LARGER_PERCENT = 90, /* a length that is rounded up does not grow every time */
    SMALLER_PERCENT = 2, /* but what is begun anew now and then is no block that only grows */
    LEAST_LARGER = 8,    /* times */
    MOST_AT_ONCE = 2,    /* the old one goes after the new one was made of it */
};

void tmk_cohorts_fini(struct tmk_cohorts *c)
{
    free(c->items);
    *c = (struct tmk_cohorts){0};
}

static int by_begin(const void *va, const void *vb)
{
    const struct tmk_cohort *a = va, *b = vb;
    return a->begin != b->begin ? (a->begin > b->begin) - (a->begin < b->begin)
                                : (a->end > b->end) - (a->end < b->end);
}

void tmk_cohorts_merge(struct tmk_cohorts *c)
{
    uint64_t n = 0;
    if (c->n > 1)
        qsort(c->items, (size_t)c->n, sizeof *c->items, by_begin);
    for (uint64_t i = 0; i < c->n; i++) {
        struct tmk_cohort *last = n ? &c->items[n - 1] : NULL;
        if (last && last->begin == c->items[i].begin && last->end == c->items[i].end) {
            last->bytes += c->items[i].bytes;
            last->n_blocks += c->items[i].n_blocks;
        } else {
            c->items[n++] = c->items[i];
        }
    }
    c->n = c->n_merged = n;
}

int tmk_cohorts_add(struct tmk_cohorts *c, uint32_t begin, uint32_t end, uint64_t bytes)
{
    for (uint64_t i = c->n; i-- > 0 && c->n - i <= LATELY && c->items[i].end == end;)
        if (c->items[i].begin == begin) {
            c->items[i].bytes += bytes;
            c->items[i].n_blocks++;
            return 0;
        }
    if (c->n >= 2 * c->n_merged + FIRST_MERGE)
        tmk_cohorts_merge(c);
    if (TMK_GROW(c->items, c->n + 1, c->room) < 0)
        return TMK_ENOMEM;
    c->items[c->n++] = (struct tmk_cohort){
        .begin = (uint16_t)begin, .end = (uint16_t)end, .n_blocks = 1, .bytes = bytes};
    return 0;
}

void tmk_cohorts_renumber(struct tmk_cohorts *c, const uint16_t *number)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < c->n; i++) {
        struct tmk_cohort moved = c->items[i];
        moved.begin = number[moved.begin];
        moved.end = number[moved.end];
        if (moved.begin < moved.end)
            c->items[n++] = moved;
    }
    c->n = n;
    tmk_cohorts_merge(c);
}

void tmk_cohorts_levels(const struct tmk_cohorts *c, uint32_t n, uint64_t *bytes, uint64_t *blocks)
{
    uint64_t more_bytes[TMK_MAX_LOOKS + 1] = {0}, more_blocks[TMK_MAX_LOOKS + 1] = {0};
    uint64_t sum_bytes = 0, sum_blocks = 0;
    for (uint64_t i = 0; i < c->n; i++) { /* sums of changes, so wrapping around is right */
        more_bytes[c->items[i].begin] += c->items[i].bytes;
        more_blocks[c->items[i].begin] += c->items[i].n_blocks;
        more_bytes[c->items[i].end] -= c->items[i].bytes;
        more_blocks[c->items[i].end] -= c->items[i].n_blocks;
    }
    for (uint32_t i = 0; i < n; i++) {
        bytes[i] += sum_bytes += more_bytes[i];
        blocks[i] += sum_blocks += more_blocks[i];
    }
}

uint32_t tmk_cohorts_usual_age(const struct tmk_cohorts *c, uint32_t at)
{
    uint64_t died[TMK_MAX_LOOKS + 1] = {0}, all = 0, sum = 0;
    for (uint64_t i = 0; i < c->n; i++)
        if (c->items[i].end <= at) {
            died[c->items[i].end - c->items[i].begin] += c->items[i].bytes;
            all += c->items[i].bytes;
        }
    for (uint32_t age = 0; all > 0 && age <= TMK_MAX_LOOKS; age++) {
        sum += died[age];
        if ((double)sum >= (double)all * USUAL_PERCENT / 100)
            return age;
    }
    return 0;
}

void tmk_cohorts_kept(const struct tmk_cohorts *c, uint32_t at, uint32_t usual, uint64_t *bytes,
                      uint64_t *blocks)
{
    for (uint64_t i = 0; i < c->n; i++) {
        const struct tmk_cohort *item = &c->items[i];
        if (item->begin > at || item->end <= at || (usual > 0 && at - item->begin < usual))
            continue;
        bytes[item->begin] += item->bytes;
        if (blocks)
            blocks[item->begin] += item->n_blocks;
    }
}

bool tmk_cohorts_larger(const struct tmk_cohorts *c, uint32_t at, struct tmk_larger *ret)
{
    uint64_t bytes[TMK_MAX_LOOKS] = {0}, blocks[TMK_MAX_LOOKS] = {0};
    uint32_t n_larger = 0, n_smaller = 0;
    struct tmk_larger r = {0};
    tmk_cohorts_levels(c, at + 1, bytes, blocks);
    for (uint32_t i = 0; i <= at; i++)
        if (blocks[i] > MOST_AT_ONCE)
            return false;
    for (uint64_t i = 0; i < c->n && c->items[i].begin <= at; i++) {
        const struct tmk_cohort *item = &c->items[i];
        uint64_t size = item->bytes / item->n_blocks;
        if (r.n++ == 0) {
            r.first = item->begin;
            r.first_bytes = size;
        } else {
            n_larger += size > r.last_bytes;
            n_smaller += size < r.last_bytes;
        }
        r.last = item->begin;
        r.last_bytes = size;
    }
    *ret = r;
    return r.n > LEAST_LARGER && n_larger * 100 >= (r.n - 1) * LARGER_PERCENT &&
           n_smaller * 100 <= r.n * SMALLER_PERCENT && r.last_bytes / 2 >= r.first_bytes;
}
