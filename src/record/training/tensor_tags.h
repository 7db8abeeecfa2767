/* SPDX-License-Identifier: MIT */
/* record/training/tensor_tags.h - tag gradients and inputs in the trace.
 *
 * All of it needs the interpreter's lock. */
#ifndef TMK_RECORD_TENSOR_TAGS_H
#define TMK_RECORD_TENSOR_TAGS_H

#include <stddef.h>

struct tmk_object;

/* bridge.py calls gradients(list) with the parameters that get tags for their gradients, module
 * after module: (weak reference to the module, key, name, device). */
struct tmk_object *tmk_tensor_tags_gradients(struct tmk_object *self, struct tmk_object *arguments);
/* Tag the gradients that exist now. The calling thread must have run all backwards. */
void tmk_tensor_tags_note_gradients(void);
/* Called when a module is gone. */
void tmk_tensor_tags_forget(void);
/* Tag the tensors among the arguments of a root module's call. */
void tmk_tensor_tags_note_inputs(struct tmk_object *const *values, size_t n,
                                 struct tmk_object *keywords);
void tmk_tensor_tags_reset(void);
void tmk_tensor_tags_init(void);

#endif
