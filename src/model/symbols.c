/* SPDX-License-Identifier: MIT */
/* model/symbols.c - see symbols.h.
 *
 * C++ names are demangled by libiberty (binutils' own, one function of it): it stands alone, knows
 * every name that gcc and clang make, and limits its recursion. The usual __cxa_demangle() would
 * bring libstdc++ into a program that is to need nothing but glibc. Arguments are left out: with
 * them a name of torch's fills the screen. */
#include "model/symbols.h"

#include <inttypes.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "model/elf_file.h"

enum { MAX_MANGLED_BYTES = 4000 };

struct module {
    const char *path; /* the arena's */
    const char *name; /* without folders */
    uint64_t hash;
    struct tmk_elf *elf;
};

struct entry {
    uint64_t hash; /* 0: free */
    uint64_t address;
    uint32_t module;
    struct tmk_symbol symbol;
};

struct tmk_symbols {
    bool is_off;
    const char *debug_folder;
    struct tmk_arena texts;
    struct module *modules;
    uint64_t n_modules, module_room;
    struct entry *entries;
    uint32_t n_entries, n_slots;
};

struct tmk_symbols *tmk_symbols_open(void)
{
    struct tmk_symbols *s = calloc(1, sizeof *s);
    const char *off = getenv("TIDEMARK_NO_SYMBOLS");
    const char *folder = getenv("TIDEMARK_DEBUG_DIR");
    if (!s)
        return NULL;
    s->is_off = off && *off && strcmp(off, "0") != 0;
    s->debug_folder = folder && *folder ? folder : "/usr/lib/debug";
    return s;
}

struct tmk_symbols *tmk_symbols_close(struct tmk_symbols *s)
{
    if (!s)
        return NULL;
    for (uint64_t i = 0; i < s->n_modules; i++)
        tmk_elf_close(s->modules[i].elf);
    free(s->modules);
    free(s->entries);
    tmk_arena_fini(&s->texts);
    free(s);
    return NULL;
}

/* ---- modules ---- */

static uint64_t module_hash(const struct tmk_code_address *where)
{
    uint64_t hash = tmk_hash_bytes(where->path, strlen(where->path));
    return where->build_id_bytes
               ? tmk_hash_fold(hash, tmk_hash_bytes(where->build_id, where->build_id_bytes))
               : hash;
}

/* Number of the module, opened when it is new; <0: TMK_ENOMEM. */
static int64_t module_of(struct tmk_symbols *s, const struct tmk_code_address *where)
{
    uint64_t hash = module_hash(where);
    for (uint64_t i = 0; i < s->n_modules; i++)
        if (s->modules[i].hash == hash && strcmp(s->modules[i].path, where->path) == 0)
            return (int64_t)i;
    struct module *more = tmk_grow(s->modules, s->n_modules + 1, &s->module_room, sizeof *more);
    if (!more)
        return TMK_ENOMEM;
    s->modules = more;
    const char *path = tmk_arena_text(&s->texts, where->path, strlen(where->path));
    if (!path)
        return TMK_ENOMEM;
    const char *slash = strrchr(path, '/');
    struct module *m = &s->modules[s->n_modules];
    *m = (struct module){.path = path, .name = slash ? slash + 1 : path, .hash = hash};
    if (!s->is_off)
        m->elf = tmk_elf_open(path, where->build_id, where->build_id_bytes, s->debug_folder);
    return (int64_t)s->n_modules++;
}

/* ---- names ---- */

/* As C++ or Rust would write it, in the arena; NULL without memory. */
static const char *plain_name(struct tmk_symbols *s, const char *name)
{
    size_t n = strnlen(name, MAX_MANGLED_BYTES);
    char *plain =
        n < MAX_MANGLED_BYTES && name[0] == '_' ? cplus_demangle_v3(name, DMGL_NO_OPTS) : NULL;
    const char *copy = plain ? tmk_arena_text(&s->texts, plain, strlen(plain))
                             : tmk_arena_text(&s->texts, name, n);
    free(plain);
    return copy;
}

/* By line, by symbol or by number. A return address is that of the next instruction: the call lies
 * before it. */
static int look_up(struct tmk_symbols *s, const struct module *m, uint64_t address,
                   struct tmk_symbol *ret)
{
    uint64_t at = address - (address > 0), offset = 0;
    struct tmk_symbol found = {0};
    const char *symbol = NULL;
    bool has_line = m->elf && tmk_elf_line(m->elf, at, &found);
    if (m->elf && !found.function && tmk_elf_symbol(m->elf, at, &symbol, &offset))
        found.function = symbol;
    if (found.function)
        found.function = plain_name(s, found.function);
    else
        found.function = tmk_arena_format(&s->texts, "%s+%#" PRIx64, m->name, address);
    if (found.function && symbol && !has_line)
        found.function =
            tmk_arena_format(&s->texts, "%s+%#" PRIx64, found.function, offset + (address > 0));
    if (has_line)
        found.file = tmk_arena_text(&s->texts, found.file, strlen(found.file));
    if (!found.function || (has_line && !found.file))
        return TMK_ENOMEM;
    *ret = found;
    return 0;
}

/* ---- what was looked up before ---- */

static struct entry *slot_of(struct entry *entries, uint32_t n_slots, uint64_t hash,
                             uint32_t module, uint64_t address)
{
    uint32_t at = (uint32_t)hash & (n_slots - 1);
    while (entries[at].hash && (entries[at].module != module || entries[at].address != address))
        at = (at + 1) & (n_slots - 1);
    return &entries[at];
}

static int make_room(struct tmk_symbols *s)
{
    if (s->n_slots > 0 && s->n_entries < s->n_slots / 2)
        return 0;
    uint32_t n_slots = s->n_slots ? s->n_slots * 2 : 256;
    struct entry *entries = n_slots ? calloc(n_slots, sizeof *entries) : NULL;
    if (!entries)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < s->n_slots; i++) {
        const struct entry *e = &s->entries[i];
        if (e->hash)
            *slot_of(entries, n_slots, e->hash, e->module, e->address) = *e;
    }
    free(s->entries);
    s->entries = entries;
    s->n_slots = n_slots;
    return 0;
}

int tmk_symbols_find(struct tmk_symbols *s, const struct tmk_code_address *where,
                     struct tmk_symbol *ret)
{
    int64_t module = module_of(s, where);
    if (module < 0 || make_room(s) < 0)
        return TMK_ENOMEM;
    uint64_t hash = tmk_hash_mix((uint64_t)module, where->address) | 1;
    struct entry *e = slot_of(s->entries, s->n_slots, hash, (uint32_t)module, where->address);
    if (!e->hash) {
        int rc = look_up(s, &s->modules[module], where->address, &e->symbol);
        if (rc < 0)
            return rc;
        e->hash = hash;
        e->module = (uint32_t)module;
        e->address = where->address;
        s->n_entries++;
    }
    *ret = e->symbol;
    return 0;
}
