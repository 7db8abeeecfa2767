/* SPDX-License-Identifier: MIT */
/* monitor/device_jobs.c - see device_jobs.h. */
#include "monitor/device_jobs.h"

#include <math.h>

#include "monitor/status.h"

#define RECENT_NS 30000000000u

static void add_job(struct tmk_job_fragmentation *sum, const struct tmk_job_fragmentation *f)
{
    sum->reserved_bytes += f->reserved_bytes;
    sum->allocated_bytes += f->allocated_bytes;
    sum->free_bytes += f->free_bytes;
    sum->releasable_bytes += f->releasable_bytes;
    sum->n_segments += f->n_segments;
    sum->n_blocks += f->n_blocks;
    sum->n_free += f->n_free;
    if (f->largest_bytes > sum->largest_bytes)
        sum->largest_bytes = f->largest_bytes;
    if (f->allocatable_bytes > sum->allocatable_bytes)
        sum->allocatable_bytes = f->allocatable_bytes;
}

struct tmk_job_fragmentation tmk_device_jobs_sum(const struct tmk_device_jobs *d)
{
    struct tmk_job_fragmentation sum = {.rank = -1};
    for (uint64_t i = 0; i < d->n_jobs; i++)
        add_job(&sum, &d->jobs[i]);
    return sum;
}

uint64_t tmk_job_stuck_bytes(const struct tmk_job_fragmentation *f)
{
    return f->free_bytes > f->releasable_bytes ? f->free_bytes - f->releasable_bytes : 0;
}

bool tmk_device_jobs_had_oom(const struct tmk_device_jobs *d, uint64_t elapsed_ns)
{
    return d->n_ooms > 0 && elapsed_ns < d->oom_ns + RECENT_NS;
}

/* ---- JSON ---- */

static void add_job_figures(struct tmk_tree *t, const struct tmk_job_fragmentation *f)
{
    uint64_t stuck = tmk_job_stuck_bytes(f);
    tmk_tree_u64(t, "reserved", f->reserved_bytes);
    tmk_tree_u64(t, "allocated", f->allocated_bytes);
    tmk_tree_u64(t, "free", f->free_bytes);
    tmk_tree_u64(t, "largest_free", f->largest_bytes);
    tmk_tree_u64(t, "largest_allocatable", f->allocatable_bytes);
    tmk_tree_u64(t, "releasable", f->releasable_bytes);
    tmk_tree_u64(t, "stuck", stuck);
    tmk_tree_fixed(t, "percent",
                   f->reserved_bytes ? 100.0 * (double)stuck / (double)f->reserved_bytes : NAN, 2);
    tmk_tree_u64(t, "segments", f->n_segments);
    tmk_tree_u64(t, "blocks", f->n_blocks);
    tmk_tree_u64(t, "free_blocks", f->n_free);
}

void tmk_device_jobs_write(struct tmk_tree *t, const struct tmk_device_jobs *d)
{
    if (tmk_tree_object_if(t, "fragmentation", d->n_jobs > 0)) {
        struct tmk_job_fragmentation sum = tmk_device_jobs_sum(d);
        add_job_figures(t, &sum);
        tmk_tree_list(t, "processes");
        for (uint64_t i = 0; i < d->n_jobs; i++) {
            tmk_tree_object(t, NULL);
            tmk_tree_u64(t, "pid", d->jobs[i].pid);
            tmk_tree_number(t, "rank", d->jobs[i].rank);
            tmk_tree_text(t, "device", d->jobs[i].device);
            add_job_figures(t, &d->jobs[i]);
            tmk_tree_end(t);
        }
        tmk_tree_end(t);
        tmk_tree_end(t);
    }
    tmk_tree_label(t, "fragmentation_reason", d->reason);
}

void tmk_device_ooms_write(struct tmk_tree *t, const struct tmk_device_jobs *d)
{
    char iso[TMK_ISO_BYTES];
    tmk_tree_u64_if(t, "ooms", d != NULL, d ? d->n_ooms : 0);
    if (!tmk_tree_object_if(t, "last_oom", d && d->n_ooms > 0))
        return;
    tmk_tree_text(t, "timestamp", tmk_iso_text(d->oom_time, iso));
    tmk_tree_u64(t, "pid", d->oom_pid);
    tmk_tree_u64(t, "requested", d->oom_bytes);
    tmk_tree_end(t);
}
