/* SPDX-License-Identifier: MIT */
/* record/intern.c - see intern.h. */
#include "record/intern.h"

#include <string.h>

#include "base/hash.h"
#include "base/region.h"

struct slot {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic uint32_t id;   /* 0: another thread is about to set it */
};

struct table {
    struct slot *slots;
    uint32_t mask;
    _Atomic uint32_t n_ids; /* handed out */
    struct tmk_region memory;
};

enum {
    STRING_SLOTS = 1 << 17,
    SITE_SLOTS = 1 << 15,
    FRAME_SLOTS = 1 << 17,
    STACK_SLOTS = 1 << 17,
    MAX_PROBES = 64,
};

/* Sites and stacks share the numbers of stacks, sites.n_ids; all frames those of n_frames. */
static struct table strings, sites, frames, stacks;
static _Atomic uint32_t n_frames;

static int reset_table(struct table *t, uint32_t n_slots)
{
    int rc = 0;
    if (!t->memory.base)
        rc = tmk_region_init(&t->memory, n_slots * sizeof(struct slot));
    else
        tmk_region_clear(&t->memory);
    t->slots = t->memory.base;
    t->mask = n_slots - 1;
    atomic_store(&t->n_ids, 0);
    return rc;
}

int tmk_intern_reset(void)
{
    atomic_store(&n_frames, 0);
    int rc = reset_table(&strings, STRING_SLOTS);
    if (rc == 0)
        rc = reset_table(&sites, SITE_SLOTS);
    if (rc == 0)
        rc = reset_table(&frames, FRAME_SLOTS);
    return rc < 0 ? rc : reset_table(&stacks, STACK_SLOTS);
}

/* The slot with this hash or the free one where it belongs; NULL when the table is crowded. */
static struct slot *find(struct table *t, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & t->mask;
    for (int i = 0; i < MAX_PROBES; i++, at = (at + 1) & t->mask) {
        uint64_t there = atomic_load_explicit(&t->slots[at].hash, memory_order_acquire);
        if (there == hash || there == 0)
            return &t->slots[at];
    }
    return NULL;
}

/* Mostly it is the first slot looked at. */
static inline uint32_t known_id(struct table *t, uint64_t hash)
{
    struct slot *slot = &t->slots[(uint32_t)hash & t->mask];
    if (__builtin_expect(atomic_load_explicit(&slot->hash, memory_order_acquire) != hash, 0)) {
        slot = find(t, hash);
        if (!slot || atomic_load_explicit(&slot->hash, memory_order_relaxed) != hash)
            return 0;
    }
    return atomic_load_explicit(&slot->id, memory_order_acquire);
}

/* Remember that `hash` is `id`. Losing the race for the slot is fine: both ids are defined. */
static void remember(struct table *t, uint64_t hash, uint32_t id)
{
    struct slot *slot = find(t, hash);
    uint64_t free_hash = 0;
    if (slot && atomic_compare_exchange_strong(&slot->hash, &free_hash, hash))
        atomic_store_explicit(&slot->id, id, memory_order_release);
}

uint32_t tmk_intern_string(struct tmk_lane *lane, const char *text)
{
    if (!text)
        return 0;
    size_t n = strnlen(text, TMK_STRING_MAX_BYTES);
    uint64_t hash = tmk_hash_bytes(text, n) | 1;
    uint32_t id = known_id(&strings, hash);
    if (id)
        return id;
    if (!find(&strings, hash))
        return 0;
    id = 1 + atomic_fetch_add(&strings.n_ids, 1);
    if (!tmk_lane_put_text(lane, TMK_KIND_DEF_STRING, id, 0, text, n))
        return 0;
    remember(&strings, hash, id);
    return id;
}

static uint64_t hash_site(const struct tidemark_site *site)
{
    return tmk_hash_fold((uintptr_t)site->file,
                         (uintptr_t)site->function ^ ((uint64_t)site->line << 40)) |
           1;
}

/* A new frame: its id, 0 when the definition was dropped. */
static uint32_t define_frame(struct tmk_lane *lane, uint8_t kind, uint64_t a, uint64_t b)
{
    uint32_t id = 1 + atomic_fetch_add(&n_frames, 1);
    return tmk_lane_put(lane, kind, 0, id, a, b) ? id : 0;
}

static uint32_t define_site_frame(struct tmk_lane *lane, const struct tidemark_site *site)
{
    uint64_t file = tmk_intern_string(lane, site->file);
    uint32_t function = tmk_intern_string(lane, site->function);
    return define_frame(lane, TMK_KIND_DEF_FRAME, file << 32 | function, site->line);
}

/* A new stack, in its table under `hash`. */
static uint32_t define_stack(struct tmk_lane *lane, struct table *t, uint64_t hash,
                             const uint32_t *ids, uint32_t n)
{
    uint32_t id = 1 + atomic_fetch_add(&sites.n_ids, 1);
    if (!tmk_lane_put_text(lane, TMK_KIND_DEF_STACK, id, 0, ids, n * sizeof *ids))
        return 0;
    remember(t, hash, id);
    return id;
}

__attribute__((noinline)) static uint32_t define_site(struct tmk_lane *lane, uint64_t hash,
                                                      const struct tidemark_site *site)
{
    if (!find(&sites, hash))
        return 0;
    uint32_t frame = define_site_frame(lane, site);
    return frame ? define_stack(lane, &sites, hash, &frame, 1) : 0;
}

uint32_t tmk_intern_site(struct tmk_lane *lane, const struct tidemark_site *site)
{
    if (!site)
        return 0;
    uint64_t hash = hash_site(site);
    uint32_t id = known_id(&sites, hash);
    return id ? id : define_site(lane, hash, site);
}

uint32_t tmk_intern_site_frame(struct tmk_lane *lane, const struct tidemark_site *site)
{
    if (!site)
        return 0;
    uint64_t hash = hash_site(site);
    uint32_t id = known_id(&frames, hash);
    if (id || !find(&frames, hash))
        return id;
    id = define_site_frame(lane, site);
    if (id)
        remember(&frames, hash, id);
    return id;
}

uint32_t tmk_intern_native_frame(struct tmk_lane *lane, uint32_t module, uint64_t address)
{
    uint64_t hash = tmk_hash_mix(module, address) | 1;
    uint32_t id = known_id(&frames, hash);
    if (id || !find(&frames, hash))
        return id;
    id = define_frame(lane, TMK_KIND_DEF_NATIVE_FRAME, module, address);
    if (id)
        remember(&frames, hash, id);
    return id;
}

uint32_t tmk_intern_stack(struct tmk_lane *lane, const uint32_t *ids, uint32_t n)
{
    if (n == 0)
        return 0;
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++)
        hash = tmk_hash_fold(hash, ids[i]);
    hash |= 1;
    uint32_t id = known_id(&stacks, hash);
    if (id || !find(&stacks, hash))
        return id;
    return define_stack(lane, &stacks, hash, ids, n);
}
