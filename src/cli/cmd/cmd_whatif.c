/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_whatif.c - would other settings, or another card, have done? The recorded
 * allocations, replayed through a model of torch's allocator. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/whatif_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "kit/amount.h"
#include "kit/progress.h"
#include "model/alloc_conf.h"
#include "model/run.h"
#include "passes/whatif/whatif.h"
#include "tidemark/tidemark.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

struct question {
    struct tmk_process *p;
    uint16_t device;
    const char *confs[TMK_MAX_VALUES];
    unsigned n_confs;
    uint64_t capacity_bytes, allowed_bytes; /* TMK_BYTES_UNKNOWN: not asked */
    struct tmk_whatif *whatif;
    struct tmk_whatif_answer answer;
};

/* ---- the question ---- */

/* Find the GPU with the largest peak. */
static bool find_asked_card(const struct tmk_process *p, uint16_t *ret_device)
{
    const struct tmk_step_row *best = NULL;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if (row->device != TIDEMARK_HOST && (!best || row->peak_bytes > best->peak_bytes))
            best = row;
    }
    if (best)
        *ret_device = best->device;
    return best != NULL;
}

static int read_size(const struct tmk_args *args, const char *name, uint64_t *ret)
{
    const char *text = tmk_args_get(args, name);
    *ret = TMK_BYTES_UNKNOWN;
    if (!text || (tmk_size_parse(text, ret) == 0 && *ret > 0))
        return 0;
    tmk_say("--%s: '%s' is not a size: 24GiB, 600MiB, 600439521", name, text);
    return TMK_EXIT_USAGE;
}

static int ask_whatif(struct question *q, const struct tmk_args *args)
{
    const char *device = tmk_args_get(args, "device");
    int status = read_size(args, "capacity", &q->capacity_bytes);
    if (status == 0)
        status = read_size(args, "allowed", &q->allowed_bytes);
    if (status != 0)
        return status;
    q->answer.is_asked =
        q->capacity_bytes != TMK_BYTES_UNKNOWN || q->allowed_bytes != TMK_BYTES_UNKNOWN;
    if (device)
        return tmk_target_device(q->p, device, &q->device) ? 0 : TMK_EXIT_USAGE;
    if (find_asked_card(q->p, &q->device))
        return 0;
    tmk_say("no CUDA blocks in %s: nothing to replay; --device cpu replays those of the host as if "
            "they were on a GPU",
            q->p->file);
    return TMK_EXIT_FINDING;
}

/* ---- limits ---- */

/* Choose the limit of torch's memory: the one asked for, else the one when it was recorded. */
static void choose_limit(struct question *q)
{
    const struct tmk_whatif_recorded *f = q->answer.recorded;
    struct tmk_whatif_answer *v = &q->answer;
    v->capacity_bytes = q->capacity_bytes;
    v->limit_bytes = TMK_ALLOC_NO_BOUND;
    if (q->capacity_bytes != TMK_BYTES_UNKNOWN) {
        v->limit_bytes = tmk_whatif_share(f, q->capacity_bytes);
        v->limit_from = "the GPU's";
    } else if (q->allowed_bytes == TMK_BYTES_UNKNOWN && f->limit_bytes != TMK_BYTES_UNKNOWN) {
        v->limit_bytes = f->limit_bytes;
        v->limit_from = "it ran out there when recorded; --capacity asks about another GPU";
    } else if (q->allowed_bytes == TMK_BYTES_UNKNOWN && f->card_bytes != TMK_BYTES_UNKNOWN) {
        v->limit_bytes = tmk_whatif_share(f, f->card_bytes);
        v->limit_from = "the GPU that it was recorded on, less what the process uses beside torch";
    }
    if (q->allowed_bytes < v->limit_bytes) {
        v->limit_bytes = q->allowed_bytes;
        v->limit_from = "--allowed";
    }
}

/* ---- the answer ---- */

static uint64_t asked_card_bytes(const struct question *q)
{
    return q->capacity_bytes != TMK_BYTES_UNKNOWN ? q->capacity_bytes
                                                  : q->answer.recorded->card_bytes;
}

