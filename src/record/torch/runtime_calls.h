/* SPDX-License-Identifier: MIT */
/* record/torch/runtime_calls.h - what torch's allocator gets from the CUDA runtime, where the
 * driver's calls are not seen.
 *
 * Loaded late, by `import tidemark`, we are not in front of the driver (driver.h), and torch may
 * give its cache back without a word: torch.cuda.empty_cache() reports no block. But it calls
 * cudaFree() through an import slot of libc10_cuda.so, and cudaMalloc() too. These two slots are
 * written when somebody first asks what is reserved now (tally.h); nobody else's: what other
 * libraries take is none of torch's.
 *
 * The invariant: what torch says to be reserved on a device can shrink unheard only by a cudaFree()
 * that is seen, if all of it is memory that cudaMalloc() gave through that slot and cudaFree() has
 * not taken. So the addresses are kept with their sizes, and what is reserved is known only while
 * both sums are the same. Expandable segments, pools with allocators of their own and what was
 * there before make them differ; then torch is asked. A libc10_cuda without these slots, linked
 * with a static runtime, is never seen. */
#ifndef TMK_RECORD_RUNTIME_CALLS_H
#define TMK_RECORD_RUNTIME_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The hooks. */
int tmk_runtime_calls_malloc(void **ret_address, size_t size_bytes);
int tmk_runtime_calls_free(void *address);

/* Put them in, once, unless the driver's calls are seen; not while torch's lock is held. True: what
 * torch has got before is not known; it should be told, each segment. */
bool tmk_runtime_calls_see(void);

/* All segments that torch has now, listed by itself after begin(), and each told to note(). False
 * in the end when torch has got or given back any meanwhile: then what was told may be gone, and it
 * has to be begun anew. */
uint64_t tmk_runtime_calls_begin_list(void);
void tmk_runtime_calls_note(uint16_t device, uint64_t address, uint64_t size_bytes);
bool tmk_runtime_calls_end_list(uint64_t begun);

/* In this process both calls are seen. */
bool tmk_runtime_calls_is_seen(void);
/* All that is reserved on this device is memory that was seen to come. */
bool tmk_runtime_calls_explains(uint16_t device, uint64_t reserved_bytes);
/* How many calls have begun that may change what torch has reserved. */
uint64_t tmk_runtime_calls_changes(void);

#endif
