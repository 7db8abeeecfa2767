/* SPDX-License-Identifier: MIT */
/* interop/torch/spool.h - a file without a name that records of one size are appended to, then
 * read from the first on, as often as wanted. Memory is one buffer each for writing and reading. */
#ifndef TMK_INTEROP_TORCH_SPOOL_H
#define TMK_INTEROP_TORCH_SPOOL_H

#include <stdint.h>

#include "base/error.h"

struct tmk_spool;

/* Make the file in `folder`. Returns 0, TMK_EIO or TMK_ENOMEM. close takes NULL, returns NULL. */
int tmk_spool_open(const char *folder, uint32_t record_bytes, struct tmk_spool **ret_spool,
                   struct tmk_error *err);
struct tmk_spool *tmk_spool_close(struct tmk_spool *s);

/* Returns 0 or TMK_EIO. */
int tmk_spool_put(struct tmk_spool *s, const void *record, struct tmk_error *err);

/* Go to the first record, after all puts. */
int tmk_spool_rewind(struct tmk_spool *s, struct tmk_error *err);
/* Look at the record `ahead` (0 or 1) of the next one without taking it. 1: *ret is borrowed,
 * good until the next peek or take. 0: there is none. TMK_EIO. */
int tmk_spool_peek(struct tmk_spool *s, unsigned ahead, const void **ret, struct tmk_error *err);
void tmk_spool_take(struct tmk_spool *s);

#endif
