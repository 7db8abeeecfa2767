/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_report.c - everything on one page. */
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/answers/ranks_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/chart.h"
#include "cli/output/output_file.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/terminal.h"
#include "cli/page/page_file.h"
#include "cli/remote/remote.h"
#include "kit/tree.h"
#include "model/run.h"

struct writing {
    const struct tmk_report_answer *report;
    const char *format;
    bool is_safe;
    const struct tmk_page_file *page; /* html */
    int *status;                      /* of what is written */
};

static void write_report_to(FILE *out, const void *arg)
{
    const struct writing *w = arg;
    struct tmk_tree tree;
    if (strcmp(w->format, "json") == 0) {
        tmk_tree_init_json(&tree, out, 4);
        *w->status = tmk_report_json(w->report, &tree);
    } else if (strcmp(w->format, "csv") == 0) {
        tmk_tree_init_csv(&tree, out, w->is_safe);
        *w->status = tmk_report_json(w->report, &tree);
    } else if (strcmp(w->format, "html") == 0) {
        tmk_page_file_write(w->page, out);
    } else {
        struct tmk_sheet sheet = {
            .out = out, .markdown = strcmp(w->format, "md") == 0, .colour = tmk_wants_colour(out)};
        tmk_report_text(w->report, &sheet);
    }
}

static int write_to(const char *path, const struct writing *w)
{
    if (path && strcmp(path, "-") != 0) {
        int status = tmk_output_file_write(path, write_report_to, w);
        return status != 0 ? status : *w->status;
    }
    write_report_to(stdout, w);
    return *w->status;
}

/* Write the report in the form asked for. A page needs one more sweep. */
static int write_report(const char *path, struct tmk_report_answer *report, const char *format,
                        bool is_safe)
{
    int status = 0;
    struct tmk_page_file page = {0};
    if (strcmp(format, "html") == 0)
        status = tmk_page_file_init(&page, report);
    if (status == 0)
        status = write_to(path, &(struct writing){report, format, is_safe, &page, &status});
    tmk_page_file_fini(&page);
    return status;
}

struct line_writing {
    struct tmk_run *run;
    int *status;
};

static void write_line_to(FILE *out, const void *arg)
{
    const struct line_writing *w = arg;
    *w->status = tmk_ranks_line(w->run, out);
}

static int write_line(const char *path, struct tmk_run *run)
{
    int status = 0;
    struct line_writing w = {run, &status};
    if (!path || strcmp(path, "-") == 0)
        return tmk_ranks_line(run, stdout);
    int written = tmk_output_file_write(path, write_line_to, &w);
    return written != 0 ? written : status;
}

static int run_report(const struct tmk_args *args)
{
    const char *format = tmk_args_get(args, "format");
    const char *path = tmk_args_get(args, "output");
    if (!format)
        format = tmk_args_get(args, "json") ? "json" : "text";
    bool is_safe = tmk_args_get(args, "csv-safe") != NULL;
    if (is_safe && strcmp(format, "csv") != 0) {
        tmk_say("--csv-safe needs --format csv");
        return TMK_EXIT_USAGE;
    }
    if (strcmp(format, "html") == 0 && !path && isatty(STDOUT_FILENO)) {
        tmk_say("--format html writes a page, which no terminal shows: add -o report.html");
        return TMK_EXIT_USAGE;
    }
    struct tmk_run *target = NULL;
    int status = tmk_target_open(args->operands[0], &target);
    if (status != 0)
        return status;
    if (strcmp(format, "line") == 0) {
        status = write_line(path, target);
        tmk_run_close(target);
        return status;
    }
    struct tmk_report_answer report;
    bool is_screen = strcmp(format, "text") == 0 && !path;
    status = tmk_report_answer_init(&report, target, tmk_args_get(args, "rank"),
                                    is_screen ? tmk_chart_columns(stdout) : TMK_CHART_COLUMNS);
    report.is_full = tmk_args_get(args, "full") != NULL;
    if (status == 0)
        status = write_report(path, &report, format, is_safe);
    tmk_report_answer_fini(&report);
    tmk_run_close(target);
    return status;
}

static const struct tmk_option options[] = {
    {"format", 0, "FORMAT", "text|json|csv|md|html|line",
     "text (default), json, csv, md, html (one page), line"},
    {"full", 0, NULL, NULL, "text and md: show every section, not only a page"},
    {"csv-safe", 0, NULL, NULL, "csv: put an apostrophe before cells that begin a formula"},
    {"json", 0, NULL, NULL, "the same as --format json"},
    {"output", 'o', "FILE", NULL, "write to FILE instead of stdout"},
    {"rank", 0, "N", NULL, "show the details of this rank (the largest peak)"},
    TMK_REMOTE_OPTION,
};

