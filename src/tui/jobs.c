/* SPDX-License-Identifier: MIT */
/* tui/jobs.c - see jobs.h. */
#include "tui/jobs.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "kit/errand.h"
#include "kit/grow.h"
#include "model/run.h"
#include "model/watched.h"
#include "passes/steps.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

/* With one thing to read, reading that took 1 ms of a core is repeated after this many ms. Of n
 * things each gets its part. */
enum { REST = 200 };
#define LIST_PAUSE_NS 5000000000u
#define MOST_PAUSE_NS 60000000000u /* no figure shall be older */
#define ERRAND_NS 20000000u        /* the figures read so far are shown then */

struct job_entry {
    struct tmk_watched where;
    struct tmk_job job;
    uint64_t due_ns;
    bool is_over;
};

struct tmk_jobs {
    atomic_uint_fast64_t interval_ns;
    struct tmk_errand errand;
    struct job_entry *entries; /* by PID; belongs to the errand while that runs */
    uint64_t n_entries;
    uint64_t list_due_ns;
    struct tmk_job *shown;
    uint64_t n_shown, shown_room;
};

/* ---- one trace ---- */

/* Note how its steps go. */
static void note_steps(struct tmk_job *job, const struct tmk_process *p)
{
    struct tmk_steps *steps = NULL;
    if (tmk_steps_open(p, job->device, &steps) < 0)
        return;
    struct tmk_steps_digest digest = tmk_steps_digest(steps);
    bool changes =
        digest.trend == TMK_STEPS_TREND_GROWING || digest.trend == TMK_STEPS_TREND_SHRINKING;
    job->step_ns = digest.mean_ns;
    job->has_growth = changes || digest.trend == TMK_STEPS_TREND_STEADY;
    job->bytes_per_step = changes ? digest.bytes_per_step : 0;
    tmk_steps_close(steps);
}

/* Note figures from the per-step history, which ends with the open step. */
static void note_memory(struct tmk_job *job, const struct tmk_process *p)
{
    const struct tmk_step_row *peak = tmk_steps_peak(p, true, 0);
    if (!peak)
        return;
    job->has_memory = true;
    job->device = peak->device;
    job->peak_bytes = peak->peak_bytes;
    uint64_t n = tmk_reader_n_step_rows(p->reader);
    job->step = tmk_reader_step_row(p->reader, n - 1)->step;
    const struct tmk_step_row *last = tmk_steps_last(p, peak->device);
    job->allocated_bytes = last->end_bytes;
    if (last->has_reserved)
        job->reserved_bytes = last->end_reserved_bytes;
    (void)tmk_forecast_of(p, peak->device, NULL, &job->forecast);
    note_steps(job, p);
}

static struct tmk_job unread_job(const struct tmk_watched *w)
{
    struct tmk_job job = {
        .pid = w->pid, .rank = -1, .step = TMK_NO_STEP, .reserved_bytes = UINT64_MAX};
    tmk_watched_folder(w, job.run, sizeof job.run);
    return job;
}

static void read_job_entry(struct job_entry *e)
{
    struct tmk_run *run = NULL;
    struct tmk_job job = unread_job(&e->where);
    if (tmk_run_open_watched(&e->where, &run, NULL) == 0) {
        const struct tmk_process *p = tmk_run_process(run, 0);
        snprintf(job.command, sizeof job.command, "%s", p->command);
        job.rank = p->rank;
        note_memory(&job, p);
        e->is_over = !p->live;
    }
    tmk_run_close(run);
    e->job = job;
}

/* ---- the list ---- */

static struct job_entry *find_job_entry(const struct tmk_jobs *jobs, const struct tmk_watched *w)
{
    for (uint64_t i = 0; i < jobs->n_entries; i++) {
        struct job_entry *e = &jobs->entries[i];
        if (e->where.pid == w->pid && strcmp(e->where.trace_path, w->trace_path) == 0)
            return e;
    }
    return NULL;
}

/* List the processes watched now; known ones keep their figures. Without memory the list stays as
 * it was. */
