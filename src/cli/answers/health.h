/* SPDX-License-Identifier: MIT */
/* cli/answers/health.h - the verdict on a run, which all views print first: the summary of `run`,
 * `report` as text, Markdown and JSON, `leak` and `explain`.
 *
 * A run has one verdict. The worst that is known comes first: it ran out of memory, it leaks, it
 * nearly ran out, it was killed, it grew without being judged a leak. The sentence names the figure
 * and the line; `next` is the command that answers the question which the verdict raises. */
#ifndef TMK_CLI_ANSWERS_HEALTH_H
#define TMK_CLI_ANSWERS_HEALTH_H

#include "cli/answers/process_answer.h"
#include "cli/output/terminal.h"
#include "model/run.h"
#include "passes/imbalance/imbalance.h"
#include "trace/defs.h"

enum tmk_health_kind {
    TMK_HEALTH_HEALTHY,
    TMK_HEALTH_LEAKS,
    TMK_HEALTH_GREW, /* and is not judged a leak */
    TMK_HEALTH_RAN_OUT,
    TMK_HEALTH_NEARLY_RAN_OUT,
    TMK_HEALTH_TOO_SHORT,
    TMK_HEALTH_KILLED,
    TMK_HEALTH_NOTHING, /* no allocation was recorded */
};

struct tmk_health {
    enum tmk_health_kind kind;
    char *text;                  /* a sentence or two, without the last full stop */
    const struct tmk_process *p; /* the process that `site` is of */
    bool has_site;               /* the line that the sentence names */
    struct tmk_frame site;
    char *next; /* a command */
};

/* Judge a run by the answer about one of its processes; `ranks` is NULL where the run has one
 * process. A few other processes are swept for leaks, where that is quick. The health is the
 * caller's, to fini. */
void tmk_health_init(struct tmk_health *h, struct tmk_run *run, const struct tmk_process_answer *f,
                     const struct tmk_imbalance *ranks);
void tmk_health_fini(struct tmk_health *h);

/* "healthy", "leaks", "grew", "ran_out", "nearly_ran_out", "too_short", "killed" or "nothing". */
const char *tmk_health_name(enum tmk_health_kind kind);

/* The colour of the verdict. */
enum tmk_role tmk_health_role(enum tmk_health_kind kind);

/* The facts of a failed request, as a sentence needs them. Bytes may be UINT64_MAX: not known. */
struct tmk_failed_request {
    const struct tmk_process *p;
    uint16_t device;
    int64_t step;
    uint64_t request_bytes, allocated_bytes, reserved_bytes, limit_bytes;
    bool is_of_driver;
    const struct tmk_frame *site; /* NULL: not known */
};

/* Returns those of a request that the trace has; borrows from `o`. */
struct tmk_failed_request tmk_failed_request_of(const struct tmk_process *p,
                                                const struct tmk_oom *o);

/* Returns "Out of memory on cuda:0 in step 22: the request for 64.0 MiB at train.py:23 step failed
 * with 232.0 MiB allocated and 994.0 MiB reserved", the caller's. */
char *tmk_failed_request_text(const struct tmk_failed_request *r);

/* Returns "Nearly out of memory on cuda:0: 79.1 GiB of its 80.0 GiB were in use", the caller's. */
char *tmk_near_miss_text(const struct tmk_near_miss *near);

/* Returns "61 steps, 8.78 ms each", and with the trend "; memory kept after a step GROWS by 384.0
 * KiB at train.py:41"; the caller's. NULL: the process has no steps. */
char *tmk_steps_text(const struct tmk_process_answer *f, bool with_trend);

#endif
