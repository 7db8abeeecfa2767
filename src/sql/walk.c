/* SPDX-License-Identifier: MIT */
/* sql/walk.c - see walk.h. docs/format.md 2.2 says what events mean and trace/state.c does it in
 * full; the tests hold both to the same numbers. */
#include "sql/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "kit/grow.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/snapshot.h"

/* ---- threads and their ranges ---- */

/* The ranges of a thread, made when new; NULL without memory. */
struct tmk_walk_thread *tmk_walk_thread_of(struct tmk_walk *w, uint32_t thread)
{
    uint64_t hash = tmk_hash_u64(thread);
    struct tmk_probe probe = tmk_index_probe(&w->thread_index, hash);
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;)
        if (w->threads[i - 1].thread == thread)
            return &w->threads[i - 1];
    if (TMK_GROW(w->threads, w->n_threads + 1, w->thread_room) < 0 ||
        tmk_grow_index(&w->thread_index) < 0)
        return NULL;
    w->threads[w->n_threads++] = (struct tmk_walk_thread){.thread = thread};
    tmk_index_add(&w->thread_index, hash, (uint32_t)w->n_threads);
    return &w->threads[w->n_threads - 1];
}

static void restore_open_range(void *arg, uint32_t thread, uint8_t kind, uint32_t name,
                               uint64_t start_ns)
{
    struct tmk_walk *w = arg;
    struct tmk_walk_thread *t = tmk_walk_thread_of(w, thread);
    if (t)
        tmk_walk_open(w, t, kind, name, start_ns, false);
    else
        w->failed = true;
}

/* ---- devices and blocks ---- */

static uint32_t find_walk_device(struct tmk_walk *w, uint16_t device)
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
    if (TMK_GROW(w->lives, n, w->live_room) < 0)
        return TMK_ENOMEM;
    if (TMK_GROW(w->slot_devices, n, w->slot_device_room) < 0)
        return TMK_ENOMEM;
    uint64_t *lives = w->lives;
    uint8_t *devices = w->slot_devices;
    uint16_t last = 0;
    uint32_t at = find_walk_device(w, last);
    for (uint32_t i = 0; i < n; i++) {
        const struct tmk_address *a = &w->cursor.addresses[i];
        if (a->device != last) {
            last = a->device;
            at = find_walk_device(w, last);
        }
        lives[i] = a->live;
        devices[i] = (uint8_t)at;
    }
    return 0;
}

