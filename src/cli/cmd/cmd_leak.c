/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_leak.c - what grows: step by step in a run, or on the devices as they are now. */
#include <string.h>

#include "base/array.h"
#include "cli/answers/leak_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/live/monitor_report.h"
#include "cli/live/monitoring.h"
#include "cli/output/say.h"
#include "cli/remote/remote.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "monitor/device_leaks.h"
#include "monitor/growth.h"
#include "monitor/sampler.h"
#include "monitor/status.h"

#define DEFAULT_MB 100.0
#define MOST_MB 1e9

static void print_leaks_json(const struct tmk_leaks *leaks, const struct tmk_monitoring *m)
{
    struct tmk_tree t;
    char iso[TMK_ISO_BYTES];
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_leaks_write(&t, leaks, m->elapsed_ns);
    tmk_tree_text(&t, "timestamp", tmk_iso_text(time(NULL), iso));
    tmk_tree_fixed(&t, "threshold_mb", (double)leaks->threshold_bytes / TMK_MB, 2);
    tmk_tree_fixed(&t, "duration_s", (double)m->elapsed_ns / 1e9, 3);
    tmk_tree_end(&t);
}

/* Say which devices do not list their processes: these cannot be judged. */
static void say_unlisted(const struct tmk_monitoring *m)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(m->sampler); i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(m->sampler, i);
        if (u->reason[0])
            tmk_monitoring_say(u, "did not answer", u->reason);
        else if (u->process_reason[0])
            tmk_monitoring_say(u, "does not list its processes", u->process_reason);
    }
}

static int judge_devices(const struct tmk_monitoring *m, double threshold_mb, uint64_t least_ns,
                         bool json)
{
    struct tmk_leaks leaks;
    if (tmk_leaks_find(m->sampler, (uint64_t)(threshold_mb * TMK_MB), least_ns, &leaks) < 0)
        tmk_die("out of memory");
    if (json)
        print_leaks_json(&leaks, m);
    else
        tmk_leaks_text(&leaks, m->elapsed_ns);
    int status = leaks.n_leaks || !leaks.n_known ? TMK_EXIT_FINDING : TMK_EXIT_OK;
    tmk_leaks_fini(&leaks);
    say_unlisted(m);
    return status;
}

static int watch_devices(const struct tmk_args *args, double threshold_mb)
{
    struct tmk_monitoring m = {0};
    const struct tmk_monitoring_needs needs = {.duration_s = 60, .wants_processes = true};
    uint64_t least_ns = TMK_GROWTH_LEAST_NS;
    int status = tmk_monitoring_time(args, "warm-up", &least_ns);
    if (status == 0)
        status = tmk_monitoring_open(&m, args, &needs);
    if (status == 0)
        status = tmk_monitoring_run(&m, NULL, NULL);
    if (status == 0)
        status = judge_devices(&m, threshold_mb, least_ns, tmk_args_get(args, "json") != NULL);
    tmk_monitoring_close(&m);
    return status;
}

/* Run `leak`. For a run, --threshold 0 asks for all growth. */
static int run_leak(const struct tmk_args *args)
{
    bool has_run = args->n_operands > 0;
    const char *text = tmk_args_get(args, "threshold");
    double threshold_mb = has_run ? -1 : DEFAULT_MB;
    int status = 0;
    if (text && has_run && strcmp(text, "0") == 0)
        threshold_mb = 0;
    else if (text)
        status = tmk_monitoring_number(args, "threshold", DEFAULT_MB, MOST_MB, &threshold_mb);
    if (status != 0)
        return status;
    return has_run ? tmk_leak_run(args, threshold_mb) : watch_devices(args, threshold_mb);
}

static const struct tmk_option options[] = {
    {"threshold", 0, "MB", NULL, "growth that counts, in MiB (devices 100, run 1)"},
    {"json", 0, NULL, NULL, "print one JSON object"},
    TMK_REMOTE_OPTION,
    TMK_OPTION_HEADING("of a run or a process"),
    {"rank", 0, "N", NULL, "of a run: judge this rank only"},
    {"no-python", 0, NULL, NULL, "of a PID: do not count Python's objects"},
    TMK_OPTION_HEADING("of devices"),
    {"devices", 0, "N...", NULL, "0 1, 0,1, 0:2 (a MIG part), host, all (all GPUs)"},
    {"duration", 0, "S", NULL, "seconds to watch; 0: until ^C (60; a PID 5)"},
    {"interval", 0, "S", NULL, "seconds between two samples (0.1)"},
    {"warm-up", 0, "S", NULL, "seconds to watch before growth is judged (30)"},
    {"check", 0, NULL, NULL, "watch, judge and end (the default)"},
};

