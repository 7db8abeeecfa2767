/* SPDX-License-Identifier: MIT */
/* tui/gather.c - see gather.h.
 *
 * The list of processes is made anew at each look: those that a driver names, and the watched ones,
 * joined by PID. Facts about a process come from /proc, which is cheap for a few processes. Reading
 * traces is not, so jobs.c and details.c do that. */
#include "tui/gather.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "device/device.h"
#include "device/host.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/kernel_files.h"
#include "kit/language.h"
#include "monitor/selection.h"
#include "tui/details.h"
#include "tui/jobs.h"

enum { N_USERS = 32, LOAD_REST = 500, SERIES_MOST = 512 };

struct user_entry {
    uid_t uid;
    char name[24]; /* "": a free entry */
};

struct tmk_gather {
    struct tmk_device_roots roots;
    struct tmk_devices *devices;
    struct tmk_jobs *jobs;
    struct tmk_details_reader *details;
    struct tmk_device_processes found; /* processes of one device */
    uint64_t load_due_ns;
    struct user_entry users[N_USERS];
    struct tmk_top_model model;
};

static int no_memory(struct tmk_error *err)
{
    return tmk_fail(err, TMK_ENOMEM, "out of memory");
}

/* ---- fixed facts ---- */

static int list_top_devices(struct tmk_gather *g)
{
    struct tmk_top_model *m = &g->model;
    m->n_devices = tmk_devices_count(g->devices);
    m->devices = calloc(m->n_devices + 1, sizeof *m->devices);
    if (!m->devices)
        return TMK_ENOMEM;
    for (unsigned i = 0; i < m->n_devices; i++) {
        struct tmk_top_device *d = &m->devices[i];
        d->about = *tmk_devices_get(g->devices, i);
        d->load = (struct tmk_device_load){TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN,
                                           TMK_LOAD_UNKNOWN};
        d->stalled = TMK_LOAD_UNKNOWN;
        tmk_device_label(g->devices, i, d->label);
        if (d->about.kind == TMK_DEVICE_HOST) /* although it may also be device 0 */
            strcpy(d->label, "host");
    }
    return 0;
}

static void describe_driver(struct tmk_gather *g)
{
    const struct tmk_driver *driver = tmk_devices_driver(g->devices, TMK_DEVICE_NVIDIA);
    struct tmk_top_model *m = &g->model;
    if (driver->state == TMK_DRIVER_ABSENT)
        return;
    if (driver->state != TMK_DRIVER_READY) {
        snprintf(m->problem, sizeof m->problem, _("%s; see: tidemark doctor"), driver->reason);
        return;
    }
    int n = snprintf(m->driver, sizeof m->driver, _("driver %s"), driver->library_version);
    if (driver->cuda_version)
        snprintf(m->driver + n, sizeof m->driver - (size_t)n, _(", CUDA %u.%u"),
                 driver->cuda_version / 1000, driver->cuda_version % 1000 / 10);
}

int tmk_gather_open(double interval_s, struct tmk_gather **ret_gather, struct tmk_error *err)
{
    struct tmk_gather *g = calloc(1, sizeof *g);
    if (!g)
        return no_memory(err);
    g->roots = tmk_device_roots_get();
    gethostname(g->model.host, sizeof g->model.host - 1);
    g->jobs = tmk_jobs_open((uint64_t)(interval_s * 1e9));
    g->details = tmk_details_open();
    int rc = g->jobs && g->details ? tmk_devices_open(&g->roots, &g->devices, err) : no_memory(err);
    if (rc == 0 && list_top_devices(g) < 0)
        rc = no_memory(err);
    if (rc < 0) {
        tmk_gather_close(g);
        return rc;
    }
    describe_driver(g);
    struct tmk_device_load first; /* the host's share of processor time is that since this */
    tmk_devices_load(g->devices, g->model.n_devices - 1, &first);
    *ret_gather = g;
    return 0;
}

struct tmk_gather *tmk_gather_close(struct tmk_gather *g)
{
    if (!g)
        return NULL;
    tmk_jobs_close(g->jobs);
    tmk_details_close(g->details);
    tmk_devices_close(g->devices);
    free(g->model.devices);
    free(g->model.processes);
    free(g->model.uses);
    for (uint64_t i = 0; i < g->model.n_series; i++)
        free(g->model.series[i]);
    free(g->model.series);
    free(g);
    return NULL;
}

