/* SPDX-License-Identifier: MIT */
/* passes/leak/cohorts.h - of the blocks that a site made in a step, how many are alive how many
 * steps later.
 *
 * A look is the end of a step. All blocks that were made between two looks and lived through the
 * same ones are one cohort:
 *
 *     looks     0   1   2   3   4   5   6
 *     made in 1     ├───────┤                begin 1, end 3: dead at look 3
 *     made in 3             ├───────────     begin 3, end 7 of 7: alive at the end
 *
 * A block that lives through no look is in none, and most are not: what a step makes and frees
 * again is never seen here. A site that drops its blocks a step later has a cohort for each step,
 * so a list of cohorts is as small as a curve; merging keeps it so for sites of random lifetimes.
 */
#ifndef TMK_PASSES_LEAK_COHORTS_H
#define TMK_PASSES_LEAK_COHORTS_H

#include <stdbool.h>
#include <stdint.h>

enum { TMK_MAX_LOOKS = 512 };

struct tmk_cohort {
    uint16_t begin, end; /* alive at the looks begin .. end - 1 */
    uint32_t n_blocks;
    uint64_t bytes;
};

struct tmk_cohorts {
    struct tmk_cohort *items;
    uint64_t n, room;
    uint64_t n_merged; /* what was left when they were merged last */
};

void tmk_cohorts_fini(struct tmk_cohorts *c);
/* Add a block. Blocks that die later are added later. Returns 0 or TMK_ENOMEM. */
int tmk_cohorts_add(struct tmk_cohorts *c, uint32_t begin, uint32_t end, uint64_t bytes);
/* Put equal cohorts together; they are in order of begin and end then. */
void tmk_cohorts_merge(struct tmk_cohorts *c);
/* Some looks are given up: number[i] is how many looks before look i were kept. */
void tmk_cohorts_renumber(struct tmk_cohorts *c, const uint16_t *number);

/* Add what is alive at each of `n` looks. */
void tmk_cohorts_levels(const struct tmk_cohorts *c, uint32_t n, uint64_t *bytes, uint64_t *blocks);

/* Find the age, in looks, that 97 of 100 bytes that died by look `at` had not outlived; 0: none
 * died. */
uint32_t tmk_cohorts_usual_age(const struct tmk_cohorts *c, uint32_t at);

/* Add, by the look they were made before, what is alive at look `at` and older than `usual`.
 * `blocks` may be NULL. */
void tmk_cohorts_kept(const struct tmk_cohorts *c, uint32_t at, uint32_t usual, uint64_t *bytes,
                      uint64_t *blocks);

/* One block that is made anew and larger each time. */
struct tmk_larger {
    uint32_t n;           /* times that it was made */
    uint32_t first, last; /* looks before which it was made first and last */
    uint64_t first_bytes, last_bytes;
};

/* Returns whether the site has such a block up to look `at`: never more than two are alive, nine of
 * ten are larger than the one before, one of fifty at most is smaller, and the last is twice as
 * large as the first. Cohorts must be merged. */
bool tmk_cohorts_larger(const struct tmk_cohorts *c, uint32_t at, struct tmk_larger *ret);

#endif
