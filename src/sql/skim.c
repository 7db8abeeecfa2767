/* SPDX-License-Identifier: MIT */
/* sql/skim.c - see skim.h. */
#include "sql/skim.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"
#include "sql/spread.h"

/* ---- sections ---- */

static int spread_numbers(struct tmk_view in, uint64_t max, struct tmk_skim_numbers *ret)
{
    uint32_t *more = tmk_grow(ret->values, max + 1, &ret->room, sizeof *more);
    if (!more)
        return TMK_ENOMEM;
    ret->values = more;
    ret->n = tmk_spread_u32(in, more, max);
    return 0;
}

static int spread_times(struct tmk_skim *k, const struct tmk_cursor *c)
{
    uint64_t n = c->n_left;
    uint64_t *times = tmk_grow(k->times, n + 1, &k->time_room, sizeof *times);
    if (!times)
        return TMK_ENOMEM;
    k->times = times;
    struct tmk_view in = c->heads;
    uint64_t now_ns = c->now_ns;
    for (k->n_events = 0; k->n_events < n; k->n_events++) {
        uint64_t head = tmk_view_varint(&in);
        if (in.bad)
            break;
        now_ns += head >> 3;
        times[k->n_events] = now_ns;
        k->kinds[k->n_events] = head & 7;
    }
    return 0;
}

/* Kinds of all events and, where times are wanted, those. */
static int spread_heads(struct tmk_skim *k, const struct tmk_cursor *c, bool want_times)
{
    uint8_t *kinds = tmk_grow(k->kinds, (uint64_t)c->n_left + 8, &k->kind_room, sizeof *kinds);
    if (!kinds)
        return TMK_ENOMEM;
    k->kinds = kinds;
    if (want_times)
        return spread_times(k, c);
    k->n_events = tmk_spread_low3(c->heads, kinds, c->n_left);
    return 0;
}

static int spread_sections(struct tmk_skim *k, const struct tmk_cursor *c,
                           const struct tmk_skim_wish *wish)
{
    uint64_t n = c->n_left;
    int rc = spread_heads(k, c, wish->times);
    if (rc == 0)
        rc = spread_numbers(c->data[TMK_KIND_PUSH], n, &k->data[TMK_KIND_PUSH]);
    if (rc == 0)
        rc = spread_numbers(c->data[TMK_KIND_POP], n, &k->data[TMK_KIND_POP]);
    if (rc == 0 && wish->bytes)
        rc = spread_numbers(c->data[TMK_KIND_ALLOC], 2 * n, &k->data[TMK_KIND_ALLOC]);
    if (rc == 0 && wish->bytes)
        rc = spread_numbers(c->data[TMK_KIND_FREE], n, &k->data[TMK_KIND_FREE]);
    return rc;
}

/* ---- blocks ---- */

static int hold_blocks(struct tmk_skim *k, const struct tmk_cursor *c, uint16_t device)
{
    uint64_t *held = tmk_grow(k->held, (uint64_t)c->n_addresses + 1, &k->held_room, sizeof *held);
    if (!held)
        return TMK_ENOMEM;
    k->held = held;
    for (uint32_t i = 0; i < c->n_addresses; i++) {
        const struct tmk_address *a = &c->addresses[i];
        held[i] = a->live && a->device == device ? a->live - 1 : 0;
    }
    return 0;
}

static int make_room(struct tmk_skim *k)
{
    uint64_t n = k->n_events;
    struct tmk_skim_mark *marks = tmk_grow(k->marks, n + 1, &k->mark_room, sizeof *marks);
    if (!marks)
        return TMK_ENOMEM;
    k->marks = marks;
    k->n_marks = 0;
    return 0;
}

struct sums {
    uint64_t allocated_bytes, max_bytes;
};

/* Block events up to the next mark: from event `i` on, the number of the event that is none. Stops
 * early, at an event it does not understand, when bytes are damaged. */
struct block_reader {
    const struct tmk_cursor *c;
    uint64_t *held;
    const uint32_t *alloc, *alloc_end, *free, *free_end;
    uint16_t device;
};

