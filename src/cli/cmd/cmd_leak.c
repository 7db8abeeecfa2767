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
    {"check", 0, NULL, NULL, "look, judge and end: what it does anyway"},
    {"threshold", 0, "MB", NULL, "growth that counts, MB of 1024^2 (devices 100, run 1)"},
    {"devices", 0, "N...", NULL, "0 1, 0,1, 0:2 (a part), host, all (all cards)"},
    {"duration", 0, "S", NULL, "seconds watched; 0: until ^C or kill (60; of a PID 5)"},
    {"interval", 0, "S", NULL, "seconds between two samples (0.1)"},
    {"warm-up", 0, "S", NULL, "seconds watched before growth is judged (30)"},
    {"rank", 0, "N", NULL, "of a run: this rank alone"},
    {"no-python", 0, NULL, NULL, "of a PID: do not count Python's objects"},
    {"json", 0, NULL, NULL, "one JSON object"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "With a run, or the PID of a watched process: which lines of code keep more with every "
    "step, how much, since when, what keeps it and what to do. A line leaks when blocks of "
    "older and older steps are alive at its last moment, before most of them go at once: of "
    "four steps or more, older than its blocks usually get. Caches that are full, warm-up, "
    "gradient accumulation and what an evaluation gathers are no leaks. Named but not judged "
    "is what few steps kept, fewer and fewer (a cache that fills), results that are "
    "gathered, and work that grows. It takes ten finished steps; a process without steps is "
    "cut into parts with as many blocks made in each. docs/leaks.md says how numbers are "
    "made. Of a PID also the host's memory and Python's objects by type, up to ten looks in "
    "--duration; a look holds Python up for about 0.3 s per million objects (--no-python: "
    "none), and a verdict takes seven.",
    "Without: the devices of this machine. Memory of a training goes up and down with its "
    "steps. A leak is a floor that rises: in each third of the time watched, or faster and "
    "faster, and with it the ceiling. One step up is none, nor is a rise that has ended. "
    "Programs grow while they start, so less than --warm-up is not judged, nor are the first "
    "--warm-up of a program that came meanwhile, nor one that came in the second half; one "
    "that has ended is, over its own life. Let the time watched hold several steps. "
    "Verdicts: LEAK; grows, by less than the threshold; swings, is higher now but not "
    "steadily; rose, likewise, and never fell; ok. Of the host, processes of 16 MB or more "
    "are looked at.",
    TMK_MONITORING_NOTES,
    NULL,
};

static const char *const exit_status[] = {
    "Of both: 0 clean; 1 when something leaks, or the run or the time was too "
    "short to tell: what was not judged passes no gate.",
    NULL,
};

static const char *const json_keys[] = {
    "json: verdict (leak, clean; null: too short), leaks, largest first: file line function "
    "stack category module bytes_per_step blocks_per_step first_step (null: the process has "
    "no steps) confidence device pid. Of a run also rank first_ns growth_bytes "
    "bytes_per_second steps_left seconds_left (until the card is full) kept_by (graph "
    "container hook cycle growing loader) held_by (what Python says has them; null: not "
    "known) advice parts pace (even faster) every_steps kept_steps last_step let_go evidence "
    "source made_in; and falls_back (grows and goes again) not_judged (reason: few slowing "
    "joined result work state loading; text growth_bytes rises) steps below_threshold "
    "threshold_mb host python. Of devices what is about lines is null, confidence is "
    "Kendall's tau of the floors (1: always up), and there is process growth_bytes "
    "bytes_per_second window_s ended last_bytes; verdict_reason (why it is null); watched: "
    "all that was looked at; timestamp threshold_mb duration_s. pid null: the device as a "
    "whole.",
    NULL,
};

static const char *const examples[] = {
    "tidemark leak a.tmk",
    "which lines of that run keep more with every step?",
    "tidemark leak 4242 --duration 30",
    "the same of a process that runs, and what grows in its Python",
    "tidemark leak --check --threshold 100",
    "does a card, or a process on it, grow by 100 MB in a minute?",
    "tidemark leak --devices 0 --duration 600",
    "ten minutes of card 0",
    "tidemark leak --devices host --duration 0",
    "the machine's own memory until ^C, then the verdict",
    NULL,
};

const struct tmk_command tmk_cmd_leak = {
    .name = "leak",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Find the lines that leak, or which devices and processes grow",
    .usage = "[RUN|[HOST:]PID] [--check] [--threshold MB] [--devices N...] [--duration S] "
             "[--interval S] [--warm-up S] [--rank N] [--no-python] [--json]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .max_operands = 1,
    .n_targets = 1,
    .operand = TMK_OPERAND_RUN,
    .exit_status = exit_status,
    .json = json_keys,
    .examples = examples,
    .run = run_leak,
};
