/* SPDX-License-Identifier: MIT */
/* passes/pyramid/pyramid.c - see pyramid.h.
 *
 * A block's category is known when it goes, and a bin's moment when the bin is over. So a block is
 * counted when it is freed: added to the first bin whose moment it saw, subtracted behind the last
 * one. Whether it saw that of the bin under way is open until the bin ends or gets a new moment;
 * until then its bytes wait in `leaving`. Sums are made at the end, so an event costs the same
 * however many bins there are. */
#include "passes/pyramid/pyramid.h"

#include <stdlib.h>

#include "base/error.h"
#include "passes/steps.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/state.h"

enum { N_DIMENSIONS = TMK_PICKED_N_KEYS, ROOM = TMK_PYRAMID_MAX_KEYS + 1 };

static const enum tmk_by dimensions[N_DIMENSIONS] = {TMK_BY_CATEGORY, TMK_BY_MODULE,
                                                     TMK_BY_COMPONENT, TMK_BY_STAGE};

struct strand {      /* a key on a device */
    uint64_t *bytes; /* by bin; during the sweep what is added there, modulo 2^64 */
    uint64_t leaving;
    bool is_waiting; /* it is in the list of those with something leaving */
};

struct spread { /* a dimension on a device */
    struct strand strands[ROOM];
    uint16_t waiting[ROOM];
    uint32_t n_waiting;
};

struct pyramid_device {
    uint16_t device;
    uint64_t most; /* of the bin under way, as of the last event */
    struct spread spreads[N_DIMENSIONS];
};

struct pyramid_keys {
    struct tmk_group *group;
    const char *keys[ROOM];
    uint32_t n;
};

struct tmk_pyramid {
    const struct tmk_process *p;
    uint64_t start_ns, end_ns;
    struct tmk_timeline *timeline;
    struct tmk_visitor bins;  /* the timeline's */
    uint32_t n_bins, at;      /* the bin under way */
    struct tmk_labels labels; /* contexts are the state's own, which do not move */
    struct pyramid_keys keys[N_DIMENSIONS];
    struct pyramid_device *devices[TMK_MAX_DEVICES]; /* in the timeline's order */
    uint32_t n_devices, last;
    struct tmk_picked_blocks picked;
    uint64_t n_seen;
    bool has_begun, failed;
};

static const struct tmk_timeline_part *parts_of(const struct tmk_pyramid *y, uint32_t d)
{
    return tmk_timeline_parts(y->timeline, d);
}

/* ---- keys ---- */

static uint32_t key_of(struct tmk_pyramid *y, unsigned dimension, const struct tmk_block *b)
{
    struct pyramid_keys *k = &y->keys[dimension];
    uint32_t number = tmk_group_number(k->group, b);
    if (number >= TMK_PYRAMID_MAX_KEYS) {
        y->failed |= number == UINT32_MAX;
        k->n = ROOM;
        return TMK_PYRAMID_MAX_KEYS;
    }
    if (number >= k->n) {
        k->n = number + 1;
        k->keys[number] = tmk_group_key(k->group, b);
    }
    return number;
}

/* ---- counting ---- */

static struct strand *strand_of(struct tmk_pyramid *y, struct spread *s, uint32_t k)
{
    struct strand *strand = &s->strands[k];
    if (!strand->bytes)
        strand->bytes = calloc((size_t)y->n_bins + 1, sizeof *strand->bytes);
    y->failed |= !strand->bytes;
    return strand->bytes ? strand : NULL;
}

/* Subtract from bin `end` on what has left since the last moment. */
static void settle_spread(struct spread *s, uint32_t end)
{
    for (uint32_t i = 0; i < s->n_waiting; i++) {
        struct strand *strand = &s->strands[s->waiting[i]];
        strand->bytes[end] -= strand->leaving;
        strand->leaving = 0;
        strand->is_waiting = false;
    }
    s->n_waiting = 0;
}

static void settle_device(struct pyramid_device *d, uint32_t end)
{
    for (unsigned i = 0; i < N_DIMENSIONS; i++)
        settle_spread(&d->spreads[i], end);
}

static bool was_born_by_moment(const struct tmk_timeline_part *part, const struct tmk_block *b)
{
    return b->serial ? part->max_serial >= b->serial : part->max_ns >= b->alloc_ns;
}

