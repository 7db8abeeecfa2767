/* SPDX-License-Identifier: MIT */
/* interop/pickle/work_limit.h - a limit on the work that a foreign file may cause: a number of
 * steps for each byte read so far. The file's size is no measure: the file may have a hole, or
 * padding that nobody reads.
 *
 * A pickle refers back to a value in two bytes. A file of a few kilobytes can therefore stand for
 * gigabytes of values, or for one value that is visited a billion times. Readers count a step for
 * every value that they visit and for every few bytes that they keep. A file in which each value
 * takes bytes of its own stays far below the limit; docs/limits.md has the measurements. */
#ifndef TMK_INTEROP_PICKLE_WORK_LIMIT_H
#define TMK_INTEROP_PICKLE_WORK_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct tmk_work_limit {
    uint64_t most, used; /* steps */
    uint64_t steps_per_byte, bytes;
    bool is_off;
};

/* Start with nothing read. With `is_off` steps are counted, but never too many. */
void tmk_work_limit_init(struct tmk_work_limit *l, uint64_t steps_per_byte, bool is_off);

/* Say that `bytes` have been read in all: the limit follows. */
void tmk_work_limit_pay(struct tmk_work_limit *l, uint64_t bytes);

/* Count `n` steps. Returns false when that is more than the bytes read allow. */
static inline bool tmk_work_take(struct tmk_work_limit *l, uint64_t n)
{
    l->used = n < UINT64_MAX - l->used ? l->used + n : UINT64_MAX;
    return l->used <= l->most;
}

/* Report in *err that the limit is exceeded. Returns TMK_EFULL. */
int tmk_work_fail(const struct tmk_work_limit *l, struct tmk_error *err);

#endif