static int add_asked_setting(struct question *q, const char *conf, struct tmk_error *err)
{
    struct tmk_whatif_row row = {.conf = conf};
    if (q->answer.n_rows >= TMK_WHATIF_MAX_ROWS)
        return tmk_fail(err, TMK_EINVAL, "at most %d settings at once", TMK_WHATIF_MAX_ROWS - 1);
    int rc = tmk_alloc_conf_parse(conf, &row.setting.conf, err);
    if (rc == 0 && row.setting.conf.is_async)
        rc = tmk_fail(err, TMK_EINVAL,
                      "the model is of torch's native backend: cudaMallocAsync cannot be replayed");
    bool needs_card =
        row.setting.conf.memory_fraction < 1 && asked_card_bytes(q) == TMK_BYTES_UNKNOWN;
    if (rc == 0 && needs_card && q->answer.n_rows > 0)
        rc = tmk_fail(
            err, TMK_EINVAL,
            "per_process_memory_fraction is a part of a GPU whose size was not recorded: give "
            "--capacity, or --allowed instead of the fraction");
    if (rc < 0)
        return rc;
    q->answer.ignores_fraction |= needs_card;
    row.setting.limit_bytes =
        tmk_whatif_limit(&row.setting.conf, q->answer.limit_bytes, asked_card_bytes(q));
    q->answer.rows[q->answer.n_rows++] = row;
    return 0;
}

static int add_settings(struct question *q, struct tmk_error *err)
{
    int rc = add_asked_setting(q, tmk_whatif_recorded_conf(q->answer.recorded), err);
    for (unsigned i = 0; i < q->n_confs && rc == 0; i++)
        rc = add_asked_setting(q, q->confs[i], err);
    const struct tmk_whatif_choice *c = tmk_whatif_choices;
    for (; c->conf && q->n_confs == 0 && rc == 0; c++) {
        bool applies = !c->needs_limit || q->answer.is_asked || q->answer.recorded->n_ooms;
        if (applies && strcmp(c->conf, q->answer.rows[0].conf) != 0)
            rc = add_asked_setting(q, c->conf, err);
    }
    return rc;
}

static int replay_all(struct question *q, struct tmk_error *err)
{
    int rc = 0;
    for (unsigned i = 0; i < q->answer.n_rows && rc == 0; i++) {
        struct tmk_whatif_row *row = &q->answer.rows[i];
        rc = tmk_whatif_replay(q->whatif, &row->setting, &row->result, err);
    }
    for (unsigned i = 0; i < q->answer.n_rows && rc == 0 && q->answer.is_asked; i++) {
        struct tmk_whatif_row *row = &q->answer.rows[i];
        row->has_smallest = i == 0 || q->n_confs > 0;
        if (row->has_smallest)
            rc = tmk_whatif_smallest(q->whatif, &row->setting.conf, &row->smallest_bytes, err);
    }
    return rc;
}

