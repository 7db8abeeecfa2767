/* SPDX-License-Identifier: MIT */
/* record/torch/torch_hook.c - see torch_hook.h. libc10 is loaded RTLD_LOCAL: its functions are
 * found by asking that library; RTLD_NEXT finds only others that stand in front of torch. */
#include "record/torch/torch_hook.h"

#include <dlfcn.h>
#include <stddef.h>

#include "record/core/fast_path_state.h"
#include "record/loader/library.h"
#include "record/loader/loader.h"

/* Another preloaded library's, if one stands in front of torch as we do, else torch's own: by the
 * usual name of its file, or as the library that calls us would find it. */
static uintptr_t find_torch_function(struct tmk_hook *hook, const void *caller)
{
    if (hook->is_caller) /* others may have other runtimes */
        return (uintptr_t)tmk_library_symbol_from(caller, hook->name);
    void *found = tmk_loader_symbol(RTLD_NEXT, hook->name);
    if (found && found != hook->ours) {
        atomic_store(&hook->foreign, true);
        tmk_fast_path_close();
        return (uintptr_t)found;
    }
    found = tmk_library_symbol(hook->library, hook->name);
    if (!found)
        found = tmk_library_symbol_from(caller, hook->name);
    return found != hook->ours ? (uintptr_t)found : 0;
}

void *tmk_hook_find_real(struct tmk_hook *hook, const void *caller)
{
    uintptr_t real = atomic_load_explicit(&hook->real, memory_order_acquire);
    if (real == 0) {
        real = find_torch_function(hook, caller);
        if (real)
            atomic_store_explicit(&hook->real, real, memory_order_release);
    }
    if (real && hook == &tmk_hooks[TMK_HOOK_USAGE]) { /* for may_be_heard(), which does not look */
        tmk_hook_find_real(&tmk_hooks[TMK_HOOK_PUSH], caller);
        tmk_hook_find_real(&tmk_hooks[TMK_HOOK_GUARD], caller);
    }
    return (void *)real;
}

/* Any number of threads may look at once: none goes on without an answer. Whoever calls without
 * torch, a test or a measurement, shall not look each time. */
void *tmk_hook_look_for_real(struct tmk_hook *hook, const void *caller)
{
    void *real = NULL;
    if (atomic_load(&hook->n_missed) % 4096 == 0)
        real = tmk_hook_find_real(hook, caller);
    if (!real)
        atomic_fetch_add(&hook->n_missed, 1);
    return real;
}
