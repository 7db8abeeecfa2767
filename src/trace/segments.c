/* SPDX-License-Identifier: MIT */
/* trace/segments.c - see segments.h. A removed segment leaves no gap among the items. */
#include "trace/segments.h"

#include "base/hash.h"
#include "base/valid.h"

#define ASSERT_VALID(s) TMK_ASSERT_VALID(tmk_segments_is_valid(s), tmk_segments_check_cost(s))

enum { FIRST_SLOTS = 64 };

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
    uint32_t n_slots = tmk_index_slots_for(max, FIRST_SLOTS);
    *s = (struct tmk_segments){.max = max};
    int rc = tmk_region_init(&s->regions[0], (size_t)max * sizeof *s->items);
    if (rc == 0)
        rc = tmk_region_init(&s->regions[1], (size_t)n_slots * sizeof *s->index.slots);
    if (rc < 0) {
        tmk_segments_fini(s);
        return rc;
    }
    s->items = s->regions[0].base;
    s->index = tmk_index_of(s->regions[1].base, FIRST_SLOTS);
    return 0;
}

void tmk_segments_fini(struct tmk_segments *s)
{
    tmk_region_fini(&s->regions[0]);
    tmk_region_fini(&s->regions[1]);
    *s = (struct tmk_segments){0};
}

static uint64_t segment_hash(unsigned kind, uint64_t address)
{
    return tmk_hash_u64(address ^ (uint64_t)kind << 56);
}

/* The number of the segment; 0 when there is none. */
static uint32_t find_segment(const struct tmk_segments *s, unsigned kind, uint64_t address)
{
    struct tmk_probe probe = tmk_index_probe(&s->index, segment_hash(kind, address));
    uint32_t i;
    while ((i = tmk_probe_next(&probe)) &&
           (s->items[i - 1].address != address || s->items[i - 1].kind != kind))
        continue;
    return i;
}

static void index_segments(struct tmk_segments *s, uint32_t n_slots)
{
    tmk_index_reset(&s->index, n_slots);
    for (uint32_t i = 1; i <= s->n; i++)
        tmk_index_add(&s->index, segment_hash(s->items[i - 1].kind, s->items[i - 1].address), i);
}

struct tmk_driver_segment *tmk_segments_find(const struct tmk_segments *s, unsigned kind,
                                             uint64_t address)
{
    uint32_t i = find_segment(s, kind, address);
    return i ? &s->items[i - 1] : NULL;
}

void tmk_segments_begin(struct tmk_segments *s, const struct tmk_driver_segment *item)
{
    uint32_t i = find_segment(s, item->kind, item->address);
    s->n_begun++;
    if (!i && s->n == s->max) {
        s->n_lost++;
        return;
    }
    if (!i) {
        if (!tmk_index_has_room(&s->index))
            index_segments(s, 2 * tmk_index_n_slots(&s->index));
        i = ++s->n;
        tmk_index_add(&s->index, segment_hash(item->kind, item->address), i);
    }
    s->items[i - 1] = *item;
    ASSERT_VALID(s);
}

bool tmk_segments_end(struct tmk_segments *s, unsigned kind, uint64_t address,
                      struct tmk_driver_segment *ret_item)
{
    uint32_t i = find_segment(s, kind, address);
    if (!i)
        return false;
    if (ret_item)
        *ret_item = s->items[i - 1];
    tmk_index_remove(&s->index, segment_hash(kind, address), i);
    uint32_t last = s->n--;
    if (i != last) { /* the last item takes its place */
        const struct tmk_driver_segment *moved = &s->items[last - 1];
        tmk_index_renumber(&s->index, segment_hash(moved->kind, moved->address), last, i);
        s->items[i - 1] = *moved;
    }
    ASSERT_VALID(s);
    return true;
}

void tmk_segments_forget(struct tmk_segments *s)
{
    s->n = 0;
    tmk_index_reset(&s->index, FIRST_SLOTS);
    ASSERT_VALID(s);
}
