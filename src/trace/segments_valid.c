/* SPDX-License-Identifier: MIT */
/* trace/segments_valid.c - the invariants of segments.h. */
#include "trace/segments.h"

#include "base/valid.h"

/* Larger tables are mostly empty: there the slots are looked at around their items only. */
enum { MAX_SCANNED_SLOTS = 1 << 16 };

static bool table_is_valid(const struct tmk_segments *s)
{
    uint32_t n_used = 0;
    TMK_HOLDS((s->n_slots & (s->n_slots - 1)) == 0 && s->n <= s->n_slots / 2);
    for (uint32_t at = 0; at < s->n_slots && s->n_slots <= MAX_SCANNED_SLOTS; at++) {
        TMK_HOLDS(s->slots[at] <= s->n);
        n_used += s->slots[at] != 0;
    }
    TMK_HOLDS(s->n_slots > MAX_SCANNED_SLOTS || n_used == s->n);
    return true;
}

uint64_t tmk_segments_check_cost(const struct tmk_segments *s)
{
    return s->n + (s->n_slots <= MAX_SCANNED_SLOTS ? s->n_slots / 2 : 0);
}

bool tmk_segments_is_valid(const struct tmk_segments *s)
{
    TMK_HOLDS(s->n <= s->max);
    if (!table_is_valid(s))
        return false;
    for (uint32_t i = 0; i < s->n; i++)
        TMK_HOLDS(tmk_segments_find(s, s->items[i].kind, s->items[i].address) == &s->items[i]);
    return true;
}
