/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_trace.c - see torch_trace.h.
 *
 * An allocation gets its category when it is freed: its byte in the file is then changed (out.h).
 * The list begins as torch's own would if its history had been switched on then: blocks from
 * before are in the final segments, or are only seen being freed. */
#include "interop/torch/torch_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "interop/torch/torch_changes.h"
#include "kit/grow.h"
#include "model/holders.h"
#include "model/owners.h"
#include "model/run.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/segments.h"
#include "trace/state.h"

struct freed { /* a block with a free requested and not completed */
    struct tmk_torch_block block;
    uint64_t ns;
    bool is_shown; /* the request was written */
};

struct trace { /* of a device */
    struct tmk_torch_file *file;
    const struct tmk_process *p;
    uint16_t device;
    uint64_t from_ns, until_ns; /* trace time */
    struct tmk_holders *holders;
    struct tmk_torch_blocks blocks;
    struct tmk_torch_segments segments;
    struct tmk_torch_changes changes; /* that wait */
    struct freed last_freed;          /* completed at once, unless the next event is HELD */
    bool has_freed;
    struct freed *held;
    uint64_t n_held, held_room;
    uint64_t now_ns, last_ns;
    uint64_t free_bytes; /* of the device, as last seen */
    bool has_free, has_begun, is_over, failed;
    bool must_hold;              /* a segment has ended with blocks in it */
    struct tmk_torch_left *left; /* when it is over */
};

/* ---- entries ---- */

static bool is_moment_shown(const struct trace *t)
{
    return !t->is_over && t->now_ns >= t->from_ns;
}

static void begin_entry(struct trace *t, enum tmk_torch_word action, uint64_t ns)
{
    tmk_torch_next(t->file);
    tmk_torch_begin_dict(t->file);
    tmk_torch_pair(t->file, TMK_WORD_action, action);
    tmk_torch_time(t->file, ns);
}

static void put_memory_fields(struct trace *t, uint64_t address, uint64_t size_bytes,
                              uint64_t stream)
{
    tmk_torch_number(t->file, TMK_WORD_addr, address);
    tmk_torch_number(t->file, TMK_WORD_size, size_bytes);
    tmk_torch_number(t->file, TMK_WORD_stream, stream);
}

static uint64_t stream_handle_of(const struct trace *t, const struct tmk_block *b)
{
    struct tmk_stream stream;
    bool is_known = b->stream > 0 && tmk_reader_stream(t->p->reader, b->stream, &stream);
    return is_known ? stream.handle : 0;
}

static uint8_t settled_category(const struct trace *t, const struct tmk_state *s,
                                const struct tmk_block *b)
{
    struct tmk_block settled = tmk_state_settled(s, b);
    return tmk_block_category(t->p, s->contexts, &settled);
}

static void write_alloc(struct trace *t, const struct tmk_state *s, const struct tmk_block *b,
                        struct tmk_torch_block *block)
{
    begin_entry(t, TMK_WORD_alloc, t->now_ns);
    put_memory_fields(t, block->address, block->requested_bytes, block->stream);
    tmk_torch_frames(t->file, block->stack);
    tmk_torch_context(t->file, s, b->context);
    block->place = tmk_torch_category(t->file, TIDEMARK_UNKNOWN);
    tmk_torch_end_dict(t->file);
}

/* If the file does not have the allocation, its stack is written here. */
static void write_free(struct trace *t, const struct freed *f, enum tmk_torch_word action,
                       uint64_t ns)
{
    begin_entry(t, action, ns);
    put_memory_fields(t, f->block.address, f->block.requested_bytes, f->block.stream);
    if (f->block.place == 0)
        tmk_torch_frames(t->file, f->block.stack);
    tmk_torch_end_dict(t->file);
}

/* ---- segments ---- */

