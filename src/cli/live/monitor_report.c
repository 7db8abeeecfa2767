/* SPDX-License-Identifier: MIT */
/* cli/live/monitor_report.c - see monitor_report.h. */
#include "cli/live/monitor_report.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "cli/live/monitoring.h"
#include "cli/output/output_file.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/plot/plot_picture.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/table.h"
#include "kit/tree.h"
#include "monitor/device_jobs.h"
#include "monitor/sampler.h"

static bool is_screen(const char *path)
{
    return strcmp(path, "-") == 0;
}

int tmk_monitor_report_check(const struct tmk_args *args)
{
    const char *output = tmk_args_get(args, "output"), *plot = tmk_args_get(args, "plot");
    int status = plot ? tmk_picture_check(plot) : 0;
    if (status == 0 && output && !is_screen(output))
        status = tmk_output_file_check(output);
    return status;
}

bool tmk_monitor_report_is_json(const struct tmk_args *args)
{
    const char *output = tmk_args_get(args, "output");
    return tmk_args_get(args, "json") || (output && is_screen(output));
}

/* ---- JSON ---- */

static void write_json(FILE *out, const void *arg)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, out, 4);
    tmk_monitor_status_write(&t, arg);
}

static int write_report_file(const struct tmk_monitor_status *status, const char *path)
{
    int rc = tmk_output_file_write(path, write_json, status);
    if (rc == 0)
        tmk_say("report written to %s", path);
    return rc;
}

/* ---- the table ---- */

static void add_monitored_device(struct tmk_table *t, const struct tmk_watched_device *u)
{
    bool known = u->n_samples > 0;
    tmk_table_cell(t, u->label);
    tmk_table_cell(t, u->device->name[0] ? u->device->name : NULL);
    tmk_table_size(t, u->has_now ? u->now.used_bytes : TMK_BYTES_UNKNOWN);
    tmk_table_size(t, u->has_now ? u->now.total_bytes : TMK_BYTES_UNKNOWN);
    if (u->has_now)
        tmk_table_cellf(t, "%.1f %%", tmk_device_use_percent(u));
    else
        tmk_table_cell(t, NULL);
    if (known) {
        tmk_table_cellf(t, "%.1f %%", u->sum_percent / (double)u->n_samples);
        tmk_table_cellf(t, "%.1f %%", u->max_percent);
    } else {
        tmk_table_cell(t, NULL);
        tmk_table_cell(t, NULL);
    }
    tmk_table_count(t, u->n_samples);
}

static void print_device_table(const struct tmk_monitor_status *status)
{
    static const struct tmk_column columns[] = {
        {"device", TMK_LEFT, TMK_FIXED}, {"name", TMK_LEFT, TMK_SHRINK},
        {"used", TMK_RIGHT, TMK_FIXED},  {"total", TMK_RIGHT, TMK_FIXED},
        {"now", TMK_RIGHT, TMK_FIXED},   {"mean", TMK_RIGHT, TMK_FIXED},
        {"most", TMK_RIGHT, TMK_FIXED},  {"samples", TMK_RIGHT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    for (unsigned i = 0; i < tmk_sampler_n_devices(status->sampler); i++)
        add_monitored_device(t, tmk_sampler_device(status->sampler, i));
    tmk_sheet_table(&sheet, t);
    for (unsigned i = 0; i < tmk_sampler_n_devices(status->sampler); i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(status->sampler, i);
        if (u->reason[0])
            tmk_monitoring_say(u, "did not answer", u->reason);
    }
}

/* ---- fragmentation ---- */

static void print_fragmentation(const struct tmk_watched_device *u, const struct tmk_device_jobs *d)
{
    char stuck[TMK_AMOUNT_BYTES], reserved[TMK_AMOUNT_BYTES], largest[TMK_AMOUNT_BYTES];
    struct tmk_job_fragmentation sum = tmk_device_jobs_sum(d);
    if (!d->n_jobs) {
        tmk_print(stdout, _("fragmentation of %s: not known: %s\n"), u->label, _(d->reason));
        return;
    }
    uint64_t bytes = tmk_job_stuck_bytes(&sum);
    tmk_print(stdout,
              _("fragmentation of %s: %s of %s reserved (%.1f %%) lie free between blocks; the "
                "largest free block is %s\n"),
              u->label, tmk_size_text(bytes, stuck), tmk_size_text(sum.reserved_bytes, reserved),
              sum.reserved_bytes ? 100.0 * (double)bytes / (double)sum.reserved_bytes : 0.0,
              tmk_size_text(sum.largest_bytes, largest));
    if (d->reason[0])
        tmk_print(stdout, _("  without %s\n"), _(d->reason));
}

void tmk_fragmentation_text(const struct tmk_monitor_status *status)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(status->sampler); i++)
        print_fragmentation(tmk_sampler_device(status->sampler, i), &status->jobs[i]);
}

/* ---- all of it ---- */

static bool has_answer(const struct tmk_sampler *s)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(s); i++)
        if (tmk_sampler_device(s, i)->n_samples)
            return true;
    return false;
}

/* Files come first: stdout may be closed, which ends the program. */
int tmk_monitor_report(const struct tmk_monitor_status *status, const struct tmk_args *args)
{
    const char *output = tmk_args_get(args, "output"), *plot = tmk_args_get(args, "plot");
    int written = 0, drawn = 0;
    if (output && !is_screen(output))
        written = write_report_file(status, output);
    if (plot)
        drawn = tmk_monitor_plot(status, plot);
    if (tmk_monitor_report_is_json(args))
        write_json(stdout, status);
    else
        print_device_table(status);
    if (written == 0 && !has_answer(status->sampler))
        return TMK_EXIT_FINDING;
    return written ? written : drawn;
}
