/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_oom.c - is a device almost full, or will it be? Once, or for as long as one likes. */
#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/live/monitoring.h"
#include "cli/live/oom_watch.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/table.h"
#include "kit/tree.h"
#include "monitor/alarm.h"
#include "monitor/sampler.h"
#include "monitor/status.h"

/* ---- what is printed ---- */

/* Add a forecast such as "high, in 45.2 s". */
static void add_forecast_cells(struct tmk_table *t, const struct tmk_oom_watch *w, unsigned i)
{
    char text[TMK_AMOUNT_BYTES];
    struct tmk_device_forecast p = tmk_oom_watch_forecast(w, i);
    if (p.has_time)
        tmk_table_cellf(t, _("%s, in %s"), _(tmk_risk_text(p.risk_level)),
                        tmk_time_text((uint64_t)(p.predicted_oom_time * 1e9), text));
    else
        tmk_table_cell(t, _(tmk_risk_text(p.risk_level)));
}

static void add_alarm_row(struct tmk_table *t, const struct tmk_oom_watch *w, unsigned i)
{
    const struct tmk_watched_device *u = tmk_sampler_device(w->m->sampler, i);
    const struct tmk_alarm *alarm = &w->alarms[i];
    tmk_table_cell(t, u->label);
    tmk_table_cell(t, u->device->name[0] ? u->device->name : NULL);
    tmk_table_size(t, u->has_now ? u->now.used_bytes : TMK_BYTES_UNKNOWN);
    tmk_table_size(t, u->has_now ? u->now.total_bytes : TMK_BYTES_UNKNOWN);
    if (u->has_now)
        tmk_table_cellf(t, "%.1f %%", tmk_device_taken_percent(u));
    else
        tmk_table_cell(t, NULL);
    tmk_table_cellf(t, "%g %%", alarm->threshold_percent);
    tmk_table_count(t, alarm->n_passed);
    add_forecast_cells(t, w, i);
}

static void print_oom_table(const struct tmk_oom_watch *w)
{
    static const struct tmk_column columns[] = {
        {"device", TMK_LEFT, TMK_FIXED},  {"name", TMK_LEFT, TMK_SHRINK},
        {"used", TMK_RIGHT, TMK_FIXED},   {"total", TMK_RIGHT, TMK_FIXED},
        {"now", TMK_RIGHT, TMK_FIXED},    {"threshold", TMK_RIGHT, TMK_FIXED},
        {"passed", TMK_RIGHT, TMK_FIXED}, {"risk", TMK_LEFT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++)
        add_alarm_row(t, w, i);
    tmk_sheet_table(&sheet, t);
}

/* Returns "over" or "below"; NULL, not known, when no device was ever asked. */
static const char *verdict_of_watch(const struct tmk_oom_watch *w)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++)
        n += tmk_sampler_device(w->m->sampler, i)->n_samples;
    return n == 0 ? NULL : tmk_oom_watch_is_over(w) ? _("over") : _("below");
}

static void print_oom_json(const struct tmk_oom_watch *w, double threshold)
{
    struct tmk_tree t;
    char iso[TMK_ISO_BYTES];
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_text(&t, "timestamp", tmk_iso_text(time(NULL), iso));
    tmk_tree_text(&t, "verdict", verdict_of_watch(w));
    tmk_tree_fixed(&t, "threshold", threshold, 2);
    tmk_tree_list(&t, "predictions");
    for (unsigned i = 0; i < tmk_sampler_n_devices(w->m->sampler); i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(w->m->sampler, i);
        struct tmk_device_forecast p = tmk_oom_watch_forecast(w, i);
        tmk_device_forecast_write(&t, NULL, u, &w->alarms[i], &p, tmk_oom_watch_jobs(w, i));
    }
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}

/* Say which devices do not answer. Returns how many. */
static unsigned say_silent(const struct tmk_monitoring *m)
{
    unsigned n = 0;
    for (unsigned i = 0; i < tmk_sampler_n_devices(m->sampler); i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(m->sampler, i);
        if (u->has_now)
            continue;
        n++;
        tmk_monitoring_say(u, "did not answer", u->reason[0] ? u->reason : _("it was not asked"));
    }
    return n;
}

/* ---- the command ---- */

static int watch_for_oom(struct tmk_monitoring *m, const struct tmk_args *args, double threshold,
                         uint64_t warm_up_ns)
{
    struct tmk_oom_watch w;
    bool json = tmk_args_get(args, "json") != NULL, once = !tmk_args_get(args, "monitor");
    tmk_oom_watch_init(&w, m, threshold, tmk_args_get(args, "exec"), json ? stderr : stdout);
    w.warm_up_ns = warm_up_ns;
    if (!once)
        tmk_oom_watch_begin_jobs(&w);
    int status = tmk_monitoring_run(m, tmk_oom_watch_look, &w);
    if (status == 0) {
        tmk_oom_watch_finish(&w);
        if (json)
            print_oom_json(&w, threshold);
        else
            print_oom_table(&w);
        status = say_silent(m) || tmk_oom_watch_found(&w) ? TMK_EXIT_FINDING : TMK_EXIT_OK;
    }
    tmk_monitoring_release(m);
    tmk_oom_watch_fini(&w, once);
    return status;
}