/* The first bin with a moment that the block saw, if it lived until then. */
static uint32_t first_bin(const struct tmk_pyramid *y, const struct tmk_timeline_part *parts,
                          const struct tmk_block *b)
{
    uint64_t width = parts[0].end_ns - parts[0].start_ns + 1; /* of a bin, or more */
    uint64_t age = b->alloc_ns > y->start_ns ? b->alloc_ns - y->start_ns : 0;
    uint64_t bin = age / width; /* in which it was born, or before */
    uint32_t low = bin <= y->at ? (uint32_t)bin : 0, high = y->at + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (was_born_by_moment(&parts[middle], b))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void count_in_spread(struct tmk_pyramid *y, struct spread *s, uint32_t k, uint32_t first,
                            uint64_t bytes)
{
    struct strand *strand = strand_of(y, s, k);
    if (!strand)
        return;
    strand->bytes[first] += bytes;
    strand->leaving += bytes;
    if (!strand->is_waiting)
        s->waiting[s->n_waiting++] = (uint16_t)k;
    strand->is_waiting = true;
}

/* Count a block that is leaving now, and offer it to be drawn. */
static void count_leaving(struct tmk_pyramid *y, uint32_t d, const struct tmk_block *b,
                          uint64_t free_ns)
{
    struct tmk_picked_block picked = {
        .alloc_ns = b->alloc_ns,
        .free_ns = free_ns,
        .size_bytes = b->size_bytes,
        .address = b->address,
        .serial = b->serial,
        .step = b->step,
        .stack = b->stack,
        .name = b->name,
        .device = b->device,
    };
    bool was_there = free_ns >= y->start_ns; /* else it was gone before the first bin */
    uint32_t first = first_bin(y, parts_of(y, d), b);
    for (unsigned i = 0; i < N_DIMENSIONS; i++) {
        picked.keys[i] = key_of(y, i, b);
        if (was_there && first <= y->at)
            count_in_spread(y, &y->devices[d]->spreads[i], picked.keys[i], first, b->size_bytes);
    }
    tmk_picked_blocks_offer(&y->picked, &picked);
}

/* ---- during the sweep ---- */

static void begin_pyramid(struct tmk_pyramid *y, const struct tmk_replay *rp)
{
    y->has_begun = true;
    y->labels = (struct tmk_labels){y->p, rp->state.contexts, rp->state.limits.max_contexts + 1};
    for (unsigned i = 0; i < N_DIMENSIONS; i++)
        y->failed |= tmk_group_open(&y->labels, dimensions[i], &y->keys[i].group) < 0;
}

static void add_pyramid_device(struct tmk_pyramid *y)
{
    struct pyramid_device *d = calloc(1, sizeof *d);
    y->failed |= !d;
    if (!d)
        return;
    d->device = tmk_timeline_device(y->timeline, y->n_devices);
    d->most = parts_of(y, y->n_devices)[y->at].max_bytes;
    y->devices[y->n_devices++] = d;
}

/* Follow the timeline into its bin under way, and to new moments of it. */
static void follow_bins(struct tmk_pyramid *y)
{
    while (y->n_devices < tmk_timeline_n_devices(y->timeline) && !y->failed)
        add_pyramid_device(y);
    uint32_t at = tmk_timeline_at(y->timeline);
    if (at == y->at)
        return;
    for (uint32_t d = 0; d < y->n_devices; d++) {
        settle_device(y->devices[d], y->at + 1);
        y->devices[d]->most = parts_of(y, d)[at].max_bytes;
    }
    y->at = at;
}

/* A new moment of the bin under way: what left before it did not see it. */
static void follow_moment(struct tmk_pyramid *y, uint32_t d)
{
    uint64_t most = parts_of(y, d)[y->at].max_bytes;
    if (most == y->devices[d]->most)
        return;
    y->devices[d]->most = most;
    settle_device(y->devices[d], y->at);
}

static uint32_t pyramid_device_of(struct tmk_pyramid *y, uint16_t device)
{
    if (y->last < y->n_devices && y->devices[y->last]->device == device)
        return y->last;
    for (uint32_t d = 0; d < y->n_devices; d++)
        if (y->devices[d]->device == device)
            return y->last = d;
    return TMK_MAX_DEVICES;
}

static void on_pyramid_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                             struct tmk_block *b)
{
    struct tmk_pyramid *y = arg;
    if (!y->has_begun)
        begin_pyramid(y, rp);
    y->bins.event(y->bins.arg, rp, ev, b);
    if (y->failed)
        return;
    follow_bins(y);
    if (ev->kind != TMK_KIND_ALLOC && ev->kind != TMK_KIND_FREE)
        return;
    uint32_t d = pyramid_device_of(y, ev->device);
    if (d == TMK_MAX_DEVICES || y->failed)
        return;
    follow_moment(y, d);
    if (ev->kind == TMK_KIND_FREE && b)
        count_leaving(y, d, b, ev->time_ns);
}

