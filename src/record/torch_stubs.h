/* SPDX-License-Identifier: MIT */
/* record/torch_stubs.h - in front of functions of torch that take or return C++ objects.
 *
 * A stub keeps all argument registers, calls a function of torch.c that makes a note and says where
 * the real one is, and *jumps* there with the stack as it was: whatever the arguments are, and
 * however the result comes back, it is between the caller and torch.
 *
 * - torch::autograd::Engine::execute(): the Python binding calls it once for each backward() or
 *   grad(), on the thread that called those: the moment to note whose backward pass it is.
 * - c10::cuda::getStreamFromPool() and getStreamFromExternal(): nobody has another stream than the
 *   default one without them. Until one is called, no block is asked for its stream. */
#ifndef TMK_RECORD_TORCH_STUBS_H
#define TMK_RECORD_TORCH_STUBS_H

#define TMK_NAME_BACKWARD                                                                          \
    "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_"     \
    "EEbbbS7_"
#define TMK_NAME_POOL_BOOL "_ZN3c104cuda17getStreamFromPoolEba"
#define TMK_NAME_POOL_INT "_ZN3c104cuda17getStreamFromPoolEia"
#define TMK_NAME_EXTERNAL "_ZN3c104cuda21getStreamFromExternalEP11CUstream_sta"

/* torch.c: make the note, return the real function. Called by the stubs only, with the address that
 * theirs was called from. */
void *tmk_torch_begin_backward(const void *caller);
void *tmk_torch_use_pool_bool(const void *caller);
void *tmk_torch_use_pool_int(const void *caller);
void *tmk_torch_use_external(const void *caller);

/* Under names of ours; under torch's own they are there for the loader. */
void tmk_stub_backward(void);
void tmk_stub_pool_bool(void);
void tmk_stub_pool_int(void);
void tmk_stub_external(void);

#endif
