/* SPDX-License-Identifier: MIT */
/* sql/walk.c - see walk.h. What events mean is said in docs/format.md 2.2 and done in full by
 * trace/state.c; the tests hold both to the same numbers. */
#include "sql/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kit/grow.h"
#include "sql/rows.h"
#include "tidemark/tidemark.h"
#include "trace/snapshot.h"

enum { MAX_DEPTH = 1 << 20, FIRST_SLOTS = 64, NO_CHUNK = -1 };

/* ---- threads and their ranges ---- */

static uint32_t thread_slot(const struct tmk_walk *w, uint32_t thread)
{
    uint32_t mask = w->n_thread_slots - 1;
    uint32_t at = (uint32_t)tmk_hash_u64(thread) & mask;
    while (w->thread_slots[at] && w->threads[w->thread_slots[at] - 1].thread != thread)
        at = (at + 1) & mask;
    return at;
}

static int widen_slots(struct tmk_walk *w)
{
    uint32_t n = w->n_thread_slots ? 2 * w->n_thread_slots : FIRST_SLOTS;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return TMK_ENOMEM;
    free(w->thread_slots);
    w->thread_slots = slots;
    w->n_thread_slots = n;
    for (uint64_t i = 0; i < w->n_threads; i++)
        slots[thread_slot(w, w->threads[i].thread)] = (uint32_t)i + 1;
    return 0;
}

/* The thread's ranges, made when new; NULL without memory. */
static struct tmk_walk_thread *find_thread(struct tmk_walk *w, uint32_t thread)
{
    if (w->n_threads >= w->n_thread_slots / 2 && widen_slots(w) < 0)
        return NULL;
    uint32_t at = thread_slot(w, thread);
    if (w->thread_slots[at] == 0) {
        struct tmk_walk_thread *more =
            tmk_grow(w->threads, w->n_threads + 1, &w->thread_room, sizeof *more);
        if (!more)
            return NULL;
        w->threads = more;
        w->threads[w->n_threads++] = (struct tmk_walk_thread){.thread = thread};
        w->thread_slots[at] = (uint32_t)w->n_threads;
    }
    return &w->threads[w->thread_slots[at] - 1];
}

static void open_range(struct tmk_walk *w, struct tmk_walk_thread *t, uint8_t kind, uint32_t name,
                       uint64_t start_ns, bool seen)
{
    struct tmk_walk_range *more = t->ranges;
    if (t->n >= MAX_DEPTH)
        return;
    if (t->n >= t->room) {
        more = tmk_grow(t->ranges, t->n + 1, &t->room, sizeof *more);
        if (!more) {
            w->failed = true;
            return;
        }
        t->ranges = more;
    }
    struct tmk_walk_range r = {.start_ns = start_ns, .name = name, .kind = kind, .seen = seen};
    if (t->n > 0) {
        const struct tmk_walk_range *outer = &more[t->n - 1];
        r.module = outer->module;
        r.stage_name = outer->stage_name;
        r.stage = outer->stage;
    }
    if (kind == TIDEMARK_MODULE)
        r.module = name;
    if (kind == TIDEMARK_STAGE) {
        r.stage_name = name;
        r.stage = (uint8_t)tmk_source_stage(w->source, name);
    }
    r.allocated_bytes = w->devices[w->main_device].allocated_bytes;
    r.max_bytes = w->devices[w->main_device].max_bytes;
    more[t->n++] = r;
}

static void restore_range(void *arg, uint32_t thread, uint8_t kind, uint32_t name,
                          uint64_t start_ns)
{
    struct tmk_walk *w = arg;
    struct tmk_walk_thread *t = find_thread(w, thread);
    if (t)
        open_range(w, t, kind, name, start_ns, false);
    else
        w->failed = true;
}

static void close_range(struct tmk_walk *w, struct tmk_walk_thread *t, uint8_t kind)
{
    uint64_t i = t->n;
    while (i > 0 && t->ranges[i - 1].kind != kind)
        i--;
    if (i == 0)
        return;
    w->n_step_module_events += kind == TIDEMARK_MODULE;
    w->closed = &t->ranges[i - 1];
    w->n_closed = t->n - (i - 1);
    t->n = i - 1;
}

/* ---- devices and blocks ---- */

