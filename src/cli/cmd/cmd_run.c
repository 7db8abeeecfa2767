/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_run.c - run a program watched, then say in ten lines what happened. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/refused.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/page/page_file.h"
#include "cli/run/caretaker.h"
#include "cli/run/filters_tried.h"
#include "cli/run/leftovers.h"
#include "cli/run/recording.h"
#include "cli/run/refusal_watch.h"
#include "cli/run/relay.h"
#include "cli/run/run_folder.h"
#include "cli/run/summary.h"
#include "cli/run/watch.h"
#include "cli/run/watch_options.h"
#include "kit/print.h"
#include "trace/disk_share.h"
#include "trace/layout.h"
#include "trace/refusals.h"

/* Say that this program is itself watched, and that the outer run gets nothing of what this one
 * records. */
static void say_nested(const char *name, const char *folder, bool quiet)
{
    const char *outer = getenv("TIDEMARK_RUN");
    const char *preload = getenv("LD_PRELOAD");
    if (!outer || outer[0] != '/' || !preload || !strstr(preload, "libtidemark.so") ||
        strcmp(outer, folder) == 0)
        return;
    tmk_refusals_append(
        outer, &(struct tmk_refusal){.pid = (uint32_t)getpid(), .reason = TMK_STOP_NESTED});
    if (!quiet)
        tmk_say("inside another tidemark run: recorded in %s only, not in %s", name, outer);
}

/* Write the page beside RUN: for train.tmk it is train.html. */
static void write_page_beside(const char *name, bool quiet)
{
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    if (n > 4 && memcmp(name + n - 4, ".tmk", 4) == 0)
        n -= 4;
    char *path = tmk_xformat("%.*s.html", (int)n, name);
    if (tmk_page_report(name, path) == 0 && !quiet)
        tmk_print(stderr, "report: %s\n", path);
    free(path);
}

/* Run the program. A signal that comes after its end must not change its status, which is ours. */
static struct tmk_outcome run_in(const char *name, struct tmk_watch *w, bool quiet, bool has_page)
{
    struct tmk_leftovers unused;
    struct tmk_refusal_watch refusals;
    tmk_leftovers_find(&unused, TMK_LEFTOVERS_REMOVE);
    tmk_refused_clear(w->folder);
    say_nested(name, w->folder, quiet);
    struct tmk_caretaker *caretaker = tmk_caretaker_start(w->folder);
    tmk_refusal_watch_start(&refusals);
    w->refusals = refusals.path[0] ? refusals.path : NULL;
    struct tmk_outcome o = tmk_watch_run(w);
    w->refusals = NULL;
    uint32_t n_refused = tmk_refusal_watch_stop(&refusals);
    tmk_relay_finish(o.status, tmk_run_folder_release);
    if (o.started)
        tmk_leftovers_settle(w->folder);
    bool recorded = o.started && tmk_summary_settle(w->folder);
    bool has_recorded = tmk_caretaker_stop(caretaker);
    for (uint32_t i = 0; i < n_refused; i++)
        tmk_refused_add(w->folder, 0, TMK_STOP_SANDBOX);
    if (!o.started)
        return o;
    if (recorded && !quiet)
        tmk_summary_print(name, w, &o);
    else if (!quiet)
        tmk_summary_nothing(w, has_recorded);
    if (recorded && has_page)
        write_page_beside(name, quiet);
    tmk_refused_settle(w->folder);
    tmk_disk_share_remove(w->folder);
    if (!w->folder_was_there)
        rmdir(w->folder); /* where nothing is in it */
    return o;
}

/* Become the program, not watched. A filter that kills for a call of the recorder would kill for
 * our calls, too. */
static int leave_program_alone(const struct tmk_watch *w)
{
    tmk_say("nothing is recorded: a seccomp filter around tidemark kills for system calls that a "
            "recorder makes");
    return tmk_watch_leave(w);
}

