/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_sweep.c - the one sweep that keeps what replay needs; see whatif.h.
 *
 * The live blocks have an index of their own (whatif_live.c). After a gap, or when the trace
 * begins in the middle, blocks that are there without an allocation are taken as allocated at
 * that moment, in order of address, and those that are gone as freed.
 *
 * Segments that go show that the program emptied the cache; so does a retry, after which the same
 * allocation gets a segment. Both are kept alike, with the bytes needed: the replay knows the
 * limit and tells them apart. */
#include "passes/whatif/whatif.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "model/alloc_conf.h"
#include "model/driver_space.h"
#include "model/holders.h"
#include "model/run.h"
#include "passes/whatif/whatif_internal.h"
#include "passes/whatif/whatif_sizes.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/segments.h"
#include "trace/state.h"

/* ---- words ---- */

static void put_words(struct tmk_whatif *w, const uint32_t *words, uint64_t n)
{
    if (TMK_GROW(w->words, w->n_words + n, w->word_room) < 0) {
        w->failed = true;
        return;
    }
    memcpy(&w->words[w->n_words], words, n * sizeof *w->words);
    w->n_words += n;
}

static void put_other_word(struct tmk_whatif *w, enum whatif_other kind, uint64_t value)
{
    uint32_t words[] = {(uint32_t)OP_OTHER << OP_SHIFT | kind, (uint32_t)value,
                        (uint32_t)(value >> 32)};
    put_words(w, words, 3);
}

static void put_request(struct tmk_whatif *w, uint32_t head, uint16_t stream, uint64_t bytes)
{
    uint32_t words[] = {head, stream, (uint32_t)bytes, (uint32_t)(bytes >> 32)};
    put_words(w, words, 4);
}

/* Put the time before an event of the device, but seldom. */
static void put_moment(struct tmk_whatif *w, const struct tmk_state *s, uint64_t ns)
{
    if (!w->has_begun || s->step != w->step) {
        w->step = s->step;
        put_other_word(w, OTHER_STEP, (uint64_t)s->step);
        w->n_since_time = OP_TIME_EVERY;
    }
    if (w->n_since_time++ >= OP_TIME_EVERY) {
        put_other_word(w, OTHER_TIME, ns);
        w->n_since_time = 0;
    }
    w->has_begun = true;
    w->now_ns = ns;
    w->recorded.n_events++;
}

/* ---- segments ---- */

/* Imported traces have no segments but torch's, and no native stacks. */
static bool is_torch_stack(struct tmk_whatif *w, uint32_t stack)
{
    const char *owner = tmk_holders_get(w->holders, stack)->owner;
    return strcmp(owner, "torch") == 0 || tmk_reader_info(w->p->reader, "imported") != NULL;
}

/* What changed at one moment counts as one change: an expandable segment that grows ends and
 * begins anew. If memory went without a block's doing, it was given back. */
static void settle_segments(struct tmk_whatif *w)
{
    if (w->torch_bytes < w->settled_bytes && !w->empty_at && w->has_begun) {
        w->reserved_before = w->settled_bytes;
        w->grew_since = false;
        put_other_word(w, OTHER_EMPTY, 0);
        w->empty_at = w->failed ? 0 : w->n_words - 2;
    } else if (w->torch_bytes > w->settled_bytes) {
        w->grew_since = true;
    }
    w->settled_bytes = w->torch_bytes;
}

static void before_segment(struct tmk_whatif *w, uint64_t ns)
{
    if (ns != w->segment_ns)
        settle_segments(w);
    w->segment_ns = ns;
}

static void keep_place(struct tmk_whatif *w, uint64_t address, uint64_t size_bytes)
{
    if (TMK_GROW(w->places, w->n_places + 1, w->place_room) < 0) {
        w->failed = true;
        return;
    }
    w->places[w->n_places++] = (struct tmk_space_event){address, size_bytes, w->recorded.n_events};
}

