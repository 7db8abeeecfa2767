/* SPDX-License-Identifier: MIT */
/* passes/timeline.c - see timeline.h.
 *
 * Parts are closed as time passes their end, so an event costs a comparison and at most two stores.
 * A device that appears late gets parts of zeros before. */
#include "passes/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/state.h"

struct track {
    uint16_t device;
    uint64_t bytes; /* now */
    bool has_reserved;
    uint64_t reserved_bytes;
    bool has_used;
    uint64_t used_bytes; /* of the whole device, as last seen */
    struct tmk_timeline_part *parts;
};

struct tmk_timeline {
    uint64_t start_ns, end_ns;
    uint64_t *times; /* of all starts and the end; NULL: equally long */
    uint32_t n_parts;
    uint32_t at;      /* the current part */
    uint64_t next_ns; /* where the next one starts */
    uint64_t known_ns;
    int64_t step;
    uint64_t now_ns, serial, n_seen;
    bool has_begun; /* time is in the span; before, only the value now counts */
    bool failed;
    struct track tracks[TMK_MAX_DEVICES]; /* in the state's order */
    uint32_t n_tracks;
};

/* The start of part i; part n_parts would start where the last one ends. */
static uint64_t part_start(const struct tmk_timeline *t, uint32_t i)
{
    if (t->times)
        return t->times[i];
    unsigned __int128 span = t->end_ns - t->start_ns;
    return t->start_ns + (uint64_t)(span * i / t->n_parts);
}

static void set_part_max(const struct tmk_timeline *t, struct tmk_timeline_part *part,
                         uint64_t bytes, uint64_t ns)
{
    part->max_bytes = bytes;
    part->max_ns = ns;
    part->max_serial = t->serial;
    part->max_seen = t->n_seen;
}

static void enter_part(struct tmk_timeline *t, uint32_t i)
{
    t->at = i;
    t->next_ns = i + 1 < t->n_parts ? part_start(t, i + 1) : UINT64_MAX;
    for (uint32_t d = 0; d < t->n_tracks; d++) {
        struct tmk_timeline_part *part = &t->tracks[d].parts[i];
        part->min_bytes = t->tracks[d].bytes;
        set_part_max(t, part, part->min_bytes, part->start_ns);
        part->has_reserved = t->tracks[d].has_reserved;
        part->max_reserved_bytes = t->tracks[d].reserved_bytes;
        part->has_used = t->tracks[d].has_used;
        part->max_used_bytes = t->tracks[d].used_bytes;
    }
}

static void leave_part(struct tmk_timeline *t)
{
    for (uint32_t d = 0; d < t->n_tracks; d++) {
        t->tracks[d].parts[t->at].last_bytes = t->tracks[d].bytes;
        t->tracks[d].parts[t->at].step = t->step;
    }
}

static void go_to_time(struct tmk_timeline *t, uint64_t ns)
{
    t->has_begun |= ns >= t->start_ns;
    while (ns >= t->next_ns) {
        leave_part(t);
        enter_part(t, t->at + 1);
    }
}

static void add_track(struct tmk_timeline *t, uint16_t device)
{
    struct tmk_timeline_part *parts = calloc(t->n_parts, sizeof *parts);
    if (!parts) {
        t->failed = true;
        return;
    }
    for (uint32_t i = 0; i < t->n_parts; i++) {
        parts[i].start_ns = parts[i].max_ns = part_start(t, i);
        parts[i].end_ns = part_start(t, i + 1);
        parts[i].step = t->n_tracks ? t->tracks[0].parts[i].step : TMK_NO_STEP;
    }
    t->tracks[t->n_tracks++] = (struct track){.device = device, .parts = parts};
}

static void set_track_bytes(struct tmk_timeline *t, struct track *track, uint64_t bytes)
{
    struct tmk_timeline_part *part = &track->parts[t->at];
    track->bytes = bytes;
    if (bytes > part->max_bytes || !t->has_begun)
        set_part_max(t, part, bytes, t->has_begun ? t->now_ns : part->start_ns);
    if (bytes < part->min_bytes || !t->has_begun)
        part->min_bytes = bytes;
}

static void set_track_reserved(struct tmk_timeline *t, struct track *track,
                               const struct tmk_device_use *d)
{
    struct tmk_timeline_part *part = &track->parts[t->at];
    track->has_reserved = part->has_reserved = true;
    track->reserved_bytes = d->reserved_bytes;
    if (d->reserved_bytes > part->max_reserved_bytes || !t->has_begun)
        part->max_reserved_bytes = d->reserved_bytes;
}

/* Bring all tracks up to the state. */
static void take_over_state(struct tmk_timeline *t, const struct tmk_state *s)
{
    while (t->n_tracks < s->n_devices && !t->failed)
        add_track(t, s->devices[t->n_tracks].device);
    for (uint32_t i = 0; i < t->n_tracks; i++)
        if (t->tracks[i].bytes != s->devices[i].allocated_bytes)
            set_track_bytes(t, &t->tracks[i], s->devices[i].allocated_bytes);
}

