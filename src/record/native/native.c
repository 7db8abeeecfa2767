/* SPDX-License-Identifier: MIT */
/* record/native/native.c - see native.h.
 *
 * Rules and frame ids are kept by address in a table of cache lines, without a lock. An entry's key
 * is BUSY while the entry is written. A reader reads the key before and after, and drops the entry
 * if the two differ. Words are loaded with acquire and stored with release, so that neither passes
 * the key. The key holds the generation of the mapped files, so everything is forgotten when one
 * was unloaded. The frame id holds the recorder's generation, so that a forked child defines its
 * own. */
#include "record/native/native.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/region.h"
#include "record/core/intern.h"
#include "record/native/mapped_files.h"
#include "record/native/unwind.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum {
    N_ENTRIES = 1 << 14,
    BUSY = 1,
    PC_BITS = 48,
    RULE_WORDS = 2,
    MAX_STACK_LOOKS = 8,
    PAGE = 4096
};
#define FRAME_OWN UINT32_MAX /* a frame of libtidemark.so, which is not shown */

struct rule_entry {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t rule[RULE_WORDS];
    _Atomic uint64_t frame; /* recorder generation << 32 | frame id, 0: not yet */
} __attribute__((aligned(32)));

union rule_words {
    struct tmk_unwind_rule rule;
    uint64_t words[RULE_WORDS];
};
_Static_assert(sizeof(struct tmk_unwind_rule) == RULE_WORDS * sizeof(uint64_t), "kept as words");

struct known_address { /* a copy of an entry */
    union rule_words rule;
    uint64_t frame;
};

static struct tmk_region entries_memory;
static struct rule_entry *entries;
static bool is_native_open;

int tmk_native_open(bool old_ways)
{
    int rc =
        entries_memory.base ? 0 : tmk_region_init(&entries_memory, sizeof *entries * N_ENTRIES);
    if (rc == 0)
        rc = tmk_mapped_files_open(old_ways);
    if (rc == 0)
        entries = entries_memory.base;
    is_native_open = rc == 0;
    return rc;
}

/* ---- what is known of an address ---- */

/* The part of a key above the address. */
static inline uint64_t key_tag(void)
{
    return (uint64_t)tmk_mapped_files_generation() << PC_BITS;
}

/* Each key has two places, side by side. */
static inline struct rule_entry *place_of_entry(uint64_t key, uint32_t way)
{
    uint64_t hash = (key * 0x9e3779b97f4a7c15u) >> 32;
    return &entries[(hash & (N_ENTRIES - 1)) ^ way];
}

static inline bool read_rule_entry(struct rule_entry *e, uint64_t key, struct known_address *ret)
{
    if (atomic_load_explicit(&e->key, memory_order_acquire) != key)
        return false;
    for (int i = 0; i < RULE_WORDS; i++)
        ret->rule.words[i] = atomic_load_explicit(&e->rule[i], memory_order_acquire);
    ret->frame = atomic_load_explicit(&e->frame, memory_order_acquire);
    return atomic_load_explicit(&e->key, memory_order_relaxed) == key;
}

static void keep_entry(uint64_t key, const struct known_address *known)
{
    struct rule_entry *e = place_of_entry(key, 0), *other = place_of_entry(key, 1);
    uint64_t there = atomic_load(&e->key);
    uint64_t beside = atomic_load(&other->key);
    if (there != key && there != 0 && (beside == key || beside == 0 || (key & 2))) {
        e = other; /* it has the address already, or room; else one of the two has to go */
        there = atomic_load(&e->key);
    }
    if (there == BUSY || !atomic_compare_exchange_strong(&e->key, &there, BUSY))
        return; /* another thread writes it: next time */
    for (int i = 0; i < RULE_WORDS; i++)
        atomic_store_explicit(&e->rule[i], known->rule.words[i], memory_order_release);
    atomic_store_explicit(&e->frame, known->frame, memory_order_release);
    atomic_store_explicit(&e->key, key, memory_order_release);
}

/* Look up an address that is met for the first time. It is not kept if its file is not known,
 * because the file may become known. */
