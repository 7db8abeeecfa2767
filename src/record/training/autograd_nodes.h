/* SPDX-License-Identifier: MIT */
/* record/training/autograd_nodes.h - find the module of a node that backward is at.
 *
 * Autograd numbers its nodes as forward makes them, in one sequence per thread. So a module's nodes
 * have the numbers that were handed out between its call and its return. We keep the numbers at
 * which the innermost module changed, the last few ten thousand of each thread. When backward comes
 * to a node (a hook on Engine::evaluate_function, in block_hooks.c), the node's number says the
 * module. No hook is put on a node, no graph is changed, and nothing is kept alive. */
#ifndef TMK_RECORD_AUTOGRAD_NODES_H
#define TMK_RECORD_AUTOGRAD_NODES_H

#include <stdbool.h>
#include <stdint.h>

/* Note that the calling thread's next nodes belong to this module; 0: to none. */
void tmk_autograd_nodes_note(uint32_t module);

/* The module of a node (torch::autograd::Node); 0: not known. *ret_keep is true for nodes that go
 * with the node before: those that accumulate a parameter's gradient. */
uint32_t tmk_autograd_nodes_module(const void *node, bool *ret_keep);

/* Look up what is needed in torch. False when this torch does not have it. */
bool tmk_autograd_nodes_ready(void);

/* Forget everything, for a new recording. */
void tmk_autograd_nodes_reset(void);

#endif
