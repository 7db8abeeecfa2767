/* SPDX-License-Identifier: MIT */
/* model/elf_file.c - see elf_file.h. It uses elfutils: libelf for symbols, libdw for lines.
 *
 * libdwfl was rejected: it would find debug files in more places, but may ask servers
 * (DEBUGINFOD_URLS) and reads the whole search path. Tables of symbols and of compilation units are
 * made when first needed and sorted by address. .debug_aranges could replace the latter, but is
 * often missing. */
#include "model/elf_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit/grow.h"

enum { MAX_RANGES = 1 << 24, MAX_SCOPES = 1000 };

struct elf_range { /* the addresses [start, end) of a symbol or a unit */
    uint64_t start, end;
    uint64_t what; /* symbol: offset of its name; unit: offset of its DIE */
};

struct elf_ranges {
    struct elf_range *items;
    uint64_t n, room;
    bool made;
};

struct elf_part { /* one file */
    int fd;
    Elf *elf;
    Dwarf *dwarf;
};

struct tmk_elf {
    struct elf_part main, debug; /* debug: a separate file with the lines, opened when needed */
    const char *debug_folder;
    uint8_t build_id[64];
    uint32_t build_id_bytes;
    bool debug_tried;
    Elf *symbol_elf; /* the file with the section `symbol_names` */
    size_t symbol_names;
    struct elf_ranges symbols, units;
    Dwarf *unit_dwarf;
};

/* ---- opening ---- */

static void close_elf_part(struct elf_part *p)
{
    if (p->dwarf)
        dwarf_end(p->dwarf);
    if (p->elf)
        elf_end(p->elf);
    if (p->fd >= 0)
        close(p->fd);
    *p = (struct elf_part){.fd = -1};
}

/* Open a regular file. A trace may name anything, so this neither waits for a pipe nor opens a
 * device, which could have side effects. */
static int open_regular(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool has_build_id(Elf *elf, const uint8_t *build_id, uint32_t n)
{
    const void *found = NULL;
    ssize_t n_found = dwelf_elf_gnu_build_id(elf, &found);
    if (n_found <= 0)
        return n == 0;
    return (size_t)n_found == n && memcmp(found, build_id, n) == 0;
}

static bool open_elf_part(struct elf_part *p, const char *path, const uint8_t *build_id, uint32_t n)
{
    *p = (struct elf_part){.fd = open_regular(path)};
    if (p->fd < 0)
        return false;
    p->elf = elf_begin(p->fd, ELF_C_READ, NULL);
    if (p->elf && elf_kind(p->elf) == ELF_K_ELF && gelf_getclass(p->elf) == ELFCLASS64 &&
        has_build_id(p->elf, build_id, n))
        return true;
    close_elf_part(p);
    return false;
}

struct tmk_elf *tmk_elf_open(const char *path, const uint8_t *build_id, uint32_t build_id_bytes,
                             const char *debug_folder)
{
    struct tmk_elf *elf = calloc(1, sizeof *elf);
    if (!elf || build_id_bytes > sizeof elf->build_id || elf_version(EV_CURRENT) == EV_NONE ||
        !open_elf_part(&elf->main, path, build_id, build_id_bytes)) {
        free(elf);
        return NULL;
    }
    elf->debug.fd = -1;
    elf->debug_folder = debug_folder;
    elf->build_id_bytes = build_id_bytes;
    if (build_id_bytes > 0)
        memcpy(elf->build_id, build_id, build_id_bytes);
    return elf;
}

/* The separate debug file, NULL: there is none. */
static struct elf_part *debug_part(struct tmk_elf *elf)
{
    char path[4096], hex[2 * sizeof elf->build_id + 1];
    if (!elf->debug_tried && elf->build_id_bytes > 1) {
        for (uint32_t i = 0; i < elf->build_id_bytes; i++)
            snprintf(hex + (size_t)2 * i, 3, "%02x", elf->build_id[i]);
        int n = snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", elf->debug_folder, hex,
                         hex + 2);
        if (n > 0 && (size_t)n < sizeof path)
            (void)open_elf_part(&elf->debug, path, elf->build_id, elf->build_id_bytes);
    }
    elf->debug_tried = true;
    return elf->debug.elf ? &elf->debug : NULL;
}

/* ---- ranges ---- */

static bool add_elf_range(struct elf_ranges *r, struct elf_range range)
{
    if (r->n >= MAX_RANGES || TMK_GROW(r->items, r->n + 1, r->room) < 0)
        return false;
    r->items[r->n++] = range;
    return true;
}

static int compare_elf_ranges(const void *a, const void *b)
{
    const struct elf_range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static void sort_ranges(struct elf_ranges *r)
{
    if (r->n > 0)
        qsort(r->items, r->n, sizeof *r->items, compare_elf_ranges);
    r->made = true;
}

/* Find the last range that begins at or before `address`, if it contains it; ranges hardly
 * overlap. */
static const struct elf_range *find_elf_range(const struct elf_ranges *r, uint64_t address)
{
    uint64_t low = 0, high = r->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (r->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= r->items[low - 1].end)
        return NULL;
    return &r->items[low - 1];
}

/* ---- symbols ---- */

static Elf_Scn *section_of_type(Elf *elf, uint32_t type, GElf_Shdr *ret)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(elf, section)) != NULL)
        if (gelf_getshdr(section, ret) && ret->sh_type == type)
            return section;
    return NULL;
}

