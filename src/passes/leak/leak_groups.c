/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_groups.c - see leak_groups.h. */
#include "passes/leak/leak_groups.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "kit/grow.h"
#include "model/owners.h"
#include "passes/leak/leak.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/segments.h"
#include "trace/state.h"

#define MAX_CONTEXT ((1u << TMK_CONTEXT_BITS) - 1)

/* Finer than wanted, since only the end tells when blocks were made. */
enum { TIME_PARTS = 8 * TMK_LEAK_TIME_PARTS };
enum {
    LEAST_LOOKS = 64, /* fewer do not tell an even rate from a slowing one */
};
static_assert(TIME_PARTS <= (int)TMK_MAX_LOOKS, "there is room for them");

/* ---- looks ---- */

static bool is_finished_step(const struct tmk_step_row *row)
{
    return row->step != TMK_NO_STEP && !row->open;
}

/* Each device has a row for a step; the device with most rows is used. */
static uint16_t device_of_steps(const struct tmk_reader *r)
{
    uint64_t count[TMK_MAX_DEVICES] = {0};
    uint16_t devices[TMK_MAX_DEVICES] = {0};
    uint32_t n = 0, best = 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(r); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        uint32_t at = 0;
        while (at < n && devices[at] != row->device)
            at++;
        if (!is_finished_step(row) || at == TMK_MAX_DEVICES)
            continue;
        if (at == n)
            devices[n++] = row->device;
        if (++count[at] > count[best])
            best = at;
    }
    return devices[best];
}

static void count_steps(struct tmk_leak_groups *g, uint16_t device)
{
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(g->p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(g->p->reader, i);
        g->n_steps += is_finished_step(row) && row->device == device;
    }
}

/* Take every n-th step, so that the very last one is among them. */
static void take_step_looks(struct tmk_leak_groups *g)
{
    const struct tmk_reader *r = g->p->reader;
    uint16_t device = device_of_steps(r);
    count_steps(g, device);
    uint64_t stride = (g->n_steps + TMK_MAX_LOOKS - 1) / TMK_MAX_LOOKS, number = 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(r); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        if (!is_finished_step(row) || row->device != device)
            continue;
        number++;
        bool is_later = g->n_looks == 0 || row->end_ns > g->look_ns[g->n_looks - 1];
        if ((g->n_steps - number) % stride != 0 || !is_later)
            continue;
        g->look_ns[g->n_looks] = row->end_ns;
        g->n_before[g->n_looks] = number;
        g->step[g->n_looks++] = row->step;
    }
}

static void take_time_looks(struct tmk_leak_groups *g)
{
    uint64_t end_ns = g->p->end_ns;
    for (uint32_t i = 0; i < TIME_PARTS && end_ns >= TIME_PARTS; i++) {
        g->look_ns[i] = end_ns / TIME_PARTS * (i + 1);
        g->n_before[i] = i + 1;
        g->step[i] = TMK_NO_STEP;
        g->n_looks = i + 1;
    }
}

uint32_t tmk_leak_groups_look_after(const struct tmk_leak_groups *g, uint64_t ns)
{
    uint32_t low = 0, high = g->n_looks;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->look_ns[middle] > ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint64_t n_blocks_made(const struct tmk_state *s)
{
    return s->n_allocs + s->segments.n_begun;
}

static void advance_looks(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns)
{
    while (g->next < g->n_looks && g->look_ns[g->next] <= ns) {
        g->last_ns = g->look_ns[g->next];
        g->n_allocs[g->next++] = n_blocks_made(s);
    }
}

/* ---- groups ---- */

static bool is_of_group(const struct tmk_leak_group *group, const struct tmk_block *b)
{
    return group->latest.stack == b->stack && group->latest.context == b->context &&
           group->latest.device == b->device;
}

static uint64_t hash_of_group(const struct tmk_block *b)
{
    return tmk_hash_u64((uint64_t)b->stack << 32 | (b->context ^ (uint32_t)b->device << 16));
}

static struct tmk_leak_group *add_group(struct tmk_leak_groups *g, const struct tmk_block *b)
{
    if (TMK_GROW(g->groups, g->n_groups + 1, g->room) < 0) {
        g->failed = true;
        return NULL;
    }
    struct tmk_leak_group *new = &g->groups[g->n_groups++];
    *new = (struct tmk_leak_group){.latest = *b};
    return new;
}

static struct tmk_leak_group *find_leak_group(const struct tmk_leak_groups *g,
                                              const struct tmk_block *b)
{
    struct tmk_probe probe = tmk_index_probe(&g->index, hash_of_group(b));
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;)
        if (is_of_group(&g->groups[i - 1], b))
            return &g->groups[i - 1];
    return NULL;
}

