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
static_assert(TIME_PARTS <= (int)TMK_TREND_MAX_LEVELS, "there is room for them");

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
    uint64_t stride = (g->n_steps + TMK_TREND_MAX_LEVELS - 1) / TMK_TREND_MAX_LEVELS, number = 0;
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

/* The number of the first later look. */
static uint32_t look_after(const struct tmk_leak_groups *g, uint64_t ns)
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
    uint64_t *levels = calloc(2 * (size_t)g->n_looks, sizeof *levels);
    if (!levels || TMK_GROW(g->groups, g->n_groups + 1, g->room) < 0) {
        free(levels);
        g->failed = true;
        return NULL;
    }
    struct tmk_leak_group *new = &g->groups[g->n_groups++];
    *new = (struct tmk_leak_group){.latest = *b, .bytes = levels, .blocks = levels + g->n_looks};
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

/* A settled block lived through the looks from its birth up to, not including, `end`. Returns its
 * group, or NULL. */
static struct tmk_leak_group *note_survivor(struct tmk_leak_groups *g, const struct tmk_state *s,
                                            const struct tmk_block *b, uint32_t end)
{
    uint32_t begin = look_after(g, b->alloc_ns);
    struct tmk_leak_group *group = begin < end ? leak_group_of(g, b) : NULL;
    if (!group)
        return NULL;
    group->bytes[begin] += b->size_bytes;
    group->blocks[begin]++;
    if (end < g->n_looks) { /* levels are sums of changes, so wrapping around is right */
        group->bytes[end] -= b->size_bytes;
        group->blocks[end]--;
    }
    uint8_t category = tmk_block_category(g->p, s->contexts, b);
    if (category < TMK_LEAK_N_CATEGORIES)
        group->category_bytes[category] += b->size_bytes;
    if (b->serial >= group->latest.serial)
        group->latest = *b;
    return group;
}

static bool is_after_looks(const struct tmk_leak_groups *g)
{
    return g->n_looks > 0 && g->next == g->n_looks;
}

/* A block of the same group, made anew and no smaller, was there when the last one went: so that
 * one was not let go. */
static void note_replaced(struct tmk_leak_groups *g, const struct tmk_block *b)
{
    struct tmk_leak_group *group = find_leak_group(g, b);
    if (!group || b->alloc_ns > group->going_ns || b->size_bytes < group->last_bytes)
        return;
    group->replaced_bytes += group->last_bytes;
    group->last_bytes = 0;
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
    if (is_late)
        note_replaced(g, b);
}

/* Count as let go what had gone by then, since the program went on afterwards. */
static void let_group_go(struct tmk_leak_group *group, uint64_t ns)
{
    if (ns < group->going_ns + TMK_LEAK_END_NS)
        return;
    group->let_go_bytes += group->going_bytes;
    group->going_bytes = 0;
}

/* Note blocks that go after the last look, until the first parameter goes. */
static void note_late_block(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                            const struct tmk_block *b, struct tmk_leak_group *group)
{
    if (!is_after_looks(g) || ns > g->end_ns)
        return;
    if (tmk_block_category(g->p, s->contexts, b) == TIDEMARK_PARAMETER) {
        g->has_parameters = true;
        g->end_ns = ns;
    } else if (group) {
        let_group_go(group, ns);
        group->going_bytes += b->size_bytes;
        group->last_bytes = b->size_bytes;
        group->going_ns = ns;
    }
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
    if (look_after(g, segment->alloc_ns) >= end || !is_leakable_segment(g, s, segment))
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
    if (b->alloc_ns < g->last_ns)
        note_late_block(g, s, ns, b, note_survivor(g, s, b, g->next));
    else if (is_after_looks(g))
        keep_late_block(g, b);
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

/* Frees during a gap were not seen, so what is known begins here. */
void tmk_leak_groups_restored(struct tmk_leak_groups *g, const struct tmk_state *s)
{
    advance_looks(g, s, s->now_ns);
    g->first = g->next;
    for (uint64_t i = 0; i < g->n_groups; i++)
        free(g->groups[i].bytes);
    g->n_groups = 0;
    tmk_index_clear(&g->index);
}

static void keep_look(struct tmk_leak_groups *g, uint32_t to, uint32_t from)
{
    for (uint64_t i = 0; i < g->n_groups; i++) {
        g->groups[i].bytes[to] = g->groups[i].bytes[from];
        g->groups[i].blocks[to] = g->groups[i].blocks[from];
    }
    g->look_ns[to] = g->look_ns[from];
    g->n_before[to] = g->n_before[from];
    g->n_allocs[to] = g->n_allocs[from];
}

/* Choose looks with about as many blocks made from one to the next. Idle time, as when a data
 * loader's worker waits, does not show how a process grows; nor does its end, when it frees what
 * it had and makes nothing. */
static void choose_looks(struct tmk_leak_groups *g, const struct tmk_state *s)
{
    uint64_t n_allocs = n_blocks_made(s), part = UINT64_MAX;
    uint32_t n = g->n_looks, kept = g->first;
    while (n > g->first && g->n_allocs[n - 1] == n_allocs)
        n--;
    for (uint32_t i = g->first; i < n; i++) {
        uint64_t begun = g->n_allocs[g->first], all = g->n_allocs[n - 1] - begun;
        uint64_t now = g->n_allocs[i] - begun;
        uint64_t its_part = all ? (uint64_t)((double)now / (double)all * TMK_LEAK_TIME_PARTS) : 0;
        if (its_part != part)
            keep_look(g, kept++, i);
        part = its_part;
    }
    g->n_looks = kept;
}

static void finish_group(struct tmk_leak_group *group, uint32_t n, uint64_t end_ns)
{
    let_group_go(group, end_ns);
    for (uint32_t i = 1; i < n; i++) {
        group->bytes[i] += group->bytes[i - 1];
        group->blocks[i] += group->blocks[i - 1];
    }
}

int tmk_leak_groups_finish(struct tmk_leak_groups *g, const struct tmk_state *s)
{
    advance_looks(g, s, UINT64_MAX);
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        if (!s->entries[i].live)
            continue;
        struct tmk_block settled = tmk_state_settled(s, &s->entries[i]);
        note_survivor(g, s, &settled, g->n_looks);
        keep_late_block(g, &settled);
        g->has_parameters |= tmk_block_category(g->p, s->contexts, &settled) == TIDEMARK_PARAMETER;
    }
    for (uint32_t i = 0; i < s->segments.n; i++)
        note_segment(g, s, &s->segments.items[i], g->n_looks);
    for (uint64_t i = 0; i < g->n_groups; i++)
        finish_group(&g->groups[i], g->n_looks, g->end_ns);
    if (!g->has_steps)
        choose_looks(g, s);
    return g->failed || tmk_holders_failed(g->holders) ? TMK_ENOMEM : 0;
}

/* ---- opening and closing ---- */

int tmk_leak_groups_init(struct tmk_leak_groups *g, const struct tmk_process *p)
{
    *g = (struct tmk_leak_groups){.p = p, .end_ns = p->end_ns};
    take_step_looks(g);
    g->has_steps = g->n_steps > 0;
    if (!g->has_steps)
        take_time_looks(g);
    return tmk_holders_open(p, &g->holders);
}

void tmk_leak_groups_fini(struct tmk_leak_groups *g)
{
    for (uint64_t i = 0; i < g->n_groups; i++)
        free(g->groups[i].bytes);
    free(g->groups);
    free(g->index.slots);
    tmk_holders_close(g->holders);
    *g = (struct tmk_leak_groups){0};
}
