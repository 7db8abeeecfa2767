/* SPDX-License-Identifier: MIT */
/* passes/verify.c - see verify.h.
 *
 * One replay does the work. Between two chunks its state must equal the next chunk's context; the
 * visitor's progress call is that moment. */
#include "passes/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/language.h"
#include "passes/quality.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/snapshot.h"
#include "trace/state.h"
#include "trace/stops.h"

enum { MAX_KEPT = 50, MAX_TEXT = 240 };

struct finding_list {
    struct tmk_finding *items;
    uint64_t n, room;
};

struct tmk_verify {
    struct tmk_process *p;
    struct tmk_reader *r;
    const struct tmk_visitor *progress;
    struct tmk_replay rp;
    bool has_replay;
    bool *bad;            /* by chunk: its payload is unusable */
    uint64_t offset;      /* of the chunk being replayed */
    uint64_t n_undefined; /* references to definitions that do not exist */
    uint64_t undefined_at;
    uint64_t n_rows_compared;
    bool is_partial;         /* blocks were alive for which we or the writer had no entry */
    struct tmk_cursor ahead; /* for the next chunk's dictionaries */
    bool failed;             /* out of memory */
    struct finding_list findings, notes;
    struct tmk_arena texts;
    struct tmk_trace_verdict verdict;
};

/* ---- findings ---- */

static void keep_finding(struct tmk_verify *v, struct finding_list *list, uint64_t offset,
                         const char *text)
{
    char *copy = tmk_arena_format(&v->texts, "%s", text);
    if (!copy || TMK_GROW(list->items, list->n + 1, list->room) < 0)
        v->failed = true;
    else
        list->items[list->n++] = (struct tmk_finding){.offset = offset, .text = copy};
}

__attribute__((format(printf, 3, 4))) static void find(struct tmk_verify *v, uint64_t offset,
                                                       const char *format, ...)
{
    char text[MAX_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, _(format), args);
    va_end(args);
    if (v->verdict.n_findings++ < MAX_KEPT)
        keep_finding(v, &v->findings, offset, text);
}

__attribute__((format(printf, 2, 3))) static void note(struct tmk_verify *v, const char *format,
                                                       ...)
{
    char text[MAX_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, _(format), args);
    va_end(args);
    keep_finding(v, &v->notes, 0, text);
}

/* Report "... is A here, replaying gives B"; returns true when they differ. */
static bool find_difference(struct tmk_verify *v, uint64_t offset, const char *what, uint64_t here,
                            uint64_t replayed)
{
    if (here != replayed)
        find(v, offset, "%s: %" PRIu64 " is written, replaying gives %" PRIu64, _(what), here,
             replayed);
    return here != replayed;
}

/* ---- header and chunks ---- */

static void check_header(struct tmk_verify *v)
{
    const struct tmk_damage *d = tmk_reader_damage(v->r);
    if (d->info_lost)
        find(v, 0, "the header's text has a wrong checksum");
    if (d->status_lost)
        find(v, TMK_STATUS_OFFSET, "both copies of the status have a wrong checksum");
    if (d->n_places > 0)
        find(v, d->first_offset,
             "%" PRIu64 " bytes in %" PRIu32 " places belong to no chunk (damaged or cut off)",
             d->n_bytes, d->n_places);
}

/* Chunks must follow each other without gaps, from the oldest that counts to the last. */
static void check_sequence(struct tmk_verify *v)
{
    const struct tmk_status *status = tmk_reader_status(v->r);
    uint32_t n = tmk_reader_n_chunks(v->r);
    bool known = !tmk_reader_damage(v->r)->status_lost;
    uint64_t expected = known ? status->oldest_seq : 1;
    for (uint32_t i = 0; i < n; i++) {
        const struct tmk_chunk_ref *ref = tmk_reader_chunk(v->r, i);
        if (ref->header.seq != expected)
            find(v, ref->offset, "chunk %" PRIu64 " follows, chunk %" PRIu64 " is missing",
                 ref->header.seq, expected);
        expected = ref->header.seq + 1;
    }
    if (known && status->last_seq >= expected)
        find(v, tmk_reader_end(v->r), "the last chunk is %" PRIu64 ", %" PRIu64 " was written",
             expected - 1, status->last_seq);
}

