/* SPDX-License-Identifier: MIT */
/* trace/segments_valid.c - the invariants of segments.h. */
#include "base/index.h"
#include "trace/segments.h"

#include "base/valid.h"

uint64_t tmk_segments_check_cost(const struct tmk_segments *s)
{
    return s->n + tmk_index_n_slots(&s->index) / 4;
}

bool tmk_segments_is_valid(const struct tmk_segments *s)
{
    TMK_HOLDS(s->n <= s->max);
    TMK_HOLDS(s->index.n == s->n);
    if (!tmk_index_is_valid(&s->index))
        return false;
    for (uint32_t i = 0; i < s->n; i++)
        TMK_HOLDS(tmk_segments_find(s, s->items[i].kind, s->items[i].address) == &s->items[i]);
    return true;
}
