/* SPDX-License-Identifier: MIT */
/* record/native/mapped_files.c - see mapped_files.h.
 *
 * Program headers are read where the file lies in memory: the ELF header is at its start, and the
 * table is in its first page. Where a tool has moved the table elsewhere, the packer's
 * dl_iterate_phdr() has to find it. */
#include "record/native/mapped_files.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/region.h"
#include "record/core/lane.h"

enum { FIRST_PAGE = 4096, MAX_NAME_BYTES = 4096 };

/* As glibc 2.35's <dlfcn.h> has it; declared here, because we are also built on older ones. */
struct found_object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[8]; /* one more than glibc's */
};

static int (*find_object)(void *pc, struct found_object *ret);
static struct tmk_region files_memory;
static struct tmk_mapped_file *mapped_files;
static _Atomic uint32_t n_mapped_files;
static _Atomic uint32_t files_generation;
static _Atomic uint32_t is_listing_wanted; /* a look-up has failed */
static uint64_t n_loaded;                  /* dlpi_adds of the last listing */
static char program_path[MAX_NAME_BYTES];

int tmk_mapped_files_open(bool old_ways)
{
    int rc = files_memory.base
                 ? 0
                 : tmk_region_init(&files_memory, sizeof *mapped_files * TMK_MAPPED_FILES_MAX);
    if (rc < 0)
        return rc;
    mapped_files = files_memory.base;
    ssize_t n = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
    program_path[n > 0 ? n : 0] = '\0';
    void *symbol = old_ways ? NULL : dlsym(RTLD_DEFAULT, "_dl_find_object");
    memcpy(&find_object, &symbol, sizeof find_object);
    n_loaded = 0;
    atomic_store(&is_listing_wanted, find_object ? 0 : 1);
    return 0;
}

uint32_t tmk_mapped_files_generation(void)
{
    return atomic_load_explicit(&files_generation, memory_order_acquire);
}

/* ---- learning a module ---- */

static const char *name_in_link_map(const struct link_map *map)
{
    return map->l_name ? map->l_name : "";
}

static uint64_t hash_name(const char *name)
{
    return tmk_hash_bytes(name, strnlen(name, MAX_NAME_BYTES));
}

/* Find the GNU build id among the notes of one segment. */
static void read_notes(struct tmk_mapped_file *m, const uint8_t *at, const uint8_t *end)
{
    while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        at += sizeof note;
        uint64_t name_room = ((uint64_t)note.n_namesz + 3) & ~3ull;
        uint64_t room = name_room + (((uint64_t)note.n_descsz + 3) & ~3ull);
        if (room > (uint64_t)(end - at))
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at, "GNU", 4) == 0 &&
            note.n_descsz <= TMK_BUILD_ID_MAX_BYTES) {
            memcpy(m->build_id, at + name_room, note.n_descsz);
            m->build_id_bytes = note.n_descsz;
            return;
        }
        at += room;
    }
}

static bool lies_in(const ElfW(Phdr) * inner, const ElfW(Phdr) * outer)
{
    return outer->p_type == PT_LOAD && (outer->p_flags & PF_R) &&
           inner->p_vaddr >= outer->p_vaddr && inner->p_vaddr - outer->p_vaddr <= outer->p_filesz &&
           inner->p_memsz <= outer->p_filesz - (inner->p_vaddr - outer->p_vaddr);
}

/* The loaded segment that holds this one; NULL: none does. */
static const ElfW(Phdr) *
    segment_around(const ElfW(Phdr) * inner, const ElfW(Phdr) * table, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (lies_in(inner, &table[i]))
            return &table[i];
    return NULL;
}

static void read_file_segments(struct tmk_mapped_file *m, const ElfW(Phdr) * table, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const ElfW(Phdr) *p = &table[i];
        uintptr_t at = m->bias + p->p_vaddr;
        const ElfW(Phdr) *in = segment_around(p, table, n);
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            if (m->code_start == 0 || at < m->code_start)
                m->code_start = at;
            if (at + p->p_memsz > m->code_end)
                m->code_end = at + p->p_memsz;
        } else if (p->p_type == PT_GNU_EH_FRAME && in) {
            m->eh_header = at;
            m->eh_start = m->bias + in->p_vaddr;
            m->eh_end = m->eh_start + in->p_filesz;
        } else if (p->p_type == PT_NOTE && in && m->build_id_bytes == 0) {
            const uint8_t *notes = (const uint8_t *)at;
            read_notes(m, notes, notes + p->p_memsz);
        }
    }
}

