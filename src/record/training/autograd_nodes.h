/* SPDX-License-Identifier: MIT */
/* record/training/autograd_nodes.h - which module's gradient backward is computing.
 *
 * Autograd numbers its nodes as forward makes them, one sequence a thread. So a module's nodes are
 * those with the numbers that were handed out between its call and its return. The numbers at which
 * the innermost module changed are kept, the last few ten thousand of each thread; when backward
 * comes to a node (a hook on Engine::evaluate_function, in block_hooks.c), its number says the
 * module. No hook is put on any node, no graph is changed, nothing is kept alive. */
#ifndef TMK_RECORD_AUTOGRAD_NODES_H
#define TMK_RECORD_AUTOGRAD_NODES_H

#include <stdbool.h>
#include <stdint.h>

/* From the next node on that the calling thread makes, the innermost module is this one. */
void tmk_autograd_nodes_note(uint32_t module);

/* The module of a node of torch's (torch::autograd::Node), 0: none is known. *ret_keep is true for
 * nodes that go with the one before: those that add up a parameter's gradient. */
uint32_t tmk_autograd_nodes_module(const void *node, bool *ret_keep);

/* False when this torch has not what is needed, or its nodes look otherwise. Looks it up. */
bool tmk_autograd_nodes_ready(void);

/* Forget everything, for a new recording. */
void tmk_autograd_nodes_reset(void);

#endif
