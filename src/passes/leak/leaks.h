/* SPDX-License-Identifier: MIT */
/* passes/leak/leaks.h - the leak pass: which lines of code keep more memory after every step.
 *
 * Blocks are grouped by stack and context (module, stage), groups by allocation site, which is a
 * line of the user's code. Of each group the pass knows the cohorts (cohorts.h): of the bytes made
 * in a step, how many were alive how many steps later. They are looked at from the *last moment*:
 * the last step at whose end half of the most that the line ever had was alive. So it does not
 * matter whether a list lives as long as the program or as the function that it is local to.
 *
 * The *usual age* of a group is the one that 97 of 100 bytes which died by then had not outlived.
 * What is older than that and alive is *kept*. A line leaks when at its last moment
 *
 *   - cohorts of four steps or more are kept, the first of them made eight steps ago or earlier,
 *   - from ever later steps: the last of them was made no longer ago than twice the longest pause
 *     between two, so it is no cache that is full,
 *   - and half of those that were kept at three fifths of that time are kept still: others do not
 *     take their place, as in a buffer.
 *
 * Groups whose usual age is more than a third of the time are left out: that age is not yet known
 * to be usual, as of what a long epoch gathers and drops.
 *
 * The other pattern: one block of the line is made anew and larger each time, while what models
 * are given does not grow (leak_doubts.c).
 *
 * Some lines are named but not judged: enum tmk_leak_doubt.
 *
 * Bytes per step are what all kept cohorts but the first have, over the steps from the first to
 * the last of them. When they come more and more often, or get larger and larger, that is of the
 * last quarter: today's rate (survival.c). Confidence is Laplace's rule of succession,
 * (k + 1) / (n + 2): the line's life is cut into n parts as long as its mean pause, and k of them
 * kept something, so this is the probability that the next does.
 *
 * Lines that one autograd graph keeps alive are one leak: they are kept of the same steps and were
 * made in forward (or handed to it). The block that was made last keeps the graph alive. So the
 * owner is the line that led to it, in the innermost function outside of modules that called all of
 * these lines.
 *
 * Lines that keep less than the threshold each, and together no less, are leaks too.
 *
 * Without steps, time is cut into equal parts; "per step" is then per part, which means nothing
 * to a reader: use bytes_per_second. */
#ifndef TMK_PASSES_LEAK_LEAKS_H
#define TMK_PASSES_LEAK_LEAKS_H

#include "model/run.h"
#include "passes/leak/leak.h"
#include "trace/replay.h"

enum {
    TMK_LEAK_MIN_STEPS = 10,          /* finished steps that a verdict needs */
    TMK_LEAK_DEFAULT_BYTES = 1 << 20, /* growth over the run that is worth a word */
};

enum tmk_leak_verdict {
    TMK_LEAK_CLEAN,
    TMK_LEAK_FOUND,
    TMK_LEAK_TOO_SHORT, /* not enough steps to tell, and the later half of them added something */
};

struct tmk_leakage; /* the pass, then its result */

/* The visitor needs to see the events FREE, TAG, OOM, SEGMENT and SEGMENT_END. Give it to a sweep,
 * finish with the replay, then ask. What has grown by less than `threshold_bytes` over the run
 * is no leak. Returns 0 or TMK_ENOMEM. */
int tmk_leakage_open(const struct tmk_process *p, uint64_t threshold_bytes,
                     struct tmk_leakage **ret_leakage);
struct tmk_leakage *tmk_leakage_close(struct tmk_leakage *l); /* takes NULL, returns NULL */
struct tmk_visitor tmk_leakage_visitor(struct tmk_leakage *l);
int tmk_leakage_finish(struct tmk_leakage *l, const struct tmk_replay *rp, struct tmk_error *err);

enum tmk_leak_verdict tmk_leakage_verdict(const struct tmk_leakage *l);
/* Leaks come with most bytes per step first; borrowed until close. */
uint64_t tmk_leakage_n(const struct tmk_leakage *l);
const struct tmk_leak *tmk_leakage_get(const struct tmk_leakage *l, uint64_t i);
/* Finished steps that were looked at; 0: the run has no steps, so time was cut into parts. */
uint64_t tmk_leakage_n_steps(const struct tmk_leakage *l);
/* The number of lines that grow by less than the threshold. */
uint64_t tmk_leakage_n_small(const struct tmk_leakage *l);
/* Growth that falls back when Python collects garbage: reference cycles keep memory and free it
 * in bursts. It is no leak, but worth reporting. Findings are as for leaks; `bytes` is the
 * largest burst. */
uint64_t tmk_leakage_n_cycles(const struct tmk_leakage *l);
const struct tmk_leak *tmk_leakage_cycle(const struct tmk_leakage *l, uint64_t i);

/* The floor at a step is the least that is alive from there to the end, of all lines and devices.
 */
struct tmk_leak_floor {
    uint64_t bytes; /* by which it rose in all */
    uint32_t n_rises;
    int64_t last_step; /* by which it had risen by 95 % of that; TMK_NO_STEP */
    bool is_over;      /* that was before the last third of the run */
};
struct tmk_leak_floor tmk_leakage_floor(const struct tmk_leakage *l);
uint64_t tmk_leakage_threshold(const struct tmk_leakage *l);

/* Growth that is named but not judged, most bytes first. */
uint64_t tmk_leakage_n_doubts(const struct tmk_leakage *l);
const struct tmk_leak *tmk_leakage_doubt(const struct tmk_leakage *l, uint64_t i);

#endif