/* The block's group, which is made when new; NULL: there are too many. */
static struct tmk_leak_group *leak_group_of(struct tmk_leak_groups *g, const struct tmk_block *b)
{
    struct tmk_leak_group *known = find_leak_group(g, b);
    if (known || g->n_groups == TMK_LEAK_MAX_GROUPS)
        return known;
    if (tmk_grow_index(&g->index) < 0) {
        g->failed = true;
        return NULL;
    }
    struct tmk_leak_group *new = add_group(g, b);
    if (new)
        tmk_index_add(&g->index, hash_of_group(b), (uint32_t)g->n_groups);
    return new;
}

/* ---- looks that are given up ---- */

/* Keep those looks; they stay in order. */
static void keep_looks(struct tmk_leak_groups *g, const bool *is_kept)
{
    uint16_t number[TMK_MAX_LOOKS + 1] = {0};
    uint64_t input_bytes = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_looks; i++) {
        number[i] = (uint16_t)n;
        input_bytes += g->input_bytes[i];
        if (!is_kept[i])
            continue;
        g->look_ns[n] = g->look_ns[i];
        g->n_before[n] = g->n_before[i];
        g->step[n] = g->step[i];
        g->n_allocs[n] = g->n_allocs[i];
        g->call_serial[n] = g->call_serial[i];
        g->input_bytes[n++] = input_bytes;
        input_bytes = 0;
    }
    number[g->n_looks] = (uint16_t)n;
    g->next = number[g->next];
    g->first = number[g->first];
    g->n_looks = n;
    g->n_cohorts = 0;
    for (uint64_t i = 0; i < g->n_groups; i++) {
        tmk_cohorts_renumber(&g->groups[i].cohorts, number);
        g->n_cohorts += g->groups[i].cohorts.n;
    }
}

/* Give up every second look, but not the last. What is known of those that remain stays exact. */
static void halve_looks(struct tmk_leak_groups *g)
{
    bool is_kept[TMK_MAX_LOOKS];
    for (uint32_t i = 0; i < g->n_looks; i++)
        is_kept[i] = (g->n_looks - 1 - i) % 2 == 0;
    keep_looks(g, is_kept);
}

static void bound_cohorts(struct tmk_leak_groups *g)
{
    if (g->n_cohorts <= TMK_LEAK_MAX_COHORTS || g->n_looks <= LEAST_LOOKS)
        return;
    g->n_cohorts = 0;
    for (uint64_t i = 0; i < g->n_groups; i++) {
        tmk_cohorts_merge(&g->groups[i].cohorts);
        g->n_cohorts += g->groups[i].cohorts.n;
    }
    while (g->n_cohorts > TMK_LEAK_MAX_COHORTS / 2 && g->n_looks > LEAST_LOOKS)
        halve_looks(g);
}

/* ---- survivors ---- */

/* A settled block lived through the looks from its birth up to, not including, `end`. Returns its
 * group, or NULL. */
static struct tmk_leak_group *note_survivor(struct tmk_leak_groups *g, const struct tmk_state *s,
                                            const struct tmk_block *b, uint32_t end)
{
    uint32_t begin = tmk_leak_groups_look_after(g, b->alloc_ns);
    struct tmk_leak_group *group = begin < end ? leak_group_of(g, b) : NULL;
    if (!group)
        return NULL;
    uint64_t n_before = group->cohorts.n;
    g->failed |= tmk_cohorts_add(&group->cohorts, begin, end, b->size_bytes) < 0;
    g->n_cohorts += group->cohorts.n - n_before;
    uint8_t category = tmk_block_category(g->p, s->contexts, b);
    if (category < TMK_LEAK_N_CATEGORIES)
        group->category_bytes[category] += b->size_bytes;
    if (b->serial >= group->latest.serial)
        group->latest = *b;
    group->n_extended += group->freed_at == b->serial;
    return group;
}

