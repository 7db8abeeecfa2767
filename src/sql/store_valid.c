/* SPDX-License-Identifier: MIT */
/* sql/store_valid.c - the invariants of store.h. */
#include "sql/rows.h"
#include "sql/slab.h"
#include "sql/store.h"

#include <stddef.h>

#include "base/valid.h"

static bool is_segment_left(const struct tmk_segment *segment)
{
    return segment->held && segment->n_pins == 0;
}

/* ---- one segment ---- */

static bool block_has(const struct tmk_segment_block *block, const void *data, size_t n_bytes)
{
    const struct tmk_slab_piece *piece = (const struct tmk_slab_piece *)(const void *)block - 1;
    const uint8_t *start = (const uint8_t *)block->bytes, *end = (const uint8_t *)piece;
    end += piece->n_bytes;
    const uint8_t *at = data;
    return at >= start && at <= end && n_bytes <= (size_t)(end - at);
}

static bool column_is_valid(const struct tmk_store *s, const struct tmk_segment *segment,
                            uint32_t column)
{
    const void *data = segment->columns ? segment->columns[column] : NULL;
    bool is_held = segment->held >> column & 1, is_constant = segment->constants >> column & 1;
    TMK_HOLDS(is_held == (data != NULL));
    if (!is_held)
        return true;
    uint64_t n_cells = is_constant ? 1 : segment->n_rows;
    size_t n_bytes = (size_t)n_cells * tmk_cell_bytes(s->def->specs[column].kind);
    const struct tmk_segment_block *block = segment->blocks;
    while (block && !block_has(block, data, n_bytes))
        block = block->next;
    TMK_HOLDS(block != NULL);
    return true;
}

static bool segment_is_valid(const struct tmk_store *s, const struct tmk_segment *segment)
{
    uint32_t n_columns = (uint32_t)s->def->doc.n_columns;
    TMK_HOLDS(segment->held >> n_columns == 0);
    TMK_HOLDS((segment->constants & ~segment->held) == 0);
    TMK_HOLDS(!segment->held || segment->counted);
    for (uint32_t c = 0; c < n_columns; c++)
        if (!column_is_valid(s, segment, c))
            return false;
    return true;
}

/* A store has the segments of each source in order. */
static bool is_behind(const struct tmk_segment *a, const struct tmk_segment *b)
{
    return a->source == b->source ? b->chunk == a->chunk + 1
                                  : b->source > a->source && b->chunk == 0;
}

static bool segments_are_valid(const struct tmk_store *s)
{
    for (uint32_t i = 0; i < s->n_segments; i++) {
        TMK_HOLDS(s->segments[i].source < s->n_sources);
        TMK_HOLDS(i == 0 || is_behind(&s->segments[i - 1], &s->segments[i]));
        if (!segment_is_valid(s, &s->segments[i]))
            return false;
    }
    return true;
}

/* ---- the list ---- */

static bool list_is_valid(const struct tmk_store *s)
{
    uint64_t n_left = 0, n_listed = 0;
    const struct tmk_segment *before = NULL;
    for (uint32_t i = 0; i < s->n_segments; i++)
        n_left += is_segment_left(&s->segments[i]);
    for (const struct tmk_segment *segment = s->left_first; segment; segment = segment->after) {
        TMK_HOLDS(segment->before == before);
        TMK_HOLDS(is_segment_left(segment));
        before = segment; /* so no segment is met twice */
        n_listed++;
    }
    TMK_HOLDS(s->left_last == before);
    TMK_HOLDS(n_listed == n_left);
    return true;
}

/* ---- the store ---- */

static bool memory_is_valid(const struct tmk_store *s)
{
    uint64_t n_blocks = 0, n_pieces = 0, n_bytes = 0;
    for (uint32_t i = 0; i < s->n_segments; i++) {
        const struct tmk_segment_block *block = s->segments[i].blocks;
        for (; block; block = block->next) {
            n_bytes += ((const struct tmk_slab_piece *)(const void *)block - 1)->n_bytes;
            n_blocks++;
        }
    }
    for (const struct tmk_slab *slab = s->slabs.newest; slab; slab = slab->older)
        n_pieces += slab->n_pieces;
    TMK_HOLDS(n_blocks == n_pieces);
    TMK_HOLDS(n_bytes == s->slabs.n_bytes);
    return true;
}

uint64_t tmk_store_check_cost(const struct tmk_store *s)
{
    return (uint64_t)s->n_segments * (s->def->doc.n_columns + 2) + s->slabs.n_bytes / 1024;
}

bool tmk_store_is_valid(const struct tmk_store *s)
{
    return tmk_slabs_is_valid(&s->slabs) && segments_are_valid(s) && list_is_valid(s) &&
           memory_is_valid(s);
}
