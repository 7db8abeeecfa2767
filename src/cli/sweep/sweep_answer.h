/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_answer.h - the answer of a sweep: survey, fits and advice, made once for all
 * writers. */
#ifndef TMK_CLI_SWEEP_SWEEP_ANSWER_H
#define TMK_CLI_SWEEP_SWEEP_ANSWER_H

#include "kit/arena.h"
#include "kit/tree.h"
#include "sweep/advice.h"

struct tmk_sweep_answer {
    const struct tmk_survey *g;
    const struct tmk_results *r; /* the survey's */
    struct tmk_arena arena;
    struct tmk_fit *reserved; /* NULL: there is none */
    struct tmk_advice advice;
    const char *largest_text; /* tmk_sweep_say_largest(), */
    const char *look_command; /* tmk_sweep_look_command(), */
    const char *fit_text;     /* tmk_sweep_say_fit() */
};

/* Each writes one file or page to `out`; the caller that opened it checks for errors. */
void tmk_sweep_write_json(FILE *out, const struct tmk_sweep_answer *v);
void tmk_sweep_write_csv(FILE *out, const struct tmk_sweep_answer *v);
void tmk_sweep_write_detailed(FILE *out, const struct tmk_sweep_answer *v);
void tmk_sweep_write_page(FILE *out, const struct tmk_sweep_answer *v);
void tmk_sweep_write_text(FILE *out, const struct tmk_sweep_answer *v);
/* Write the page's chart of the peak against a parameter, as SVG. Returns whether some estimate is
 * too far above to be drawn and has an arrow. */
bool tmk_sweep_write_chart(FILE *out, const struct tmk_sweep_answer *v,
                           const struct tmk_influence *i);
/* Write the page's table of the peak by the two parameters that matter most. */
void tmk_sweep_write_heat(FILE *out, const struct tmk_sweep_answer *v);
/* Write "config", the value of each parameter: both JSON files have it (sweep_json.c). */
void tmk_sweep_json_config(struct tmk_tree *t, const struct tmk_results *r,
                           const struct tmk_cell *c);
/* Write the peaks in bytes and in GB, "peak_step" and "steps": JSON and CSV have them. */
void tmk_sweep_put_peaks(struct tmk_tree *t, const struct tmk_cell *c);

/* Sentences, in the answer's arena: */
/* "mlp is the largest: 3.67 GB, 50 % of the peak."; for "other", the layer that comes first; NULL:
 * nothing was measured. */
const char *tmk_sweep_say_largest(struct tmk_sweep_answer *v);
/* If the largest is "other", the shell command that shows what allocated it, to be printed behind
 * TMK_SWEEP_LOOK. NULL: it is not, or there is no trace. */
const char *tmk_sweep_look_command(struct tmk_sweep_answer *v);
#define TMK_SWEEP_LOOK "The lines that allocated what is other:"
/* A sentence that says how good the fit is, or why there is none. */
const char *tmk_sweep_say_fit(struct tmk_sweep_answer *v);

/* Write a capacity, as "24 GiB" if it is whole, to a buffer of TMK_AMOUNT_BYTES. */
const char *tmk_sweep_capacity_text(uint64_t bytes, char *buffer);
/* Write a limit: "12", "12–14", "~300" (far), "any", "none". */
const char *tmk_sweep_limit_text(const struct tmk_advice_limit *l, char *buffer, size_t size);
/* Say the notes of a table of limits, a sentence at a time. */
void tmk_sweep_each_note(const struct tmk_sweep_answer *v, bool any_far, bool any_range,
                         void (*say)(void *to, const char *text), void *to);

#endif
