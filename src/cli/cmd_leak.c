/* SPDX-License-Identifier: MIT */
/* cli/cmd_leak.c - what grows, on the devices as they are now. */
#include "cli/commands.h"
#include "cli/leak_view.h"
#include "cli/monitoring.h"
#include "kit/amount.h"

#define DEFAULT_MB 100.0
#define MOST_MB 1e9

static void print_json(const struct tmk_leaks *leaks, const struct tmk_monitoring *m)
{
    struct tmk_json j;
    char iso[TMK_ISO_BYTES];
    tmk_json_init(&j, stdout, 2);
    tmk_json_object(&j, NULL);
    tmk_leaks_write(&j, leaks);
    tmk_json_text(&j, "timestamp", tmk_iso_text(time(NULL), iso));
    tmk_json_fixed(&j, "threshold_mb", (double)leaks->threshold_bytes / TMK_MB, 2);
    tmk_json_fixed(&j, "duration_s", (double)m->elapsed_ns / 1e9, 3);
    tmk_json_end(&j);
}

/* Processes that were not listed cannot be judged: that is worth a word. */
static void say_unlisted(const struct tmk_monitoring *m)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(m->sampler); i++) {
        const struct tmk_device_use *u = tmk_sampler_device(m->sampler, i);
        if (u->reason[0])
            tmk_monitoring_say(u, "did not answer", u->reason);
        else if (u->process_reason[0])
            tmk_monitoring_say(u, "does not list its processes", u->process_reason);
    }
}

static int judge(const struct tmk_monitoring *m, double threshold_mb, bool json)
{
    struct tmk_leaks leaks;
    if (tmk_leaks_find(m->sampler, (uint64_t)(threshold_mb * TMK_MB), &leaks) < 0)
        tmk_die("out of memory");
    if (json)
        print_json(&leaks, m);
    else
        tmk_leak_view(&leaks, m->elapsed_ns);
    int status = leaks.n_leaks || !leaks.n_known ? TMK_EXIT_FINDING : TMK_EXIT_OK;
    tmk_leaks_fini(&leaks);
    say_unlisted(m);
    return status;
}

static int run(const struct tmk_args *args)
{
    struct tmk_monitoring m = {0};
    const struct tmk_monitoring_needs needs = {.duration_s = 60, .wants_processes = true};
    double threshold_mb;
    int status = tmk_monitoring_number(args, "threshold", DEFAULT_MB, MOST_MB, &threshold_mb);
    if (status == 0)
        status = tmk_monitoring_open(&m, args, &needs);
    if (status == 0)
        status = tmk_monitoring_run(&m, NULL, NULL);
    if (status == 0)
        status = judge(&m, threshold_mb, tmk_args_get(args, "json") != NULL);
    tmk_monitoring_close(&m);
    return status;
}

static const struct tmk_option options[] = {
    {"check", 0, NULL, NULL, "look, judge and end: what it does anyway"},
    {"threshold", 0, "MB", NULL, "growth that counts, in MB of 1024^2 bytes (100)"},
    TMK_MONITORING_OPTIONS("60"),
    {"json", 0, NULL, NULL, "one JSON object"},
};

static const char notes[] =
    "Memory of a training goes up and down with its steps. A leak is a floor that\n"
    "rises: in each third of the time watched, and with it the ceiling. One step up\n"
    "is none, nor is a rise that has ended. So let the time watched hold several\n"
    "steps, and let a program warm up first: one that came in the second half of it\n"
    "is not judged; one that has ended is, over its own life. Verdicts: LEAK; grows,\n"
    "by less than the threshold; swings, is higher now but not steadily; ok. Exit\n"
    "status: 1 when something leaks, or the time was too short. Of the host,\n"
    "processes of 16 MB or more are looked at.\n"
    "\n" TMK_MONITORING_NOTES "\n"
    "json: verdict (leak, clean; null: too short), leaks, largest first: file line\n"
    "function stack category module bytes_per_step blocks_per_step first_step (all\n"
    "unknown here) confidence (Kendall's tau of the floors: 1 always up) device pid\n"
    "process growth_bytes bytes_per_second window_s ended last_bytes; watched: all\n"
    "that was looked at; timestamp threshold_mb duration_s. pid null: the device as\n"
    "a whole.\n";

static const char *const examples[] = {
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
    .summary = "Find out which devices and processes grow",
    .usage = "[--check] [--threshold MB] [--devices N...] [--duration S] [--interval S] [--json]",
    .notes = notes,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .examples = examples,
    .run = run,
};
