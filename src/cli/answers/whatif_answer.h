/* SPDX-License-Identifier: MIT */
/* cli/answers/whatif_answer.h - what `whatif` found for each setting, for people and as JSON. */
#ifndef TMK_CLI_ANSWERS_WHATIF_ANSWER_H
#define TMK_CLI_ANSWERS_WHATIF_ANSWER_H

#include "kit/tree.h"
#include "model/run.h"
#include "passes/whatif/whatif.h"

enum { TMK_WHATIF_MAX_ROWS = 64 };

struct tmk_whatif_question {
    struct tmk_process *p;
    uint16_t device;
    const char *const *confs; /* settings to try; none: those worth a try */
    unsigned n_confs;
    uint64_t capacity_bytes, allowed_bytes; /* TMK_BYTES_UNKNOWN: not asked */
};

/* One setting and what came of it. */
struct tmk_whatif_row {
    const char *conf; /* its text */
    struct tmk_whatif_setting setting;
    struct tmk_whatif_result result;
    bool has_smallest;
    uint64_t smallest_bytes; /* the least limit with which nothing runs out */
};

struct tmk_whatif_answer {
    struct tmk_whatif *whatif; /* the pass */
    const struct tmk_process *p;
    uint16_t device;
    const struct tmk_whatif_recorded *recorded;
    struct tmk_whatif_row rows[TMK_WHATIF_MAX_ROWS]; /* the recorded settings first */
    unsigned n_rows;
    uint64_t capacity_bytes; /* of the card asked about; TMK_BYTES_UNKNOWN: none */
    uint64_t limit_bytes;    /* of torch's memory; TMK_ALLOC_NO_BOUND: none */
    const char *limit_from;  /* how that is known; NULL without a limit */
    bool is_asked;           /* the limit was asked for */
    bool ignores_fraction;   /* the recorded settings have one of a card that is not known */
};

/* Sweep the process and replay it with each setting. Returns 0, TMK_EINVAL when a setting is wrong,
 * TMK_ENOMEM or a sweep's error. Without rows there was nothing to replay. fini in all cases. */
int tmk_whatif_answer_init(struct tmk_whatif_answer *v, const struct tmk_whatif_question *q,
                           struct tmk_error *err);
void tmk_whatif_answer_fini(struct tmk_whatif_answer *v);

void tmk_whatif_text(const struct tmk_whatif_answer *v);
void tmk_whatif_json(const struct tmk_whatif_answer *v);
/* Write the object of tmk_whatif_json() under `key`. */
void tmk_whatif_put(const struct tmk_whatif_answer *v, struct tmk_tree *t, const char *key);

/* Returns the row with the least memory among those that never run out; NULL: all run out. */
const struct tmk_whatif_row *tmk_whatif_best(const struct tmk_whatif_answer *v);

#endif