static void check_payloads(struct tmk_verify *v)
{
    uint64_t n_gone = 0;
    for (uint32_t i = 0; i < v->verdict.n_chunks; i++) {
        const struct tmk_chunk_ref *ref = tmk_reader_chunk(v->r, i);
        struct tmk_view payload;
        struct tmk_error err = {0};
        v->bad[i] = tmk_reader_payload(v->r, i, &payload, &err) < 0;
        if (v->bad[i] && tmk_reader_is_gone(v->r, i))
            n_gone++;
        else if (v->bad[i])
            find(v, ref->offset, "%s", err.text);
        else if (ref->header.codec != 0 || ref->header.kind == 0 ||
                 ref->header.kind > TMK_CHUNK_CHECKPOINT)
            note(v, "a chunk of kind %u, codec %u was skipped: a newer tidemark knows it",
                 ref->header.kind, ref->header.codec);
    }
    if (n_gone > 0)
        note(v, "%" PRIu64 " chunks were given up while they were read", n_gone);
}

/* ---- between chunks ---- */

/* Blocks that the recorder could not follow are missing from its contexts but not from ours;
 * those that a checkpoint had no room for may be missing from either. */
static bool has_untracked(const struct tmk_verify *v)
{
    return tmk_reader_status(v->r)->n_untracked > 0 || v->is_partial;
}

struct range_check {
    const struct tmk_state *s;
    uint32_t thread;
    uint64_t depth; /* of the next range of that thread */
    uint64_t n, n_same;
};

/* The open ranges of a thread are stored innermost first; the context has them outermost first. */
static const struct tmk_open_range *range_at(const struct tmk_state *s, uint32_t thread,
                                             uint64_t from_outside)
{
    uint64_t depth = 0;
    uint32_t top = thread < s->n_threads ? s->thread_top[thread] : 0;
    for (uint32_t r = top; r; r = s->ranges[r - 1].outer)
        depth++;
    if (from_outside >= depth)
        return NULL;
    uint32_t r = top;
    for (uint64_t skip = depth - 1 - from_outside; skip > 0; skip--)
        r = s->ranges[r - 1].outer;
    return &s->ranges[r - 1];
}

static void compare_range(void *arg, uint32_t thread, uint8_t kind, uint32_t name,
                          uint64_t start_ns)
{
    struct range_check *c = arg;
    if (c->n == 0 || thread != c->thread)
        c->depth = 0;
    c->thread = thread;
    const struct tmk_open_range *r = range_at(c->s, thread, c->depth++);
    c->n++;
    c->n_same += r && r->kind == kind && r->name == name && r->start_ns == start_ns;
}

/* Contexts leave out threads with deeper nests than this. */
enum { DEEPEST_WRITTEN = 1000 };

static uint64_t n_open_ranges(const struct tmk_state *s)
{
    uint64_t n = 0;
    for (uint32_t t = 0; t < s->n_threads; t++) {
        uint64_t depth = 0;
        for (uint32_t r = s->thread_top[t]; r; r = s->ranges[r - 1].outer)
            depth++;
        n += depth <= DEEPEST_WRITTEN ? depth : 0;
    }
    return n;
}

static void compare_reserved(struct tmk_verify *v, uint64_t offset, const char *name,
                             const struct tmk_context_device *here, const struct tmk_device_use *d)
{
    char what[64];
    snprintf(what, sizeof what, _("bytes reserved on %s"), name);
    if (here->has_reserved != d->has_reserved)
        find(v, offset, "%s: %s here, replaying says otherwise", what,
             here->has_reserved ? _("known") : _("not known"));
    if (!here->has_reserved || !d->has_reserved)
        return;
    find_difference(v, offset, what, here->reserved_bytes, d->reserved_bytes);
    snprintf(what, sizeof what, _("most bytes reserved on %s"), name);
    find_difference(v, offset, what, here->max_reserved_bytes, d->max_reserved_bytes);
}

