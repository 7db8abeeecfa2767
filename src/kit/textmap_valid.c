/* SPDX-License-Identifier: MIT */
/* kit/textmap_valid.c - the invariants of textmap.h. */
#include "base/index.h"
#include "kit/textmap.h"

#include "base/valid.h"

uint64_t tmk_textmap_check_cost(const struct tmk_textmap *m)
{
    return m->n * 8 + tmk_index_n_slots(&m->index) / 4;
}

bool tmk_textmap_is_valid(const struct tmk_textmap *m)
{
    TMK_HOLDS(m->n <= m->room);
    TMK_HOLDS(m->index.n == m->n);
    if (!tmk_index_is_valid(&m->index))
        return false;
    for (uint64_t i = 0; i < m->n; i++) {
        uint32_t found = 0;
        TMK_HOLDS(tmk_textmap_find(m, m->texts[i], &found) && found == i);
    }
    return true;
}
