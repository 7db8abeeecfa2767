/* SPDX-License-Identifier: MIT */
/* record/torch/torch_hook.h - functions of torch that we stand in front of, and how to call them.
 * hook_table.c lists them. */
#ifndef TMK_RECORD_TORCH_HOOK_H
#define TMK_RECORD_TORCH_HOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tmk_hook {
    const char *name;    /* the symbol's name */
    const char *library; /* the library that defines it, as its file's name begins */
    void *ours;
    bool is_stub;    /* makes a note and jumps on, so it is never in the way */
    bool is_free;    /* sees blocks go, but none come */
    bool is_caller;  /* only slots of `library` lead here, and we call on to what they held */
    bool is_runtime; /* of the CUDA runtime: put in only on request (runtime_calls.h) */
    _Atomic uintptr_t real;    /* 0: not found yet */
    _Atomic uintptr_t own;     /* torch's function, when `real` is another's; 0: not looked for */
    _Atomic uint32_t n_missed; /* calls since it was last looked for in vain */
    _Atomic bool foreign;      /* `real` is another library's that stands in front of torch too */
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
    TMK_HOOK_AUTOGRAD_STATE,
    TMK_HOOK_MALLOC, /* of the CUDA runtime (runtime_calls.h), as the next */
    TMK_HOOK_FREE,
    TMK_N_HOOKS,
};
extern struct tmk_hook tmk_hooks[TMK_N_HOOKS];

/* Give a hook a second symbol with torch's name, for the loader to find. By its own name, which is
 * hidden, its address is always ours, whoever else defines torch's. */
#define TMK_EXPORT(hook, name)                                                                     \
    extern __typeof__(hook) hook##_export __asm__(name)                                            \
        __attribute__((alias(#hook), visibility("default")))

typedef void tmk_usage_function(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                                uint16_t device);

/* Find the function that a hook stands in front of; NULL: not found. `caller`, an address in the
 * calling library or NULL, helps where torch's files have other names. */
void *tmk_hook_find_real(struct tmk_hook *hook, const void *caller);

/* The same for a hook that was called while its function is not known yet. In programs without
 * torch, such as a test, it does not search at each call. */
__attribute__((noinline, cold)) void *tmk_hook_look_for_real(struct tmk_hook *hook,
                                                             const void *caller);

static inline void *tmk_hook_real(struct tmk_hook *hook, const void *caller)
{
    uintptr_t real = atomic_load_explicit(&hook->real, memory_order_acquire);
    return __builtin_expect(real != 0, 1) ? (void *)real : tmk_hook_look_for_real(hook, caller);
}

#endif