static void compare_devices(struct tmk_verify *v, uint64_t offset,
                            const struct tmk_context_head *head)
{
    const struct tmk_state *s = &v->rp.state;
    find_difference(v, offset, "devices in the context", head->n_devices, s->n_devices);
    for (uint32_t i = 0; i < head->n_devices && i < s->n_devices && !has_untracked(v); i++) {
        char name[24], what[64];
        tmk_device_name(head->devices[i].device, name);
        compare_reserved(v, offset, name, &head->devices[i], &s->devices[i]);
        snprintf(what, sizeof what, _("bytes allocated on %s"), name);
        find_difference(v, offset, what, head->devices[i].allocated_bytes,
                        s->devices[i].allocated_bytes);
        snprintf(what, sizeof what, _("most bytes allocated on %s"), name);
        find_difference(v, offset, what, head->devices[i].max_bytes, s->devices[i].max_bytes);
    }
}

static void compare_context(struct tmk_verify *v, const struct tmk_chunk_ref *ref,
                            struct tmk_view context, struct tmk_view reserved)
{
    const struct tmk_state *s = &v->rp.state;
    struct tmk_context_head head;
    struct range_check ranges = {.s = s};
    if (tmk_context_read_head(&context, ref->header.start_ns, &head) < 0 ||
        tmk_reserved_read(reserved, &head) < 0 ||
        tmk_context_read_ranges(&context, ref->header.start_ns, compare_range, &ranges) < 0) {
        find(v, ref->offset, "the chunk's context makes no sense");
        return;
    }
    v->verdict.n_contexts++;
    compare_devices(v, ref->offset, &head);
    find_difference(v, ref->offset, "start of the step", head.step_start_ns, s->step_start_ns);
    find_difference(v, ref->offset, "module events of the step", head.n_step_module_events,
                    s->n_step_module_events);
    find_difference(v, ref->offset, "open ranges", ranges.n, n_open_ranges(s));
    find_difference(v, ref->offset, "open ranges that agree", ranges.n, ranges.n_same);
    bool is_tail = s->step != TMK_NO_STEP && s->step == tmk_reader_tail_step(v->r);
    if (ref->header.first_step !=
        s->step - is_tail) /* the reader has joined it to the one before */
        find(v, ref->offset, "step in force: %" PRId64 " is written, replaying gives %" PRId64,
             ref->header.first_step, s->step);
    if (ref->header.start_ns < s->now_ns)
        find(v, ref->offset, "the chunk begins %" PRIu64 " ns before the one before it ends",
             s->now_ns - ref->header.start_ns);
}

static void compare_chunk_addresses(struct tmk_verify *v, const struct tmk_chunk_ref *ref)
{
    uint64_t n_wrong = 0;
    for (uint32_t i = 0; i < v->ahead.n_addresses; i++) {
        const struct tmk_address *a = &v->ahead.addresses[i];
        const struct tmk_block *b = tmk_state_find(&v->rp.state, a->device, a->address);
        n_wrong += a->live != (b && b->live ? b->size_bytes + 1 : 0);
    }
    if (n_wrong > 0 && !has_untracked(v))
        find(v, ref->offset, "%" PRIu64 " addresses hold another block than replaying gives",
             n_wrong);
}

static bool same_path(const struct tmk_state *a, uint32_t ca, const struct tmk_state *b,
                      uint32_t cb)
{
    while (ca && cb) {
        if (a->contexts[ca].name != b->contexts[cb].name ||
            a->contexts[ca].kind != b->contexts[cb].kind)
            return false;
        ca = a->contexts[ca].parent;
        cb = b->contexts[cb].parent;
    }
    return ca == cb;
}