__attribute__((noinline)) static void learn_rule(uintptr_t pc, uint64_t key,
                                                 struct known_address *ret)
{
    const struct tmk_mapped_file *m = pc >> PC_BITS ? NULL : tmk_mapped_file_find(pc);
    *ret = (struct known_address){.rule.rule.flags = TMK_RULE_NONE};
    if (!m)
        return;
    tmk_unwind_find(m, pc, &ret->rule.rule);
    keep_entry(key, ret);
}

static inline void look_up_rule(uintptr_t pc, uint64_t key, struct known_address *ret)
{
    if (__builtin_expect(!read_rule_entry(place_of_entry(key, 0), key, ret), 0) &&
        !read_rule_entry(place_of_entry(key, 1), key, ret))
        learn_rule(pc, key, ret);
}

/* ---- frames ---- */

static bool define_mapped_file(struct tmk_lane *lane, struct tmk_mapped_file *m)
{
    if (atomic_load_explicit(&m->defined_for, memory_order_acquire) == lane->generation)
        return true;
    char text[TMK_STRING_MAX_BYTES];
    memcpy(text, m->build_id, m->build_id_bytes);
    uint32_t n = tmk_mapped_file_path(m, text + m->build_id_bytes,
                                      (uint32_t)sizeof text - m->build_id_bytes);
    if (!tmk_lane_put_text(lane, TMK_KIND_DEF_MODULE, m->id, m->build_id_bytes, text,
                           m->build_id_bytes + n))
        return false;
    atomic_store_explicit(&m->defined_for, lane->generation, memory_order_release);
    return true;
}

/* The frame's id in this trace. 0: its file is not known, or there was no room. */
__attribute__((noinline)) static uint32_t learn_frame(struct tmk_lane *lane, uintptr_t pc,
                                                      uint64_t key, struct known_address *known)
{
    struct tmk_mapped_file *m = pc >> PC_BITS ? NULL : tmk_mapped_file_find(pc);
    if (!m)
        return 0;
    uint32_t id = FRAME_OWN;
    if (!m->is_own)
        id = define_mapped_file(lane, m) ? tmk_intern_native_frame(lane, m->id, pc + 1 - m->bias)
                                         : 0;
    if (id == 0)
        return 0;
    known->frame = (uint64_t)lane->generation << 32 | id;
    keep_entry(key, known);
    return id;
}

/* ---- where the stack ends ---- */

struct mapping { /* one line of /proc/self/maps, as it is read */
    uintptr_t number, start, end;
    uint64_t tail; /* its last eight characters */
    int field;     /* 0 start, 1 end, 2 the rest */
};

/* Take one more character. True at the end of the line that holds `address`. */
static bool take_character(struct mapping *m, char c, uintptr_t address)
{
    if (c == '\n') {
        bool found = m->field == 2 && address >= m->start && address < m->end;
        if (!found)
            *m = (struct mapping){0};
        return found;
    }
    m->tail = m->tail << 8 | (uint8_t)c;
    if (m->field == 2)
        return false;
    if ((m->field == 0 && c == '-') || (m->field == 1 && c == ' ')) {
        *(m->field == 0 ? &m->start : &m->end) = m->number;
        m->number = 0;
        m->field++;
    } else {
        m->number = m->number << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return false;
}

static bool find_mapping(uintptr_t address, struct mapping *ret)
{
    char buffer[1024];
    ssize_t n;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    *ret = (struct mapping){0};
    while (fd >= 0 && !found && (n = read(fd, buffer, sizeof buffer)) > 0)
        for (ssize_t i = 0; i < n && !found; i++)
            found = take_character(ret, buffer[i], address);
    if (fd >= 0)
        close(fd);
    return found;
}

/* The first thread's stack grows down as it is used, up to its limit. */
static uintptr_t lowest_stack(const struct mapping *m)
{
    struct rlimit limit;
    uintptr_t room = (uintptr_t)1 << 30;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < room)
        room = limit.rlim_cur;
    uintptr_t low = m->end > room ? m->end - room : 0;
    return low < m->start ? low : m->start;
}

/* The calling thread's stack, as far as it is known. */
static __thread struct {
    uintptr_t top; /* 0: not known */
    uint16_t n_pages;
    uint8_t n_looks;
} own_stack __attribute__((tls_model("initial-exec")));

