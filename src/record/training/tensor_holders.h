/* SPDX-License-Identifier: MIT */
/* record/training/tensor_holders.h - which live blocks Python's tensors have, and what holds these.
 *
 * bridge.py asks now and then (see inquire()). Blocks that live on without a tensor of Python's are
 * kept by autograd's graph, or by C++ code. */
#ifndef TMK_RECORD_TENSOR_HOLDERS_H
#define TMK_RECORD_TENSOR_HOLDERS_H

struct tmk_object;

/* tensors(), for bridge.py: put on record which blocks the tensors have that exist now. Returns a
 * list with some tensors of each size of which there are many, for bridge.py to find what holds
 * them. */
struct tmk_object *tmk_tensor_holders_tensors(struct tmk_object *self,
                                              struct tmk_object *arguments);

/* holder(device, address, text), for bridge.py: put on record what holds the tensor of a block. */
struct tmk_object *tmk_tensor_holders_holder(struct tmk_object *self, struct tmk_object *arguments);

#endif
