/* SPDX-License-Identifier: MIT */
/* passes/leak/survival.h - tells whether what survives of a site's cohorts is a leak. leaks.h has
 * the rule. */
#ifndef TMK_PASSES_LEAK_SURVIVAL_H
#define TMK_PASSES_LEAK_SURVIVAL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TMK_LEAST_COHORTS = 4,       /* that must be alive: fewer are an accident of a few steps */
    TMK_LEAST_COHORTS_NAMED = 3, /* that are worth a word */
    TMK_LEAST_COHORT_SPAN = 8,   /* looks from the first of them to the last moment */
};

/* What is alive at a moment and older than usual, by the look it was made before. */
struct tmk_survivors {
    uint32_t at;              /* number of the look */
    uint32_t usual_age;       /* the largest of the groups that were put together here */
    uint32_t n_earlier;       /* cohorts that were alive and old at three fifths of that time */
    uint32_t n_earlier_kept;  /* of them that are kept, at least by half */
    uint64_t *bytes, *blocks; /* of looks 0 .. at */
    const uint64_t *n_before; /* steps that had ended at each look */
    bool has_steps;           /* else looks are parts of time, and sizes of parts mean little */
};

enum tmk_survival_kind {
    TMK_SURVIVAL_NONE,
    TMK_SURVIVAL_LEAK,    /* older and older cohorts are alive, and there are more and more */
    TMK_SURVIVAL_FEW,     /* likewise, but only three of them, or over less than eight looks */
    TMK_SURVIVAL_SLOWING, /* likewise, but they come less often or get smaller: it may be a cache */
};

enum tmk_pace { TMK_PACE_EVEN, TMK_PACE_FASTER };

struct tmk_survival {
    enum tmk_survival_kind kind;
    enum tmk_pace pace;
    uint32_t n;           /* cohorts that are kept; 0: the rest is 0 */
    uint32_t first, last; /* looks before which they were made */
    uint32_t from;        /* the rate is that of what was made after this look, up to `last` */
    uint32_t every;       /* looks from one to the next, if always as many; else 0 */
    uint64_t bytes, blocks;
    double per_step, blocks_per_step; /* today's */
    double confidence;
};

/* Judge; `s` may be changed: what was made before the first look is taken out when it is not like
 * the rest. */
void tmk_survival_judge(struct tmk_survivors *s, struct tmk_survival *ret);

/* The last of `n` looks before most goes at once: the last at which there was half of what there
 * ever was. */
uint32_t tmk_last_moment(const uint64_t *levels, uint32_t n);

/* What rises and falls back. */
struct tmk_bursts {
    uint32_t n;     /* times that it fell back by half, after three rises or more */
    uint64_t bytes; /* the largest of them */
};
struct tmk_bursts tmk_bursts_of(const uint64_t *levels, uint32_t n);

/* The floor of a curve at a look is the least from there on. */
struct tmk_floor {
    uint32_t n_rises;
    uint32_t last;  /* the look by which it had risen by 95 % of that */
    uint64_t bytes; /* by which it rose in all */
};
struct tmk_floor tmk_floor_of(const uint64_t *levels, uint32_t n);

#endif