void tmk_gather_interval(struct tmk_gather *g, double interval_s)
{
    tmk_jobs_set_interval(g->jobs, (uint64_t)(interval_s * 1e9));
}

struct tmk_top_model *tmk_gather_model(struct tmk_gather *g)
{
    return &g->model;
}

/* ---- devices ---- */

/* Make room for the newest of `n` values; returns its place. */
static uint64_t *next_place(uint64_t *values, unsigned *n)
{
    if (*n == TMK_TOP_HISTORY)
        memmove(values, values + 1, --*n * sizeof *values);
    return &values[(*n)++];
}

static void remember_use(struct tmk_top_device *d)
{
    *next_place(d->history, &d->n_history) = d->memory.used_bytes;
}

static void look_at_device(struct tmk_gather *g, unsigned i)
{
    struct tmk_top_device *d = &g->model.devices[i];
    struct tmk_error err = {0};
    d->reason[0] = '\0';
    d->memory = (struct tmk_device_memory){TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN};
    if (tmk_devices_memory(g->devices, i, &d->memory, &err) < 0)
        snprintf(d->reason, sizeof d->reason, "%s", err.text);
    remember_use(d);
}

/* Ask how busy the devices are. Drivers take longer for that than for memory, some a millisecond,
 * so the time it took decides when it is due again: a five-hundredth of a core at most. */
static void look_at_loads(struct tmk_gather *g)
{
    uint64_t now = tmk_clock_monotonic_ns(), cpu = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (now < g->load_due_ns)
        return;
    for (unsigned i = 0; i < g->model.n_devices; i++) {
        struct tmk_top_device *d = &g->model.devices[i];
        tmk_devices_load(g->devices, i, &d->load);
        if (d->about.kind == TMK_DEVICE_HOST &&
            tmk_host_pressure_read(&g->roots, &d->stalled, NULL) < 0)
            d->stalled = TMK_LOAD_UNKNOWN;
    }
    cpu = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    g->load_due_ns = now + cpu * LOAD_REST;
}

/* ---- users of devices ---- */

static struct tmk_top_process *find_top_process(struct tmk_top_model *m, uint32_t pid)
{
    for (uint64_t i = 0; i < m->n_processes; i++)
        if (m->processes[i].pid == pid)
            return &m->processes[i];
    return NULL;
}

/* The process's row, made if needed; NULL: no memory. */
static struct tmk_top_process *need_process(struct tmk_top_model *m, uint32_t pid)
{
    struct tmk_top_process *p = find_top_process(m, pid);
    if (p)
        return p;
    if (TMK_GROW(m->processes, m->n_processes + 1, m->process_room) < 0)
        return NULL;
    p = &m->processes[m->n_processes++];
    *p = (struct tmk_top_process){
        .pid = pid, .used_bytes = TMK_BYTES_UNKNOWN, .host_bytes = TMK_BYTES_UNKNOWN};
    return p;
}

static int add_use(struct tmk_top_model *m, unsigned device, const struct tmk_device_process *found)
{
    struct tmk_top_process *p = need_process(m, (uint32_t)found->pid);
    if (!p || TMK_GROW(m->uses, m->n_uses + 1, m->use_room) < 0)
        return TMK_ENOMEM;
    m->uses[m->n_uses++] = (struct tmk_top_use){p->pid, device, found->used_bytes};
    if (p->command[0] == '\0')
        snprintf(p->command, sizeof p->command, "%s", found->name);
    if (found->used_bytes != TMK_BYTES_UNKNOWN)
        p->used_bytes =
            (p->used_bytes == TMK_BYTES_UNKNOWN ? 0 : p->used_bytes) + found->used_bytes;
    return 0;
}

/* List the users of a device. The parts of a divided GPU list their own users. */
static int look_at_users(struct tmk_gather *g, unsigned i)
{
    struct tmk_top_device *d = &g->model.devices[i];
    struct tmk_error err = {0};
    d->users_reason[0] = '\0';
    d->has_users = false;
    d->n_left_out = 0;
    if (d->about.kind == TMK_DEVICE_HOST || d->about.mig == TMK_MIG_ON)
        return 0;
    if (tmk_devices_processes(g->devices, i, &g->found, &err) < 0) {
        snprintf(d->users_reason, sizeof d->users_reason, "%s", err.text);
        return 0;
    }
    d->has_users = true;
    d->n_left_out = g->found.n_left_out;
    for (unsigned k = 0; k < g->found.n; k++)
        if (add_use(&g->model, i, &g->found.items[k]) < 0)
            return TMK_ENOMEM;
    return 0;
}

