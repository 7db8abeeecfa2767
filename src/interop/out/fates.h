/* SPDX-License-Identifier: MIT */
/* interop/out/fates.h - what each allocation turns out to be for, known before it is met.
 *
 * A block's category is settled when it is freed. Whoever adds up by category while time goes by
 * needs it at the allocation: so a first sweep notes one byte an allocation in a temporary file,
 * and the second reads along. Memory stays bounded however many there are. */
#ifndef TMK_INTEROP_OUT_FATES_H
#define TMK_INTEROP_OUT_FATES_H

#include <stdint.h>
#include <stdio.h>

#include "model/run.h"

struct tmk_fates {
    FILE *file;
};

/* The first sweep; `progress` looks on. 0, or what went wrong. fini takes a zeroed one. */
int tmk_fates_make(struct tmk_fates *f, struct tmk_process *p, const struct tmk_visitor *progress,
                   struct tmk_error *err);
void tmk_fates_fini(struct tmk_fates *f);

/* To be called at each ALLOC event with a block of the second sweep, in order, and of no other. */
uint8_t tmk_fates_next(struct tmk_fates *f);

#endif
