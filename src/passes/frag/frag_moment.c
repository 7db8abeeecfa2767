/* SPDX-License-Identifier: MIT */
/* passes/frag/frag_moment.c - see frag_moment.h. */
#include "passes/frag/frag_moment.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/segments.h"
#include "trace/state.h"

static struct tmk_frag_candidate *candidate_of(struct tmk_frag_moments *m, uint16_t device)
{
    if (m->last < m->n_devices && m->devices[m->last].device == device)
        return &m->devices[m->last];
    for (uint32_t i = 0; i < m->n_devices; i++)
        if (m->devices[i].device == device)
            return &m->devices[m->last = i];
    if (m->n_devices == TMK_MAX_DEVICES)
        return NULL;
    m->last = m->n_devices;
    m->devices[m->n_devices] =
        (struct tmk_frag_candidate){.device = device, .sample_total = TMK_BYTES_UNKNOWN};
    return &m->devices[m->n_devices++];
}

static const struct tmk_device_use *use_of_device(const struct tmk_state *s, uint16_t device)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].device == device)
            return &s->devices[i];
    return NULL;
}

/* ---- the moment ---- */

/* The driver was asked some time ago; what the process has taken since is known. */
static void note_left_bytes(struct tmk_frag_candidate *c)
{
    c->total_bytes = c->sample_total;
    c->left_bytes = TMK_BYTES_UNKNOWN;
    if (c->sample_total == TMK_BYTES_UNKNOWN || c->sample_used == TMK_BYTES_UNKNOWN)
        return;
    uint64_t used = c->sample_used + c->segment_bytes - c->sample_segments;
    c->left_bytes = used < c->sample_total ? c->sample_total - used : 0;
}

static void note_frag_reserved(struct tmk_frag_candidate *c, const struct tmk_device_use *d)
{
    c->has_reserved = d && d->has_reserved;
    c->reserved_bytes = c->has_reserved ? d->reserved_bytes : 0;
}

__attribute__((noinline)) static void move(struct tmk_frag_candidate *c, const struct tmk_state *s,
                                           uint64_t ns, uint64_t measure)
{
    const struct tmk_device_use *d = use_of_device(s, c->device);
    c->found = true;
    c->measure = measure;
    c->ns = ns;
    c->step = s->step;
    c->n_allocs = s->n_allocs;
    c->n_begun = s->segments.n_begun;
    c->n_block_events = s->n_allocs + s->n_frees;
    c->allocated_bytes = d ? d->allocated_bytes : 0;
    c->n_blocks = c->n_segments = 0;
    note_frag_reserved(c, d);
    note_left_bytes(c);
}

/* True when only events that report reserved bytes can be the moment. */
static bool is_moment_by_reserved(const struct tmk_frag_moments *m,
                                  const struct tmk_frag_candidate *c)
{
    return c->is_oom || (m->moment.kind == TMK_FRAG_WORST && c->found && c->has_reserved);
}

static void consider_frag_moment(const struct tmk_frag_moments *m, struct tmk_frag_candidate *c,
                                 const struct tmk_state *s, uint64_t ns)
{
    const struct tmk_device_use *d = use_of_device(s, c->device);
    if (!d || c->is_oom || (m->moment.kind == TMK_FRAG_STEP && s->step != m->moment.step))
        return;
    bool by_reserved = m->moment.kind == TMK_FRAG_WORST && d->has_reserved;
    uint64_t measure = by_reserved ? d->reserved_bytes : d->allocated_bytes;
    if (!c->found || measure > c->measure || (by_reserved && !c->has_reserved))
        move(c, s, ns, measure);
}

static void consider_frag_devices(struct tmk_frag_moments *m, const struct tmk_state *s,
                                  uint64_t ns)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct tmk_frag_candidate *c = candidate_of(m, s->devices[i].device);
        if (c)
            consider_frag_moment(m, c, s, ns);
    }
}

/* Notes each event up to the time that was asked for: the last one noted is the moment. */
static void note_frag_time(struct tmk_frag_moments *m, const struct tmk_state *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct tmk_frag_candidate *c = candidate_of(m, s->devices[i].device);
        if (c)
            move(c, s, m->moment.time_ns < s->now_ns ? m->moment.time_ns : s->now_ns, 0);
    }
}

