/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_peak.c - what was alive at the high-water mark, or at a time or step. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/moment_answer.h"
#include "cli/answers/peak_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/remote/remote.h"
#include "kit/amount.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/peak.h"

enum { ROWS_USUAL = 20 };

/* ---- the question ---- */

/* Read --top: a number of rows; 0 and "all" mean all of them. False after a message. */
static bool read_top(struct tmk_peak_answer *a, const char *text)
{
    int64_t n = ROWS_USUAL;
    if (text && strcmp(text, "all") == 0)
        n = 0;
    else if (text && (tmk_integer_parse(text, &n) < 0 || n < 0)) {
        tmk_say("--top: '%s' is neither a number of rows nor 'all'", text);
        return false;
    }
    a->top = n > 0 ? (uint64_t)n : UINT64_MAX - 1;
    return true;
}

static int ask_peak(struct tmk_peak_answer *a, const struct tmk_args *args)
{
    const char *by = tmk_args_get(args, "by");
    a->by_name = by ? by : "category";
    if (!tmk_by_find(a->by_name, &a->by))
        return TMK_EXIT_USAGE; /* not one of the option's choices: the parser has said so */
    if (!read_top(a, tmk_args_get(args, "top")))
        return TMK_EXIT_USAGE;
    a->is_folded = !tmk_args_get(args, "full");
    a->run = args->operands[0];
    return tmk_moment_answer_ask(&a->moment, "at", tmk_args_get(args, "at"),
                                 tmk_args_get(args, "device"));
}

static int answer_peak(struct tmk_peak_answer *a, bool json)
{
    struct tmk_error err = {0};
    int status = tmk_moment_answer_sweep(&a->moment);
    if (status != 0)
        return status;
    if (tmk_peak_group(a->moment.peak, a->by, &a->rows, &a->n_rows, &err) < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    if (a->moment.detail_lost)
        tmk_moment_answer_say_lost(&a->moment);
    if (json)
        tmk_peak_json(a);
    else
        tmk_peak_text(a);
    return TMK_EXIT_OK;
}

static int run_peak(const struct tmk_args *args)
{
    struct tmk_run *target = NULL;
    struct tmk_peak_answer a = {0};
    int status = tmk_target_open_one(args, &target, &a.moment.p);
    if (status == 0)
        status = ask_peak(&a, args);
    if (status == 0)
        status = answer_peak(&a, tmk_args_get(args, "json") != NULL);
    tmk_moment_answer_fini(&a.moment);
    tmk_run_close(target);
    return status;
}

static const struct tmk_option options[] = {
    {"at", 0, "TIME|STEP", NULL, "this moment instead: 1.5s, 300ms; 12, step:12"},
    {"by", 0, "KEY", "category|module|component|stage|step|line|stack|tensor",
     "category (default) or another key, see below"},
    {"top", 0, "N", NULL, "show N rows (20), the others as one; 0 or all: every row"},
    {"full", 0, NULL, NULL, "--by module: show each module that repeats"},
    {"device", 0, "NAME", NULL, "cpu, cuda:0 ... (the device with the largest peak)"},
    {"rank", 0, "N", NULL, "this rank (the rank with the largest peak)"},
    {"json", 0, NULL, NULL, "print one JSON object"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "A step stands for its own peak. Times count from the start of the run.",
    "category\tparameter, gradient, optimizer_state, activation, input ...",
    "module\tthe nn.Module that allocated the block, as a tree; each has the sum of what is in it",
    "component\tattention, mlp, embedding, normalization, lora ...",
    "stage\tforward, backward, optimizer or another stage",
    "step\tthe training step in which the block was allocated",
    "line\tyour line: the innermost frame of your own code, with its source",
    "stack\tthe allocation site, then its callers after '<'",
    "tensor\tthe name of the tensor, where it has one",
    "Modules that repeat, such as the layers of a transformer, are one row: \"layers.* x32\" is "
    "the "
    "sum of 32 modules whose inner modules are alike; the column each says what one has.",
    "docs/owners.md says how a block gets these keys. The file that TIDEMARK_COMPONENTS names "
    "adds components.",
    NULL,
};

static const char *const json_keys[] = {
    "time_ns, step\tthe moment",
    "allocated, reserved\tbytes at that moment",
    "device, rank, pid\twhere",
    "by\ta list of key bytes blocks, all of them, largest first; with --by stack also stack: all "
    "frames, innermost first; with --by line also file line function source",
    "kept\tnull, or the moment that `by` describes (time_ns step allocated) when the trace no "
    "longer has the details of the peak (--max-size)",
    NULL,
};

static const char *const examples[] = {
    "tidemark peak train.tmk",
    "what filled the memory at the peak, by category",
    "tidemark peak train.tmk --by line",
    "the same by the lines of your code that allocated it",
    "tidemark peak train.tmk --by module --at step:12",
    "what filled it at the peak of step 12, by module",
    "tidemark peak 4711 --json",
    "a running process, for a script",
    NULL,
};

const struct tmk_command tmk_cmd_peak = {
    .name = "peak",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Show what was live at the peak of memory",
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
    .run = run_peak,
};
