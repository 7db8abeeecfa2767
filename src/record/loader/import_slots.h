/* SPDX-License-Identifier: MIT */
/* record/loader/import_slots.h - put our hooks into the import slots of loaded modules, and take
 * them out.
 *
 * A call from one module to another's function goes through a slot that the loader has filled with
 * that function's address. Preloaded, our definitions are found first and the slots are ours from
 * the start; loaded later, we write them. Modules that are loaded after us find our definitions by
 * themselves, since we are loaded into the global scope. Taking out writes back what was there, or,
 * where the loader had put us, the real function. */
#ifndef TMK_RECORD_IMPORT_SLOTS_H
#define TMK_RECORD_IMPORT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_patch_count {
    uint32_t n_patched; /* slots that were changed */
    uint32_t n_failed;  /* slots that could not be written */
};

/* All may be called at any time and again; one call at a time. */
struct tmk_patch_count tmk_patch_in(void);
struct tmk_patch_count tmk_patch_out(void);
/* Lead calls of prctl() and syscall() through our stubs (seal.h), in modules that were loaded
 * before us. They stay: the stubs jump on. */
void tmk_patch_calls(void);
/* Those of libc10_cuda's calls of the runtime (runtime_calls.h), which tmk_patch_in() leaves alone:
 * true when both are in. */
bool tmk_patch_runtime(void);
/* That of autograd's nodes, which is in of itself when we were preloaded. */
void tmk_patch_nodes(bool in);
/* One word of a module's data, which the loader may have made read-only. Any thread. */
bool tmk_patch_word(uintptr_t *at, uintptr_t value, bool stays_open);
/* The hooks that record, in or out; stubs stay, so that nothing is missed but blocks. For
 * measurements: from the second time on it is a store a slot, of the modules that were there the
 * first time, whose pages stay writable. */
struct tmk_patch_count tmk_patch_switch(bool in);

#endif
