/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_layout.c - see torch_layout.h.
 *
 * Pieces, used or free, are found by their address through an index and know their
 * neighbours; spans of mapped memory are a sorted array, which seldom changes. An event takes one
 * look-up. The span is walked, from its end, only if no piece begins at the address. */
#include "interop/torch/torch_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/index.h"
#include "kit/grow.h"
#include "kit/seeded_hash.h"

enum { SPANS_MOVED = 16 /* as many cost one step */ };

struct layout_piece {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t before, after; /* neighbours in the same span; 0: none */
    bool is_used;
};

struct span {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t last; /* piece */
    bool is_expandable;
};

struct tmk_import_layout {
    struct tmk_alloc_conf conf;
    struct layout_piece *pieces; /* from 1 */
    uint64_t n_pieces, piece_room;
    uint32_t free_piece;          /* unused ones, linked by `after` */
    struct tmk_index piece_index; /* by address */
    struct span *spans;           /* by address */
    uint64_t n_spans, span_room;
    uint64_t n_odd;
    struct tmk_work_limit *work; /* may be NULL */
};

/* Count what is walked; functions for callers check the sum at their end. */
static void count_walked(const struct tmk_import_layout *l, uint64_t n)
{
    if (l->work)
        tmk_work_take(l->work, n);
}

static int check_work(const struct tmk_import_layout *l)
{
    return !l->work || tmk_work_take(l->work, 0) ? 0 : TMK_EFULL;
}

/* ---- pieces by address ---- */

static uint32_t piece_at(const struct tmk_import_layout *l, uint64_t address)
{
    struct tmk_probe probe = tmk_index_probe(&l->piece_index, tmk_hash_seeded_u64(address));
    uint32_t i;
    while ((i = tmk_probe_next(&probe)) && l->pieces[i].address != address)
        continue;
    return i;
}

/* Add a piece after `before` (0: as the first of its span); 0 without memory. */
static uint32_t add_layout_piece(struct tmk_import_layout *l, uint64_t address, uint64_t size_bytes,
                                 uint32_t before)
{
    if (tmk_grow_index(&l->piece_index) < 0)
        return 0;
    uint32_t i = l->free_piece;
    if (i) {
        l->free_piece = l->pieces[i].after;
    } else {
        if (TMK_GROW(l->pieces, l->n_pieces + 2, l->piece_room) < 0)
            return 0;
        i = (uint32_t)++l->n_pieces;
    }
    uint32_t after = before ? l->pieces[before].after : 0;
    l->pieces[i] = (struct layout_piece){
        .address = address, .size_bytes = size_bytes, .before = before, .after = after};
    if (before)
        l->pieces[before].after = i;
    if (after)
        l->pieces[after].before = i;
    tmk_index_add(&l->piece_index, tmk_hash_seeded_u64(address), i);
    return i;
}

/* ---- spans ---- */

