/* SPDX-License-Identifier: MIT */
/* record/training/tensor_tags.h - which tensors are gradients and inputs, as tags in the trace.
 *
 * All with the interpreter's lock. */
#ifndef TMK_RECORD_TENSOR_TAGS_H
#define TMK_RECORD_TENSOR_TAGS_H

#include <stddef.h>

struct tmk_object;

/* gradients(list): the parameters whose gradients are to be tagged, one module's behind each other:
 * (weak reference to the module, key, name, device). */
struct tmk_object *tmk_tensor_tags_gradients(struct tmk_object *self, struct tmk_object *arguments);
/* Tag the gradients that there are. All backwards were run by the calling thread. */
void tmk_tensor_tags_note_gradients(void);
/* A module is gone. */
void tmk_tensor_tags_forget(void);
/* Tag the tensors among a root's arguments. */
void tmk_tensor_tags_note_inputs(struct tmk_object *const *values, size_t n,
                                 struct tmk_object *keywords);
void tmk_tensor_tags_reset(void);
void tmk_tensor_tags_init(void);

#endif
