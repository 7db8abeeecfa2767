/* SPDX-License-Identifier: MIT */
/* record/training/gradients.h - tag gradients of parameters where backward makes them.
 *
 * Each backward makes gradients anew, and each is tagged with its parameter's name. Asking Python
 * for them afterwards is slow: that thread has none of them in its caches and would wait half a
 * microsecond per parameter. The thread that makes a gradient comes to a node of the class
 * AccumulateGrad. Where there is no gradient yet, the computed tensor becomes the gradient, unless
 * somebody else holds it as well; until the node runs, only torch has it. Torch exports what is
 * needed to look at it: c10::TensorImpl::grad(), and in newer versions (2.11 does, 1.13 does not)
 * aoti_torch_get_data_ptr(), which compiled models are linked with. Where nodes keep their
 * parameters is found by looking.
 *
 * Python says which parameters there are, and checks the result: a gradient is tagged here once it
 * has been where we said (tensor_tags.c). It may take 61 backwards until names are right again
 * after parameters change places, another tensor takes a parameter's address, or the program sets a
 * gradient itself, begins to hold what was computed, or adds with create_graph, out of place. */
#ifndef TMK_RECORD_GRADIENTS_H
#define TMK_RECORD_GRADIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tmk_gradients_state {
    TMK_GRADIENT_LISTED,  /* it has had no gradient yet */
    TMK_GRADIENT_ODD,     /* of another kind, or gone when backward ends */
    TMK_GRADIENT_TRIED,   /* its gradient's address was said, but not yet confirmed */
    TMK_GRADIENT_TRUSTED, /* its gradient was where it was said to be: it is tagged */
};

struct tmk_gradients_parameter {
    uint64_t cdata; /* the tensor's `_cdata`: torch's own address of it */
    enum tmk_gradients_state state;
    uint32_t name; /* string id */
    uint16_t device;
    uint64_t said; /* address of its gradient, said by its last node; 0: no node ran */
};

/* Stands for an address: a node has run, and the gradient's address is not known. */
#define TMK_GRADIENT_SOMEWHERE 1

/* ---- with the interpreter's lock ---- */

/* Start over, for a new recording. */
void tmk_gradients_reset(void);
/* Forget all parameters, look at no node, and make room for n parameters. */
void tmk_gradients_clear(uint32_t n);
void tmk_gradients_put(const struct tmk_gradients_parameter *parameter);
/* Look at nodes from now on, if torch has what is needed. True when it is known where nodes keep
 * their parameters. */
bool tmk_gradients_watch(void);
/* Stop looking at nodes. */
void tmk_gradients_stop(void);

/* Find the parameter with this `_cdata`; false when there is none. */
bool tmk_gradients_find(uint64_t cdata, struct tmk_gradients_parameter *ret);
/* Learn from the number of parameters that have gradients now. True when that has shown where nodes
 * keep their parameters. */
bool tmk_gradients_learn(uint32_t n_gradients);
/* Called around a backward that returns gradients to its caller: torch.autograd.grad(). */
void tmk_gradients_begin_capture(void);
void tmk_gradients_end_capture(void);
/* Each is true when, since it was last asked, there was a node for a LISTED parameter; a gradient
 * made of an ODD or TRIED one; a node for none of the parameters. */
bool tmk_gradients_met_listed(void);
bool tmk_gradients_met_untrusted(void);
bool tmk_gradients_met_stranger(void);

bool tmk_gradients_are_watched(void);
/* Put the hook in or take it out, on any thread; out is allowed although it was never in.
 * `stays_open` leaves its page writable, for measurements that switch often. */
bool tmk_gradients_switch(bool in, bool stays_open);

/* ---- on threads of backward, for nodes of the class AccumulateGrad ---- */

struct tmk_gradients_found {
    uint64_t what, address; /* 0: there is nothing to tag */
};

/* Called before a node runs on its input, a std::vector of one tensor, and after it. */
struct tmk_gradients_found tmk_gradients_look(const void *node, const void *input);
void tmk_gradients_tag(struct tmk_gradients_found found);

#endif
