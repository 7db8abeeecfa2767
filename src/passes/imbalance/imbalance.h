/* SPDX-License-Identifier: MIT */
/* passes/imbalance/imbalance.h - the ranks of a run side by side: the one verdict that summary,
 * report, explain and SQL print.
 *
 *     struct tmk_imbalance *b;
 *     rc = tmk_imbalance_open(run, &b, &err);
 *     tmk_imbalance_tell(b, sentence, arg);   // the verdict first, then its evidence
 *
 * It says which rank peaks, by how much and why; which will run out of memory first; which ranks
 * are missing or ended early; whose OOM came first, and which ranks only ended because of it.
 *
 * Rules. Where a rank has several processes (data loaders inherit RANK), the one with the largest
 * peak stands for it. Ranks are imbalanced when the largest peak is more than 1.25 times the median
 * peak, which is also the rule of the alert in docs/fleet.md. The reason is found by comparing that
 * rank's peak, block by block, with the peak of a typical rank: the one nearest the median. An OOM
 * counts when the rank finished no step after it. A rank only ended because of another's OOM when
 * it has none, was alive at that OOM, and finished at most one step more than the rank that had it.
 * A rank ended early when a signal ended it, or when another finished more than one step more.
 *
 * All processes, also those without a rank, are put into groups that are alike: the same end, an
 * OOM or none, and peaks within 5 %. Opening reads the facts of one process after the other and
 * lets go of each; only the two ranks that are compared are replayed. */
#ifndef TMK_PASSES_IMBALANCE_IMBALANCE_H
#define TMK_PASSES_IMBALANCE_IMBALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kit/arena.h"
#include "model/run.h"
#include "model/run_clock.h"
#include "passes/imbalance/rank_facts.h"

enum {
    TMK_IMBALANCE_PERCENT = 125, /* of the median: more is an imbalance */
    TMK_ALIKE_PERCENT = 105,     /* of a group's smallest peak: more is another group */
};
#define TMK_RANK_NONE UINT32_MAX

/* A process of the run. Rows are in the run's order. */
struct tmk_rank_row {
    struct tmk_rank_facts facts;
    bool is_main;       /* it stands for its rank */
    bool died_of_it;    /* it only ended because of the first OOM */
    bool ended_early;   /* and not because of that */
    bool is_under_half; /* its peak is less than half of the largest */
    uint32_t group;     /* number of its group */
};

struct tmk_rank_group {
    uint32_t first; /* its first row */
    uint32_t n;
    uint64_t least_bytes, most_bytes; /* peaks */
};

struct tmk_imbalance_part {
    const char *key; /* NULL: nothing larger than unknown */
    uint64_t more_bytes;
};

/* The difference between the rank with the largest peak and the typical one, at their peaks. */
struct tmk_imbalance_why {
    bool is_known; /* both traces still have the blocks of that moment */
    struct tmk_imbalance_part category, module, stage; /* the largest of each */
    double batch_factor; /* its activations and inputs are this many times as large; 0: not so */
};

struct tmk_imbalance {
    struct tmk_rank_row *rows;
    uint32_t n_rows;
    struct tmk_rank_group *groups; /* by their first row */
    uint32_t n_groups;
    uint32_t n_ranks;   /* with a process here */
    int64_t world_size; /* -1: not known */
    int64_t n_missing;  /* of the world; 0 where it is not known */
    bool is_judged;     /* two ranks or more have a peak: the next six are known */
    bool is_imbalanced;
    uint32_t highest, typical; /* rows */
    uint32_t n_under_half;     /* ranks with a peak of less than half of the largest */
    double median_bytes;
    struct tmk_imbalance_why why;
    uint32_t first_oom;   /* row; TMK_RANK_NONE: no rank ended with one */
    uint32_t next_oom;    /* row of the rank that will run out first; TMK_RANK_NONE: none is near */
    uint32_t first_ended; /* row of the rank that ended early before all others; TMK_RANK_NONE */
    struct tmk_clock_match clock;
    struct tmk_arena words;
};

/* Read, judge, and find the reason. Returns 0, TMK_ENOMEM, or what a replay returns. */
int tmk_imbalance_open(struct tmk_run *run, struct tmk_imbalance **ret_imbalance,
                       struct tmk_error *err);
/* The same without the reason, for which the two ranks have to be replayed: b->why is not known. */
int tmk_imbalance_open_brief(struct tmk_run *run, struct tmk_imbalance **ret_imbalance,
                             struct tmk_error *err);
struct tmk_imbalance *tmk_imbalance_close(struct tmk_imbalance *b);

/* Fill in all but the reason from the rows' facts. Returns 0 or TMK_ENOMEM. */
int tmk_imbalance_judge(struct tmk_imbalance *b);

/* Tell the verdict and its evidence, a sentence or two at a time. Nothing is told of a run without
 * ranks. Returns how many were told. */
unsigned tmk_imbalance_tell(const struct tmk_imbalance *b,
                            void (*sentence)(void *arg, const char *text), void *arg);

/* Write the run in one line into the caller's buffer of TMK_IMBALANCE_LINE_BYTES: the largest peak
 * and its limit, whose it is, and what else a reader of many jobs has to know:
 *
 *     peak 71.3 of 80.0 GiB on rank 5; 3 ranks used less than half of the peak: 0-2
 *
 * A limit that is not known is left out. Processes without ranks are named by their PIDs. Returns
 * the buffer. */
enum { TMK_IMBALANCE_LINE_BYTES = 600 };
const char *tmk_imbalance_line(const struct tmk_imbalance *b, char *buffer);

/* Write the ranks of the rows that `wanted` chooses, "0-2, 5", into the caller's buffer of
 * TMK_RANK_LIST_BYTES; what does not fit is "...". Returns it. */
enum { TMK_RANK_LIST_BYTES = 80 };
const char *tmk_rank_list_text(const struct tmk_imbalance *b,
                               bool (*wanted)(const struct tmk_rank_row *row, uint32_t arg),
                               uint32_t arg, char *buffer);
/* Choosers for that. */
bool tmk_rank_is_in_group(const struct tmk_rank_row *row, uint32_t group);
bool tmk_rank_died_of_it(const struct tmk_rank_row *row, uint32_t unused);
bool tmk_rank_ended_early(const struct tmk_rank_row *row, uint32_t unused);
bool tmk_rank_is_under_half(const struct tmk_rank_row *row, uint32_t unused);
/* The ranks of the world without a process here, likewise. */
const char *tmk_rank_missing_text(const struct tmk_imbalance *b, char *buffer);

#endif
