/* SPDX-License-Identifier: MIT */
/* model/holders.h - find the library that asked the driver for a segment, and that library's owner.
 *
 * The innermost native frame that is neither the driver, CUDA's runtime nor a mere go-between
 * (ctypes, libffi, Python itself) names the library. A table gives its owner: torch, nccl, cublas,
 * jax and so on, else the package that it is installed with. If there are only go-betweens, the
 * package of the innermost Python frame is the owner. A library outside any package is the user's.
 * Go-betweens alone say nothing, unless the stack reaches down to the program itself. */
#ifndef TMK_MODEL_HOLDERS_H
#define TMK_MODEL_HOLDERS_H

#include "model/run.h"

enum { TMK_HOLDER_BYTES = 64 };

struct tmk_holder {
    char owner[TMK_HOLDER_BYTES];   /* "torch", "user"; "": the stack says nothing */
    char library[TMK_HOLDER_BYTES]; /* file name; "" when not known */
};

struct tmk_holders; /* of one process; each stack is looked at once */

int tmk_holders_open(const struct tmk_process *p, struct tmk_holders **ret_holders);
struct tmk_holders *tmk_holders_close(struct tmk_holders *h); /* takes NULL, returns NULL */
/* Find the holder for a stack. Borrowed until close; never NULL: without memory the holder is
 * unknown. */
const struct tmk_holder *tmk_holders_get(struct tmk_holders *h, uint32_t stack);
/* Whether there was no memory. */
bool tmk_holders_failed(const struct tmk_holders *h);

#endif
