/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_holders.h - what Python's tensors had of the blocks of each stack when the
 * process was asked (docs/format.md, holder events).
 *
 * Blocks that no tensor of Python's has are kept by autograd's graph or by C++ code. Of the
 * inquiries the one counts that found most blocks of the stack alive: at the end of a program much
 * is gone already. It is part of leaks.h. */
#ifndef TMK_PASSES_LEAK_LEAK_HOLDERS_H
#define TMK_PASSES_LEAK_LEAK_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "trace/events.h"
#include "trace/state.h"

struct tmk_leak_holding {
    uint32_t stack;
    uint64_t n_alive, n_held; /* at the inquiry */
    uint64_t n_graph;         /* of those held, by a tensor that autograd's graph made */
    uint32_t name;            /* what holds one of them, a string of the trace; 0: not known */
};

struct tmk_leak_holders {
    struct tmk_leak_holding *stacks;
    uint64_t n_stacks, room;
    struct tmk_index index; /* of number + 1, by stack */
    uint64_t *held;         /* blocks that this inquiry has named: 2 * serial + is_graph */
    uint64_t n_held, held_room;
    bool failed; /* out of memory */
};

/* Say that there was a HOLDER event; the state is that of the replay. */
void tmk_leak_holders_event(struct tmk_leak_holders *h, const struct tmk_state *s,
                            const struct tmk_event *ev);
void tmk_leak_holders_fini(struct tmk_leak_holders *h);

/* NULL: not asked. */
const struct tmk_leak_holding *tmk_leak_holders_of(const struct tmk_leak_holders *h,
                                                   uint32_t stack);

/* The blocks of the stack are in Python's tensors, or they are not; neither, when it is not known.
 */
bool tmk_leak_is_held(const struct tmk_leak_holders *h, uint32_t stack);
bool tmk_leak_is_unheld(const struct tmk_leak_holders *h, uint32_t stack);

#endif
