/* SPDX-License-Identifier: MIT */
/* monitor/device_leaks.c - see device_leaks.h. */
#include "monitor/device_leaks.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "device/device.h"
#include "kit/grow.h"
#include "kit/language.h"

static int add_device_leak_row(struct tmk_leaks *leaks, const struct tmk_leak_row *row)
{
    if (TMK_GROW(leaks->rows, leaks->n + 1, leaks->room) < 0)
        return TMK_ENOMEM;
    leaks->rows[leaks->n++] = *row;
    leaks->n_leaks += row->is_leak;
    leaks->n_known += row->growth.is_known;
    return 0;
}

/* A process that lived for less than half of the time has not shown what it does in the long run.
 * If it has ended, a GPU's process is judged all the same, because a leak may have killed it. On
 * the host many programs end early, such as compilers. */
static bool is_too_short(const struct tmk_leak_row *row, uint64_t whole_ns)
{
    bool is_case = row->process->has_ended && row->device->device->kind != TMK_DEVICE_HOST;
    return !is_case && row->growth.span_ns < whole_ns / 2;
}

/* From when on a process is judged: one that came while its device was watched has started. */
static uint64_t judged_from(const struct tmk_leaks *leaks, const struct tmk_watched_device *u,
                            const struct tmk_process_use *p)
{
    uint64_t first_ns = p->history.n ? p->history.entries[0].start_ns : 0;
    uint64_t listed_ns = u->first_list_ns;
    return first_ns > listed_ns ? first_ns + leaks->least_ns : 0;
}

static int add_device_leaks(struct tmk_leaks *leaks, const struct tmk_watched_device *u)
{
    struct tmk_growth whole = tmk_growth_judge(&u->history, 0, leaks->least_ns);
    struct tmk_leak_row row = {.device = u,
                               .growth = whole,
                               .is_leak = tmk_growth_is_leak(&whole, leaks->threshold_bytes)};
    int rc = add_device_leak_row(leaks, &row);
    for (uint64_t i = 0; i < u->n_processes && rc == 0; i++) {
        row.process = &u->processes[i];
        row.growth = tmk_growth_judge(&row.process->history, judged_from(leaks, u, row.process),
                                      leaks->least_ns);
        if (is_too_short(&row, whole.span_ns))
            row.growth = (struct tmk_growth){0};
        row.is_leak = tmk_growth_is_leak(&row.growth, leaks->threshold_bytes);
        rc = add_device_leak_row(leaks, &row);
    }
    return rc;
}

/* Rows that tie keep the order of devices and processes. */
static int by_leak_growth(const void *a, const void *b)
{
    const struct tmk_leak_row *p = a, *q = b;
    if (p->is_leak != q->is_leak)
        return p->is_leak ? -1 : 1;
    if (p->growth.bytes != q->growth.bytes)
        return p->growth.bytes > q->growth.bytes ? -1 : 1;
    if (p->device != q->device)
        return p->device < q->device ? -1 : 1;
    return p->process < q->process ? -1 : p->process > q->process;
}

int tmk_leaks_find(const struct tmk_sampler *s, uint64_t threshold_bytes, uint64_t least_ns,
                   struct tmk_leaks *ret)
{
    int rc = 0;
    *ret = (struct tmk_leaks){.threshold_bytes = threshold_bytes, .least_ns = least_ns};
    for (unsigned i = 0; i < tmk_sampler_n_devices(s) && rc == 0; i++)
        rc = add_device_leaks(ret, tmk_sampler_device(s, i));
    if (rc == 0 && ret->n)
        qsort(ret->rows, ret->n, sizeof ret->rows[0], by_leak_growth);
    return rc;
}

const char *tmk_leaks_reason(const struct tmk_leaks *leaks, uint64_t elapsed_ns, char *buffer)
{
    if (leaks->n_known)
        return NULL;
    snprintf(buffer, TMK_LEAKS_REASON_BYTES,
             _("too short to tell: watched for %.1f s; a verdict takes %g s and %d samples"),
             (double)elapsed_ns / 1e9, (double)leaks->least_ns / 1e9, TMK_GROWTH_LEAST_SAMPLES);
    return buffer;
}

void tmk_leaks_fini(struct tmk_leaks *leaks)
{
    free(leaks->rows);
    leaks->rows = NULL;
    leaks->n = 0;
}
