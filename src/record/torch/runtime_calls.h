/* SPDX-License-Identifier: MIT */
/* record/torch/runtime_calls.h - what torch's allocator gets from the CUDA runtime, when the
 * driver's calls are not seen.
 *
 * Loaded late, by `import tidemark`, we are not in front of the driver (driver.h), and torch may
 * give its cache back without a report: torch.cuda.empty_cache() reports no block. But it calls
 * cudaFree(), and cudaMalloc(), through import slots of libc10_cuda.so. These two slots are written
 * when somebody first asks what is reserved now (tally.h). Slots of other libraries are left alone:
 * what those take is not torch's.
 *
 * The invariant: what torch says to be reserved on a device can shrink unheard only by a cudaFree()
 * that is seen, if all of it is memory that cudaMalloc() gave through that slot and cudaFree() has
 * not taken. So addresses are kept with their sizes, and what is reserved is known only while both
 * sums are equal. Expandable segments, pools with their own allocators, and memory from before make
 * them differ; then torch is asked. A libc10_cuda without these slots, linked with a static
 * runtime, is never seen. */
#ifndef TMK_RECORD_RUNTIME_CALLS_H
#define TMK_RECORD_RUNTIME_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The hooks of cudaMalloc() and cudaFree(). */
int tmk_runtime_calls_malloc(void **ret_address, size_t size_bytes);
int tmk_runtime_calls_free(void *address);

/* Put the hooks in, once, unless the driver's calls are seen; not while torch's lock is held. True:
 * it is not known what torch has got before, and each of its segments should be told. */
bool tmk_runtime_calls_see(void);

/* Tell the segments that torch has: begin(), note() for each one that torch lists, end(). end() is
 * false when torch has got or given back any meanwhile: then a segment that was told may be gone,
 * and telling starts over. */
uint64_t tmk_runtime_calls_begin_list(void);
void tmk_runtime_calls_note(uint16_t device, uint64_t address, uint64_t size_bytes);
bool tmk_runtime_calls_end_list(uint64_t begun);

/* True when both calls are seen in this process. */
bool tmk_runtime_calls_is_seen(void);
/* True when everything reserved on this device is memory that was seen to come. */
bool tmk_runtime_calls_explains(uint16_t device, uint64_t reserved_bytes);
/* How many calls have begun that may change what torch has reserved. */
uint64_t tmk_runtime_calls_changes(void);

#endif
