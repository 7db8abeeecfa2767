/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_answer.h - a sweep as its writers tell it: survey, fits and advice, made once. */
#ifndef TMK_CLI_SWEEP_SWEEP_ANSWER_H
#define TMK_CLI_SWEEP_SWEEP_ANSWER_H

#include "kit/arena.h"
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

/* Each writes one file or page to `out`; whoever opened it looks for errors. */
void tmk_sweep_write_json(FILE *out, const struct tmk_sweep_answer *v);
void tmk_sweep_write_csv(FILE *out, const struct tmk_sweep_answer *v);
void tmk_sweep_write_detailed(FILE *out, const struct tmk_sweep_answer *v);
void tmk_sweep_write_page(FILE *out, const struct tmk_sweep_answer *v);
void tmk_sweep_write_text(FILE *out, const struct tmk_sweep_answer *v);
/* For the page: the peak against a parameter, as SVG. Returns whether some estimate is too far
 * above to be drawn, and has an arrow. */
bool tmk_sweep_write_chart(FILE *out, const struct tmk_sweep_answer *v,
                           const struct tmk_influence *i);
/* For the page too: the peak by the two parameters that matter most, as a table. */
void tmk_sweep_write_heat(FILE *out, const struct tmk_sweep_answer *v);

/* Sentences, in its arena: */
/* "mlp is the largest: 3.67 GB, 50 % of the peak."; of "other", which layer comes first; NULL:
 * nothing was measured. */
const char *tmk_sweep_say_largest(struct tmk_sweep_answer *v);
/* Where that is "other", for a shell: the command that shows what allocated it, to stand behind
 * TMK_SWEEP_LOOK. NULL: it is not, or there is no trace to look into. */
const char *tmk_sweep_look_command(struct tmk_sweep_answer *v);
#define TMK_SWEEP_LOOK "The lines that allocated what is other:"
/* How good the fit is, or why there is none. */
const char *tmk_sweep_say_fit(struct tmk_sweep_answer *v);

/* "24 GiB" where it is whole, into TMK_AMOUNT_BYTES. */
const char *tmk_sweep_capacity_text(uint64_t bytes, char *buffer);
/* A limit as people read it: "12", "12–14", "~300" (far), "any", "none". */
const char *tmk_sweep_limit_text(const struct tmk_advice_limit *l, char *buffer, size_t size);
/* What is to be known of a table of limits, a sentence at a time. */
void tmk_sweep_each_note(const struct tmk_sweep_answer *v, bool any_far, bool any_range,
                         void (*say)(void *to, const char *text), void *to);

#endif
