/* SPDX-License-Identifier: MIT */
/* trace/state.c - see state.h.
 *
 * Entries of freed blocks stay, because caching allocators hand the same addresses out again and
 * again; compact() drops them when they outnumber the live ones. */
#include "trace/state.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/valid.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

#define ASSERT_VALID(s) TMK_ASSERT_VALID(tmk_state_is_valid(s), tmk_state_check_cost(s))

const struct tmk_state_limits tmk_state_limits_recorder = {.max_blocks = 250000,
                                                           .max_contexts = 32768,
                                                           .max_ranges = 16384,
                                                           .max_threads = 1u << 20,
                                                           .max_segments = 1u << 16};
const struct tmk_state_limits tmk_state_limits_tool = {.max_blocks = 1u << 24,
                                                       .max_contexts = 1u << 22, /* fits the bits */
                                                       .max_ranges = 1u << 20,
                                                       .max_threads = 1u << 24,
                                                       .max_segments = 1u << 20};

enum { FIRST_SLOTS = 1024, CONTEXT_MASK = (1 << TMK_CONTEXT_BITS) - 1 };

/* ---- the tables' memory ---- */

static int reserve_table(struct tmk_region *r, uint64_t n, size_t item_bytes, void **ret)
{
    int rc = tmk_region_init(r, (size_t)n * item_bytes);
    if (rc == 0)
        *ret = r->base;
    return rc;
}

/* Reserves an index for at most `n` items; it begins small. */
static int reserve_index(struct tmk_region *r, uint32_t n, struct tmk_index *ret)
{
    uint32_t n_slots = tmk_index_slots_for(n, FIRST_SLOTS);
    int rc = tmk_region_init(r, (size_t)n_slots * sizeof *ret->slots);
    if (rc == 0)
        *ret = tmk_index_of(r->base, FIRST_SLOTS);
    return rc;
}

int tmk_state_init(struct tmk_state *s, const struct tmk_state_limits *limits)
{
    *s = (struct tmk_state){.limits = *limits, .step = TMK_NO_STEP, .tail_step = TMK_NO_STEP};
    const struct tmk_state_limits *l = &s->limits;
    int rc = reserve_table(&s->regions[0], (uint64_t)l->max_blocks + 1, sizeof *s->entries,
                           (void **)&s->entries);
    if (rc == 0)
        rc = reserve_index(&s->regions[1], l->max_blocks, &s->entry_index);
    if (rc == 0)
        rc = reserve_table(&s->regions[2], (uint64_t)l->max_contexts + 1, sizeof *s->contexts,
                           (void **)&s->contexts);
    if (rc == 0)
        rc = reserve_index(&s->regions[3], l->max_contexts, &s->context_index);
    if (rc == 0)
        rc = reserve_table(&s->regions[4], l->max_threads, sizeof *s->thread_top,
                           (void **)&s->thread_top);
    if (rc == 0)
        rc = reserve_table(&s->regions[5], l->max_ranges, sizeof *s->ranges, (void **)&s->ranges);
    if (rc == 0)
        rc = reserve_table(&s->regions[6], (uint64_t)l->max_blocks + 1, sizeof *s->requested,
                           (void **)&s->requested);
    if (rc == 0)
        rc = tmk_segments_init(&s->segments, l->max_segments);
    if (rc < 0)
        tmk_state_fini(s);
    return rc;
}

void tmk_state_fini(struct tmk_state *s)
{
    for (size_t i = 0; i < sizeof s->regions / sizeof s->regions[0]; i++)
        tmk_region_fini(&s->regions[i]);
    tmk_segments_fini(&s->segments);
}

/* ---- entries ---- */

static uint64_t entry_hash(uint16_t device, uint64_t address)
{
    return tmk_hash_u64(address ^ ((uint64_t)device << 48));
}

/* Returns the number of the entry, 0 when there is none. */
static inline uint32_t find_block_entry(const struct tmk_state *s, uint64_t hash, uint16_t device,
                                        uint64_t address)
{
    struct tmk_probe probe = tmk_index_probe(&s->entry_index, hash);
    uint32_t i;
    while ((i = tmk_probe_next(&probe)) &&
           (s->entries[i].address != address || s->entries[i].device != device))
        continue;
    return i;
}

