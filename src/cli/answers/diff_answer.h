/* SPDX-License-Identifier: MIT */
/* cli/answers/diff_answer.h - what `diff` found between two runs, and who writes it. */
#ifndef TMK_CLI_ANSWERS_DIFF_ANSWER_H
#define TMK_CLI_ANSWERS_DIFF_ANSWER_H

#include <stdio.h>

#include "cli/answers/moment_answer.h"
#include "cli/front/command.h"
#include "cli/output/sheet.h"
#include "passes/diff/diff.h"
#include "passes/diff/diff_steps.h"
#include "passes/diff/gates.h"
#include "passes/group.h"

/* The same rank of both runs, or their only processes. */
struct tmk_diff_pair {
    struct tmk_moment_answer sides[2]; /* asked; swept only while it is compared */
    bool known[2];                     /* bytes at the moment, from the history */
    uint64_t bytes[2];
};

struct tmk_gate_verdict { /* on a gate */
    struct tmk_gate gate;
    bool passed;
    struct tmk_gate_measure measure; /* of the pair that decided */
    const struct tmk_process *of;    /* its process in B */
    char *note;                      /* where, or why it is not known; NULL: nothing to add */
};

struct tmk_diff_answer {
    const char *paths[2]; /* as they were given */
    const char *by_name;
    enum tmk_by by;
    bool is_peak[2]; /* the peak of the run, not a moment that was asked for */
    struct tmk_diff_pair *pairs;
    uint32_t n_pairs;
    struct tmk_diff_pair *shown; /* its sides are swept and compared below */
    struct tmk_diff *diff;
    struct tmk_diff_steps *steps;
    struct tmk_gate_verdict verdicts[TMK_MAX_VALUES];
    unsigned n_verdicts;
};

/* Bytes of both sides, and whether they are known. */
struct tmk_two {
    bool known[2];
    uint64_t bytes[2];
};
/* Reserved bytes at the moments, and the most in the whole run. */
struct tmk_two tmk_diff_answer_reserved(const struct tmk_diff_answer *c);
struct tmk_two tmk_diff_answer_most_reserved(const struct tmk_diff_answer *c);
/* Bytes allocated at the moments for which the trace has no block: side b's less side a's. */
int64_t tmk_diff_answer_unexplained(const struct tmk_diff_answer *c);
double tmk_diff_answer_attributed(const struct tmk_diff_answer *c);

/* Read the gates of --fail-if. 0, or TMK_EXIT_USAGE after a message. */
int tmk_diff_answer_gates(struct tmk_diff_answer *c, const struct tmk_args *args);
/* Judge the gates on the pair that is shown. 0, or an exit status after a message. */
int tmk_diff_answer_judge(struct tmk_diff_answer *c);

/* Print for people on stdout; and the part of it that says why. */
void tmk_diff_text(const struct tmk_diff_answer *c);
void tmk_diff_causes_text(const struct tmk_diff_answer *x, struct tmk_sheet *sheet);
/* One JSON object on stdout. */
void tmk_diff_json(const struct tmk_diff_answer *c);
/* Write the gates as JUnit's XML, a test case for each. 0, or an exit status after a message. */
int tmk_diff_junit(const struct tmk_diff_answer *c, const char *path);

/* "+1.5 MiB", "-200 B", "0 B" into a buffer of TMK_AMOUNT_BYTES. */
const char *tmk_change_text(int64_t bytes, char *buffer);
/* "+12 %", "x 20", "new", "gone", "=" into the same. */
const char *tmk_growth_text(uint64_t a, uint64_t b, char *buffer);
/* Returns what a gate measured as a phrase, the caller's: "peak 1.0 MiB -> 2.0 MiB, +1.0 MiB, +100
 * %". */
char *tmk_verdict_text(const struct tmk_gate_verdict *v);

#endif