/* The index of the first span that ends after `address`. */
static uint64_t span_index(const struct tmk_import_layout *l, uint64_t address)
{
    uint64_t low = 0, high = l->n_spans;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (l->spans[middle].address + l->spans[middle].size_bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct span *span_at(const struct tmk_import_layout *l, uint64_t address)
{
    uint64_t i = span_index(l, address);
    return i < l->n_spans && l->spans[i].address <= address ? &l->spans[i] : NULL;
}

/* Remove a piece that is replaced by another one, or by nothing. */
static void remove_layout_piece(struct tmk_import_layout *l, struct span *span, uint32_t i)
{
    struct layout_piece *p = &l->pieces[i];
    tmk_index_remove(&l->piece_index, tmk_hash_seeded_u64(p->address), i);
    if (p->before)
        l->pieces[p->before].after = p->after;
    if (p->after)
        l->pieces[p->after].before = p->before;
    if (span->last == i)
        span->last = p->before;
    p->after = l->free_piece;
    l->free_piece = i;
}

/* Join free neighbours. Returns the joined piece. */
static uint32_t merge_neighbours(struct tmk_import_layout *l, uint32_t i)
{
    struct layout_piece *p = &l->pieces[i];
    uint32_t before = p->before, after = p->after;
    struct span *span = NULL;
    if (after && !l->pieces[after].is_used) {
        span = span_at(l, p->address);
        p->size_bytes += l->pieces[after].size_bytes;
        remove_layout_piece(l, span, after);
    }
    if (before && !l->pieces[before].is_used) {
        span = span ? span : span_at(l, p->address);
        l->pieces[before].size_bytes += p->size_bytes;
        remove_layout_piece(l, span, i);
        i = before;
    }
    return i;
}

/* Split piece `i` so that one begins at `address`, inside it. Returns that one; 0 without memory.
 */
static uint32_t cut_piece(struct tmk_import_layout *l, struct span *span, uint32_t i,
                          uint64_t address)
{
    struct layout_piece *p = &l->pieces[i];
    if (p->address == address)
        return i;
    uint64_t kept = address - p->address;
    uint32_t rest = add_layout_piece(l, address, p->size_bytes - kept, i);
    if (!rest)
        return 0;
    l->pieces[rest].is_used = l->pieces[i].is_used;
    l->pieces[i].size_bytes = kept;
    if (span->last == i)
        span->last = rest;
    return rest;
}

/* The piece that contains `address`. */
static uint32_t piece_with(const struct tmk_import_layout *l, const struct span *span,
                           uint64_t address)
{
    uint32_t i = piece_at(l, address);
    uint64_t n = 0;
    for (i = i ? i : span->last; i && l->pieces[i].address > address; n++)
        i = l->pieces[i].before;
    count_walked(l, n);
    return i;
}

/* ---- memory comes and goes ---- */

static int insert_span(struct tmk_import_layout *l, const struct span *span)
{
    if (TMK_GROW(l->spans, l->n_spans + 1, l->span_room) < 0)
        return TMK_ENOMEM;
    uint64_t i = span_index(l, span->address);
    memmove(l->spans + i + 1, l->spans + i, (size_t)(l->n_spans - i) * sizeof *l->spans);
    count_walked(l, (l->n_spans - i) / SPANS_MOVED);
    l->spans[i] = *span;
    l->n_spans++;
    return 0;
}

static void remove_span(struct tmk_import_layout *l, uint64_t i)
{
    l->n_spans--;
    count_walked(l, (l->n_spans - i) / SPANS_MOVED);
    memmove(l->spans + i, l->spans + i + 1, (size_t)(l->n_spans - i) * sizeof *l->spans);
}

static uint32_t first_piece(const struct tmk_import_layout *l, const struct span *span)
{
    return piece_at(l, span->address);
}

/* Join expandable memory with the span before it if it continues that. */
static void join_spans(struct tmk_import_layout *l, uint64_t i)
{
    if (i + 1 >= l->n_spans)
        return;
    struct span *a = &l->spans[i], *b = &l->spans[i + 1];
    if (!a->is_expandable || !b->is_expandable || a->address + a->size_bytes != b->address)
        return;
    uint32_t left = a->last, right = first_piece(l, b);
    l->pieces[left].after = right;
    l->pieces[right].before = left;
    a->last = b->last;
    a->size_bytes += b->size_bytes;
    remove_span(l, i + 1);
    if (!l->pieces[right].is_used)
        merge_neighbours(l, right);
}

static int map_gap(struct tmk_import_layout *l, uint64_t address, uint64_t size_bytes,
                   bool is_expandable)
{
    uint32_t piece = add_layout_piece(l, address, size_bytes, 0);
    struct span span = {.address = address,
                        .size_bytes = size_bytes,
                        .last = piece,
                        .is_expandable = is_expandable};
    if (!piece || insert_span(l, &span) < 0)
        return TMK_ENOMEM;
    uint64_t i = span_index(l, address);
    join_spans(l, i);
    if (i > 0)
        join_spans(l, i - 1);
    return 0;
}

int tmk_import_layout_map(struct tmk_import_layout *l, uint64_t address, uint64_t size_bytes,
                          bool is_expandable)
{
    uint64_t end = address + size_bytes;
    int rc = 0;
    while (address < end && rc == 0) {
        count_walked(l, 1);
        uint64_t i = span_index(l, address);
        const struct span *next = i < l->n_spans ? &l->spans[i] : NULL;
        if (next && next->address <= address) { /* there already */
            l->n_odd++;
            address = next->address + next->size_bytes;
            continue;
        }
        uint64_t stop = next && next->address < end ? next->address : end;
        rc = map_gap(l, address, stop - address, is_expandable);
        address = stop;
        rc = rc < 0 ? rc : check_work(l);
    }
    return rc;
}

/* Remove all pieces from `from` to the end of its span, and the span or its rest. */
static void cut_tail(struct tmk_import_layout *l, uint64_t i, uint64_t from)
{
    struct span *span = &l->spans[i];
    while (span->last && l->pieces[span->last].address >= from) {
        l->n_odd += l->pieces[span->last].is_used;
        remove_layout_piece(l, span, span->last);
    }
    span->size_bytes = from - span->address;
    if (span->size_bytes == 0)
        remove_span(l, i);
}

/* Split a span in two, the second beginning at `at`. */
static int split_span(struct tmk_import_layout *l, uint64_t i, uint64_t at)
{
    struct span *span = &l->spans[i];
    uint32_t right = cut_piece(l, span, piece_with(l, span, at), at);
    if (!right)
        return TMK_ENOMEM;
    struct span rest = {.address = at,
                        .size_bytes = span->address + span->size_bytes - at,
                        .last = span->last,
                        .is_expandable = span->is_expandable};
    uint32_t left = l->pieces[right].before;
    l->pieces[right].before = 0;
    if (left)
        l->pieces[left].after = 0;
    span->last = left;
    span->size_bytes = at - span->address;
    return insert_span(l, &rest);
}

int tmk_import_layout_unmap(struct tmk_import_layout *l, uint64_t address, uint64_t size_bytes)
{
    uint64_t end = address + size_bytes;
    for (;;) {
        if (check_work(l) < 0)
            return TMK_EFULL;
        uint64_t i = span_index(l, address);
        if (i >= l->n_spans || l->spans[i].address >= end)
            return 0;
        struct span *span = &l->spans[i];
        int rc = 0;
        if (span->address + span->size_bytes > end)
            rc = split_span(l, i, end);
        span = &l->spans[i];
        uint64_t from = span->address > address ? span->address : address;
        if (rc == 0 && !cut_piece(l, span, piece_with(l, span, from), from))
            rc = TMK_ENOMEM;
        if (rc < 0)
            return rc;
        cut_tail(l, i, from);
    }
}

/* ---- blocks ---- */

/* The size of the block that torch makes of a free piece. */
static uint64_t block_bytes_in(const struct tmk_import_layout *l, uint64_t piece_bytes,
                               uint64_t requested_bytes, bool is_expandable)
{
    uint64_t rounded = tmk_alloc_round(&l->conf, requested_bytes);
    if (piece_bytes <= rounded)
        return piece_bytes;
    struct tmk_alloc_conf conf = l->conf;
    conf.expandable_segments = is_expandable;
    return tmk_alloc_should_split(&conf, piece_bytes, rounded) ? rounded : piece_bytes;
}

int tmk_import_layout_alloc(struct tmk_import_layout *l, uint64_t address, uint64_t requested_bytes,
                            uint64_t real_bytes, uint64_t *ret_size)
{
    struct span *span = span_at(l, address);
    uint64_t wanted = real_bytes ? real_bytes : tmk_alloc_round(&l->conf, requested_bytes);
    *ret_size = wanted;
    if (check_work(l) < 0)
        return TMK_EFULL;
    if (!span) {
        l->n_odd++;
        return 0;
    }
    uint32_t i = piece_with(l, span, address);
    if (l->pieces[i].is_used) { /* its free was lost */
        l->n_odd++;
        l->pieces[i].is_used = false;
        i = merge_neighbours(l, i);
    }
    i = cut_piece(l, span, i, address);
    if (!i)
        return TMK_ENOMEM;
    uint64_t piece_bytes = l->pieces[i].size_bytes;
    uint64_t size = real_bytes
                        ? real_bytes
                        : block_bytes_in(l, piece_bytes, requested_bytes, span->is_expandable);
    if (piece_bytes < wanted) { /* the blocks there must have gone */
        l->n_odd++;
        l->pieces[i].is_used = true;
        return 0;
    }
    if (piece_bytes > size && !cut_piece(l, span, i, address + size))
        return TMK_ENOMEM;
    l->pieces[i].is_used = true;
    *ret_size = size;
    return 0;
}

bool tmk_import_layout_free(struct tmk_import_layout *l, uint64_t address)
{
    uint32_t i = piece_at(l, address);
    if (!i || !l->pieces[i].is_used) {
        l->n_odd++;
        return false;
    }
    l->pieces[i].is_used = false;
    merge_neighbours(l, i);
    return true;
}

uint64_t tmk_import_layout_left(const struct tmk_import_layout *l, uint64_t address)
{
    const struct span *span = span_at(l, address);
    return span ? span->address + span->size_bytes - address : 0;
}

uint64_t tmk_import_layout_block(const struct tmk_import_layout *l, uint64_t address)
{
    uint32_t i = piece_at(l, address);
    return i && l->pieces[i].is_used ? l->pieces[i].size_bytes : 0;
}

bool tmk_import_layout_span(const struct tmk_import_layout *l, uint64_t i,
                            struct tmk_import_span *ret_span)
{
    if (i >= l->n_spans)
        return false;
    *ret_span = (struct tmk_import_span){.address = l->spans[i].address,
                                         .size_bytes = l->spans[i].size_bytes,
                                         .is_expandable = l->spans[i].is_expandable};
    return true;
}

uint64_t tmk_import_layout_first_span(const struct tmk_import_layout *l, uint64_t address)
{
    return span_index(l, address);
}

uint64_t tmk_import_layout_n_odd(const struct tmk_import_layout *l)
{
    return l->n_odd;
}

/* ---- the rest ---- */

int tmk_import_layout_open(const struct tmk_alloc_conf *conf, struct tmk_work_limit *work,
                           struct tmk_import_layout **ret_layout)
{
    struct tmk_import_layout *l = calloc(1, sizeof *l);
    if (!l || TMK_GROW(l->pieces, 1, l->piece_room) < 0) {
        free(l);
        return TMK_ENOMEM;
    }
    l->conf = *conf;
    l->work = work;
    l->pieces[0] = (struct layout_piece){0};
    *ret_layout = l;
    return 0;
}

struct tmk_import_layout *tmk_import_layout_close(struct tmk_import_layout *l)
{
    if (l) {
        free(l->pieces);
        free(l->piece_index.slots);
        free(l->spans);
        free(l);
    }
    return NULL;
}

static bool is_span_valid(const struct tmk_import_layout *l, const struct span *span,
                          uint64_t *n_pieces)
{
    uint64_t at = span->address;
    uint32_t before = 0;
    for (uint32_t i = first_piece(l, span); i; i = l->pieces[i].after) {
        const struct layout_piece *p = &l->pieces[i];
        bool follows = p->address == at && p->before == before && piece_at(l, at) == i;
        if (!follows || p->size_bytes == 0 || (before && !p->is_used && !l->pieces[before].is_used))
            return false;
        at += p->size_bytes;
        before = i;
        ++*n_pieces;
    }
    return at == span->address + span->size_bytes && before == span->last;
}

bool tmk_import_layout_is_valid(const struct tmk_import_layout *l)
{
    uint64_t n_pieces = 0;
    for (uint64_t i = 0; i < l->n_spans; i++) {
        if (!is_span_valid(l, &l->spans[i], &n_pieces))
            return false;
        if (i > 0 && l->spans[i - 1].address + l->spans[i - 1].size_bytes > l->spans[i].address)
            return false;
    }
    return n_pieces == l->piece_index.n;
}