static void index_entries(struct tmk_state *s, uint32_t n_slots)
{
    tmk_index_reset(&s->entry_index, n_slots);
    for (uint32_t i = 1; i <= s->n_entries; i++)
        tmk_index_add(&s->entry_index, entry_hash(s->entries[i].device, s->entries[i].address), i);
}

static void drop_dead(struct tmk_state *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 1; i <= s->n_entries; i++)
        if (s->entries[i].live) {
            s->entries[++kept] = s->entries[i];
            if (s->has_requested)
                s->requested[kept] = s->requested[i];
        }
    s->n_entries = kept;
    index_entries(s, tmk_index_n_slots(&s->entry_index));
}

void tmk_state_set_requested(struct tmk_state *s, const struct tmk_block *b, uint64_t bytes)
{
    s->has_requested |= bytes != 0;
    if (s->has_requested)
        s->requested[tmk_state_index(s, b)] = bytes;
}

void tmk_state_compact(struct tmk_state *s)
{
    uint32_t dead = s->n_entries - s->n_live;
    if (dead > s->n_live + 65536 || (dead > 0 && s->n_entries > s->limits.max_blocks / 4 * 3))
        drop_dead(s);
    ASSERT_VALID(s);
}

void tmk_state_trim(struct tmk_state *s)
{
    drop_dead(s);
    tmk_region_trim(&s->regions[0], ((size_t)s->n_entries + 1) * sizeof *s->entries);
    index_entries(s, tmk_index_slots_for((uint64_t)s->n_entries + 1, FIRST_SLOTS));
    tmk_region_trim(&s->regions[1],
                    (size_t)tmk_index_n_slots(&s->entry_index) * sizeof *s->entry_index.slots);
    ASSERT_VALID(s);
}

struct tmk_block *tmk_state_find(const struct tmk_state *s, uint16_t device, uint64_t address)
{
    uint32_t i = find_block_entry(s, entry_hash(device, address), device, address);
    return i ? &s->entries[i] : NULL;
}

struct tmk_block *tmk_state_entry(struct tmk_state *s, uint16_t device, uint64_t address)
{
    uint64_t hash = entry_hash(device, address);
    uint32_t i = find_block_entry(s, hash, device, address);
    if (i)
        return &s->entries[i];
    if (s->n_entries >= s->limits.max_blocks)
        return NULL;
    if (!tmk_index_has_room(&s->entry_index))
        index_entries(s, 2 * tmk_index_n_slots(&s->entry_index));
    i = ++s->n_entries;
    tmk_index_add(&s->entry_index, hash, i);
    s->entries[i] = (struct tmk_block){.address = address, .device = device};
    ASSERT_VALID(s);
    return &s->entries[i];
}

/* ---- devices and steps ---- */

struct tmk_device_use *tmk_state_find_device(struct tmk_state *s, uint16_t device)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].device == device)
            return &s->devices[i];
    return NULL;
}

struct tmk_device_use *tmk_state_device(struct tmk_state *s, uint16_t device)
{
    struct tmk_device_use *known = tmk_state_find_device(s, device);
    if (known || s->n_devices == TMK_MAX_DEVICES)
        return known;
    struct tmk_device_use *d = &s->devices[s->n_devices++];
    *d = (struct tmk_device_use){.device = device};
    d->row = (struct tmk_step_row){.step = s->step,
                                   .device = device,
                                   .start_ns = s->step_start_ns,
                                   .peak_ns = s->step_start_ns};
    return d;
}

static void grow_device_use(struct tmk_device_use *d, uint64_t ns, uint64_t size_bytes)
{
    d->allocated_bytes += size_bytes;
    if (d->allocated_bytes > d->max_bytes)
        d->max_bytes = d->allocated_bytes;
    if (d->allocated_bytes > d->row.peak_bytes) {
        d->row.peak_bytes = d->allocated_bytes;
        d->row.peak_ns = ns;
    }
    d->row.n_allocs++;
    d->row.alloc_bytes += size_bytes;
}

static void shrink_device_use(struct tmk_device_use *d, uint64_t size_bytes)
{
    d->allocated_bytes -= size_bytes < d->allocated_bytes ? size_bytes : d->allocated_bytes;
    d->row.free_bytes += size_bytes;
}

