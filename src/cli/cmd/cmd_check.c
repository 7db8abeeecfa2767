/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_check.c - `check`: verifies the traces of a run. */
#include <inttypes.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/refused.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/remote/remote.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/progress.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/verify.h"
#include "trace/replay.h"

/* ---- text ---- */

static void print_check_text(const struct tmk_process *p, const struct tmk_trace_verdict *d)
{
    char events[TMK_AMOUNT_BYTES], allocs[TMK_AMOUNT_BYTES], frees[TMK_AMOUNT_BYTES];
    char rows[TMK_AMOUNT_BYTES];
    if (d->n_findings == 0)
        tmk_print(
            stdout,
            _("%s: ok: %s events, %s allocations, %s frees, %s step rows, %" PRIu32 " chunks\n"),
            p->file, tmk_count_text(d->n_events, events), tmk_count_text(d->n_allocs, allocs),
            tmk_count_text(d->n_frees, frees), tmk_count_text(d->n_step_rows, rows), d->n_chunks);
    for (uint64_t i = 0; i < d->n_kept; i++)
        tmk_print(stdout, _("%s: byte %" PRIu64 ": %s\n"), p->file, d->findings[i].offset,
                  d->findings[i].text);
    if (d->n_findings > d->n_kept)
        tmk_print(stdout, _("%s: and %" PRIu64 " findings more\n"), p->file,
                  d->n_findings - d->n_kept);
    for (uint64_t i = 0; i < d->n_notes; i++)
        tmk_print(stdout, _("%s: note: %s\n"), p->file, d->notes[i].text);
}

/* ---- JSON ---- */

static void print_check_json(struct tmk_tree *t, const struct tmk_process *p,
                             const struct tmk_trace_verdict *d)
{
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "file", p->file);
    tmk_tree_bool(t, "ok", d->n_findings == 0);
    tmk_tree_u64(t, "events", d->n_events);
    tmk_tree_u64(t, "allocations", d->n_allocs);
    tmk_tree_u64(t, "frees", d->n_frees);
    tmk_tree_u64(t, "step_rows", d->n_step_rows);
    tmk_tree_u64(t, "chunks", d->n_chunks);
    tmk_tree_u64(t, "contexts_compared", d->n_contexts);
    tmk_tree_u64(t, "checkpoints_compared", d->n_checkpoints);
    tmk_tree_u64(t, "finding_count", d->n_findings);
    tmk_tree_list(t, "findings");
    for (uint64_t i = 0; i < d->n_kept; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_u64(t, "offset", d->findings[i].offset);
        tmk_tree_text(t, "text", d->findings[i].text);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    tmk_tree_list(t, "notes");
    for (uint64_t i = 0; i < d->n_notes; i++)
        tmk_tree_text(t, NULL, d->notes[i].text);
    tmk_tree_end(t);
    tmk_tree_end(t);
}

/* ---- all traces ---- */

static int check_process(struct tmk_process *p, struct tmk_tree *json)
{
    struct tmk_verify *v = NULL;
    struct tmk_error err = {0};
    struct tmk_progress progress;
    tmk_progress_init(&progress, stderr, p->file);
    struct tmk_visitor hears = {.arg = &progress, .progress = tmk_progress_tell};
    int rc = tmk_verify_open(p, &hears, &v, &err);
    tmk_progress_fini(&progress);
    if (rc < 0) {
        tmk_say("%s: %s", p->file, err.text);
        return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    }
    const struct tmk_trace_verdict *d = tmk_verify_verdict(v);
    int status = d->n_findings ? TMK_EXIT_FINDING : TMK_EXIT_OK;
    if (json)
        print_check_json(json, p, d);
    else
        print_check_text(p, d);
    tmk_verify_close(v);
    return status;
}

/* Print a process that was not recorded: a note and no finding, since it takes nothing from the
 * other traces. */
static void print_refused(void *arg, const char *text)
{
    struct tmk_tree *json = arg;
    if (json)
        tmk_tree_text(json, NULL, text);
    else
        printf(_("note: not recorded: %s\n"), text);
}

static int check_run(struct tmk_run *target, const char *folder, bool wants_json)
{
    struct tmk_tree json;
    int status = tmk_run_n_unreadable(target, NULL) ? TMK_EXIT_FINDING : TMK_EXIT_OK;
    tmk_tree_init_json(&json, stdout, 4);
    if (wants_json) {
        tmk_tree_object(&json, NULL);
        tmk_tree_list(&json, "traces");
    }
    for (uint32_t i = 0; i < tmk_run_n_processes(target); i++) {
        int one = check_process(tmk_run_process(target, i), wants_json ? &json : NULL);
        status = one > status ? one : status;
    }
    if (wants_json) {
        tmk_tree_end(&json);
        tmk_tree_u64(&json, "unreadable", tmk_run_n_unreadable(target, NULL));
        tmk_tree_list(&json, "not_recorded");
    }
    tmk_refused_each(folder, target, print_refused, wants_json ? &json : NULL);
    if (wants_json) {
        tmk_tree_end(&json);
        tmk_tree_end(&json);
    }
    return status;
}

static int run_check(const struct tmk_args *args)
{
    struct tmk_run *target = NULL;
    int status = tmk_target_open(args->operands[0], &target);
    if (status != 0)
        return status;
    status = check_run(target, args->operands[0], tmk_args_get(args, "json") != NULL);
    tmk_run_close(target);
    return status;
}

static const struct tmk_option options[] = {
    {"json", 0, NULL, NULL, "print one JSON object"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "check reads every trace completely: checksums, the order of chunks, every event. It "
    "replays the events and compares what is stored twice: the state at the start of each "
    "chunk, step rows, checkpoints and totals. The trace of a killed process is as good as any "
    "other. Processes that were not recorded are listed with the reason.",
    NULL,
};

static const char *const exit_status[] = {
    "0\tall traces are well",
    "1\tsomething is wrong; the rest can be read",
    "2\twrong usage",
    "3\ta trace cannot be read",
    NULL,
};

static const char *const json_keys[] = {
    "traces\teach: file ok events allocations frees step_rows chunks contexts_compared "
    "checkpoints_compared finding_count findings notes",
    "unreadable\thow many traces cannot be read",
    "not_recorded\tprocesses that were not recorded, and why",
    NULL,
};

static const char *const examples[] = {
    "tidemark check train.tmk",
    "one line for each trace: ok, or what is wrong at which byte",
    "tidemark check train.tmk --json | jq .unreadable",
    "for a script",
    NULL,
};

const struct tmk_command tmk_cmd_check = {
    .name = "check",
    .group = TMK_GROUP_FILES,
    .summary = "Verify that the traces of a run are complete",
    .usage = "RUN|[HOST:]PID [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .n_targets = 1,
    .is_paged = true,
    .operand = TMK_OPERAND_RUN,
    .exit_status = exit_status,
    .json = json_keys,
    .examples = examples,
    .run = run_check,
};
