/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_plot.c - pictures of a run or of a sweep. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_picture.h"
#include "cli/plot/plot_sweep.h"
#include "cli/remote/remote.h"
#include "kit/amount.h"
#include "model/run.h"
#include "passes/accounting.h"
#include "passes/steps.h"
#include "sweep/results.h"
#include "sweep/survey.h"
#include "trace/replay.h"
#include "trace/state.h"

static const struct kind {
    const char *name;
    int (*draw)(const struct tmk_plot *plot);
    const char *by; /* what --by may be; NULL: nothing */
    bool takes_steps;
    bool is_of_all; /* processes, not of one */
    enum tmk_sweep_picture of_sweep;
    bool draws_held; /* also without blocks: what the driver gave */
} kinds[] = {
    {"timeline", tmk_plot_timeline, "category|component|module|stage|owner", true, false,
     TMK_N_SWEEP_PICTURES, true},
    {"overview", NULL, NULL, false, false, TMK_SWEEP_OVERVIEW, false},
    {"heatmap", tmk_plot_heatmap, "module|component|category|stage", true, false, TMK_SWEEP_HEATMAP,
     false},
    {"components", tmk_plot_components, "component|module|stage", false, false,
     TMK_SWEEP_COMPONENTS, false},
    {"operations", tmk_plot_operations, NULL, false, false, TMK_SWEEP_OPERATIONS, false},
    {"ranks", tmk_plot_ranks, NULL, false, true, TMK_N_SWEEP_PICTURES, false},
    {"forecast", tmk_plot_forecast, NULL, false, false, TMK_N_SWEEP_PICTURES, true},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < TMK_N(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL; /* not one of the option's choices: the parser has said so */
}

/* ---- what is asked ---- */

static int check_plot_options(const struct kind *kind, const struct tmk_args *args)
{
    const char *by = tmk_args_get(args, "by");
    if (by && (!kind->by || !tmk_is_choice(kind->by, by))) {
        if (kind->by)
            tmk_say("--by %s is not for --kind %s: it takes %s", by, kind->name, kind->by);
        else
            tmk_say("--by is not for --kind %s", kind->name);
        return TMK_EXIT_USAGE;
    }
    if (tmk_args_get(args, "steps") && !kind->takes_steps) {
        tmk_say("--steps is not for --kind %s", kind->name);
        return TMK_EXIT_USAGE;
    }
    return 0;
}

/* Read "12" or "10-20". */
static bool parse_steps(const char *text, int64_t *ret_first, int64_t *ret_last)
{
    char *first = tmk_xstrdup(text);
    char *dash = strchr(first + (*first == '-'), '-');
    if (dash)
        *dash = '\0';
    bool good = tmk_integer_parse(first, ret_first) == 0 &&
                tmk_integer_parse(dash ? dash + 1 : first, ret_last) == 0 &&
                *ret_first <= *ret_last;
    free(first);
    return good;
}

static int set_window(struct tmk_plot *plot, const char *steps)
{
    int64_t first, last;
    if (!parse_steps(steps, &first, &last)) {
        tmk_say("--steps '%s': a step, 12, or from one to another, 10-20", steps);
        return TMK_EXIT_USAGE;
    }
    if (tmk_plot_set_steps(plot, first, last))
        return 0;
    tmk_say("%s has no such step: %s", plot->p->file, steps);
    return TMK_EXIT_FINDING;
}

/* Find the device of which the driver gave the most, where no blocks are known. False: there is
 * none. */
static bool find_held_device(struct tmk_plot *plot)
{
    struct tmk_accounting *a = NULL;
    struct tmk_replay rp;
    uint64_t most = 0;
    if (tmk_accounting_open(plot->p, &a) < 0)
        return false;
    struct tmk_visitor visitor = tmk_accounting_visitor(a);
    if (tmk_plot_replay(plot, &visitor, 1, &rp) == 0) {
        bool good = tmk_accounting_finish(a, &rp, NULL) == 0;
        tmk_replay_fini(&rp);
        for (uint64_t i = 0; good && i < tmk_accounting_n(a); i++) {
            const struct tmk_device_account *account = tmk_accounting_get(a, i);
            if (account->segment_bytes <= most)
                continue;
            most = account->segment_bytes;
            plot->device = account->device;
        }
    }
    tmk_accounting_close(a);
    return most > 0;
}

static int choose_plot_device(const struct kind *kind, struct tmk_plot *plot, const char *name)
{
    const struct tmk_step_row *peak = tmk_steps_peak(plot->p, true, 0);
    plot->has_device = name != NULL;
    plot->has_blocks = peak != NULL;
    if (name)
        return tmk_target_device(plot->p, name, &plot->device) ? 0 : TMK_EXIT_USAGE;
    if (peak) {
        plot->device = peak->device;
        return 0;
    }
    if (kind->draws_held && find_held_device(plot))
        return 0;
    tmk_say("no block was ever allocated in %s: there is nothing to draw", plot->p->file);
    return TMK_EXIT_FINDING;
}

static int plot_run(const struct kind *kind, const struct tmk_args *args, struct tmk_plot *plot)
{
    int status = kind->is_of_all ? tmk_target_open(args->operands[0], &plot->run)
                                 : tmk_target_open_one(args, &plot->run, &plot->p);
    if (status == 0 && !kind->draw) {
        tmk_say("--kind %s draws a sweep, and %s is a run", kind->name, args->operands[0]);
        status = TMK_EXIT_USAGE;
    }
    if (status == 0 && kind->is_of_all)
        plot->p = tmk_run_process(plot->run, 0);
    if (status == 0)
        status = choose_plot_device(kind, plot, tmk_args_get(args, "device"));
    if (status == 0 && tmk_args_get(args, "steps"))
        status = set_window(plot, tmk_args_get(args, "steps"));
    if (status == 0)
        status = kind->draw(plot);
    tmk_run_close(plot->run);
    return status;
}

/* ---- of a sweep ---- */

static bool is_sweep(const char *folder)
{
    char *journal = tmk_xformat("%s/" TMK_SWEEP_JOURNAL, folder);
    bool found = access(journal, F_OK) == 0;
    free(journal);
    return found;
}

static int check_sweep_options(const struct kind *kind, const struct tmk_args *args)
{
    static const char *const of_runs[] = {"by", "steps", "axis", "device", "rank"};
    for (size_t i = 0; i < TMK_N(of_runs); i++)
        if (tmk_args_get(args, of_runs[i])) {
            tmk_say("--%s is for a run, and %s is a sweep", of_runs[i], args->operands[0]);
            return TMK_EXIT_USAGE;
        }
    if (kind->of_sweep < TMK_N_SWEEP_PICTURES)
        return 0;
    tmk_say("a sweep has no --kind %s: it has overview, heatmap, components and operations; its "
            "runs are in %s/runs",
            kind->name, args->operands[0]);
    return TMK_EXIT_USAGE;
}

static int plot_sweep(const struct kind *kind, const struct tmk_args *args, struct tmk_plot *plot)
{
    struct tmk_error err = {0};
    struct tmk_results *results = NULL;
    struct tmk_survey survey;
    int status = check_sweep_options(kind, args);
    if (status != 0)
        return status;
    if (tmk_results_load(args->operands[0], &results, &err) < 0) {
        tmk_say("%s: %s", args->operands[0], err.text);
        return TMK_EXIT_BAD_TRACE;
    }
    if (tmk_survey_init(&survey, results) != 0)
        tmk_die("out of memory");
    if (survey.why_none)
        tmk_say("without a fit: %s", survey.why_none);
    status = tmk_plot_sweep_picture(&survey, kind->of_sweep, &plot->style, plot->path);
    tmk_survey_fini(&survey);
    tmk_results_close(results);
    return status;
}

/* Make the name of a picture that the user did not name, "a-timeline.png": in this folder, and an
 * SVG where no PNG can be made. The caller's. */
static char *make_file_name(const char *target, const struct kind *kind)
{
    char *path = tmk_xstrdup(target);
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    char *slash = strrchr(path, '/');
    char *base = slash && slash[1] ? slash + 1 : path;
    char *dot = strrchr(base, '.');
    if (dot && dot > base)
        *dot = '\0';
    char *name = tmk_xformat("%s-%s.%s", base, kind->name, tmk_picture_has_png() ? "png" : "svg");
    free(path);
    return name;
}

static int run_plot(const struct tmk_args *args)
{
    const char *name = tmk_args_get(args, "kind"), *theme = tmk_args_get(args, "theme");
    const char *axis = tmk_args_get(args, "axis");
    bool of_sweep = is_sweep(args->operands[0]);
    const struct kind *kind = find_kind(name ? name : of_sweep ? "overview" : "timeline");
    int status = kind ? check_plot_options(kind, args) : TMK_EXIT_USAGE;
    if (status != 0)
        return status;
    char *own_name = tmk_args_get(args, "output") ? NULL : make_file_name(args->operands[0], kind);
    struct tmk_plot plot = {
        .by = tmk_args_get(args, "by"),
        .by_time = axis && strcmp(axis, "time") == 0,
        .style = {.dark = theme && strcmp(theme, "dark") == 0,
                  .title = tmk_args_get(args, "title")},
        .path = own_name ? own_name : tmk_args_get(args, "output"),
    };
    status = tmk_picture_check(plot.path);
    if (status == 0)
        status = of_sweep ? plot_sweep(kind, args, &plot) : plot_run(kind, args, &plot);
    if (status == 0 && strcmp(plot.path, "-") != 0)
        tmk_say("picture written to %s", plot.path);
    free(own_name);
    return status;
}

static const struct tmk_option options[] = {
    {"kind", 'k', "KIND", "timeline|heatmap|components|operations|ranks|forecast|overview",
     "which picture, see below"},
    {"output", 'o', "FILE", NULL, "F.png, F.svg or F.pdf (RUN-KIND.png); -: SVG to stdout"},
    {"by", 0, "KEY", "category|component|module|stage|owner",
     "stack by this key instead of category"},
    {"steps", 0, "N|N-M", NULL, "timeline and heatmap: these steps only"},
    {"axis", 0, "AXIS", "step|time", "of these: steps equally wide (step, default) or time"},
    {"device", 0, "NAME", NULL, "cpu, cuda:0 ... (the device with the largest peak)"},
    {"rank", 0, "N", NULL, "this rank (the rank with the largest peak)"},
    {"theme", 0, "THEME", "light|dark", "light (default) or dark"},
    {"title", 0, "TEXT", NULL, "title instead of the picture's own"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "timeline\tthe default: allocated memory over time, stacked by category, with reserved "
    "memory, the limit, the device's use, and each OOM; --by owner: what the driver gave, and to "
    "whom (torch, nccl, jax ...)",
    "heatmap\twhich module used how much when, in the step of the peak (--steps: in others)",
    "components\twhat was live at the peak: attention, mlp ..., by category",
    "operations\tforward, backward, optimizer and other stages: peak and allocated",
    "ranks\tthe peaks of all processes side by side",
    "forecast\tthe peaks of the steps, where they lead, and the limit",
    "For a sweep: overview (the default: peak against each parameter), heatmap (peak of each "
    "configuration), components and operations (of each configuration). docs/plot.md shows all "
    "pictures.",
    "PNG and PDF need Pango (apt-get install libpangocairo-1.0-0), SVG needs nothing.",
    NULL,
};

static const char *const examples[] = {
    "tidemark plot train.tmk -o memory.png",
    "memory over time, by category",
    "tidemark plot train.tmk --steps 3-5 -o steps.svg",
    "three steps of it",
    "tidemark plot train.tmk --kind components --by module -o peak.pdf",
    "what was live at the peak, by module",
    "tidemark plot sweep-results --kind heatmap -o fits.png",
    "which configurations of a sweep fit",
    NULL,
};

const struct tmk_command tmk_cmd_plot = {
    .name = "plot",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Draw a run or a sweep as PNG, SVG or PDF",
    .usage = "RUN|[HOST:]PID|SWEEP [-o FILE] [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .n_targets = 1,
    .operand = TMK_OPERAND_RUN,
    .examples = examples,
    .run = run_plot,
};
