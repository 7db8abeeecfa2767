/* SPDX-License-Identifier: MIT */
/* interop/torch/spool.h - records of one size, put one after the other into a file without a name,
 * then read from the first on, as often as is wanted. Memory is one buffer each for writing and
 * reading.
 */
#ifndef TMK_INTEROP_TORCH_SPOOL_H
#define TMK_INTEROP_TORCH_SPOOL_H

#include <stdint.h>

#include "base/error.h"

struct tmk_spool;

/* The file is made in `folder`. 0, TMK_EIO or TMK_ENOMEM. close takes NULL, returns NULL. */
int tmk_spool_open(const char *folder, uint32_t record_bytes, struct tmk_spool **ret_spool,
                   struct tmk_error *err);
struct tmk_spool *tmk_spool_close(struct tmk_spool *s);

/* Returns 0 or TMK_EIO. */
int tmk_spool_put(struct tmk_spool *s, const void *record, struct tmk_error *err);

/* Begin at the first record, after all puts. */
int tmk_spool_rewind(struct tmk_spool *s, struct tmk_error *err);
/* The next record but `ahead` (0 or 1), which is not taken: 1 and a borrowed *ret, good until the
 * next peek or take; 0: there is none; TMK_EIO. */
int tmk_spool_peek(struct tmk_spool *s, unsigned ahead, const void **ret, struct tmk_error *err);
void tmk_spool_take(struct tmk_spool *s);

#endif
