/* SPDX-License-Identifier: MIT */
/* trace/segments.c - see segments.h. The table is at most half full; what goes leaves no gap in it,
 * neither among the items nor in the chains of slots. */
#include "trace/segments.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/valid.h"

#define ASSERT_VALID(s) TMK_ASSERT_VALID(tmk_segments_is_valid(s), tmk_segments_check_cost(s))

static const struct {
    const char *text;
    bool is_on_device;
} kinds[TMK_N_SEGMENT_KINDS] = {
#define X(name, value, text, is_on_device) [name] = {text, is_on_device},
    TMK_SEGMENT_KINDS(X)
#undef X
};

const char *tmk_segment_kind_text(unsigned kind)
{
    return kind < TMK_N_SEGMENT_KINDS && kinds[kind].text ? kinds[kind].text : "?";
}

bool tmk_segment_is_on_device(unsigned kind)
{
    return kind < TMK_N_SEGMENT_KINDS && kinds[kind].is_on_device;
}

bool tmk_segment_is_of_host(unsigned kind)
{
    return kind == TMK_SEGMENT_PINNED || kind == TMK_SEGMENT_REGISTERED;
}

int tmk_segments_init(struct tmk_segments *s, uint32_t max)
{
    uint32_t n_slots = 2;
    while (n_slots / 2 < max && n_slots < 1u << 31)
        n_slots *= 2;
    *s = (struct tmk_segments){.max = max, .n_slots = n_slots};
    int rc = tmk_region_init(&s->regions[0], (size_t)max * sizeof *s->items);
    if (rc == 0)
        rc = tmk_region_init(&s->regions[1], (size_t)n_slots * sizeof *s->slots);
    if (rc < 0)
        tmk_segments_fini(s);
    s->items = s->regions[0].base;
    s->slots = s->regions[1].base;
    return rc;
}

void tmk_segments_fini(struct tmk_segments *s)
{
    tmk_region_fini(&s->regions[0]);
    tmk_region_fini(&s->regions[1]);
    *s = (struct tmk_segments){0};
}

static uint32_t home_of(const struct tmk_segments *s, unsigned kind, uint64_t address)
{
    return (uint32_t)tmk_hash_u64(address ^ (uint64_t)kind << 56) & (s->n_slots - 1);
}

/* The slot that has it, or the free one where it would be. */
static uint32_t slot_of(const struct tmk_segments *s, unsigned kind, uint64_t address)
{
    uint32_t at = home_of(s, kind, address);
    for (;; at = (at + 1) & (s->n_slots - 1)) {
        const struct tmk_driver_segment *item = s->slots[at] ? &s->items[s->slots[at] - 1] : NULL;
        if (!item || (item->address == address && item->kind == kind))
            return at;
    }
}

struct tmk_driver_segment *tmk_segments_find(const struct tmk_segments *s, unsigned kind,
                                             uint64_t address)
{
    uint32_t i = s->slots[slot_of(s, kind, address)];
    return i ? &s->items[i - 1] : NULL;
}

void tmk_segments_begin(struct tmk_segments *s, const struct tmk_driver_segment *item)
{
    uint32_t at = slot_of(s, item->kind, item->address);
    s->n_begun++;
    if (!s->slots[at] && s->n == s->max) {
        s->n_lost++;
        return;
    }
    if (!s->slots[at])
        s->slots[at] = ++s->n;
    s->items[s->slots[at] - 1] = *item;
    ASSERT_VALID(s);
}

/* Those that follow in the chain move up to where a search would miss them otherwise. */
static void free_slot(struct tmk_segments *s, uint32_t hole)
{
    uint32_t mask = s->n_slots - 1;
    for (uint32_t at = (hole + 1) & mask; s->slots[at]; at = (at + 1) & mask) {
        const struct tmk_driver_segment *item = &s->items[s->slots[at] - 1];
        uint32_t home = home_of(s, item->kind, item->address);
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        s->slots[hole] = s->slots[at];
        hole = at;
    }
    s->slots[hole] = 0;
}

bool tmk_segments_end(struct tmk_segments *s, unsigned kind, uint64_t address,
                      struct tmk_driver_segment *ret_item)
{
    uint32_t at = slot_of(s, kind, address), i = s->slots[at];
    if (!i)
        return false;
    if (ret_item)
        *ret_item = s->items[i - 1];
    free_slot(s, at);
    uint32_t last = s->n--;
    if (i != last) { /* the last item takes its place */
        const struct tmk_driver_segment *moved = &s->items[last - 1];
        s->slots[slot_of(s, moved->kind, moved->address)] = i;
        s->items[i - 1] = *moved;
    }
    ASSERT_VALID(s);
    return true;
}

void tmk_segments_forget(struct tmk_segments *s)
{
    s->n = 0;
    memset(s->slots, 0, (size_t)s->n_slots * sizeof *s->slots);
    ASSERT_VALID(s);
}
