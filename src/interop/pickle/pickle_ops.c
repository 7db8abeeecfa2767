/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_ops.c - see pickle_ops.h. */
#include "interop/pickle/pickle_ops.h"

const struct tmk_pickle_instruction tmk_pickle_ops[256] = {
#define X(name, byte, argument, form) [byte] = {(argument), TMK_PICKLE_##form},
    TMK_PICKLE_OPS(X)
#undef X
};
