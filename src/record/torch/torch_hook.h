/* SPDX-License-Identifier: MIT */
/* record/torch/torch_hook.h - functions of torch that we stand in front of, and how to call them.
 *
 * hook_table.c lists them. */
#ifndef TMK_RECORD_TORCH_HOOK_H
#define TMK_RECORD_TORCH_HOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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

enum tmk_hook_index {
    TMK_HOOK_USAGE,
    TMK_HOOK_USAGE_113,
    TMK_HOOK_OOM,
    TMK_HOOK_OOM_113,
    TMK_HOOK_CPU_NEW,
    TMK_HOOK_CPU_DELETE,
    TMK_HOOK_CPU_OOM,
    TMK_HOOK_BACKWARD,
    TMK_HOOK_POOL_BOOL,
    TMK_HOOK_POOL_INT,
    TMK_HOOK_EXTERNAL,
    TMK_HOOK_NODE,
    TMK_HOOK_PUSH,
    TMK_HOOK_GUARD,
    TMK_HOOK_MALLOC, /* of the runtime (runtime_calls.h), as the next */
    TMK_HOOK_FREE,
    TMK_N_HOOKS,
};
extern struct tmk_hook tmk_hooks[TMK_N_HOOKS];

/* A hook has a hidden name, by which its address is ours whoever else defines torch's name, and
 * that name as well, for the loader to find. */
#define TMK_EXPORT(hook, name)                                                                     \
    extern __typeof__(hook) hook##_export __asm__(name)                                            \
        __attribute__((alias(#hook), visibility("default")))

typedef void tmk_usage_function(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                                uint16_t device);

/* The function that a hook stands in front of; NULL when it is not found. `caller`, an address in
 * the library that calls, helps where torch's files have other names; NULL when not known. */
void *tmk_hook_find_real(struct tmk_hook *hook, const void *caller);

/* The same for a hook that is called, when it is not known yet: programs without torch, a test or a
 * measurement, do not search at each call. */
__attribute__((noinline, cold)) void *tmk_hook_look_for_real(struct tmk_hook *hook,
                                                             const void *caller);

static inline void *tmk_hook_real(struct tmk_hook *hook, const void *caller)
{
    uintptr_t real = atomic_load_explicit(&hook->real, memory_order_acquire);
    return __builtin_expect(real != 0, 1) ? (void *)real : tmk_hook_look_for_real(hook, caller);
}

#endif
