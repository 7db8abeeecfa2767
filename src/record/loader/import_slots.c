/* SPDX-License-Identifier: MIT */
/* record/loader/import_slots.c - see import_slots.h.
 *
 * Slots are found by walking each module's relocations (DT_JMPREL and DT_RELA) for the names of our
 * hooks. Where the loader has made them read-only after binding (RELRO), the page is made writable
 * for the one store. A slot is an aligned word: other threads see the old or the new address. */
#include "record/loader/import_slots.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/forks.h"
#include "record/control/attach.h"
#include "record/core/seal.h"
#include "record/loader/library.h"
#include "record/torch/block_hooks.h"
#include "record/torch/runtime_calls.h"
#include "record/torch/tally.h"

#if defined(__x86_64__)
enum { SLOT_JUMP = R_X86_64_JUMP_SLOT, SLOT_DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT_JUMP = R_AARCH64_JUMP_SLOT, SLOT_DATA = R_AARCH64_GLOB_DAT };
#endif

enum { MAX_ORIGINALS = 512 };

/* What stood in the slots that we wrote. */
static struct original {
    uintptr_t *slot;
    uintptr_t value;
} originals[MAX_ORIGINALS];
static uint32_t n_originals;

/* Slots that tmk_patch_switch() has written, and whose they are: it goes back and forth for every
 * few steps of a training, and looking through all modules takes longer than those, and leaves the
 * caches full of what it read. */
static struct {
    uintptr_t *slot;
    struct tmk_hook *hook;
} switched[MAX_ORIGINALS];
static uint32_t n_switched;

struct module { /* what of its dynamic section is of use */
    uintptr_t base, lowest, highest;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t n_entries[2];
    uintptr_t relro_start, relro_end;
};

struct walk {
    bool in;
    bool stubs;                            /* too */
    bool frees;                            /* those hooks, or all others */
    bool callers;                          /* likewise; to take out, all */
    bool switches;                         /* slots are kept, and stay writable */
    const struct tmk_hook *only;           /* this one, if not NULL */
    uintptr_t *unfound[TMK_N_TORCH_HOOKS]; /* a slot of each hook whose function is not found yet */
    uint32_t n_ours[TMK_N_TORCH_HOOKS];    /* slots that lead to us now */
    struct tmk_patch_count count;
};

/* ---- one slot ---- */

static uintptr_t original_of(const uintptr_t *slot)
{
    for (uint32_t i = 0; i < n_originals; i++)
        if (originals[i].slot == slot)
            return originals[i].value;
    return 0;
}

static void keep_original(uintptr_t *slot, uintptr_t value)
{
    if (n_originals < MAX_ORIGINALS && original_of(slot) == 0)
        originals[n_originals++] = (struct original){slot, value};
}

/* What is to be there. */
static uintptr_t value_of(const uintptr_t *slot, const struct tmk_hook *hook, bool in)
{
    uintptr_t before = in ? (uintptr_t)hook->ours : original_of(slot);
    return before ? before : atomic_load_explicit(&hook->real, memory_order_acquire);
}

/* The loader's lock is held: two slots may be on one page. */
static bool write_slot(const struct module *m, uintptr_t *slot, uintptr_t value, bool stays_open)
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

static void visit_slot(struct walk *w, const struct module *m, uintptr_t *slot,
                       struct tmk_hook *hook)
{
    uintptr_t now = __atomic_load_n(slot, __ATOMIC_ACQUIRE), ours = (uintptr_t)hook->ours;
    uintptr_t real = atomic_load_explicit(&hook->real, memory_order_acquire);
    bool unbound = now >= m->lowest && now < m->highest; /* lazily: leads to the loader */
    if (!real && hook->is_caller && w->in && !unbound) {
        real = now;
        atomic_store_explicit(&hook->real, real, memory_order_release);
    }
    if (!real)
        w->unfound[hook - tmk_torch_hooks] = slot;
    w->n_ours[hook - tmk_torch_hooks] += now == ours;
    if (!real || (w->in ? now == ours : now != ours))
        return;
    if (w->in && now != real && !unbound) { /* another library stands in front of torch already */
        atomic_store(&hook->foreign, true);
        tmk_torch_note_unusual();
        atomic_store_explicit(&hook->real, now, memory_order_release);
    }
    if (w->in)
        keep_original(slot, now);
    if (!write_slot(m, slot, value_of(slot, hook, w->in), w->switches)) {
        w->count.n_failed++;
        return;
    }
    w->count.n_patched++;
    w->n_ours[hook - tmk_torch_hooks] += w->in;
    if (w->switches && n_switched < MAX_ORIGINALS) {
        switched[n_switched].slot = slot;
        switched[n_switched++].hook = hook;
    }
}