static bool same_block(const struct tmk_state *sa, const struct tmk_block *a,
                       const struct tmk_state *sb, const struct tmk_block *b)
{
    if (!b || !b->live || a->size_bytes != b->size_bytes)
        return false;
    if (a->serial == 0 || b->serial == 0) /* the size is all that one of them has */
        return true;
    return a->alloc_ns == b->alloc_ns && a->serial == b->serial && a->step == b->step &&
           a->stack == b->stack && a->thread == b->thread && a->name == b->name &&
           a->category == b->category && a->stream == b->stream &&
           same_path(sa, a->context, sb, b->context);
}

/* Compare counts and times, which do not depend on which blocks are known. */
static bool same_counts(const struct tmk_step_row *a, const struct tmk_step_row *b)
{
    return a->step == b->step && a->device == b->device && a->start_ns == b->start_ns &&
           a->end_ns == b->end_ns && a->n_allocs == b->n_allocs && a->n_frees == b->n_frees &&
           a->alloc_bytes == b->alloc_bytes && a->has_reserved == b->has_reserved &&
           (!a->has_reserved || (a->peak_reserved_bytes == b->peak_reserved_bytes &&
                                 a->end_reserved_bytes == b->end_reserved_bytes));
}

static bool same_bytes(const struct tmk_step_row *a, const struct tmk_step_row *b)
{
    return a->peak_bytes == b->peak_bytes && a->peak_ns == b->peak_ns &&
           a->end_bytes == b->end_bytes && a->free_bytes == b->free_bytes;
}

static void compare_rows(struct tmk_verify *v, uint64_t offset, const struct tmk_step_row *written,
                         const struct tmk_step_row *row)
{
    if (same_counts(written, row) && (has_untracked(v) || same_bytes(written, row)))
        return;
    find(v, offset,
         "the row of step %" PRId64 " says peak %" PRIu64 ", end %" PRIu64 ", %" PRIu64
         " allocations; replaying gives %" PRIu64 ", %" PRIu64 ", %" PRIu64,
         row->step, written->peak_bytes, written->end_bytes, written->n_allocs, row->peak_bytes,
         row->end_bytes, row->n_allocs);
}

/* The open step's rows in the next chunk, by device in the order of both. */
static void compare_open_rows(struct tmk_verify *v, uint64_t offset)
{
    struct tmk_view rows = v->ahead.open_rows;
    struct tmk_step_row written;
    for (uint32_t i = 0; i < v->rp.state.n_devices; i++) {
        struct tmk_step_row row = tmk_state_open_row(&v->rp.state, i);
        if (tmk_step_row_read(&rows, &written) < 0)
            find(v, offset, "the chunk has no row of the open step for a device");
        else
            compare_rows(v, offset, &written, &row);
    }
}

/* The reserved bytes of a checkpoint, by device in the order of both. */
static void compare_reserved_of(struct tmk_verify *v, uint64_t offset, const struct tmk_state *c)
{
    const struct tmk_state *s = &v->rp.state;
    for (uint32_t i = 0; i < c->n_devices && i < s->n_devices; i++) {
        const struct tmk_device_use *d = &c->devices[i];
        char name[24];
        struct tmk_context_device here = {.has_reserved = d->has_reserved,
                                          .reserved_bytes = d->reserved_bytes,
                                          .max_reserved_bytes = d->max_reserved_bytes};
        compare_reserved(v, offset, tmk_device_name(d->device, name), &here, &s->devices[i]);
    }
}

static void compare_states(struct tmk_verify *v, uint64_t offset, const struct tmk_state *c)
{
    struct tmk_state *s = &v->rp.state;
    uint64_t n_wrong = 0;
    find_difference(v, offset, "events in the checkpoint", c->n_events, s->n_events);
    find_difference(v, offset, "allocations in the checkpoint", c->n_allocs, s->n_allocs);
    find_difference(v, offset, "frees in the checkpoint", c->n_frees, s->n_frees);
    if (has_untracked(v))
        return;
    find_difference(v, offset, "live blocks in the checkpoint", c->n_live + c->n_outside,
                    s->n_live + s->n_outside);
    compare_reserved_of(v, offset, c);
    for (uint32_t i = 1; i <= c->n_entries; i++) {
        const struct tmk_block *b = &c->entries[i];
        if (b->live)
            n_wrong += !same_block(c, b, s, tmk_state_find(s, b->device, b->address));
    }
    if (n_wrong > 0)
        find(v, offset, "%" PRIu64 " blocks of the checkpoint are not what replaying gives",
             n_wrong);
}

