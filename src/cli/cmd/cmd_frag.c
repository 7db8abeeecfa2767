/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_frag.c - how fragmented the memory of a device is, from real blocks in real segments.
 */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/frag_answer.h"
#include "cli/answers/moment_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/remote/remote.h"
#include "model/run.h"
#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "passes/peak.h"
#include "passes/timeline.h"

/* ---- the command ---- */

static int ask_frag(struct tmk_frag_answer *a, const struct tmk_args *args)
{
    const char *at = tmk_args_get(args, "at"), *device = tmk_args_get(args, "device");
    struct tmk_moment_answer wanted = {.p = a->p};
    a->has_device = device != NULL;
    if (device && !tmk_target_device(a->p, device, &a->device))
        return TMK_EXIT_USAGE;
    if (!at)
        return 0;
    if (strcmp(at, "end") == 0) {
        a->moment = (struct tmk_frag_moment){.kind = TMK_FRAG_TIME, .time_ns = a->p->end_ns};
        return 0;
    }
    int status = tmk_moment_answer_ask(&wanted, "at", at, device);
    a->moment = (struct tmk_frag_moment){
        .kind = wanted.asked.kind == TMK_MOMENT_STEP ? TMK_FRAG_STEP : TMK_FRAG_TIME,
        .time_ns = wanted.asked.time_ns,
        .step = wanted.asked.step,
    };
    return status;
}

static int complain_no_segments(const struct tmk_frag_answer *a)
{
    if (a->moment.kind == TMK_FRAG_STEP)
        tmk_say("there is no step %" PRId64 " with memory of a GPU in %s", a->moment.step,
                a->p->file);
    else
        tmk_say("%s: no blocks of a caching allocator on a GPU are known at that moment: there "
                "were none "
                "(host memory is not cached), or the allocator does not report them, as CuPy's and "
                "JAX's. `tidemark report --full` shows what the driver gave",
                a->p->file);
    return TMK_EXIT_FINDING;
}

static int answer_frag(struct tmk_frag_answer *a, bool json)
{
    struct tmk_error err = {0};
    uint64_t chosen;
    int rc = tmk_frag_answer_find(a, &err);
    if (rc < 0) {
        tmk_say("%s: %s", a->p->file, err.text[0] ? err.text : tmk_result_text(rc));
        return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    }
    if (!tmk_frag_chosen(a, &chosen))
        return complain_no_segments(a);
    if (json)
        tmk_frag_json(a);
    else
        tmk_frag_text(a);
    return TMK_EXIT_OK;
}

static int run_frag(const struct tmk_args *args)
{
    struct tmk_run *target = NULL;
    struct tmk_frag_answer a = {0};
    int status = tmk_target_open_one(args, &target, &a.p);
    if (status == 0)
        status = ask_frag(&a, args);
    if (status == 0)
        status = answer_frag(&a, tmk_args_get(args, "json") != NULL);
    tmk_fragmentation_close(a.frag);
    tmk_timeline_close(a.timeline);
    tmk_run_close(target);
    return status;
}

static const struct tmk_option options[] = {
    {"at", 0, "TIME|STEP", NULL, "this moment: 1.5s, 300ms; 12, step:12; end"},
    {"device", 0, "NAME", NULL, "cuda:0 ... (all; json: the one with most reserved)"},
    {"rank", 0, "N", NULL, "this rank (the rank with the largest peak)"},
    {"json", 0, NULL, NULL, "print one JSON object"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "The moment is the last request that failed (OOM). Without one it is the first time that "
    "the most memory was reserved: the allocator had to ask the driver again although it had "
    "free memory. A step stands for its own peak.",
    "Every block lies in a segment that the driver gave. The gaps between blocks are free in "
    "the cache. PyTorch's small pool serves requests up to 1 MiB, its large pool the others; "
    "streams do not share memory. A segment with a block in it cannot go back to the driver: "
    "pinned lists the segments that are at least half free, and the blocks in them. Where no "
    "segments were recorded (attach, other backends), only totals are known.",
    NULL,
};

static const char *const json_keys[] = {
    "reserved, allocated, free\tbytes",
    "largest_free\tthe largest free block",
    "largest_allocatable\tthe largest request that fits without new memory from the driver; "
    "largest_allocatable_new: with it",
    "pinned\teach: segment size free, by: address size category module step tensor stack",
    "moment\toom reserved allocated time step; time_ns step device rank pid request",
    "releasable\twhat empty_cache() would return",
    "totals\tcapacity outside segments blocks free_blocks pools devices",
    NULL,
};

static const char *const examples[] = {
    "tidemark frag train.tmk",
    "how much is cached, and which blocks keep it from being used",
    "tidemark frag train.tmk --at step:12",
    "at the peak of step 12",
    "tidemark frag train.tmk --at end --json",
    "at the end, for a script",
    NULL,
};

const struct tmk_command tmk_cmd_frag = {
    .name = "frag",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Show memory that is reserved but not allocated, and what pins it",
    .usage = "RUN|[HOST:]PID [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .n_targets = 1,
    .is_paged = true,
    .operand = TMK_OPERAND_RUN,
    .json = json_keys,
    .examples = examples,
    .run = run_frag,
};
