/* SPDX-License-Identifier: MIT */
/* record/python/pyknown.h - recognise the calling thread's Python stack by a hash of its frames.
 *
 * A training has a few hundred stacks and comes to each of them again and again. Most of the cost
 * is not the work but what has to be fetched for it: between two blocks the processor's caches have
 * gone through everything else, and what we fetch evicts what the program needs next. So
 * recognising a known stack takes little, code above all: one function, compiled for each layout
 * with known offsets. Whatever is unusual is elsewhere. */
#ifndef TMK_RECORD_PYKNOWN_H
#define TMK_RECORD_PYKNOWN_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_pyknown {
    uint64_t stack; /* its id, of 32 bits; 0: not known, or not found at once */
    uint64_t hash;  /* equal hashes mean equal stacks; 0: there are no frames */
};

/* The part of a thread's stack below a call from C to Python, which does not change until that call
 * returns. The hash of its frames is computed once; after that only the frames above are read: a
 * few, where there may be a hundred. The anchor lives in the C frame of whoever makes the call. */
struct tmk_pyanchor {
    const void *frame;     /* the Python frame that called C */
    uint64_t outer, power; /* a stack's hash is (hash of the frames above) * power + outer */
};

/* The thread's anchor during such a call: `ret`, or still `before`; and its anchor after the
 * call. */
const struct tmk_pyanchor *tmk_pyknown_enter(struct tmk_pyanchor *ret,
                                             const struct tmk_pyanchor *before);
const struct tmk_pyanchor *tmk_pyknown_leave(struct tmk_pyanchor *anchor,
                                             const struct tmk_pyanchor *before);

/* The id of a stack that find() did not know at once; 0: not known. */
uint32_t tmk_pyknown_stack(uint64_t hash);
/* Remember the id of a stack. */
void tmk_pyknown_remember(uint64_t hash, uint32_t stack);

/* True when stacks can be read and a watcher of code objects makes a difference. */
bool tmk_pyknown_can_be_watched(void);
/* Set whether Python tells when code objects die; sets tmk_pyframe_hot.find. */
void tmk_pyknown_set_watched(bool is_watched);
/* Forget all hashes: none of before means a stack any more. */
void tmk_pyknown_forget(void);

#endif