static void on_whatif_segment(struct tmk_whatif *w, const struct tmk_event *ev)
{
    if (!tmk_segment_is_on_device(ev->segment_kind) || !is_torch_stack(w, ev->stack))
        return;
    if (ev->segment_kind == TMK_SEGMENT_POOL) { /* the driver fills and empties it */
        w->n_pools++;
        return;
    }
    before_segment(w, ev->time_ns);
    w->torch_bytes += ev->size_bytes;
    w->n_pages += ev->segment_kind == TMK_SEGMENT_PHYSICAL;
    if (ev->segment_kind != TMK_SEGMENT_DEVICE)
        return;
    keep_place(w, ev->address, ev->size_bytes);
    if (tmk_whatif_sizes_segment(w->sizes, ev->address, ev->size_bytes) < 0)
        w->failed = true;
}

static void on_segment_end(struct tmk_whatif *w, uint64_t ns,
                           const struct tmk_driver_segment *segment)
{
    if (!tmk_segment_is_on_device(segment->kind) || segment->device != w->device ||
        segment->kind == TMK_SEGMENT_POOL || !is_torch_stack(w, segment->stack))
        return;
    before_segment(w, ns);
    tmk_whatif_sizes_segment_end(w->sizes, segment->address);
    if (segment->kind == TMK_SEGMENT_DEVICE)
        keep_place(w, segment->address, 0);
    w->torch_bytes -= segment->size_bytes < w->torch_bytes ? segment->size_bytes : w->torch_bytes;
}

/* ---- allocations and frees ---- */

/* The limit was less than what torch would have reserved after a retry, or an OOM. */
static void note_need(struct tmk_whatif *w, uint64_t need)
{
    if (need && (!w->least_need || need < w->least_need))
        w->least_need = need;
}

/* An EMPTY before an allocation that got a segment may have been a retry of it: note what it
 * needed. */
static void settle_empty(struct tmk_whatif *w, uint64_t bytes, bool was_refused)
{
    uint64_t need = 0;
    settle_segments(w);
    if (!w->empty_at)
        return;
    if (bytes && (w->grew_since || was_refused))
        need = w->reserved_before +
               tmk_alloc_segment_bytes(&w->conf, tmk_alloc_round(&w->conf, bytes));
    note_need(w, need);
    w->n_needs += need != 0;
    w->words[w->empty_at] = (uint32_t)need;
    w->words[w->empty_at + 1] = (uint32_t)(need >> 32);
    w->empty_at = 0;
}

/* `b` is the block, or what is known of one that was never entered. */
static void on_whatif_alloc(struct tmk_whatif *w, const struct tmk_state *s, uint64_t ns,
                            const struct tmk_block *b, uint64_t requested_bytes)
{
    uint64_t bytes = requested_bytes ? requested_bytes : b->size_bytes;
    settle_empty(w, bytes, false);
    put_moment(w, s, ns);
    uint32_t slot = tmk_whatif_add_live(w, b->address);
    if (slot == NO_SLOT)
        return;
    put_request(w, slot | (uint32_t)OP_ALLOC << OP_SHIFT, b->stream, bytes);
    if (bytes > w->max_request)
        w->max_request = bytes;
    if (requested_bytes)
        w->recorded.knows_requests = true;
    else if (tmk_whatif_sizes_alloc(w->sizes, b->address, bytes, b->stack, s->step,
                                    w->n_words - 4) < 0)
        w->failed = true;
}