static inline bool free_block(struct block_reader *b, struct sums *s)
{
    if (b->free == b->free_end || *b->free >= b->c->n_addresses)
        return false;
    uint64_t old = b->held[*b->free];
    b->held[*b->free++] = 0;
    s->allocated_bytes -= old < s->allocated_bytes ? old : s->allocated_bytes;
    return true;
}

static inline bool alloc_block(struct block_reader *b, struct sums *s)
{
    if (b->alloc_end - b->alloc < 2 || b->alloc[0] >= b->c->n_addresses ||
        b->alloc[1] >= b->c->n_shapes)
        return false;
    uint32_t slot = b->alloc[0];
    uint64_t old = b->held[slot];
    uint64_t size = b->c->shapes[b->alloc[1]].size_bytes;
    b->alloc += 2;
    if (b->c->addresses[slot].device != b->device)
        size = 0;
    b->held[slot] = size;
    s->allocated_bytes -= old < s->allocated_bytes ? old : s->allocated_bytes;
    s->allocated_bytes += size;
    if (s->allocated_bytes > s->max_bytes)
        s->max_bytes = s->allocated_bytes;
    return true;
}

/* ---- marks ---- */

static void mark_events(struct tmk_skim *k, const struct tmk_cursor *c,
                        const struct tmk_skim_wish *wish)
{
    const struct tmk_skim_numbers *d = k->data;
    const uint32_t *push = d[TMK_KIND_PUSH].values, *push_end = push + d[TMK_KIND_PUSH].n;
    const uint32_t *pop = d[TMK_KIND_POP].values, *pop_end = pop + d[TMK_KIND_POP].n;
    struct block_reader blocks = {.c = c, .held = k->held, .device = wish->device};
    struct sums sums = {wish->allocated_bytes, wish->max_bytes};
    if (wish->bytes) {
        blocks.alloc = d[TMK_KIND_ALLOC].values;
        blocks.alloc_end = blocks.alloc + d[TMK_KIND_ALLOC].n;
        blocks.free = d[TMK_KIND_FREE].values;
        blocks.free_end = blocks.free + d[TMK_KIND_FREE].n;
    }
    struct tmk_skim_mark *mark = k->marks;
    uint64_t i = 0;
    for (; i < k->n_events; i++) {
        uint8_t kind = k->kinds[i];
        uint32_t value = 0;
        if (kind == TMK_KIND_ALLOC) {
            if (wish->bytes && !alloc_block(&blocks, &sums))
                break;
            continue;
        }
        if (kind == TMK_KIND_FREE) {
            if (wish->bytes && !free_block(&blocks, &sums))
                break;
            continue;
        }
        if (kind == TMK_KIND_PUSH ? push == push_end : kind == TMK_KIND_POP && pop == pop_end)
            break;
        if (kind == TMK_KIND_PUSH)
            value = *push++;
        else if (kind == TMK_KIND_POP)
            value = *pop++;
        else if (kind != TMK_KIND_STEP)
            continue;
        *mark++ = (struct tmk_skim_mark){.allocated_bytes = sums.allocated_bytes,
                                         .max_bytes = sums.max_bytes,
                                         .time_ns = wish->times ? k->times[i] : 0,
                                         .event = (uint32_t)i,
                                         .value = value,
                                         .kind = kind};
    }
    k->n_events = i;
    k->n_marks = (uint64_t)(mark - k->marks);
}

int tmk_skim_chunk(struct tmk_skim *k, const struct tmk_cursor *c, const struct tmk_skim_wish *wish)
{
    int rc = spread_sections(k, c, wish);
    if (rc == 0 && wish->bytes)
        rc = hold_blocks(k, c, wish->device);
    if (rc == 0)
        rc = make_room(k);
    if (rc == 0)
        mark_events(k, c, wish);
    return rc;
}

void tmk_skim_fini(struct tmk_skim *k)
{
    for (int i = 0; i <= TMK_KIND_OTHER; i++)
        free(k->data[i].values);
    free(k->kinds);
    free(k->times);
    free(k->held);
    free(k->marks);
    *k = (struct tmk_skim){0};
}