void tmk_device_set_reserved(struct tmk_device_use *d, uint64_t bytes, uint64_t max_bytes)
{
    d->has_reserved = d->row.has_reserved = true;
    d->reserved_bytes = bytes;
    if (max_bytes > d->max_reserved_bytes)
        d->max_reserved_bytes = max_bytes;
    if (bytes > d->row.peak_reserved_bytes)
        d->row.peak_reserved_bytes = bytes;
}

void tmk_state_reserved(struct tmk_state *s, uint64_t ns, uint16_t device, uint64_t bytes)
{
    tmk_state_other(s, ns);
    struct tmk_device_use *d = tmk_state_device(s, device);
    if (d)
        tmk_device_set_reserved(d, bytes, bytes);
    ASSERT_VALID(s);
}

struct tmk_step_row tmk_state_open_row(const struct tmk_state *s, uint32_t i)
{
    assert(i < s->n_devices);
    struct tmk_step_row row = s->devices[i].row;
    row.ordinal = s->n_step_rows + i + 1;
    row.open = true;
    row.end_ns = s->now_ns;
    row.end_bytes = s->devices[i].allocated_bytes;
    row.end_reserved_bytes = s->devices[i].reserved_bytes;
    return row;
}

int64_t tmk_state_step_of(const struct tmk_state *s, int64_t step)
{
    return step == s->tail_step && step != TMK_NO_STEP ? step - 1 : step;
}

void tmk_state_step(struct tmk_state *s, uint64_t ns, int64_t step)
{
    tmk_state_other(s, ns);
    if (tmk_state_step_of(s, step) != step)
        return;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct tmk_step_row row = tmk_state_open_row(s, i);
        row.open = false;
        if (s->on_step_row)
            s->on_step_row(s->on_step_row_arg, &row);
        s->devices[i].row = (struct tmk_step_row){.step = step,
                                                  .device = row.device,
                                                  .start_ns = ns,
                                                  .peak_bytes = row.end_bytes,
                                                  .peak_ns = ns,
                                                  .has_reserved = row.has_reserved,
                                                  .peak_reserved_bytes = row.end_reserved_bytes};
    }
    s->n_step_rows += s->n_devices;
    s->step = step;
    s->step_start_ns = ns;
    s->n_step_module_events = 0;
    ASSERT_VALID(s);
}

/* ---- stages ---- */

enum tmk_stage tmk_stage_of(const char *name)
{
    static const struct {
        const char *name;
        enum tmk_stage stage;
    } names[] = {
        {"forward", TMK_STAGE_FORWARD},     {"backward", TMK_STAGE_BACKWARD},
        {"optimizer", TMK_STAGE_OPTIMIZER}, {"eval", TMK_STAGE_EVAL},
        {"data", TMK_STAGE_DATA},           {"model_load", TMK_STAGE_SETUP},
        {"wrap", TMK_STAGE_SETUP},          {"optimizer_setup", TMK_STAGE_SETUP},
        {"other", TMK_STAGE_SETUP},         {"privacy_setup", TMK_STAGE_SETUP},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].stage;
    return TMK_STAGE_OTHER;
}

void tmk_state_learn_stage(struct tmk_state *s, uint32_t name, enum tmk_stage stage)
{
    s->knows_stages = true;
    if (stage != TMK_STAGE_OTHER && s->n_stage_names < TMK_MAX_STAGE_NAMES)
        s->stage_names[s->n_stage_names++] = (struct tmk_stage_name){name, stage};
}

static uint8_t stage_kind(const struct tmk_state *s, uint32_t name)
{
    for (uint32_t i = 0; i < s->n_stage_names; i++)
        if (s->stage_names[i].name == name)
            return (uint8_t)s->stage_names[i].stage;
    return TMK_STAGE_OTHER;
}

/* ---- contexts and ranges ---- */

static uint64_t context_hash(uint32_t parent, uint8_t kind, uint32_t name)
{
    return tmk_hash_mix(((uint64_t)parent << 32) | name, kind);
}

