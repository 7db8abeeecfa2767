/* SPDX-License-Identifier: MIT */
/* trace/state_valid.c - the invariants of state.h. */
#include "trace/state.h"

#include "base/index.h"
#include "base/valid.h"
#include "tidemark/tidemark.h"
#include "trace/segments.h"

/* ---- blocks ---- */

/* tmk_state_find() changes nothing, but its caller may change the block: hence its type. */
static const struct tmk_block *search_for_entry(const struct tmk_state *s,
                                                const struct tmk_block *b)
{
    return tmk_state_find((struct tmk_state *)(uintptr_t)s, b->device, b->address);
}

static bool entries_are_valid(const struct tmk_state *s)
{
    uint32_t n_live = 0;
    TMK_HOLDS(s->n_entries <= s->limits.max_blocks);
    TMK_HOLDS(s->entry_index.n == s->n_entries);
    if (!tmk_index_is_valid(&s->entry_index))
        return false;
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        n_live += b->live;
        TMK_HOLDS(b->context <= s->n_contexts);
        TMK_HOLDS(search_for_entry(s, b) == b);
    }
    TMK_HOLDS(n_live == s->n_live);
    return true;
}

/* ---- contexts ---- */

static bool context_is_valid(const struct tmk_state *s, uint32_t i)
{
    const struct tmk_context *c = &s->contexts[i];
    TMK_HOLDS(c->parent < i);
    const struct tmk_context *parent = &s->contexts[c->parent];
    TMK_HOLDS(c->module == (c->kind == TIDEMARK_MODULE ? i : parent->module));
    TMK_HOLDS(c->stage == (c->kind == TIDEMARK_STAGE ? i : parent->stage));
    TMK_HOLDS(c->kind == TIDEMARK_STAGE ? c->stage_kind < TMK_N_STAGES
                                        : c->stage_kind == parent->stage_kind);
    TMK_HOLDS(tmk_state_find_context(s, c->parent, c->kind, c->name) == i);
    return true;
}

static bool contexts_are_valid(const struct tmk_state *s)
{
    const struct tmk_context *none = &s->contexts[0];
    TMK_HOLDS(s->n_contexts <= s->limits.max_contexts);
    TMK_HOLDS(!none->parent && !none->module && !none->stage && !none->stage_kind);
    TMK_HOLDS(s->context_index.n == s->n_contexts);
    if (!tmk_index_is_valid(&s->context_index))
        return false;
    for (uint32_t i = 1; i <= s->n_contexts; i++)
        if (!context_is_valid(s, i))
            return false;
    return true;
}

/* ---- ranges ---- */

struct range_sums { /* of all ranges seen so far */
    uint64_t n, indices;
    uint32_t n_backward;
    uint64_t backward_start_ns;
};

/* Checks an open range against the one around it. A range without room for its context has the
 * context around it. */
static bool range_is_valid(const struct tmk_state *s, uint32_t range)
{
    static const struct tmk_open_range nothing;
    const struct tmk_open_range *r = &s->ranges[range - 1];
    TMK_HOLDS(r->outer <= s->n_ranges && r->context <= s->n_contexts);
    const struct tmk_open_range *outer = r->outer ? &s->ranges[r->outer - 1] : &nothing;
    const struct tmk_context *c = &s->contexts[r->context];
    TMK_HOLDS(r->context == outer->context ||
              (c->parent == outer->context && c->kind == r->kind && c->name == r->name));
    TMK_HOLDS(r->stage == (r->kind == TIDEMARK_STAGE ? range : outer->stage));
    TMK_HOLDS(!r->is_backward || r->kind == TIDEMARK_STAGE);
    TMK_HOLDS(r->in_backward == (r->is_backward || outer->in_backward));
    return true;
}

