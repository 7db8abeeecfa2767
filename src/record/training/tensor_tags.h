/* SPDX-License-Identifier: MIT */
/* record/training/tensor_tags.h - tag gradients and inputs in the trace.
 *
 * All of it needs the interpreter's lock. */
#ifndef TMK_RECORD_TENSOR_TAGS_H
#define TMK_RECORD_TENSOR_TAGS_H

#include <stddef.h>

#include <stdint.h>

struct tmk_object;

/* Classes of Python and torch, found when the bridge is armed. */
enum tmk_tensor_class { TMK_CLASS_TUPLE, TMK_CLASS_LIST, TMK_CLASS_DICT, TMK_CLASS_MODULE };
struct tmk_object *tmk_tensor_tags_class(enum tmk_tensor_class class);

/* Tag the storage of a plain tensor, and the string id of a tag's name. */
void tmk_tensor_tags_put(struct tmk_object *tensor, unsigned category, uint32_t name);
uint32_t tmk_tensor_tags_name(const char *text);

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
