/* SPDX-License-Identifier: MIT */
/* cli/answers/frag_answer.h - what `frag` found in one process, for people and as JSON. */
#ifndef TMK_CLI_ANSWERS_FRAG_ANSWER_H
#define TMK_CLI_ANSWERS_FRAG_ANSWER_H

#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "passes/timeline.h"

struct tmk_frag_answer {
    struct tmk_process *p;
    struct tmk_frag_moment moment;
    struct tmk_fragmentation *frag;
    struct tmk_timeline *timeline;
    bool has_device;
    uint16_t device; /* asked for */
};

/* Sweep the process: `p`, `moment` and the device are set. 0, or an error with its text. */
int tmk_frag_answer_find(struct tmk_frag_answer *a, struct tmk_error *err);
/* Choose the device that the object is about: the one asked for, or the one with most reserved.
 * False: there is none. */
bool tmk_frag_chosen(const struct tmk_frag_answer *a, uint64_t *ret);
/* Says what the moment of a device is: "oom", "reserved", "allocated", "time" or "step". */
const char *tmk_frag_moment_name(enum tmk_frag_kind kind, const struct tmk_frag_device *d);
/* Find the handle of a stream; 0 is the default stream. False: it is not known. */
bool tmk_frag_stream(const struct tmk_process *p, const struct tmk_frag_pool_row *row,
                     uint64_t *ret_handle);

void tmk_frag_text(const struct tmk_frag_answer *a);
void tmk_frag_json(const struct tmk_frag_answer *a);

#endif
