/* SPDX-License-Identifier: MIT */
/* fleet/followed_jobs.c - see followed_jobs.h.
 *
 * What costs most rests longest: after the list of watched processes took n ms of processor time,
 * it is due again in LIST_REST times that, and so are the blocks of a process. */
#include "fleet/followed_jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fleet/collector.h"
#include "fleet/job_follower.h"
#include "kit/grow.h"
#include "kit/kernel_files.h"
#include "model/watched.h"

enum { LIST_REST = 400, BLOCKS_REST = 4000 };

#define NS_PER_S 1000000000u
#define LIST_PAUSE_NS (5 * (uint64_t)NS_PER_S)
#define BLOCKS_PAUSE_NS (10 * (uint64_t)NS_PER_S)

struct followed_entry {
    struct tmk_followed_job shown;
    struct tmk_job_follower *follower;
    uint64_t start_ticks;
    uint64_t blocks_due_ns;
    uint64_t over_ns; /* when it was seen to have ended; 0: it lives */
    bool is_listed;
};

struct tmk_followed_jobs {
    unsigned most;
    bool wants_blocks;
    struct followed_entry *entries; /* by PID */
    uint64_t n, room;
    uint64_t n_watched, n_folded;
    uint64_t list_due_ns;
};

struct tmk_followed_jobs *tmk_followed_jobs_open(unsigned most, bool wants_blocks)
{
    struct tmk_followed_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs) {
        jobs->most = most;
        jobs->wants_blocks = wants_blocks;
    }
    return jobs;
}

struct tmk_followed_jobs *tmk_followed_jobs_close(struct tmk_followed_jobs *jobs)
{
    if (!jobs)
        return NULL;
    for (uint64_t i = 0; i < jobs->n; i++)
        tmk_job_follower_close(jobs->entries[i].follower);
    free(jobs->entries);
    free(jobs);
    return NULL;
}

/* ---- the list ---- */

static struct followed_entry *find_entry(struct tmk_followed_jobs *jobs,
                                         const struct tmk_watched *w)
{
    for (uint64_t i = 0; i < jobs->n; i++) {
        const struct tmk_watched *known = tmk_job_follower_watched(jobs->entries[i].follower);
        if (known->pid == w->pid && strcmp(known->trace_path, w->trace_path) == 0)
            return &jobs->entries[i];
    }
    return NULL;
}

static void describe_entry(struct followed_entry *e, const struct tmk_watched *w)
{
    struct tmk_node_job *job = &e->shown.job;
    tmk_process_facts_read("/proc", w->pid, &e->shown.facts);
    *job = (struct tmk_node_job){.pid = w->pid,
                                 .rank = -1,
                                 .world_size = -1,
                                 .start_s = NAN,
                                 .read_s = NAN,
                                 .blocks_s = NAN};
    tmk_watched_folder(w, job->run, sizeof job->run);
    if (e->shown.facts.job[0])
        snprintf(job->job, sizeof job->job, "%s", e->shown.facts.job);
    else
        tmk_job_name_of_run(job->run, job->job);
    job->container = e->shown.facts.container;
    e->start_ticks = tmk_process_start_ticks("/proc", (pid_t)w->pid);
}

static int add_entry(struct tmk_followed_jobs *jobs, const struct tmk_watched *w)
{
    if (TMK_GROW(jobs->entries, jobs->n + 1, jobs->room) < 0)
        return TMK_ENOMEM;
    struct followed_entry *e = &jobs->entries[jobs->n];
    *e = (struct followed_entry){.follower = tmk_job_follower_open(w), .is_listed = true};
    if (!e->follower)
        return TMK_ENOMEM;
    describe_entry(e, w);
    jobs->n++;
    return 0;
}

static int by_entry_pid(const void *va, const void *vb)
{
    const struct followed_entry *a = va, *b = vb;
    return a->shown.job.pid < b->shown.job.pid ? -1 : a->shown.job.pid > b->shown.job.pid;
}