static void write_segment_entry(struct trace *t, const struct tmk_torch_change *w)
{
    bool is_mapped = w->segment.kind != TMK_TORCH_ALLOCATED;
    enum tmk_torch_word action = w->begins
                                     ? (is_mapped ? TMK_WORD_segment_map : TMK_WORD_segment_alloc)
                                     : (is_mapped ? TMK_WORD_segment_unmap : TMK_WORD_segment_free);
    begin_entry(t, action, w->ns);
    put_memory_fields(t, w->segment.address, w->segment.size_bytes, w->segment.stream);
    tmk_torch_frames(t->file, w->segment.stack);
    tmk_torch_end_dict(t->file);
}

static void on_torch_segment(void *arg, const struct tmk_torch_segment *s, bool begins)
{
    struct trace *t = arg;
    if (is_moment_shown(t))
        tmk_torch_changes_add(&t->changes, &(struct tmk_torch_change){
                                               .segment = *s, .ns = t->now_ns, .begins = begins});
}

/* Blocks of a segment that ended are in the one that took its place, or their frees were lost:
 * then a segment is made up. */
static void hold_blocks_again(struct trace *t)
{
    if (!t->must_hold)
        return;
    t->must_hold = false;
    for (uint64_t i = 0; i < t->segments.n; i++)
        t->segments.items[i].n_blocks = 0;
    for (uint64_t i = 0; i < t->blocks.n; i++) {
        const struct tmk_torch_block *b = &t->blocks.items[i];
        if (b->is_used)
            tmk_torch_segments_hold(&t->segments, b->address, b->size_bytes, b->stream);
    }
    for (uint64_t i = 0; i < t->n_held; i++)
        tmk_torch_segments_hold(&t->segments, t->held[i].block.address, t->held[i].block.size_bytes,
                                t->held[i].block.stream);
}

static void write_waiting_changes(struct trace *t)
{
    hold_blocks_again(t);
    tmk_torch_changes_settle(&t->changes, &t->segments);
    for (uint64_t i = 0; i < t->changes.n; i++)
        write_segment_entry(t, &t->changes.items[i]);
    t->changes.n = 0;
}

/* True for a segment that torch takes its blocks from. */
static bool is_torch_segment(struct trace *t, const struct tmk_driver_segment *s)
{
    if (s->device != t->device || (s->kind != TMK_SEGMENT_DEVICE && s->kind != TMK_SEGMENT_MAPPING))
        return false;
    const char *owner = tmk_holders_get(t->holders, s->stack)->owner;
    return *owner == '\0' || strcmp(owner, "torch") == 0;
}

static void begin_segment(struct trace *t, const struct tmk_driver_segment *s)
{
    struct tmk_torch_segment new = {.address = s->address,
                                    .size_bytes = s->size_bytes,
                                    .stack = s->stack,
                                    .kind = s->kind == TMK_SEGMENT_MAPPING ? TMK_TORCH_MAPPED
                                                                           : TMK_TORCH_ALLOCATED};
    if (is_torch_segment(t, s))
        tmk_torch_segments_begin(&t->segments, &new);
}

static void on_driver_segment(struct trace *t, const struct tmk_replay *rp,
                              const struct tmk_event *ev)
{
    const struct tmk_driver_segment *ended = &rp->ended;
    if (ended->kind && is_torch_segment(t, ended) &&
        tmk_torch_segments_end(&t->segments, ended->address))
        t->must_hold = true;
    const struct tmk_driver_segment *new =
        ev->kind == TMK_KIND_SEGMENT
            ? tmk_segments_find(&rp->state.segments, ev->segment_kind, ev->address)
            : NULL;
    if (new)
        begin_segment(t, new);
}

/* ---- frees ---- */

static void write_free_request(struct trace *t, const struct freed *f)
{
    if (!f->is_shown)
        return;
    write_waiting_changes(t);
    write_free(t, f, TMK_WORD_free_requested, f->ns);
}

static void write_completed_free(struct trace *t, const struct freed *f, uint64_t ns)
{
    if (f->is_shown)
        write_free(t, f, TMK_WORD_free_completed, ns);
    tmk_torch_segments_release(&t->segments, f->block.address);
}

/* No event said that the last freed block is held: it is free. */
static void complete_last_free(struct trace *t)
{
    if (t->has_freed)
        write_completed_free(t, &t->last_freed, t->last_freed.ns);
    t->has_freed = false;
}

