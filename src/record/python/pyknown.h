/* SPDX-License-Identifier: MIT */
/* record/python/pyknown.h - which Python stack the calling thread has, by a hash of its frames.
 *
 * A training has a few hundred stacks, and comes to each of them again and again. Most of what that
 * costs is not what is done but what has to be fetched for it: between two blocks the processor's
 * caches have gone through everything else, and what we fetch pushes out what the program needs
 * next. So the way of a stack that is known is short, in code above all: one function, compiled for
 * each layout whose offsets are known; whatever is not usual is elsewhere. */
#ifndef TMK_RECORD_PYKNOWN_H
#define TMK_RECORD_PYKNOWN_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_pyknown {
    uint64_t stack; /* its id, of 32 bits; 0: not known, or not at once */
    uint64_t hash;  /* equal ones mean equal stacks; 0: there are no frames */
};

/* Whoever calls on from C to Python knows that until that returns the frames below do not change.
 * What their part of the hash is can then be told once, and of a stack only the frames above are
 * looked at: a few, where there may be a hundred. It lives in that caller's own C frame. */
struct tmk_pyanchor {
    const void *frame;     /* the one that called C */
    uint64_t outer, power; /* a hash of the frames above, times the one, plus the other */
};

/* What the thread's anchor is while the caller calls on: `ret`, or `before`, which it was; and what
 * it is when that has returned. */
const struct tmk_pyanchor *tmk_pyknown_enter(struct tmk_pyanchor *ret,
                                             const struct tmk_pyanchor *before);
const struct tmk_pyanchor *tmk_pyknown_leave(struct tmk_pyanchor *anchor,
                                             const struct tmk_pyanchor *before);

/* Where find() did not know it at once. 0: not known. */
uint32_t tmk_pyknown_stack(uint64_t hash);
/* From now on it is. */
void tmk_pyknown_remember(uint64_t hash, uint32_t stack);

/* Whether stacks are read, and it makes a difference whether Python tells when code objects go. */
bool tmk_pyknown_can_be_watched(void);
/* It does from now on, or not (any more): tmk_pyframe_hot.find is set. */
void tmk_pyknown_set_watched(bool is_watched);
/* No hash of before means a stack any more. */
void tmk_pyknown_forget(void);

#endif
