/* SPDX-License-Identifier: MIT */
/* trace/replay.c - see replay.h.
 *
 * The inner loop hashes nothing: at the start of a chunk each address of its dictionary is looked
 * up once, and events then find their block by slot. */
#include "trace/replay.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/segments.h"
#include "trace/snapshot.h"

int tmk_replay_init(struct tmk_replay *rp, const struct tmk_state_limits *limits)
{
    *rp = (struct tmk_replay){0};
    return tmk_state_init(&rp->state, limits);
}

void tmk_replay_fini(struct tmk_replay *rp)
{
    tmk_state_fini(&rp->state);
    tmk_cursor_fini(&rp->cursor);
    free(rp->entries);
    rp->entries = NULL;
}

/* ---- one event ---- */

static inline struct tmk_block *block_at(struct tmk_replay *rp, uint32_t slot)
{
    uint32_t i = rp->entries[slot];
    return i ? &rp->state.entries[i] : NULL;
}

_Static_assert(TMK_KIND_RELEASED < 32, "a set of the kinds that are replayed fits 32 bits");

static void visit_event(struct tmk_replay *rp, const struct tmk_visitor *v,
                        const struct tmk_event *ev, struct tmk_block *b)
{
    if (v->event && (!v->kinds || v->kinds >> ev->kind & 1))
        v->event(v->arg, rp, ev, b);
}

/* Visits the free that was never recorded but must have been, since the address is handed out
 * again. */
static void imply_free(struct tmk_replay *rp, const struct tmk_visitor *v,
                       const struct tmk_event *alloc, struct tmk_block *b)
{
    struct tmk_event ev = *alloc;
    ev.kind = TMK_KIND_FREE;
    tmk_state_replace(&rp->state, b);
    rp->implied = true;
    visit_event(rp, v, &ev, b);
    rp->implied = false;
}

/* Gives up the blocks of a device that ends, and visits each of them. */
static void give_up_blocks(struct tmk_replay *rp, const struct tmk_visitor *v,
                           const struct tmk_event *end)
{
    struct tmk_state *s = &rp->state;
    struct tmk_event ev = *end;
    ev.kind = TMK_KIND_FREE;
    rp->implied = true;
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        struct tmk_block *b = &s->entries[i];
        if (!b->live || b->device != end->device)
            continue;
        ev.address = b->address;
        tmk_state_give_up(s, b);
        visit_event(rp, v, &ev, b);
    }
    rp->implied = false;
}

/* Applies a segment event. A segment that was at its address has ended without an event. */
static void apply_segment(struct tmk_replay *rp, const struct tmk_event *ev)
{
    struct tmk_state *s = &rp->state;
    const struct tmk_driver_segment *old =
        tmk_segments_find(&s->segments, ev->segment_kind, ev->address);
    rp->ended = old ? *old : (struct tmk_driver_segment){0};
    tmk_state_segment(s, ev->time_ns, ev->thread,
                      &(struct tmk_driver_segment){.address = ev->address,
                                                   .size_bytes = ev->size_bytes,
                                                   .stack = ev->stack,
                                                   .device = ev->device,
                                                   .kind = ev->segment_kind});
}