static uint32_t find_device(struct tmk_walk *w, uint16_t device)
{
    for (uint32_t i = 0; i < w->n_devices; i++)
        if (w->devices[i].device == device)
            return i;
    if (w->n_devices == TMK_MAX_DEVICES)
        return TMK_MAX_DEVICES;
    w->devices[w->n_devices] = (struct tmk_walk_device){.device = device};
    return w->n_devices++;
}

static int take_addresses(struct tmk_walk *w)
{
    uint32_t n = w->cursor.n_addresses;
    uint64_t *lives = tmk_grow(w->lives, n, &w->live_room, sizeof *lives);
    if (!lives)
        return TMK_ENOMEM;
    w->lives = lives;
    uint8_t *devices = tmk_grow(w->slot_devices, n, &w->slot_device_room, sizeof *devices);
    if (!devices)
        return TMK_ENOMEM;
    w->slot_devices = devices;
    uint16_t last = 0;
    uint32_t at = find_device(w, last);
    for (uint32_t i = 0; i < n; i++) {
        const struct tmk_address *a = &w->cursor.addresses[i];
        if (a->device != last) {
            last = a->device;
            at = find_device(w, last);
        }
        lives[i] = a->live;
        devices[i] = (uint8_t)at;
    }
    return 0;
}

static inline void take_block(struct tmk_walk *w, uint32_t slot)
{
    struct tmk_walk_device *d = &w->devices[w->slot_devices[slot]];
    w->freed_bytes = w->lives[slot] - 1; /* of nothing: UINT64_MAX */
    if (w->lives[slot] == 0)
        return;
    d->allocated_bytes -= w->freed_bytes < d->allocated_bytes ? w->freed_bytes : d->allocated_bytes;
    w->lives[slot] = 0;
}

static inline void put_block(struct tmk_walk *w, uint32_t slot, uint64_t size_bytes)
{
    struct tmk_walk_device *d = &w->devices[w->slot_devices[slot]];
    w->lives[slot] = size_bytes + 1;
    d->allocated_bytes += size_bytes;
    if (d->allocated_bytes > d->max_bytes)
        d->max_bytes = d->allocated_bytes;
}

/* ---- a chunk ---- */

static void take_head(struct tmk_walk *w, const struct tmk_context_head *head)
{
    w->n_devices = 0;
    w->devices[TMK_MAX_DEVICES] = (struct tmk_walk_device){0};
    for (uint32_t i = 0; i < head->n_devices; i++) {
        struct tmk_walk_device *d = &w->devices[find_device(w, head->devices[i].device)];
        d->allocated_bytes = head->devices[i].allocated_bytes;
        d->max_bytes = head->devices[i].max_bytes;
    }
    w->main_device = find_device(w, w->source->main_device);
    w->step_start_ns = head->step_start_ns;
    w->n_step_module_events = head->n_step_module_events;
}

bool tmk_walk_is_next(const struct tmk_walk *w, const struct tmk_source *source, uint32_t i)
{
    return w->source == source && w->next_chunk == i && i < source->n_chunks &&
           !source->chunks[i].after_gap && (w->is_timed || !w->want_times) &&
           (w->has_bytes || !w->want_bytes);
}

static int take_context(struct tmk_walk *w, const struct tmk_chunk_header *h, bool is_next)
{
    struct tmk_view context = w->cursor.context;
    struct tmk_context_head head;
    int rc = tmk_context_read_head(&context, h->start_ns, &head);
    if (rc < 0)
        return rc;
    take_head(w, &head);
    w->step = h->first_step;
    if (w->want_local_step)
        w->local_step = tmk_source_local_step(w->source, w->step_start_ns, w->step);
    if (is_next)
        return 0;
    for (uint64_t t = 0; t < w->n_threads; t++)
        w->threads[t].n = 0;
    return tmk_context_read_ranges(&context, h->start_ns, restore_range, w);
}