static int by_seed_address(const void *a, const void *b)
{
    const struct seed_block *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static int by_place_address(const void *a, const void *b)
{
    const struct tmk_space_event *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* Everything alive was there before: take back the words so far, each block is a seed. */
static void begin_history(struct tmk_whatif *w, struct tmk_state *s)
{
    if (TMK_GROW(w->seeds, w->live_index.n + 1, w->seed_room) < 0) {
        w->failed = true;
        return;
    }
    for (uint64_t i = 0; i < w->n_slots; i++) {
        const struct tmk_block *b =
            w->live[i].slot ? tmk_state_find(s, w->device, w->live[i].address) : NULL;
        if (b)
            w->seeds[w->n_seeds++] =
                (struct seed_block){.address = b->address,
                                    .size_bytes = b->size_bytes,
                                    .requested_bytes = tmk_state_requested(s, b),
                                    .slot = w->live[i].slot - 1,
                                    .stream = b->stream};
    }
    qsort(w->seeds, w->n_seeds, sizeof *w->seeds, by_seed_address);
    if (w->n_places)
        qsort(w->places, w->n_places, sizeof *w->places, by_place_address);
    w->n_seed_places = w->n_places;
    w->n_words = 0;
    w->has_begun = false;
    w->recorded.n_events = 0;
    w->recorded.n_seeded = w->n_seeds;
    w->settled_bytes = w->torch_bytes;
    w->empty_at = 0;
}

static void on_whatif_free(struct tmk_whatif *w, const struct tmk_state *s, uint64_t ns,
                           uint64_t address)
{
    uint32_t slot = tmk_whatif_remove_live(w, address);
    if (slot == NO_SLOT)
        return;
    tmk_whatif_sizes_free(w->sizes, address);
    settle_empty(w, 0, false);
    put_moment(w, s, ns);
    uint32_t word = slot | (uint32_t)OP_FREE << OP_SHIFT;
    put_words(w, &word, 1);
    w->freed = (struct live_block){address, slot + 1};
}

/* The block just freed is still in use by another stream: its slot is not free yet. */
static void on_whatif_held(struct tmk_whatif *w, uint64_t address)
{
    uint32_t slot = w->freed.slot - 1;
    uint32_t word = slot | (uint32_t)OP_FREE << OP_SHIFT;
    if (!w->freed.slot || w->freed.address != address || w->words[w->n_words - 1] != word)
        return;
    if (TMK_GROW(w->held, w->n_held + 1, w->held_room) < 0) {
        w->failed = true;
        return;
    }
    w->held[w->n_held++] = w->freed;
    w->words[w->n_words - 1] = slot | (uint32_t)OP_GIVE << OP_SHIFT;
    w->n_free_slots--; /* it is the last one */
    w->freed.slot = 0;
    w->has_held = true;
}

static void on_whatif_released(struct tmk_whatif *w, uint64_t address)
{
    uint64_t i = 0;
    while (i < w->n_held && w->held[i].address != address)
        i++;
    if (i == w->n_held)
        return;
    uint32_t slot = w->held[i].slot - 1;
    w->held[i] = w->held[--w->n_held];
    put_other_word(w, OTHER_DONE, slot);
    w->free_slots[w->n_free_slots++] = slot; /* there was room when it was taken out */
}

/* A recorded request that failed for good: everything cached had been given back by then. */
static void on_whatif_oom(struct tmk_whatif *w, const struct tmk_state *s,
                          const struct tmk_event *ev)
{
    settle_empty(w, ev->size_bytes, true);
    put_moment(w, s, ev->time_ns);
    put_request(w, (uint32_t)OP_OTHER << OP_SHIFT | OTHER_OOM, 0, ev->size_bytes);
    uint64_t held = w->torch_bytes ? w->torch_bytes : w->reserved_bytes;
    note_need(w,
              held + tmk_alloc_segment_bytes(&w->conf, tmk_alloc_round(&w->conf, ev->size_bytes)));
    if (w->recorded.n_ooms++ == 0 && ev->capacity_bytes)
        w->recorded.limit_bytes = ev->capacity_bytes;
}

/* ---- samples ---- */

/* The most that the process was seen to have on the device beside torch's memory. */
static void on_whatif_sample(struct tmk_whatif *w, const struct tmk_sample_body *sample)
{
    struct tmk_whatif_recorded *f = &w->recorded;
    if (sample->total_bytes != UINT64_MAX)
        f->card_bytes = sample->total_bytes;
    if (sample->own_bytes == UINT64_MAX || sample->own_bytes < w->reserved_bytes)
        return;
    uint64_t outside = sample->own_bytes - w->reserved_bytes;
    if (f->outside_bytes == TMK_BYTES_UNKNOWN || outside > f->outside_bytes)
        f->outside_bytes = outside;
}

/* ---- the sweep ---- */

/* An import marks that what it has told so far was there before its first event. */
static bool is_history_mark(const struct tmk_whatif *w, const struct tmk_event *ev)
{
    const char *name = tmk_reader_string(w->p->reader, ev->name);
    return name && strcmp(name, "history begins") == 0;
}

static void on_whatif_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                            struct tmk_block *b)
{
    struct tmk_whatif *w = arg;
    const struct tmk_state *s = &rp->state;
    if (ev->kind == TMK_KIND_MARK && !w->n_seeds && w->live_index.n &&
        w->recorded.n_events == w->live_index.n && is_history_mark(w, ev))
        begin_history(w, (struct tmk_state *)s);
    if (ev->kind == TMK_KIND_SEGMENT_END) {
        on_segment_end(w, ev->time_ns, &rp->ended);
        return;
    }
    if (ev->device != w->device)
        return;
    if (ev->kind == TMK_KIND_ALLOC)
        on_whatif_alloc(w, s, ev->time_ns,
                        &(struct tmk_block){.address = ev->address,
                                            .size_bytes = ev->size_bytes,
                                            .stack = ev->stack,
                                            .stream = ev->stream},
                        ev->requested_bytes);
    else if (ev->kind == TMK_KIND_FREE && b)
        on_whatif_free(w, s, ev->time_ns, b->address);
    else if (ev->kind == TMK_KIND_OOM && !ev->is_of_driver)
        on_whatif_oom(w, s, ev);
    else if (ev->kind == TMK_KIND_HELD)
        on_whatif_held(w, ev->address);
    else if (ev->kind == TMK_KIND_RELEASED)
        on_whatif_released(w, ev->address);
    else if (ev->kind == TMK_KIND_RESERVED)
        w->reserved_bytes = ev->size_bytes;
    else if (ev->kind == TMK_KIND_SEGMENT)
        on_whatif_segment(w, ev);
    else if (ev->kind == TMK_KIND_SAMPLE)
        on_whatif_sample(w, &ev->sample);
}

static int compare_found_addresses(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Blocks that we have and the state has not were freed unseen. */
static void forget_gone_blocks(struct tmk_whatif *w, struct tmk_state *s)
{
    uint64_t *gone = malloc((w->live_index.n + 1ull) * sizeof *gone), n = 0;
    if (!gone) {
        w->failed = true;
        return;
    }
    for (uint64_t i = 0; i < w->n_slots; i++) {
        const struct tmk_block *b =
            w->live[i].slot ? tmk_state_find(s, w->device, w->live[i].address) : NULL;
        if (w->live[i].slot && !(b && b->live))
            gone[n++] = w->live[i].address;
    }
    qsort(gone, n, sizeof *gone, compare_found_addresses);
    for (uint64_t i = 0; i < n; i++)
        on_whatif_free(w, s, s->now_ns, gone[i]);
    free(gone);
}

/* Blocks that the state has and we have not were there before, or came unseen. */
static void take_found_blocks(struct tmk_whatif *w, struct tmk_state *s)
{
    uint64_t *found = malloc((s->n_live + 1ull) * sizeof *found), n = 0;
    if (!found) {
        w->failed = true;
        return;
    }
    for (uint32_t i = 1; i <= s->n_entries && n < s->n_live; i++) {
        const struct tmk_block *b = &s->entries[i];
        if (b->live && b->device == w->device && !tmk_whatif_is_live(w, b->address))
            found[n++] = b->address;
    }
    qsort(found, n, sizeof *found, compare_found_addresses);
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_block *b = tmk_state_find(s, w->device, found[i]);
        if (b)
            on_whatif_alloc(w, s, s->now_ns, b, tmk_state_requested(s, b));
    }
    w->n_found += n;
    free(found);
}

/* Take torch's segments that are there already. */
static void take_segments(struct tmk_whatif *w, const struct tmk_state *s)
{
    for (uint32_t i = 0; i < s->segments.n; i++) {
        const struct tmk_driver_segment *segment = &s->segments.items[i];
        if (segment->device == w->device)
            on_whatif_segment(w, &(struct tmk_event){.segment_kind = segment->kind,
                                                     .stack = segment->stack,
                                                     .address = segment->address,
                                                     .size_bytes = segment->size_bytes});
    }
}

static void on_whatif_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_whatif *w = arg;
    struct tmk_state *s = (struct tmk_state *)&rp->state; /* finding changes nothing */
    bool is_first = !w->has_begun && !w->n_seeds;
    if (is_first)
        take_segments(w, s);
    forget_gone_blocks(w, s);
    take_found_blocks(w, s);
    if (is_first && w->live_index.n)
        begin_history(w, s);
    else
        w->recorded.n_seeded += w->n_found;
    w->n_found = 0;
}

