/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_history.c - see torch_history.h. */
#include "interop/torch/torch_history.h"

#include <stdlib.h>

#include "base/error.h"
#include "interop/pickle/work_limit.h"
#include "interop/torch/spool.h"
#include "kit/grow.h"
#include "kit/seeded_hash.h"
#include "model/alloc_conf.h"

enum place_state { PLACE_LIVE, PLACE_PENDING, PLACE_GONE };

struct tmk_import_place { /* an address at which events happen */
    uint64_t address;
    uint64_t block;    /* number + 1 of the block that is there at the end; 0: none */
    uint32_t n_allocs; /* number still to come */
    uint8_t state;     /* enum place_state, of the last event */
    bool has_events;
};

/* Changes of segments, to be undone from the end. */
struct history_change {
    uint64_t address;
    uint64_t size_bytes;
    bool is_gain, is_expandable;
};

struct changes {
    struct history_change *items;
    uint64_t n, room;
};

/* ---- places ---- */

static struct tmk_import_place *find_place(const struct tmk_import_history *h, uint64_t address)
{
    struct tmk_probe probe = tmk_index_probe(&h->place_index, tmk_hash_seeded_u64(address));
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;)
        if (h->places[i - 1].address == address)
            return &h->places[i - 1];
    return NULL;
}

/* The address's place, which is made when new; NULL without memory. Good until the next one is
 * made. */
static struct tmk_import_place *place_at(struct tmk_import_history *h, uint64_t address)
{
    struct tmk_import_place *known = find_place(h, address);
    if (known)
        return known;
    if (TMK_GROW(h->places, h->n_places + 1, h->place_room) < 0 ||
        tmk_grow_index(&h->place_index) < 0)
        return NULL;
    h->places[h->n_places++] = (struct tmk_import_place){.address = address};
    tmk_index_add(&h->place_index, tmk_hash_seeded_u64(address), (uint32_t)h->n_places);
    return &h->places[h->n_places - 1];
}

uint64_t tmk_import_history_real_bytes(struct tmk_import_history *h, uint64_t address)
{
    struct tmk_import_place *place = find_place(h, address);
    if (!place || place->n_allocs == 0 || --place->n_allocs > 0)
        return 0;
    bool is_alive = place->block > 0 && place->state != PLACE_GONE;
    return is_alive ? h->snapshot->blocks[place->block - 1].size_bytes : 0;
}

/* ---- the events ---- */

static int add_seed(struct tmk_import_history *h, const struct tmk_import_seed *seed)
{
    if (TMK_GROW(h->seeds, h->n_seeds + 1, h->seed_room) < 0)
        return TMK_ENOMEM;
    h->seeds[h->n_seeds++] = *seed;
    return 0;
}

/* The block ends; if nothing is known of its address, it was there before. */
static int note_block_end(struct tmk_import_history *h, const struct tmk_import_event *ev)
{
    struct tmk_import_place *place = place_at(h, ev->address);
    if (!place)
        return TMK_ENOMEM;
    bool is_new = !place->has_events;
    place->has_events = true;
    place->state = ev->action == TMK_IMPORT_FREE_REQUESTED ? PLACE_PENDING : PLACE_GONE;
    if (!is_new)
        return 0;
    return add_seed(h, &(struct tmk_import_seed){
                           .address = ev->address,
                           .requested_bytes = ev->size_bytes,
                           .stream = ev->stream,
                           .is_pending = ev->action == TMK_IMPORT_FREE_COMPLETED,
                       });
}

static int note_change(struct changes *c, const struct tmk_import_event *ev)
{
    if (TMK_GROW(c->items, c->n + 1, c->room) < 0)
        return TMK_ENOMEM;
    c->items[c->n++] = (struct history_change){
        .address = ev->address,
        .size_bytes = ev->size_bytes,
        .is_gain = ev->action == TMK_IMPORT_SEGMENT_ALLOC || ev->action == TMK_IMPORT_SEGMENT_MAP,
        .is_expandable =
            ev->action == TMK_IMPORT_SEGMENT_MAP || ev->action == TMK_IMPORT_SEGMENT_UNMAP,
    };
    return 0;
}

static int note_event(struct tmk_import_history *h, struct changes *c,
                      const struct tmk_import_event *ev)
{
    struct tmk_import_place *place;
    switch (ev->action) {
    case TMK_IMPORT_ALLOC:
        place = place_at(h, ev->address);
        if (!place)
            return TMK_ENOMEM;
        place->n_allocs++;
        place->has_events = true;
        place->state = PLACE_LIVE;
        return 0;
    case TMK_IMPORT_FREE:
    case TMK_IMPORT_FREE_REQUESTED:
    case TMK_IMPORT_FREE_COMPLETED:
        return note_block_end(h, ev);
    case TMK_IMPORT_SEGMENT_ALLOC:
    case TMK_IMPORT_SEGMENT_FREE:
    case TMK_IMPORT_SEGMENT_MAP:
    case TMK_IMPORT_SEGMENT_UNMAP:
        return note_change(c, ev);
    default:
        return 0;
    }
}

