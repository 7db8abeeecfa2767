/* SPDX-License-Identifier: MIT */
/* wrap_loader.c - for LD_PRELOAD: wraps dlsym and dlopen, as other tools do, and says at the end
 * how often it was asked for names that begin with loader_ or libloader_. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_int n_dlsym, n_dlopen;

static void *real(const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    for (int i = 0; i < 3; i++) {
        void *found = dlvsym(RTLD_NEXT, name, versions[i]);
        if (found)
            return found;
    }
    return NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    static void *(*volatile next)(void *, const char *);
    if (!next)
        *(void *volatile *)&next = real("dlsym");
    n_dlsym += strncmp(name, "loader_", 7) == 0;
    return next(handle, name);
}

void *dlopen(const char *name, int flags)
{
    static void *(*volatile next)(const char *, int);
    if (!next)
        *(void *volatile *)&next = real("dlopen");
    n_dlopen += name && strstr(name, "libloader_") != NULL;
    return next(name, flags);
}

/* Not in `tidemark run`, which is preloaded like the program. */
__attribute__((destructor)) static void tell(void)
{
    if (strncmp(program_invocation_short_name, "loader_", 7) == 0)
        dprintf(STDERR_FILENO, "wrap_loader: dlsym %d, dlopen %d\n", n_dlsym, n_dlopen);
}
