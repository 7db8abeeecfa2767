/* SPDX-License-Identifier: MIT */
/* record/torch/torch_slots.c - see torch_slots.h. */
#include "record/torch/torch_slots.h"

#include <string.h>
#include <unistd.h>

#include "record/core/fast_path_state.h"
#include "record/core/recorder.h"
#include "record/core/torch_state.h"
#include "record/loader/import_slots.h"
#include "record/loader/library.h"
#include "record/torch/torch_hook.h"

enum { MAX_ORIGINALS = 512 };

struct tmk_torch_slots tmk_torch_slots;

/* The values of the slots before we wrote them. */
static struct original_slot {
    uintptr_t *slot;
    uintptr_t value;
} original_slots[MAX_ORIGINALS];
static uint32_t n_original_slots;

/* Slots that tmk_torch_slots_switch() has written, and their hooks. It switches every few steps of
 * a training; walking all modules would take longer than the steps, and leave the caches full of
 * what it read. */
static struct {
    uintptr_t *slot;
    struct tmk_hook *hook;
} switched_slots[MAX_ORIGINALS];
static uint32_t n_switched;

struct slots_walk {
    bool in;
    bool stubs;    /* visit stubs too */
    bool frees;    /* visit only hooks of frees, or only the others */
    bool runtime;  /* visit only hooks with is_runtime, or only others; to take out, all */
    bool switches; /* keep the slots, and leave them writable */
    const struct tmk_hook *only;     /* visit this hook alone, if not NULL */
    uintptr_t *unfound[TMK_N_HOOKS]; /* a slot of each hook without a known function */
    uint32_t n_ours[TMK_N_HOOKS];    /* slots that lead to our hook now */
    struct tmk_slot_count count;
};

/* ---- turns ---- */

static _Atomic pid_t turn_holder; /* a child does not hold its parent's turn */

bool tmk_torch_slots_take_turn(void)
{
    pid_t self = getpid(), holder = atomic_load(&turn_holder);
    return holder != self && atomic_compare_exchange_strong(&turn_holder, &holder, self);
}

void tmk_torch_slots_end_turn(void)
{
    atomic_store(&turn_holder, 0);
}

/* ---- what is seen ---- */

void tmk_torch_slots_set_heard(bool is_heard)
{
    atomic_store(&tmk_torch_slots.are_out, !is_heard);
    atomic_fetch_add(&tmk_torch_slots.n_gaps, 1);
}

void tmk_torch_slots_set_runtime_seen(bool is_seen)
{
    atomic_store(&tmk_torch_slots.is_runtime_seen, is_seen);
    if (!is_seen)
        atomic_store(&tmk_torch_slots.is_runtime_tried, false);
}

/* ---- one slot ---- */

static uintptr_t original_of_slot(const uintptr_t *slot)
{
    for (uint32_t i = 0; i < n_original_slots; i++)
        if (original_slots[i].slot == slot)
            return original_slots[i].value;
    return 0;
}

static void keep_original(uintptr_t *slot, uintptr_t value)
{
    if (n_original_slots < MAX_ORIGINALS && original_of_slot(slot) == 0)
        original_slots[n_original_slots++] = (struct original_slot){slot, value};
}

/* The value that a slot is to have. */
static uintptr_t value_for_slot(const uintptr_t *slot, const struct tmk_hook *hook, bool in)
{
    uintptr_t before = in ? (uintptr_t)hook->ours : original_of_slot(slot);
    return before ? before : atomic_load_explicit(&hook->real, memory_order_acquire);
}

static void visit_hooked(struct slots_walk *w, const struct tmk_import_slot *place,
                         struct tmk_hook *hook)
{
    uintptr_t *slot = place->at;
    uintptr_t now = __atomic_load_n(slot, __ATOMIC_ACQUIRE), ours = (uintptr_t)hook->ours;
    uintptr_t real = atomic_load_explicit(&hook->real, memory_order_acquire);
    bool unbound =
        tmk_import_slot_is_unbound(place, now); /* bound lazily: it leads to the loader */
    if (!real && hook->is_caller && w->in && !unbound) {
        real = now;
        atomic_store_explicit(&hook->real, real, memory_order_release);
    }
    if (!real)
        w->unfound[hook - tmk_hooks] = slot;
    w->n_ours[hook - tmk_hooks] += now == ours;
    if (!real || (w->in ? now == ours : now != ours))
        return;
    if (w->in && now != real && !unbound) { /* another library already stands in front of torch */
        atomic_store(&hook->foreign, true);
        tmk_fast_path_close();
        atomic_store_explicit(&hook->real, now, memory_order_release);
    }
    if (w->in)
        keep_original(slot, now);
    if (!tmk_import_slot_write(place, value_for_slot(slot, hook, w->in), w->switches)) {
        w->count.n_failed++;
        return;
    }
    w->count.n_patched++;
    w->n_ours[hook - tmk_hooks] += w->in;
    if (w->switches && n_switched < MAX_ORIGINALS) {
        switched_slots[n_switched].slot = slot;
        switched_slots[n_switched++].hook = hook;
    }
}

/* ---- modules ---- */

