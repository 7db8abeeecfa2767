/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_answer.h - what `leak RUN|PID` has found, for people and as JSON. */
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

/* Of the devices asked for. */
bool tmk_leak_is_wanted(const struct tmk_leak_answer *f, const struct tmk_leak *leak);
enum tmk_leak_verdict tmk_leak_verdict_of(const struct tmk_leak_answer *f);
/* The program was refused memory of that device: where that was. */
bool tmk_leak_has_run_out(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                          int64_t *ret_step);
/* Seconds until the device is full at this rate, 0 when memory was refused already; false when its
 * size is not known. */
bool tmk_leak_seconds_left(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                           double *ret_seconds);
/* Likewise; false also when the process has no steps. */
bool tmk_leak_steps_left(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                         double *ret_steps);
/* Processes that have finished steps. */
uint32_t tmk_leak_n_with_steps(const struct tmk_leak_answer *f);

void tmk_leak_text(const struct tmk_leak_answer *f);
void tmk_leak_json(const struct tmk_leak_answer *f);

#endif