static void compare_checkpoint(struct tmk_verify *v, const struct tmk_chunk_ref *ref,
                               struct tmk_view payload)
{
    struct tmk_state state;
    if (tmk_state_init(&state, &tmk_state_limits_tool) < 0) {
        v->failed = true;
        return;
    }
    v->verdict.n_checkpoints++;
    if (tmk_checkpoint_restore(payload, ref->header.start_ns, ref->header.first_step, &state) < 0) {
        find(v, ref->offset, "the checkpoint makes no sense");
    } else {
        v->is_partial |= v->rp.state.n_outside > 0;
        compare_states(v, ref->offset, &state);
    }
    tmk_state_fini(&state);
}

/* The totals and the open rows of the chunk. */
static void compare_figures(struct tmk_verify *v, const struct tmk_chunk_ref *ref)
{
    const struct tmk_state *s = &v->rp.state;
    struct tmk_state written = {0};
    struct tmk_written_live live = {0};
    v->is_partial |= s->n_outside > 0;
    if (tmk_view_left(&v->ahead.totals) == 0)
        return;
    if (tmk_totals_read(v->ahead.totals, &written, &live) < 0) {
        find(v, ref->offset, "the chunk's totals make no sense");
        return;
    }
    v->is_partial |= live.n_outside > 0;
    find_difference(v, ref->offset, "events before the chunk", written.n_events, s->n_events);
    find_difference(v, ref->offset, "allocations before the chunk", written.n_allocs, s->n_allocs);
    find_difference(v, ref->offset, "frees before the chunk", written.n_frees, s->n_frees);
    find_difference(v, ref->offset, "step rows before the chunk", written.n_step_rows,
                    s->n_step_rows);
    if (live.is_known && !has_untracked(v))
        find_difference(v, ref->offset, "live blocks before the chunk", live.n, s->n_live);
    compare_open_rows(v, ref->offset);
}

static void compare_events(struct tmk_verify *v, const struct tmk_chunk_ref *ref,
                           struct tmk_view payload)
{
    if (tmk_cursor_begin(&v->ahead, &ref->header, payload, NULL) < 0)
        return; /* replay will meet it too, and says so */
    compare_figures(v, ref);
    compare_context(v, ref, v->ahead.context, v->ahead.reserved);
    compare_chunk_addresses(v, ref);
}

/* The state is that after chunk i - 1: compare what the next chunks say of this moment. */
static void compare_next_contexts(struct tmk_verify *v, uint32_t i)
{
    uint32_t n = tmk_reader_n_chunks(v->r);
    uint64_t expected = i > 0 ? tmk_reader_chunk(v->r, i - 1)->header.seq + 1 : 0;
    for (; i < n; i++) {
        const struct tmk_chunk_ref *ref = tmk_reader_chunk(v->r, i);
        struct tmk_view payload;
        if (v->bad[i] || ref->header.codec != 0 || (expected && ref->header.seq != expected))
            return;
        expected = ref->header.seq + 1;
        v->offset = ref->offset;
        bool events = ref->header.kind == TMK_CHUNK_EVENTS;
        if (!events && ref->header.kind != TMK_CHUNK_CHECKPOINT)
            continue;
        if (tmk_reader_payload(v->r, i, &payload, NULL) < 0)
            return;
        if (events) {
            compare_events(v, ref, payload);
            return;
        }
        compare_checkpoint(v, ref, payload);
    }
}

static void on_verify_progress(void *arg, uint32_t done, uint32_t total)
{
    struct tmk_verify *v = arg;
    if (v->progress && v->progress->progress)
        v->progress->progress(v->progress->arg, done, total);
    if (v->rp.n_bad_chunks == 0 && v->rp.n_gaps == 0) /* after a gap our state knows less */
        compare_next_contexts(v, done);
}

