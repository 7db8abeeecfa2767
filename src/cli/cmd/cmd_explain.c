/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_explain.c - why it ran out of memory, or nearly did, and what would have helped. */
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/explain_answer.h"
#include "cli/answers/post_mortem.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/ranks_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "kit/progress.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/imbalance/imbalance.h"
#include "passes/imbalance/rank_facts.h"
#include "passes/oom/explain.h"
#include "trace/replay.h"

/* An explanation replays a process several times and stays in memory until all is written. */
enum { MOST_EXPLAINED = 16 };

static void add_explained(struct tmk_explain_answer *a, uint32_t row)
{
    a->processes[a->n++].p = tmk_run_process(a->run, row);
}

/* OOMs in order of time; those of one moment, in order of rows. */
static bool ran_out_before(const struct tmk_imbalance *b, uint32_t row, uint32_t other)
{
    uint64_t at = b->rows[row].facts.oom_ns;
    uint64_t other_at = b->rows[other].facts.oom_ns;
    return at < other_at || (at == other_at && row < other);
}

/* Returns the row with the earliest OOM after `after`; TMK_RANK_NONE: there is none. */
static uint32_t next_explained_oom(const struct tmk_imbalance *b, uint32_t after)
{
    uint32_t best = TMK_RANK_NONE;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        bool is_later = after == TMK_RANK_NONE || ran_out_before(b, after, i);
        if (b->rows[i].facts.has_oom && is_later &&
            (best == TMK_RANK_NONE || ran_out_before(b, i, best)))
            best = i;
    }
    return best;
}

/* Chooses the processes that ran out of memory, or else the one that was nearest to it. */
static void choose_some(struct tmk_explain_answer *a)
{
    uint32_t row = TMK_RANK_NONE;
    while (a->n < MOST_EXPLAINED && (row = next_explained_oom(a->ranks, row)) != TMK_RANK_NONE)
        add_explained(a, row);
    if (a->n == 0)
        add_explained(a, a->ranks->is_judged ? a->ranks->highest : 0);
}

static int choose_explained(struct tmk_explain_answer *a, const char *rank)
{
    uint32_t n = tmk_run_n_processes(a->run);
    a->processes = tmk_xcalloc(MOST_EXPLAINED, sizeof *a->processes);
    if (rank) {
        a->processes[a->n++].p = tmk_target_pick(a->run, rank);
        return a->processes[0].p ? 0 : TMK_EXIT_USAGE;
    }
    int status = n > 1 ? tmk_ranks_answer(a->run, &a->ranks) : 0;
    if (status != 0)
        return status;
    if (n > MOST_EXPLAINED)
        choose_some(a);
    for (uint32_t i = 0; n <= MOST_EXPLAINED && i < n; i++)
        add_explained(a, i);
    return 0;
}

static int explain_processes(struct tmk_explain_answer *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct tmk_error err = {0};
        struct tmk_progress progress;
        tmk_progress_init(&progress, stderr, a->processes[i].p->file);
        struct tmk_visitor watcher = {.arg = &progress, .progress = tmk_progress_tell};
        int rc =
            tmk_explanation_open(a->processes[i].p, &watcher, &a->processes[i].explanation, &err);
        tmk_progress_fini(&progress);
        if (rc == 0)
            continue;
        tmk_say("%s: %s", a->processes[i].p->file, err.text[0] ? err.text : tmk_result_text(rc));
        return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    }
    return 0;
}

static int answer_explain(struct tmk_explain_answer *a, const struct tmk_args *args)
{
    int status = choose_explained(a, tmk_args_get(args, "rank"));
    if (status == 0)
        status = explain_processes(a);
    if (status != 0)
        return status;
    if (tmk_args_get(args, "json")) {
        struct tmk_tree t;
        tmk_tree_init_json(&t, stdout, 4);
        tmk_explain_json(a, &t, NULL);
    } else {
        struct tmk_sheet sheet = tmk_sheet_on(stdout);
        tmk_explain_text(a, &sheet);
    }
    return tmk_explain_n_ooms(a) > 0 ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

/* Print what `run` says at once, of all processes. */
static int answer_post_mortem(struct tmk_run *run)
{
    struct tmk_process_answer f;
    bool has_oom = tmk_process_answer_init(&f, tmk_post_mortem_subject(run), 1) == 0 &&
                   tmk_post_mortem_print(stdout, run, &f);
    tmk_process_answer_fini(&f);
    if (!has_oom)
        tmk_say("%s: no request failed", tmk_run_path(run));
    return has_oom ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

static int run_explain(const struct tmk_args *args)
{
    bool is_short = tmk_args_get(args, "post-mortem") != NULL;
    if (is_short && (tmk_args_get(args, "json") || tmk_args_get(args, "rank"))) {
        tmk_say("--post-mortem is text about all processes: leave --json and --rank out");
        return TMK_EXIT_USAGE;
    }
    struct tmk_explain_answer a = {0};
    int status = tmk_target_open(args->operands[0], &a.run);
    if (status == 0)
        status = is_short ? answer_post_mortem(a.run) : answer_explain(&a, args);
    for (uint32_t i = 0; a.processes && i < a.n; i++)
        tmk_explanation_close(a.processes[i].explanation);
    free(a.processes);
    tmk_imbalance_close(a.ranks);
    tmk_run_close(a.run);
    return status;
}

static const struct tmk_option options[] = {
    {"rank", 0, "N", NULL, "explain this rank only (all ranks)"},
    {"json", 0, NULL, NULL, "print one JSON object"},
    {"post-mortem", 0, NULL, NULL, "print only what `tidemark run` prints after an OOM"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "For each request that failed: what happened, the cause, the evidence in bytes, and what "
    "would have helped, best first. A job that came near an OOM is explained the same way: the "
    "driver failed a request and torch made room, or 95 % of the GPU was in use.",
    "demand\tthe job needs more memory than there is",
    "fragmentation\tenough memory was free, in pieces that are too small",
    "leak\tmore is kept after every step",
    "outlier\tthis step needs more than the others",
    "other_process\tother processes use the GPU",
    "settings\tthe allocator's settings waste memory",
    "The proof of a fix is replay (the allocator's calls were replayed with it), measured "
    "(these bytes were there) or estimate (computed by the rule that it names). "
    "docs/explain.md has the rules.",
    NULL,
};

static const char *const json_keys[] = {
    "ooms\teach: time_ns step request_bytes cause device rank pid source stage module site "
    "(file line function) evidence, fixes",
    "fixes\tbest first: text saves_bytes proof kind conf avoids factor",
    "near_misses\tthe same, of requests that nearly failed",
    "n_ooms\thow many requests failed",
    "ranks\tas in `tidemark report --json`",
    NULL,
};

static const char *const exit_status[] = {
    "0\tno OOM", "1\tthe run ran out of memory", "2\twrong usage", "3\ta trace that cannot be read",
    NULL,
};

static const char *const examples[] = {
    "tidemark explain train.tmk",
    "the cause of the OOM, its evidence, and replayed fixes",
    "tidemark explain train.tmk --json",
    "the same for a script",
    "tidemark explain 4711",
    "a running process that caught the error",
    NULL,
};

const struct tmk_command tmk_cmd_explain = {
    .name = "explain",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Explain why a run ran out of memory and which fixes would help",
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
    .exit_status = exit_status,
    .examples = examples,
    .run = run_explain,
};
