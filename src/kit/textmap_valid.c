/* SPDX-License-Identifier: MIT */
/* kit/textmap_valid.c - the invariants of textmap.h. */
#include "kit/textmap.h"

#include "base/valid.h"

bool tmk_textmap_is_valid(const struct tmk_textmap *m)
{
    uint64_t n_used = 0;
    TMK_HOLDS(m->n <= m->n_slots / 2 && m->n <= m->room);
    for (uint32_t at = 0; at < m->n_slots; at++) {
        TMK_HOLDS(m->slots[at] <= m->n);
        n_used += m->slots[at] != 0;
    }
    TMK_HOLDS(n_used == m->n);
    for (uint64_t i = 0; i < m->n; i++) {
        uint32_t found = 0;
        TMK_HOLDS(tmk_textmap_find(m, m->texts[i], &found) && found == i);
    }
    return true;
}
