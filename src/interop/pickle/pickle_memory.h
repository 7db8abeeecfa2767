/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_memory.h - the objects of a pickle, with reference counts and recycled
 * memory. Private to the pickle reader.
 *
 * Sizes are powers of two times 16 bytes, with a free list each; memory comes from an arena and
 * goes back with it, so cycles and errors leak nothing. Freeing an object puts it on a list of
 * objects with items still to be released, and works that list off: it never recurses. */
#ifndef TMK_INTEROP_PICKLE_PICKLE_MEMORY_H
#define TMK_INTEROP_PICKLE_PICKLE_MEMORY_H

#include "interop/pickle/feed.h"
#include "interop/pickle/pickle_value.h"
#include "kit/arena.h"

enum { TMK_PICKLE_CLASSES = 32 };

struct tmk_pickle_room { /* one on a free list */
    struct tmk_pickle_room *next;
};

struct tmk_pickle_memory {
    struct tmk_arena arena;
    uint64_t total_bytes;        /* taken from the arena */
    const struct tmk_feed *feed; /* the limit follows what was read from it; NULL: no limit */
    uint64_t most_bytes;         /* the limit when it was last computed */
    bool is_over;                /* a limit was the reason for a NULL */
    uint8_t *at, *end;           /* of the arena block that small pieces are cut from */
    struct tmk_pickle_room *free_rooms[TMK_PICKLE_CLASSES];
    struct tmk_pickle_object *free_objects;
};

static inline bool tmk_pickle_is_object(const struct tmk_pickle_value *v)
{
    return v->kind >= TMK_PICKLE_TEXT && v->kind <= TMK_PICKLE_DICT;
}

/* Make an object with one reference and without content; NULL without memory. */
struct tmk_pickle_object *tmk_pickle_object_new(struct tmk_pickle_memory *m,
                                                enum tmk_pickle_kind kind);
/* Make room for `n` items. Returns false without memory, or for more than 2^31 bytes. */
bool tmk_pickle_object_reserve(struct tmk_pickle_memory *m, struct tmk_pickle_object *o,
                               uint64_t n);
/* Make a text of `n` bytes; NULL without memory. */
struct tmk_pickle_object *tmk_pickle_text_new(struct tmk_pickle_memory *m, const void *bytes,
                                              uint32_t n);
/* Release the items. */
void tmk_pickle_object_empty(struct tmk_pickle_memory *m, struct tmk_pickle_object *o);
/* Free the object: its last reference is gone. */
void tmk_pickle_object_free(struct tmk_pickle_memory *m, struct tmk_pickle_object *o);

static inline void tmk_pickle_release(struct tmk_pickle_memory *m, struct tmk_pickle_value v)
{
    if (tmk_pickle_is_object(&v) && --v.object->n_refs == 0)
        tmk_pickle_object_free(m, v.object);
}

#endif
