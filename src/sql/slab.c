/* SPDX-License-Identifier: MIT */
/* sql/slab.c - see slab.h. The first block is small, since most tables are. */
#include "sql/slab.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { FIRST_BYTES = 1 << 16, SLAB_BYTES = 4 << 20, PAGE_BYTES = 4096 };

struct tmk_slab {
    struct tmk_slab *older, *newer;
    size_t used, size; /* of the whole block, this header included */
    uint32_t n_pieces;
};

struct slab_piece { /* stands before each */
    struct tmk_slab *slab;
    uint64_t n_bytes;
};

static struct tmk_slab *make_slab(size_t size)
{
    struct tmk_slab *slab = size >= SLAB_BYTES ? aligned_alloc(PAGE_BYTES, size) : malloc(size);
#ifdef MADV_POPULATE_WRITE
    if (slab && size >= SLAB_BYTES)
        (void)madvise(slab, size,
                      MADV_POPULATE_WRITE); /* optional: without it, memory is only slower */
#endif
    return slab;
}

static struct tmk_slab *add_slab(struct tmk_slabs *s, size_t n)
{
    size_t size = s->newest || s->spare ? SLAB_BYTES : FIRST_BYTES;
    n += sizeof(struct tmk_slab);
    if (size < n)
        size = (n + SLAB_BYTES - 1) / SLAB_BYTES * SLAB_BYTES;
    struct tmk_slab *slab = s->spare;
    if (slab && slab->size >= n) {
        size = slab->size;
        s->spare = NULL;
    } else if (!(slab = make_slab(size))) {
        return NULL;
    }
    *slab = (struct tmk_slab){.older = s->newest, .used = sizeof *slab, .size = size};
    if (s->newest)
        s->newest->newer = slab;
    return s->newest = slab;
}

void *tmk_slabs_take(struct tmk_slabs *s, size_t n)
{
    if (n > SIZE_MAX / 2)
        return NULL;
    n = ((n + 7) & ~(size_t)7) + sizeof(struct slab_piece);
    struct tmk_slab *slab = s->newest;
    if (!slab || slab->size - slab->used < n)
        slab = add_slab(s, n);
    if (!slab)
        return NULL;
    struct slab_piece *piece = (struct slab_piece *)(void *)((uint8_t *)slab + slab->used);
    *piece = (struct slab_piece){.slab = slab, .n_bytes = n};
    slab->used += n;
    slab->n_pieces++;
    s->n_bytes += n;
    return piece + 1;
}

void tmk_slabs_drop(struct tmk_slabs *s, void *piece)
{
    const struct slab_piece *head = (const struct slab_piece *)piece - 1;
    struct tmk_slab *slab = head->slab;
    s->n_bytes -= head->n_bytes;
    if (--slab->n_pieces > 0)
        return;
    if (slab->newer)
        slab->newer->older = slab->older;
    else
        s->newest = slab->older;
    if (slab->older)
        slab->older->newer = slab->newer;
    if (s->spare && s->spare->size >= slab->size) {
        free(slab);
        return;
    }
    free(s->spare);
    s->spare = slab;
}

void tmk_slabs_fini(struct tmk_slabs *s)
{
    while (s->newest) {
        struct tmk_slab *older = s->newest->older;
        free(s->newest);
        s->newest = older;
    }
    free(s->spare);
    *s = (struct tmk_slabs){0};
}
