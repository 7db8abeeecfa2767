/* SPDX-License-Identifier: MIT */
/* interop/out/fates.h - the final category of each allocation, known before a sweep meets it.
 *
 * A block's category is settled when it is freed. Sums by category over time need it at the
 * allocation: so a first sweep notes one byte an allocation in a temporary file, and the second
 * sweep reads along. Memory stays bounded however many allocations there are. */
#ifndef TMK_INTEROP_OUT_FATES_H
#define TMK_INTEROP_OUT_FATES_H

#include <stdint.h>
#include <stdio.h>

#include "model/run.h"

struct tmk_fates {
    FILE *file;
};

/* Make the first sweep; `progress` looks on. Returns 0 or an error. fini takes a zeroed one. */
int tmk_fates_make(struct tmk_fates *f, struct tmk_process *p, const struct tmk_visitor *progress,
                   struct tmk_error *err);
void tmk_fates_fini(struct tmk_fates *f);

/* Call it in the second sweep at each ALLOC event with a block, in order, and at no other event. */
uint8_t tmk_fates_next(struct tmk_fates *f);

#endif
