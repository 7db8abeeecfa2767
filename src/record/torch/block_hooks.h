/* SPDX-License-Identifier: MIT */
/* record/torch/block_hooks.h - hooks in front of torch's reports of blocks.
 *
 * Every block that torch's native caching allocators hand out or take back passes through a few
 * exported functions of libc10, called through import slots. We stand in front of them: by defining
 * the same names (preloaded, or loaded into the global scope before torch), or by writing our
 * addresses into the slots (torch_slots.h). Each hook records the block and then calls on, so that
 * other listeners, such as torch.profiler, hear as before; it does not call on when nobody can be
 * listening. Hooks run under torch's allocator lock, with or without the GIL: they take no lock and
 * call neither Python nor torch, but for the function that they stand in front of and the question
 * for the current stream.
 *
 * Another library may do the same. We call on to it, and it may find us behind itself: then torch's
 * own function is called, and nothing is recorded twice.
 *
 * Host tensors are recorded until an accelerator is first used, or all along when asked to
 * (tmk_recorder.settings.cpu_tensors). */
#ifndef TMK_RECORD_BLOCK_HOOKS_H
#define TMK_RECORD_BLOCK_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "record/core/lane.h"
#include "record/torch/torch_hook.h"

#define TMK_NAME_USAGE_113 "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define TMK_NAME_OOM "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#define TMK_NAME_OOM_113 "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"
#define TMK_NAME_CPU_NEW "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"
#define TMK_NAME_CPU_DELETE "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"
#define TMK_NAME_CPU_OOM "_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm"
#define TMK_NAME_NODE                                                                              \
    "_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_"           \
    "4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE"
#define TMK_NAME_AUTOGRAD_STATE "_ZN3c1013AutogradState13set_tls_stateES0_"

/* The hooks. A c10::Device is two bytes, type and index, in one register. */
tmk_usage_function tmk_block_hook_usage_113;
void tmk_block_hook_oom(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device);
void tmk_block_hook_oom_113(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device);
void tmk_block_hook_cpu_new(void *self, void *address, size_t size);
void tmk_block_hook_cpu_delete(void *self, void *address);
void tmk_block_hook_cpu_oom(void *self, size_t size);
void tmk_block_hook_node(void *self, void *task, void *node, void *input, void *queue);
/* Called by libtorch_python when inference mode goes on or off. The state comes in a register: it
 * is one byte or, from torch 2.10 on, the address of a larger one. */
void tmk_block_hook_autograd_state(uintptr_t state);

/* The slow path: record a block that fast_path.c has not taken. `caller` is an address in the
 * library that reported it. */
void tmk_block_hook_usage(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                          uint16_t device, const void *caller);

/* Return the stack for a block that is about to be recorded, and note an allocation that failed.
 * Both serve the backend of torch that reports no blocks, because the driver hands them out
 * (driver_table.h). */
uint32_t tmk_block_hook_stack(struct tmk_lane *lane);
void tmk_block_hook_note_oom(uint16_t device, uint64_t size);

#endif