static void take_over_reserved(struct tmk_timeline *t, const struct tmk_state *s)
{
    for (uint32_t i = 0; i < t->n_tracks; i++)
        if (s->devices[i].has_reserved)
            set_track_reserved(t, &t->tracks[i], &s->devices[i]);
}

/* A device on which no block was ever made has no track; the table `samples` has it. */
static void take_track_sample(struct tmk_timeline *t, uint16_t device, uint64_t used_bytes)
{
    for (uint32_t i = 0; i < t->n_tracks; i++) {
        struct track *track = &t->tracks[i];
        struct tmk_timeline_part *part = &track->parts[t->at];
        if (track->device != device || used_bytes == UINT64_MAX)
            continue;
        track->has_used = part->has_used = true;
        track->used_bytes = used_bytes;
        if (used_bytes > part->max_used_bytes || !t->has_begun)
            part->max_used_bytes = used_bytes;
    }
}

static void on_timeline_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                              struct tmk_block *b)
{
    (void)b;
    struct tmk_timeline *t = arg;
    bool is_block = ev->kind == TMK_KIND_ALLOC || ev->kind == TMK_KIND_FREE;
    if (ev->time_ns > t->end_ns)
        return;
    if (ev->time_ns >= t->next_ns || !t->has_begun)
        go_to_time(t, ev->time_ns);
    t->now_ns = ev->time_ns;
    if (is_block) {
        t->n_seen++;
        t->serial = rp->state.n_allocs;
        take_over_state(t, &rp->state);
    } else if (ev->kind == TMK_KIND_STEP) {
        t->step = ev->step;
    } else if (ev->kind == TMK_KIND_SAMPLE) {
        take_track_sample(t, ev->device, ev->sample.used_bytes);
    } else {
        take_over_state(t, &rp->state);
        take_over_reserved(t, &rp->state);
    }
}

static void on_timeline_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_timeline *t = arg;
    if (rp->n_replayed == 0)
        t->known_ns = rp->state.now_ns;
    if (rp->state.now_ns > t->end_ns)
        return;
    go_to_time(t, rp->state.now_ns);
    t->step = rp->state.step;
    t->now_ns = rp->state.now_ns;
    t->serial = rp->state.n_allocs;
    take_over_state(t, &rp->state);
    take_over_reserved(t, &rp->state);
}

struct tmk_visitor tmk_timeline_visitor(struct tmk_timeline *t)
{
    return (struct tmk_visitor){.arg = t,
                                .kinds = TMK_HEARS(ALLOC) | TMK_HEARS(FREE) | TMK_HEARS(STEP) |
                                         TMK_HEARS(RESERVED) | TMK_HEARS(SAMPLE),
                                .event = on_timeline_event,
                                .restored = on_timeline_restored};
}

int tmk_timeline_finish(struct tmk_timeline *t)
{
    while (t->at + 1 < t->n_parts) {
        leave_part(t);
        enter_part(t, t->at + 1);
    }
    leave_part(t);
    return t->failed ? TMK_ENOMEM : 0;
}

uint32_t tmk_timeline_n_devices(const struct tmk_timeline *t)
{
    return t->n_tracks;
}

uint16_t tmk_timeline_device(const struct tmk_timeline *t, uint32_t i)
{
    return t->tracks[i].device;
}

const struct tmk_timeline_part *tmk_timeline_parts(const struct tmk_timeline *t, uint32_t device_i)
{
    return t->tracks[device_i].parts;
}

uint32_t tmk_timeline_n_parts(const struct tmk_timeline *t)
{
    return t->n_parts;
}

uint32_t tmk_timeline_at(const struct tmk_timeline *t)
{
    return t->at;
}

uint64_t tmk_timeline_known_ns(const struct tmk_timeline *t)
{
    return t->known_ns;
}

int tmk_timeline_open(uint64_t start_ns, uint64_t end_ns, uint32_t n_parts,
                      struct tmk_timeline **ret_timeline)
{
    struct tmk_timeline *t = calloc(1, sizeof *t);
    if (!t)
        return TMK_ENOMEM;
    t->start_ns = start_ns;
    t->end_ns = end_ns < start_ns ? start_ns : end_ns;
    t->n_parts = n_parts ? n_parts : 1;
    t->step = TMK_NO_STEP;
    enter_part(t, 0);
    *ret_timeline = t;
    return 0;
}

int tmk_timeline_open_at(const uint64_t *times, uint32_t n_parts,
                         struct tmk_timeline **ret_timeline)
{
    struct tmk_timeline *t = NULL;
    int rc = tmk_timeline_open(times[0], times[n_parts], n_parts, &t);
    if (rc < 0)
        return rc;
    t->times = malloc(((size_t)n_parts + 1) * sizeof *times);
    if (!t->times) {
        tmk_timeline_close(t);
        return TMK_ENOMEM;
    }
    memcpy(t->times, times, ((size_t)n_parts + 1) * sizeof *times);
    enter_part(t, 0);
    *ret_timeline = t;
    return 0;
}

struct tmk_timeline *tmk_timeline_close(struct tmk_timeline *t)
{
    if (!t)
        return NULL;
    for (uint32_t i = 0; i < t->n_tracks; i++)
        free(t->tracks[i].parts);
    free(t->times);
    free(t);
    return NULL;
}
