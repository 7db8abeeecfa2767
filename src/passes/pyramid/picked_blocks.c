/* SPDX-License-Identifier: MIT */
/* passes/pyramid/picked_blocks.c - see picked_blocks.h.
 *
 * A cell is a small heap with its smallest block on top, which the next larger one replaces. Equal
 * sizes are ordered by serial, so that the choice does not depend on the order of frees. */
#include "passes/pyramid/picked_blocks.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"

/* Few blocks have long lives, and each is visible for long: coarse levels keep more. */
enum { COARSE_LEVELS = 5, MIDDLE_LEVELS = 9, COARSE_ROOM = 64, MIDDLE_ROOM = 16, FINE_ROOM = 2 };

struct tmk_picked_cell {
    struct tmk_picked_block *heap;
    uint32_t n;
};

static uint32_t room_of_level(uint32_t level)
{
    if (level < COARSE_LEVELS)
        return COARSE_ROOM;
    return level < MIDDLE_LEVELS ? MIDDLE_ROOM : FINE_ROOM;
}

static uint64_t n_cells(void)
{
    return (UINT64_C(1) << TMK_PICKED_LEVELS) - 1;
}

static uint64_t end_of_life(const struct tmk_picked_blocks *s, const struct tmk_picked_block *b)
{
    return b->free_ns < s->end_ns ? b->free_ns : s->end_ns;
}

static uint32_t level_of(const struct tmk_picked_blocks *s, const struct tmk_picked_block *b)
{
    uint64_t end = end_of_life(s, b), life = end > b->alloc_ns ? end - b->alloc_ns : 0;
    uint32_t level = 0;
    while (level + 1 < TMK_PICKED_LEVELS && life <= s->end_ns >> (level + 1))
        level++;
    return level;
}

static struct tmk_picked_cell *cell_of(const struct tmk_picked_blocks *s, uint32_t level,
                                       uint64_t ns)
{
    uint64_t n = UINT64_C(1) << level;
    unsigned __int128 scaled = (unsigned __int128)ns * n / ((unsigned __int128)s->end_ns + 1);
    uint64_t i = scaled < n ? (uint64_t)scaled : n - 1;
    return &s->cells[n - 1 + i];
}

/* ---- heaps ---- */

static bool is_smaller(const struct tmk_picked_block *a, const struct tmk_picked_block *b)
{
    return a->size_bytes != b->size_bytes ? a->size_bytes < b->size_bytes : a->serial > b->serial;
}

static void swap_blocks(struct tmk_picked_block *a, struct tmk_picked_block *b)
{
    struct tmk_picked_block moved = *a;
    *a = *b;
    *b = moved;
}

