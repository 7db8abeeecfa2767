/* SPDX-License-Identifier: MIT */
/* record/torch/torch_stubs.h - in front of functions of torch that take or return C++ objects.
 *
 * A stub keeps all argument registers, calls a function of block_hooks.c that makes a note and says
 * where the real one is, and *jumps* there with the stack as it was: whatever the arguments are,
 * and however the result comes back, it is between the caller and torch.
 *
 * - torch::autograd::Engine::execute(): the Python binding calls it once for each backward() or
 *   grad(), on the thread that called those: the moment to note whose backward pass it is.
 * - c10::cuda::getStreamFromPool() and getStreamFromExternal(): nobody has another stream than the
 *   default one without them. Until one is called, no block is asked for its stream.
 * - c10::ThreadLocalDebugInfo::_push() and c10::DebugInfoGuard: nobody listens to reports of
 * blocks, as torch.profiler does, without them. Until one is called, a block that was recorded is
 * not reported on (block_hooks.c). */
#ifndef TMK_RECORD_TORCH_STUBS_H
#define TMK_RECORD_TORCH_STUBS_H

#define TMK_NAME_BACKWARD                                                                          \
    "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_"     \
    "EEbbbS7_"
#define TMK_NAME_POOL_BOOL "_ZN3c104cuda17getStreamFromPoolEba"
#define TMK_NAME_POOL_INT "_ZN3c104cuda17getStreamFromPoolEia"
#define TMK_NAME_EXTERNAL "_ZN3c104cuda21getStreamFromExternalEP11CUstream_sta"
#define TMK_NAME_PUSH                                                                              \
    "_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE"
#define TMK_NAME_GUARD                                                                             \
    "_ZN3c1014DebugInfoGuardC1ENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE"

/* block_hooks.c: make the note, return the real function. Called by the stubs only, with the
 * address that theirs was called from. */
void *tmk_torch_begin_backward(const void *caller);
void *tmk_torch_use_pool_bool(const void *caller);
void *tmk_torch_use_pool_int(const void *caller);
void *tmk_torch_use_external(const void *caller);
void *tmk_torch_use_push(const void *caller);
void *tmk_torch_use_guard(const void *caller);

/* Under names of ours; under torch's own they are there for the loader. */
void tmk_stub_backward(void);
void tmk_stub_pool_bool(void);
void tmk_stub_pool_int(void);
void tmk_stub_external(void);
void tmk_stub_push(void);
void tmk_stub_guard(void);

#endif