static void list_jobs(struct tmk_jobs *jobs)
{
    struct tmk_watched *found = NULL;
    uint32_t n = 0;
    if (tmk_watched_list(&found, &n, NULL) < 0)
        return;
    struct job_entry *entries = calloc((size_t)n + 1, sizeof *entries);
    for (uint32_t i = 0; entries && i < n; i++) {
        const struct job_entry *known = find_job_entry(jobs, &found[i]);
        if (known)
            entries[i] = *known;
        else
            entries[i].job = unread_job(&found[i]);
        entries[i].where = found[i];
        entries[i].is_over = false;
    }
    free(found);
    if (!entries)
        return;
    free(jobs->entries);
    jobs->entries = entries;
    jobs->n_entries = n;
}

/* The time at which a reading that began at `now` is due again. */
static uint64_t due_again(const struct tmk_jobs *jobs, uint64_t now, uint64_t start_cpu_ns,
                          uint64_t least_ns)
{
    uint64_t cost = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns;
    uint64_t rest = cost * REST * (jobs->n_entries + 1);
    rest = rest < MOST_PAUSE_NS ? rest : MOST_PAUSE_NS;
    return now + (rest > least_ns ? rest : least_ns);
}

static struct job_entry *next_due(const struct tmk_jobs *jobs, uint64_t now)
{
    for (uint64_t i = 0; i < jobs->n_entries; i++)
        if (!jobs->entries[i].is_over && jobs->entries[i].due_ns <= now)
            return &jobs->entries[i];
    return NULL;
}

/* Read the list, or some of the due traces, so that there is soon something to show. */
static void work_on_jobs(void *arg)
{
    struct tmk_jobs *jobs = arg;
    uint64_t now = tmk_clock_monotonic_ns();
    uint64_t start = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID), cpu = start;
    if (jobs->list_due_ns <= now) {
        list_jobs(jobs);
        jobs->list_due_ns = due_again(jobs, now, cpu, LIST_PAUSE_NS);
        return;
    }
    struct job_entry *e;
    while (cpu - start < ERRAND_NS && (e = next_due(jobs, now)) != NULL) {
        read_job_entry(e);
        e->due_ns = due_again(jobs, now, cpu, jobs->interval_ns);
        cpu = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
}

/* ---- for the screen ---- */

static void show_jobs(struct tmk_jobs *jobs)
{
    if (TMK_GROW(jobs->shown, jobs->n_entries + 1, jobs->shown_room) < 0)
        return;
    jobs->n_shown = 0;
    for (uint64_t i = 0; i < jobs->n_entries; i++)
        if (!jobs->entries[i].is_over)
            jobs->shown[jobs->n_shown++] = jobs->entries[i].job;
}

static bool is_job_due(const struct tmk_jobs *jobs)
{
    uint64_t now = tmk_clock_monotonic_ns();
    return jobs->list_due_ns <= now || next_due(jobs, now);
}

struct tmk_jobs *tmk_jobs_open(uint64_t interval_ns)
{
    struct tmk_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs)
        tmk_jobs_set_interval(jobs, interval_ns);
    return jobs;
}

/* A little early is in time, because ticks are never exact. The errand may be reading it. */
void tmk_jobs_set_interval(struct tmk_jobs *jobs, uint64_t interval_ns)
{
    atomic_store(&jobs->interval_ns, interval_ns - interval_ns / 10);
}

struct tmk_jobs *tmk_jobs_close(struct tmk_jobs *jobs)
{
    if (!jobs || !tmk_errand_is_idle(&jobs->errand))
        return NULL;
    free(jobs->entries);
    free(jobs->shown);
    free(jobs);
    return NULL;
}

void tmk_jobs_read(struct tmk_jobs *jobs)
{
    for (uint64_t i = 0; i <= jobs->n_entries; i++) /* the list, then each entry */
        work_on_jobs(jobs);
    show_jobs(jobs);
}

bool tmk_jobs_look(struct tmk_jobs *jobs)
{
    bool is_new = tmk_errand_take(&jobs->errand);
    if (is_new)
        show_jobs(jobs);
    if (tmk_errand_is_idle(&jobs->errand) && is_job_due(jobs))
        tmk_errand_begin(&jobs->errand, work_on_jobs, jobs);
    return is_new;
}

bool tmk_jobs_is_busy(const struct tmk_jobs *jobs)
{
    return !tmk_errand_is_idle(&jobs->errand);
}

const struct tmk_job *tmk_jobs_get(const struct tmk_jobs *jobs, uint32_t *ret_n)
{
    *ret_n = (uint32_t)jobs->n_shown;
    return jobs->shown;
}
