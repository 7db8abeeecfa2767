/* SPDX-License-Identifier: MIT */
/* sweep/driver_peak.c - see driver_peak.h. */
#include "sweep/driver_peak.h"

#include "kit/textmap.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/replay.h"

int tmk_driver_peak_init(struct tmk_driver_peak *h, const struct tmk_process *p)
{
    *h = (struct tmk_driver_peak){0};
    return tmk_segment_sums_open(p, &h->now);
}

void tmk_driver_peak_fini(struct tmk_driver_peak *h)
{
    h->now = tmk_segment_sums_close(h->now);
}

static void consider_moment(struct tmk_driver_peak *h, const struct tmk_replay *rp)
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

static void on_driver_peak_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                                 struct tmk_block *b)
{
    struct tmk_driver_peak *h = arg;
    (void)b;
    tmk_segment_sums_event(h->now, rp, ev);
    if (ev->kind == TMK_KIND_SEGMENT)
        consider_moment(h, rp);
}

static void on_driver_peak_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_driver_peak *h = arg;
    tmk_segment_sums_restored(h->now, rp);
    consider_moment(h, rp);
}

struct tmk_visitor tmk_driver_peak_visitor(struct tmk_driver_peak *h)
{
    return (struct tmk_visitor){.arg = h,
                                .kinds = TMK_SEGMENT_SUMS_KINDS,
                                .event = on_driver_peak_event,
                                .restored = on_driver_peak_restored};
}

const char *tmk_driver_peak_owner(const struct tmk_driver_peak *h, uint32_t owner)
{
    const struct tmk_textmap *names = &h->now->owners;
    return owner == TMK_SUMS_UNKNOWN || owner >= names->n ? "unknown" : names->texts[owner];
}
