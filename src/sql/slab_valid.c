/* SPDX-License-Identifier: MIT */
/* sql/slab_valid.c - the invariants of slab.h. */
#include "sql/slab.h"

#include <stddef.h>

#include "base/valid.h"

/* Adds what is filled of the block to *bytes. */
static bool slab_is_valid(const struct tmk_slab *slab, uint64_t *bytes)
{
    uint32_t n = 0;
    size_t at = sizeof *slab;
    TMK_HOLDS(slab->used <= slab->size);
    while (at < slab->used) {
        const void *start = (const uint8_t *)slab + at;
        const struct tmk_slab_piece *piece = start;
        TMK_HOLDS(piece->slab == slab);
        TMK_HOLDS(piece->n_bytes >= sizeof *piece && piece->n_bytes % 8 == 0 &&
                  piece->n_bytes <= slab->used - at);
        at += piece->n_bytes;
        n++;
    }
    TMK_HOLDS(slab->n_pieces > 0 && slab->n_pieces <= n);
    *bytes += slab->used - sizeof *slab;
    return true;
}

bool tmk_slabs_is_valid(const struct tmk_slabs *s)
{
    uint64_t bytes = 0;
    const struct tmk_slab *newer = NULL;
    for (const struct tmk_slab *slab = s->newest; slab; slab = slab->older) {
        TMK_HOLDS(slab->newer == newer && slab != s->spare);
        if (!slab_is_valid(slab, &bytes))
            return false;
        newer = slab;
    }
    TMK_HOLDS(s->n_bytes <= bytes);
    return true;
}