static struct tmk_hook *hook_named(const char *name)
{
    if (strncmp(name, "_ZN", 3) != 0 && strncmp(name, "cuda", 4) != 0) /* most names are neither */
        return NULL;
    for (int i = 0; i < TMK_N_HOOKS; i++)
        if (strcmp(tmk_hooks[i].name, name) == 0)
            return &tmk_hooks[i];
    return NULL;
}

static bool is_hook_wanted(const struct slots_walk *w, const struct tmk_hook *hook,
                           const char *path)
{
    bool is_node = hook == &tmk_hooks[TMK_HOOK_NODE];
    if (hook->is_free != w->frees || (hook->is_stub && !w->stubs) || (w->only && hook != w->only) ||
        (is_node && w->in && tmk_recorder.settings.no_modules))
        return false;
    if (hook->is_caller && !tmk_library_is_named(path, hook->library))
        return false;
    return !w->in || hook->is_runtime == w->runtime;
}

static void visit_slot(const struct tmk_import_slot *slot, void *arg)
{
    struct slots_walk *w = arg;
    struct tmk_hook *hook = hook_named(slot->name);
    if (hook && is_hook_wanted(w, hook, slot->path))
        visit_hooked(w, slot, hook);
}

/* ---- all of them ---- */

/* Hooks of frees are put in first and taken out last: a free without its block is ignored, but a
 * block without its free would live for ever. */
static void visit_in_order(struct slots_walk *w)
{
    w->frees = w->in;
    tmk_import_slots_visit(visit_slot, w);
    w->frees = !w->in;
    tmk_import_slots_visit(visit_slot, w);
}

/* Real functions are searched for before and between the walks: under the loader's lock, searching
 * would wait for another of the loader's locks. */
static void visit_all(struct slots_walk *w)
{
    bool found = false;
    for (int i = 0; i < TMK_N_HOOKS; i++)
        tmk_hook_find_real(&tmk_hooks[i], NULL);
    visit_in_order(w);
    for (int i = 0; i < TMK_N_HOOKS; i++)
        found |= w->unfound[i] && tmk_hook_find_real(&tmk_hooks[i], w->unfound[i]);
    if (found)
        visit_in_order(w);
}

static struct tmk_slot_count patch_slots(struct slots_walk *w)
{
    if (!w->in) {
        tmk_torch_slots_set_heard(false);
        tmk_torch_slots_set_runtime_seen(false);
    }
    n_switched = 0;
    visit_all(w);
    if (w->in)
        tmk_torch_slots_set_heard(true);
    return w->count;
}

struct tmk_slot_count tmk_torch_slots_put_in(void)
{
    struct tmk_slot_count count = patch_slots(&(struct slots_walk){.in = true, .stubs = true});
    if (count.n_patched > 0) { /* torch was there before us */
        tmk_torch_expect_streams();
        tmk_torch_expect_listeners();
    }
    return count;
}

bool tmk_torch_slots_put_in_runtime(void)
{
    struct slots_walk w = {.in = true, .runtime = true};
    n_switched = 0;
    visit_all(&w);
    if (w.count.n_failed || !w.n_ours[TMK_HOOK_MALLOC] || !w.n_ours[TMK_HOOK_FREE])
        return false;
    tmk_torch_slots_set_runtime_seen(true);
    return true;
}

struct tmk_slot_count tmk_torch_slots_take_out(void)
{
    struct tmk_slot_count count = patch_slots(&(struct slots_walk){.stubs = true});
    n_original_slots = 0;
    return count;
}

/* The hook is out, if at all, because modules were not wanted. */
void tmk_torch_slots_switch_nodes(bool in)
{
    static bool is_out;
    struct slots_walk w = {.in = in, .only = &tmk_hooks[TMK_HOOK_NODE]};
    if (is_out == !in || !tmk_torch_slots_take_turn())
        return;
    n_switched = 0;
    visit_all(&w);
    is_out = !in;
    tmk_torch_slots_end_turn();
}

void tmk_torch_slots_watch_modes(void)
{
    struct slots_walk w = {.in = true, .only = &tmk_hooks[TMK_HOOK_AUTOGRAD_STATE]};
    if (atomic_load(&w.only->real) || !tmk_torch_slots_take_turn())
        return;
    n_switched = 0;
    visit_all(&w);
    tmk_torch_slots_end_turn();
}

/* ---- back and forth ---- */

/* Switch the slots from before. The runtime's hooks are put in only on request. */
static uint32_t switch_again(bool in, bool frees)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_switched; i++) {
        struct tmk_hook *hook = switched_slots[i].hook;
        uintptr_t value = value_for_slot(switched_slots[i].slot, hook, in);
        if (hook->is_free != frees || (in && hook->is_runtime) || *switched_slots[i].slot == value)
            continue;
        __atomic_store_n(switched_slots[i].slot, value, __ATOMIC_RELEASE);
        n++;
    }
    return n;
}

struct tmk_slot_count tmk_torch_slots_switch(bool in)
{
    if (n_switched == 0)
        return patch_slots(&(struct slots_walk){.in = in, .switches = true});
    tmk_torch_slots_set_heard(in);
    if (!in)
        tmk_torch_slots_set_runtime_seen(false);
    uint32_t n = switch_again(in, in); /* in the order of visit_in_order() */
    return (struct tmk_slot_count){.n_patched = n + switch_again(in, !in)};
}
