/* SPDX-License-Identifier: MIT */
/* cli/cmd_run.c - run a program watched, then say in ten lines what happened. */
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/locate.h"
#include "cli/recording.h"
#include "cli/run_folder.h"
#include "cli/summary.h"
#include "cli/watch_options.h"

static int run_in(const char *name, struct tmk_watch *w, bool quiet)
{
    if (!tmk_run_folder_clear(w->folder, name))
        return TMK_EXIT_FINDING;
    struct tmk_outcome o = tmk_watch_run(w);
    if (!o.started)
        return o.status;
    bool recorded = tmk_summary_settle(w->folder);
    if (quiet)
        return o.status;
    if (recorded)
        tmk_summary_print(name, w, &o);
    else
        tmk_summary_nothing(w);
    return o.status;
}

static int run(const struct tmk_args *args)
{
    struct tmk_watch w = {.argv = args->operands};
    int status = tmk_watch_options_read(args, &w);
    if (status != 0)
        return status;
    char *name = tmk_recording_name(args, args->operands[0]);
    char *folder = tmk_absolute_path(name);
    w.folder = folder;
    status = run_in(name, &w, tmk_args_get(args, "quiet") != NULL);
    free((char *)w.library);
    free(folder);
    free(name);
    return status;
}

static const struct tmk_option options[] = {
    {"output", 'o', "RUN", NULL, "the folder for the traces (PROGRAM-DATE-TIME.tmk)"},
    TMK_WATCH_OPTIONS,
    {"quiet", 'q', NULL, NULL, "no summary at the end"},
};

static const char notes[] =
    "The program runs as it would alone: its output, its input, its signals and its\n"
    "exit status are its own. All that it starts is watched too, each process in a\n"
    "trace of its own. A program that reports no allocation leaves no file.\n"
    "\n"
    "When RUN exists already, it is moved to RUN.1, RUN.2 ..., never overwritten.\n"
    "When a trace reaches --max-size, its oldest detail is given up; totals, blocks\n"
    "alive and the history of steps are kept. Never more than a tenth of the free\n"
    "disk is taken, whatever the size.\n"
    "\n"
    "Exit status: the program's; 128 + N when signal N ended it, 127 when it was not\n"
    "found, 126 when it cannot be run, 1 or 2 when tidemark could not start it.\n";

static const char *const examples[] = {
    "tidemark run -- ./train --steps 100",
    "run ./train watched; the run is train-DATE-TIME.tmk",
    "tidemark run -o a.tmk --max-size 512MiB -- mpirun -n 4 ./train",
    "four ranks, a trace of at most 512 MiB each, in a.tmk",
    NULL,
};

const struct tmk_command tmk_cmd_run = {
    .name = "run",
    .summary = "Run a program and record every allocation that it reports",
    .usage = "[-o RUN] [--max-size SIZE] [--ranks LIST] [--cpu-tensors] [--native] [--no-stacks] "
             "[--no-modules] [--no-categories] "
             "[--quiet] -- PROGRAM [ARGUMENT...]",
    .notes = notes,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1u << 30,
    .operand = TMK_OPERAND_PROGRAM,
    .examples = examples,
    .run = run,
};
