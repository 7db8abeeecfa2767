/* SPDX-License-Identifier: MIT */
/* record/native/native.h - the C and C++ frames of the calling thread, for `--native`.
 *
 *     uint32_t ids[TMK_NATIVE_MAX_FRAMES];
 *     uint32_t n = tmk_native_frames(lane, 0, ids, TMK_NATIVE_MAX_FRAMES);
 *
 * gives frame ids, innermost first, ready to be put into a stack below the Python frames. Addresses
 * only: names and lines are looked up afterwards, by our own processes (model/symbols.h).
 *
 * Safe in any hook: no lock, no allocation. The rule that leads from a frame to its caller and the
 * frame's id are kept by address, in one cache line each, so that a hot frame costs 12 to 30 ns.
 * Two things take longer, once: an address not seen before (microseconds), and the first walk of a
 * thread, which reads /proc/self/maps to know where its stack ends (a tenth of a millisecond).
 *
 * Rejected: _Unwind_Backtrace() (before glibc 2.35 it takes the loader's lock; it decodes every
 * frame every time, about 1 µs each), frame pointers (torch and libcuda have none). */
#ifndef TMK_RECORD_NATIVE_H
#define TMK_RECORD_NATIVE_H

#include "record/core/lane.h"
#include "record/loader/library.h"

enum { TMK_NATIVE_MAX_FRAMES = 128 };

/* Make the tables; from our library's constructor. `old_ways`: see tmk_mapped_files_open(). 0 or
 * TMK_ENOMEM. */
int tmk_native_open(bool old_ways);

/* Return addresses from the caller on, innermost first: at most max. The first is where this
 * function returns to; one that is below a signal's frame is where the signal came in. */
uint32_t tmk_native_walk(uintptr_t *pcs, uint32_t max);

/* The same as frame ids, without libtidemark's own frames and then `skip` more, each defined in the
 * trace on first use. Ends early at code of no known module, and at the first frame in `until` (may
 * be NULL). */
uint32_t tmk_native_frames(struct tmk_lane *lane, uint32_t skip, const struct tmk_code_range *until,
                           uint32_t *ids, uint32_t max);

#endif
