/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_blocks.c - see torch_blocks.h. */
#include "interop/torch/torch_blocks.h"

#include <stdlib.h>

#include "kit/grow.h"

void tmk_torch_blocks_fini(struct tmk_torch_blocks *t)
{
    free(t->items);
    *t = (struct tmk_torch_blocks){0};
}

static struct tmk_torch_block *new_block(struct tmk_torch_blocks *t)
{
    if (t->first_free) {
        struct tmk_torch_block *block = &t->items[t->first_free - 1];
        t->first_free = block->next_free;
        return block;
    }
    if (TMK_GROW(t->items, t->n + 1, t->room) < 0 || t->n >= UINT32_MAX - 1)
        return NULL;
    return &t->items[t->n++];
}

struct tmk_torch_block *tmk_torch_blocks_add(struct tmk_torch_blocks *t, const struct tmk_state *s,
                                             struct tmk_block *b)
{
    uint64_t requested_bytes = tmk_state_requested(s, b);
    struct tmk_torch_block *block = new_block(t);
    if (!block)
        return NULL;
    *block = (struct tmk_torch_block){.address = b->address,
                                      .size_bytes = b->size_bytes,
                                      .requested_bytes =
                                          requested_bytes ? requested_bytes : b->size_bytes,
                                      .serial = b->serial,
                                      .stack = b->stack,
                                      .is_used = true,
                                      .is_found = true};
    b->row = (uint32_t)(block - t->items) + 1;
    return block;
}

struct tmk_torch_block *tmk_torch_blocks_put(struct tmk_torch_blocks *t,
                                             const struct tmk_torch_block *block)
{
    struct tmk_torch_block *new = new_block(t);
    if (new) {
        *new = *block;
        new->is_used = true;
        new->serial = UINT64_MAX; /* no live block's */
    }
    return new;
}

struct tmk_torch_block *tmk_torch_blocks_find(const struct tmk_torch_blocks *t,
                                              const struct tmk_block *b)
{
    if (b->row == 0 || b->row > t->n)
        return NULL;
    struct tmk_torch_block *block = &t->items[b->row - 1];
    bool is_same = block->is_used && block->serial == b->serial && block->address == b->address;
    return is_same ? block : NULL;
}

void tmk_torch_blocks_remove(struct tmk_torch_blocks *t, struct tmk_torch_block *block)
{
    block->is_used = false;
    block->next_free = t->first_free;
    t->first_free = (uint32_t)(block - t->items) + 1;
}

static int by_address(const void *va, const void *vb)
{
    const struct tmk_torch_block *a = va, *b = vb;
    return (a->address > b->address) - (a->address < b->address);
}

struct tmk_torch_block *tmk_torch_blocks_sorted(const struct tmk_torch_blocks *t, uint64_t *ret_n)
{
    struct tmk_torch_block *list = malloc((size_t)(t->n + 1) * sizeof *list);
    uint64_t n = 0;
    for (uint64_t i = 0; list && i < t->n; i++)
        if (t->items[i].is_used)
            list[n++] = t->items[i];
    if (list)
        qsort(list, (size_t)n, sizeof *list, by_address);
    *ret_n = n;
    return list;
}

/* ---- after a gap ---- */

struct by_serial {
    uint64_t serial;
    uint32_t row;
};

static int compare_serial(const void *va, const void *vb)
{
    const struct by_serial *a = va, *b = vb;
    return (a->serial > b->serial) - (a->serial < b->serial);
}

static struct by_serial *list_serials(struct tmk_torch_blocks *t, uint64_t *ret_n)
{
    struct by_serial *list = malloc((size_t)(t->n + 1) * sizeof *list);
    uint64_t n = 0;
    for (uint64_t i = 0; list && i < t->n; i++) {
        t->items[i].is_found = false;
        if (t->items[i].is_used && t->items[i].serial)
            list[n++] = (struct by_serial){.serial = t->items[i].serial, .row = (uint32_t)i + 1};
    }
    if (list)
        qsort(list, (size_t)n, sizeof *list, compare_serial);
    *ret_n = n;
    return list;
}

bool tmk_torch_blocks_match(struct tmk_torch_blocks *t, struct tmk_state *s, uint16_t device)
{
    uint64_t n;
    struct by_serial *list = list_serials(t, &n);
    if (!list)
        return false;
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        struct tmk_block *b = &s->entries[i];
        if (!b->live || b->device != device)
            continue;
        struct by_serial key = {.serial = b->serial};
        const struct by_serial *match =
            b->serial ? bsearch(&key, list, (size_t)n, sizeof *list, compare_serial) : NULL;
        if (!tmk_torch_blocks_find(t, b))
            b->row = match ? match->row : 0;
        struct tmk_torch_block *block = tmk_torch_blocks_find(t, b);
        if (block)
            block->is_found = true;
    }
    free(list);
    return true;
}