int tmk_walk_begin(struct tmk_walk *w, struct tmk_source *source, uint32_t i, struct tmk_error *err)
{
    int rc = tmk_source_read_device(source, err);
    if (rc == 0 && w->want_local_step)
        rc = tmk_source_read_steps(source, err);
    if (rc < 0)
        return rc;
    bool is_next = tmk_walk_is_next(w, source, i);
    const struct tmk_source_chunk *chunk = &source->chunks[i];
    struct tmk_view payload;
    w->source = source;
    w->next_chunk = (uint32_t)NO_CHUNK;
    w->is_timed = w->is_timed || !is_next;
    w->has_bytes = w->has_bytes || !is_next;
    w->is_skimmed = false;
    w->thread = NULL;
    rc = tmk_reader_payload(source->p->reader, chunk->index, &payload, err);
    if (rc == 0)
        rc = tmk_cursor_begin(&w->cursor, chunk->header, payload, err);
    if (rc == 0)
        rc = take_context(w, chunk->header, is_next);
    if (rc == 0)
        rc = take_addresses(w);
    w->event.thread = 0;
    if (rc == 0 && !(w->thread = find_thread(w, 0)))
        rc = TMK_ENOMEM;
    if (rc == 0 && !w->failed)
        w->next_chunk = i + 1;
    return w->failed ? tmk_fail(err, TMK_ENOMEM, "out of memory") : rc;
}

/* The first chunk that may hold the opening of a module that is open now. Only those in a stage
 * count: they end with it, while a range around the whole training would lead back to its start. */
static uint32_t first_to_see(const struct tmk_walk *w, uint32_t i)
{
    uint64_t earliest_ns = UINT64_MAX;
    for (uint64_t t = 0; t < w->n_threads; t++) {
        for (uint64_t k = 0; k < w->threads[t].n; k++) {
            const struct tmk_walk_range *r = &w->threads[t].ranges[k];
            if (r->kind == TIDEMARK_MODULE && r->stage != TMK_STAGE_OTHER &&
                r->start_ns < earliest_ns)
                earliest_ns = r->start_ns;
        }
    }
    while (i > 0 && w->source->chunks[i - 1].header->end_ns >= earliest_ns)
        i--;
    return i;
}

static int pass_over(struct tmk_walk *w, struct tmk_source *source, uint32_t i,
                     struct tmk_error *err)
{
    int rc = tmk_walk_begin(w, source, i, err);
    while (rc == 0 && (rc = tmk_walk_next_module(w)) > 0)
        rc = 0;
    return rc == TMK_EDAMAGED ? 0 : rc;
}

int tmk_walk_begin_seen(struct tmk_walk *w, struct tmk_source *source, uint32_t i,
                        struct tmk_error *err)
{
    bool is_next = tmk_walk_is_next(w, source, i);
    int rc = tmk_walk_begin(w, source, i, err);
    if (rc < 0 || is_next)
        return rc;
    uint32_t from = first_to_see(w, i);
    if (from == i)
        return 0;
    for (; rc == 0 && from < i; from++)
        rc = pass_over(w, source, from, err);
    return rc < 0 ? rc : tmk_walk_begin(w, source, i, err);
}

/* ---- an event ---- */

static void begin_step(struct tmk_walk *w)
{
    w->step = w->event.step;
    w->step_start_ns = w->event.time_ns;
    w->n_step_module_events = 0;
    if (w->want_local_step)
        w->local_step = tmk_source_local_step(w->source, w->step_start_ns, w->step);
}

int tmk_walk_next(struct tmk_walk *w)
{
    struct tmk_event *ev = &w->event;
    uint32_t thread = ev->thread;
    int rc = tmk_cursor_next(&w->cursor, ev);
    w->n_closed = 0;
    if (rc <= 0) {
        if (rc < 0)
            w->next_chunk = (uint32_t)NO_CHUNK;
        return rc;
    }
    if (ev->thread != thread && !(w->thread = find_thread(w, ev->thread)))
        return TMK_ENOMEM;
    switch (ev->kind) {
    case TMK_KIND_ALLOC:
        take_block(w, ev->slot);
        put_block(w, ev->slot, ev->size_bytes);
        break;
    case TMK_KIND_FREE:
        take_block(w, ev->slot);
        break;
    case TMK_KIND_PUSH:
        w->n_step_module_events += ev->range_kind == TIDEMARK_MODULE;
        open_range(w, w->thread, ev->range_kind, ev->name, ev->time_ns, true);
        break;
    case TMK_KIND_POP:
        close_range(w, w->thread, ev->range_kind);
        break;
    case TMK_KIND_STEP:
        begin_step(w);
        break;
    default:
        break;
    }
    return w->failed ? TMK_ENOMEM : 1;
}

