/* SPDX-License-Identifier: MIT */
/* record/core/fast_path_line.h - the state that the fast path of torch's blocks reads
 * (torch/fast_path.h).
 *
 * A block on the fast path reads this cache line and one of its thread's lane (lane.h). The line is
 * in the page that the kernel zeroes in every child (recorder.h), so a child takes the slow path
 * until it has looked for itself. */
#ifndef TMK_RECORD_FAST_PATH_LINE_H
#define TMK_RECORD_FAST_PATH_LINE_H

#include <stdatomic.h>
#include <stdint.h>

enum { TMK_TORCH_DEVICES = 16 };

/* The last record about a device. Torch's lock of the device is held while it changes. */
struct tmk_fast_path_device {
    uint64_t reserved_bytes;
    /* lower half of the head of its ALLOC records; the stack is the upper half */
    uint32_t alloc_head;
    _Atomic uint32_t generation;
    _Atomic uint32_t thread; /* the thread that wrote its last block's record; 0: not known */
    _Atomic uint16_t torch_device;
};

struct tmk_fast_path {
    _Atomic uint32_t generation; /* the recording in which blocks take the fast path; 0: none */
    _Atomic uint32_t settled; /* the recording in which the bridge waits for no block (bridge.h) */
    _Atomic uint32_t quiet;   /* number of a backward; threads that have it know of that backward */
    /* distance of a thread's lane from its thread pointer; valid on the fast path */
    _Atomic int32_t lane;
    /* the function to report blocks to; 0: nobody listens; valid on the fast path */
    _Atomic uintptr_t real;
    _Atomic uint64_t slept; /* ticks since when the packer is asleep; UINT64_MAX: it is awake */
    struct tmk_fast_path_device said[TMK_TORCH_DEVICES];
};

/* Value of `quiet`: no thread counts as told. */
#define TMK_TORCH_NEVER_QUIET UINT32_MAX

#endif
