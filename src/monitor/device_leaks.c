/* SPDX-License-Identifier: MIT */
/* monitor/device_leaks.c - see device_leaks.h. */
#include "monitor/device_leaks.h"

#include <stdlib.h>

#include "base/error.h"
#include "device/device.h"
#include "kit/grow.h"

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

static int add_device_leaks(struct tmk_leaks *leaks, const struct tmk_watched_device *u)
{
    struct tmk_growth whole = tmk_growth_judge(&u->history);
    struct tmk_leak_row row = {.device = u,
                               .growth = whole,
                               .is_leak = tmk_growth_is_leak(&whole, leaks->threshold_bytes)};
    int rc = add_device_leak_row(leaks, &row);
    for (uint64_t i = 0; i < u->n_processes && rc == 0; i++) {
        row.process = &u->processes[i];
        row.growth = tmk_growth_judge(&row.process->history);
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

int tmk_leaks_find(const struct tmk_sampler *s, uint64_t threshold_bytes, struct tmk_leaks *ret)
{
    int rc = 0;
    *ret = (struct tmk_leaks){.threshold_bytes = threshold_bytes};
    for (unsigned i = 0; i < tmk_sampler_n_devices(s) && rc == 0; i++)
        rc = add_device_leaks(ret, tmk_sampler_device(s, i));
    if (rc == 0 && ret->n)
        qsort(ret->rows, ret->n, sizeof ret->rows[0], by_leak_growth);
    return rc;
}

void tmk_leaks_fini(struct tmk_leaks *leaks)
{
    free(leaks->rows);
    leaks->rows = NULL;
    leaks->n = 0;
}
