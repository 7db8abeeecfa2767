/* SPDX-License-Identifier: MIT */
/* sql/store.h - a table's rows, decoded when needed and kept, as segments of columns.
 *
 * A segment is what one fill() makes: the rows of a process or of a chunk. Before it is decoded
 * it knows the bounds of its steps and times from the chunk's header. Columns are added as
 * queries ask for them. When the columns held exceed a limit, the least recently used segments
 * are forgotten, and decoded again when needed. Chunks have a low limit: decoding them costs
 * little more than getting memory for them. Segments that take a replay are kept. */
#ifndef TMK_SQL_STORE_H
#define TMK_SQL_STORE_H

#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/slab.h"
#include "sql/walk.h"

/* Where a column's values lie: data[row & index_mask]. The mask is 0 for a column of one value. */
struct tmk_column_values {
    const void *data;
    size_t index_mask;
    uint8_t kind; /* enum tmk_cell_kind */
};

struct tmk_segment_block { /* of columns */
    struct tmk_segment_block *next;
    uint64_t bytes[]; /* of the widest cell, for alignment */
};

struct tmk_segment {
    uint32_t source;
    uint32_t chunk;
    uint32_t n_pins;
    bool counted; /* n_rows is known */
    uint64_t n_rows;
    uint64_t held;                      /* a bit by column */
    uint64_t constants;                 /* those of them that have a single value */
    void **columns;                     /* by column; NULL before the first is held */
    struct tmk_segment_block *blocks;   /* of columns */
    struct tmk_segment *before, *after; /* in the list of segments held and not pinned */
};

struct tmk_store {
    const struct tmk_vtab_def *def;
    struct tmk_source *sources;
    uint32_t n_sources;
    struct tmk_textpool *pool;
    int64_t args[TMK_MAX_ARGS];
    struct tmk_segment *segments; /* by source, then chunk */
    uint32_t n_segments;
    struct tmk_segment *left_first,
        *left_last;         /* list of segments held and not pinned, least recently used first */
    struct tmk_slabs slabs; /* of all segments */
    uint64_t limit_bytes;
    struct tmk_rows scratch;
    struct tmk_walk walk;
};

int tmk_store_init(struct tmk_store *s, const struct tmk_vtab_def *def, struct tmk_source *sources,
                   uint32_t n_sources, struct tmk_textpool *pool, const int64_t *args);
void tmk_store_fini(struct tmk_store *s);

/* Hold at least the `wanted` columns of a segment and pin it: they stay until unpin(). */
int tmk_store_pin(struct tmk_store *s, struct tmk_segment *segment, uint64_t wanted,
                  struct tmk_error *err);
void tmk_store_unpin(struct tmk_store *s, struct tmk_segment *segment);
/* The cells of the `wanted` columns of a pinned segment; others are left alone. */
void tmk_store_cells(const struct tmk_store *s, const struct tmk_segment *segment, uint64_t wanted,
                     struct tmk_column_values *cells);

/* Decode a segment without keeping it: *ret_n_rows and the cells are good until the next call of
 * pin or look. */
int tmk_store_look(struct tmk_store *s, struct tmk_segment *segment, uint64_t wanted,
                   struct tmk_column_values *cells, uint64_t *ret_n_rows, struct tmk_error *err);

/* The invariants (base/valid.h):
 *   - segments lie in order of source, then chunk;
 *   - a segment that holds columns has been counted; just the columns that it holds have data,
 * which lies in one of its blocks with room for a cell of each row, or for one cell;
 *   - the list, which has links both ways, has each segment that holds columns and is not pinned;
 *   - the slabs are valid, and have no pieces but the segments' blocks. */
bool tmk_store_is_valid(const struct tmk_store *s);
uint64_t tmk_store_check_cost(const struct tmk_store *s); /* in items */

/* A column in order and the values of it that are wanted. */
struct tmk_bounds {
    int column; /* -1: all rows */
    int64_t low, high;
};

/* Whether no rows of the segment, all, or perhaps some are within the bounds. */
enum tmk_overlap { TMK_OUTSIDE, TMK_INSIDE, TMK_ACROSS };
enum tmk_overlap tmk_store_overlap(const struct tmk_store *s, const struct tmk_segment *segment,
                                   const struct tmk_bounds *bounds);
/* The rows of an ordered column that are within the bounds: from *ret_begin up to *ret_end. */
void tmk_bounds_rows(const struct tmk_bounds *bounds, const struct tmk_column_values *cell,
                     uint64_t n_rows, uint64_t *ret_begin, uint64_t *ret_end);

#endif