/* Write "0,2-3": labels of consecutive devices with plain numbers are joined. */
static void list_labels(const struct tmk_top_model *m, struct tmk_top_process *p)
{
    struct tmk_text text;
    const struct tmk_top_use *last = NULL;
    bool in_row = false;
    tmk_text_init(&text, p->devices, sizeof p->devices);
    for (uint64_t i = 0; i <= m->n_uses; i++) {
        const struct tmk_top_use *use = i < m->n_uses ? &m->uses[i] : NULL;
        if (use && use->pid != p->pid)
            continue;
        bool follows = use && last && use->device == last->device + 1 &&
                       m->devices[use->device].about.mig != TMK_MIG_PART;
        if (in_row && !follows)
            tmk_text_add(&text, "-%s", m->devices[last->device].label);
        if (use && !follows)
            tmk_text_add(&text, "%s%s", last ? "," : "", m->devices[use->device].label);
        in_row = follows;
        last = use;
    }
}

/* ---- facts from /proc ---- */

static const char *user_name(struct tmk_gather *g, uid_t uid)
{
    struct user_entry *free_place = &g->users[uid % N_USERS];
    for (unsigned i = 0; i < N_USERS; i++) {
        if (g->users[i].name[0] && g->users[i].uid == uid)
            return g->users[i].name;
        if (!g->users[i].name[0])
            free_place = &g->users[i];
    }
    const struct passwd *entry = getpwuid(uid);
    free_place->uid = uid;
    if (entry)
        snprintf(free_place->name, sizeof free_place->name, "%s", entry->pw_name);
    else
        snprintf(free_place->name, sizeof free_place->name, "%u", (unsigned)uid);
    return free_place->name;
}

/* Store a command line without the folder of its program; characters that could break a line become
 * blanks. */
static void put_command(struct tmk_top_process *p, const char *line)
{
    size_t n = strcspn(line, " ");
    const char *slash = memrchr(line, '/', n);
    snprintf(p->command, sizeof p->command, "%s", slash ? slash + 1 : line);
    for (char *at = p->command; (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
}

/* ---- what processes had so far ---- */

static struct tmk_top_series *find_series(const struct tmk_top_model *m,
                                          const struct tmk_top_process *p)
{
    for (uint64_t i = 0; i < m->n_series; i++)
        if (m->series[i]->pid == p->pid && m->series[i]->is_watched == p->is_watched &&
            m->series[i]->start_ticks == p->start_ticks)
            return m->series[i];
    return NULL;
}

/* Note what a process has now. Without memory it just has no graph. */
static void remember_process(struct tmk_top_model *m, const struct tmk_top_process *p)
{
    uint64_t bytes = !p->is_watched      ? p->used_bytes
                     : p->job.has_memory ? p->job.allocated_bytes
                                         : TMK_BYTES_UNKNOWN;
    struct tmk_top_series *s = find_series(m, p);
    if (!s && bytes == TMK_BYTES_UNKNOWN)
        return;
    if (!s) {
        if (m->n_series == SERIES_MOST ||
            TMK_GROW(m->series, m->n_series + 1, m->series_room) < 0 || !(s = calloc(1, sizeof *s)))
            return;
        s->pid = p->pid;
        s->is_watched = p->is_watched;
        s->start_ticks = p->start_ticks;
        m->series[m->n_series++] = s;
    }
    s->is_seen = true;
    *next_place(s->bytes, &s->n) = bytes;
}

static void remember_processes(struct tmk_top_model *m)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < m->n_series; i++)
        m->series[i]->is_seen = false;
    for (uint64_t i = 0; i < m->n_processes; i++)
        remember_process(m, &m->processes[i]);
    for (uint64_t i = 0; i < m->n_series; i++)
        if (m->series[i]->is_seen)
            m->series[n++] = m->series[i];
        else
            free(m->series[i]);
    m->n_series = n;
}

