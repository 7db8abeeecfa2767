/* SPDX-License-Identifier: MIT */
/* record/control/copies.c - see copies.h. Modules are listed in the order in which they were
 * loaded, those of LD_PRELOAD as they are named there. */
#include "record/control/copies.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "record/loader/library.h"
#include "record/loader/loader.h"

enum { MOST_COPIES = 8, PATH_BYTES = 4096 };

struct copies {
    bool is_first;
    bool is_own_seen;
    unsigned skip; /* this many others, for the one to be found */
    char path[PATH_BYTES];
};

static bool has_address(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD && address >= start && address < start + h->p_memsz)
            return true;
    }
    return false;
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct copies *c = arg;
    if (!tmk_library_is_named(info->dlpi_name, "libtidemark"))
        return 0;
    if (has_address(info, (uintptr_t)tmk_copies_is_first)) {
        c->is_own_seen = true;
        return 0;
    }
    c->is_first &= c->is_own_seen;
    if (c->skip-- > 0 || strlen(info->dlpi_name) >= sizeof c->path)
        return 0;
    strcpy(c->path, info->dlpi_name);
    return 1;
}

bool tmk_copies_is_first(void)
{
    struct copies c = {.is_first = true, .skip = MOST_COPIES};
    dl_iterate_phdr(look_at_module, &c);
    return c.is_first;
}

bool tmk_copies_record(void)
{
    for (unsigned i = 0; i < MOST_COPIES; i++) {
        struct copies c = {.skip = i};
        if (!dl_iterate_phdr(look_at_module, &c))
            return false;
        void *handle = dlopen(c.path, RTLD_LAZY | RTLD_NOLOAD);
        int (*is_on)(void) =
            handle ? (int (*)(void))tmk_loader_symbol(handle, "tidemark_record_on") : NULL;
        bool records = is_on && is_on();
        if (handle)
            dlclose(handle);
        if (records)
            return true;
    }
    return false;
}
