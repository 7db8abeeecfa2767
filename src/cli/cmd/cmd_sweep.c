/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_sweep.c - run a grid of configurations and learn how memory grows with its
 * parameters. */
#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/plot/plot_style.h"
#include "cli/plot/plot_sweep.h"
#include "cli/run/watch_options.h"
#include "cli/sweep/sweep_outputs.h"
#include "cli/sweep/sweep_plan.h"
#include "cli/sweep/sweep_progress_text.h"
#include "cli/sweep/sweep_runner.h"
#include "sweep/results.h"
#include "sweep/survey.h"

/* Returns 1 when a configuration failed for another reason than memory. */
static int status_of(const struct tmk_results *r)
{
    int status = TMK_EXIT_OK;
    for (uint32_t i = 0; i < r->n_cells; i++)
        if (r->cells[i].outcome == TMK_CELL_FAILED || r->cells[i].outcome == TMK_CELL_TIMEOUT)
            status = TMK_EXIT_FINDING;
    return status;
}

/* Draw the pictures. Without gnuplot there are none, which is said and is no fault of the sweep. */
static void draw_pictures(const struct tmk_sweep_plan *p, const struct tmk_survey *g)
{
    struct tmk_plot_style style = {0};
    tmk_plot_sweep(g, TMK_PLOT_BASIC | (p->detailed ? TMK_PLOT_DETAILED : 0), &style);
}

/* Write everything that is made from the results. It can be made again at any time. */
static int write_outputs(const struct tmk_sweep_plan *p)
{
    struct tmk_sweep_outputs_options o = {
        .detailed = p->detailed, .capacity = p->capacity, .console = stdout};
    struct tmk_survey g;
    if (tmk_survey_init(&g, p->results) != 0)
        tmk_die("out of memory");
    tmk_sweep_progress_table(&g);
    int status = tmk_sweep_outputs(&g, &o);
    if (!p->no_pictures)
        draw_pictures(p, &g);
    tmk_survey_fini(&g);
    if (status != 0) {
        tmk_say("not all files could be written; once that is mended: %s", p->resume);
        return status;
    }
    tmk_say("all of it is in %s; begin with index.html", p->results->folder);
    return status_of(p->results);
}

static int run_grid(struct tmk_sweep_plan *p)
{
    if (p->dry_run) {
        tmk_sweep_list(p);
        return TMK_EXIT_OK;
    }
    int status = tmk_sweep_run(p);
    return status == 0 ? write_outputs(p) : status;
}

static int run_sweep_command(const struct tmk_args *args)
{
    struct tmk_sweep_plan p;
    int status = tmk_sweep_plan_init(&p, args);
    if (status == 0)
        status = run_grid(&p);
    tmk_sweep_plan_fini(&p);
    return status;
}

static const struct tmk_option options[] = {
    {"param", 'p', "NAME=V ...", NULL, "values: 8,16 or 1..8 or 0..64..8 or 8..64*2"},
    {"where", 0, "CONDITION ...", NULL, "only configurations for which it holds"},
    {"repeats", 0, "N", NULL, "run each configuration N times (1)"},
    {"timeout", 0, "TIME", NULL, "end a configuration that takes longer, e.g. 10min"},
    {"output", 'o', "DIR", NULL, "the folder for results (sweep-DATE-TIME)"},
    {"resume", 0, "DIR", NULL, "go on with the sweep in DIR"},
    {"retry-failed", 0, NULL, NULL, "those that failed, timed out or were skipped once more"},
    {"retry-oom", 0, NULL, NULL, "those that ran out of memory once more"},
    {"devices", 'd', "LIST", NULL, "one configuration on each of these at once: 0,1 or all"},
    {"jobs", 'j', "N", NULL, "N configurations at once, without devices (1)"},
    {"skip-hopeless", 0, NULL, NULL, "leave out what cannot fit, by what was measured"},
    {"capacity", 0, "SIZE", NULL, "of the card that is asked about (the device's own)"},
    {"detailed", 0, NULL, NULL, "stages, components and operations in files of their own"},
    {"dry-run", 'n', NULL, NULL, "list the configurations in order, run none"},
    {"keep-traces", 0, "WHICH", "all|failed|none", "keep these runs' traces (all)"},
    {"no-pictures", 0, NULL, NULL, "files and tables only"},
    {"redact", 0, "WORD ...", NULL, "never write WORD; env:NAME: what that variable holds"},
    {"title", 0, "TEXT", NULL, "for pictures and pages (the command)"},
    TMK_WATCH_OPTIONS,
};

static const char *const description[] = {
    "Values are words or numbers; 1..8 is 1, 2 ... 8, with 0..64..8 in steps of 8 and with "
    "8..64*2 each twice the one before. {NAME} in the command is the parameter's value, and "
    "so is TIDEMARK_NAME (in capitals) in its environment; {{ is a brace. Conditions know "
    "parameters, numbers, 'texts', + - * / %, comparisons, and, or, not and brackets.",
    "Each configuration is run as `tidemark run` would, its trace in DIR/runs, what it "
    "prints in DIR/logs. One that runs out of memory, fails or takes too long is noted as "
    "such, and the next begins; none of its processes is left behind. The smallest comes "
    "first, then the corners of the grid, then what lies between, the largest last.",
    "What has ended is in DIR/sweep.jsonl at once. After ^C, a crash or kill -9 the same "
    "command with the same -o, or --resume DIR, goes on from there.",
    NULL,
};

static const char *const exit_status[] = {
    "0 when all configurations ended well or ran out of memory, 1 when one "
    "failed otherwise, 126 or 127 when the command cannot be run, 130 after ^C.",
    NULL,
};

static const char *const examples[] = {
    "tidemark sweep -p seq=128..512*2 -p b=8,16 -- ./train --seq {seq} --batch {b}",
    "six configurations, one after the other",
    "tidemark sweep -o s -p b=8,16 -p m=1..16*2 --where 'm <= b' -- ./train.sh",
    "nine, of ten; train.sh reads TIDEMARK_B and TIDEMARK_M",
    "tidemark sweep --devices all --skip-hopeless -p b=1..256*2 -- ./train {b}",
    "one on each card at once; what cannot fit is not tried",
    "tidemark sweep --resume s --retry-failed",
    "go on with the sweep in s, and try again what failed",
    NULL,
};

const struct tmk_command tmk_cmd_sweep = {
    .name = "sweep",
    .group = TMK_GROUP_RECORD,
    .summary = "Run a grid of configurations and learn how memory grows",
    .usage = "--param NAME=V ... [--where CONDITION] [--repeats N] [--timeout TIME] [-o DIR] "
             "[--devices LIST | --jobs N] [--skip-hopeless] [--capacity SIZE] [--detailed] "
             "[--dry-run] -- PROGRAM [ARGUMENT...] | --resume DIR [--retry-failed]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 0,
    .max_operands = 1u << 30,
    .operand = TMK_OPERAND_PROGRAM,
    .exit_status = exit_status,
    .examples = examples,
    .run = run_sweep_command,
};