/* Read a process's command line, if it has one. */
static void read_command(const char *proc, struct tmk_top_process *p)
{
    char line[TMK_JOB_TEXT_BYTES];
    ssize_t n = tmk_kernel_file_read(line, sizeof line, "%s/%u/cmdline", proc, p->pid);
    while (n > 0 && line[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (line[i] == '\0')
            line[i] = ' ';
    if (n > 0)
        put_command(p, line);
}

static void describe_top_process(struct tmk_gather *g, struct tmk_top_process *p)
{
    char path[256], text[128];
    struct stat st;
    long pages[2];
    snprintf(path, sizeof path, "%s/%u", g->roots.proc, p->pid);
    if (stat(path, &st) < 0)
        return; /* it belongs to a container that cannot be seen from here */
    snprintf(p->user, sizeof p->user, "%s", user_name(g, st.st_uid));
    read_command(g->roots.proc, p);
    p->start_ticks = tmk_process_start_ticks(g->roots.proc, (pid_t)p->pid);
    if (tmk_kernel_file_read(text, sizeof text, "%s/%u/statm", g->roots.proc, p->pid) > 0 &&
        tmk_kernel_numbers(text, pages, 2) == 2)
        p->host_bytes = (uint64_t)pages[1] * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- together ---- */

static int add_jobs(struct tmk_gather *g)
{
    uint32_t n = 0;
    const struct tmk_job *jobs = tmk_jobs_get(g->jobs, &n);
    for (uint64_t i = 0; i < g->model.n_processes; i++)
        g->model.processes[i].is_watched = false;
    for (uint32_t i = 0; i < n; i++) {
        struct tmk_top_process *p = need_process(&g->model, jobs[i].pid);
        if (!p)
            return TMK_ENOMEM;
        bool is_new = p->user[0] == '\0';
        p->is_watched = true;
        p->job = jobs[i];
        if (is_new)
            describe_top_process(g, p);
        if (p->job.command[0]) /* the recorded command line is without secrets */
            put_command(p, p->job.command);
    }
    return 0;
}

static int by_top_pid(const void *va, const void *vb)
{
    const struct tmk_top_process *a = va, *b = vb;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static void sort_processes(struct tmk_top_model *m)
{
    if (m->n_processes > 1)
        qsort(m->processes, m->n_processes, sizeof *m->processes, by_top_pid);
}

static int list_processes(struct tmk_gather *g)
{
    struct tmk_top_model *m = &g->model;
    m->n_processes = m->n_uses = 0;
    for (unsigned i = 0; i < m->n_devices; i++)
        if (look_at_users(g, i) < 0)
            return TMK_ENOMEM;
    for (uint64_t i = 0; i < m->n_processes; i++) {
        describe_top_process(g, &m->processes[i]);
        list_labels(m, &m->processes[i]);
    }
    int rc = add_jobs(g);
    sort_processes(m);
    remember_processes(m);
    return rc;
}

int tmk_gather_look(struct tmk_gather *g, bool wait, struct tmk_error *err)
{
    time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local))
        strftime(g->model.clock, sizeof g->model.clock, "%H:%M:%S", &local);
    if (wait)
        tmk_jobs_read(g->jobs);
    else
        tmk_jobs_look(g->jobs);
    for (unsigned i = 0; i < g->model.n_devices; i++)
        look_at_device(g, i);
    look_at_loads(g);
    *next_place(g->model.look_ns, &g->model.n_looks) = tmk_clock_monotonic_ns();
    return list_processes(g) < 0 ? no_memory(err) : 0;
}

bool tmk_gather_jobs(struct tmk_gather *g)
{
    if (!tmk_jobs_look(g->jobs) || add_jobs(g) < 0)
        return false;
    sort_processes(&g->model);
    return true;
}

bool tmk_gather_details(struct tmk_gather *g, uint32_t pid)
{
    unsigned before = g->model.details_percent;
    bool is_new = tmk_details_look(g->details, pid);
    g->model.details = tmk_details_get(g->details, pid, &g->model.details_percent);
    return is_new || (!g->model.details && g->model.details_percent != before);
}

bool tmk_gather_is_busy(const struct tmk_gather *g)
{
    return tmk_jobs_is_busy(g->jobs) || tmk_details_is_busy(g->details);
}
