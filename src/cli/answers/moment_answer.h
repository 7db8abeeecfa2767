/* SPDX-License-Identifier: MIT */
/* cli/answers/moment_answer.h - look at one moment of a process, as --at names it: what was alive
 * then.
 *
 * The history of steps knows every peak to the byte, also when --max-size made the trace give up
 * what was alive; so a look has both, and says when they are not about the same moment. */
#ifndef TMK_CLI_ANSWERS_MOMENT_ANSWER_H
#define TMK_CLI_ANSWERS_MOMENT_ANSWER_H

#include "passes/peak.h"
#include "passes/quality.h"

struct tmk_moment_answer {
    struct tmk_process *p;
    struct tmk_moment asked;
    struct tmk_peak *peak;
    struct tmk_quality quality;
    const struct tmk_step_row *exact; /* the history's row of the moment; NULL: none */
    bool detail_lost;                 /* it had more than the largest moment kept */
};

/* Which moment: `at` is what the option of that name was given, NULL: the peak; `device` a name, or
 * NULL for the one with the largest peak. 0, or TMK_EXIT_USAGE after a message. `l->p` is set. */
int tmk_moment_answer_ask(struct tmk_moment_answer *l, const char *option, const char *at,
                          const char *device);
/* Replay the process. 0, or an exit status after a message; there is then something to show, or
 * detail_lost. */
int tmk_moment_answer_sweep(struct tmk_moment_answer *l);
void tmk_moment_answer_fini(struct tmk_moment_answer *l); /* takes a zeroed one */

/* Of the moment asked for, whether or not its detail is left. */
uint64_t tmk_moment_answer_bytes(const struct tmk_moment_answer *l);
uint64_t tmk_moment_answer_ns(const struct tmk_moment_answer *l); /* of the run */
int64_t tmk_moment_answer_step(const struct tmk_moment_answer *l);
uint16_t tmk_moment_answer_device(const struct tmk_moment_answer *l);
bool tmk_moment_answer_reserved(const struct tmk_moment_answer *l,
                                uint64_t *ret_bytes); /* false: not known */

/* When detail_lost: what is missing and which moment is shown instead, on stderr. */
void tmk_moment_answer_say_lost(const struct tmk_moment_answer *l);

#endif