static void on_pyramid_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_pyramid *y = arg;
    if (!y->has_begun)
        begin_pyramid(y, rp);
    y->bins.restored(y->bins.arg, rp);
    if (y->failed)
        return;
    follow_bins(y);
    for (uint32_t d = 0; d < y->n_devices; d++)
        follow_moment(y, d);
}

struct tmk_visitor tmk_pyramid_visitor(struct tmk_pyramid *y)
{
    return (struct tmk_visitor){.arg = y,
                                .kinds = y->bins.kinds,
                                .event = on_pyramid_event,
                                .restored = on_pyramid_restored};
}

/* ---- after it ---- */

static void count_alive(struct tmk_pyramid *y, const struct tmk_state *s)
{
    for (uint32_t i = 1; i <= s->n_entries && !y->failed; i++) {
        if (!s->entries[i].live)
            continue;
        uint32_t d = pyramid_device_of(y, s->entries[i].device);
        struct tmk_block settled = tmk_state_settled(s, &s->entries[i]);
        if (d < TMK_MAX_DEVICES)
            count_leaving(y, d, &settled, UINT64_MAX);
    }
}

static void add_up_strand(const struct tmk_pyramid *y, struct strand *s)
{
    for (uint32_t i = 1; s->bytes && i < y->n_bins; i++)
        s->bytes[i] += s->bytes[i - 1];
}

/* The number of the key of what is not known; made when there is none. */
static uint32_t unknown_key(struct pyramid_keys *k)
{
    for (uint32_t i = 0; i < k->n && i < TMK_PYRAMID_MAX_KEYS; i++)
        if (!k->keys[i])
            return i;
    if (k->n < TMK_PYRAMID_MAX_KEYS)
        k->keys[k->n++] = NULL;
    else
        k->n = ROOM;
    return k->n - 1;
}

/* Bytes of blocks that were never seen to go. */
static void add_unseen(struct tmk_pyramid *y, uint32_t d, unsigned dimension)
{
    const struct tmk_timeline_part *parts = parts_of(y, d);
    struct spread *s = &y->devices[d]->spreads[dimension];
    for (uint32_t i = 0; i < y->n_bins && !y->failed; i++) {
        uint64_t known = 0;
        for (uint32_t k = 0; k < y->keys[dimension].n; k++)
            known += s->strands[k].bytes ? s->strands[k].bytes[i] : 0;
        struct strand *unknown =
            known < parts[i].max_bytes ? strand_of(y, s, unknown_key(&y->keys[dimension])) : NULL;
        if (unknown)
            unknown->bytes[i] += parts[i].max_bytes - known;
    }
}

static void add_up_device(struct tmk_pyramid *y, uint32_t d)
{
    settle_device(y->devices[d], y->n_bins);
    for (unsigned i = 0; i < N_DIMENSIONS; i++) {
        for (uint32_t k = 0; k < ROOM; k++)
            add_up_strand(y, &y->devices[d]->spreads[i].strands[k]);
        add_unseen(y, d, i);
    }
}

int tmk_pyramid_finish(struct tmk_pyramid *y, const struct tmk_replay *rp, struct tmk_error *err)
{
    if (!y->has_begun)
        begin_pyramid(y, rp);
    y->failed |= tmk_timeline_finish(y->timeline) < 0;
    if (!y->failed) {
        follow_bins(y);
        count_alive(y, &rp->state);
    }
    for (uint32_t d = 0; d < y->n_devices && !y->failed; d++)
        add_up_device(y, d);
    y->failed |= tmk_picked_blocks_finish(&y->picked) < 0;
    y->labels = (struct tmk_labels){0};
    return y->failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the run at all resolutions") : 0;
}