/* ---- events and rows ---- */

static void on_verify_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                            struct tmk_block *b)
{
    (void)b;
    struct tmk_verify *v = arg;
    struct tmk_stack stack;
    struct tmk_stream stream;
    unsigned has = tmk_kind_fields(ev->kind);
    if (rp->implied)
        return;
    if ((has & TMK_HAS_STREAM && ev->stream && !tmk_reader_stream(v->r, ev->stream, &stream)) ||
        (has & TMK_HAS_STACK && ev->stack && !tmk_reader_stack(v->r, ev->stack, &stack)) ||
        (has & TMK_HAS_NAME && ev->name && !tmk_reader_string(v->r, ev->name))) {
        if (v->n_undefined++ == 0)
            v->undefined_at = v->offset;
    }
}

static const struct tmk_step_row *written_row(const struct tmk_verify *v, uint64_t ordinal)
{
    uint64_t low = 0, high = tmk_reader_n_step_rows(v->r);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (tmk_reader_step_row(v->r, middle)->ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    bool found =
        low < tmk_reader_n_step_rows(v->r) && tmk_reader_step_row(v->r, low)->ordinal == ordinal;
    return found ? tmk_reader_step_row(v->r, low) : NULL;
}

static void on_step_row(void *arg, const struct tmk_step_row *row)
{
    struct tmk_verify *v = arg;
    const struct tmk_step_row *w = written_row(v, row->ordinal);
    int64_t tail = tmk_reader_tail_step(v->r);
    v->n_rows_compared++;
    if (v->rp.n_gaps > 0)
        return; /* what was lost is missing from our row */
    if (tail != TMK_NO_STEP && row->step >= tail - 1)
        return; /* the reader has joined the two */
    if (!w)
        find(v, v->offset, "the row of step %" PRId64 " (number %" PRIu64 ") is missing", row->step,
             row->ordinal);
    else
        compare_rows(v, v->offset, w, row);
}

/* ---- the end ---- */

static void check_totals(struct tmk_verify *v)
{
    const struct tmk_status *status = tmk_reader_status(v->r);
    const struct tmk_state *s = &v->rp.state;
    bool settled = status->state == TMK_STATE_CLOSED && !tmk_reader_damage(v->r)->status_lost;
    if (!settled || v->p->live || v->rp.n_gaps > 0 || v->rp.n_bad_chunks > 0)
        return;
    find_difference(v, TMK_STATUS_OFFSET, "events", status->n_events, s->n_events);
    find_difference(v, TMK_STATUS_OFFSET, "allocations", status->n_allocs, s->n_allocs);
    find_difference(v, TMK_STATUS_OFFSET, "frees", status->n_frees, s->n_frees);
    find_difference(v, TMK_STATUS_OFFSET, "events dropped", status->n_dropped, s->n_dropped);
    find_difference(v, TMK_STATUS_OFFSET, "time of the last event", status->end_ns, s->now_ns);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct tmk_step_row row = tmk_state_open_row(s, i);
        on_step_row(v, &row);
    }
}

static void check_replay(struct tmk_verify *v)
{
    if (v->rp.n_bad_chunks > 0) {
        bool known = false;
        for (uint32_t i = 0; i < v->verdict.n_chunks; i++)
            known |= v->bad[i];
        if (!known)
            find(v, v->rp.damage.offset, "%s", v->rp.damage.text);
    }
    if (v->n_undefined > 0)
        find(v, v->undefined_at,
             "%" PRIu64 " events name a string, stack or stream that is not defined",
             v->n_undefined);
}

