/* SPDX-License-Identifier: MIT */
/* cli/live/leaks_text.c - see monitor_report.h. */
#include "cli/live/monitor_report.h"

#include "base/array.h"
#include "cli/output/sheet.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/table.h"
#include "monitor/device_leaks.h"
#include "monitor/growth.h"

enum { SHOWN_ROWS = 20 };

static void say_growth_verdict(const struct tmk_leaks *leaks, uint64_t elapsed_ns)
{
    char time[TMK_AMOUNT_BYTES], reason[TMK_LEAKS_REASON_BYTES];
    double threshold_mb = (double)leaks->threshold_bytes / TMK_MB;
    tmk_time_text(elapsed_ns, time);
    if (leaks->n_leaks)
        tmk_print(stdout, _("leak: %llu of %llu grew steadily by %g MB or more in %s\n"),
                  (unsigned long long)leaks->n_leaks, (unsigned long long)leaks->n, threshold_mb,
                  time);
    else if (leaks->n_known)
        tmk_print(stdout, _("clean: nothing grew steadily by %g MB or more in %s\n"), threshold_mb,
                  time);
    else
        tmk_print(stdout, "%s\n", tmk_leaks_reason(leaks, elapsed_ns, reason));
}

static void add_amount(struct tmk_table *t, int64_t bytes, const char *behind)
{
    char text[TMK_AMOUNT_BYTES];
    uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    tmk_table_cellf(t, "%s%s%s",
                    bytes < 0   ? "-"
                    : bytes > 0 ? "+"
                                : "",
                    tmk_size_text(size, text), behind);
}

static const char *verdict_of_growth(const struct tmk_leak_row *row, uint64_t threshold_bytes)
{
    if (row->is_leak)
        return row->growth.is_faster ? _("LEAK, faster and faster") : _("LEAK");
    if (row->growth.is_steady)
        return _("grows");
    bool is_large = row->growth.bytes > 0 && (uint64_t)row->growth.bytes >= threshold_bytes;
    return !is_large ? _("ok") : row->growth.falls ? _("swings") : _("rose");
}

static void add_growth_row(struct tmk_table *t, const struct tmk_leak_row *row,
                           uint64_t threshold_bytes)
{
    const struct tmk_growth *g = &row->growth;
    tmk_table_cell(t, row->device->label);
    if (row->process) {
        tmk_table_cellf(t, "%d", (int)row->process->now.pid);
        tmk_table_cell(t, row->process->now.name[0] ? row->process->now.name : NULL);
    } else {
        tmk_table_cell(t, _("all"));
        tmk_table_cell(t, row->device->device->name);
    }
    if (!g->is_known) {
        tmk_table_cell(t, NULL);
        tmk_table_cell(t, NULL);
        tmk_table_cell(t, _("too short"));
        return;
    }
    add_amount(t, g->bytes, "");
    add_amount(t, g->span_ns ? (int64_t)((double)g->bytes * 60e9 / (double)g->span_ns) : 0, "/min");
    tmk_table_cellf(t, "%s%s", verdict_of_growth(row, threshold_bytes),
                    row->process && row->process->has_ended ? _(", ended") : "");
}

void tmk_leaks_text(const struct tmk_leaks *leaks, uint64_t elapsed_ns)
{
    static const struct tmk_column columns[] = {
        {"device", TMK_LEFT, TMK_FIXED}, {"process", TMK_RIGHT, TMK_FIXED},
        {"name", TMK_LEFT, TMK_SHRINK},  {"growth", TMK_RIGHT, TMK_FIXED},
        {"rate", TMK_RIGHT, TMK_FIXED},  {"verdict", TMK_LEFT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    say_growth_verdict(leaks, elapsed_ns);
    for (uint64_t i = 0; i < leaks->n && i < SHOWN_ROWS; i++)
        add_growth_row(t, &leaks->rows[i], leaks->threshold_bytes);
    tmk_sheet_table(&sheet, t);
    if (leaks->n > SHOWN_ROWS)
        tmk_print(stdout, _("  and %llu more; --json has all\n"),
                  (unsigned long long)(leaks->n - SHOWN_ROWS));
}
