/* SPDX-License-Identifier: MIT */
/* record/control/dlsym_hook.c - see dlsym_hook.h. */
#include "record/control/dlsym_hook.h"

#include <dlfcn.h>
#include <stddef.h>

#include "record/control/seccomp.h"
#include "record/driver/driver.h"
#include "record/loader/loader.h"

typedef void *dlsym_function(void *handle, const char *name);

/* RTLD_NEXT is for the C library to answer, which knows who asks. By RTLD_DEFAULT it would find our
 * own definition, which is right where the driver is behind it; where it is not there is none, as
 * the C library has then said (dlerror). */
void *tmk_dlsym_answer(void *handle, const char *name)
{
    dlsym_function *next = (dlsym_function *)tmk_loader_next_dlsym();
    if (name[0] != 'c') /* prctl, syscall: what asks the C library itself gets our stubs too */
        return next && handle != RTLD_NEXT && handle != RTLD_DEFAULT && tmk_seccomp_is_name(name)
                   ? tmk_seccomp_stub(name, next(handle, name))
                   : NULL;
    if (handle == RTLD_NEXT || !next || !tmk_driver_hook(name, NULL))
        return NULL;
    if (handle == RTLD_DEFAULT)
        return tmk_loader_symbol(RTLD_NEXT, name) ? NULL : TMK_DLSYM_NONE;
    void *real = next(handle, name);
    return real ? tmk_driver_hook(name, real) : NULL;
}