/* True for libtidemark.so, the file of this code, unless that is linked into a program (our
 * tests). */
static bool is_own_library_file(const struct tmk_mapped_file *m)
{
    uintptr_t here = (uintptr_t)&tmk_mapped_file_find;
    return here >= m->start && here < m->end && m->name[0] != '\0';
}

static struct tmk_mapped_file *add_mapped_file(const struct tmk_mapped_file *like,
                                               const ElfW(Phdr) * table, uint32_t n)
{
    bool is_full = atomic_load(&n_mapped_files) >= TMK_MAPPED_FILES_MAX;
    uint32_t i = is_full ? TMK_MAPPED_FILES_MAX : atomic_fetch_add(&n_mapped_files, 1);
    if (i >= TMK_MAPPED_FILES_MAX) {
        atomic_store(&n_mapped_files, TMK_MAPPED_FILES_MAX);
        tmk_lane_count_unnamed();
        return NULL;
    }
    struct tmk_mapped_file *m = &mapped_files[i];
    *m = *like;
    m->id = i + 1;
    m->name_hash = hash_name(m->name);
    m->is_own = is_own_library_file(m);
    read_file_segments(m, table, n);
    atomic_store_explicit(&m->ready, true, memory_order_release);
    return m;
}

/* ---- by _dl_find_object() ---- */

static bool is_known_as(const struct tmk_mapped_file *m, const struct found_object *o)
{
    return m->start == (uintptr_t)o->map_start && m->end == (uintptr_t)o->map_end &&
           m->handle == (const void *)o->link_map;
}

static struct tmk_mapped_file *known_file(const struct found_object *o)
{
    uint32_t n = atomic_load(&n_mapped_files);
    const char *name = name_in_link_map(o->link_map);
    for (uint32_t i = 0; i < n && i < TMK_MAPPED_FILES_MAX; i++) {
        struct tmk_mapped_file *m = &mapped_files[i];
        if (atomic_load_explicit(&m->ready, memory_order_acquire) && !atomic_load(&m->gone) &&
            is_known_as(m, o) && m->name_hash == hash_name(name))
            return m;
    }
    return NULL;
}

static struct tmk_mapped_file *learn_file(const struct found_object *o)
{
    uintptr_t start = (uintptr_t)o->map_start;
    ElfW(Ehdr) header;
    if ((uintptr_t)o->map_end - start < FIRST_PAGE)
        return NULL;
    memcpy(&header, o->map_start, sizeof header);
    uint64_t table_bytes = (uint64_t)header.e_phnum * sizeof(ElfW(Phdr));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr)) ||
        header.e_phoff % _Alignof(ElfW(Phdr)) != 0 || header.e_phoff > FIRST_PAGE ||
        table_bytes > FIRST_PAGE - header.e_phoff) {
        atomic_store(&is_listing_wanted, 1);
        return NULL;
    }
    const struct tmk_mapped_file like = {.start = start,
                                         .end = (uintptr_t)o->map_end,
                                         .bias = o->link_map->l_addr,
                                         .name = name_in_link_map(o->link_map),
                                         .handle = o->link_map};
    const ElfW(Phdr) *table = (const void *)(start + header.e_phoff);
    return add_mapped_file(&like, table, header.e_phnum);
}

static struct tmk_mapped_file *ask_loader(uintptr_t pc)
{
    struct found_object o;
    if (find_object((void *)pc, &o) != 0 || !o.link_map) /* NOLINT(performance-no-int-to-ptr) */
        return NULL;
    struct tmk_mapped_file *m = known_file(&o);
    return m ? m : learn_file(&o);
}

/* ---- by dl_iterate_phdr() ---- */

static struct tmk_mapped_file *find_in_list(uintptr_t pc)
{
    uint32_t n = atomic_load(&n_mapped_files);
    for (uint32_t i = 0; i < n && i < TMK_MAPPED_FILES_MAX; i++) {
        struct tmk_mapped_file *m = &mapped_files[i];
        if (atomic_load_explicit(&m->ready, memory_order_acquire) && !atomic_load(&m->gone) &&
            pc >= m->start && pc < m->end)
            return m;
    }
    return NULL;
}

