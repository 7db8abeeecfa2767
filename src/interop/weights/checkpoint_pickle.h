/* SPDX-License-Identifier: MIT */
/* interop/weights/checkpoint_pickle.h - the content of a checkpoint's data.pkl as plain values.
 *
 * Beside plain data, such a pickle names functions and classes (torch._utils._rebuild_tensor_v2,
 * torch.FloatStorage, collections.OrderedDict ...) and says "call this with that". Nothing is
 * called: a call becomes a value CALL with the name, the arguments and the state set on it; its
 * reader knows what a few names mean (checkpoint_tensors.c). So a pickle that names os.system
 * becomes a value with that name in it, and nothing else happens.
 *
 * interop/pickle/pickle.h reads gigabytes of snapshots in a stream and rejects names; this reader
 * holds a small pickle whole, in an arena, and frees nothing before the end. */
#ifndef TMK_INTEROP_WEIGHTS_CHECKPOINT_PICKLE_H
#define TMK_INTEROP_WEIGHTS_CHECKPOINT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "interop/pickle/work_limit.h"
#include "kit/arena.h"

enum tmk_checkpoint_kind {
    TMK_CHECKPOINT_NONE,
    TMK_CHECKPOINT_BOOL,
    TMK_CHECKPOINT_INT,
    TMK_CHECKPOINT_OTHER, /* floats, bytes, ints of more than 64 bits: of no use here */
    TMK_CHECKPOINT_TEXT,
    TMK_CHECKPOINT_TUPLE,
    TMK_CHECKPOINT_LIST, /* also sets */
    TMK_CHECKPOINT_DICT, /* keys and values in turn */
    TMK_CHECKPOINT_NAME, /* "module.name" */
    TMK_CHECKPOINT_CALL, /* items: name, arguments, then states and what was put into it */
    TMK_CHECKPOINT_ID,   /* a persistent id; items: one, which says what */
    TMK_CHECKPOINT_MARK, /* on the machine's stack only */
};

struct tmk_checkpoint_value {
    enum tmk_checkpoint_kind kind;
    uint32_t seen; /* for the reader's own use */
    union {
        int64_t number;
        const char *text;
        struct {
            struct tmk_checkpoint_value **items;
            uint64_t n, room;
        };
    };
    struct tmk_checkpoint_value *dict; /* CALL: keys and values put into it; NULL: none */
};

/* The limits of reading a checkpoint: steps, and memory of an arena that may be in use already.
 * Both limits follow the bytes of the pickle that have been read. */
struct tmk_checkpoint_limit {
    struct tmk_work_limit work;
    const struct tmk_arena *arena;
    size_t arena_before; /* bytes in it at the start */
};

void tmk_checkpoint_limit_init(struct tmk_checkpoint_limit *l, const struct tmk_arena *arena,
                               uint64_t steps_per_byte, bool is_off);
/* Returns 0, or TMK_EFULL with the reason: too many steps, or too much memory. */
int tmk_checkpoint_limit_check(const struct tmk_checkpoint_limit *l, struct tmk_error *err);

/* Read the pickle. 0 gives the outermost value, which lives in the arena. Otherwise TMK_EDAMAGED,
 * TMK_EFORMAT, TMK_ENOMEM, or TMK_EFULL: it takes more than `limit` allows; afterwards the limit
 * counts all bytes that were read. The values may contain one another in a ring. */
int tmk_checkpoint_pickle_read(const uint8_t *pickle, size_t n, struct tmk_arena *arena,
                               struct tmk_checkpoint_limit *limit,
                               struct tmk_checkpoint_value **ret, struct tmk_error *err);

#endif
