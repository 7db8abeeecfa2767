/* SPDX-License-Identifier: MIT */
/* sql/slab.c - see slab.h. The first block is small: most tables are. */
#include "sql/slab.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/valid.h"

#define ASSERT_VALID(s) TMK_ASSERT_VALID(tmk_slabs_is_valid(s), (s)->n_bytes / 1024)

enum { FIRST_BYTES = 1 << 16, SLAB_BYTES = 4 << 20, PAGE_BYTES = 4096 };

static struct tmk_slab *make_slab(size_t size)
{
    struct tmk_slab *slab = size >= SLAB_BYTES ? aligned_alloc(PAGE_BYTES, size) : malloc(size);
#ifdef MADV_POPULATE_WRITE
    if (slab && size >= SLAB_BYTES)
        (void)madvise(slab, size, MADV_POPULATE_WRITE); /* or not: it is only slower */
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
    n = ((n + 7) & ~(size_t)7) + sizeof(struct tmk_slab_piece);
    struct tmk_slab *slab = s->newest;
    if (!slab || slab->size - slab->used < n)
        slab = add_slab(s, n);
    if (!slab)
        return NULL;
    struct tmk_slab_piece *piece = (struct tmk_slab_piece *)(void *)((uint8_t *)slab + slab->used);
    *piece = (struct tmk_slab_piece){.slab = slab, .n_bytes = n};
    slab->used += n;
    slab->n_pieces++;
    s->n_bytes += n;
    ASSERT_VALID(s);
    return piece + 1;
}

void tmk_slabs_drop(struct tmk_slabs *s, void *piece)
{
    const struct tmk_slab_piece *head = (const struct tmk_slab_piece *)piece - 1;
    struct tmk_slab *slab = head->slab;
    assert(slab->n_pieces > 0 && s->n_bytes >= head->n_bytes);
    s->n_bytes -= head->n_bytes;
    if (--slab->n_pieces > 0)
        return;
    if (slab->newer)
        slab->newer->older = slab->older;
    else
        s->newest = slab->older;
    if (slab->older)
        slab->older->newer = slab->newer;
    bool is_larger = !s->spare || slab->size > s->spare->size;
    free(is_larger ? s->spare : slab);
    if (is_larger)
        s->spare = slab;
    ASSERT_VALID(s);
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