static void index_contexts(struct tmk_state *s, uint32_t n_slots)
{
    tmk_index_reset(&s->context_index, n_slots);
    for (uint32_t i = 1; i <= s->n_contexts; i++) {
        const struct tmk_context *c = &s->contexts[i];
        tmk_index_add(&s->context_index, context_hash(c->parent, c->kind, c->name), i);
    }
}

/* Returns the number of the context, 0 when there is none. */
static uint32_t find_context(const struct tmk_state *s, uint64_t hash, uint32_t parent,
                             uint8_t kind, uint32_t name)
{
    struct tmk_probe probe = tmk_index_probe(&s->context_index, hash);
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;) {
        const struct tmk_context *c = &s->contexts[i];
        if (c->parent == parent && c->kind == kind && c->name == name)
            return i;
    }
    return 0;
}

uint32_t tmk_state_find_context(const struct tmk_state *s, uint32_t parent, uint8_t kind,
                                uint32_t name)
{
    return find_context(s, context_hash(parent, kind, name), parent, kind, name);
}

uint32_t tmk_state_context(struct tmk_state *s, uint32_t parent, uint8_t kind, uint32_t name)
{
    uint64_t hash = context_hash(parent, kind, name);
    uint32_t i = find_context(s, hash, parent, kind, name);
    if (i)
        return i;
    if (s->n_contexts >= s->limits.max_contexts) {
        s->n_unplaced++;
        return parent;
    }
    if (!tmk_index_has_room(&s->context_index))
        index_contexts(s, 2 * tmk_index_n_slots(&s->context_index));
    i = ++s->n_contexts;
    tmk_index_add(&s->context_index, hash, i);
    s->contexts[i] = (struct tmk_context){
        .parent = parent,
        .name = name,
        .module = kind == TIDEMARK_MODULE ? i : s->contexts[parent].module,
        .stage = kind == TIDEMARK_STAGE ? i : s->contexts[parent].stage,
        .kind = kind,
        .stage_kind = kind == TIDEMARK_STAGE ? stage_kind(s, name) : s->contexts[parent].stage_kind,
    };
    return i;
}

uint32_t tmk_state_thread_context(const struct tmk_state *s, uint32_t thread)
{
    if (thread >= s->n_threads || s->thread_top[thread] == 0)
        return 0;
    return s->ranges[s->thread_top[thread] - 1].context;
}

void tmk_state_open_range(struct tmk_state *s, uint32_t thread, uint8_t kind, uint32_t name,
                          uint64_t start_ns)
{
    if (thread >= s->limits.max_threads) {
        s->n_unplaced++;
        return;
    }
    if (thread >= s->n_threads)
        s->n_threads = thread + 1;
    uint32_t i = s->free_range;
    if (i)
        s->free_range = s->ranges[i - 1].outer;
    else if (s->n_ranges < s->limits.max_ranges)
        i = ++s->n_ranges;
    else {
        s->n_unplaced++;
        return;
    }
    uint32_t context = tmk_state_context(s, tmk_state_thread_context(s, thread), kind, name);
    uint32_t top = s->thread_top[thread];
    bool is_backward = kind == TIDEMARK_STAGE && stage_kind(s, name) == TMK_STAGE_BACKWARD;
    s->ranges[i - 1] = (struct tmk_open_range){
        .start_ns = start_ns,
        .context = context,
        .outer = top,
        .name = name,
        .stage = kind == TIDEMARK_STAGE ? i
                 : top                  ? s->ranges[top - 1].stage
                                        : 0,
        .kind = kind,
        .is_backward = is_backward,
        .in_backward = is_backward || (top && s->ranges[top - 1].in_backward),
    };
    s->thread_top[thread] = i;
    if (is_backward && (s->n_backward++ == 0 || start_ns < s->backward_start_ns))
        s->backward_start_ns = start_ns;
    ASSERT_VALID(s);
}

/* Finds when the oldest of the open backward stages began, after an older one was closed. This is
 * rare. */
static void find_backward_start(struct tmk_state *s)
{
    s->backward_start_ns = UINT64_MAX;
    for (uint32_t t = 0; t < s->n_threads; t++)
        for (uint32_t r = s->thread_top[t]; r; r = s->ranges[r - 1].outer)
            if (s->ranges[r - 1].is_backward && s->ranges[r - 1].start_ns < s->backward_start_ns)
                s->backward_start_ns = s->ranges[r - 1].start_ns;
}

