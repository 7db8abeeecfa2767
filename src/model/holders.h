/* SPDX-License-Identifier: MIT */
/* model/holders.h - who asked the driver for a segment: the library, and whose that is.
 *
 * The innermost native frame that is neither the driver, CUDA's runtime nor a mere go-between
 * (ctypes, libffi, Python itself) names the library; a table says whose it is: torch, nccl, cublas,
 * jax and so on, else the package that it is installed with. Where only go-betweens are found, the
 * package of the innermost Python frame is the owner. What is no package's is the user's.
 * Go-betweens alone say nothing, unless they were followed down to the program itself. */
#ifndef TMK_MODEL_HOLDERS_H
#define TMK_MODEL_HOLDERS_H

#include "model/run.h"

enum { TMK_HOLDER_BYTES = 64 };

struct tmk_holder {
    char owner[TMK_HOLDER_BYTES];   /* "torch", "user"; "" when nothing is known of the stack */
    char library[TMK_HOLDER_BYTES]; /* file name; "" when not known */
};

struct tmk_holders; /* of a process, each stack looked at once */

int tmk_holders_open(const struct tmk_process *p, struct tmk_holders **ret_holders);
struct tmk_holders *tmk_holders_close(struct tmk_holders *h); /* takes NULL, returns NULL */
/* Borrowed until close; never NULL: without memory it is as if nothing was known. */
const struct tmk_holder *tmk_holders_get(struct tmk_holders *h, uint32_t stack);
/* That happened. */
bool tmk_holders_failed(const struct tmk_holders *h);

#endif