static bool is_after_looks(const struct tmk_leak_groups *g)
{
    return g->n_looks > 0 && g->next == g->n_looks;
}

/* Keep a block that was made after the last look, in the place of the smallest one. */
static void keep_late_block(struct tmk_leak_groups *g, const struct tmk_block *b)
{
    struct tmk_leak_late *least = g->late;
    for (uint32_t i = 1; i < TMK_LEAK_MAX_LATE; i++)
        least = g->late[i].size_bytes < least->size_bytes ? &g->late[i] : least;
    bool is_late = g->n_looks > 0 && b->alloc_ns > g->look_ns[g->n_looks - 1];
    if (is_late && b->size_bytes > least->size_bytes)
        *least = (struct tmk_leak_late){b->size_bytes, b->device};
}

/* Note the last block that a call of a model made before each look. */
static inline void note_model_call(struct tmk_leak_groups *g, const struct tmk_state *s,
                                   const struct tmk_block *b, uint32_t look)
{
    if (look >= g->n_looks || b->serial <= g->call_serial[look] || b->context == 0)
        return;
    if (s->contexts[b->context].module)
        g->call_serial[look] = b->serial;
}

/* ---- segments ---- */

static bool has_blocks(const struct tmk_state *s, uint16_t device)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].device == device)
            return s->devices[i].max_bytes > 0;
    return false;
}

static bool is_leakable_segment(struct tmk_leak_groups *g, const struct tmk_state *s,
                                const struct tmk_driver_segment *segment)
{
    if (segment->kind == TMK_SEGMENT_PINNED)
        return true;
    if (!tmk_segment_is_on_device(segment->kind) && segment->kind != TMK_SEGMENT_MANAGED)
        return false;
    const char *owner = tmk_holders_get(g->holders, segment->stack)->owner;
    return owner[0] && strcmp(owner, "torch") != 0 && !has_blocks(s, segment->device);
}

static void note_segment(struct tmk_leak_groups *g, const struct tmk_state *s,
                         const struct tmk_driver_segment *segment, uint32_t end)
{
    if (tmk_leak_groups_look_after(g, segment->alloc_ns) >= end ||
        !is_leakable_segment(g, s, segment))
        return;
    struct tmk_block b = {
        .address = segment->address,
        .size_bytes = segment->size_bytes,
        .alloc_ns = segment->alloc_ns,
        .serial = segment->serial,
        .step = segment->step,
        .stack = segment->stack,
        .thread = segment->thread,
        .category = TIDEMARK_OTHER,
        .device = tmk_segment_is_of_host(segment->kind) ? TIDEMARK_HOST : segment->device,
    };
    b.context = segment->context <= s->n_contexts ? (segment->context & MAX_CONTEXT) : 0;
    note_survivor(g, s, &b, end);
}

/* ---- the sweep ---- */

void tmk_leak_groups_freed(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                           const struct tmk_block *b)
{
    advance_looks(g, s, ns);
    g->made_bytes += b->size_bytes;
    if (b->alloc_ns < g->last_ns) {
        struct tmk_leak_group *group = note_survivor(g, s, b, g->next);
        if (group)
            group->freed_at = s->n_allocs;
        note_model_call(g, s, b, tmk_leak_groups_look_after(g, b->alloc_ns));
        bound_cohorts(g);
    } else {
        note_model_call(g, s, b, g->next);
        if (is_after_looks(g))
            keep_late_block(g, b);
    }
}