/* Closes a thread's ranges from the innermost up to range `last`, and ends the backward stages
 * among them. */
static void end_backward(struct tmk_state *s, uint32_t thread, uint32_t last)
{
    uint32_t n_before = s->n_backward, outer = s->ranges[last - 1].outer;
    for (uint32_t r = s->thread_top[thread]; r != outer; r = s->ranges[r - 1].outer)
        s->n_backward -= s->ranges[r - 1].is_backward;
    s->thread_top[thread] = outer;
    if (s->n_backward != n_before && s->n_backward > 0)
        find_backward_start(s);
}

uint32_t tmk_state_push(struct tmk_state *s, uint64_t ns, uint32_t thread, uint8_t kind,
                        uint32_t name)
{
    tmk_state_other(s, ns);
    s->n_step_module_events += kind == TIDEMARK_MODULE;
    tmk_state_open_range(s, thread, kind, name, ns);
    ASSERT_VALID(s);
    return tmk_state_thread_context(s, thread);
}

bool tmk_state_pop(struct tmk_state *s, uint64_t ns, uint32_t thread, uint8_t kind,
                   struct tmk_open_range *ret_range)
{
    tmk_state_other(s, ns);
    uint32_t found = thread < s->n_threads ? s->thread_top[thread] : 0;
    while (found && s->ranges[found - 1].kind != kind)
        found = s->ranges[found - 1].outer;
    if (!found)
        return false;
    s->n_step_module_events += kind == TIDEMARK_MODULE;
    if (ret_range)
        *ret_range = s->ranges[found - 1];
    uint32_t top = s->thread_top[thread], outer = s->ranges[found - 1].outer;
    if (s->n_backward > 0)
        end_backward(s, thread, found);
    s->ranges[found - 1].outer = s->free_range;
    s->free_range = top;
    s->thread_top[thread] = outer;
    ASSERT_VALID(s);
    return true;
}

void tmk_state_forget_ranges(struct tmk_state *s)
{
    memset(s->thread_top, 0, (size_t)s->n_threads * sizeof *s->thread_top);
    s->n_ranges = s->free_range = s->n_backward = 0;
    ASSERT_VALID(s);
}

/* ---- blocks ---- */

void tmk_state_other(struct tmk_state *s, uint64_t ns)
{
    s->now_ns = ns;
    s->n_events++;
}

/* ---- what blocks are for ---- */

static enum tmk_stage birth_of(const struct tmk_state *s, const struct tmk_block *b)
{
    return (enum tmk_stage)s->contexts[b->context].stage_kind;
}

/* Whether tags do not say what the block is. "Input" is a hint: it does not count for a block that
 * a stage of training made. */
static inline bool is_untold(const struct tmk_state *s, const struct tmk_block *b)
{
    if (!s->knows_stages || (b->category != TIDEMARK_UNKNOWN && b->category != TIDEMARK_INPUT))
        return false;
    enum tmk_stage birth = birth_of(s, b);
    return b->category == TIDEMARK_UNKNOWN ||
           (birth >= TMK_STAGE_FORWARD && birth <= TMK_STAGE_EVAL);
}

/* The category of a block that outlives the stage it was made in, by that stage. */
static const uint8_t category_of_survivor[TMK_N_STAGES] = {
    [TMK_STAGE_NONE] = TIDEMARK_UNKNOWN,       [TMK_STAGE_OTHER] = TIDEMARK_OTHER,
    [TMK_STAGE_FORWARD] = TIDEMARK_ACTIVATION, [TMK_STAGE_BACKWARD] = TIDEMARK_GRADIENT,
    [TMK_STAGE_EVAL] = TIDEMARK_ACTIVATION,    [TMK_STAGE_OPTIMIZER] = TIDEMARK_OPTIMIZER_STATE,
    [TMK_STAGE_DATA] = TIDEMARK_INPUT,         [TMK_STAGE_SETUP] = TIDEMARK_OTHER,
};

/* Whether the block was made in the current backward, by any of autograd's threads. */
static bool is_of_this_backward(const struct tmk_state *s, const struct tmk_block *b)
{
    return s->n_backward > 0 && b->alloc_ns >= s->backward_start_ns;
}

