/* SPDX-License-Identifier: MIT */
/* interop/out/stack_sums.h - bytes by stack: alive at a moment, allocated in all, alive at the end.
 * One sweep, memory of the size of the live set and of the number of stacks. */
#ifndef TMK_INTEROP_OUT_STACK_SUMS_H
#define TMK_INTEROP_OUT_STACK_SUMS_H

#include "interop/out/export.h"

struct tmk_stack_sum {
    uint64_t bytes[TMK_N_EXPORT_WHATS];
    uint64_t n_blocks[TMK_N_EXPORT_WHATS];
};

struct tmk_stack_sums {
    struct tmk_stack_sum *stacks; /* by id; [0]: what came without a stack */
    uint32_t n;
    struct tmk_stack_sum total;
    bool is_found;  /* the moment came */
    uint64_t at_ns; /* run time */
};

/* Of x->p, on x->device. 0, or what went wrong. fini takes a zeroed one. */
int tmk_stack_sums_make(const struct tmk_export *x, struct tmk_stack_sums *ret,
                        struct tmk_error *err);
/* Is there what x->what asks for? 0, or TMK_ENOENT. */
int tmk_stack_sums_check(const struct tmk_export *x, const struct tmk_stack_sums *s,
                         struct tmk_error *err);
void tmk_stack_sums_fini(struct tmk_stack_sums *s);

#endif