static int take_job_list(struct tmk_followed_jobs *jobs, const struct tmk_watched *list, uint32_t n)
{
    int rc = 0;
    jobs->n_watched = n;
    jobs->n_folded = 0;
    for (uint64_t i = 0; i < jobs->n; i++)
        jobs->entries[i].is_listed = false;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct followed_entry *known = find_entry(jobs, &list[i]);
        if (known)
            known->is_listed = true;
        else if (jobs->n < jobs->most)
            rc = add_entry(jobs, &list[i]);
        else
            jobs->n_folded++;
    }
    if (jobs->n > 1)
        qsort(jobs->entries, jobs->n, sizeof *jobs->entries, by_entry_pid);
    return rc;
}

static int list_watched_jobs(struct tmk_followed_jobs *jobs, uint64_t now, struct tmk_error *err)
{
    struct tmk_watched *list = NULL;
    uint32_t n = 0;
    uint64_t start_ns = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int rc = tmk_watched_list(&list, &n, err);
    if (rc == TMK_ENOMEM)
        return rc;
    if (rc == 0 && (rc = take_job_list(jobs, list, n)) < 0)
        tmk_fail(err, rc, "out of memory");
    free(list);
    uint64_t rest = (tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns) * LIST_REST;
    jobs->list_due_ns = now + (rest > LIST_PAUSE_NS ? rest : LIST_PAUSE_NS);
    return rc == TMK_ENOMEM ? rc : 0;
}

/* ---- reading ---- */

static bool has_died(const struct followed_entry *e)
{
    return tmk_process_start_ticks("/proc", (pid_t)e->shown.job.pid) != e->start_ticks;
}

/* A trace that cannot be read leaves nothing but the process's name. */
static void forget_figures(struct tmk_node_job *job)
{
    job->n_uses = 0;
    job->read_s = job->blocks_s = NAN;
}

static void read_entry(struct tmk_followed_jobs *jobs, struct followed_entry *e, uint64_t now)
{
    bool wants_blocks = jobs->wants_blocks && e->blocks_due_ns <= now;
    uint64_t start_ns = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (tmk_job_follower_look(e->follower, wants_blocks, &e->shown.job, NULL) < 0)
        forget_figures(&e->shown.job);
    if (!wants_blocks)
        return;
    uint64_t rest = (tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns) * BLOCKS_REST;
    e->blocks_due_ns = now + (rest > BLOCKS_PAUSE_NS ? rest : BLOCKS_PAUSE_NS);
}

/* After its end a process is read once more: its recorder wrote the rest when it ended. */
static void look_at_entry(struct tmk_followed_jobs *jobs, struct followed_entry *e, uint64_t now)
{
    bool is_over = !e->is_listed || has_died(e);
    if (e->over_ns && is_over)
        return;
    read_entry(jobs, e, now);
    e->over_ns = is_over ? now : 0;
    e->shown.job.is_over = is_over;
}

static void drop_old_entries(struct tmk_followed_jobs *jobs, uint64_t now)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < jobs->n; i++) {
        struct followed_entry *e = &jobs->entries[i];
        if (e->over_ns && now - e->over_ns >= TMK_JOB_LINGER_S * (uint64_t)NS_PER_S)
            tmk_job_follower_close(e->follower);
        else
            jobs->entries[kept++] = *e;
    }
    jobs->n = kept;
}

int tmk_followed_jobs_look(struct tmk_followed_jobs *jobs, struct tmk_followed_totals *ret,
                           struct tmk_error *err)
{
    uint64_t now = tmk_clock_monotonic_ns();
    drop_old_entries(jobs, now);
    int rc = jobs->list_due_ns <= now ? list_watched_jobs(jobs, now, err) : 0;
    if (rc < 0)
        return rc;
    for (uint64_t i = 0; i < jobs->n; i++)
        look_at_entry(jobs, &jobs->entries[i], now);
    *ret = (struct tmk_followed_totals){jobs->n, jobs->n_watched, jobs->n_folded};
    return 0;
}

const struct tmk_followed_job *tmk_followed_jobs_get(const struct tmk_followed_jobs *jobs,
                                                     uint64_t i)
{
    return &jobs->entries[i].shown;
}