static int sweep_for_whatif(struct question *q, struct tmk_error *err)
{
    struct tmk_progress progress;
    struct tmk_replay rp;
    int rc = tmk_whatif_open(q->p, q->device, &q->whatif);
    if (rc < 0)
        return rc;
    tmk_progress_init(&progress, stderr, q->p->file);
    struct tmk_visitor both[] = {tmk_whatif_visitor(q->whatif),
                                 {.arg = &progress, .progress = tmk_progress_tell}};
    rc = tmk_process_sweep(q->p, both, TMK_N(both), &rp, err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    rc = tmk_whatif_finish(q->whatif, &rp, err);
    tmk_replay_fini(&rp);
    return rc;
}

static int complain_of_setting(const struct question *q, int rc, const struct tmk_error *err)
{
    const char *why = err->text[0] ? err->text : tmk_result_text(rc);
    if (rc == TMK_EINVAL)
        tmk_say("--alloc-conf: %s", why);
    else
        tmk_say("%s: %s", q->p->file, why);
    if (rc == TMK_EINVAL)
        return TMK_EXIT_USAGE;
    return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
}

static int answer_whatif(struct question *q, bool json)
{
    struct tmk_error err = {0};
    int rc = sweep_for_whatif(q, &err);
    if (rc < 0)
        return complain_of_setting(q, rc, &err);
    q->answer.p = q->p;
    q->answer.device = q->device;
    q->answer.recorded = tmk_whatif_recorded(q->whatif);
    if (q->answer.recorded->n_events == 0) {
        tmk_say("no allocation of that device is in %s: nothing to replay", q->p->file);
        return TMK_EXIT_FINDING;
    }
    choose_limit(q);
    rc = add_settings(q, &err);
    if (rc == 0)
        rc = replay_all(q, &err);
    if (rc < 0)
        return complain_of_setting(q, rc, &err);
    if (json)
        tmk_whatif_json(&q->answer);
    else
        tmk_whatif_text(&q->answer);
    return TMK_EXIT_OK;
}

static int run_whatif(const struct tmk_args *args)
{
    struct question *q = tmk_xcalloc(1, sizeof *q);
    struct tmk_run *target = NULL;
    const char *operand = args->n_operands ? args->operands[0] : NULL;
    q->n_confs = tmk_args_list(args, "alloc-conf", q->confs);
    if (!operand && q->n_confs > 1) /* --alloc-conf C RUN: the last one is the run */
        operand = q->confs[--q->n_confs];
    int status = TMK_EXIT_USAGE;
    if (operand)
        status = tmk_target_open(operand, &target);
    else
        tmk_say("whatif needs a run: tidemark whatif a.tmk");
    if (status == 0) {
        q->p = tmk_target_pick(target, tmk_args_get(args, "rank"));
        status = q->p ? ask_whatif(q, args) : TMK_EXIT_USAGE;
    }
    if (status == 0)
        status = answer_whatif(q, tmk_args_get(args, "json") != NULL);
    tmk_whatif_close(q->whatif);
    free(q);
    tmk_run_close(target);
    return status;
}

static const struct tmk_option options[] = {
    {"alloc-conf", 0, "C...", NULL, "settings to try, as in PYTORCH_CUDA_ALLOC_CONF"},
    {"capacity", 0, "SIZE", NULL, "the memory of the GPU to try: 24GiB, 80GiB"},
    {"allowed", 0, "SIZE", NULL, "limit of torch's allocator, whatever the GPU has"},
    {"device", 0, "NAME", NULL, "cuda:0 ... (the device with the largest peak); or cpu"},
    {"rank", 0, "N", NULL, "this rank (the rank with the largest peak)"},
    {"json", 0, NULL, NULL, "print one JSON object"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "Every allocation and free of the device goes through an exact model of the native caching "
    "allocator of torch 2.11. The recorded settings come first: beside the measured figures "
    "they show how good the model is. The settings asked for follow, or a table of common "
    "ones. Nothing is run again, and no GPU is needed.",
    "reserved\tthe most that torch had reserved at once",
    "wasted\thow much more that is than the blocks ever needed at once",
    "retries\thow often torch released its cache and asked again, which is slow",
    "--capacity is of the whole GPU: what the process uses outside torch's memory is "
    "subtracted, if the trace has it. --allowed is torch's own limit, as with "
    "set_per_process_memory_fraction. Without either, the recorded limit holds. "
    "garbage_collection_threshold works towards that limit here; torch ignores it without the "
    "function.",
    "--device cpu replays blocks of the host as if they were on a GPU: for planning, and to "
    "try this without one.",
    NULL,
};

static const char *const json_keys[] = {
    "settings\tthe recorded ones first: conf capacity peak_allocated peak_reserved retries oom "
    "limit wasted segments ooms smallest_limit",
    "oom\tnull, or event request_bytes time_ns step recorded; event counts the device's "
    "allocations, frees and recorded OOMs from 0",
    "best, measured\tthe best setting; the recorded peak_allocated peak_reserved ooms",
    "alloc_conf\tthe recorded settings; alloc_conf_inferred: found from the allocations",
    "replay\tevents seeded (older blocks) requests_known unknown_limit",
    "device, rank, pid\twhat was replayed; card: the GPU's memory; outside: used beside torch's. "
    "docs/whatif.md has the rules.",
    NULL,
};

static const char *const examples[] = {
    "tidemark whatif train.tmk",
    "which allocator settings would need less memory?",
    "tidemark whatif train.tmk --capacity 24GiB",
    "does it fit on a GPU of 24 GiB, and if not, where does it fail?",
    "tidemark whatif train.tmk --alloc-conf expandable_segments:True",
    "one setting against the recorded ones",
    NULL,
};

const struct tmk_command tmk_cmd_whatif = {
    .name = "whatif",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Replay the allocations with other settings or another GPU",
    .usage = "RUN|[HOST:]PID [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 0,
    .max_operands = 1,
    .n_targets = 1,
    .is_paged = true,
    .operand = TMK_OPERAND_RUN,
    .json = json_keys,
    .examples = examples,
    .run = run_whatif,
};