/* The category of a block that `thread` frees now, when tags do not say what it is. */
static uint8_t category_at_free(const struct tmk_state *s, const struct tmk_block *b,
                                uint32_t thread)
{
    uint32_t top = thread < s->n_threads ? s->thread_top[thread] : 0;
    const struct tmk_open_range *range = top ? &s->ranges[top - 1] : NULL;
    const struct tmk_open_range *stage =
        range && range->stage ? &s->ranges[range->stage - 1] : NULL;
    bool in_backward = range && range->in_backward;
    enum tmk_stage birth = birth_of(s, b);
    if (birth == TMK_STAGE_BACKWARD)
        return in_backward && is_of_this_backward(s, b) ? TIDEMARK_AUTOGRAD_DETAIL
                                                        : TIDEMARK_GRADIENT;
    if (birth != TMK_STAGE_NONE && stage && b->alloc_ns >= stage->start_ns &&
        s->contexts[stage->context].stage_kind == birth)
        return TIDEMARK_TEMPORARY; /* it lived and died in the same range */
    bool is_free = birth == TMK_STAGE_NONE || birth == TMK_STAGE_OTHER || birth == TMK_STAGE_SETUP;
    return in_backward && is_free ? TIDEMARK_ACTIVATION : category_of_survivor[birth];
}

uint8_t tmk_state_category(const struct tmk_state *s, const struct tmk_block *b)
{
    if (!b->live || !is_untold(s, b))
        return b->category;
    enum tmk_stage birth = birth_of(s, b);
    return birth == TMK_STAGE_BACKWARD && is_of_this_backward(s, b) ? TIDEMARK_AUTOGRAD_DETAIL
                                                                    : category_of_survivor[birth];
}

uint32_t tmk_state_name(const struct tmk_state *s, const struct tmk_block *b)
{
    return b->live && b->category == TIDEMARK_INPUT && is_untold(s, b) ? 0 : b->name;
}

struct tmk_block tmk_state_settled(const struct tmk_state *s, const struct tmk_block *b)
{
    struct tmk_block settled = *b;
    settled.category = tmk_state_category(s, b);
    settled.name = tmk_state_name(s, b);
    return settled;
}

/* ---- blocks that go ---- */

static void take_block_off(struct tmk_state *s, struct tmk_block *b)
{
    struct tmk_device_use *d = tmk_state_device(s, b->device);
    if (d)
        shrink_device_use(d, b->size_bytes);
    b->live = 0;
    s->n_live--;
}

void tmk_state_give_up(struct tmk_state *s, struct tmk_block *b)
{
    assert(b->live);
    struct tmk_block settled = tmk_state_settled(s, b);
    b->category = settled.category;
    b->name = settled.name;
    take_block_off(s, b);
    ASSERT_VALID(s);
}

void tmk_state_replace(struct tmk_state *s, struct tmk_block *b)
{
    s->n_replaced++;
    tmk_state_give_up(s, b);
}

static bool is_last_device(const struct tmk_state *s, const struct tmk_device_use *ended)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (&s->devices[i] != ended && s->devices[i].allocated_bytes > 0)
            return false;
    return true;
}

/* Bytes that are still counted after all blocks are gone belonged to untracked blocks. */
void tmk_state_device_end(struct tmk_state *s, uint64_t ns, uint16_t device)
{
    tmk_state_other(s, ns);
    struct tmk_device_use *d = tmk_state_find_device(s, device);
    if (!d)
        return;
    for (uint32_t i = 1; i <= s->n_entries; i++)
        if (s->entries[i].live && s->entries[i].device == device)
            tmk_state_give_up(s, &s->entries[i]);
    shrink_device_use(d, d->allocated_bytes);
    if (is_last_device(s, d))
        s->n_outside = 0;
    ASSERT_VALID(s);
}

