/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_diff.c - two runs, or two moments of one, compared; gates for CI. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/diff_answer.h"
#include "cli/answers/moment_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/output_file.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "model/run.h"
#include "passes/diff/diff.h"
#include "passes/diff/diff_steps.h"
#include "passes/group.h"
#include "trace/reader.h"
#include "trace/state.h"

/* ---- which processes ---- */

static bool has_ranks(struct tmk_run *run)
{
    return tmk_run_process(run, 0)->rank >= 0 ||
           tmk_run_process(run, tmk_run_n_processes(run) - 1)->rank >= 0;
}

/* Returns the process of a rank; where there are several, the one with the largest peak. NULL:
 * there is none. */
static struct tmk_process *find_rank(struct tmk_run *run, int64_t rank)
{
    struct tmk_process *best = NULL;
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++) {
        struct tmk_process *p = tmk_run_process(run, i);
        if (p->rank == rank && (!best || tmk_process_peak(p) > tmk_process_peak(best)))
            best = p;
    }
    return best;
}

static void add_pair(struct tmk_diff_answer *c, struct tmk_process *a, struct tmk_process *b)
{
    c->pairs[c->n_pairs++] = (struct tmk_diff_pair){.sides = {{.p = a}, {.p = b}}};
}

/* Pair each rank of `in` with the same rank of `of`. Says which ranks that one lacks. */
static void pair_ranks(struct tmk_diff_answer *c, struct tmk_run *in, struct tmk_run *of, bool adds,
                       const char *other)
{
    int64_t last = -1;
    for (uint32_t i = 0; i < tmk_run_n_processes(in); i++) {
        int64_t rank = tmk_run_process(in, i)->rank; /* they are in order */
        if (rank < 0 || rank == last)
            continue;
        last = rank;
        struct tmk_process *b = find_rank(of, rank);
        if (!b)
            tmk_say("rank %" PRId64 " is not in %s: left out", rank, other);
        else if (adds)
            add_pair(c, find_rank(in, rank), b);
    }
}

static int find_pairs(struct tmk_diff_answer *c, struct tmk_run *const runs[2], const char *rank)
{
    c->pairs = tmk_xcalloc(tmk_run_n_processes(runs[0]) + 1, sizeof *c->pairs);
    if (!rank && has_ranks(runs[0]) && has_ranks(runs[1])) {
        pair_ranks(c, runs[0], runs[1], true, c->paths[1]);
        pair_ranks(c, runs[1], runs[0], false, c->paths[0]);
        if (c->n_pairs == 0)
            tmk_say("%s and %s have no rank in common", c->paths[0], c->paths[1]);
        return c->n_pairs ? 0 : TMK_EXIT_USAGE;
    }
    struct tmk_process *a = tmk_target_pick(runs[0], rank);
    struct tmk_process *b = a ? runs[0] == runs[1] ? a : tmk_target_pick(runs[1], rank) : NULL;
    if (!a || !b)
        return TMK_EXIT_USAGE;
    add_pair(c, a, b);
    return 0;
}

/* ---- which moments ---- */

struct question {
    const char *option[2], *at[2]; /* the option that names each one's moment; NULL: the peak */
    const char *device;
};

static int ask_moments(struct question *q, const struct tmk_args *args)
{
    const char *at = tmk_args_get(args, "at");
    const char *from = tmk_args_get(args, "from"), *to = tmk_args_get(args, "to");
    *q = (struct question){.option = {"at", "at"}, .at = {at, at}};
    q->device = tmk_args_get(args, "device");
    if (at && (from || to)) {
        tmk_say("--at is the moment of both; leave out --from and --to");
        return TMK_EXIT_USAGE;
    }
    if (from || to) {
        *q = (struct question){.option = {"from", "to"}, .at = {from, to}, .device = q->device};
    } else if (args->n_operands == 1) {
        tmk_say("of one run two moments can be compared: tidemark diff RUN --from 10 --to 200");
        return TMK_EXIT_USAGE;
    }
    return 0;
}

static int ask_pairs(struct tmk_diff_answer *c, const struct question *q)
{
    for (uint32_t i = 0; i < c->n_pairs; i++)
        for (unsigned side = 0; side < 2; side++) {
            struct tmk_moment_answer *l = &c->pairs[i].sides[side];
            int status = tmk_moment_answer_ask(l, q->option[side], q->at[side], q->device);
            if (status != 0)
                return status;
            c->pairs[i].known[side] = l->exact != NULL;
            c->pairs[i].bytes[side] = l->exact ? l->exact->peak_bytes : 0;
        }
    return 0;
}

/* Choose the pair that has changed most. */
static struct tmk_diff_pair *choose_shown(const struct tmk_diff_answer *c)
{
    struct tmk_diff_pair *best = c->pairs;
    for (uint32_t i = 1; i < c->n_pairs; i++) {
        int64_t change = tmk_diff_change(c->pairs[i].bytes[0], c->pairs[i].bytes[1]);
        int64_t most = tmk_diff_change(best->bytes[0], best->bytes[1]);
        if (llabs(change) > llabs(most))
            best = &c->pairs[i];
    }
    return best;
}