/* ---- modules ---- */

static struct tmk_hook *hook_named(const char *name)
{
    if (strncmp(name, "_ZN", 3) != 0 && strncmp(name, "cuda", 4) != 0) /* most are neither */
        return NULL;
    for (int i = 0; i < TMK_N_TORCH_HOOKS; i++)
        if (strcmp(tmk_torch_hooks[i].name, name) == 0)
            return &tmk_torch_hooks[i];
    return NULL;
}

/* The loader relocates these addresses in place on most architectures, not on all. */
static uintptr_t address_in(const struct module *m, uintptr_t value)
{
    return value < m->base ? value + m->base : value;
}

static void read_dynamic(struct module *m, const ElfW(Dyn) * dynamic)
{
    size_t bytes[2] = {0, 0};
    uintptr_t tables[2] = {0, 0};
    for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_SYMTAB:
            m->symbols = (const ElfW(Sym) *)address_in(m, d->d_un.d_ptr);
            break;
        case DT_STRTAB:
            m->strings = (const char *)address_in(m, d->d_un.d_ptr);
            break;
        case DT_JMPREL:
            tables[0] = address_in(m, d->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            bytes[0] = d->d_un.d_val;
            break;
        case DT_RELA:
            tables[1] = address_in(m, d->d_un.d_ptr);
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
static const ElfW(Dyn) * read_headers(struct module *m, const struct dl_phdr_info *info)
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

static bool is_ours(const struct module *m)
{
    uintptr_t here = (uintptr_t)tmk_patch_in;
    return here >= m->lowest && here < m->highest;
}

static bool is_wanted(const struct walk *w, const struct tmk_hook *hook, const char *path)
{
    bool is_node = hook == &tmk_torch_hooks[TMK_TORCH_NODE];
    if (hook->is_free != w->frees || (hook->is_stub && !w->stubs) || (w->only && hook != w->only) ||
        (is_node && w->in && tmk_recorder.settings.no_modules))
        return false;
    if (hook->is_caller && !tmk_library_is_named(path, hook->library))
        return false;
    return !w->in || hook->is_caller == w->callers;
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct walk *w = arg;
    struct module m = {0};
    const ElfW(Dyn) *dynamic = read_headers(&m, info);
    if (!dynamic || is_ours(&m))
        return 0;
    read_dynamic(&m, dynamic);
    if (!m.symbols || !m.strings)
        return 0;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < m.n_entries[t]; i++) {
            const ElfW(Rela) *r = &m.tables[t][i];
            uint32_t type = ELF64_R_TYPE(r->r_info);
            if (type != SLOT_JUMP && type != SLOT_DATA)
                continue;
            struct tmk_hook *hook =
                hook_named(m.strings + m.symbols[ELF64_R_SYM(r->r_info)].st_name);
            if (hook && is_wanted(w, hook, info->dlpi_name))
                visit_slot(w, &m, (uintptr_t *)(m.base + r->r_offset), hook);
        }
    }
    return 0;
}

/* ---- all of them ---- */

static void visit_modules(struct walk *w)
{
    tmk_forks_hold();
    dl_iterate_phdr(visit_module, w);
    tmk_forks_let();
}

/* A free without its block is nothing; a block without its free would live for ever. So frees are
 * seen first, and seen last. */
static void visit_in_order(struct walk *w)
{
    w->frees = w->in;
    visit_modules(w);
    w->frees = !w->in;
    visit_modules(w);
}

/* The real functions are looked for before and between, not under the loader's lock, in which
 * looking would wait for another of its locks. */
static void visit_all(struct walk *w)
{
    bool found = false;
    for (int i = 0; i < TMK_N_TORCH_HOOKS; i++)
        tmk_torch_find_real(&tmk_torch_hooks[i], NULL);
    visit_in_order(w);
    for (int i = 0; i < TMK_N_TORCH_HOOKS; i++)
        found |= w->unfound[i] && tmk_torch_find_real(&tmk_torch_hooks[i], w->unfound[i]);
    if (found)
        visit_in_order(w);
}

static struct tmk_patch_count patch(struct walk *w)
{
    if (!w->in) {
        tmk_tally_hear(false);
        tmk_runtime_set_unseen();
    }
    n_switched = 0;
    visit_all(w);
    if (w->in)
        tmk_tally_hear(true);
    return w->count;
}

struct tmk_patch_count tmk_patch_in(void)
{
    struct tmk_patch_count count = patch(&(struct walk){.in = true, .stubs = true});
    if (count.n_patched > 0) /* torch was there before us */
        tmk_torch_expect_all();
    return count;
}