struct tmk_visitor tmk_whatif_visitor(struct tmk_whatif *w)
{
    return (struct tmk_visitor){.arg = w,
                                .kinds = TMK_HEARS(ALLOC) | TMK_HEARS(FREE) | TMK_HEARS(OOM) |
                                         TMK_HEARS(MARK) | TMK_HEARS(HELD) | TMK_HEARS(RELEASED) |
                                         TMK_HEARS(RESERVED) | TMK_HEARS(SEGMENT) |
                                         TMK_HEARS(SEGMENT_END) | TMK_HEARS(SAMPLE),
                                .event = on_whatif_event,
                                .restored = on_whatif_restored};
}

/* ---- before and after ---- */

int tmk_whatif_open(const struct tmk_process *p, uint16_t device, struct tmk_whatif **ret_whatif)
{
    struct tmk_whatif *w = calloc(1, sizeof *w);
    if (!w)
        return TMK_ENOMEM;
    int rc = tmk_holders_open(p, &w->holders);
    if (rc == 0)
        rc = tmk_whatif_sizes_open(&w->sizes);
    if (rc < 0) {
        tmk_whatif_close(w);
        return rc;
    }
    w->p = p;
    w->device = device;
    w->recorded.alloc_conf = tmk_reader_info(p->reader, "alloc_conf");
    w->recorded.limit_bytes = TMK_BYTES_UNKNOWN;
    w->recorded.card_bytes = TMK_BYTES_UNKNOWN;
    w->recorded.outside_bytes = TMK_BYTES_UNKNOWN;
    w->recorded.is_conf_wrong = tmk_alloc_conf_parse(w->recorded.alloc_conf, &w->conf, NULL) < 0;
    if (w->recorded.is_conf_wrong)
        tmk_alloc_conf_init(&w->conf);
    w->recorded.is_async = w->conf.is_async;
    *ret_whatif = w;
    return 0;
}