static int read_events(struct tmk_import_history *h, struct changes *c, struct tmk_error *err)
{
    struct tmk_spool *events = h->snapshot->events[h->device];
    if (!events)
        return 0;
    int rc = tmk_spool_rewind(events, err);
    const void *next;
    while (rc == 0 && (rc = tmk_spool_peek(events, 0, &next, err)) > 0) {
        rc = note_event(h, c, next);
        tmk_spool_take(events);
    }
    return rc;
}

/* ---- the end ---- */

static int note_final_block(struct tmk_import_history *h, uint64_t number, uint16_t stream)
{
    const struct tmk_import_block *b = &h->snapshot->blocks[number];
    if (b->state == TMK_IMPORT_INACTIVE)
        return 0;
    struct tmk_import_place *place = place_at(h, b->address);
    if (!place)
        return TMK_ENOMEM;
    place->block = number + 1;
    if (place->has_events)
        return 0;
    return add_seed(h, &(struct tmk_import_seed){
                           .address = b->address,
                           .size_bytes = b->size_bytes,
                           .requested_bytes = b->requested_bytes,
                           .stack = b->stack,
                           .stream = stream,
                           .is_pending = b->state == TMK_IMPORT_PENDING_FREE,
                       });
}

static int read_final_state(struct tmk_import_history *h)
{
    const struct tmk_import_snapshot *s = h->snapshot;
    int rc = 0;
    for (uint64_t i = 0; i < s->n_segments && rc == 0; i++) {
        const struct tmk_import_segment *g = &s->segments[i];
        if (g->device != h->device)
            continue;
        rc = tmk_import_layout_map(h->layout, g->address, g->size_bytes, g->is_expandable);
        for (uint64_t k = 0; k < g->n_blocks && rc == 0; k++)
            rc = note_final_block(h, g->first_block + k, g->stream);
    }
    return rc;
}

static int undo_changes(struct tmk_import_history *h, const struct changes *c)
{
    int rc = 0;
    for (uint64_t i = c->n; i-- > 0 && rc == 0;) {
        const struct history_change *change = &c->items[i];
        rc = change->is_gain
                 ? tmk_import_layout_unmap(h->layout, change->address, change->size_bytes)
                 : tmk_import_layout_map(h->layout, change->address, change->size_bytes,
                                         change->is_expandable);
    }
    return rc;
}

/* ---- the beginning ---- */

static int compare_seeds(const void *va, const void *vb)
{
    const struct tmk_import_seed *a = va, *b = vb;
    return (a->address > b->address) - (a->address < b->address);
}

/* The most that the seed's block may take. */
static uint64_t room_of_seed(const struct tmk_import_history *h, uint64_t i)
{
    uint64_t left = tmk_import_layout_left(h->layout, h->seeds[i].address);
    if (i + 1 < h->n_seeds && h->seeds[i + 1].address - h->seeds[i].address < left)
        left = h->seeds[i + 1].address - h->seeds[i].address;
    return left;
}

/* Place seeds in order of addresses, each in the free rest of its segment. A seed without a known
 * size gets what torch would not have split off, as if everything up to the next seed had been
 * free. */
static int place_seeds(struct tmk_import_history *h, const struct tmk_alloc_conf *conf)
{
    if (h->n_seeds > 0)
        qsort(h->seeds, h->n_seeds, sizeof *h->seeds, compare_seeds);
    int rc = 0;
    for (uint64_t i = 0; i < h->n_seeds && rc == 0; i++) {
        struct tmk_import_seed *seed = &h->seeds[i];
        uint64_t room = room_of_seed(h, i), size = seed->size_bytes;
        if (size == 0) {
            size = tmk_alloc_round(conf, seed->requested_bytes);
            if (room > size && !tmk_alloc_should_split(conf, room, size))
                size = room;
        }
        rc = tmk_import_layout_alloc(h->layout, seed->address, seed->requested_bytes, size,
                                     &seed->size_bytes);
    }
    return rc;
}

int tmk_import_history_init(struct tmk_import_history *h, struct tmk_import_snapshot *s,
                            uint16_t device, const struct tmk_alloc_conf *conf,
                            struct tmk_error *err)
{
    *h = (struct tmk_import_history){.snapshot = s, .device = device};
    struct changes changes = {0};
    int rc = tmk_import_layout_open(conf, &s->work, &h->layout);
    if (rc == 0)
        rc = read_events(h, &changes, err);
    if (rc == 0)
        rc = read_final_state(h);
    if (rc == 0)
        rc = undo_changes(h, &changes);
    if (rc == 0)
        rc = place_seeds(h, conf);
    free(changes.items);
    if (rc == TMK_ENOMEM)
        tmk_fail(err, rc, "out of memory");
    if (rc == TMK_EFULL)
        tmk_work_fail(&s->work, err);
    if (rc < 0)
        tmk_import_history_fini(h);
    return rc;
}

void tmk_import_history_fini(struct tmk_import_history *h)
{
    tmk_import_layout_close(h->layout);
    free(h->seeds);
    free(h->places);
    free(h->place_index.slots);
    *h = (struct tmk_import_history){0};
}