static void apply_to_state(struct tmk_replay *rp, const struct tmk_visitor *v,
                           const struct tmk_event *ev)
{
    struct tmk_state *s = &rp->state;
    struct tmk_block *b = NULL;
    switch (ev->kind) {
    case TMK_KIND_ALLOC:
        b = block_at(rp, ev->slot);
        if (b && b->live)
            imply_free(rp, v, ev, b);
        tmk_state_alloc(s, b, ev->time_ns, ev->device, ev->thread,
                        &(struct tmk_shape){.size_bytes = ev->size_bytes,
                                            .requested_bytes = ev->requested_bytes,
                                            .stack = ev->stack,
                                            .stream = ev->stream});
        break;
    case TMK_KIND_FREE:
        b = block_at(rp, ev->slot);
        if (!tmk_state_free(s, b, ev->time_ns, ev->device, ev->thread))
            b = NULL;
        break;
    case TMK_KIND_TAG:
        b = block_at(rp, ev->slot);
        if (!tmk_state_tag(s, b, ev->time_ns, ev->category, ev->name))
            b = NULL;
        break;
    case TMK_KIND_PUSH:
        tmk_state_push(s, ev->time_ns, ev->thread, ev->range_kind, ev->name);
        break;
    case TMK_KIND_POP:
        rp->closed.kind = 0;
        tmk_state_pop(s, ev->time_ns, ev->thread, ev->range_kind, &rp->closed);
        break;
    case TMK_KIND_STEP:
        tmk_state_step(s, ev->time_ns, ev->step);
        if (tmk_state_step_of(s, ev->step) != ev->step)
            return; /* there was no such step */
        break;
    case TMK_KIND_RESERVED:
        tmk_state_reserved(s, ev->time_ns, ev->device, ev->size_bytes);
        break;
    case TMK_KIND_DEVICE_END:
        give_up_blocks(rp, v, ev);
        tmk_state_device_end(s, ev->time_ns, ev->device);
        break;
    case TMK_KIND_SEGMENT:
        apply_segment(rp, ev);
        break;
    case TMK_KIND_SEGMENT_END:
        rp->ended.kind = 0;
        tmk_state_segment_end(s, ev->time_ns, ev->segment_kind, ev->address, &rp->ended);
        break;
    case TMK_KIND_DROP:
        s->n_dropped += ev->size_bytes;
        tmk_state_other(s, ev->time_ns);
        break;
    default:
        tmk_state_other(s, ev->time_ns);
        break;
    }
    visit_event(rp, v, ev, b);
}

/* ---- one chunk ---- */

static int map_addresses(struct tmk_replay *rp)
{
    struct tmk_cursor *c = &rp->cursor;
    if (c->n_addresses > rp->entry_room) {
        uint32_t *bigger = realloc(rp->entries, c->n_addresses * sizeof *bigger);
        if (!bigger)
            return TMK_ENOMEM;
        rp->entries = bigger;
        rp->entry_room = c->n_addresses;
    }
    for (uint32_t i = 0; i < c->n_addresses; i++) {
        struct tmk_block *b =
            tmk_state_entry(&rp->state, c->addresses[i].device, c->addresses[i].address);
        rp->entries[i] = b ? tmk_state_index(&rp->state, b) : 0;
    }
    return 0;
}

/* Takes context, reserved bytes, totals and rows of the step from the chunk. */
static int take_figures(struct tmk_replay *rp, struct tmk_written_live *ret_live)
{
    struct tmk_cursor *c = &rp->cursor;
    struct tmk_state *s = &rp->state;
    struct tmk_view context = c->context;
    s->step = c->chunk->first_step;
    int rc = tmk_context_restore(&context, c->chunk->start_ns, s);
    if (rc == 0)
        rc = tmk_reserved_restore(c->reserved, s);
    if (rc == 0 && tmk_view_left(&c->totals) > 0)
        rc = tmk_totals_read(c->totals, s, ret_live);
    tmk_open_rows_restore(c->open_rows, s);
    return rc;
}

/* Takes the facts that the chunk has about the moment it starts at, after a gap and until a
 * checkpoint. Blocks at its addresses are made to agree with its dictionary; new ones have unknown
 * age and origin. Where its writer did not know all blocks itself, a block that it does not list
 * may live. */
static int patch_state(struct tmk_replay *rp)
{
    struct tmk_cursor *c = &rp->cursor;
    struct tmk_state *s = &rp->state;
    struct tmk_written_live written = {0};
    int rc = take_figures(rp, &written);
    for (uint32_t i = 0; i < c->n_addresses; i++) {
        struct tmk_block *b = block_at(rp, i);
        uint64_t live = c->addresses[i].live;
        if (!b || (b->live && live == b->size_bytes + 1))
            continue;
        if (live)
            tmk_state_put_brief(s, b, live - 1, c->chunk->start_ns);
        else if (written.n_outside == 0)
            tmk_state_drop(s, b);
    }
    tmk_state_settle_outside(s, &written);
    return rc;
}