static const char *const json_keys[] = {
    "run, tidemark\tthe run's folder; the version that recorded it",
    "started_utc, duration_ns\tits start and length",
    "chosen\tindex of the process with the largest peak, or of --rank",
    "not_recorded\tprocesses that were not recorded, and why, in words",
    "explain\tof the chosen process, as `tidemark explain --json`; null: no OOM",
    "health\tverdict (healthy leaks grew ran_out nearly_ran_out too_short killed nothing), text "
    "(a sentence), next (the command that answers)",
    "ranks\tnull without ranks; its keys follow below",
    "processes\ta list of objects, with the keys that follow",
    "Each of processes has:",
    "identity\tfile pid rank world_size host command start_ns end_ns trace_bytes",
    "counts\tevents allocations frees live_blocks live_bytes (live at the end)",
    "peak\ttime_ns step allocated reserved device; by_category by_module by_component by_stage "
    "by_step by_tensor by_line: lists of key bytes blocks; kept: null, or the moment (time_ns "
    "step allocated) that the lists describe when those of the peak are no longer in the trace",
    "timeline\t64 parts: start_ns end_ns max_allocated min_allocated end_allocated step",
    "steps\tcount mean_ns trend (steady growing shrinking varying too_short) bytes_per_step; "
    "rows, the first, last and largest steps, at most 100: step start_ns end_ns finished "
    "peak_allocated end_allocated allocations frees bytes",
    "forecast\tdevice risk seconds_to_oom seconds_low seconds_high steps_to_oom confidence "
    "cause capacity advice",
    "sites\tthe 100 sites that allocate most: file line function allocations bytes live_blocks "
    "live_bytes; live_sites: the 100 with most live at the end",
    "oom_count, ooms\ttime_ns step device request_bytes allocated capacity file line function "
    "module stage source segments device_used device_total by_category by_module by_line",
    "accounting\tdevice moment (peak last) time_ns total used; segments: owner bytes segments; "
    "context others unexplained allocated reserved",
    "leak_verdict\tleak, clean or null; leaks: file line function category module "
    "bytes_per_step blocks_per_step first_step confidence growth_bytes device kept_by "
    "bytes_per_second",
    "fragmentation\tdevice time_ns step reserved allocated free largest_free "
    "largest_allocatable releasable pinned_segments moment (oom reserved allocated) "
    "free_blocks",
    "mark_count, marks\ttime_ns step name text",
    "quality\tcomplete live merged unfinished stopped dropped given_up detail_from_ns "
    "untracked without_details unnamed replaced unknown_frees lost_segments damaged_chunks "
    "stray_bytes header_damaged; doubts: the same in words",
    "ranks has:",
    "verdict\tbalanced, imbalanced or null; says: the verdict in words",
    "counts\tn world_size missing median_peak",
    "highest\trank host pid peak device time_ns step times_median compared_with more_bytes",
    "why\tcategory module stage (key more_bytes) batch_factor",
    "first_oom\trank host pid time_ns step only_died_of_it",
    "ended_early\trank host pid time_ns step end all",
    "next_oom\trank host pid forecast",
    "clocks\thosts within_ns moved_ns steps",
    "groups\tof processes that are alike: ranks processes first least_peak most_peak end "
    "ran_out. docs/ranks.md has the rules.",
    NULL,
};

static const char *const description[] = {
    "line is for the log of a batch system: the largest peak, its limit where that is known, "
    "and its rank; an OOM; ranks that are imbalanced, used less than half of the peak, ended "
    "early or are missing.",
    "csv has the figures of json, one a row: section,item,key,value. The section is the path "
    "of names, the item the indices on that path: processes.peak.by_category,0.2,bytes,4096.",
    NULL,
};

static const char *const examples[] = {
    "tidemark report train.tmk",
    "the verdict, what used the memory, which lines allocated it",
    "tidemark report train.tmk --full",
    "every section: also stages, steps, devices and marks",
    "tidemark report train.tmk --format md -o report.md",
    "the same as Markdown, for an issue",
    "tidemark report train.tmk --format html -o report.html",
    "one file for a browser: zoom in, look at any moment; needs no network",
    "tidemark report train.tmk --json | jq .processes[0].peak.allocated",
    "for a script",
    "tidemark report train.tmk --format line",
    "one line for a job log: peak 71.3 of 80.0 GiB on rank 5",
    NULL,
};

const struct tmk_command tmk_cmd_report = {
    .name = "report",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Report on a run: the verdict, the peak, leaks, and what to do next",
    .usage = "RUN|[HOST:]PID [options]",
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .n_targets = 1,
    .is_paged = true,
    .operand = TMK_OPERAND_RUN,
    .json = json_keys,
    .description = description,
    .examples = examples,
    .run = run_report,
};
