/* SPDX-License-Identifier: MIT */
/* record/core/fast_path_line.h - what a block of torch's needs that goes the short way
 * (fast_path.h): this line of the cache, and one of its thread's (lane.h).
 *
 * It is in the page that the kernel zeroes in every child (recorder.h), so that a child is on the
 * long way until it has looked for itself. */
#ifndef TMK_RECORD_FAST_PATH_LINE_H
#define TMK_RECORD_FAST_PATH_LINE_H

#include <stdatomic.h>
#include <stdint.h>

enum { TMK_TORCH_DEVICES = 16 };

/* What was last said of a device, under torch's lock of it. */
struct tmk_fast_path_device {
    uint64_t reserved_bytes;
    uint32_t alloc_head; /* of records of its blocks: the lower half, above which their stack is */
    _Atomic uint32_t generation;
    _Atomic uint32_t thread; /* whose record its last block's is; 0: not known */
    _Atomic uint16_t torch_device;
};

struct tmk_fast_path {
    _Atomic uint32_t generation; /* in this one blocks go the short way; 0: in none */
    _Atomic uint32_t settled;    /* in this one the bridge waits for no block (bridge.h) */
    _Atomic uint32_t quiet;      /* a backward; threads that have this number know of it */
    _Atomic int32_t lane;        /* where each thread's is, from its pointer; good on this way */
    _Atomic uintptr_t real;      /* what blocks are reported to; 0: nobody listens. Likewise */
    _Atomic uint64_t slept;      /* the packer is asleep since: ticks; UINT64_MAX: it is not */
    struct tmk_fast_path_device said[TMK_TORCH_DEVICES];
};

/* In `quiet`: all threads are to be told. */
#define TMK_TORCH_NEVER_QUIET UINT32_MAX

#endif
