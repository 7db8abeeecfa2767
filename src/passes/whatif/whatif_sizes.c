/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_sizes.c - see whatif_sizes.h.
 *
 * Segments and large blocks are kept by address in sets of model/free_set.h, with size 0, so that
 * the one behind and the one before an address are found. Each large allocation is noted; at the
 * end they are gone through forwards and backwards, with an index of the last cut block by stack
 * and MiB, and the nearer one of both is taken. */
#include "passes/whatif/whatif_sizes.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "kit/grow.h"
#include "model/alloc_conf.h"
#include "model/free_set.h"

enum { MIB_SHIFT = 20 };

struct piece {
    uint64_t address;
    uint64_t bytes; /* 0: the place is free */
};

struct pieces { /* by number, and by address */
    struct piece *items;
    uint64_t n, room;
    uint32_t *free_items;
    uint64_t n_free, free_room;
    struct tmk_free_set order;
};

struct note {
    uint64_t key;
    uint64_t bytes;
    uint64_t guess;    /* 0: none */
    uint64_t distance; /* of the guess, in notes */
    int64_t step;
    uint32_t stack;
    uint8_t rank; /* of the guess */
    bool is_cut;  /* `bytes` is what was asked for */
};

struct tmk_whatif_sizes {
    struct pieces segments, blocks;
    struct note *notes;
    uint64_t n_notes, note_room;
    struct tmk_index note_index; /* of number + 1: the last note that is like it */
};

/* ---- pieces ---- */

static int add_piece(struct pieces *p, uint64_t address, uint64_t bytes)
{
    uint64_t i = p->n_free ? p->free_items[p->n_free - 1] : p->n;
    if (i >> TMK_FREE_SET_INDEX_BITS)
        return TMK_ENOMEM;
    if (TMK_GROW(p->items, i + 1, p->room) < 0 ||
        TMK_GROW(p->free_items, p->n + 1, p->free_room) < 0 ||
        tmk_free_set_add(&p->order, 0, address, (uint32_t)i) < 0)
        return TMK_ENOMEM;
    p->items[i] = (struct piece){address, bytes};
    if (p->n_free)
        p->n_free--;
    else
        p->n++;
    return 0;
}

/* The last one that begins at or before an address; NULL: none. */
static const struct piece *piece_before(const struct pieces *p, uint64_t address)
{
    struct tmk_free_cursor c = tmk_free_set_find(&p->order, 0, address + TMK_ALLOC_UNIT);
    return tmk_free_set_back(&p->order, &c) ? &p->items[tmk_free_set_block(&p->order, c)] : NULL;
}

static const struct piece *piece_behind(const struct pieces *p, uint64_t address)
{
    struct tmk_free_cursor c = tmk_free_set_find(&p->order, 0, address + TMK_ALLOC_UNIT);
    bool is_end = tmk_free_set_is_end(&p->order, c);
    return is_end ? NULL : &p->items[tmk_free_set_block(&p->order, c)];
}

static void remove_piece(struct pieces *p, uint64_t address)
{
    struct tmk_free_cursor c = tmk_free_set_find(&p->order, 0, address);
    if (tmk_free_set_is_end(&p->order, c))
        return;
    uint32_t i = tmk_free_set_block(&p->order, c);
    if (p->items[i].address != address)
        return;
    tmk_free_set_remove_at(&p->order, c);
    p->free_items[p->n_free++] = i; /* there is room for all */
}

static void fini_pieces(struct pieces *p)
{
    tmk_free_set_fini(&p->order);
    free(p->items);
    free(p->free_items);
}

/* ---- what happens ---- */

int tmk_whatif_sizes_open(struct tmk_whatif_sizes **ret_sizes)
{
    struct tmk_whatif_sizes *z = calloc(1, sizeof *z);
    if (!z)
        return TMK_ENOMEM;
    *ret_sizes = z;
    return 0;
}

struct tmk_whatif_sizes *tmk_whatif_sizes_close(struct tmk_whatif_sizes *z)
{
    if (!z)
        return NULL;
    fini_pieces(&z->segments);
    fini_pieces(&z->blocks);
    free(z->notes);
    free(z->note_index.slots);
    free(z);
    return NULL;
}

int tmk_whatif_sizes_segment(struct tmk_whatif_sizes *z, uint64_t address, uint64_t bytes)
{
    remove_piece(&z->segments, address);
    return add_piece(&z->segments, address, bytes);
}

void tmk_whatif_sizes_segment_end(struct tmk_whatif_sizes *z, uint64_t address)
{
    remove_piece(&z->segments, address);
}

/* Is there free memory between the block and what follows it? */
static bool was_cut(const struct tmk_whatif_sizes *z, uint64_t address, uint64_t bytes)
{
    const struct piece *segment = piece_before(&z->segments, address);
    const struct piece *next = piece_behind(&z->blocks, address);
    if (!segment || segment->address + segment->bytes <= address)
        return true; /* nothing is known: take it as it is */
    uint64_t end = segment->address + segment->bytes;
    if (next && next->address < end)
        end = next->address;
    return address + bytes < end;
}

int tmk_whatif_sizes_alloc(struct tmk_whatif_sizes *z, uint64_t address, uint64_t bytes,
                           uint32_t stack, int64_t step, uint64_t key)
{
    if (tmk_alloc_is_small(bytes))
        return 0; /* cut to 512 bytes */
    if (TMK_GROW(z->notes, z->n_notes + 1, z->note_room) < 0)
        return TMK_ENOMEM;
    z->notes[z->n_notes++] = (struct note){.key = key,
                                           .bytes = bytes,
                                           .distance = UINT64_MAX,
                                           .step = step,
                                           .stack = stack,
                                           .is_cut = was_cut(z, address, bytes)};
    remove_piece(&z->blocks, address);
    return add_piece(&z->blocks, address, bytes);
}

