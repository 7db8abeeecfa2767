/* SPDX-License-Identifier: MIT */
/* cli/answers/moment_answer.h - what was alive at one moment of a process, as --at names it.
 *
 * The history of steps knows every peak to the byte, even when --max-size made the trace give up
 * the blocks of that moment. So an answer has both, and says when they are about different moments.
 */
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

/* Read which moment is asked for. `at` is the option's value, NULL for the peak; `device` is a
 * name, NULL for the device with the largest peak. `a->p` is set by the caller. 0, or
 * TMK_EXIT_USAGE after a message. */
int tmk_moment_answer_ask(struct tmk_moment_answer *a, const char *option, const char *at,
                          const char *device);
/* Replay the process. 0, or an exit status after a message; there is then something to show, or
 * detail_lost. */
int tmk_moment_answer_sweep(struct tmk_moment_answer *a);
void tmk_moment_answer_fini(struct tmk_moment_answer *a); /* takes a zeroed one */

/* Figures of the moment asked for, whether or not its blocks are still in the trace. */
uint64_t tmk_moment_answer_bytes(const struct tmk_moment_answer *a);
uint64_t tmk_moment_answer_ns(const struct tmk_moment_answer *a); /* of the run */
int64_t tmk_moment_answer_step(const struct tmk_moment_answer *a);
uint16_t tmk_moment_answer_device(const struct tmk_moment_answer *a);
bool tmk_moment_answer_reserved(const struct tmk_moment_answer *a,
                                uint64_t *ret_bytes); /* false: not known */

/* Say on stderr what is missing and which moment is shown instead. Call it when detail_lost. */
void tmk_moment_answer_say_lost(const struct tmk_moment_answer *a);

#endif
