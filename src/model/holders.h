/* SPDX-License-Identifier: MIT */
/* model/holders.h - who asked the driver for a segment: the library, and whose that is.
 *
 * The innermost native frame that is neither the driver, CUDA's runtime nor a mere go-between
 * (ctypes, libffi, Python itself) names the library; a table says whose it is: torch, nccl, cublas,
 * jax and so on. Where only go-betweens are found, the package of the innermost Python frame is
 * the owner. What is nobody's known is the user's. */
#ifndef TMK_MODEL_HOLDERS_H
#define TMK_MODEL_HOLDERS_H

#include "model/run.h"

enum { TMK_HOLDER_BYTES = 64 };

struct tmk_holder {
    char owner[TMK_HOLDER_BYTES];   /* "torch", "user"; "" when nothing is known of the stack */
    char library[TMK_HOLDER_BYTES]; /* file name; "" when not known */
};

void tmk_holder_of(const struct tmk_process *p, uint32_t stack, struct tmk_holder *ret);

#endif