static void add_verify_notes(struct tmk_verify *v)
{
    const struct tmk_status *status = tmk_reader_status(v->r);
    if (v->p->live)
        note(v, "its process is still writing: checked as far as it is");
    else if (status->flags & TMK_STATUS_MERGED)
        note(v, "its process was killed or left without clean-up; the ring was merged");
    else if (status->state == TMK_STATE_OPEN)
        note(v, "it was not closed and %s", tmk_quality_ring_text(v->p));
    if (status->state == TMK_STATE_STOPPED)
        note(v, "recording stopped early: %s", tmk_stop_text((enum tmk_stop)status->reason));
    if (status->n_given_up > 0)
        note(v, "%" PRIu64 " old events were given up to stay under --max-size",
             status->n_given_up);
    if (status->n_dropped > 0)
        note(v, "%" PRIu64 " events were dropped because the ring was full", status->n_dropped);
    if (status->n_untracked > 0)
        note(v, "%" PRIu64 " blocks could not be followed; byte counts were not compared",
             status->n_untracked);
    uint64_t n_without = tmk_state_n_without_details(&v->rp.state);
    if (n_without > 0)
        note(v,
             "%" PRIu64 " blocks alive at the end are without details: when and where they were "
             "allocated is no longer in the trace",
             n_without);
    if (status->n_unnamed > 0)
        note(v,
             "%" PRIu64 " times a name, stack or stream was left out: there were more different "
             "ones than the recorder keeps",
             status->n_unnamed);
}

static void take_verdict(struct tmk_verify *v)
{
    struct tmk_trace_verdict *d = &v->verdict;
    d->n_events = v->rp.state.n_events;
    d->n_allocs = v->rp.state.n_allocs;
    d->n_frees = v->rp.state.n_frees;
    d->n_step_rows = tmk_reader_n_step_rows(v->r);
    d->findings = v->findings.items;
    d->n_kept = v->findings.n;
    d->notes = v->notes.items;
    d->n_notes = v->notes.n;
}

static int verify_trace(struct tmk_verify *v, struct tmk_error *err)
{
    int rc = tmk_replay_init(&v->rp, &tmk_state_limits_tool);
    if (rc < 0)
        return tmk_fail(err, rc, "no memory to replay the trace");
    v->has_replay = true;
    v->rp.is_raw = true;
    v->rp.state.on_step_row = on_step_row;
    v->rp.state.on_step_row_arg = v;
    struct tmk_visitor visitor = {
        .arg = v, .event = on_verify_event, .progress = on_verify_progress};
    check_header(v);
    check_sequence(v);
    check_payloads(v);
    if (tmk_reader_status(v->r)->n_given_up == 0)
        compare_next_contexts(v, 0);
    rc = tmk_replay_run(&v->rp, v->r, &visitor, err);
    if (rc < 0)
        return rc;
    check_replay(v);
    check_totals(v);
    add_verify_notes(v);
    take_verdict(v);
    return v->failed ? tmk_fail(err, TMK_ENOMEM, "out of memory") : 0;
}

int tmk_verify_open(struct tmk_process *p, const struct tmk_visitor *progress,
                    struct tmk_verify **ret_verify, struct tmk_error *err)
{
    struct tmk_verify *v = calloc(1, sizeof *v);
    uint32_t n = tmk_reader_n_chunks(p->reader);
    bool *bad = calloc((size_t)n + 1, sizeof *bad);
    if (!v || !bad) {
        free(v);
        free(bad);
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    }
    v->p = p;
    v->r = p->reader;
    v->progress = progress;
    v->bad = bad;
    v->verdict.n_chunks = n;
    int rc = verify_trace(v, err);
    if (rc < 0) {
        tmk_verify_close(v);
        return rc;
    }
    *ret_verify = v;
    return 0;
}

struct tmk_verify *tmk_verify_close(struct tmk_verify *v)
{
    if (!v)
        return NULL;
    if (v->has_replay)
        tmk_replay_fini(&v->rp);
    tmk_cursor_fini(&v->ahead);
    tmk_arena_fini(&v->texts);
    free(v->findings.items);
    free(v->notes.items);
    free(v->bad);
    free(v);
    return NULL;
}

const struct tmk_trace_verdict *tmk_verify_verdict(const struct tmk_verify *v)
{
    return &v->verdict;
}
