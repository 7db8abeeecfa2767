/* SPDX-License-Identifier: MIT */
/* record/torch/block_hooks.h - what torch says of its blocks.
 *
 * Every block that torch's native caching allocators hand out or take back passes through a few
 * exported functions of libc10, called through import slots. We stand in front of them: by defining
 * the same names (preloaded, or loaded into the global scope before torch), or by writing our
 * addresses into the slots (import_slots.h). Each hook records and then calls on, so that whoever
 * else listens, torch.profiler for one, hears as before; but not when nobody can be listening.
 * Hooks run under torch's allocator lock, with or without the GIL: they take no lock and call
 * neither Python nor torch, but for what they stand in front of and the question for the current
 * stream.
 *
 * Another library may do the same. It is called on to, and may in its turn find us behind itself:
 * then torch's own is called, and nothing recorded twice.
 *
 * Host tensors are recorded until an accelerator is first used, or all along when asked to
 * (tmk_recorder.settings.cpu_tensors). */
#ifndef TMK_RECORD_BLOCK_HOOKS_H
#define TMK_RECORD_BLOCK_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/core/recorder.h"

struct tmk_hook {
    const char *name;    /* of the symbol */
    const char *library; /* that defines it: how its file's name begins */
    void *ours;
    bool is_stub;              /* makes a note and jumps on: never in the way */
    bool is_free;              /* sees blocks go, and none come */
    bool is_caller;            /* `library` calls it: only its slots lead here, to what they held */
    _Atomic uintptr_t real;    /* 0: not found yet */
    _Atomic uintptr_t own;     /* torch's, where `real` is another's; 0: not looked for */
    _Atomic uint32_t n_missed; /* calls since it was looked for in vain */
    _Atomic bool foreign;      /* real is not torch's: another library stands in front of it too */
};

/* What the short way (fast_path.h) hangs on, and what the long one looks at for every block. */
struct tmk_torch_hot {
    _Atomic uint32_t host_seen;       /* in this recording host blocks were recorded */
    _Atomic uint32_t host_ends;       /* and in this one no more are */
    _Atomic uint32_t host_over;       /* nor are any on their way */
    _Atomic uint64_t host_ends_ns;    /* when */
    _Atomic bool streams_used;        /* others than a device's default one may be */
    _Atomic bool is_listened_to;      /* somebody may: torch.profiler, for one */
    _Atomic bool is_tallied;          /* somebody wants to know what is allocated now (tally.h) */
    _Atomic uintptr_t current_stream; /* of the accelerator; 0: not looked for, 1: not there */
    _Atomic uint64_t cards;           /* CUDA's devices that were spoken of, a bit each */
    _Atomic uintptr_t node_real;      /* what the hook of nodes stands in front of; 0: not found */
};
extern struct tmk_torch_hot tmk_torch_hot;

enum {
    TMK_TORCH_NODE = 11,
    TMK_TORCH_MALLOC = 14, /* of the runtime (runtime_calls.h), as the next */
    TMK_TORCH_FREE,
    TMK_N_TORCH_HOOKS,
};
extern struct tmk_hook tmk_torch_hooks[TMK_N_TORCH_HOOKS];

/* A hook has a hidden name, by which its address is ours whoever else defines torch's name, and
 * that name as well, for the loader to find. */
#define TMK_EXPORT(hook, name)                                                                     \
    extern __typeof__(hook) hook##_export __asm__(name)                                            \
        __attribute__((alias(#hook), visibility("default")))

typedef void tmk_usage_function(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                                uint16_t device);

/* The long way of a block that fast_path.c has not taken; the address is in whoever reported it. */
void tmk_torch_usage(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                     uint16_t device, const void *caller);

/* Something was changed of which block_hooks.c's is_all_usual() says that it lets blocks go the
 * short way; said after the change. */
static inline void tmk_torch_note_unusual(void)
{
    atomic_store(&tmk_short.generation, 0);
}

/* The next block is to go to the bridge. */
static inline void tmk_torch_unsettle(void)
{
    atomic_store(&tmk_short.settled, 0);
}

/* The function that a hook stands in front of; NULL when it is not found. `caller`, an address in
 * the library that calls, helps where torch's files have other names; NULL when not known. */
void *tmk_torch_find_real(struct tmk_hook *hook, const void *caller);

/* Blocks that are the driver's own, of the backend that says nothing of them (driver_table.h): the
 * stack of one that is about to be recorded, and a refusal. */
struct tmk_lane;
uint32_t tmk_torch_block_stack(struct tmk_lane *lane);
void tmk_torch_note_oom(uint16_t device, uint64_t size);
/* Torch has said something of this device itself: its blocks are its own. */
bool tmk_torch_has_said(uint16_t device);

/* Streams may have been made, and profilers begun, before the hooks were there to see it. */
void tmk_torch_expect_all(void);

#endif
