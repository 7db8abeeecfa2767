/* SPDX-License-Identifier: MIT */
/* record/loader/import_slots.c - see import_slots.h.
 *
 * Slots are found by walking each module's relocations (DT_JMPREL and DT_RELA). Where the loader
 * has made them read-only after binding (RELRO), the page is made writable for the one store. A
 * slot is an aligned word: other threads see the old or the new address. */
#include "record/loader/import_slots.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/forks.h"

#if defined(__x86_64__)
enum { SLOT_JUMP = R_X86_64_JUMP_SLOT, SLOT_DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT_JUMP = R_AARCH64_JUMP_SLOT, SLOT_DATA = R_AARCH64_GLOB_DAT };
#endif

struct tmk_slot_module { /* what of its dynamic section is of use */
    uintptr_t base, lowest, highest;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t n_entries[2];
    uintptr_t relro_start, relro_end;
};

/* ---- one slot ---- */

/* The loader's lock is held: two slots may be on one page. */
static bool write_slot(const struct tmk_slot_module *m, uintptr_t *slot, uintptr_t value,
                       bool stays_open)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = (uintptr_t)slot;
    void *page = (void *)(at & ~(page_bytes - 1));
    bool read_only = at >= m->relro_start && at < m->relro_end;
    if (read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) < 0)
        return false;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (read_only && !stays_open)
        mprotect(page, page_bytes, PROT_READ);
    return true;
}

bool tmk_import_slot_write(const struct tmk_import_slot *slot, uintptr_t value, bool stays_open)
{
    return write_slot(slot->module, slot->at, value, stays_open);
}

bool tmk_import_slot_is_unbound(const struct tmk_import_slot *slot, uintptr_t value)
{
    return value >= slot->module->lowest && value < slot->module->highest;
}

/* ---- modules ---- */

/* The loader relocates these addresses in place on most architectures, not on all. */
static uintptr_t address_in_module(const struct tmk_slot_module *m, uintptr_t value)
{
    return value < m->base ? value + m->base : value;
}

static void read_dynamic_section(struct tmk_slot_module *m, const ElfW(Dyn) * dynamic)
{
    size_t bytes[2] = {0, 0};
    uintptr_t tables[2] = {0, 0};
    for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_SYMTAB:
            m->symbols = (const ElfW(Sym) *)address_in_module(m, d->d_un.d_ptr);
            break;
        case DT_STRTAB:
            m->strings = (const char *)address_in_module(m, d->d_un.d_ptr);
            break;
        case DT_JMPREL:
            tables[0] = address_in_module(m, d->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            bytes[0] = d->d_un.d_val;
            break;
        case DT_RELA:
            tables[1] = address_in_module(m, d->d_un.d_ptr);
            break;
        case DT_RELASZ:
            bytes[1] = d->d_un.d_val;
            break;
        default:
            break;
        }
    }
    for (int i = 0; i < 2; i++) {
        m->tables[i] = (const ElfW(Rela) *)tables[i];
        m->n_entries[i] = tables[i] ? bytes[i] / sizeof(ElfW(Rela)) : 0;
    }
}

/* Of RELRO the loader protects whole pages only: what shares the last one stays writable. */
static const ElfW(Dyn) *
    read_program_headers(struct tmk_slot_module *m, const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *dynamic = NULL;
    uintptr_t whole_pages = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    m->base = info->dlpi_addr;
    m->lowest = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + h->p_vaddr, end = start + h->p_memsz;
        if (h->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)start;
        } else if (h->p_type == PT_GNU_RELRO) {
            m->relro_start = start & whole_pages;
            m->relro_end = end & whole_pages;
        } else if (h->p_type == PT_LOAD) {
            m->lowest = start < m->lowest ? start : m->lowest;
            m->highest = end > m->highest ? end : m->highest;
        }
    }
    return dynamic;
}

static bool is_own_library(const struct tmk_slot_module *m)
{
    uintptr_t here = (uintptr_t)tmk_import_slots_visit;
    return here >= m->lowest && here < m->highest;
}

struct slots_visit {
    tmk_import_slot_visit *function;
    void *arg;
};

static int visit_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    const struct slots_visit *v = arg;
    struct tmk_slot_module m = {0};
    const ElfW(Dyn) *dynamic = read_program_headers(&m, info);
    if (!dynamic || is_own_library(&m))
        return 0;
    read_dynamic_section(&m, dynamic);
    if (!m.symbols || !m.strings)
        return 0;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < m.n_entries[t]; i++) {
            const ElfW(Rela) *r = &m.tables[t][i];
            uint32_t type = ELF64_R_TYPE(r->r_info);
            if (type != SLOT_JUMP && type != SLOT_DATA)
                continue;
            struct tmk_import_slot slot = {
                .module = &m,
                .path = info->dlpi_name,
                .name = m.strings + m.symbols[ELF64_R_SYM(r->r_info)].st_name,
                .at = (uintptr_t *)(m.base + r->r_offset),
            };
            v->function(&slot, v->arg);
        }
    }
    return 0;
}

void tmk_import_slots_visit(tmk_import_slot_visit *function, void *arg)
{
    struct slots_visit v = {function, arg};
    tmk_forks_hold();
    dl_iterate_phdr(visit_module, &v);
    tmk_forks_let();
}

/* ---- other words ---- */

struct data_word {
    uintptr_t *at;
    uintptr_t value;
    bool stays_open, is_written;
};

static int visit_data_word(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct data_word *word = arg;
    struct tmk_slot_module m = {0};
    read_program_headers(&m, info);
    if ((uintptr_t)word->at < m.lowest || (uintptr_t)word->at >= m.highest)
        return 0;
    word->is_written = write_slot(&m, word->at, word->value, word->stays_open);
    return 1;
}

bool tmk_import_word_write(uintptr_t *at, uintptr_t value, bool stays_open)
{
    static uintptr_t *_Atomic open_at;
    struct data_word word = {.at = at, .value = value, .stays_open = stays_open};
    if (stays_open && atomic_load(&open_at) == at) {
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
        return true;
    }
    tmk_forks_hold();
    dl_iterate_phdr(visit_data_word, &word);
    tmk_forks_let();
    atomic_store(&open_at, stays_open && word.is_written ? at : NULL);
    return word.is_written;
}
