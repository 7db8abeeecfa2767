/* SPDX-License-Identifier: MIT */
/* record/torch/torch_slots.h - put our hooks into torch's import slots, and take them out.
 *
 * Preloaded, our definitions are found first, and the slots are ours from the start; loaded later,
 * we write them (loader/import_slots.h). Modules that are loaded after us find our definitions by
 * themselves, because we are loaded into the global scope. Taking a hook out writes back what was
 * there, or, where the loader had put us, the real function. */
#ifndef TMK_RECORD_TORCH_SLOTS_H
#define TMK_RECORD_TORCH_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tmk_slot_count {
    uint32_t n_patched; /* slots that were changed */
    uint32_t n_failed;  /* slots that could not be written */
};

/* Put all hooks in, or take them out. All of these may be called at any time and again, by the one
 * thread whose turn it is. */
struct tmk_slot_count tmk_torch_slots_put_in(void);
struct tmk_slot_count tmk_torch_slots_take_out(void);
/* Hook libc10_cuda's calls of the runtime (runtime_calls.h), which put_in() leaves alone. True when
 * both hooks are in. */
bool tmk_torch_slots_put_in_runtime(void);
/* Put the hook of autograd's nodes in, or take it out. Preloading puts it in already. Takes a turn
 * itself. */
void tmk_torch_slots_switch_nodes(bool in);
/* Put the hook of inference mode in, if put_in() has not: preloading does not, since the hook is in
 * one library's slots only. Takes a turn itself. */
void tmk_torch_slots_watch_modes(void);
/* Put the hooks that record in, or take them out; stubs stay, so that nothing but blocks is missed.
 * For measurements: from the second time on it is one store per slot, of the modules that were
 * there the first time, whose pages stay writable. */
struct tmk_slot_count tmk_torch_slots_switch(bool in);

/* One thread at a time puts hooks in or takes them out. False: it is another thread's turn. */
bool tmk_torch_slots_take_turn(void);
void tmk_torch_slots_end_turn(void);

/* The set of torch's calls that are seen now. No block reads it, so it needs no place among the hot
 * data. */
struct tmk_torch_slots {
    _Atomic bool are_out;          /* the hooks are out: torch's blocks are not heard of */
    _Atomic uint64_t n_gaps;       /* how often `are_out` was set */
    _Atomic bool is_runtime_seen;  /* libc10_cuda's calls of the runtime are seen */
    _Atomic bool is_runtime_tried; /* it was tried to see them */
};
extern struct tmk_torch_slots tmk_torch_slots;

static inline bool tmk_torch_slots_are_heard(void)
{
    return !atomic_load_explicit(&tmk_torch_slots.are_out, memory_order_relaxed);
}

/* Called by this module and by tests: set whether torch's blocks are heard of, and whether the
 * runtime's calls are seen. If these are not, that may be tried again. */
void tmk_torch_slots_set_heard(bool is_heard);
void tmk_torch_slots_set_runtime_seen(bool is_seen);

#endif
