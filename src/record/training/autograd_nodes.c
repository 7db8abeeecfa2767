/* SPDX-License-Identifier: MIT */
/* record/training/autograd_nodes.c - see autograd_nodes.h.
 *
 * A thread's changes are a ring of (number, module), numbers never decreasing. The forward thread
 * alone writes it; backward's threads read it while the forward thread waits for them, mostly.
 * Where they do not wait, a reader may see an entry half overwritten and name a wrong module, no
 * more.
 *
 * Threads have torch's numbers, which the nodes carry. Short-lived ones (DataParallel makes new
 * ones each forward) take over the table that was used least recently. */
#include "record/training/autograd_nodes.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/region.h"
#include "record/loader/library.h"

enum { N_TABLES = 16, N_CHANGES = 1 << 15 };

struct torch_node { /* torch::autograd::Node, as far as we need it; the same from 1.13 to 2.11 */
    void *vtable;
    void *weak_self[2];
    uint64_t sequence_nr;
    uint64_t topological_nr;
    bool has_parent;
    uint64_t thread_id;
};

struct module_change {
    _Atomic uint64_t sequence_nr;
    _Atomic uint32_t module;
};

struct change_table {
    _Atomic uint64_t thread; /* torch's number, from 1; 0: free */
    _Atomic uint64_t n;      /* changes so far; the last N_CHANGES are kept */
    _Atomic uint64_t found;  /* where a node's was found last; a guess */
    uint64_t used;           /* when it was taken or used last */
    struct module_change *changes;
    struct tmk_region memory;
};

static struct {
    uint64_t (*peek)(void);      /* the number that the calling thread's next node will have */
    uint64_t (*thread_id)(void); /* torch's number of the calling thread */
    int state;                   /* 0: not looked for; 1: there; -1: not */
    uint64_t clock;
    struct change_table tables[N_TABLES];
} autograd;

static __thread struct change_table *own_table __attribute__((tls_model("initial-exec")));
static __thread uint64_t my_thread __attribute__((tls_model("initial-exec")));

bool tmk_autograd_nodes_ready(void)
{
    if (autograd.state == 0) {
        static const char cpu[] = "libtorch_cpu.so";
        *(void **)&autograd.peek = tmk_library_symbol(cpu, "_ZN2at15sequence_number4peekEv");
        *(void **)&autograd.thread_id =
            tmk_library_symbol(cpu, "_ZN2at14RecordFunction15currentThreadIdEv");
        autograd.state = autograd.peek && autograd.thread_id ? 1 : -1;
    }
    return autograd.state > 0;
}

void tmk_autograd_nodes_reset(void)
{
    for (int i = 0; i < N_TABLES; i++) {
        atomic_store(&autograd.tables[i].thread, 0);
        atomic_store(&autograd.tables[i].n, 0);
    }
}

/* With the interpreter's lock: forward runs under it. */
static struct change_table *take_change_table(void)
{
    struct change_table *t = &autograd.tables[0];
    for (int i = 1; i < N_TABLES && atomic_load(&t->thread); i++)
        if (!atomic_load(&autograd.tables[i].thread) || autograd.tables[i].used < t->used)
            t = &autograd.tables[i];
    if (!t->changes) {
        if (tmk_region_init(&t->memory, N_CHANGES * sizeof *t->changes) < 0)
            return NULL;
        t->changes = t->memory.base;
    }
    atomic_store(&t->n, 0);
    atomic_store(&t->thread, my_thread);
    return t;
}

void tmk_autograd_nodes_note(uint32_t module)
{
    if (__builtin_expect(!my_thread, 0))
        my_thread = autograd.thread_id();
    if (__builtin_expect(!own_table || atomic_load_explicit(&own_table->thread,
                                                            memory_order_relaxed) != my_thread,
                         0)) {
        own_table = take_change_table();
        if (!own_table)
            return;
    }
    uint64_t n = atomic_load_explicit(&own_table->n, memory_order_relaxed);
    uint64_t sequence_nr = autograd.peek();
    own_table->used = ++autograd.clock;
    struct module_change *last = &own_table->changes[(n - 1) % N_CHANGES];
    if (n > 0 && atomic_load_explicit(&last->sequence_nr, memory_order_relaxed) == sequence_nr) {
        atomic_store_explicit(&last->module, module, memory_order_relaxed); /* it made no node */
        return;
    }
    struct module_change *c = &own_table->changes[n % N_CHANGES];
    atomic_store_explicit(&c->sequence_nr, sequence_nr, memory_order_relaxed);
    atomic_store_explicit(&c->module, module, memory_order_relaxed);
    atomic_store_explicit(&own_table->n, n + 1, memory_order_release);
}

/* Changes from low on to before high: those before are not behind the number, those after are. */
struct change_range {
    uint64_t low, high;
};

static inline bool is_change_behind(const struct change_table *t, uint64_t i, uint64_t sequence_nr)
{
    return atomic_load_explicit(&t->changes[i % N_CHANGES].sequence_nr, memory_order_relaxed) >
           sequence_nr;
}

/* Only what is near `place`, if it is there. */
static bool narrow_range(const struct change_table *t, struct change_range *r, uint64_t place,
                         uint64_t sequence_nr)
{
    enum { NEAR = 8 };
    struct change_range near = {place > r->low + NEAR ? place - NEAR : r->low,
                                place + NEAR < r->high ? place + NEAR : r->high};
    if (place < r->low || place > r->high ||
        (near.low > r->low && is_change_behind(t, near.low - 1, sequence_nr)) ||
        (near.high < r->high && !is_change_behind(t, near.high, sequence_nr)))
        return false;
    *r = near;
    return true;
}

/* The last change that is not behind the number. Backward begins with the last node and goes back
 * through them: so it is near the end, or near the one found before. Looking through the whole
 * table goes through a page of memory with each step. */
static uint32_t find_change(struct change_table *t, uint64_t sequence_nr)
{
    uint64_t end = atomic_load_explicit(&t->n, memory_order_acquire);
    struct change_range r = {end > N_CHANGES ? end - N_CHANGES : 0, end};
    uint64_t found_before = atomic_load_explicit(&t->found, memory_order_relaxed);
    if (!narrow_range(t, &r, found_before, sequence_nr))
        narrow_range(t, &r, end, sequence_nr);
    while (r.low < r.high) {
        uint64_t middle = r.low + (r.high - r.low) / 2;
        if (is_change_behind(t, middle, sequence_nr))
            r.high = middle;
        else
            r.low = middle + 1;
    }
    atomic_store_explicit(&t->found, r.low, memory_order_relaxed);
    if (r.low == 0 || r.low + N_CHANGES == end)
        return 0;
    return atomic_load_explicit(&t->changes[(r.low - 1) % N_CHANGES].module, memory_order_relaxed);
}

uint32_t tmk_autograd_nodes_module(const void *node, bool *ret_keep)
{
    const struct torch_node *of_torch = node;
    *ret_keep = of_torch->sequence_nr == UINT64_MAX; /* AccumulateGrad: before all others */
    if (*ret_keep)
        return 0;
    for (int i = 0; i < N_TABLES; i++)
        if (atomic_load_explicit(&autograd.tables[i].thread, memory_order_acquire) ==
            of_torch->thread_id)
            return find_change(&autograd.tables[i], of_torch->sequence_nr);
    return 0;
}