/* Takes live blocks that the state has no entry for, when the chunk lists them because its events
 * are about them. Returns true when there were some. */
static bool take_listed(struct tmk_replay *rp)
{
    struct tmk_cursor *c = &rp->cursor;
    struct tmk_state *s = &rp->state;
    bool some = false;
    for (uint32_t i = 0; i < c->n_addresses && s->n_outside > 0; i++) {
        struct tmk_block *b = block_at(rp, i);
        if (!b || b->live || c->addresses[i].live == 0)
            continue;
        tmk_state_put_brief(s, b, c->addresses[i].live - 1, c->chunk->start_ns);
        s->n_outside--;
        some = true;
    }
    return some;
}

static int replay_events(struct tmk_replay *rp, const struct tmk_chunk_header *chunk,
                         struct tmk_view payload, bool is_patched, const struct tmk_visitor *v)
{
    int rc = tmk_cursor_begin(&rp->cursor, chunk, payload, &rp->damage);
    if (rc == 0)
        rc = map_addresses(rp);
    bool is_changed = rc == 0 && (is_patched || take_listed(rp));
    if (rc == 0 && is_patched)
        rc = patch_state(rp);
    if (is_changed && v->restored)
        v->restored(v->arg, rp);
    if (rc < 0)
        return rc;
    struct tmk_event ev = {0};
    while ((rc = tmk_cursor_next(&rp->cursor, &ev)) > 0) {
        apply_to_state(rp, v, &ev);
        rp->n_replayed++;
    }
    tmk_state_compact(&rp->state);
    return rc;
}

/* ---- the sweep ---- */

/* The number of the first chunk to use: the newest checkpoint on request, the first chunk, or after
 * a cut the oldest checkpoint. */
static uint32_t first_chunk_to_replay(const struct tmk_replay *rp, const struct tmk_reader *r)
{
    uint32_t n = tmk_reader_n_chunks(r), oldest = 0, newest = 0;
    for (uint32_t i = n; i-- > 0;) {
        if (tmk_reader_chunk(r, i)->header.kind != TMK_CHUNK_CHECKPOINT)
            continue;
        oldest = i;
        if (newest == 0)
            newest = i;
    }
    if (rp->from_newest && newest)
        return newest;
    return tmk_reader_status(r)->n_given_up ? oldest : 0;
}

/* Whether a checkpoint has to be loaded: reading starts there, or chunks before it are missing. */
static bool wants_checkpoint(const struct tmk_replay *rp, bool first, bool lost)
{
    return lost || (first && rp->n_replayed == 0);
}

static int load_checkpoint(struct tmk_replay *rp, const struct tmk_chunk_header *h,
                           struct tmk_view payload, const struct tmk_visitor *v)
{
    int rc = tmk_checkpoint_restore(payload, h->start_ns, h->first_step, &rp->state);
    if (v->restored)
        v->restored(v->arg, rp);
    return rc;
}

static void note_damage(struct tmk_replay *rp, uint64_t offset, const struct tmk_error *e)
{
    if (rp->n_bad_chunks++ == 0) {
        rp->damage = *e;
        rp->damage.offset = offset;
        if (!e->text[0])
            tmk_fail(&rp->damage, TMK_EDAMAGED, "the chunk at byte %llu makes no sense",
                     (unsigned long long)offset);
    }
}

static void learn_stages(struct tmk_replay *rp, const struct tmk_reader *r)
{
    uint32_t n = tmk_reader_n_strings(r);
    rp->state.knows_stages = true;
    rp->state.tail_step = rp->is_raw ? TMK_NO_STEP : tmk_reader_tail_step(r);
    for (uint32_t id = rp->n_learnt > 0 ? rp->n_learnt : 1; id < n; id++) {
        const char *text = tmk_reader_string(r, id);
        if (text)
            tmk_state_learn_stage(&rp->state, id, tmk_stage_of(text));
    }
    rp->n_learnt = n;
}