/* The event is about the block freed last or, at the start of a trace, before it. */
static void on_torch_held(struct trace *t, const struct tmk_event *ev)
{
    if (TMK_GROW(t->held, t->n_held + 1, t->held_room) < 0) {
        t->failed = true;
        return;
    }
    bool is_last = t->has_freed && t->last_freed.block.address == ev->address;
    if (!is_last)
        complete_last_free(t);
    t->held[t->n_held] = is_last ? t->last_freed
                                 : (struct freed){.block = {.address = ev->address,
                                                            .size_bytes = ev->size_bytes,
                                                            .requested_bytes = ev->size_bytes}};
    t->held[t->n_held++].block.is_held = true;
    t->has_freed = false;
    if (!is_last)
        tmk_torch_segments_hold(&t->segments, ev->address, ev->size_bytes, 0);
}

static void on_torch_released(struct trace *t, const struct tmk_event *ev)
{
    for (uint64_t i = 0; i < t->n_held; i++) {
        if (t->held[i].block.address != ev->address)
            continue;
        struct freed f = t->held[i];
        t->held[i] = t->held[--t->n_held];
        f.is_shown = is_moment_shown(t);
        if (f.is_shown)
            write_waiting_changes(t);
        write_completed_free(t, &f, ev->time_ns);
        return;
    }
}

/* ---- blocks ---- */

static struct tmk_torch_block *take_torch_block(struct trace *t, const struct tmk_state *s,
                                                struct tmk_block *b)
{
    struct tmk_torch_block *block = tmk_torch_blocks_add(&t->blocks, s, b);
    if (!block) {
        t->failed = true;
        return NULL;
    }
    block->stream = stream_handle_of(t, b);
    tmk_torch_segments_hold(&t->segments, b->address, b->size_bytes, block->stream);
    return block;
}

static void on_torch_alloc(struct trace *t, const struct tmk_state *s, struct tmk_block *b)
{
    b->row = 0;
    hold_blocks_again(t);
    struct tmk_torch_block *block = t->is_over ? NULL : take_torch_block(t, s, b);
    if (!block || !is_moment_shown(t))
        return;
    write_waiting_changes(t);
    write_alloc(t, s, b, block);
}

static void on_torch_free(struct trace *t, const struct tmk_state *s, const struct tmk_block *b)
{
    struct tmk_torch_block *block = tmk_torch_blocks_find(&t->blocks, b);
    if (!block)
        return;
    if (block->place)
        tmk_torch_change_category(t->file, block->place, settled_category(t, s, b));
    if (!t->is_over) {
        t->last_freed =
            (struct freed){.block = *block, .ns = t->now_ns, .is_shown = is_moment_shown(t)};
        t->has_freed = true;
        write_free_request(t, &t->last_freed);
    }
    tmk_torch_blocks_remove(&t->blocks, block);
}

static void on_torch_oom(struct trace *t, const struct tmk_state *s, const struct tmk_event *ev)
{
    const struct tmk_device_use *use = NULL;
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].device == t->device)
            use = &s->devices[i];
    uint64_t held = use && use->has_reserved ? use->reserved_bytes : use ? use->allocated_bytes : 0;
    uint64_t left = ev->capacity_bytes > held ? ev->capacity_bytes - held : 0;
    write_waiting_changes(t);
    begin_entry(t, TMK_WORD_oom, ev->time_ns);
    tmk_torch_number(t->file, TMK_WORD_device_free,
                     ev->free_bytes != UINT64_MAX ? ev->free_bytes
                     : t->has_free                ? t->free_bytes
                                                  : left);
    tmk_torch_number(t->file, TMK_WORD_size, ev->size_bytes);
    tmk_torch_number(t->file, TMK_WORD_stream, 0);
    tmk_torch_frames(t->file, ev->stack);
    tmk_torch_end_dict(t->file);
}

/* ---- the sweep ---- */

