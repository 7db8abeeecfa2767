/* SPDX-License-Identifier: MIT */
/* record/torch_backward.h - in front of torch::autograd::Engine::execute().
 *
 * The Python binding calls it once for each backward() or grad(), on the thread that called those:
 * the moment to note whose backward pass it is. It takes C++ objects, some on the stack, and
 * returns one; so the hook is a stub that keeps all argument registers, makes a note and *jumps* on
 * with the stack as it was. */
#ifndef TMK_RECORD_TORCH_BACKWARD_H
#define TMK_RECORD_TORCH_BACKWARD_H

#define TMK_NAME_BACKWARD                                                                          \
    "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_"     \
    "EEbbbS7_"

/* torch.c: makes the note, returns the real function. Called by the stub only. */
void *tmk_torch_begin_backward(void);

/* Under a name of ours; under torch's own it is there for the loader. */
void tmk_hook_backward(void);

#endif
