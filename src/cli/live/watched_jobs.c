/* SPDX-License-Identifier: MIT */
/* cli/live/watched_jobs.c - see watched_jobs.h. */
#include "cli/live/watched_jobs.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "device/device.h"
#include "kit/grow.h"
#include "model/run.h"
#include "model/watched.h"
#include "monitor/sampler.h"
#include "monitor/selection.h"
#include "monitor/visible.h"
#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "passes/oom/oom_events.h"
#include "trace/events.h"
#include "trace/layout.h"
#include "trace/replay.h"

enum { REST = 500, NO_DEVICE = -1, MOST_ORDINALS = 256 };
#define LEAST_PAUSE_NS 1000000000u
#define MOST_PAUSE_NS 60000000000u
#define READING_NS 2000000000u

struct watched_job {
    struct tmk_watched where;
    struct tmk_selection visible; /* the devices that it numbers from 0, in the list of devices */
    uint64_t due_ns;
    uint64_t seen_ns;      /* trace time up to which OOMs were looked for */
    uint64_t frag_turn;    /* when its fragmentation was read last; 0: never */
    bool is_seen, is_over; /* its trace was read; the process has ended */
};

struct tmk_watched_jobs {
    const struct tmk_monitoring *m;
    uint64_t start_realtime_ns; /* of the first sample */
    struct tmk_device_jobs *devices;
    struct watched_job *jobs;
    uint64_t n, room;
    uint64_t list_due_ns;
    uint64_t turn;
    struct tmk_device_processes listed; /* too large for the stack */
};

/* ---- open, close ---- */

struct tmk_watched_jobs *tmk_watched_jobs_open(const struct tmk_monitoring *m)
{
    struct tmk_watched_jobs *jobs = tmk_xcalloc(1, sizeof *jobs);
    uint64_t ago_ns = tmk_clock_monotonic_ns() - tmk_sampler_start_ns(m->sampler);
    jobs->m = m;
    jobs->start_realtime_ns = tmk_clock_ns(CLOCK_REALTIME) - ago_ns;
    jobs->devices = tmk_xcalloc(tmk_sampler_n_devices(m->sampler), sizeof *jobs->devices);
    return jobs;
}

struct tmk_watched_jobs *tmk_watched_jobs_close(struct tmk_watched_jobs *jobs)
{
    if (!jobs)
        return NULL;
    for (unsigned i = 0; i < tmk_sampler_n_devices(jobs->m->sampler); i++)
        free(jobs->devices[i].jobs);
    free(jobs->devices);
    free(jobs->jobs);
    free(jobs);
    return NULL;
}

const struct tmk_device_jobs *tmk_watched_jobs_devices(const struct tmk_watched_jobs *jobs)
{
    return jobs->devices;
}

/* ---- whose device is which ---- */

/* Find the value of a variable that the process was started with; free it. NULL: it has none. */
static char *environment_of(uint32_t pid, const char *name)
{
    char path[64], *entry = NULL, *value = NULL;
    size_t room = 0, n = strlen(name);
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/environ", pid);
    FILE *file = fopen(path, "re");
    while (file && !value && getdelim(&entry, &room, '\0', file) > 0)
        if (strncmp(entry, name, n) == 0 && entry[n] == '=')
            value = tmk_xstrdup(entry + n + 1);
    free(entry);
    if (file)
        fclose(file);
    return value;
}

static void find_visible(const struct tmk_watched_jobs *jobs, struct watched_job *job)
{
    char *cuda = environment_of(job->where.pid, "CUDA_VISIBLE_DEVICES");
    char *hip = environment_of(job->where.pid, "HIP_VISIBLE_DEVICES");
    tmk_visible_devices(jobs->m->devices, &(struct tmk_visible_texts){cuda, hip}, &job->visible);
    free(cuda);
    free(hip);
}

static bool is_process_listed(struct tmk_watched_jobs *jobs, unsigned index, uint32_t pid)
{
    if (tmk_devices_processes(jobs->m->devices, index, &jobs->listed, NULL) < 0)
        return false;
    for (unsigned i = 0; i < jobs->listed.n; i++)
        if ((uint32_t)jobs->listed.items[i].pid == pid)
            return true;
    return false;
}

