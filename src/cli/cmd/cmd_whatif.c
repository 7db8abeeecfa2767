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
#include "model/run.h"
#include "tidemark/tidemark.h"
#include "trace/reader.h"
#include "trace/state.h"

struct question {
    struct tmk_process *p;
    uint16_t device;
    const char *confs[TMK_MAX_VALUES];
    unsigned n_confs;
    uint64_t capacity_bytes, allowed_bytes; /* TMK_BYTES_UNKNOWN: not asked */
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
    if (device)
        return tmk_target_device(q->p, device, &q->device) ? 0 : TMK_EXIT_USAGE;
    if (find_asked_card(q->p, &q->device))
        return 0;
    tmk_say("no CUDA blocks in %s: nothing to replay; --device cpu replays those of the host as if "
            "they were on a GPU",
            q->p->file);
    return TMK_EXIT_FINDING;
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
    struct tmk_whatif_question asked = {.p = q->p,
                                        .device = q->device,
                                        .confs = q->confs,
                                        .n_confs = q->n_confs,
                                        .capacity_bytes = q->capacity_bytes,
                                        .allowed_bytes = q->allowed_bytes};
    int rc = tmk_whatif_answer_init(&q->answer, &asked, &err);
    if (rc < 0)
        return complain_of_setting(q, rc, &err);
    if (q->answer.n_rows == 0) {
        tmk_say("no allocation of that device is in %s: nothing to replay", q->p->file);
        return TMK_EXIT_FINDING;
    }
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
    tmk_whatif_answer_fini(&q->answer);
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