/* The snapshot's moment has come. */
static void end_trace(struct trace *t)
{
    if (t->is_over)
        return;
    complete_last_free(t);
    hold_blocks_again(t);
    if (t->now_ns >= t->from_ns)
        write_waiting_changes(t);
    t->is_over = true;
    t->failed |= t->segments.failed || t->changes.failed;
    for (uint64_t i = 0; i < t->n_held && !t->failed; i++)
        t->failed = !tmk_torch_blocks_put(&t->blocks, &t->held[i].block);
    t->left->blocks = tmk_torch_blocks_sorted(&t->blocks, &t->left->n_blocks);
    t->failed |= !t->left->blocks;
    t->left->made_up = t->segments.n_made_up > 0;
    t->left->segments = t->segments.items;
    t->left->n_segments = t->segments.n;
    t->segments.items = NULL;
    t->segments.n = t->segments.room = 0;
}

static void on_torch_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                           struct tmk_block *b)
{
    struct trace *t = arg;
    if (t->failed)
        return;
    bool is_ours = ev->device == t->device;
    if (ev->kind != TMK_KIND_HELD)
        complete_last_free(t);
    if (ev->time_ns > t->until_ns)
        end_trace(t);
    t->has_begun = true;
    t->now_ns = ev->time_ns;
    if (!t->is_over)
        t->last_ns = ev->time_ns;
    if (ev->kind == TMK_KIND_ALLOC && b && is_ours)
        on_torch_alloc(t, &rp->state, b);
    else if (ev->kind == TMK_KIND_FREE && b && is_ours)
        on_torch_free(t, &rp->state, b);
    else if (t->is_over)
        return;
    else if (ev->kind == TMK_KIND_HELD && is_ours)
        on_torch_held(t, ev);
    else if (ev->kind == TMK_KIND_RELEASED && is_ours)
        on_torch_released(t, ev);
    else if (ev->kind == TMK_KIND_SEGMENT || ev->kind == TMK_KIND_SEGMENT_END)
        on_driver_segment(t, rp, ev);
    else if (ev->kind == TMK_KIND_OOM && is_ours && !ev->is_of_driver && is_moment_shown(t))
        on_torch_oom(t, &rp->state, ev);
    else if (ev->kind == TMK_KIND_SAMPLE && is_ours && ev->sample.total_bytes != UINT64_MAX &&
             ev->sample.used_bytes <= ev->sample.total_bytes) {
        t->free_bytes = ev->sample.total_bytes - ev->sample.used_bytes;
        t->has_free = true;
    }
}

/* ---- after a gap ---- */

static void restore_segments(struct trace *t, const struct tmk_segments *all)
{
    for (uint64_t i = t->segments.n; i-- > 0;) {
        struct tmk_torch_segment old = t->segments.items[i];
        if (old.kind != TMK_TORCH_MADE_UP &&
            !tmk_segments_find(
                all, old.kind == TMK_TORCH_MAPPED ? TMK_SEGMENT_MAPPING : TMK_SEGMENT_DEVICE,
                old.address))
            t->must_hold |= tmk_torch_segments_end(&t->segments, old.address);
    }
    for (uint32_t i = 0; i < all->n; i++) {
        const struct tmk_torch_segment *there =
            tmk_torch_segments_find(&t->segments, all->items[i].address);
        if (!there || there->kind == TMK_TORCH_MADE_UP || there->address != all->items[i].address)
            begin_segment(t, &all->items[i]);
    }
}

static void drop_lost_blocks(struct trace *t)
{
    for (uint64_t i = 0; i < t->blocks.n; i++) {
        struct tmk_torch_block *block = &t->blocks.items[i];
        if (!block->is_used || block->is_found)
            continue;
        struct freed f = {.block = *block, .ns = t->now_ns, .is_shown = is_moment_shown(t)};
        write_free_request(t, &f);
        write_completed_free(t, &f, t->now_ns);
        tmk_torch_blocks_remove(&t->blocks, block);
    }
}

/* Takes in the blocks that are found when the trace starts, which were there before it, or after a
 * gap, which came during it. */