static inline void take_slot_block(struct tmk_walk *w, uint32_t slot)
{
    struct tmk_walk_device *d = &w->devices[w->slot_devices[slot]];
    w->freed_bytes = w->lives[slot] - 1; /* UINT64_MAX if there was none */
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

static void set_walk_reserved(struct tmk_walk *w, uint16_t device, uint64_t bytes)
{
    struct tmk_walk_device *d = &w->devices[find_walk_device(w, device)];
    d->has_reserved = true;
    d->reserved_bytes = bytes;
    if (bytes > d->max_reserved_bytes)
        d->max_reserved_bytes = bytes;
}

/* ---- a chunk ---- */

static void take_walk_head(struct tmk_walk *w, const struct tmk_context_head *head)
{
    w->n_devices = 0;
    w->devices[TMK_MAX_DEVICES] = (struct tmk_walk_device){0};
    for (uint32_t i = 0; i < head->n_devices; i++) {
        struct tmk_walk_device *d = &w->devices[find_walk_device(w, head->devices[i].device)];
        d->allocated_bytes = head->devices[i].allocated_bytes;
        d->max_bytes = head->devices[i].max_bytes;
        d->has_reserved = head->devices[i].has_reserved;
        d->reserved_bytes = head->devices[i].reserved_bytes;
        d->max_reserved_bytes = head->devices[i].max_reserved_bytes;
    }
    if (!w->want_device)
        w->device = w->source->main_device;
    w->main_device = find_walk_device(w, w->device);
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
    if (rc == 0)
        rc = tmk_reserved_read(w->cursor.reserved, &head);
    if (rc < 0)
        return rc;
    take_walk_head(w, &head);
    w->step = h->first_step;
    if (w->want_local_step)
        w->local_step = tmk_source_local_step(w->source, w->step_start_ns, w->step);
    if (is_next)
        return 0;
    for (uint64_t t = 0; t < w->n_threads; t++)
        w->threads[t].n = 0;
    return tmk_context_read_ranges(&context, h->start_ns, restore_open_range, w);
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
    w->next_chunk = TMK_WALK_NO_CHUNK;
    w->is_timed = w->is_timed || !is_next;
    w->has_bytes = w->has_bytes || !is_next;
    w->thread = NULL;
    rc = tmk_reader_payload(source->p->reader, chunk->index, &payload, err);
    if (rc == 0)
        rc = tmk_cursor_begin(&w->cursor, chunk->header, payload, err);
    if (rc == 0)
        rc = take_context(w, chunk->header, is_next);
    if (rc == 0)
        rc = take_addresses(w);
    w->event.thread = 0;
    if (rc == 0 && !(w->thread = tmk_walk_thread_of(w, 0)))
        rc = TMK_ENOMEM;
    if (rc == 0 && !w->failed)
        w->next_chunk = i + 1;
    return w->failed ? tmk_fail(err, TMK_ENOMEM, "out of memory") : rc;
}

/* ---- an event ---- */

static void begin_walk_step(struct tmk_walk *w)
{
    int64_t tail = tmk_reader_tail_step(w->source->p->reader);
    if (w->event.step == tail && tail != TMK_NO_STEP)
        return; /* it was none (trace/reader.h) */
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
            w->next_chunk = TMK_WALK_NO_CHUNK;
        return rc;
    }
    if (ev->thread != thread && !(w->thread = tmk_walk_thread_of(w, ev->thread)))
        return TMK_ENOMEM;
    switch (ev->kind) {
    case TMK_KIND_ALLOC:
        take_slot_block(w, ev->slot);
        put_block(w, ev->slot, ev->size_bytes);
        break;
    case TMK_KIND_FREE:
        take_slot_block(w, ev->slot);
        break;
    case TMK_KIND_PUSH:
        w->n_step_module_events += ev->range_kind == TIDEMARK_MODULE;
        tmk_walk_open(w, w->thread, ev->range_kind, ev->name, ev->time_ns, true);
        break;
    case TMK_KIND_POP:
        tmk_walk_close(w, w->thread, ev->range_kind);
        break;
    case TMK_KIND_STEP:
        begin_walk_step(w);
        break;
    case TMK_KIND_RESERVED:
        set_walk_reserved(w, ev->device, ev->size_bytes);
        break;
    case TMK_KIND_DEVICE_END: /* the chunk's last event: its addresses are not needed any more */
        w->devices[find_walk_device(w, ev->device)].allocated_bytes = 0;
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
        w->next_chunk = TMK_WALK_NO_CHUNK;
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

int tmk_walk_skim(struct tmk_walk *w)
{
    w->is_timed = w->is_timed && w->want_times;
    w->has_bytes = w->has_bytes && w->want_bytes;
    w->run_end = 0;
    return tmk_skim_chunk(&w->skim, &w->cursor, w->want_times, w->want_bytes, w->device);
}

int tmk_walk_find_thread(struct tmk_walk *w, uint64_t event)
{
    uint32_t thread = 0;
    while (event >= w->run_end) {
        thread = (uint32_t)tmk_view_varint(&w->cursor.threads);
        uint64_t run = tmk_view_varint(&w->cursor.threads);
        if (w->cursor.threads.bad || run == 0 || run > w->cursor.n_left - w->run_end)
            return TMK_EDAMAGED;
        w->run_end += run;
    }
    w->thread = tmk_walk_thread_of(w, thread);
    return w->thread ? 0 : TMK_ENOMEM;
}

int tmk_walk_skim_step(struct tmk_walk *w)
{
    struct tmk_view *in = &w->cursor.data[TMK_KIND_STEP];
    w->event.step = tmk_view_zigzag(in);
    if (in->bad)
        return TMK_EDAMAGED;
    begin_walk_step(w);
    return 0;
}

int tmk_walk_skim_other(struct tmk_walk *w)
{
    struct tmk_event ev = {.kind = TMK_KIND_OTHER};
    if (!tmk_cursor_read_other(&w->cursor, &ev))
        return TMK_EDAMAGED;
    if (ev.kind == TMK_KIND_RESERVED)
        set_walk_reserved(w, ev.device, ev.size_bytes);
    return 0;
}

struct tmk_walk *tmk_walk_beside(struct tmk_walk *w)
{
    if (!w->beside)
        w->beside = calloc(1, sizeof *w->beside);
    return w->beside;
}

static void let_go_walk(struct tmk_walk *w)
{
    for (uint64_t t = 0; t < w->n_threads; t++)
        free(w->threads[t].ranges);
    free(w->threads);
    free(w->thread_index.slots);
    free(w->lives);
    free(w->slot_devices);
    tmk_cursor_fini(&w->cursor);
    tmk_skim_fini(&w->skim);
}

void tmk_walk_fini(struct tmk_walk *w)
{
    struct tmk_walk *other = w->beside;
    let_go_walk(w);
    *w = (struct tmk_walk){0};
    while (other) {
        struct tmk_walk *next = other->beside;
        let_go_walk(other);
        free(other);
        other = next;
    }
}
