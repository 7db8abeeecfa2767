/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_memory.c - see pickle_memory.h. */
#include "interop/pickle/pickle_memory.h"

#include <string.h>

#include "interop/pickle/feed.h"

_Static_assert(sizeof(struct tmk_pickle_object) == 32, "cut from blocks in units of 16");

enum {
    UNIT = 16,
    BLOCK_BYTES = 1 << 18,
    CLASS_MAX = 27,
    /* Bytes of memory allowed for each byte read. A snapshot with all blocks in one segment takes
     * nine. */
    MEMORY_TIMES = 16,
    MEMORY_LEAST_BYTES = 64 << 20,
};

/* Class k > 0 has 16 << (k - 1) bytes. */
static size_t class_bytes(unsigned class)
{
    return (size_t)UNIT << (class - 1);
}

/* True when `n` more bytes are too many for what has been read so far. */
static bool is_memory_too_much(struct tmk_pickle_memory *m, size_t n)
{
    if (!m->feed || m->total_bytes + n <= m->most_bytes)
        return false;
    m->most_bytes = MEMORY_TIMES * tmk_feed_counted_bytes(m->feed) + MEMORY_LEAST_BYTES;
    return m->total_bytes + n > m->most_bytes;
}

static void *cut_bytes(struct tmk_pickle_memory *m, size_t n)
{
    m->is_over = is_memory_too_much(m, n);
    if (m->is_over)
        return NULL;
    m->total_bytes += n;
    if (n > BLOCK_BYTES / 4)
        return tmk_arena_take(&m->arena, n);
    if ((size_t)(m->end - m->at) < n) {
        m->at = tmk_arena_take(&m->arena, BLOCK_BYTES);
        m->end = m->at ? m->at + BLOCK_BYTES : NULL;
        if (!m->at)
            return NULL;
    }
    void *room = m->at;
    m->at += n;
    return room;
}

static void *take_item_room(struct tmk_pickle_memory *m, unsigned class)
{
    struct tmk_pickle_room *room = m->free_rooms[class];
    if (!room)
        return cut_bytes(m, class_bytes(class));
    m->free_rooms[class] = room->next;
    return room;
}

static void give_room(struct tmk_pickle_memory *m, struct tmk_pickle_object *o)
{
    if (o->room_class == 0)
        return;
    struct tmk_pickle_room *room = (void *)o->items;
    room->next = m->free_rooms[o->room_class];
    m->free_rooms[o->room_class] = room;
    o->room_class = 0;
    o->items = NULL;
}

static unsigned class_for(uint64_t bytes)
{
    return bytes <= UNIT ? 1 : (unsigned)(64 - __builtin_clzll((bytes - 1) / UNIT)) + 1;
}

struct tmk_pickle_object *tmk_pickle_object_new(struct tmk_pickle_memory *m,
                                                enum tmk_pickle_kind kind)
{
    struct tmk_pickle_object *o = m->free_objects;
    if (o)
        m->free_objects = o->link;
    else if (!(o = cut_bytes(m, sizeof *o)))
        return NULL;
    *o = (struct tmk_pickle_object){.n_refs = 1, .kind = kind & 15};
    return o;
}

bool tmk_pickle_object_reserve(struct tmk_pickle_memory *m, struct tmk_pickle_object *o, uint64_t n)
{
    unsigned class = class_for(n * sizeof *o->items);
    if (class <= o->room_class)
        return true;
    struct tmk_pickle_value *room = class <= CLASS_MAX ? take_item_room(m, class) : NULL;
    if (!room)
        return false;
    if (o->n > 0)
        memcpy(room, o->items, o->n * sizeof *room);
    give_room(m, o);
    o->items = room;
    o->room_class = (uint8_t) class;
    return true;
}

struct tmk_pickle_object *tmk_pickle_text_new(struct tmk_pickle_memory *m, const void *bytes,
                                              uint32_t n)
{
    struct tmk_pickle_object *o = tmk_pickle_object_new(m, TMK_PICKLE_TEXT);
    unsigned class = class_for((uint64_t)n + 1);
    if (!o || class > CLASS_MAX)
        return NULL;
    o->text = take_item_room(m, class);
    if (!o->text)
        return NULL;
    o->room_class = (uint8_t) class;
    o->n = n;
    memcpy(o->text, bytes, n);
    o->text[n] = '\0';
    return o;
}

static void recycle_object(struct tmk_pickle_memory *m, struct tmk_pickle_object *o)
{
    give_room(m, o);
    o->link = m->free_objects;
    m->free_objects = o;
}

static void drop_items(struct tmk_pickle_memory *m, struct tmk_pickle_object *o,
                       struct tmk_pickle_object **pending)
{
    for (uint32_t i = 0; i < o->n; i++) {
        struct tmk_pickle_value *v = &o->items[i];
        if (!tmk_pickle_is_object(v) || --v->object->n_refs > 0)
            continue;
        if (v->object->kind >= TMK_PICKLE_TUPLE && v->object->n > 0) {
            v->object->link = *pending;
            *pending = v->object;
        } else {
            recycle_object(m, v->object);
        }
    }
    o->n = 0;
}

void tmk_pickle_object_empty(struct tmk_pickle_memory *m, struct tmk_pickle_object *o)
{
    struct tmk_pickle_object *pending = NULL;
    if (o->kind >= TMK_PICKLE_TUPLE)
        drop_items(m, o, &pending);
    give_room(m, o);
    while (pending) {
        struct tmk_pickle_object *child = pending;
        pending = child->link;
        drop_items(m, child, &pending);
        recycle_object(m, child);
    }
}

void tmk_pickle_object_free(struct tmk_pickle_memory *m, struct tmk_pickle_object *o)
{
    tmk_pickle_object_empty(m, o);
    recycle_object(m, o);
}