void tmk_leak_groups_given(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                           const struct tmk_block *b)
{
    advance_looks(g, s, ns);
    if (g->next < g->n_looks)
        g->input_bytes[g->next] += b->size_bytes;
    if (s->contexts[b->context].module)
        return; /* it comes back, as a cache of keys and values does */
    struct tmk_leak_group *group = leak_group_of(g, b);
    if (group)
        group->is_given = true;
}

void tmk_leak_groups_refused(struct tmk_leak_groups *g, uint64_t ns)
{
    g->has_oom |= g->n_looks > 0 && ns > g->look_ns[g->n_looks - 1];
}

void tmk_leak_groups_ended(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                           const struct tmk_driver_segment *segment)
{
    advance_looks(g, s, ns);
    note_segment(g, s, segment, g->next);
}

static void drop_groups(struct tmk_leak_groups *g)
{
    for (uint64_t i = 0; i < g->n_groups; i++)
        tmk_cohorts_fini(&g->groups[i].cohorts);
    g->n_groups = g->n_cohorts = 0;
}

/* Frees during a gap were not seen, so what is known begins here. */
void tmk_leak_groups_restored(struct tmk_leak_groups *g, const struct tmk_state *s)
{
    advance_looks(g, s, s->now_ns);
    g->first = g->next;
    drop_groups(g);
    tmk_index_clear(&g->index);
}

/* Choose looks with about as many blocks made from one to the next. Idle time, as when a data
 * loader's worker waits, does not show how a process grows; nor does its end, when it frees what
 * it had and makes nothing. */
static void choose_looks(struct tmk_leak_groups *g, const struct tmk_state *s, bool *is_kept)
{
    uint64_t n_allocs = n_blocks_made(s), part = UINT64_MAX;
    uint32_t n = g->n_looks;
    while (n > g->first && g->n_allocs[n - 1] == n_allocs)
        n--;
    for (uint32_t i = g->first; i < n; i++) {
        uint64_t begun = g->n_allocs[g->first], all = g->n_allocs[n - 1] - begun;
        uint64_t now = g->n_allocs[i] - begun;
        uint64_t its_part = all ? (uint64_t)((double)now / (double)all * TMK_LEAK_TIME_PARTS) : 0;
        is_kept[i] = its_part != part;
        part = its_part;
    }
}

/* Take the looks that are not known, and those that are not wanted, away. */
static void finish_looks(struct tmk_leak_groups *g, const struct tmk_state *s)
{
    bool is_kept[TMK_MAX_LOOKS] = {false};
    for (uint32_t i = g->first; g->has_steps && i < g->n_looks; i++)
        is_kept[i] = true;
    if (!g->has_steps)
        choose_looks(g, s, is_kept);
    keep_looks(g, is_kept);
}

int tmk_leak_groups_finish(struct tmk_leak_groups *g, const struct tmk_state *s)
{
    advance_looks(g, s, UINT64_MAX);
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        if (!s->entries[i].live)
            continue;
        struct tmk_block settled = tmk_state_settled(s, &s->entries[i]);
        g->made_bytes += settled.size_bytes;
        note_survivor(g, s, &settled, g->n_looks);
        note_model_call(g, s, &settled, tmk_leak_groups_look_after(g, settled.alloc_ns));
        keep_late_block(g, &settled);
        bound_cohorts(g);
    }
    for (uint32_t i = 0; i < s->segments.n; i++)
        note_segment(g, s, &s->segments.items[i], g->n_looks);
    finish_looks(g, s);
    return g->failed || tmk_holders_failed(g->holders) ? TMK_ENOMEM : 0;
}

/* ---- opening and closing ---- */

int tmk_leak_groups_init(struct tmk_leak_groups *g, const struct tmk_process *p)
{
    *g = (struct tmk_leak_groups){.p = p};
    take_step_looks(g);
    g->has_steps = g->n_steps > 0;
    if (!g->has_steps)
        take_time_looks(g);
    return tmk_holders_open(p, &g->holders);
}

void tmk_leak_groups_fini(struct tmk_leak_groups *g)
{
    drop_groups(g);
    free(g->groups);
    free(g->index.slots);
    tmk_holders_close(g->holders);
    *g = (struct tmk_leak_groups){0};
}
