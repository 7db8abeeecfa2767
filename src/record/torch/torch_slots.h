/* SPDX-License-Identifier: MIT */
/* record/torch/torch_slots.h - put our hooks into the import slots of torch, and take them out.
 *
 * Preloaded, our definitions are found first and the slots are ours from the start; loaded later,
 * we write them (loader/import_slots.h). Modules that are loaded after us find our definitions by
 * themselves, since we are loaded into the global scope. Taking a hook out writes back what was
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

/* All may be called at any time and again, by one thread at a time: by the one whose turn it is. */
struct tmk_slot_count tmk_torch_slots_put_in(void);
struct tmk_slot_count tmk_torch_slots_take_out(void);
/* Hook libc10_cuda's calls of the runtime (runtime_calls.h), which put_in() leaves alone: true when
 * both hooks are in. */
bool tmk_torch_slots_put_in_runtime(void);
/* Put the hook of autograd's nodes in, or take it out. It takes a turn itself. Preloading puts it
 * in already. */
void tmk_torch_slots_switch_nodes(bool in);
/* Put the hooks that record in or take them out; stubs stay, so that nothing is missed but blocks.
 * For measurements: from the second time on it is a store a slot, of the modules that were there
 * the first time, whose pages stay writable. */
struct tmk_slot_count tmk_torch_slots_switch(bool in);

/* Hooks are put in and taken out by one thread at a time; false: it is another's turn. */
bool tmk_torch_slots_take_turn(void);
void tmk_torch_slots_end_turn(void);

/* Which of torch's calls are seen now; a page of its own is not worth it, no block reads it. */
struct tmk_torch_slots {
    _Atomic bool are_out;          /* torch's blocks are not heard of */
    _Atomic uint64_t n_gaps;       /* times that this was said */
    _Atomic bool is_runtime_seen;  /* libc10_cuda's calls of the runtime are */
    _Atomic bool is_runtime_tried; /* to see */
};
extern struct tmk_torch_slots tmk_torch_slots;

static inline bool tmk_torch_slots_are_heard(void)
{
    return !atomic_load_explicit(&tmk_torch_slots.are_out, memory_order_relaxed);
}

/* For this module itself, and for tests: torch's blocks are heard of from now on, or are not; the
 * runtime's calls are seen, or are not, and may be tried again. */
void tmk_torch_slots_set_heard(bool is_heard);
void tmk_torch_slots_set_runtime_seen(bool is_seen);

#endif
