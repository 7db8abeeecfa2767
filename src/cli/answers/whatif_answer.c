/* SPDX-License-Identifier: MIT */
/* cli/answers/whatif_answer.c - see whatif_answer.h. */
#include "cli/answers/whatif_answer.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/progress.h"
#include "model/alloc_conf.h"
#include "trace/replay.h"

struct asking {
    const struct tmk_whatif_question *asked;
    struct tmk_whatif_answer *v;
};

/* ---- limits ---- */

/* Choose the limit of torch's memory: the one asked for, else the one when it was recorded. */
static void choose_limit(struct asking *q)
{
    const struct tmk_whatif_recorded *f = q->v->recorded;
    struct tmk_whatif_answer *v = q->v;
    v->capacity_bytes = q->asked->capacity_bytes;
    v->limit_bytes = TMK_ALLOC_NO_BOUND;
    if (q->asked->capacity_bytes != TMK_BYTES_UNKNOWN) {
        v->limit_bytes = tmk_whatif_share(f, q->asked->capacity_bytes);
        v->limit_from = N_("the GPU's");
    } else if (q->asked->allowed_bytes == TMK_BYTES_UNKNOWN &&
               f->limit_bytes != TMK_BYTES_UNKNOWN) {
        v->limit_bytes = f->limit_bytes;
        v->limit_from = N_("it ran out there when recorded; --capacity asks about another GPU");
    } else if (q->asked->allowed_bytes == TMK_BYTES_UNKNOWN && f->card_bytes != TMK_BYTES_UNKNOWN) {
        v->limit_bytes = tmk_whatif_share(f, f->card_bytes);
        v->limit_from =
            N_("the GPU that it was recorded on, less what the process uses beside torch");
    }
    if (q->asked->allowed_bytes < v->limit_bytes) {
        v->limit_bytes = q->asked->allowed_bytes;
        v->limit_from = "--allowed";
    }
}

/* ---- the answer ---- */

static uint64_t asked_card_bytes(const struct asking *q)
{
    return q->asked->capacity_bytes != TMK_BYTES_UNKNOWN ? q->asked->capacity_bytes
                                                         : q->v->recorded->card_bytes;
}

static int add_asked_setting(struct asking *q, const char *conf, struct tmk_error *err)
{
    struct tmk_whatif_row row = {.conf = conf};
    if (q->v->n_rows >= TMK_WHATIF_MAX_ROWS)
        return tmk_fail(err, TMK_EINVAL, "at most %d settings at once", TMK_WHATIF_MAX_ROWS - 1);
    int rc = tmk_alloc_conf_parse(conf, &row.setting.conf, err);
    if (rc == 0 && row.setting.conf.is_async)
        rc = tmk_fail(err, TMK_EINVAL,
                      "the model is of torch's native backend: cudaMallocAsync cannot be replayed");
    bool needs_card =
        row.setting.conf.memory_fraction < 1 && asked_card_bytes(q) == TMK_BYTES_UNKNOWN;
    if (rc == 0 && needs_card && q->v->n_rows > 0)
        rc = tmk_fail(
            err, TMK_EINVAL,
            "per_process_memory_fraction is a part of a GPU whose size was not recorded: give "
            "--capacity, or --allowed instead of the fraction");
    if (rc < 0)
        return rc;
    q->v->ignores_fraction |= needs_card;
    row.setting.limit_bytes =
        tmk_whatif_limit(&row.setting.conf, q->v->limit_bytes, asked_card_bytes(q));
    q->v->rows[q->v->n_rows++] = row;
    return 0;
}

static int add_settings(struct asking *q, struct tmk_error *err)
{
    int rc = add_asked_setting(q, tmk_whatif_recorded_conf(q->v->recorded), err);
    for (unsigned i = 0; i < q->asked->n_confs && rc == 0; i++)
        rc = add_asked_setting(q, q->asked->confs[i], err);
    const struct tmk_whatif_choice *c = tmk_whatif_choices;
    for (; c->conf && q->asked->n_confs == 0 && rc == 0; c++) {
        bool applies = !c->needs_limit || q->v->is_asked || q->v->recorded->n_ooms;
        if (applies && strcmp(c->conf, q->v->rows[0].conf) != 0)
            rc = add_asked_setting(q, c->conf, err);
    }
    return rc;
}

static int replay_all(struct asking *q, struct tmk_error *err)
{
    int rc = 0;
    for (unsigned i = 0; i < q->v->n_rows && rc == 0; i++) {
        struct tmk_whatif_row *row = &q->v->rows[i];
        rc = tmk_whatif_replay(q->v->whatif, &row->setting, &row->result, err);
    }
    for (unsigned i = 0; i < q->v->n_rows && rc == 0 && q->v->is_asked; i++) {
        struct tmk_whatif_row *row = &q->v->rows[i];
        row->has_smallest = i == 0 || q->asked->n_confs > 0;
        if (row->has_smallest)
            rc = tmk_whatif_smallest(q->v->whatif, &row->setting.conf, &row->smallest_bytes, err);
    }
    return rc;
}

static int sweep_for_whatif(struct asking *q, struct tmk_error *err)
{
    struct tmk_progress progress;
    struct tmk_replay rp;
    int rc = tmk_whatif_open(q->asked->p, q->asked->device, &q->v->whatif);
    if (rc < 0)
        return rc;
    tmk_progress_init(&progress, stderr, q->asked->p->file);
    struct tmk_visitor both[] = {tmk_whatif_visitor(q->v->whatif),
                                 {.arg = &progress, .progress = tmk_progress_tell}};
    rc = tmk_process_sweep(q->asked->p, both, TMK_N(both), &rp, err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    rc = tmk_whatif_finish(q->v->whatif, &rp, err);
    tmk_replay_fini(&rp);
    return rc;
}

int tmk_whatif_answer_init(struct tmk_whatif_answer *v, const struct tmk_whatif_question *q,
                           struct tmk_error *err)
{
    struct asking asking = {q, v};
    *v = (struct tmk_whatif_answer){.p = q->p, .device = q->device};
    v->is_asked = q->capacity_bytes != TMK_BYTES_UNKNOWN || q->allowed_bytes != TMK_BYTES_UNKNOWN;
    int rc = sweep_for_whatif(&asking, err);
    if (rc < 0)
        return rc;
    v->recorded = tmk_whatif_recorded(v->whatif);
    if (v->recorded->n_events == 0)
        return 0;
    choose_limit(&asking);
    rc = add_settings(&asking, err);
    return rc == 0 ? replay_all(&asking, err) : rc;
}

void tmk_whatif_answer_fini(struct tmk_whatif_answer *v)
{
    v->whatif = tmk_whatif_close(v->whatif);
}