bool tmk_patch_runtime(void)
{
    struct walk w = {.in = true, .callers = true};
    n_switched = 0;
    visit_all(&w);
    if (w.count.n_failed || !w.n_ours[TMK_TORCH_MALLOC] || !w.n_ours[TMK_TORCH_FREE])
        return false;
    tmk_runtime_set_seen();
    return true;
}

struct tmk_patch_count tmk_patch_out(void)
{
    struct tmk_patch_count count = patch(&(struct walk){.stubs = true});
    n_originals = 0;
    return count;
}

/* It was taken out, if at all, because modules were not wanted. */
void tmk_patch_nodes(bool in)
{
    static bool is_out;
    struct walk w = {.in = in, .only = &tmk_torch_hooks[TMK_TORCH_NODE]};
    if (is_out == !in || !tmk_attach_take_turn())
        return;
    n_switched = 0;
    visit_all(&w);
    is_out = !in;
    tmk_attach_end_turn();
}

/* ---- calls that restrict system calls ---- */

/* The stub that belongs into a slot of this name, NULL: none. A slot that leads elsewhere than to
 * the function that we would jump on to, and is bound, is another library's affair. */
static void *stub_for(const struct module *m, const char *name, uintptr_t now)
{
    if ((name[0] != 'p' && name[0] != 's') || !tmk_seal_is_name(name))
        return NULL;
    bool unbound = now >= m->lowest && now < m->highest;
    return tmk_seal_stub(name, unbound ? tmk_seal_behind(name) : (void *)now);
}

static int visit_calls(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    struct module m = {0};
    const ElfW(Dyn) *dynamic = read_headers(&m, info);
    if (!dynamic || is_ours(&m) || tmk_library_is_named(info->dlpi_name, "libc.so"))
        return 0;
    read_dynamic(&m, dynamic);
    for (int t = 0; t < 2 && m.symbols && m.strings; t++) {
        for (size_t i = 0; i < m.n_entries[t]; i++) {
            const ElfW(Rela) *r = &m.tables[t][i];
            uint32_t type = ELF64_R_TYPE(r->r_info);
            if (type != SLOT_JUMP && type != SLOT_DATA)
                continue;
            uintptr_t *slot = (uintptr_t *)(m.base + r->r_offset);
            void *stub = stub_for(&m, m.strings + m.symbols[ELF64_R_SYM(r->r_info)].st_name,
                                  __atomic_load_n(slot, __ATOMIC_ACQUIRE));
            if (stub)
                (void)write_slot(&m, slot, (uintptr_t)stub, false);
        }
    }
    return 0;
}

void tmk_patch_calls(void)
{
    tmk_forks_hold();
    dl_iterate_phdr(visit_calls, NULL);
    tmk_forks_let();
}

/* ---- other words ---- */

struct word {
    uintptr_t *at;
    uintptr_t value;
    bool stays_open, is_written;
};

static int visit_word(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct word *word = arg;
    struct module m = {0};
    read_headers(&m, info);
    if ((uintptr_t)word->at < m.lowest || (uintptr_t)word->at >= m.highest)
        return 0;
    word->is_written = write_slot(&m, word->at, word->value, word->stays_open);
    return 1;
}

bool tmk_patch_word(uintptr_t *at, uintptr_t value, bool stays_open)
{
    static uintptr_t *_Atomic open_at;
    struct word word = {.at = at, .value = value, .stays_open = stays_open};
    if (stays_open && atomic_load(&open_at) == at) {
        __atomic_store_n(at, value, __ATOMIC_RELEASE);
        return true;
    }
    tmk_forks_hold();
    dl_iterate_phdr(visit_word, &word);
    tmk_forks_let();
    atomic_store(&open_at, stays_open && word.is_written ? at : NULL);
    return word.is_written;
}

/* ---- back and forth ---- */

/* Those that were switched before. The runtime's are only put in when they are asked for. */
static uint32_t switch_again(bool in, bool frees)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_switched; i++) {
        struct tmk_hook *hook = switched[i].hook;
        uintptr_t value = value_of(switched[i].slot, hook, in);
        if (hook->is_free != frees || (in && hook->is_caller) || *switched[i].slot == value)
            continue;
        __atomic_store_n(switched[i].slot, value, __ATOMIC_RELEASE);
        n++;
    }
    return n;
}

struct tmk_patch_count tmk_patch_switch(bool in)
{
    if (n_switched == 0)
        return patch(&(struct walk){.in = in, .switches = true});
    tmk_tally_hear(in);
    if (!in)
        tmk_runtime_set_unseen();
    uint32_t n = switch_again(in, in); /* as in visit_in_order() */
    return (struct tmk_patch_count){.n_patched = n + switch_again(in, !in)};
}