struct tmk_whatif *tmk_whatif_close(struct tmk_whatif *w)
{
    if (!w)
        return NULL;
    tmk_holders_close(w->holders);
    tmk_whatif_sizes_close(w->sizes);
    free(w->words);
    free(w->places);
    tmk_space_hints_fini(&w->hints);
    free(w->guesses);
    free(w->live);
    free(w->live_index.slots);
    free(w->free_slots);
    free(w->held);
    free(w->seeds);
    free(w);
    return NULL;
}

static void keep_guess(void *arg, uint64_t word, uint64_t bytes)
{
    struct tmk_whatif *w = arg;
    if (TMK_GROW(w->guesses, w->n_guesses + 1, w->guess_room) < 0) {
        w->failed = true;
        return;
    }
    w->guesses[w->n_guesses++] = (struct request_guess){word, bytes};
}

int tmk_whatif_finish(struct tmk_whatif *w, const struct tmk_replay *rp, struct tmk_error *err)
{
    struct tmk_whatif_recorded *f = &w->recorded;
    struct tmk_device_use *d = tmk_state_find_device((struct tmk_state *)&rp->state, w->device);
    settle_empty(w, 0, false);
    tmk_whatif_infer_conf(w);
    f->peak_allocated_bytes = d ? d->max_bytes : 0;
    f->peak_reserved_bytes = d && d->has_reserved ? d->max_reserved_bytes : TMK_BYTES_UNKNOWN;
    tmk_whatif_infer_limit(w);
    if (!w->failed && tmk_whatif_sizes_resolve(w->sizes, keep_guess, w) < 0)
        w->failed = true;
    w->sizes = tmk_whatif_sizes_close(w->sizes);
    if (!w->failed && tmk_driver_space_learn(w->places, w->n_places, &w->hints) < 0)
        w->failed = true;
    if (w->failed || tmk_holders_failed(w->holders))
        return tmk_fail(err, TMK_ENOMEM, "no memory for the allocations of the device");
    return 0;
}

const struct tmk_whatif_recorded *tmk_whatif_recorded(const struct tmk_whatif *w)
{
    return &w->recorded;
}