/* Returns the word that names the run: a Python script before the Python that runs it, as `import
 * tidemark` names it too. */
static const char *naming_word(const struct tmk_args *args)
{
    const char *slash = strrchr(args->operands[0], '/');
    const char *name = slash ? slash + 1 : args->operands[0];
    bool is_python = strncmp(name, "python", 6) == 0;
    for (char *const *word = args->operands + 1; is_python && *word; word++) {
        size_t n = strlen(*word);
        if (n > 3 && strcmp(*word + n - 3, ".py") == 0)
            return *word;
    }
    return args->operands[0];
}

static int run_run(const struct tmk_args *args)
{
    struct tmk_watch w = {.argv = args->operands};
    if (tmk_filters_refuse())
        return leave_program_alone(&w);
    int status = tmk_watch_options_read(args, &w);
    if (status != 0)
        return status;
    char *name = NULL, *folder = NULL;
    struct tmk_outcome o = {.status = TMK_EXIT_FINDING};
    tmk_relay_hold(); /* from now on signals are the program's */
    if (tmk_recording_claim(args, naming_word(args), &name, &folder)) {
        w.folder = folder;
        w.folder_was_there = tmk_run_folder_was_there();
        o = run_in(name, &w, tmk_args_get(args, "quiet") != NULL,
                   tmk_args_get(args, "report") != NULL);
        tmk_run_folder_release();
    }
    free((char *)w.library);
    free(folder);
    free(name);
    if (o.was_key)
        tmk_relay_die(o.signal);
    return o.status;
}

static const struct tmk_option options[] = {
    {"output", 'o', "RUN", NULL, "the folder to record into (COMMAND-DATE-TIME.tmk)"},
    {"quiet", 'q', NULL, NULL, "print no summary at the end"},
    {"report", 0, "FORMAT", "html", "at the end, write a page for a browser beside RUN"},
    TMK_OPTION_HEADING("what is recorded"),
    TMK_WATCH_OPTIONS,
};

static const char *const description[] = {
    "COMMAND runs as it would alone: its output, input, signals and exit status are its own. "
    "Every process that it starts is recorded too, each into its own trace in RUN. A process "
    "that reports no allocation leaves no file.",
    "If RUN is a run of yours that has ended, it is renamed to RUN.1, RUN.2 and so on. An "
    "empty folder of yours is used as it is. If RUN is still being recorded, or is anything "
    "else, it is left alone and COMMAND is not started.",
    "tidemark passes every signal on to COMMAND except SIGKILL and SIGSTOP. If tidemark itself "
    "is killed, COMMAND runs on and is still recorded.",
    "When a trace reaches --max-size, its oldest details are dropped. Totals, the history of "
    "steps and the live blocks, as far as they fit, are kept. All processes of a run together "
    "take at most a tenth of the free disk space and of /dev/shm.",
    NULL,
};

static const char *const exit_status[] = {
    "N\tthe exit status of COMMAND",
    "128 + N\tsignal N ended COMMAND",
    "127\tCOMMAND was not found",
    "126\tCOMMAND cannot be executed",
    "1, 2\ttidemark could not start COMMAND",
    NULL,
};

static const char *const examples[] = {
    "tidemark run -- python train.py",
    "record the training into python-DATE-TIME.tmk",
    "tidemark run -o llama.tmk -- torchrun --nproc-per-node 8 train.py",
    "record all eight ranks into one run",
    "tidemark run --max-size 512MiB -- python -m pytest tests",
    "at most 512 MiB of trace for each process",
    NULL,
};

const struct tmk_command tmk_cmd_run = {
    .name = "run",
    .group = TMK_GROUP_RECORD,
    .summary = "Run a command and record its GPU memory (PyTorch, JAX, CUDA)",
    .usage = "[options] -- COMMAND [ARGUMENT...]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1u << 30,
    .operand = TMK_OPERAND_PROGRAM,
    .exit_status = exit_status,
    .examples = examples,
    .run = run_run,
};
