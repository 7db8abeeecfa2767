/* SPDX-License-Identifier: MIT */
/* passes/holdings.c - see holdings.h.
 *
 * The sums (segment_sums.h) are carried along; when their total is the most of a part so far, all
 * of them are noted. Segments are few, so that is cheap. */
#include "passes/holdings.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/segment_sums.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"

struct tmk_holdings {
    uint16_t device;
    uint32_t n_parts, at;
    bool has_begun;
    struct tmk_segment_sums *sums;
    struct tmk_timeline_part *parts;
    uint64_t *bytes; /* TMK_SUMS_MAX_OWNERS times n_parts */
    bool has_used;
    uint64_t used_bytes;
    int64_t step;
    uint32_t shown[TMK_SUMS_MAX_OWNERS]; /* owners that had memory */
    uint32_t n_shown;
};

static const struct tmk_device_sums *sums_of_device(const struct tmk_holdings *h)
{
    for (uint32_t i = 0; i < h->sums->n_devices; i++)
        if (h->sums->devices[i].device == h->device)
            return &h->sums->devices[i];
    return NULL;
}

/* Take the current sums as the most of the part. */
static void note_held_bytes(struct tmk_holdings *h, uint64_t ns)
{
    const struct tmk_device_sums *s = sums_of_device(h);
    struct tmk_timeline_part *part = &h->parts[h->at];
    part->max_bytes = s ? s->bytes : 0;
    part->max_ns = ns > part->start_ns ? ns : part->start_ns;
    for (uint32_t k = 0; k < TMK_SUMS_MAX_OWNERS; k++)
        h->bytes[(size_t)k * h->n_parts + h->at] = s ? s->owners[k].bytes : 0;
}

static void go_to_part(struct tmk_holdings *h, uint64_t ns)
{
    h->has_begun |= ns >= h->parts[0].start_ns;
    while (h->at + 1 < h->n_parts && ns >= h->parts[h->at + 1].start_ns) {
        h->parts[h->at].step = h->step;
        h->at++;
        note_held_bytes(h, h->parts[h->at].start_ns);
        h->parts[h->at].has_used = h->has_used;
        h->parts[h->at].max_used_bytes = h->used_bytes;
    }
}

static void look_at_held_bytes(struct tmk_holdings *h, uint64_t ns)
{
    const struct tmk_device_sums *s = sums_of_device(h);
    if (!h->has_begun || (s && s->bytes > h->parts[h->at].max_bytes))
        note_held_bytes(h, ns);
}

static void take_holdings_sample(struct tmk_holdings *h, uint64_t used_bytes)
{
    struct tmk_timeline_part *part = &h->parts[h->at];
    if (used_bytes == UINT64_MAX)
        return;
    h->has_used = part->has_used = true;
    h->used_bytes = used_bytes;
    if (used_bytes > part->max_used_bytes || !h->has_begun)
        part->max_used_bytes = used_bytes;
}

static void on_holdings_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                              struct tmk_block *b)
{
    (void)b;
    struct tmk_holdings *h = arg;
    bool is_segment = ev->kind == TMK_KIND_SEGMENT || ev->kind == TMK_KIND_SEGMENT_END;
    if (ev->time_ns <= h->parts[h->n_parts - 1].end_ns)
        go_to_part(h, ev->time_ns); /* before the sums change: a part begins with what it had before
                                       the event */
    tmk_segment_sums_event(h->sums, rp, ev);
    if (ev->time_ns > h->parts[h->n_parts - 1].end_ns)
        return;
    if (ev->kind == TMK_KIND_STEP)
        h->step = ev->step;
    else if (ev->kind == TMK_KIND_SAMPLE && ev->device == h->device)
        take_holdings_sample(h, ev->sample.used_bytes);
    else if (is_segment)
        look_at_held_bytes(h, ev->time_ns);
}

static void on_holdings_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_holdings *h = arg;
    uint64_t ns = rp->state.now_ns;
    if (ns <= h->parts[h->n_parts - 1].end_ns)
        go_to_part(h, ns);
    tmk_segment_sums_restored(h->sums, rp);
    h->step = rp->state.step;
    if (ns <= h->parts[h->n_parts - 1].end_ns)
        look_at_held_bytes(h, ns);
}

struct tmk_visitor tmk_holdings_visitor(struct tmk_holdings *h)
{
    return (struct tmk_visitor){.arg = h,
                                .kinds =
                                    TMK_SEGMENT_SUMS_KINDS | TMK_HEARS(SAMPLE) | TMK_HEARS(STEP),
                                .event = on_holdings_event,
                                .restored = on_holdings_restored};
}

int tmk_holdings_finish(struct tmk_holdings *h, struct tmk_error *err)
{
    go_to_part(h, h->parts[h->n_parts - 1].end_ns);
    h->parts[h->at].step = h->step;
    for (uint32_t k = 0; k < TMK_SUMS_MAX_OWNERS; k++) {
        uint64_t any = 0;
        for (uint32_t i = 0; i < h->n_parts; i++)
            any |= h->bytes[(size_t)k * h->n_parts + i];
        if (any)
            h->shown[h->n_shown++] = k;
    }
    if (tmk_segment_sums_check(h->sums) < 0)
        return tmk_fail(err, TMK_ENOMEM, "no memory for the owners of segments");
    return 0;
}

const struct tmk_timeline_part *tmk_holdings_parts(const struct tmk_holdings *h)
{
    return h->parts;
}

uint32_t tmk_holdings_n(const struct tmk_holdings *h)
{
    return h->n_shown;
}

const char *tmk_holdings_owner(const struct tmk_holdings *h, uint32_t k)
{
    uint32_t owner = h->shown[k];
    return owner == TMK_SUMS_UNKNOWN ? NULL : h->sums->owners.texts[owner];
}

const uint64_t *tmk_holdings_bytes(const struct tmk_holdings *h, uint32_t k)
{
    return &h->bytes[(size_t)h->shown[k] * h->n_parts];
}

int tmk_holdings_open(const struct tmk_process *p, uint16_t device, const uint64_t *times,
                      uint32_t n_parts, struct tmk_holdings **ret_holdings)
{
    struct tmk_holdings *h = calloc(1, sizeof *h);
    if (!h)
        return TMK_ENOMEM;
    h->device = device;
    h->n_parts = n_parts;
    h->step = TMK_NO_STEP;
    h->parts = calloc(n_parts, sizeof *h->parts);
    h->bytes = calloc((size_t)n_parts * TMK_SUMS_MAX_OWNERS, sizeof *h->bytes);
    if (!h->parts || !h->bytes || tmk_segment_sums_open(p, &h->sums) < 0) {
        tmk_holdings_close(h);
        return TMK_ENOMEM;
    }
    for (uint32_t i = 0; i < n_parts; i++)
        h->parts[i] = (struct tmk_timeline_part){
            .start_ns = times[i], .end_ns = times[i + 1], .max_ns = times[i], .step = TMK_NO_STEP};
    *ret_holdings = h;
    return 0;
}

struct tmk_holdings *tmk_holdings_close(struct tmk_holdings *h)
{
    if (!h)
        return NULL;
    tmk_segment_sums_close(h->sums);
    free(h->parts);
    free(h->bytes);
    free(h);
    return NULL;
}