/* ---- asking ---- */

static unsigned dimension_of(enum tmk_by by)
{
    unsigned i = 0;
    while (i + 1 < N_DIMENSIONS && dimensions[i] != by)
        i++;
    return i;
}

const struct tmk_timeline *tmk_pyramid_timeline(const struct tmk_pyramid *y)
{
    return y->timeline;
}

uint32_t tmk_pyramid_n_keys(const struct tmk_pyramid *y, enum tmk_by by)
{
    return y->keys[dimension_of(by)].n;
}

const char *tmk_pyramid_key(const struct tmk_pyramid *y, enum tmk_by by, uint32_t k)
{
    return y->keys[dimension_of(by)].keys[k];
}

const uint64_t *tmk_pyramid_bytes(const struct tmk_pyramid *y, uint32_t device_i, enum tmk_by by,
                                  uint32_t k)
{
    return y->devices[device_i]->spreads[dimension_of(by)].strands[k].bytes;
}

uint64_t tmk_pyramid_start_ns(const struct tmk_pyramid *y)
{
    return y->start_ns;
}

uint64_t tmk_pyramid_end_ns(const struct tmk_pyramid *y)
{
    return y->end_ns;
}

const struct tmk_picked_blocks *tmk_pyramid_blocks(const struct tmk_pyramid *y)
{
    return &y->picked;
}

/* ---- opening and closing ---- */

int tmk_pyramid_open(const struct tmk_process *p, uint32_t n_bins, struct tmk_pyramid **ret)
{
    return tmk_pyramid_open_window(p, 0, p->end_ns, n_bins, ret);
}

/* Single blocks are picked around the run's peak, or the middle of a window without it. */
static uint64_t centre_of(const struct tmk_process *p, uint64_t start_ns, uint64_t end_ns)
{
    const struct tmk_step_row *peak = tmk_steps_peak(p, true, 0);
    bool is_whole = start_ns == 0 && end_ns == p->end_ns;
    if (peak && peak->peak_ns >= start_ns && peak->peak_ns <= end_ns)
        return peak->peak_ns;
    return is_whole ? end_ns : start_ns + (end_ns - start_ns) / 2;
}

int tmk_pyramid_open_window(const struct tmk_process *p, uint64_t start_ns, uint64_t end_ns,
                            uint32_t n_bins, struct tmk_pyramid **ret)
{
    struct tmk_pyramid *y = calloc(1, sizeof *y);
    if (!y)
        return TMK_ENOMEM;
    y->p = p;
    y->start_ns = start_ns;
    y->end_ns = end_ns;
    y->n_bins = n_bins;
    int rc = tmk_timeline_open(start_ns, end_ns, n_bins, &y->timeline);
    if (rc == 0)
        rc = tmk_picked_blocks_init(&y->picked, p->end_ns, centre_of(p, start_ns, end_ns),
                                    TMK_PICKED_WINDOW_BLOCKS);
    y->picked.window_start = start_ns;
    y->picked.window_end = end_ns;
    if (rc < 0) {
        tmk_pyramid_close(y);
        return rc;
    }
    y->bins = tmk_timeline_visitor(y->timeline);
    *ret = y;
    return 0;
}

static void close_pyramid_device(struct pyramid_device *d)
{
    for (unsigned i = 0; i < N_DIMENSIONS; i++)
        for (uint32_t k = 0; k < ROOM; k++)
            free(d->spreads[i].strands[k].bytes);
    free(d);
}

struct tmk_pyramid *tmk_pyramid_close(struct tmk_pyramid *y)
{
    if (!y)
        return NULL;
    for (uint32_t d = 0; d < y->n_devices; d++)
        close_pyramid_device(y->devices[d]);
    for (unsigned i = 0; i < N_DIMENSIONS; i++)
        tmk_group_close(y->keys[i].group);
    tmk_picked_blocks_fini(&y->picked);
    tmk_timeline_close(y->timeline);
    free(y);
    return NULL;
}
