/* SPDX-License-Identifier: MIT */
/* sweep/held_peak.c - see held_peak.h. */
#include "sweep/held_peak.h"

#include "kit/textmap.h"
#include "trace/events.h"
#include "trace/layout.h"
#include "trace/replay.h"

int tmk_held_peak_init(struct tmk_held_peak *h, const struct tmk_process *p)
{
    *h = (struct tmk_held_peak){0};
    return tmk_segment_sums_open(p, &h->now);
}

void tmk_held_peak_fini(struct tmk_held_peak *h)
{
    h->now = tmk_segment_sums_close(h->now);
}

static void consider(struct tmk_held_peak *h, const struct tmk_replay *rp)
{
    for (uint32_t i = 0; i < h->now->n_devices; i++) {
        const struct tmk_device_sums *d = &h->now->devices[i];
        if (d->bytes <= h->peak.bytes)
            continue;
        h->found = true;
        h->step = rp->state.step;
        h->peak = *d;
    }
}

static void on_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                     struct tmk_block *b)
{
    struct tmk_held_peak *h = arg;
    (void)b;
    tmk_segment_sums_event(h->now, rp, ev);
    if (ev->kind == TMK_KIND_SEGMENT)
        consider(h, rp);
}

static void on_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_held_peak *h = arg;
    tmk_segment_sums_restored(h->now, rp);
    consider(h, rp);
}

struct tmk_visitor tmk_held_peak_visitor(struct tmk_held_peak *h)
{
    return (struct tmk_visitor){
        .arg = h, .kinds = TMK_SEGMENT_SUMS_KINDS, .event = on_event, .restored = on_restored};
}

const char *tmk_held_peak_owner(const struct tmk_held_peak *h, uint32_t owner)
{
    const struct tmk_textmap *names = &h->now->owners;
    return owner == TMK_SUMS_UNKNOWN || owner >= names->n ? "unknown" : names->texts[owner];
}