static void sift_up(struct tmk_picked_cell *c)
{
    for (uint32_t i = c->n - 1; i > 0 && is_smaller(&c->heap[i], &c->heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        swap_blocks(&c->heap[i], &c->heap[(i - 1) / 2]);
}

static void sift_down(struct tmk_picked_cell *c)
{
    for (uint32_t i = 0, child; (child = 2 * i + 1) < c->n; i = child) {
        if (child + 1 < c->n && is_smaller(&c->heap[child + 1], &c->heap[child]))
            child++;
        if (!is_smaller(&c->heap[child], &c->heap[i]))
            return;
        swap_blocks(&c->heap[i], &c->heap[child]);
    }
}

static void offer_to_cell(struct tmk_picked_blocks *s, const struct tmk_picked_block *b)
{
    uint32_t level = level_of(s, b), room = room_of_level(level);
    struct tmk_picked_cell *c = cell_of(s, level, b->alloc_ns);
    if (!c->heap)
        c->heap = calloc(room, sizeof *c->heap);
    if (!c->heap) {
        s->failed = true;
    } else if (c->n < room) {
        c->heap[c->n++] = *b;
        sift_up(c);
    } else if (is_smaller(&c->heap[0], b)) {
        c->heap[0] = *b;
        sift_down(c);
    }
}

/* ---- the window ---- */

static bool is_in_window(const struct tmk_picked_blocks *s, const struct tmk_picked_block *b)
{
    return b->alloc_ns <= s->window_end && end_of_life(s, b) >= s->window_start;
}

static void halve_window(struct tmk_picked_blocks *s)
{
    s->window_start += (s->peak_ns - s->window_start + 1) / 2;
    s->window_end -= (s->window_end - s->peak_ns + 1) / 2;
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->n_blocks; i++)
        if (is_in_window(s, &s->blocks[i]))
            s->blocks[n++] = s->blocks[i];
    s->n_blocks = n;
}

/* A window of one moment may have more blocks than there is room for: then there is none. */
static void make_window_room(struct tmk_picked_blocks *s)
{
    while (s->n_blocks >= s->window_room && s->window_start < s->window_end)
        halve_window(s);
    if (s->n_blocks >= s->window_room) {
        s->window_start = UINT64_MAX;
        s->window_end = 0;
        s->n_blocks = 0;
    }
}

static void offer_to_window(struct tmk_picked_blocks *s, const struct tmk_picked_block *b)
{
    if (!is_in_window(s, b))
        return;
    make_window_room(s);
    if (!is_in_window(s, b))
        return;
    if (TMK_GROW(s->blocks, s->n_blocks + 1, s->block_room) < 0)
        s->failed = true;
    else
        s->blocks[s->n_blocks++] = *b;
}

void tmk_picked_blocks_offer(struct tmk_picked_blocks *s, const struct tmk_picked_block *b)
{
    s->n_all++;
    offer_to_window(s, b);
    offer_to_cell(s, b);
}

/* ---- after the sweep ---- */

static int add_cells(struct tmk_picked_blocks *s)
{
    for (uint64_t i = 0; i < n_cells(); i++)
        for (uint32_t k = 0; k < s->cells[i].n; k++) {
            const struct tmk_picked_block *b = &s->cells[i].heap[k];
            if (is_in_window(s, b))
                continue; /* it is there */
            if (TMK_GROW(s->blocks, s->n_blocks + 1, s->block_room) < 0)
                return TMK_ENOMEM;
            s->blocks[s->n_blocks++] = *b;
        }
    return 0;
}

static int compare_picked(const void *va, const void *vb)
{
    const struct tmk_picked_block *a = va, *b = vb;
    if (a->alloc_ns != b->alloc_ns)
        return a->alloc_ns < b->alloc_ns ? -1 : 1;
    if (a->serial != b->serial)
        return a->serial < b->serial ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

int tmk_picked_blocks_finish(struct tmk_picked_blocks *s)
{
    if (s->failed || add_cells(s) < 0)
        return TMK_ENOMEM;
    if (s->n_blocks > 0)
        qsort(s->blocks, (size_t)s->n_blocks, sizeof *s->blocks, compare_picked);
    return 0;
}

bool tmk_picked_blocks_has_all(const struct tmk_picked_blocks *s)
{
    return s->n_blocks == s->n_all;
}

int tmk_picked_blocks_init(struct tmk_picked_blocks *s, uint64_t end_ns, uint64_t peak_ns,
                           uint64_t window_room)
{
    *s = (struct tmk_picked_blocks){.end_ns = end_ns,
                                    .peak_ns = peak_ns < end_ns ? peak_ns : end_ns,
                                    .window_room = window_room,
                                    .window_end = end_ns};
    s->cells = calloc(n_cells(), sizeof *s->cells);
    return s->cells ? 0 : TMK_ENOMEM;
}

void tmk_picked_blocks_fini(struct tmk_picked_blocks *s)
{
    for (uint64_t i = 0; s->cells && i < n_cells(); i++)
        free(s->cells[i].heap);
    free(s->cells);
    free(s->blocks);
    *s = (struct tmk_picked_blocks){0};
}