void tmk_whatif_sizes_free(struct tmk_whatif_sizes *z, uint64_t address)
{
    remove_piece(&z->blocks, address);
}

/* ---- guesses ---- */

/* How good a guess is. */
enum { NOTHING, NEAR, SEEN, SAME_STEP, SEEN_IN_STEP };

/* Tables of notes: each finds the last one with the same stack and what else it is about. */
enum lookup { BY_MIB, BY_SIZE, BY_STEP_AND_MIB, BY_STEP_AND_SIZE };

static const struct {
    enum lookup lookup;
    uint8_t rank;
} tries[] = {
    {BY_STEP_AND_SIZE, SEEN_IN_STEP},
    {BY_STEP_AND_MIB, SAME_STEP},
    {BY_SIZE, SEEN},
    {BY_MIB, NEAR},
};

static bool is_same(enum lookup lookup, const struct note *a, const struct note *b)
{
    bool with_step = lookup == BY_STEP_AND_MIB || lookup == BY_STEP_AND_SIZE;
    bool with_size = lookup == BY_SIZE || lookup == BY_STEP_AND_SIZE;
    return a->stack == b->stack && (!with_step || a->step == b->step) &&
           (with_size ? a->bytes == b->bytes : a->bytes >> MIB_SHIFT == b->bytes >> MIB_SHIFT);
}

static uint64_t hash_of(enum lookup lookup, const struct note *note)
{
    bool with_step = lookup == BY_STEP_AND_MIB || lookup == BY_STEP_AND_SIZE;
    bool with_size = lookup == BY_SIZE || lookup == BY_STEP_AND_SIZE;
    uint64_t size = with_size ? note->bytes : note->bytes >> MIB_SHIFT;
    return tmk_hash_mix(tmk_hash_mix(note->stack, size), with_step ? (uint64_t)note->step : 0);
}

/* Number + 1 of the last note that is the same; 0: there is none. */
static uint32_t find_note(const struct tmk_whatif_sizes *z, uint64_t hash, enum lookup lookup,
                          const struct note *like)
{
    struct tmk_probe probe = tmk_index_probe(&z->note_index, hash);
    uint32_t i;
    while ((i = tmk_probe_next(&probe)) && !is_same(lookup, &z->notes[i - 1], like))
        continue;
    return i;
}

/* From now on note `i` is the last one of those that are the same. */
static int set_last(struct tmk_whatif_sizes *z, enum lookup lookup, uint64_t i)
{
    uint64_t hash = hash_of(lookup, &z->notes[i]);
    uint32_t old = find_note(z, hash, lookup, &z->notes[i]);
    if (old)
        tmk_index_renumber(&z->note_index, hash, old, (uint32_t)i + 1);
    else if (tmk_grow_index(&z->note_index) < 0)
        return TMK_ENOMEM;
    else
        tmk_index_add(&z->note_index, hash, (uint32_t)i + 1);
    return 0;
}

/* A cut block that is like note `i`, but for `mib_less`. */
static void consider(struct tmk_whatif_sizes *z, uint64_t i, size_t t, uint64_t mib_less)
{
    struct note *note = &z->notes[i], like = *note;
    like.bytes -= mib_less << MIB_SHIFT;
    uint64_t other = find_note(z, hash_of(tries[t].lookup, &like), tries[t].lookup, &like);
    if (!other || tries[t].rank < note->rank)
        return;
    uint64_t bytes = z->notes[other - 1].bytes;
    uint64_t distance = other - 1 < i ? i - (other - 1) : other - 1 - i;
    if (bytes > note->bytes || note->bytes - bytes > TMK_ALLOC_SMALL)
        return;
    if (tries[t].rank == note->rank && distance >= note->distance)
        return;
    note->guess = bytes;
    note->distance = distance;
    note->rank = tries[t].rank;
}

static int look_at(struct tmk_whatif_sizes *z, uint64_t i, size_t t)
{
    const struct note *note = &z->notes[i];
    bool with_mib = tries[t].lookup == BY_MIB || tries[t].lookup == BY_STEP_AND_MIB;
    if (note->is_cut)
        return set_last(z, tries[t].lookup, i);
    consider(z, i, t, 0);
    if (with_mib)
        consider(z, i, t, 1);
    return 0;
}

/* Forwards and backwards: the nearer one counts. */
static int try_all(struct tmk_whatif_sizes *z, size_t t)
{
    int rc = 0;
    tmk_index_clear(&z->note_index);
    for (uint64_t i = 0; i < z->n_notes && rc == 0; i++)
        rc = look_at(z, i, t);
    tmk_index_clear(&z->note_index);
    for (uint64_t i = z->n_notes; i > 0 && rc == 0; i--)
        rc = look_at(z, i - 1, t);
    return rc;
}

int tmk_whatif_sizes_resolve(struct tmk_whatif_sizes *z,
                             void (*tell)(void *arg, uint64_t key, uint64_t bytes), void *arg)
{
    int rc = 0;
    for (size_t t = 0; t < sizeof tries / sizeof tries[0] && rc == 0; t++)
        rc = try_all(z, t);
    for (uint64_t i = 0; i < z->n_notes && rc == 0; i++)
        if (z->notes[i].guess && z->notes[i].guess < z->notes[i].bytes)
            tell(arg, z->notes[i].key, z->notes[i].guess);
    return rc;
}