/* Replays chunk i. Returns 0, or what ends the sweep. */
static int replay_chunk(struct tmk_replay *rp, struct tmk_reader *r, uint32_t i, bool is_first,
                        const struct tmk_visitor *visitor, struct tmk_error *err)
{
    const struct tmk_chunk_ref *ref = tmk_reader_chunk(r, i);
    const struct tmk_chunk_header *h = &ref->header;
    rp->has_gap = rp->has_gap || h->seq != rp->next_seq;
    rp->is_lost = rp->is_lost || rp->has_gap;
    rp->next_seq = h->seq + 1;
    bool checkpoint =
        h->kind == TMK_CHUNK_CHECKPOINT && wants_checkpoint(rp, is_first, rp->is_lost);
    if (h->codec != 0 || (h->kind != TMK_CHUNK_EVENTS && !checkpoint))
        return 0;
    struct tmk_view payload;
    struct tmk_error e = {0};
    int rc = tmk_reader_payload(r, i, &payload, &e);
    if (rc == 0 && checkpoint)
        rc = load_checkpoint(rp, h, payload, visitor);
    else if (rc == 0)
        rc = replay_events(rp, h, payload, rp->is_lost, visitor);
    if (rc == TMK_ENOMEM || rc == TMK_EIO)
        return tmk_fail(err, rc, "%s", e.text[0] ? e.text : tmk_result_text(rc));
    rp->n_gaps += rp->has_gap;
    rp->has_gap = rc < 0;
    rp->is_lost = rp->is_lost && !(checkpoint && rc == 0);
    bool is_gone = rc < 0 && tmk_reader_is_gone(r, i);
    rp->n_gaps += is_gone;
    if (rc < 0 && !is_gone)
        note_damage(rp, ref->offset, &e);
    if (visitor->progress)
        visitor->progress(visitor->arg, i + 1, tmk_reader_n_chunks(r));
    return 0;
}

static int replay_from(struct tmk_replay *rp, struct tmk_reader *r, uint32_t first,
                       const struct tmk_visitor *visitor, struct tmk_error *err)
{
    int rc = 0;
    learn_stages(rp, r);
    for (uint32_t i = first; i < tmk_reader_n_chunks(r) && rc == 0; i++)
        rc = replay_chunk(rp, r, i, i == first, visitor, err);
    return rc;
}

int tmk_replay_run(struct tmk_replay *rp, struct tmk_reader *r, const struct tmk_visitor *visitor,
                   struct tmk_error *err)
{
    uint32_t first = first_chunk_to_replay(rp, r);
    if (tmk_reader_n_chunks(r) > first) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(r, first)->header;
        rp->next_seq = h->seq;
        rp->has_gap = h->seq > 1 && h->kind != TMK_CHUNK_CHECKPOINT;
    }
    return replay_from(rp, r, first, visitor, err);
}

int tmk_replay_follow(struct tmk_replay *rp, struct tmk_reader *r,
                      const struct tmk_visitor *visitor, struct tmk_error *err)
{
    uint32_t first = tmk_reader_n_chunks(r);
    if (rp->next_seq == 0)
        return tmk_replay_run(rp, r, visitor, err);
    while (first > 0 && tmk_reader_chunk(r, first - 1)->header.seq >= rp->next_seq)
        first--;
    return replay_from(rp, r, first, visitor, err);
}

void tmk_replay_rest(struct tmk_replay *rp)
{
    tmk_state_trim(&rp->state);
    tmk_cursor_fini(&rp->cursor);
    rp->cursor = (struct tmk_cursor){.n_addresses = 0};
    free(rp->entries);
    rp->entries = NULL;
    rp->entry_room = 0;
}
