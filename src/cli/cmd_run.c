/* SPDX-License-Identifier: MIT */
/* cli/cmd_run.c - run a program watched, then say in ten lines what happened. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/locate.h"
#include "cli/run_folder.h"
#include "cli/summary.h"
#include "cli/xalloc.h"
#include "kit/amount.h"
#include "trace/layout.h"

static bool parse_size(const char *text, uint64_t *ret_bytes)
{
    uint64_t bytes;
    char least[TMK_AMOUNT_BYTES];
    if (!text)
        return true;
    if (tmk_size_parse(text, &bytes) < 0) {
        tmk_say("--max-size: '%s' is not a size, such as 512MiB or 2GiB", text);
        return false;
    }
    if (bytes < TMK_MAX_SIZE_LEAST) {
        tmk_say("--max-size: %s is too little, a trace needs %s", text,
                tmk_size_text(TMK_MAX_SIZE_LEAST, least));
        return false;
    }
    *ret_bytes = bytes;
    return true;
}

static char *library_or_complain(void)
{
    char *library = tmk_locate_library();
    const char *named = getenv("TIDEMARK_LIB");
    if (library && !library[strcspn(library, " :")])
        return library;
    if (library)
        tmk_say("the loader cannot take '%s', for the space or colon in it; put a copy elsewhere "
                "and set TIDEMARK_LIB to that",
                library);
    else if (named && *named)
        tmk_say("TIDEMARK_LIB says %s, but there is no such library", named);
    else
        tmk_say("libtidemark.so is not beside the program nor in ../lib; set TIDEMARK_LIB to it");
    free(library);
    return NULL;
}

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
    if (!parse_size(tmk_args_get(args, "max-size"), &w.max_size_bytes))
        return TMK_EXIT_USAGE;
    char *library = library_or_complain();
    if (!library)
        return TMK_EXIT_FINDING;
    const char *named = tmk_args_get(args, "output");
    char *name = named ? tmk_xstrdup(named) : tmk_run_folder_name(args->operands[0]);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--)
        name[n - 1] = '\0';
    char *folder = tmk_absolute_path(name);
    w.library = library;
    w.folder = folder;
    int status = run_in(name, &w, tmk_args_get(args, "quiet") != NULL);
    free(library);
    free(folder);
    free(name);
    return status;
}

static const struct tmk_option options[] = {
    {"output", 'o', "RUN", NULL, "the folder for the traces (PROGRAM-DATE-TIME.tmk)"},
    {"max-size", 0, "SIZE", NULL, "most for each trace, e.g. 512MiB (2GiB)"},
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
    .usage = "[-o RUN] [--max-size SIZE] [--quiet] -- PROGRAM [ARGUMENT...]",
    .notes = notes,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1u << 30,
    .operand = TMK_OPERAND_PROGRAM,
    .examples = examples,
    .run = run,
};
