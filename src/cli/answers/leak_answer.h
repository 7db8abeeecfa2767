/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_answer.h - what `leak RUN|PID` found, for people and as JSON. */
#ifndef TMK_CLI_ANSWERS_LEAK_ANSWER_H
#define TMK_CLI_ANSWERS_LEAK_ANSWER_H

#include "cli/answers/leak_live.h"
#include "cli/front/command.h"
#include "passes/leak/leaks.h"
#include "trace/state.h"

/* The leaks of one process. */
struct tmk_leak_process {
    struct tmk_process *p;
    struct tmk_leakage *leakage;
    uint64_t total_bytes[TMK_MAX_DEVICES], used_bytes[TMK_MAX_DEVICES]; /* as last told */
    int64_t oom_step[TMK_MAX_DEVICES]; /* of the last refusal, where has_oom */
    bool has_oom[TMK_MAX_DEVICES];
    uint16_t devices[TMK_MAX_DEVICES];
    uint32_t n_devices;
};

struct tmk_leak_answer {
    struct tmk_run *run;
    struct tmk_leak_process *items; /* by process */
    uint32_t n;
    uint64_t threshold_bytes;
    uint16_t devices[TMK_MAX_VALUES]; /* asked for */
    unsigned n_devices;               /* 0: all */
    const struct tmk_leak_live *live; /* NULL: a run that has ended */
};

/* Run the command with an operand, `leak RUN|PID`. Returns an exit status. `threshold_mb` < 0: none
 * was given. */
int tmk_leak_run(const struct tmk_args *args, double threshold_mb);

/* Returns whether the leak is on a device that was asked for. */
bool tmk_leak_is_wanted(const struct tmk_leak_answer *f, const struct tmk_leak *leak);
enum tmk_leak_verdict tmk_leak_verdict_of(const struct tmk_leak_answer *f);
/* Returns whether the program ran out of memory on the leak's device, and in which step. */
bool tmk_leak_has_run_out(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                          int64_t *ret_step);
/* Find the seconds until the device is full at this rate; 0 when it ran out already. False: its
 * size is not known. */
bool tmk_leak_seconds_left(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                           double *ret_seconds);
/* Find the steps likewise. False also when the process has no steps. */
bool tmk_leak_steps_left(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                         double *ret_steps);
/* Returns how many processes have finished a step. */
uint32_t tmk_leak_n_with_steps(const struct tmk_leak_answer *f);

void tmk_leak_text(const struct tmk_leak_answer *f);
void tmk_leak_json(const struct tmk_leak_answer *f);

#endif