static void take_found_torch_blocks(struct trace *t, struct tmk_state *s)
{
    for (uint32_t i = 1; i <= s->n_entries && !t->failed; i++) {
        struct tmk_block *b = &s->entries[i];
        if (!b->live || b->device != t->device || tmk_torch_blocks_find(&t->blocks, b))
            continue;
        struct tmk_torch_block *block = take_torch_block(t, s, b);
        if (block && t->has_begun && is_moment_shown(t)) {
            write_waiting_changes(t);
            write_alloc(t, s, b, block);
        }
    }
}

static void on_torch_restored(void *arg, const struct tmk_replay *rp)
{
    struct trace *t = arg;
    struct tmk_state *s = (struct tmk_state *)(uintptr_t)&rp->state; /* rows are the visitor's */
    if (t->failed)
        return;
    complete_last_free(t);
    if (s->now_ns > t->until_ns)
        end_trace(t);
    t->now_ns = s->now_ns;
    if (!tmk_torch_blocks_match(&t->blocks, s, t->device)) {
        t->failed = true;
        return;
    }
    if (t->is_over)
        return;
    drop_lost_blocks(t);
    if (t->has_begun) {
        restore_segments(t, &s->segments);
        take_found_torch_blocks(t, s);
        write_waiting_changes(t);
        return;
    }
    uint64_t from_ns = t->from_ns; /* blocks there at the start have no entries */
    t->from_ns = UINT64_MAX;
    restore_segments(t, &s->segments);
    take_found_torch_blocks(t, s);
    t->from_ns = from_ns;
}

static void settle_live_blocks(struct trace *t, const struct tmk_state *s)
{
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        const struct tmk_torch_block *block =
            b->live && b->device == t->device ? tmk_torch_blocks_find(&t->blocks, b) : NULL;
        if (block && block->place)
            tmk_torch_change_category(t->file, block->place, settled_category(t, s, b));
    }
}

/* Write the entry with which torch ends its list. memory_viz needs "unknown" among the
 * categories. */
static void write_last_entry(struct trace *t)
{
    begin_entry(t, TMK_WORD_snapshot, t->last_ns);
    put_memory_fields(t, 0, 0, 0);
    (void)tmk_torch_category(t->file, TIDEMARK_UNKNOWN);
    tmk_torch_end_dict(t->file);
}

static int sweep_torch_trace(struct trace *t, const struct tmk_export *x, struct tmk_error *err)
{
    struct tmk_replay rp = {0};
    struct tmk_visitor both[] = {{.arg = t, .event = on_torch_event, .restored = on_torch_restored},
                                 x->progress};
    int rc = tmk_holders_open(x->p, &t->holders);
    if (rc == 0)
        rc = tmk_process_sweep(x->p, both, 2, &rp, err);
    if (rc < 0)
        return rc;
    end_trace(t);
    if (!t->failed)
        settle_live_blocks(t, &rp.state);
    tmk_replay_fini(&rp);
    return t->failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the blocks of the snapshot") : 0;
}

int tmk_torch_trace_write(struct tmk_torch_file *f, const struct tmk_export *x, uint16_t device,
                          struct tmk_torch_left *ret, struct tmk_error *err)
{
    *ret = (struct tmk_torch_left){0};
    struct trace t = {.file = f,
                      .p = x->p,
                      .device = device,
                      .from_ns = tmk_export_trace_time(x->p, x->from_ns),
                      .until_ns = tmk_export_trace_time(x->p, x->until_ns),
                      .left = ret};
    t.segments.tell = on_torch_segment;
    t.segments.arg = &t;
    tmk_torch_begin_list(f);
    int rc = sweep_torch_trace(&t, x, err);
    if (rc == 0)
        write_last_entry(&t);
    tmk_torch_end_list(f);
    tmk_holders_close(t.holders);
    tmk_torch_blocks_fini(&t.blocks);
    tmk_torch_segments_fini(&t.segments);
    tmk_torch_changes_fini(&t.changes);
    free(t.held);
    return rc;
}

void tmk_torch_left_fini(struct tmk_torch_left *left)
{
    free(left->blocks);
    free(left->segments);
    *left = (struct tmk_torch_left){0};
}