/* ---- what goes after it ---- */

static bool was_block_born(const struct tmk_frag_candidate *c, const struct tmk_block *b)
{
    return b->serial ? b->serial <= c->n_allocs : b->alloc_ns <= c->ns;
}

static int keep_block(struct tmk_frag_candidate *c, const struct tmk_block *b)
{
    if (TMK_GROW(c->blocks, c->n_blocks + 1, c->block_room) < 0)
        return TMK_ENOMEM;
    c->blocks[c->n_blocks++] = *b;
    return 0;
}

static int keep_segment(struct tmk_frag_candidate *c, const struct tmk_driver_segment *g)
{
    if (TMK_GROW(c->segments, c->n_segments + 1, c->segment_room) < 0)
        return TMK_ENOMEM;
    c->segments[c->n_segments++] = *g;
    return 0;
}

static void on_frag_segment(struct tmk_frag_moments *m, const struct tmk_replay *rp,
                            const struct tmk_event *ev)
{
    const struct tmk_driver_segment *ended = &rp->ended;
    struct tmk_frag_candidate *c = ended->kind ? candidate_of(m, ended->device) : NULL;
    if (c && c->found && ended->serial <= c->n_begun && keep_segment(c, ended) < 0)
        m->failed = true;
    if (c && tmk_segment_is_on_device(ended->kind))
        c->segment_bytes -= ended->size_bytes;
    c = ev->kind == TMK_KIND_SEGMENT ? candidate_of(m, ev->device) : NULL;
    if (c && tmk_segment_is_on_device(ev->segment_kind))
        c->segment_bytes += ev->size_bytes;
}

static void on_frag_sample(struct tmk_frag_moments *m, const struct tmk_event *ev)
{
    struct tmk_frag_candidate *c = candidate_of(m, ev->device);
    if (!c)
        return;
    c->sample_total = ev->sample.total_bytes;
    c->sample_used = ev->sample.used_bytes;
    c->sample_segments = c->segment_bytes;
}

static void on_frag_alloc(struct tmk_frag_candidate *c, const struct tmk_event *ev)
{
    c->has_streams |= c->has_stream && c->stream != ev->stream;
    c->has_stream = true;
    c->stream = ev->stream;
}

/* A block's reserved size is reported right after the block: that is the moment too. */
static void on_frag_reserved(const struct tmk_frag_moments *m, struct tmk_frag_candidate *c,
                             const struct tmk_state *s, uint64_t ns)
{
    if (m->moment.kind == TMK_FRAG_WORST)
        consider_frag_moment(m, c, s, ns);
    else if (c->found && c->n_block_events == s->n_allocs + s->n_frees)
        note_frag_reserved(c, use_of_device(s, c->device));
}

static void on_frag_oom(const struct tmk_frag_moments *m, struct tmk_frag_candidate *c,
                        const struct tmk_state *s, const struct tmk_event *ev)
{
    if (m->moment.kind != TMK_FRAG_WORST || ev->is_of_driver)
        return;
    move(c, s, ev->time_ns, UINT64_MAX);
    c->is_oom = true;
    c->request_bytes = ev->size_bytes;
}

void tmk_frag_moments_event(struct tmk_frag_moments *m, const struct tmk_replay *rp,
                            const struct tmk_event *ev, const struct tmk_block *b)
{
    const struct tmk_state *s = &rp->state;
    bool is_searched = m->moment.kind != TMK_FRAG_TIME;
    bool is_before = !is_searched && ev->time_ns <= m->moment.time_ns;
    struct tmk_frag_candidate *c;
    switch (ev->kind) {
    case TMK_KIND_ALLOC:
        c = candidate_of(m, ev->device);
        if (c)
            on_frag_alloc(c, ev);
        if (c && is_searched && !is_moment_by_reserved(m, c))
            consider_frag_moment(m, c, s, ev->time_ns);
        break;
    case TMK_KIND_FREE:
        c = b ? candidate_of(m, ev->device) : NULL;
        if (c && c->found && !is_before && was_block_born(c, b) && keep_block(c, b) < 0)
            m->failed = true;
        break;
    case TMK_KIND_RESERVED:
        c = candidate_of(m, ev->device);
        if (c && is_searched)
            on_frag_reserved(m, c, s, ev->time_ns);
        break;
    case TMK_KIND_STEP:
        if (m->moment.kind == TMK_FRAG_STEP)
            consider_frag_devices(m, s, ev->time_ns);
        break;
    case TMK_KIND_OOM:
        c = candidate_of(m, ev->device);
        if (c)
            on_frag_oom(m, c, s, ev);
        break;
    case TMK_KIND_SEGMENT:
    case TMK_KIND_SEGMENT_END:
        on_frag_segment(m, rp, ev);
        break;
    case TMK_KIND_SAMPLE:
        on_frag_sample(m, ev);
        break;
    default:
        return;
    }
    if (is_before)
        note_frag_time(m, s);
}

