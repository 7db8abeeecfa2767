/* SPDX-License-Identifier: MIT */
/* passes/leak/leaks.h - the leak pass: which lines of code keep more memory after every step.
 *
 * Blocks are grouped by stack and context (module, stage), groups by allocation site, which is a
 * line of the user's code. For each line the pass knows how much was alive at the end of every
 * step. The floor at a step is the least that was alive from there to the end, so the peaks of a
 * sawtooth do not count. A line leaks when its floor rises
 *
 *   - still: the time since it last rose is at most twice the longest pause before,
 *   - evenly: each third of the time since it began has at least a tenth of the growth,
 *   - for long enough: four times or more, over eight steps or more,
 *   - by more than twice the most that it ever fell back.
 *
 * So a full cache is no leak. Neither are warm-up, gradient accumulation, or results that an
 * evaluation or a generation gathers and then drops. trend.c judges a series, leaks.c (judge_line)
 * a line.
 *
 * Some lines are named but not judged: those that rose only three times (without steps: seven);
 * those that rise slower and slower, as a cache that fills does, or with a confidence below a
 * half (see trend.c); and those let go after the last step while the parameters stayed, as a
 * gathered result is. Programs free everything within moments when they end, so this must happen
 * a tenth of a second or more before the first parameter goes. A line is also taken for a
 * gathered result if after the last step one block is made that is as large as all of it: its
 * torch.cat().
 *
 * Bytes per step are the growth between two rises, divided by the steps between them: the median of
 * many such pairs (trend.c). Confidence is Laplace's rule of succession, (k + 1) / (n + 2): the
 * line's life is cut into n parts as long as its mean pause, and it rose in k of them, so this is
 * the probability that it rises in the next. It is higher the longer and the more regularly the
 * line grows.
 *
 * Lines that one autograd graph keeps alive are one leak: they rise in the same steps and were made
 * in forward (or handed to it). The block that was made last keeps the graph alive. So the owner is
 * the line that led to it, in the innermost function outside of modules that called all of these
 * lines.
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
    TMK_LEAK_TOO_SHORT, /* not enough steps to tell */
};

struct tmk_leakage; /* the pass, then its result */

/* The visitor needs to see the events FREE, OOM, SEGMENT and SEGMENT_END. Give it to a sweep,
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

/* Growth that is named but not judged, most bytes first. */
uint64_t tmk_leakage_n_doubts(const struct tmk_leakage *l);
const struct tmk_leak *tmk_leakage_doubt(const struct tmk_leakage *l, uint64_t i);

#endif
