/* SPDX-License-Identifier: MIT */
/* interop/out/stack_sums.h - bytes by stack: alive at a moment, allocated in all, alive at the
 * end. It takes one sweep, and memory of the size of the live set and of the number of stacks. */
#ifndef TMK_INTEROP_OUT_STACK_SUMS_H
#define TMK_INTEROP_OUT_STACK_SUMS_H

#include "interop/out/export.h"

struct tmk_stack_sum {
    uint64_t bytes[TMK_N_EXPORT_WHATS];
    uint64_t n_blocks[TMK_N_EXPORT_WHATS];
};

struct tmk_stack_sums {
    struct tmk_stack_sum *stacks; /* by id; [0]: allocations without a stack */
    uint32_t n;
    struct tmk_stack_sum total;
    bool is_found;  /* the moment came */
    uint64_t at_ns; /* run time */
};

/* Sum the blocks of x->p on x->device. Returns 0 or an error. fini takes a zeroed one. */
int tmk_stack_sums_make(const struct tmk_export *x, struct tmk_stack_sums *ret,
                        struct tmk_error *err);
/* Check that there is what x->what asks for. Returns 0 or TMK_ENOENT. */
int tmk_stack_sums_check(const struct tmk_export *x, const struct tmk_stack_sums *s,
                         struct tmk_error *err);
void tmk_stack_sums_fini(struct tmk_stack_sums *s);

#endif