/* Find the mapping that `sp` is in, if it is surely this thread's own stack: the kernel names the
 * first thread's, and other threads have their descriptor at the upper end. Other stacks (of
 * coroutines and signals) are not walked, because their ends are not known. */
__attribute__((noinline)) static bool find_own_stack(uintptr_t sp)
{
    const uint64_t stack_tail = 0x5b737461636b5dull; /* "[stack]" */
    struct mapping m;
    if (own_stack.n_looks >= MAX_STACK_LOOKS)
        return false;
    own_stack.n_looks++;
    if (!find_mapping(sp, &m))
        return false;
    uintptr_t self = (uintptr_t)pthread_self();
    bool is_first = (m.tail & 0xffffffffffffffull) == stack_tail;
    if (!is_first && (self <= sp || self >= m.end))
        return false;
    uintptr_t low = is_first ? lowest_stack(&m) : m.start, top = is_first ? m.end : self;
    uintptr_t pages = (top - low) / PAGE;
    own_stack.top = top;
    own_stack.n_pages = pages > UINT16_MAX ? UINT16_MAX : (uint16_t)pages;
    return true;
}

static inline bool bounds_of_stack(uintptr_t sp, struct tmk_stack_bounds *ret)
{
    if (__builtin_expect(own_stack.top - sp >= (uintptr_t)own_stack.n_pages * PAGE, 0) &&
        !find_own_stack(sp))
        return false;
    ret->top = own_stack.top;
    ret->low = own_stack.top - (uintptr_t)own_stack.n_pages * PAGE;
    return sp >= ret->low;
}

/* ---- walking ---- */

/* An address inside the instruction that is under way: a return address may already belong to the
 * next function. */
static inline uintptr_t instruction_address(const struct tmk_unwind_regs *regs)
{
    return regs->exact ? regs->pc : regs->pc - 1;
}

struct native_walk {
    struct tmk_unwind_regs regs;
    struct tmk_stack_bounds bounds;
    struct known_address known; /* of the address where the walk is */
    uint64_t tag, key;
    uintptr_t pc;
};

static inline void look_up_here(struct native_walk *w)
{
    w->pc = instruction_address(&w->regs);
    w->key = w->pc | w->tag;
    look_up_rule(w->pc, w->key, &w->known);
}

/* Begin at `regs`, which are set. False: this stack cannot be walked. */
static inline bool begin_walk(struct native_walk *w)
{
    if (!is_native_open || !bounds_of_stack(w->regs.r[TMK_REG_SP], &w->bounds))
        return false;
    w->tag = key_tag();
    look_up_here(w);
    return true;
}

static inline bool step_walk(struct native_walk *w)
{
    return tmk_unwind_step(&w->known.rule.rule, &w->regs, &w->bounds);
}

__attribute__((noinline)) uint32_t tmk_native_walk(uintptr_t *pcs, uint32_t max)
{
    struct native_walk w;
    uint32_t n = 0;
    TMK_UNWIND_HERE(&w.regs);
    if (!begin_walk(&w))
        return 0;
    while (n < max && step_walk(&w)) {
        pcs[n++] = w.regs.pc;
        look_up_here(&w);
    }
    return n;
}

__attribute__((noinline)) uint32_t tmk_native_frames(struct tmk_lane *lane, uint32_t skip,
                                                     const struct tmk_code_range *until,
                                                     uint32_t *ids, uint32_t max)
{
    struct native_walk w;
    uint32_t n = 0;
    TMK_UNWIND_HERE(&w.regs);
    if (!begin_walk(&w))
        return 0;
    while (n < max && step_walk(&w)) {
        look_up_here(&w);
        if (until && w.pc >= until->start && w.pc < until->end)
            break;
        uint32_t id = (uint32_t)w.known.frame;
        if (__builtin_expect(w.known.frame >> 32 != lane->generation || id == 0, 0))
            id = learn_frame(lane, w.pc, w.key, &w.known);
        if (id == 0)
            break;
        if (id != FRAME_OWN && skip > 0)
            skip--;
        else if (id != FRAME_OWN)
            ids[n++] = id;
    }
    return n;
}