/* The only GPU on which the driver lists the process; NO_DEVICE: none, or several. */
static int only_device_of(struct tmk_watched_jobs *jobs, uint32_t pid)
{
    int found = NO_DEVICE;
    for (unsigned i = 0; i < tmk_devices_count(jobs->m->devices); i++) {
        if (tmk_devices_get(jobs->m->devices, i)->kind == TMK_DEVICE_HOST ||
            !is_process_listed(jobs, i, pid))
            continue;
        if (found != NO_DEVICE)
            return NO_DEVICE;
        found = (int)i;
    }
    return found;
}

static int host_index(const struct tmk_devices *d)
{
    return (int)tmk_devices_count(d) - 1;
}

/* The index in the list of devices for a device of the process's trace. */
static int device_index_of(struct tmk_watched_jobs *jobs, const struct watched_job *job,
                           uint16_t device)
{
    unsigned ordinal = device & 0xff;
    if (device >> 8 == TMK_DEVICE_TYPE_CPU)
        return host_index(jobs->m->devices);
    int named = ordinal < job->visible.n ? (int)job->visible.items[ordinal] : NO_DEVICE;
    if (job->is_over ||
        (named != NO_DEVICE && is_process_listed(jobs, (unsigned)named, job->where.pid)))
        return named;
    int only = only_device_of(jobs, job->where.pid);
    return only != NO_DEVICE ? only : named;
}

/* What the report has on a device of the process's trace; NULL: it is not sampled. */
static struct tmk_device_jobs *sampled_device(struct tmk_watched_jobs *jobs,
                                              const struct watched_job *job, uint16_t device)
{
    int index = device_index_of(jobs, job, device);
    for (unsigned i = 0; index >= 0 && i < tmk_sampler_n_devices(jobs->m->sampler); i++)
        if (tmk_sampler_device(jobs->m->sampler, i)->index == (unsigned)index)
            return &jobs->devices[i];
    return NULL;
}

/* ---- the list ---- */

/* List the watched processes of the machine that is monitored: where its /proc is elsewhere
 * (TIDEMARK_PROC_DIR), those that are there. *ret is the caller's. Negative: no memory. */
static int list_watched(const struct tmk_watched_jobs *jobs, struct tmk_watched **ret,
                        uint32_t *ret_n)
{
    uint64_t room = 0;
    if (strcmp(jobs->m->roots.proc, "/proc") == 0)
        return tmk_watched_list(ret, ret_n, NULL);
    DIR *dir = opendir(jobs->m->roots.proc);
    int rc = 0;
    for (struct dirent *e; dir && rc == 0 && (e = readdir(dir)) != NULL;) {
        uint32_t pid = tmk_watched_parse(e->d_name);
        rc = TMK_GROW(*ret, *ret_n + 1u, room);
        if (rc == 0 && pid && tmk_watched_find(pid, &(*ret)[*ret_n], NULL) == 0)
            ++*ret_n;
    }
    if (dir)
        closedir(dir);
    return rc;
}

static struct watched_job *find_watched_job(const struct tmk_watched_jobs *jobs,
                                            const struct tmk_watched *w)
{
    for (uint64_t i = 0; i < jobs->n; i++)
        if (jobs->jobs[i].where.pid == w->pid &&
            strcmp(jobs->jobs[i].where.trace_path, w->trace_path) == 0)
            return &jobs->jobs[i];
    return NULL;
}

static void add_watched_job(struct tmk_watched_jobs *jobs, const struct tmk_watched *w)
{
    if (TMK_GROW(jobs->jobs, jobs->n + 1, jobs->room) < 0)
        tmk_die("out of memory");
    struct watched_job *job = &jobs->jobs[jobs->n++];
    *job = (struct watched_job){.where = *w};
    find_visible(jobs, job);
}

/* Those that are not in the list any more have ended; they are due for the last time. */
static void list_jobs_of_monitor(struct tmk_watched_jobs *jobs)
{
    struct tmk_watched *found = NULL;
    uint32_t n = 0;
    if (list_watched(jobs, &found, &n) < 0)
        tmk_die("out of memory");
    for (uint64_t i = 0; i < jobs->n; i++)
        jobs->jobs[i].is_over = true;
    for (uint32_t i = 0; i < n; i++) {
        struct watched_job *known = find_watched_job(jobs, &found[i]);
        if (known)
            known->is_over = false;
        else
            add_watched_job(jobs, &found[i]);
    }
    for (uint64_t i = 0; i < jobs->n; i++)
        if (jobs->jobs[i].is_over)
            jobs->jobs[i].due_ns = 0;
    free(found);
}