void tmk_frag_moments_restored(struct tmk_frag_moments *m, const struct tmk_replay *rp)
{
    const struct tmk_state *s = &rp->state;
    for (uint32_t i = 0; i < m->n_devices; i++)
        m->devices[i].segment_bytes = 0;
    for (uint32_t i = 0; i < s->segments.n; i++) {
        const struct tmk_driver_segment *g = &s->segments.items[i];
        struct tmk_frag_candidate *c = candidate_of(m, g->device);
        if (c && tmk_segment_is_on_device(g->kind))
            c->segment_bytes += g->size_bytes;
    }
    for (uint32_t i = 0; i < m->n_devices; i++)
        m->devices[i].sample_total = TMK_BYTES_UNKNOWN;
    if (m->moment.kind != TMK_FRAG_TIME)
        consider_frag_devices(m, s, s->now_ns);
    else if (s->now_ns <= m->moment.time_ns)
        note_frag_time(m, s);
    else if (rp->n_replayed == 0)
        m->is_given_up = true;
}

/* ---- after the sweep ---- */

static int by_trace_address(const void *va, const void *vb)
{
    const struct tmk_frag_trace *a = va, *b = vb;
    return (a->address > b->address) - (a->address < b->address);
}

/* The state still knows many blocks that have gone; which ones is chance, so this only helps. */
static int collect_traces(struct tmk_frag_moments *m, const struct tmk_state *s)
{
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        struct tmk_frag_candidate *c = b->live ? NULL : candidate_of(m, b->device);
        if (!c || !c->has_streams)
            continue;
        if (TMK_GROW(c->traces, c->n_traces + 1, c->trace_room) < 0)
            return TMK_ENOMEM;
        c->traces[c->n_traces++] = (struct tmk_frag_trace){b->address, b->stream};
    }
    for (uint32_t i = 0; i < m->n_devices; i++)
        if (m->devices[i].n_traces > 1)
            qsort(m->devices[i].traces, (size_t)m->devices[i].n_traces,
                  sizeof *m->devices[i].traces, by_trace_address);
    return 0;
}

static int collect_blocks(struct tmk_frag_moments *m, const struct tmk_state *s)
{
    int rc = 0;
    for (uint32_t i = 1; i <= s->n_entries && rc == 0; i++) {
        const struct tmk_block *b = &s->entries[i];
        struct tmk_frag_candidate *c = b->live ? candidate_of(m, b->device) : NULL;
        if (!c || !c->found || !was_block_born(c, b))
            continue;
        struct tmk_block settled = tmk_state_settled(s, b);
        rc = keep_block(c, &settled);
    }
    return rc;
}

int tmk_frag_moments_collect(struct tmk_frag_moments *m, const struct tmk_state *s)
{
    int rc = m->failed ? TMK_ENOMEM : collect_blocks(m, s);
    if (rc == 0)
        rc = collect_traces(m, s);
    for (uint32_t i = 0; i < s->segments.n && rc == 0; i++) {
        const struct tmk_driver_segment *g = &s->segments.items[i];
        struct tmk_frag_candidate *c = candidate_of(m, g->device);
        if (c && c->found && g->serial <= c->n_begun)
            rc = keep_segment(c, g);
    }
    return rc;
}

void tmk_frag_moments_fini(struct tmk_frag_moments *m)
{
    for (uint32_t i = 0; i < m->n_devices; i++) {
        free(m->devices[i].blocks);
        free(m->devices[i].segments);
        free(m->devices[i].traces);
    }
    m->n_devices = 0;
}
