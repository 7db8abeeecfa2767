/* SPDX-License-Identifier: MIT */
/* record/training/gradients.h - gradients of parameters, seen where backward makes them.
 *
 * Each backward makes gradients anew, and each is tagged with its parameter's name. Python could be
 * asked for them afterwards, but that thread has nothing of them in its caches: it would wait for
 * half a microsecond a parameter. The thread that makes them comes to a node of the class
 * AccumulateGrad for each. Where there is no gradient yet, what was computed becomes the gradient,
 * unless somebody else holds it as well; until the node runs, it is only torch's. Torch exports
 * what is needed to look at it: c10::TensorImpl::grad(), and newer ones (2.11 does, 1.13 does not)
 * aoti_torch_get_data_ptr(), which compiled models are bound to. Where nodes have their parameters
 * is found out.
 *
 * It is Python that says which parameters there are, and it is the judge: a gradient is tagged here
 * when it was where we said (tensor_tags.c). It may be 61 backwards until names are right again
 * when parameters change places, a tensor comes to be where a parameter was, or the program sets a
 * gradient itself, begins to hold what was computed, or adds with create_graph, out of place. */
#ifndef TMK_RECORD_GRADIENTS_H
#define TMK_RECORD_GRADIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tmk_gradients_state {
    TMK_GRADIENT_LISTED,  /* it has had no gradient yet */
    TMK_GRADIENT_ODD,     /* its gradient is of another kind, or gone when backward ends */
    TMK_GRADIENT_TRIED,   /* where its gradient is, is said, but not yet believed */
    TMK_GRADIENT_TRUSTED, /* it was there: it is tagged */
};

struct tmk_gradients_parameter {
    uint64_t cdata; /* a tensor's `_cdata`: torch's own address of it */
    enum tmk_gradients_state state;
    uint32_t name; /* string id */
    uint16_t device;
    uint64_t said; /* where its gradient is, by the last node that made one; 0: none has */
};

/* Instead of an address: a node has run, and where the gradient is cannot be said. */
#define TMK_GRADIENT_SOMEWHERE 1

/* ---- with the interpreter's lock ---- */

/* For a new recording. */
void tmk_gradients_reset(void);
/* No parameter is known, no node is looked at; there is room for n parameters. */
void tmk_gradients_clear(uint32_t n);
void tmk_gradients_put(const struct tmk_gradients_parameter *parameter);
/* From now on nodes are looked at, if torch has what is needed for it. True when it is known where
 * they have their parameters. */
bool tmk_gradients_watch(void);
/* Nodes are looked at no longer. */
void tmk_gradients_stop(void);

/* The parameter with this `_cdata`; false when there is none. */
bool tmk_gradients_find(uint64_t cdata, struct tmk_gradients_parameter *ret);
/* So many of the parameters have gradients now: true when by that it has become known where nodes
 * have their parameters. */
bool tmk_gradients_learn(uint32_t n_gradients);
/* A backward begins that gives gradients to its caller, torch.autograd.grad()'s; it has ended. */
void tmk_gradients_begin_capture(void);
void tmk_gradients_end_capture(void);
/* Since this was asked last there was a node for a parameter that is LISTED; a gradient made of one
 * that is ODD or TRIED; a node for none of the parameters. */
bool tmk_gradients_met_listed(void);
bool tmk_gradients_met_untrusted(void);
bool tmk_gradients_met_stranger(void);

bool tmk_gradients_are_watched(void);
/* Put the hook in, or take it out; any thread, and for good measure without effect when it was
 * never in. For measurements, which do so often, its page stays writable. */
bool tmk_gradients_switch(bool in, bool stays_open);

/* ---- on threads of backward, for nodes of the class AccumulateGrad ---- */

struct tmk_gradients_found {
    uint64_t what, address; /* 0: there is nothing to be tagged */
};

/* A node is about to run on its input, a std::vector of one tensor; it has run. */
struct tmk_gradients_found tmk_gradients_look(const void *node, const void *input);
void tmk_gradients_tag(struct tmk_gradients_found found);

#endif