int tmk_walk_chunk(struct tmk_walk *w, struct tmk_source *source, uint32_t i,
                   enum tmk_walk_events which, void (*visit)(void *arg), void *arg,
                   struct tmk_error *err)
{
    int rc = tmk_walk_begin(w, source, i, err);
    if (rc == 0 && which == TMK_WALK_OTHER && tmk_view_left(&w->cursor.data[TMK_KIND_OTHER]) == 0) {
        w->next_chunk = (uint32_t)NO_CHUNK;
        return 0;
    }
    while (rc == 0 && (rc = tmk_walk_next(w)) > 0) {
        rc = 0;
        if (which == TMK_WALK_ALL || w->event.kind > TMK_KIND_OTHER)
            visit(arg);
    }
    return rc == TMK_EDAMAGED ? 0 : rc;
}

/* ---- only modules ---- */

static int skim(struct tmk_walk *w)
{
    const struct tmk_walk_device *d = &w->devices[w->main_device];
    struct tmk_skim_wish wish = {.times = w->want_times,
                                 .bytes = w->want_bytes,
                                 .device = w->source->main_device,
                                 .allocated_bytes = d->allocated_bytes,
                                 .max_bytes = d->max_bytes};
    int rc = tmk_skim_chunk(&w->skim, &w->cursor, &wish);
    w->next_mark = w->run_end = 0;
    w->is_skimmed = rc == 0;
    w->is_timed = w->is_timed && w->want_times;
    w->has_bytes = w->has_bytes && w->want_bytes;
    return rc;
}

/* Find the thread of event number `event`, which is not before the one found last. */
static int go_to_thread(struct tmk_walk *w, uint32_t event)
{
    uint32_t thread = 0;
    while (event >= w->run_end) {
        thread = (uint32_t)tmk_view_varint(&w->cursor.threads);
        uint64_t run = tmk_view_varint(&w->cursor.threads);
        if (w->cursor.threads.bad || run == 0 || run > w->cursor.n_left - w->run_end)
            return TMK_EDAMAGED;
        w->run_end += run;
    }
    w->thread = find_thread(w, thread);
    return w->thread ? 0 : TMK_ENOMEM;
}

static int apply_step(struct tmk_walk *w)
{
    struct tmk_view *in = &w->cursor.data[TMK_KIND_STEP];
    w->event.step = tmk_view_zigzag(in);
    if (in->bad)
        return TMK_EDAMAGED;
    begin_step(w);
    return 0;
}

/* Apply one mark: 1 when it is about a module. */
static inline int apply_mark(struct tmk_walk *w, const struct tmk_skim_mark *mark)
{
    struct tmk_walk_device *d = &w->devices[w->main_device];
    int rc = mark->event >= w->run_end ? go_to_thread(w, mark->event) : 0;
    if (rc < 0)
        return rc;
    d->allocated_bytes = mark->allocated_bytes;
    d->max_bytes = mark->max_bytes;
    w->event.time_ns = mark->time_ns;
    w->event.kind = mark->kind;
    if (mark->kind == TMK_KIND_STEP)
        return apply_step(w);
    uint8_t range_kind = mark->value & 3;
    bool is_module = range_kind == TIDEMARK_MODULE;
    w->event.range_kind = range_kind;
    if (mark->kind == TMK_KIND_POP) {
        close_range(w, w->thread, range_kind);
        return is_module && w->n_closed;
    }
    w->n_step_module_events += is_module;
    open_range(w, w->thread, range_kind, mark->value >> 2, mark->time_ns, true);
    return w->failed ? TMK_ENOMEM : is_module;
}

int tmk_walk_next_module(struct tmk_walk *w)
{
    int rc = w->is_skimmed ? 0 : skim(w);
    while (rc == 0) {
        w->n_closed = 0;
        if (w->next_mark == w->skim.n_marks) {
            rc = w->skim.n_events < w->cursor.n_left ? TMK_EDAMAGED : 0;
            break;
        }
        rc = apply_mark(w, &w->skim.marks[w->next_mark++]);
    }
    if (rc < 0)
        w->next_chunk = (uint32_t)NO_CHUNK;
    return rc;
}

void tmk_walk_fini(struct tmk_walk *w)
{
    for (uint64_t t = 0; t < w->n_threads; t++)
        free(w->threads[t].ranges);
    free(w->threads);
    free(w->thread_slots);
    free(w->lives);
    free(w->slot_devices);
    tmk_cursor_fini(&w->cursor);
    tmk_skim_fini(&w->skim);
    *w = (struct tmk_walk){0};
}
