/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_demo.c - a real training, tiny and on the CPU, watched, with its report: what
 * tidemark does, seen in three seconds. */
#include <stdlib.h>

#include "cli/answers/report_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/locate.h"
#include "cli/front/target.h"
#include "cli/output/chart.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/run/run_folder.h"
#include "cli/run/summary.h"
#include "cli/run/watch.h"
#include "model/run.h"

#define DEMO_RUN "tidemark-demo.tmk"

static int show_report(const char *name)
{
    struct tmk_run *target = NULL;
    struct tmk_report_answer report;
    int status = tmk_target_open(name, &target);
    if (status != 0)
        return status;
    status = tmk_report_answer_init(&report, target, NULL, tmk_chart_columns(stdout));
    if (status == 0) {
        struct tmk_sheet sheet = tmk_sheet_on(stdout);
        putchar('\n');
        tmk_report_text(&report, &sheet);
    }
    tmk_report_answer_fini(&report);
    tmk_run_close(target);
    return status;
}

static int train_and_show(struct tmk_watch *w)
{
    tmk_say("training a small transformer, watched: tidemark run -o %s -- tinytrain", DEMO_RUN);
    if (!tmk_run_folder_claim(w->folder, DEMO_RUN))
        return TMK_EXIT_FINDING;
    struct tmk_outcome o = tmk_watch_run(w);
    tmk_run_folder_release();
    if (!o.started || o.status != 0) {
        tmk_say("the training ended with status %d", o.status);
        return o.status;
    }
    if (!tmk_summary_settle(w->folder)) {
        tmk_summary_nothing(w, false);
        return TMK_EXIT_FINDING;
    }
    int status = show_report(DEMO_RUN);
    fflush(stdout);
    fputc('\n', stderr);
    tmk_say("the run is in %s; look further, for example:", DEMO_RUN);
    tmk_say("  tidemark peak %s --by tensor", DEMO_RUN);
    tmk_say("  tidemark query %s \"SELECT step, peak_allocated FROM steps\"", DEMO_RUN);
    return status;
}

static int run_demo(const struct tmk_args *args)
{
    (void)args;
    char *library = tmk_locate_library();
    char *program = tmk_locate_program("tinytrain");
    char *folder = tmk_absolute_path(DEMO_RUN);
    int status = TMK_EXIT_FINDING;
    if (!library || !program) {
        tmk_say("%s is not where it should be; see: tidemark doctor",
                library ? "tinytrain" : "libtidemark.so");
    } else {
        char *argv[] = {program, NULL};
        struct tmk_watch w = {.argv = argv, .folder = folder, .library = library};
        status = train_and_show(&w);
    }
    free(library);
    free(program);
    free(folder);
    return status;
}

static const char *const examples[] = {
    "tidemark demo",
    "needs neither a GPU nor torch; the run stays in ./" DEMO_RUN,
    NULL,
};

const struct tmk_command tmk_cmd_demo = {
    .name = "demo",
    .group = TMK_GROUP_HELP,
    .summary = "Record a tiny training and show its report",
    .usage = "",
    .operand = TMK_OPERAND_NONE,
    .examples = examples,
    .run = run_demo,
};