/* ---- OOMs ---- */

struct oom_hearing {
    struct tmk_watched_jobs *jobs;
    const struct watched_job *job;
    uint64_t start_realtime_ns; /* of the process */
};

static void hear_oom(void *arg, const struct tmk_event *ev)
{
    const struct oom_hearing *h = arg;
    struct tmk_device_jobs *d = sampled_device(h->jobs, h->job, ev->device);
    if (!d)
        return;
    uint64_t now_ns = h->start_realtime_ns + ev->time_ns;
    d->n_ooms++;
    d->oom_time = (time_t)(now_ns / 1000000000u);
    d->oom_ns = now_ns - h->jobs->start_realtime_ns;
    d->oom_pid = h->job->where.pid;
    d->oom_bytes = ev->size_bytes;
}

/* Open the trace of a process that runs, or of one that has ended; NULL: it cannot be read. */
static struct tmk_run *open_watched_job(const struct watched_job *job)
{
    struct tmk_run *run = NULL;
    int rc = job->is_over ? tmk_run_open(job->where.trace_path, &run, NULL)
                          : tmk_run_open_watched(&job->where, &run, NULL);
    return rc < 0 ? NULL : run;
}

static void look_for_ooms(struct tmk_watched_jobs *jobs, struct watched_job *job)
{
    struct tmk_run *run = open_watched_job(job);
    if (!run)
        return;
    const struct tmk_process *p = tmk_run_process(run, 0);
    struct oom_hearing hearing = {jobs, job, p->start_realtime_ns};
    if (!job->is_seen && jobs->start_realtime_ns > p->start_realtime_ns)
        job->seen_ns = jobs->start_realtime_ns - p->start_realtime_ns;
    if (tmk_oom_events_after(p, job->seen_ns, hear_oom, &hearing) < 0)
        tmk_die("out of memory");
    if (p->end_ns > job->seen_ns)
        job->seen_ns = p->end_ns;
    job->is_seen = true;
    tmk_run_close(run);
}

/* The time at which something that began at `start_ns` is due again. */
static uint64_t job_due_again(uint64_t start_ns)
{
    uint64_t now = tmk_clock_monotonic_ns(), rest = (now - start_ns) * REST;
    rest = rest < LEAST_PAUSE_NS ? LEAST_PAUSE_NS : rest;
    return now + (rest < MOST_PAUSE_NS ? rest : MOST_PAUSE_NS);
}

static void forget_ended_jobs(struct tmk_watched_jobs *jobs)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < jobs->n; i++)
        if (!jobs->jobs[i].is_over)
            jobs->jobs[n++] = jobs->jobs[i];
    jobs->n = n;
}

void tmk_watched_jobs_look(struct tmk_watched_jobs *jobs, bool now)
{
    uint64_t start = tmk_clock_monotonic_ns();
    if (now || jobs->list_due_ns <= start) {
        list_jobs_of_monitor(jobs);
        jobs->list_due_ns = job_due_again(start);
    }
    for (uint64_t i = 0; i < jobs->n; i++) {
        struct watched_job *job = &jobs->jobs[i];
        start = tmk_clock_monotonic_ns();
        if (!now && job->due_ns > start)
            continue;
        look_for_ooms(jobs, job);
        job->due_ns = job_due_again(start);
    }
    forget_ended_jobs(jobs);
}

/* ---- fragmentation ---- */

__attribute__((format(printf, 2, 3))) static void give_reason(struct tmk_device_jobs *d,
                                                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(d->reason, sizeof d->reason, format, args);
    va_end(args);
}

