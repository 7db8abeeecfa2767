/* SPDX-License-Identifier: MIT */
/* interop/pickle/work_limit.c - see work_limit.h. */
#include "interop/pickle/work_limit.h"

#include "kit/amount.h"

/* For files that are too small to raise the limit: about a millisecond. */
enum { LEAST_STEPS = 1 << 18 };

void tmk_work_limit_init(struct tmk_work_limit *l, uint64_t steps_per_byte, bool is_off)
{
    *l = (struct tmk_work_limit){.steps_per_byte = steps_per_byte, .is_off = is_off};
    tmk_work_limit_pay(l, 0);
}

void tmk_work_limit_pay(struct tmk_work_limit *l, uint64_t bytes)
{
    uint64_t steps;
    bool is_huge = __builtin_mul_overflow(bytes, l->steps_per_byte, &steps) ||
                   __builtin_add_overflow(steps, LEAST_STEPS, &steps);
    l->most = l->is_off || is_huge ? UINT64_MAX : steps;
    l->bytes = bytes;
}

int tmk_work_fail(const struct tmk_work_limit *l, struct tmk_error *err)
{
    char steps[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES];
    return tmk_fail(err, TMK_EFULL,
                    "reading it takes more than %s steps, the limit for the %s read so far "
                    "(docs/limits.md). --no-limits reads it, whatever memory and time that takes",
                    tmk_count_text(l->most, steps), tmk_size_text(l->bytes, size));
}