/* Let symbols without a size (assembly) reach up to the next one. */
static void close_gaps(struct elf_ranges *r)
{
    for (uint64_t i = 0; i < r->n; i++)
        if (r->items[i].end == r->items[i].start)
            r->items[i].end = i + 1 < r->n ? r->items[i + 1].start : r->items[i].start + 1;
}

static bool read_symbols(struct tmk_elf *elf, Elf *from, uint32_t type)
{
    GElf_Shdr header;
    Elf_Scn *section = section_of_type(from, type, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    if (!data || data->d_type != ELF_T_SYM)
        return false;
    size_t n = data->d_size / gelf_fsize(from, ELF_T_SYM, 1, EV_CURRENT);
    for (size_t i = 0; i < n && i < MAX_RANGES; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
            continue;
        unsigned kind = GELF_ST_TYPE(symbol.st_info);
        if (kind != STT_FUNC && kind != STT_GNU_IFUNC)
            continue;
        uint64_t end = symbol.st_value + symbol.st_size;
        if (end < symbol.st_value ||
            !add_elf_range(&elf->symbols, (struct elf_range){symbol.st_value, end, symbol.st_name}))
            break;
    }
    elf->symbol_elf = from;
    elf->symbol_names = header.sh_link;
    return elf->symbols.n > 0;
}

static void make_symbols(struct tmk_elf *elf)
{
    if (elf->symbols.made)
        return;
    struct elf_part *debug;
    if (!read_symbols(elf, elf->main.elf, SHT_SYMTAB) &&
        !((debug = debug_part(elf)) && read_symbols(elf, debug->elf, SHT_SYMTAB)))
        (void)read_symbols(elf, elf->main.elf, SHT_DYNSYM);
    sort_ranges(&elf->symbols);
    close_gaps(&elf->symbols);
}

bool tmk_elf_symbol(struct tmk_elf *elf, uint64_t address, const char **ret_name,
                    uint64_t *ret_offset)
{
    make_symbols(elf);
    const struct elf_range *range = find_elf_range(&elf->symbols, address);
    const char *name =
        range ? elf_strptr(elf->symbol_elf, elf->symbol_names, (size_t)range->what) : NULL;
    if (!name || !*name)
        return false;
    *ret_name = name;
    *ret_offset = address - range->start;
    return true;
}

/* ---- lines ---- */

static void add_unit(struct elf_ranges *units, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
        if (start < end &&
            !add_elf_range(units, (struct elf_range){start, end, dwarf_dieoffset(die)}))
            return;
}

static bool read_units(struct tmk_elf *elf, struct elf_part *p)
{
    Dwarf_Off at = 0, next;
    size_t header_bytes;
    if (!p->dwarf)
        p->dwarf = dwarf_begin_elf(p->elf, DWARF_C_READ, NULL);
    if (!p->dwarf)
        return false;
    while (dwarf_nextcu(p->dwarf, at, &next, &header_bytes, NULL, NULL, NULL) == 0 && next > at) {
        Dwarf_Die die;
        if (dwarf_offdie(p->dwarf, at + header_bytes, &die))
            add_unit(&elf->units, &die);
        at = next;
    }
    elf->unit_dwarf = p->dwarf;
    return elf->units.n > 0;
}

static void make_units(struct tmk_elf *elf)
{
    struct elf_part *debug;
    if (elf->units.made)
        return;
    if (!read_units(elf, &elf->main) && (debug = debug_part(elf)))
        (void)read_units(elf, debug);
    sort_ranges(&elf->units);
}

/* The name of a function, with its namespaces if the compiler recorded the linker's name. */
static const char *function_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        name = dwarf_formstring(&attribute);
    return name ? name : dwarf_diename(die);
}

static const char *innermost_function(Dwarf_Die *unit, uint64_t address)
{
    Dwarf_Die *scopes = NULL;
    const char *name = NULL;
    int n = dwarf_getscopes(unit, address, &scopes);
    for (int i = 0; i < n && i < MAX_SCOPES && !name; i++) {
        int tag = dwarf_tag(&scopes[i]);
        if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
            name = function_name(&scopes[i]);
    }
    free(scopes);
    return name;
}

bool tmk_elf_line(struct tmk_elf *elf, uint64_t address, struct tmk_symbol *ret)
{
    Dwarf_Die unit;
    int line = 0;
    make_units(elf);
    const struct elf_range *range = find_elf_range(&elf->units, address);
    if (!range || !dwarf_offdie(elf->unit_dwarf, range->what, &unit))
        return false;
    Dwarf_Line *row = dwarf_getsrc_die(&unit, address);
    const char *file = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
    if (!file || dwarf_lineno(row, &line) != 0 || line <= 0)
        return false;
    *ret = (struct tmk_symbol){
        .function = innermost_function(&unit, address), .file = file, .line = (uint32_t)line};
    return true;
}
