/* SPDX-License-Identifier: MIT */
/* passes/segment_sums.c - see segment_sums.h. */
#include "passes/segment_sums.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/replay.h"
#include "trace/segments.h"
#include "trace/state.h"

uint32_t tmk_segment_sums_place(struct tmk_segment_sums *sums, uint16_t device)
{
    for (uint32_t i = 0; i < sums->n_devices; i++)
        if (sums->devices[i].device == device)
            return i;
    if (sums->n_devices == TMK_MAX_DEVICES)
        return TMK_MAX_DEVICES;
    sums->devices[sums->n_devices].device = device;
    return sums->n_devices++;
}

static uint32_t owner_of(struct tmk_segment_sums *sums, uint32_t stack)
{
    const char *owner = tmk_holders_get(sums->holders, stack)->owner;
    uint32_t number = TMK_SUMS_UNKNOWN;
    if (!owner[0] || tmk_textmap_find(&sums->owners, owner, &number))
        return number;
    if (sums->owners.n < TMK_SUMS_MAX_OWNERS && tmk_textmap_put(&sums->owners, owner, &number) < 0)
        sums->failed = true;
    return number;
}

static struct tmk_device_sums *sums_for_segment(struct tmk_segment_sums *sums,
                                                const struct tmk_driver_segment *g)
{
    if (!tmk_segment_is_on_device(g->kind))
        return NULL;
    uint32_t place = tmk_segment_sums_place(sums, g->device);
    return place < TMK_MAX_DEVICES ? &sums->devices[place] : NULL;
}

/* Count one segment more, or one less: subtraction adds the size modulo 2^64. */
static void count_owner_segment(struct tmk_segment_sums *sums, const struct tmk_driver_segment *g,
                                bool is_new)
{
    struct tmk_device_sums *d = sums_for_segment(sums, g);
    if (!d)
        return;
    uint32_t owner = owner_of(sums, g->stack);
    uint64_t bytes = is_new ? g->size_bytes : 0 - g->size_bytes;
    uint64_t one = is_new ? 1 : 0 - (uint64_t)1;
    d->bytes += bytes;
    d->n_segments += one;
    if (g->kind == TMK_SEGMENT_POOL && owner != TMK_SUMS_UNKNOWN)
        d->pool_bytes += bytes;
    d->owners[owner].bytes += bytes;
    d->owners[owner].n_segments += one;
}

void tmk_segment_sums_event(struct tmk_segment_sums *sums, const struct tmk_replay *rp,
                            const struct tmk_event *ev)
{
    const struct tmk_segments *all = &rp->state.segments;
    if (ev->kind != TMK_KIND_SEGMENT && ev->kind != TMK_KIND_SEGMENT_END)
        return;
    if (rp->ended.kind)
        count_owner_segment(sums, &rp->ended, false);
    const struct tmk_driver_segment *new =
        ev->kind == TMK_KIND_SEGMENT ? tmk_segments_find(all, ev->segment_kind, ev->address) : NULL;
    if (new) /* else there was no room for it */
        count_owner_segment(sums, new, true);
    sums->n_seen = all->n;
    sums->n_begun = all->n_begun;
}

void tmk_segment_sums_restored(struct tmk_segment_sums *sums, const struct tmk_replay *rp)
{
    const struct tmk_segments *all = &rp->state.segments;
    if (all->n == sums->n_seen && all->n_begun == sums->n_begun)
        return; /* none began, so none of them ended */
    for (uint32_t i = 0; i < sums->n_devices; i++)
        sums->devices[i] = (struct tmk_device_sums){.device = sums->devices[i].device};
    for (uint32_t i = 0; i < all->n; i++)
        count_owner_segment(sums, &all->items[i], true);
    sums->n_seen = all->n;
    sums->n_begun = all->n_begun;
}

static int name_owners(struct tmk_segment_sums *sums)
{
    static const char *const names[] = {[TMK_SUMS_UNKNOWN] = "unknown", [TMK_SUMS_TORCH] = "torch"};
    int rc = 0;
    for (size_t i = 0; i < TMK_N(names) && rc == 0; i++)
        rc = tmk_textmap_put(&sums->owners, names[i], &(uint32_t){0});
    return rc;
}

int tmk_segment_sums_check(const struct tmk_segment_sums *sums)
{
    return sums->failed || tmk_holders_failed(sums->holders) ? TMK_ENOMEM : 0;
}

int tmk_segment_sums_open(const struct tmk_process *p, struct tmk_segment_sums **ret_sums)
{
    struct tmk_segment_sums *sums = calloc(1, sizeof *sums);
    if (!sums)
        return TMK_ENOMEM;
    int rc = tmk_holders_open(p, &sums->holders);
    if (rc == 0)
        rc = name_owners(sums);
    if (rc < 0) {
        tmk_segment_sums_close(sums);
        return rc;
    }
    *ret_sums = sums;
    return 0;
}

struct tmk_segment_sums *tmk_segment_sums_close(struct tmk_segment_sums *sums)
{
    if (!sums)
        return NULL;
    tmk_textmap_fini(&sums->owners);
    tmk_holders_close(sums->holders);
    free(sums);
    return NULL;
}