static int run_oom(const struct tmk_args *args)
{
    struct tmk_monitoring m = {0};
    double threshold;
    bool once = !tmk_args_get(args, "monitor");
    uint64_t warm_up_ns = TMK_DEVICE_FORECAST_WARM_UP_NS;
    if (once && (tmk_args_get(args, "duration") || tmk_args_get(args, "interval") ||
                 tmk_args_get(args, "warm-up"))) {
        tmk_say("--duration, --interval and --warm-up want --monitor: without it, oom looks once");
        return TMK_EXIT_USAGE;
    }
    int status =
        tmk_monitoring_number(args, "threshold", TMK_DEVICE_FORECAST_THRESHOLD, 100, &threshold);
    if (status == 0)
        status = tmk_monitoring_time(args, "warm-up", &warm_up_ns);
    if (status == 0)
        status = tmk_monitoring_open(&m, args, &(struct tmk_monitoring_needs){.once = once});
    if (status == 0)
        status = watch_for_oom(&m, args, threshold, warm_up_ns);
    tmk_monitoring_close(&m);
    return status;
}

static const struct tmk_option options[] = {
    {"threshold", 0, "PCT", NULL, "how full is too full, in percent (85)"},
    {"monitor", 0, NULL, NULL, "keep watching; without it: one look"},
    {"exec", 0, "CMD", NULL, "a shell command to run when a device gets too full"},
    {"warm-up", 0, "S", NULL, "seconds watched before an OOM is forecast (60)"},
    TMK_MONITORING_OPTIONS("0"),
    {"json", 0, NULL, NULL, "print one JSON object at the end; warnings go to stderr"},
};

static const char *const description[] = {
    "With --monitor it also warns, whatever the threshold, when the use of a device grows so "
    "that it will run out of memory. That takes a minute of samples (--warm-up), because "
    "programs grow while they start, unless less than half a minute is left. It warns again "
    "when the device is full, and when a request of a recorded process fails on it. From the "
    "threshold on, the risk is critical whatever the trend. docs/forecast.md explains risk and "
    "confidence.",
    "The threshold is for memory that nobody can allocate any more: used, or kept by the "
    "driver. A device warns again only after it was 2 points below the threshold (below a "
    "threshold of 4: half of it).",
    "The command of --exec finds TIDEMARK_OOM_DEVICE, _NAME, _USED_BYTES, _TOTAL_BYTES, "
    "_PERCENT, _THRESHOLD, _RISK, _SECONDS (until the predicted OOM) and _PID (the process "
    "with the most memory, where known) in its environment. Its output goes to stderr, and ^C "
    "does not reach it. With --monitor it runs in the background.",
    TMK_MONITORING_NOTES,
    NULL,
};

static const char *const exit_status[] = {
    "0\tno device is at the threshold",
    "1\ta device was at the threshold, was forecast to run out (risk high or critical), or did "
    "not answer",
    "2\twrong usage",
    NULL,
};

static const char *const json_keys[] = {
    "verdict\tover, below; null: no device answered",
    "timestamp, threshold\twhen, and the percentage",
    "predictions\teach: device_id risk_level predicted_oom_time (seconds) confidence "
    "current_usage (percent) trend_slope (bytes a second) recommended_actions name allocated "
    "total threshold over_threshold times_passed error predicted_low predicted_high cause",
    "taken_percent\tin predictions: with what the driver keeps; the threshold is for this",
    "ooms, last_oom\tin predictions, with --monitor: OOMs of recorded processes: timestamp pid "
    "requested",
    NULL,
};

static const char *const examples[] = {
    "tidemark oom --threshold 90",
    "one look at all devices; exit status 1 when one is 90 % full",
    "tidemark oom --monitor --devices 0",
    "warn until ^C when GPU 0 gets full or is about to",
    "tidemark oom --monitor --exec 'kill -USR1 $TIDEMARK_OOM_PID'",
    "tell the process with the most memory to save its work",
    NULL,
};

const struct tmk_command tmk_cmd_oom = {
    .name = "oom",
    .group = TMK_GROUP_LIVE,
    .summary = "Warn before a device runs out of memory",
    .usage = "[options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .exit_status = exit_status,
    .json = json_keys,
    .examples = examples,
    .run = run_oom,
};