void tmk_state_alloc(struct tmk_state *s, struct tmk_block *b, uint64_t ns, uint16_t device,
                     uint32_t thread, const struct tmk_shape *shape)
{
    assert(!b || (!b->live && b->device == device));
    tmk_state_other(s, ns);
    s->n_allocs++;
    struct tmk_device_use *d = tmk_state_device(s, device);
    if (d)
        grow_device_use(d, ns, shape->size_bytes);
    s->n_untracked += !b || !d;
    s->n_outside += !b;
    if (!b)
        return;
    b->size_bytes = shape->size_bytes;
    b->alloc_ns = ns;
    b->serial = s->n_allocs;
    b->step = s->step;
    b->stack = shape->stack;
    b->stream = shape->stream;
    b->context = tmk_state_thread_context(s, thread) & CONTEXT_MASK;
    b->thread = thread;
    b->name = 0;
    b->category = TIDEMARK_UNKNOWN;
    b->live = 1;
    s->n_live++;
    if (s->has_requested || shape->requested_bytes)
        tmk_state_set_requested(s, b, shape->requested_bytes);
    ASSERT_VALID(s);
}

void tmk_state_segment(struct tmk_state *s, uint64_t ns, uint32_t thread,
                       const struct tmk_driver_segment *segment)
{
    struct tmk_driver_segment item = *segment;
    tmk_state_other(s, ns);
    item.alloc_ns = ns;
    item.serial = s->segments.n_begun + 1;
    item.step = s->step;
    item.thread = thread;
    item.context = tmk_state_thread_context(s, thread);
    tmk_segments_begin(&s->segments, &item);
    ASSERT_VALID(s);
}

bool tmk_state_segment_end(struct tmk_state *s, uint64_t ns, unsigned kind, uint64_t address,
                           struct tmk_driver_segment *ret_segment)
{
    tmk_state_other(s, ns);
    return tmk_segments_end(&s->segments, kind, address, ret_segment);
}

bool tmk_state_free(struct tmk_state *s, struct tmk_block *b, uint64_t ns, uint16_t device,
                    uint32_t thread)
{
    assert(!b || b->device == device);
    tmk_state_other(s, ns);
    s->n_frees++;
    struct tmk_device_use *d = tmk_state_device(s, device);
    if (d)
        d->row.n_frees++;
    if (!b || !b->live) {
        if (s->n_outside > 0)
            s->n_outside--;
        else
            s->n_unknown_free++;
        return false;
    }
    if (is_untold(s, b)) {
        if (b->category == TIDEMARK_INPUT)
            b->name = 0; /* it came with a hint that does not count */
        b->category = category_at_free(s, b, thread);
    }
    take_block_off(s, b);
    ASSERT_VALID(s);
    return true;
}

bool tmk_state_tag(struct tmk_state *s, struct tmk_block *b, uint64_t ns, uint8_t category,
                   uint32_t name)
{
    tmk_state_other(s, ns);
    if (!b || !b->live)
        return false;
    bool is_hint = category == TIDEMARK_INPUT || category == TIDEMARK_KV_CACHE;
    if (is_hint && b->category != TIDEMARK_UNKNOWN && b->category != TIDEMARK_INPUT)
        return false;
    b->category = category;
    b->name = name;
    return true;
}

void tmk_state_forget_blocks(struct tmk_state *s)
{
    s->n_entries = s->n_live = 0;
    s->n_outside = 0;
    tmk_index_reset(&s->entry_index, FIRST_SLOTS);
    ASSERT_VALID(s);
}

void tmk_state_put(struct tmk_state *s, struct tmk_block *b)
{
    s->n_live += !b->live;
    b->live = 1;
    ASSERT_VALID(s);
}

void tmk_state_drop(struct tmk_state *s, struct tmk_block *b)
{
    s->n_live -= b->live;
    b->live = 0;
    ASSERT_VALID(s);
}

void tmk_state_put_brief(struct tmk_state *s, struct tmk_block *b, uint64_t size_bytes,
                         uint64_t now_ns)
{
    tmk_state_drop(s, b);
    *b = (struct tmk_block){.address = b->address,
                            .device = b->device,
                            .size_bytes = size_bytes,
                            .alloc_ns = now_ns,
                            .step = TMK_NO_STEP};
    tmk_state_set_requested(s, b, 0);
    tmk_state_put(s, b);
}

uint64_t tmk_state_n_without_details(const struct tmk_state *s)
{
    uint64_t n = s->n_outside;
    for (uint32_t i = 1; i <= s->n_entries; i++)
        n += s->entries[i].live && s->entries[i].serial == 0;
    return n;
}
