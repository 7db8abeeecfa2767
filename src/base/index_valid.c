/* SPDX-License-Identifier: MIT */
/* base/index_valid.c - the invariant of index.h. */
#include "base/index.h"

#include "base/valid.h"

bool tmk_index_is_valid(const struct tmk_index *x)
{
    uint32_t n = 0, mask = x->mask;
    TMK_HOLDS(((mask + 1) & mask) == 0);
    for (uint64_t at = 0; x->slots && at <= mask; at++) {
        uint64_t slot = x->slots[at];
        if (!slot)
            continue;
        n++;
        TMK_HOLDS((uint32_t)slot != 0);
        for (uint32_t i = (uint32_t)(slot >> 32) & mask; i != at; i = (i + 1) & mask)
            TMK_HOLDS(x->slots[i] != 0);
    }
    TMK_HOLDS(n == x->n);
    TMK_HOLDS(n <= (mask + 1) / 2);
    return true;
}
