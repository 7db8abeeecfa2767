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

/* Draw the pictures. Without Pango there are none, which is said and is no fault of the sweep. */
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
    if (!p->no_pictures)
        draw_pictures(p, &g); /* before the page, which links to them */
    int status = tmk_sweep_outputs(&g, &o);
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
    TMK_OPTION_HEADING("configurations"),
    {"param", 'p', "NAME=V ...", NULL, "values: 8,16 or 1..8 or 0..64..8 or 8..64*2"},
    {"where", 0, "CONDITION ...", NULL, "only the configurations for which it holds"},
    {"repeats", 0, "N", NULL, "run each configuration N times (1)"},
    {"skip-hopeless", 0, NULL, NULL, "skip what cannot fit, judging by what was measured"},
    {"capacity", 0, "SIZE", NULL, "the GPU's memory to judge by (the device's own)"},
    {"dry-run", 'n', NULL, NULL, "list the configurations in order and run none"},
    TMK_OPTION_HEADING("running"),
    {"devices", 'd', "LIST", NULL, "one configuration at a time on each of these: 0,1 or all"},
    {"jobs", 'j', "N", NULL, "N configurations at a time, without devices (1)"},
    {"timeout", 0, "TIME", NULL, "end a configuration that takes longer, e.g. 10min"},
    {"resume", 0, "DIR", NULL, "continue the sweep in DIR"},
    {"retry-failed", 0, NULL, NULL, "run again what failed, timed out or was skipped"},
    {"retry-oom", 0, NULL, NULL, "run again what ran out of memory"},
    TMK_OPTION_HEADING("results"),
    {"output", 'o', "DIR", NULL, "the folder for results (sweep-DATE-TIME)"},
    {"detailed", 0, NULL, NULL, "stages, components and operations in files of their own"},
    {"keep-traces", 0, "WHICH", "all|failed|none", "keep the traces of these runs (all)"},
    {"no-pictures", 0, NULL, NULL, "write files and tables only"},
    {"redact", 0, "WORD ...", NULL, "never write WORD; env:NAME: the value of that variable"},
    {"title", 0, "TEXT", NULL, "title of pictures and pages (the command)"},
    TMK_OPTION_HEADING("what is recorded"),
    TMK_WATCH_OPTIONS,
};

static const char *const description[] = {
    "Values are words or numbers. 1..8 is 1, 2 ... 8; 0..64..8 goes in steps of 8; 8..64*2 "
    "doubles each time. {NAME} in COMMAND is the value of the parameter, and so is "
    "TIDEMARK_NAME (in capitals) in its environment; {{ is a brace. Conditions know "
    "parameters, numbers, 'texts', + - * / %, comparisons, and, or, not and parentheses.",
    "Each configuration runs as under `tidemark run`, with its trace in DIR/runs and its "
    "output in DIR/logs. If one runs out of memory, fails or takes too long, that is noted, "
    "its processes are ended, and the next one starts. The smallest runs first, then the "
    "corners of the grid, then what lies between, the largest last.",
    "Results are in DIR/sweep.jsonl as soon as a configuration ends. After ^C, a crash or kill "
    "-9 the same command with the same -o, or --resume DIR, continues from there.",
    NULL,
};

static const char *const exit_status[] = {
    "0\tall configurations ended well or ran out of memory",
    "1\tone failed otherwise",
    "126, 127\tCOMMAND cannot be run",
    "130\tafter ^C",
    NULL,
};

static const char *const examples[] = {
    "tidemark sweep -p batch=8..64*2 -- python train.py --batch-size {batch}",
    "four runs: batch sizes 8, 16, 32 and 64",
    "tidemark sweep -p seq=512,1024 -p b=8,16 -- python train.py {seq} {b}",
    "four runs: every pair of the two parameters",
    "tidemark sweep --devices all --skip-hopeless -p b=1..256*2 -- python t.py {b}",
    "one run on each GPU at once; skip what cannot fit",
    "tidemark sweep --resume sweep-20261119-101500 --retry-failed",
    "continue a sweep, and run again what failed",
    NULL,
};

const struct tmk_command tmk_cmd_sweep = {
    .name = "sweep",
    .group = TMK_GROUP_RECORD,
    .summary = "Run a grid of configurations and fit how memory grows",
    .usage = "--param NAME=V ... [options] -- COMMAND [ARGUMENT...] | --resume DIR [options]",
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
