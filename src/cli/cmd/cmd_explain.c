/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_explain.c - why it ran out of memory, or nearly did, and what would have helped. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/answers/explain_text.h"
#include "cli/cmd/commands.h"
#include "cli/front/target.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/print.h"
#include "kit/progress.h"

struct part {
    struct tmk_process *p;
    struct tmk_explanation *explanation;
};

struct answer {
    struct tmk_run *run;
    struct part *parts; /* of the processes asked for */
    uint32_t n;
};

static int choose(struct answer *a, const char *rank)
{
    a->n = rank ? 1 : tmk_run_n_processes(a->run);
    a->parts = tmk_xcalloc(a->n, sizeof *a->parts);
    for (uint32_t i = 0; i < a->n; i++)
        a->parts[i].p = rank ? tmk_target_pick(a->run, rank) : tmk_run_process(a->run, i);
    return a->n > 0 && !a->parts[0].p ? TMK_EXIT_USAGE : 0;
}

static int explain_all(struct answer *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct tmk_error err = {0};
        struct tmk_progress progress;
        tmk_progress_init(&progress, stderr, a->parts[i].p->file);
        struct tmk_visitor watcher = {.arg = &progress, .progress = tmk_progress_tell};
        int rc = tmk_explanation_open(a->parts[i].p, &watcher, &a->parts[i].explanation, &err);
        tmk_progress_fini(&progress);
        if (rc == 0)
            continue;
        tmk_say("%s: %s", a->parts[i].p->file, err.text[0] ? err.text : tmk_result_text(rc));
        return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    }
    return 0;
}

/* ---- printing ---- */

static void add_cases(const struct answer *a, struct tmk_json *j, const char *key, bool near)
{
    tmk_json_array(j, key);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint64_t k = 0; k < tmk_explanation_n(a->parts[i].explanation); k++) {
            const struct tmk_case *c = tmk_explanation_get(a->parts[i].explanation, k);
            if ((c->scene.kind != TMK_SCENE_OOM) == near)
                tmk_explain_json(c, j);
        }
    tmk_json_end(j);
}

static uint64_t n_ooms(const struct answer *a)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < a->n; i++)
        n += tmk_explanation_n_ooms(a->parts[i].explanation);
    return n;
}

static void print_json(const struct answer *a)
{
    struct tmk_json j;
    tmk_json_init(&j, stdout, 4);
    tmk_json_object(&j, NULL);
    add_cases(a, &j, "ooms", false);
    add_cases(a, &j, "near_misses", true);
    tmk_json_u64(&j, "n_ooms", n_ooms(a));
    tmk_json_end(&j);
}

/* The same line of code ran out again, for the same reason: said once. */
static bool is_again(const struct tmk_case *c, const struct tmk_case *before)
{
    return before && c->scene.kind == TMK_SCENE_OOM && before->scene.kind == TMK_SCENE_OOM &&
           c->scene.device == before->scene.device && c->scene.has_site == before->scene.has_site &&
           c->scene.site.line == before->scene.site.line &&
           c->scene.site.file == before->scene.site.file &&
           c->verdict.rows[0].cause == before->verdict.rows[0].cause;
}

static void print_process(const struct answer *a, uint32_t i, struct tmk_sheet *sheet)
{
    const struct tmk_explanation *x = a->parts[i].explanation;
    const struct tmk_case *last = NULL;
    char label[40], count[TMK_AMOUNT_BYTES];
    uint64_t n_shown = 0;
    const char *process = a->n > 1 ? tmk_process_label(a->parts[i].p, label) : NULL;
    for (uint64_t k = 0; k < tmk_explanation_n(x); k++) {
        const struct tmk_case *c = tmk_explanation_get(x, k);
        if (is_again(c, last))
            continue;
        tmk_explain_sheet(c, process, sheet);
        n_shown += c->scene.kind == TMK_SCENE_OOM;
        last = c;
    }
    uint64_t more = tmk_explanation_n_ooms(x) - n_shown;
    if (more > 0) {
        fputc('\n', sheet->out);
        tmk_sheet_text(sheet, "%s more like these came later; --json has the first and the last.",
                       tmk_count_text(more, count));
    }
}

static void print_text(const struct answer *a)
{
    struct tmk_sheet sheet = {.out = stdout, .colour = tmk_wants_colour(stdout)};
    for (uint32_t i = 0; i < a->n; i++)
        print_process(a, i, &sheet);
    if (sheet.is_begun)
        return;
    tmk_print(stdout, "%s never ran out of memory, nor came near it.\n", tmk_run_path(a->run));
}

static int answer(struct answer *a, const struct tmk_args *args)
{
    int status = choose(a, tmk_args_get(args, "rank"));
    if (status == 0)
        status = explain_all(a);
    if (status != 0)
        return status;
    if (tmk_args_get(args, "json"))
        print_json(a);
    else
        print_text(a);
    return n_ooms(a) > 0 ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

static int run(const struct tmk_args *args)
{
    struct answer a = {0};
    int status = tmk_target_open(args->operands[0], &a.run);
    if (status == 0)
        status = answer(&a, args);
    for (uint32_t i = 0; a.parts && i < a.n; i++)
        tmk_explanation_close(a.parts[i].explanation);
    free(a.parts);
    tmk_run_close(a.run);
    return status;
}

static const struct tmk_option options[] = {
    {"rank", 0, "N", NULL, "of this rank alone (all of them)"},
    {"json", 0, NULL, NULL, "one JSON object"},
};

static const char notes[] =
    "Of each allocation that was refused: what happened, the cause, the evidence in\n"
    "bytes, and what would have helped, the best first. A job that never ran out but\n"
    "came near it (the driver refused and torch made room, or 95 % of the card were\n"
    "in use) is explained the same way.\n"
    "\n"
    "Causes: demand (it needs more than there is), fragmentation (there was room, in\n"
    "pieces), leak (more is kept with every step), outlier (this step is not like\n"
    "the others), other_process (others are on the card), settings (the allocator's\n"
    "settings waste it). docs/explain.md has the rules.\n"
    "\n"
    "A fix is replayed (the allocator's calls were run again with it), measured\n"
    "(these bytes were there) or an estimate (computed by a rule that it tells).\n"
    "\n"
    "The exit status is 1 when it ran out.\n"
    "\n"
    "json: {\"ooms\": [{\"time_ns\", \"step\", \"request_bytes\", \"cause\", \"device\", "
    "\"rank\",\n"
    "\"pid\", \"evidence\": {...}, \"fixes\": [{\"text\", \"saves_bytes\", \"proof\", \"kind\",\n"
    "\"conf\", \"avoids\", \"factor\"}]}], \"near_misses\": [...], \"n_ooms\"}.\n";

static const char *const examples[] = {
    "tidemark explain a.tmk",
    "why it ran out of memory, and what to do",
    "tidemark explain a.tmk --json",
    "the same for a script",
    "tidemark explain 4711",
    "of a watched process that caught the error and runs on",
    NULL,
};

const struct tmk_command tmk_cmd_explain = {
    .name = "explain",
    .summary = "Say why it ran out of memory, or nearly did, and what would have helped",
    .usage = "RUN|PID [--rank N] [--json]",
    .notes = notes,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .operand = TMK_OPERAND_RUN,
    .examples = examples,
    .run = run,
};