static void take_fragmentation(struct tmk_watched_jobs *jobs, const struct watched_job *job,
                               const struct tmk_process *p, const struct tmk_frag_device *f)
{
    bool is_host = f->device >> 8 == TMK_DEVICE_TYPE_CPU;
    struct tmk_device_jobs *d = is_host ? NULL : sampled_device(jobs, job, f->device);
    if (!d)
        return;
    if (!f->has_segments) {
        give_reason(d,
                    "process %" PRIu32 ": its segments were not seen (attached, or an allocator "
                    "that does not tell): start it with tidemark run",
                    job->where.pid);
        return;
    }
    if (TMK_GROW(d->jobs, d->n_jobs + 1, d->room) < 0)
        tmk_die("out of memory");
    struct tmk_job_fragmentation *to = &d->jobs[d->n_jobs++];
    *to = (struct tmk_job_fragmentation){
        .pid = job->where.pid,
        .rank = p->rank,
        .reserved_bytes = f->sum.reserved_bytes,
        .allocated_bytes = f->sum.allocated_bytes,
        .free_bytes = f->sum.free_bytes,
        .largest_bytes = f->sum.largest_bytes,
        .allocatable_bytes = f->sum.allocatable_bytes,
        .releasable_bytes = f->sum.whole_bytes,
        .n_segments = f->sum.n_segments,
        .n_blocks = f->sum.n_blocks,
        .n_free = f->sum.n_free,
    };
    tmk_device_name(f->device, to->device);
}

static void read_job_fragmentation(struct tmk_watched_jobs *jobs, struct watched_job *job)
{
    struct tmk_run *run = open_watched_job(job);
    struct tmk_fragmentation *frag = NULL;
    struct tmk_replay rp;
    if (!run)
        return;
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_frag_moment moment = {.kind = TMK_FRAG_TIME, .time_ns = p->end_ns};
    int rc = tmk_fragmentation_open(p, &moment, &frag);
    struct tmk_visitor visitor = {0};
    if (rc == 0)
        visitor = tmk_fragmentation_visitor(frag);
    if (rc == 0 && (rc = tmk_process_sweep(p, &visitor, 1, &rp, NULL)) == 0) {
        rc = tmk_fragmentation_finish(frag, &rp, NULL);
        tmk_replay_fini(&rp);
    }
    for (uint64_t i = 0; rc == 0 && i < tmk_fragmentation_n(frag); i++)
        take_fragmentation(jobs, job, p, tmk_fragmentation_get(frag, i));
    tmk_fragmentation_close(frag);
    tmk_run_close(run);
}

/* Say why nothing is known of a device, where no process on it gave a reason. */
static void give_last_reason(struct tmk_watched_jobs *jobs, unsigned i)
{
    struct tmk_device_jobs *d = &jobs->devices[i];
    if (d->n_jobs || d->reason[0])
        return;
    if (tmk_sampler_device(jobs->m->sampler, i)->device->kind == TMK_DEVICE_HOST)
        give_reason(d, "torch keeps no cache of the host's memory");
    else
        give_reason(d, "no watched process has memory on it: start the job with tidemark run, or "
                       "tidemark attach PID");
}

static int by_frag_turn(const void *a, const void *b)
{
    const struct watched_job *p = a, *q = b;
    if (p->frag_turn != q->frag_turn)
        return p->frag_turn < q->frag_turn ? -1 : 1;
    return (p->where.pid > q->where.pid) - (p->where.pid < q->where.pid);
}

static void name_unread(struct tmk_watched_jobs *jobs, const struct watched_job *job)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(jobs->m->sampler); i++)
        if (tmk_sampler_device(jobs->m->sampler, i)->device->kind != TMK_DEVICE_HOST)
            give_reason(&jobs->devices[i],
                        "process %" PRIu32
                        " was not read, its trace is long: tidemark frag %" PRIu32,
                        job->where.pid, job->where.pid);
}

void tmk_watched_jobs_read_fragmentation(struct tmk_watched_jobs *jobs)
{
    uint64_t start = tmk_clock_monotonic_ns();
    tmk_watched_jobs_look(jobs, true);
    for (unsigned i = 0; i < tmk_sampler_n_devices(jobs->m->sampler); i++) {
        jobs->devices[i].n_jobs = 0;
        jobs->devices[i].reason[0] = '\0';
    }
    if (jobs->n > 1)
        qsort(jobs->jobs, jobs->n, sizeof *jobs->jobs, by_frag_turn);
    for (uint64_t i = 0; i < jobs->n; i++) {
        struct watched_job *job = &jobs->jobs[i];
        if (tmk_clock_monotonic_ns() - start > READING_NS) {
            name_unread(jobs, job);
            continue;
        }
        job->frag_turn = ++jobs->turn;
        read_job_fragmentation(jobs, job);
    }
    for (unsigned i = 0; i < tmk_sampler_n_devices(jobs->m->sampler); i++)
        give_last_reason(jobs, i);
}