struct tmk_mapped_file *tmk_mapped_file_find(uintptr_t pc)
{
    if (!mapped_files)
        return NULL;
    struct tmk_mapped_file *m = find_object ? ask_loader(pc) : find_in_list(pc);
    if (m && pc >= m->code_start && pc < m->code_end)
        return m;
    if (!find_object)
        atomic_store_explicit(&is_listing_wanted, 1, memory_order_relaxed);
    return NULL;
}

static void extent_of_file(const struct dl_phdr_info *info, struct tmk_mapped_file *ret)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        low = at < low ? at : low;
        high = at + p->p_memsz > high ? at + p->p_memsz : high;
    }
    ret->start = low & ~(uintptr_t)(FIRST_PAGE - 1);
    ret->end = high;
}

/* Keep the file loaded, so that our pointers into it stay valid. The program itself always is. */
static bool keep_loaded(struct tmk_mapped_file *m)
{
    struct link_map *map = NULL;
    if (m->name[0] == '\0')
        return true;
    void *handle = dlopen(m->name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return false;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map->l_addr != m->bias) {
        dlclose(handle);
        return false;
    }
    m->name = name_in_link_map(map);
    return true;
}

static int list_file(struct dl_phdr_info *info, size_t size, void *arg)
{
    bool *first = arg;
    if (*first && size >= offsetof(struct dl_phdr_info, dlpi_subs)) {
        if (info->dlpi_adds == n_loaded)
            return 1; /* no file has come */
        n_loaded = info->dlpi_adds;
    }
    *first = false;
    struct tmk_mapped_file like = {.bias = info->dlpi_addr,
                                   .name = info->dlpi_name ? info->dlpi_name : ""};
    extent_of_file(info, &like);
    if (like.start >= like.end || find_in_list(like.start))
        return 0;
    if (find_object) { /* only those that could not be learned from their own header */
        struct found_object o;
        if (find_object((void *)like.start, &o) != 0 || /* NOLINT(performance-no-int-to-ptr) */
            (uintptr_t)o.map_start != like.start)
            return 0;
        like.end = (uintptr_t)o.map_end;
        like.handle = o.link_map;
    } else if (!keep_loaded(&like)) {
        return 0;
    }
    (void)add_mapped_file(&like, info->dlpi_phdr, info->dlpi_phnum);
    return 0;
}

/* Mark files that the loader no longer knows, or knows as something else. None of their memory is
 * read. */
static bool mark_gone_files(void)
{
    bool any = false;
    uint32_t n = atomic_load(&n_mapped_files);
    for (uint32_t i = 0; i < n && i < TMK_MAPPED_FILES_MAX; i++) {
        struct tmk_mapped_file *m = &mapped_files[i];
        struct found_object o;
        if (!atomic_load_explicit(&m->ready, memory_order_acquire) || atomic_load(&m->gone))
            continue;
        void *at = (void *)m->code_start; /* NOLINT(performance-no-int-to-ptr) */
        if (find_object(at, &o) == 0 && is_known_as(m, &o))
            continue;
        atomic_store(&m->gone, true);
        any = true;
    }
    return any;
}

void tmk_mapped_files_refresh(void)
{
    if (!mapped_files)
        return;
    if (find_object && mark_gone_files())
        atomic_fetch_add(&files_generation, 1);
    bool first = true;
    if (atomic_exchange(&is_listing_wanted, 0))
        dl_iterate_phdr(list_file, &first);
}

/* ---- paths ---- */

uint32_t tmk_mapped_file_path(const struct tmk_mapped_file *m, char *buffer, uint32_t size)
{
    const char *name = m->name[0] ? m->name : program_path;
    size_t n = 0;
    if (name[0] != '/' && strchr(name, '/') && getcwd(buffer, size - 1)) {
        n = strlen(buffer);
        buffer[n++] = '/';
        if (name[0] == '.' && name[1] == '/')
            name += 2;
    }
    size_t rest = strnlen(name, size - n);
    memcpy(buffer + n, name, rest);
    return (uint32_t)(n + rest);
}
