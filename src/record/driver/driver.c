/* SPDX-License-Identifier: MIT */
/* record/driver/driver.c - see driver.h: which functions there are, and where the driver's own are.
 * What they do is in driver_memory.c and driver_pools.c. */
#include "record/driver/driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "record/driver/driver_calls.h"
#include "record/loader/library.h"
#include "record/loader/loader.h"

static struct {
    const char *symbol, *name;
    int version;
    bool per_thread;
    void *ours;
    _Atomic uintptr_t real; /* 0: not known yet */
} hooked_functions[TMK_N_CALLS] = {
#define X(symbol_, name_, version_, per_thread_)                                                   \
    [TMK_CALL_##symbol_] = {.symbol = #symbol_,                                                    \
                            .name = (name_),                                                       \
                            .version = (version_),                                                 \
                            .per_thread = (per_thread_),                                           \
                            .ours = (void *)tmk_##symbol_},
    TMK_CALLS(X)
#undef X
};

enum { NO_SUCH_FUNCTION = 1 }; /* in place of an address: it was looked for */

static _Atomic bool is_driver_used;

bool tmk_driver_is_used(void)
{
    return atomic_load_explicit(&is_driver_used, memory_order_relaxed);
}

/* ---- finding the driver's own ---- */

void *tmk_driver_symbol(const char *symbol)
{
    return tmk_library_symbol("libcuda.so", symbol);
}

/* It stays loaded: we have its address. */
static void pin_library(const void *address)
{
    Dl_info info;
    if (dladdr(address, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

static bool is_in_same_module(const void *a, const void *b)
{
    struct tmk_code_range range = tmk_library_range(a);
    return (uintptr_t)b >= range.start && (uintptr_t)b < range.end;
}

/* True when `real` is what we call on to, or another way into the same library. */
static bool learn_driver_function(int i, void *real)
{
    uintptr_t known = 0;
    if (!real || real == hooked_functions[i].ours)
        return real != NULL;
    if (atomic_compare_exchange_strong(&hooked_functions[i].real, &known, (uintptr_t)real)) {
        pin_library(real);
        return true;
    }
    return known == (uintptr_t)real || is_in_same_module((const void *)known, real);
}

/* Of a program that is linked with it: another that stands in front of the driver, or the driver.
 */
__attribute__((noinline, cold)) static void *find_driver_function(int i)
{
    void *real = tmk_loader_symbol(RTLD_NEXT, hooked_functions[i].symbol);
    if (!real || real == hooked_functions[i].ours)
        real = tmk_driver_symbol(hooked_functions[i].symbol);
    (void)learn_driver_function(i, real);
    return (void *)atomic_load(&hooked_functions[i].real);
}

void *tmk_driver_real(enum tmk_driver_call call)
{
    uintptr_t real = atomic_load_explicit(&hooked_functions[call].real, memory_order_acquire);
    if (!atomic_load_explicit(&is_driver_used, memory_order_relaxed))
        atomic_store(&is_driver_used, true);
    return real ? (void *)real : find_driver_function((int)call);
}

void *tmk_driver_hook(const char *symbol, void *real)
{
    for (int i = 0; i < TMK_N_CALLS; i++) {
        if (strcmp(hooked_functions[i].symbol, symbol) == 0)
            return !real || learn_driver_function(i, real) ? hooked_functions[i].ours : real;
    }
    return NULL;
}

/* ---- what we ask the driver ourselves ---- */

void *tmk_driver_ask(enum tmk_driver_question which)
{
    static const char *const symbols[TMK_N_QUESTIONS] = {
        [TMK_ASK_DEVICE] = "cuCtxGetDevice",
        [TMK_ASK_POINTER] = "cuPointerGetAttribute",
        [TMK_ASK_CONTEXT] = "cuCtxGetCurrent",
        [TMK_ASK_POOL_OF_DEVICE] = "cuDeviceGetMemPool",
        [TMK_ASK_POOL_ATTRIBUTE] = "cuMemPoolGetAttribute",
        [TMK_ASK_RANGE] = "cuMemGetAddressRange_v2",
        [TMK_ASK_FREE] = "cuMemGetInfo_v2",
        [TMK_ASK_PRIMARY_STATE] = "cuDevicePrimaryCtxGetState",
        [TMK_ASK_CAPTURING] = "cuStreamIsCapturing",
    };
    static _Atomic uintptr_t found[TMK_N_QUESTIONS];
    uintptr_t function = atomic_load_explicit(&found[which], memory_order_acquire);
    if (!function) {
        function = (uintptr_t)tmk_driver_symbol(symbols[which]);
        function = function ? function : NO_SUCH_FUNCTION;
        atomic_store_explicit(&found[which], function, memory_order_release);
    }
    return function == NO_SUCH_FUNCTION ? NULL : (void *)function;
}

uint16_t tmk_driver_device(void)
{
    int (*ask)(int *ret) = (int (*)(int *))tmk_driver_ask(TMK_ASK_DEVICE);
    int device = 0;
    return ask && ask(&device) == TMK_CU_SUCCESS ? (uint16_t)device : 0;
}

/* ---- asking for functions ---- */

/* The newest of that name that is not newer than what was asked for; -1: there is none. */
static int newest_function(const char *name, int version, bool per_thread)
{
    int best = -1;
    for (int i = 0; i < TMK_N_CALLS; i++)
        if (strcmp(hooked_functions[i].name, name) == 0 && hooked_functions[i].version <= version &&
            hooked_functions[i].per_thread == per_thread &&
            (best < 0 || hooked_functions[best].version < hooked_functions[i].version))
            best = i;
    return best;
}

typedef int asker(const char *name, void **ret, int version, uint64_t flags, int *ret_status);

/* It is the driver's symbol of the name that we know, or what the driver gives for the version that
 * made it so: else it is a newer one, with other arguments perhaps. */
static bool is_known_version(int i, const void *given, asker *ask, uint64_t flags)
{
    void *known = NULL;
    int status;
    if (given == tmk_driver_symbol(hooked_functions[i].symbol))
        return true;
    return ask(hooked_functions[i].name, &known, hooked_functions[i].version, flags, &status) ==
               TMK_CU_SUCCESS &&
           known == given;
}

/* Ours, where we have one for what the driver has given. Most have nothing to do with streams. */
static void *hook_in_front_of(const char *name, void *given, int version, uint64_t flags,
                              asker *ask)
{
    int i = flags & TMK_CU_PER_THREAD_STREAM ? newest_function(name, version, true) : -1;
    if (i < 0)
        i = newest_function(name, version, false);
    if (i < 0 || !is_known_version(i, given, ask, flags))
        return given;
    return learn_driver_function(i, given) ? hooked_functions[i].ours : given;
}

static int ask_old(const char *name, void **ret, int version, uint64_t flags, int *ret_status)
{
    *ret_status = 0;
    return TMK_DRIVER(cuGetProcAddress, name, ret, version, flags);
}

static int ask_new(const char *name, void **ret, int version, uint64_t flags, int *ret_status)
{
    return TMK_DRIVER(cuGetProcAddress_v2, name, ret, version, flags, ret_status);
}

int tmk_cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags)
{
    int rc = TMK_DRIVER(cuGetProcAddress, name, ret, version, flags);
    if (rc == TMK_CU_SUCCESS && name && ret && *ret)
        *ret = hook_in_front_of(name, *ret, version, flags, ask_old);
    return rc;
}

int tmk_cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags,
                            int *ret_status)
{
    int rc = TMK_DRIVER(cuGetProcAddress_v2, name, ret, version, flags, ret_status);
    if (rc == TMK_CU_SUCCESS && name && ret && *ret)
        *ret = hook_in_front_of(name, *ret, version, flags, ask_new);
    return rc;
}

TMK_CALLS_PROC(TMK_DRIVER_EXPORT)
