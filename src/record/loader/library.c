/* SPDX-License-Identifier: MIT */
/* record/loader/library.c - see library.h.
 *
 * The path is found first, then the library is asked by name: dlsym on its handle finds its own
 * definition before any other's. The handle is kept, which keeps the library loaded: whoever has
 * called one of its functions through us may do so again. */
#include "record/loader/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "record/loader/loader.h"

struct library_search {
    const char *prefix;
    char path[4096];
};

bool tmk_library_is_named(const char *path, const char *prefix)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, prefix, strlen(prefix)) == 0;
}

static int match_name(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct library_search *s = arg;
    if (!tmk_library_is_named(info->dlpi_name, s->prefix) ||
        strlen(info->dlpi_name) >= sizeof s->path)
        return 0;
    strcpy(s->path, info->dlpi_name);
    return 1;
}

void *tmk_library_symbol(const char *prefix, const char *symbol)
{
    struct library_search s = {.prefix = prefix};
    if (!dl_iterate_phdr(match_name, &s))
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

struct address_search {
    uintptr_t address;
    struct tmk_code_range image;
};

static int match_address(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct address_search *p = arg;
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
    struct address_search p = {.address = (uintptr_t)address};
    dl_iterate_phdr(match_address, &p);
    return p.image;
}