/* ---- comparing ---- */

static void forget_diff(struct tmk_diff_answer *c)
{
    c->diff = tmk_diff_close(c->diff);
    c->steps = tmk_diff_steps_close(c->steps);
    if (c->shown)
        for (unsigned side = 0; side < 2; side++)
            tmk_moment_answer_fini(&c->shown->sides[side]);
}

/* Look at both moments of a pair and compare them: it is the one shown from now on. */
static int compare_pair(struct tmk_diff_answer *c, struct tmk_diff_pair *pair)
{
    struct tmk_error err = {0};
    forget_diff(c);
    c->shown = pair;
    for (unsigned side = 0; side < 2; side++) {
        int status = tmk_moment_answer_sweep(&pair->sides[side]);
        if (status != 0)
            return status;
        if (pair->sides[side].detail_lost)
            tmk_moment_answer_say_lost(&pair->sides[side]);
    }
    struct tmk_peak *peaks[2] = {pair->sides[0].peak, pair->sides[1].peak};
    const struct tmk_process *processes[2] = {pair->sides[0].p, pair->sides[1].p};
    uint16_t devices[2] = {tmk_moment_answer_device(&pair->sides[0]),
                           tmk_moment_answer_device(&pair->sides[1])};
    int rc = tmk_diff_open(peaks, c->by, &c->diff, &err);
    if (rc == 0)
        rc = tmk_diff_steps_open(processes, devices, &c->steps);
    if (rc < 0)
        tmk_say("%s", err.text[0] ? err.text : tmk_result_text(rc));
    return rc < 0 ? TMK_EXIT_FINDING : 0;
}

struct tmk_two tmk_diff_answer_reserved(const struct tmk_diff_answer *c)
{
    struct tmk_two two = {0};
    for (unsigned side = 0; side < 2; side++)
        two.known[side] = tmk_moment_answer_reserved(&c->shown->sides[side], &two.bytes[side]);
    return two;
}

struct tmk_two tmk_diff_answer_most_reserved(const struct tmk_diff_answer *c)
{
    struct tmk_two two = {0};
    for (unsigned side = 0; side < 2; side++) {
        const struct tmk_moment_answer *l = &c->shown->sides[side];
        for (uint64_t i = 0; i < tmk_reader_n_step_rows(l->p->reader); i++) {
            const struct tmk_step_row *row = tmk_reader_step_row(l->p->reader, i);
            if (row->device != tmk_moment_answer_device(l) || !row->has_reserved)
                continue;
            two.known[side] = true;
            if (row->peak_reserved_bytes > two.bytes[side])
                two.bytes[side] = row->peak_reserved_bytes;
        }
    }
    return two;
}

int64_t tmk_diff_answer_unexplained(const struct tmk_diff_answer *c)
{
    int64_t rest[2];
    for (unsigned side = 0; side < 2; side++)
        rest[side] = tmk_diff_change(tmk_diff_bytes(c->diff, side),
                                     tmk_moment_answer_bytes(&c->shown->sides[side]));
    int64_t change;
    return __builtin_sub_overflow(rest[1], rest[0], &change) ? INT64_MAX : change;
}

double tmk_diff_answer_attributed(const struct tmk_diff_answer *c)
{
    int64_t rest = tmk_diff_answer_unexplained(c);
    return tmk_diff_attributed(c->diff, rest < 0 ? 0 - (uint64_t)rest : (uint64_t)rest);
}

/* ---- all pairs ---- */

/* Compare all pairs, because gates hold for every rank; last the pair that has changed most, which
 * is shown. */
static int compare_all(struct tmk_diff_answer *c)
{
    struct tmk_diff_pair *shown = choose_shown(c);
    int status = 0;
    for (uint32_t i = 0; i < c->n_pairs && status == 0 && c->n_verdicts; i++)
        if (&c->pairs[i] != shown && (status = compare_pair(c, &c->pairs[i])) == 0)
            status = tmk_diff_answer_judge(c);
    if (status == 0)
        status = compare_pair(c, shown);
    return status ? status : tmk_diff_answer_judge(c);
}

static int say_failed(const struct tmk_diff_answer *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->n_verdicts; i++)
        n += !c->verdicts[i].passed;
    if (n > 0)
        tmk_say("%u of %u gate%s failed", n, c->n_verdicts, c->n_verdicts == 1 ? "" : "s");
    return n ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

/* ---- the command ---- */

static int answer_diff(struct tmk_diff_answer *c, struct tmk_run *const runs[2],
                       const struct tmk_args *args, const struct question *q)
{
    const char *junit = tmk_args_get(args, "junit");
    int status = find_pairs(c, runs, tmk_args_get(args, "rank"));
    if (status == 0)
        status = ask_pairs(c, q);
    if (status == 0)
        status = compare_all(c);
    if (status != 0)
        return status;
    if (tmk_args_get(args, "json"))
        tmk_diff_json(c);
    else
        tmk_diff_text(c);
    int failed = say_failed(c);
    status = junit ? tmk_diff_junit(c, junit) : 0;
    return failed ? failed : status;
}

