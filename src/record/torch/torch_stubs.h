/* SPDX-License-Identifier: MIT */
/* record/torch/torch_stubs.h - stubs in front of functions of torch that take or return C++
 * objects.
 *
 * A stub keeps all argument registers, calls a function of block_hooks.c that makes a note and
 * returns the real function, and *jumps* there with the stack as it was: arguments and result stay
 * between the caller and torch, whatever they are.
 *
 * - torch::autograd::Engine::execute(): the Python binding calls it once for each backward() or
 *   grad(), on the calling thread. The note is the stack that this backward belongs to.
 * - c10::cuda::getStreamFromPool() and getStreamFromExternal(): without them nobody has another
 *   stream than the default one. Until one is called, blocks are not asked for their stream.
 * - c10::ThreadLocalDebugInfo::_push() and c10::DebugInfoGuard: without them nobody listens to
 *   reports of blocks, as torch.profiler does. Until one is called, a recorded block is not
 *   reported on (block_hooks.c). */
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

/* Defined in block_hooks.c and called by the stubs only, with the address that the stub was called
 * from: make the note and return the real function. */
void *tmk_torch_begin_backward(const void *caller);
void *tmk_torch_use_pool_bool(const void *caller);
void *tmk_torch_use_pool_int(const void *caller);
void *tmk_torch_use_external(const void *caller);
void *tmk_torch_use_push(const void *caller);
void *tmk_torch_use_guard(const void *caller);

/* The stubs' own names; the loader finds them under torch's names too. */
void tmk_stub_backward(void);
void tmk_stub_pool_bool(void);
void tmk_stub_pool_int(void);
void tmk_stub_external(void);
void tmk_stub_push(void);
void tmk_stub_guard(void);

#endif
