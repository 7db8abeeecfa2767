/* SPDX-License-Identifier: MIT */
/* record/library.c - see library.h.
 *
 * The path is found first, then the library is asked by name: dlsym on its handle finds its own
 * definition before any other's. The handle is kept, which keeps the library loaded: whoever has
 * called one of its functions through us may do so again. */
#include "record/library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "record/loader.h"

struct search {
    const char *prefix;
    char path[4096];
};

bool tmk_library_is_named(const char *path, const char *prefix)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, prefix, strlen(prefix)) == 0;
}

static int match(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct search *s = arg;
    if (!tmk_library_is_named(info->dlpi_name, s->prefix) ||
        strlen(info->dlpi_name) >= sizeof s->path)
        return 0;
    strcpy(s->path, info->dlpi_name);
    return 1;
}

void *tmk_library_symbol(const char *prefix, const char *symbol)
{
    struct search s = {.prefix = prefix};
    if (!dl_iterate_phdr(match, &s))
        return NULL;
    void *handle = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? tmk_loader_symbol(handle, symbol) : NULL;
}

size_t tmk_library_symbol_bytes(const void *symbol)
{
    Dl_info info;
    const ElfW(Sym) *description = NULL;
    bool is_found = dladdr1(symbol, &info, (void **)&description, RTLD_DL_SYMENT) != 0;
    return is_found && description && info.dli_saddr == symbol ? description->st_size : 0;
}

void *tmk_library_symbol_from(const void *address, const char *symbol)
{
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname)
        return NULL;
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? tmk_loader_symbol(handle, symbol) : NULL;
}

struct place {
    uintptr_t address;
    struct tmk_code_range image;
};

static int match_address(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct place *p = arg;
    struct tmk_code_range image = {.start = UINTPTR_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + h->p_vaddr, end = start + h->p_memsz;
        if (h->p_type != PT_LOAD)
            continue;
        image.start = start < image.start ? start : image.start;
        image.end = end > image.end ? end : image.end;
    }
    if (p->address < image.start || p->address >= image.end)
        return 0;
    p->image = image;
    return 1;
}

struct tmk_code_range tmk_library_range(const void *address)
{
    struct place p = {.address = (uintptr_t)address};
    dl_iterate_phdr(match_address, &p);
    return p.image;
}

/* ---- forks ---- */

static pthread_mutex_t holding = PTHREAD_MUTEX_INITIALIZER;
static __thread bool is_held __attribute__((tls_model("initial-exec"))); /* for a fork, by us */

/* Not for ever: who holds it may wait for the loader, and the loader for whoever forks. */
static void before_fork(void)
{
    static const long limit_ns = 100000000;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += limit_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    is_held = pthread_mutex_timedlock(&holding, &until) == 0;
}

static void after_fork(void)
{
    if (is_held)
        pthread_mutex_unlock(&holding);
}

/* Whoever else held it is not here. */
static void after_fork_in_child(void)
{
    holding = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void guard_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void tmk_library_hold_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, guard_forks);
    pthread_mutex_lock(&holding);
}

void tmk_library_let_forks(void)
{
    pthread_mutex_unlock(&holding);
}