static int run_diff(const struct tmk_args *args)
{
    const char *by = tmk_args_get(args, "by"), *junit = tmk_args_get(args, "junit");
    struct tmk_diff_answer c = {.paths = {args->operands[0], args->operands[args->n_operands - 1]},
                                .by_name = by ? by : "category"};
    struct question q;
    struct tmk_run *runs[2] = {NULL, NULL};
    int status = tmk_by_find(c.by_name, &c.by) ? ask_moments(&q, args) : TMK_EXIT_USAGE;
    if (status == 0)
        status = tmk_diff_answer_gates(&c, args);
    if (status == 0 && junit)
        status = tmk_output_file_check(junit);
    if (status == 0)
        status = tmk_target_open(args->operands[0], &runs[0]);
    if (status == 0 && args->n_operands == 2)
        status = tmk_target_open(args->operands[1], &runs[1]);
    if (status == 0) {
        c.is_peak[0] = !q.at[0];
        c.is_peak[1] = !q.at[1];
        status = answer_diff(&c, (struct tmk_run *const[]){runs[0], runs[1] ? runs[1] : runs[0]},
                             args, &q);
    }
    forget_diff(&c);
    for (unsigned i = 0; i < c.n_verdicts; i++)
        free(c.verdicts[i].note);
    free(c.pairs);
    tmk_run_close(runs[0]);
    tmk_run_close(runs[1]);
    return status;
}

static const struct tmk_option options[] = {
    {"by", 0, "KEY", "category|module|component|stage|stack|tensor",
     "category (default) or another key, as in `tidemark peak`"},
    {"device", 0, "NAME", NULL, "cpu, cuda:0 ... (the device with the largest peak)"},
    {"rank", 0, "N", NULL, "this rank only (all, with details of one)"},
    {"json", 0, NULL, NULL, "print one JSON object"},
    TMK_REMOTE_OPTION,
    TMK_OPTION_HEADING("moments"),
    {"at", 0, "TIME|STEP", NULL, "this moment instead of the peaks: 1.5s; 12, step:12"},
    {"from", 0, "TIME|STEP", NULL, "the moment of A"},
    {"to", 0, "TIME|STEP", NULL, "the moment of B, or the second one of A"},
    TMK_OPTION_HEADING("gates"),
    {"fail-if", 0, "GATE ...", NULL, "exit with 1 if B has that much more; repeatable"},
    {"junit", 0, "FILE", NULL, "write the gates as JUnit XML, one test case each"},
};

static const char *const description[] = {
    "Two runs are compared at their peaks, rank by rank; details are of the rank that changed "
    "most. --at compares the same step (at its own peak) or time. --from and --to name the "
    "moments of A and B or, with A alone, two moments of one run.",
    "The output has the bytes allocated and reserved, why they changed, the change by KEY, and "
    "the peaks of the steps. The causes add up to the change exactly. Blocks are the same if "
    "category and name match (parameters, gradients, optimizer state), or category, module and "
    "stack. Lines may have moved. Prefixes of DDP, FSDP, torch.compile and peft are ignored in "
    "names if more match that way. docs/diff.md has the rules.",
    "A GATE is a name, '>' or '>=', and a limit: a percentage of A, or a size. 'peak>5%' fails "
    "if B has over 5 % more than A. A value that is not known fails. With several ranks each "
    "must pass.",
    "peak, allocated\tbytes allocated at the compared moments",
    "reserved\tthe most of the run (with --at, --from, --to: at that moment)",
    "activation, gradient ...\tbytes of that category",
    "leak\twhat B leaks, in bytes a step; a size only",
    NULL,
};

static const char *const json_keys[] = {
    "peak\ta b change",
    "by\teach: key a b change a_blocks b_blocks",
    "gates\teach: expr passed a b text",
    "reserved, most_reserved\ta b change",
    "attributed\tthe part of the change that the causes explain, 0 to 1",
    "split, causes, steps\twhy it changed; docs/diff.md has the keys",
    "ranks\tthe same for each rank",
    "a, b\teach: run rank pid device step time_ns",
    NULL,
};

static const char *const exit_status[] = {
    "0\tevery gate passed",
    "1\ta gate failed",
    "2\twrong usage",
    "3\ta trace that cannot be read",
    NULL,
};

static const char *const examples[] = {
    "tidemark diff before.tmk after.tmk",
    "what changed, and why",
    "tidemark diff main.tmk branch.tmk --fail-if 'peak>5%' --fail-if 'leak>0'",
    "fail a pull request that needs 5 % more memory, or leaks",
    "tidemark diff main.tmk branch.tmk --fail-if 'peak>64MiB' --junit memory.xml",
    "the same for a CI that shows test results",
    "tidemark diff train.tmk --from 10 --to 500 --by stack",
    "what grew between two steps of one run, by line",
    NULL,
};

const struct tmk_command tmk_cmd_diff = {
    .name = "diff",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Compare two runs, or two moments of one run",
    .usage = "A [B] [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 2,
    .n_targets = 2,
    .is_paged = true,
    .operand = TMK_OPERAND_RUN,
    .json = json_keys,
    .exit_status = exit_status,
    .examples = examples,
    .run = run_diff,
};