static bool thread_is_valid(const struct tmk_state *s, uint32_t thread, struct range_sums *sums)
{
    TMK_HOLDS(s->thread_top[thread] <= s->n_ranges);
    for (uint32_t r = s->thread_top[thread]; r; r = s->ranges[r - 1].outer) {
        TMK_HOLDS(++sums->n <= s->n_ranges); /* else they go round in a circle */
        if (!range_is_valid(s, r))
            return false;
        sums->indices += r;
        sums->n_backward += s->ranges[r - 1].is_backward;
        if (s->ranges[r - 1].is_backward && s->ranges[r - 1].start_ns < sums->backward_start_ns)
            sums->backward_start_ns = s->ranges[r - 1].start_ns;
    }
    return true;
}

static bool ranges_are_valid(const struct tmk_state *s)
{
    struct range_sums sums = {.backward_start_ns = UINT64_MAX};
    uint64_t n = s->n_ranges;
    TMK_HOLDS(s->n_ranges <= s->limits.max_ranges && s->n_threads <= s->limits.max_threads);
    for (uint32_t t = 0; t < s->n_threads; t++)
        if (!thread_is_valid(s, t, &sums))
            return false;
    for (uint32_t r = s->free_range; r; r = s->ranges[r - 1].outer) {
        TMK_HOLDS(r <= s->n_ranges && ++sums.n <= s->n_ranges);
        sums.indices += r;
    }
    TMK_HOLDS(sums.n == n && sums.indices == n * (n + 1) / 2);
    TMK_HOLDS(sums.n_backward == s->n_backward);
    TMK_HOLDS(s->n_backward == 0 || sums.backward_start_ns == s->backward_start_ns);
    return true;
}

/* ---- devices ---- */

static bool devices_are_valid(const struct tmk_state *s)
{
    TMK_HOLDS(s->n_devices <= TMK_MAX_DEVICES && s->n_stage_names <= TMK_MAX_STAGE_NAMES);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct tmk_device_use *d = &s->devices[i];
        TMK_HOLDS(d->row.device == d->device);
        for (uint32_t k = 0; k < i; k++)
            TMK_HOLDS(s->devices[k].device != d->device);
    }
    return true;
}

/* ---- the state ---- */

uint64_t tmk_state_check_cost(const struct tmk_state *s)
{
    uint64_t n_items = (uint64_t)s->n_entries + s->n_contexts + s->n_ranges + s->n_threads;
    uint64_t n_slots =
        (uint64_t)tmk_index_n_slots(&s->entry_index) + tmk_index_n_slots(&s->context_index);
    return n_items + n_slots / 8 + tmk_segments_check_cost(&s->segments);
}

bool tmk_state_is_valid(const struct tmk_state *s)
{
    return entries_are_valid(s) && contexts_are_valid(s) && ranges_are_valid(s) &&
           devices_are_valid(s) && tmk_segments_is_valid(&s->segments);
}

static bool device_adds_up(const struct tmk_state *s, const struct tmk_device_use *d)
{
    uint64_t live_bytes = 0;
    TMK_HOLDS(d->row.step == s->step && d->row.has_reserved == d->has_reserved);
    for (uint32_t i = 1; i <= s->n_entries; i++)
        if (s->entries[i].live && s->entries[i].device == d->device)
            live_bytes += s->entries[i].size_bytes;
    TMK_HOLDS(s->n_outside ? live_bytes <= d->allocated_bytes : live_bytes == d->allocated_bytes);
    TMK_HOLDS(d->allocated_bytes <= d->row.peak_bytes && d->row.peak_bytes <= d->max_bytes);
    TMK_HOLDS(d->reserved_bytes <= d->row.peak_reserved_bytes);
    TMK_HOLDS(d->row.peak_reserved_bytes <= d->max_reserved_bytes);
    return true;
}

bool tmk_state_adds_up(const struct tmk_state *s)
{
    TMK_HOLDS(s->segments.n <= s->segments.n_begun);
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (!device_adds_up(s, &s->devices[i]))
            return false;
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        TMK_HOLDS(!b->live || (b->serial <= s->n_allocs && b->alloc_ns <= s->now_ns));
    }
    return true;
}