static const char *const description[] = {
    "With a run or a PID: which lines keep more memory after every step, how much, since when, "
    "what keeps it and what to do. A line leaks when its blocks from older and older steps are "
    "still live at its last moment: blocks of four steps or more, older than its blocks "
    "usually get. Full caches, warm-up, gradient accumulation and what an evaluation collects "
    "are not leaks. The verdict needs ten finished steps. A process without steps is cut into "
    "parts with the same number of allocations.",
    "Some growth is named and not judged: caches that fill, results that are collected, work "
    "that grows. docs/leaks.md has the rules.",
    "For a PID it also counts host memory and Python's objects by type, up to ten times within "
    "--duration. Each count stops Python for about 0.3 s per million objects (--no-python: none). "
    "A verdict needs seven counts.",
    "Without a run: the devices of this machine. The memory of a training goes up and down "
    "with its steps, so a leak is a floor that rises in each third of the time, or faster and "
    "faster, while the ceiling rises too. One single rise is no leak, nor is a rise that has "
    "ended. Programs grow while they start: less than --warm-up is not judged, nor is a "
    "program's first --warm-up, nor one that started in the second half. A program that ended "
    "is judged over its own life. Let --duration cover several steps.",
    "LEAK\tit grows steadily, by the threshold or more",
    "grows\tit grows steadily, by less than the threshold",
    "swings\tit is higher now, but did not rise steadily",
    "rose\tit is higher now and never fell",
    "ok\tit does not grow",
    "On the host, processes of 16 MB or more are watched.",
    TMK_MONITORING_NOTES,
    NULL,
};

static const char *const exit_status[] = {
    "0\tclean",
    "1\tsomething leaks, or the run or the time was too short to tell",
    NULL,
};

static const char *const json_keys[] = {
    "verdict\tleak, clean; null: too short to tell",
    "leaks\tlargest first: file line function stack category module bytes_per_step "
    "blocks_per_step first_step (null: the process has no steps) confidence device pid (null: "
    "the device as a whole)",
    "For a run or a PID, each leak also has:",
    "growth\trank first_ns growth_bytes bytes_per_second steps_left seconds_left (until the "
    "GPU is full)",
    "cause\tkept_by (graph container hook cycle growing loader) held_by (Python's referrers; "
    "null: not known) advice source made_in",
    "parts\tsite category module stage bytes_per_step blocks_per_step share",
    "evidence\tevidence pace (even faster) every_steps kept_steps last_step let_go",
    "and the whole has:",
    "falls_back\tsites that grow and are freed again",
    "not_judged\treason (few slowing joined result work state loading) text growth_bytes rises",
    "totals\tsteps below_threshold threshold_mb host python",
    "For devices, the keys about lines are null, and confidence is Kendall's tau of the floors (1: "
    "always up):",
    "leaks\talso process growth_bytes bytes_per_second window_s ended last_bytes",
    "totals\tverdict_reason (why the verdict is null) watched (all that was watched) timestamp "
    "threshold_mb duration_s",
    NULL,
};

static const char *const examples[] = {
    "tidemark leak train.tmk",
    "which lines keep more memory after every step?",
    "tidemark leak 4711 --duration 30",
    "the same for a running process, and its Python objects",
    "tidemark leak --check --threshold 100",
    "does a GPU, or a process on it, grow by 100 MB in a minute?",
    "tidemark leak --devices host --duration 0",
    "main memory of this machine until ^C, then the verdict",
    NULL,
};

const struct tmk_command tmk_cmd_leak = {
    .name = "leak",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Find the lines that leak, or the devices and processes that grow",
    .usage = "[RUN|[HOST:]PID] [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .max_operands = 1,
    .n_targets = 1,
    .is_paged = true,
    .operand = TMK_OPERAND_RUN,
    .exit_status = exit_status,
    .json = json_keys,
    .examples = examples,
    .run = run_leak,
};
