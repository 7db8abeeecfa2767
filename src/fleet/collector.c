/* SPDX-License-Identifier: MIT */
/* fleet/collector.c - see collector.h. */
#include "fleet/collector.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/device.h"
#include "fleet/container.h"
#include "fleet/followed_jobs.h"
#include "fleet/process_facts.h"
#include "forecast/device_forecast.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/kernel_files.h"
#include "monitor/sampler.h"
#include "monitor/selection.h"
#include "monitor/visible.h"
#include "monitor/watched_forecast.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

enum { HISTORY_ENTRIES = 512 }; /* of a device: 24 KiB */

struct known_process { /* facts about a process do not change while it lives */
    uint32_t pid;
    uint64_t start_ticks;
    struct tmk_container container;
    bool is_seen;
};

struct tmk_collector {
    struct tmk_collector_settings settings;
    char host[TMK_NODE_HOST_BYTES];
    struct tmk_device_roots roots;
    struct tmk_devices *devices;
    struct tmk_sampler *sampler;
    struct tmk_followed_jobs *jobs;
    struct tmk_device_processes listed; /* of one device */
    struct known_process *known;
    uint64_t n_known, known_room;
    uint64_t reading_ns;
};

/* ---- open, close ---- */

/* All devices: GPUs, their parts, the host. */
static struct tmk_selection select_everything(const struct tmk_devices *d)
{
    struct tmk_selection s = {.n = tmk_devices_count(d)};
    for (unsigned i = 0; i < s.n; i++) {
        s.items[i] = i;
        tmk_device_label(d, i, s.labels[i]);
        if (tmk_devices_get(d, i)->kind == TMK_DEVICE_HOST) /* although it may be device 0 */
            strcpy(s.labels[i], "host");
    }
    return s;
}

static int open_collector(struct tmk_collector *c, struct tmk_error *err)
{
    struct tmk_sampler_settings sampling = {.interval_ns = c->settings.interval_ns,
                                            .history_most = HISTORY_ENTRIES,
                                            .roots = &c->roots};
    c->roots = tmk_device_roots_get();
    int rc = tmk_devices_open(&c->roots, &c->devices, err);
    if (rc < 0)
        return rc;
    struct tmk_selection all = select_everything(c->devices);
    rc = tmk_sampler_open(c->devices, &all, &sampling, &c->sampler, err);
    if (rc < 0)
        return rc;
    c->jobs = tmk_followed_jobs_open(c->settings.max_jobs, c->settings.wants_blocks);
    return c->jobs ? 0 : tmk_fail(err, TMK_ENOMEM, "out of memory");
}

int tmk_collector_open(const struct tmk_collector_settings *settings,
                       struct tmk_collector **ret_collector, struct tmk_error *err)
{
    struct tmk_collector *c = calloc(1, sizeof *c);
    if (!c)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    c->settings = *settings;
    if (settings->host)
        snprintf(c->host, sizeof c->host, "%s", settings->host);
    else if (gethostname(c->host, sizeof c->host - 1) < 0)
        strcpy(c->host, "host");
    int rc = open_collector(c, err);
    if (rc < 0) {
        tmk_collector_close(c);
        return rc;
    }
    *ret_collector = c;
    return 0;
}

struct tmk_collector *tmk_collector_close(struct tmk_collector *c)
{
    if (!c)
        return NULL;
    tmk_followed_jobs_close(c->jobs);
    tmk_sampler_close(c->sampler);
    tmk_devices_close(c->devices);
    free(c->known);
    free(c);
    return NULL;
}

void tmk_node_fini(struct tmk_node *node)
{
    free(node->devices);
    free(node->processes);
    free(node->jobs);
    *node = (struct tmk_node){.is_filled = false};
}

/* ---- devices ---- */

static struct tmk_node_device describe_node_device(const struct tmk_watched_device *u)
{
    struct tmk_node_device d = {.about = *u->device,
                                .total_bytes = TMK_BYTES_UNKNOWN,
                                .used_bytes = TMK_BYTES_UNKNOWN,
                                .free_bytes = TMK_BYTES_UNKNOWN,
                                .n_processes = TMK_BYTES_UNKNOWN,
                                .n_folded = TMK_BYTES_UNKNOWN,
                                .oom_s = NAN};
    memcpy(d.label, u->label, sizeof d.label);
    if (!u->has_now)
        return d;
    d.total_bytes = u->now.total_bytes;
    d.used_bytes = u->now.used_bytes;
    d.free_bytes = tmk_device_free_bytes(&u->now);
    struct tmk_device_forecast_terms terms = {.warm_up_ns = TMK_DEVICE_FORECAST_WARM_UP_NS,
                                              .threshold_percent = TMK_DEVICE_FORECAST_THRESHOLD};
    struct tmk_device_forecast f = tmk_watched_device_forecast(u, &terms);
    d.risk = f.risk_level;
    if (f.has_time)
        d.oom_s = f.predicted_oom_time;
    return d;
}

static int take_devices(struct tmk_collector *c, struct tmk_node *node, struct tmk_error *err)
{
    int rc = tmk_sampler_look(c->sampler, err);
    unsigned n = tmk_sampler_n_devices(c->sampler);
    node->n_devices = 0;
    if (rc == 0 && TMK_GROW(node->devices, n, node->devices_room) < 0)
        rc = tmk_fail(err, TMK_ENOMEM, "out of memory");
    for (unsigned i = 0; rc == 0 && i < n; i++)
        node->devices[node->n_devices++] = describe_node_device(tmk_sampler_device(c->sampler, i));
    return rc;
}

/* ---- processes of devices ---- */

static const struct known_process *know_process(struct tmk_collector *c, uint32_t pid)
{
    uint64_t start_ticks = tmk_process_start_ticks(c->roots.proc, (pid_t)pid);
    struct tmk_process_facts facts;
    struct known_process *k = NULL;
    for (uint64_t i = 0; i < c->n_known && !k; i++)
        if (c->known[i].pid == pid)
            k = &c->known[i];
    if (k && k->start_ticks == start_ticks) {
        k->is_seen = true;
        return k;
    }
    if (!k) {
        if (TMK_GROW(c->known, c->n_known + 1, c->known_room) < 0)
            return NULL;
        k = &c->known[c->n_known++];
    }
    tmk_process_facts_read(c->roots.proc, pid, &facts);
    *k = (struct known_process){
        .pid = pid, .start_ticks = start_ticks, .container = facts.container, .is_seen = true};
    return k;
}

static void forget_unseen(struct tmk_collector *c)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < c->n_known; i++) {
        if (c->known[i].is_seen)
            c->known[kept++] = c->known[i];
    }
    c->n_known = kept;
    for (uint64_t i = 0; i < kept; i++)
        c->known[i].is_seen = false;
}

/* Those that use most come first; unknown use comes last. */
static int by_use(const void *va, const void *vb)
{
    const struct tmk_device_process *a = va, *b = vb;
    uint64_t of_a = a->used_bytes + 1, of_b = b->used_bytes + 1; /* unknown: 0 */
    if (of_a != of_b)
        return of_a > of_b ? -1 : 1;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static int take_process(struct tmk_collector *c, struct tmk_node *node, unsigned device,
                        const struct tmk_device_process *now)
{
    const struct known_process *k = know_process(c, (uint32_t)now->pid);
    if (!k || TMK_GROW(node->processes, node->n_processes + 1, node->processes_room) < 0)
        return TMK_ENOMEM;
    struct tmk_node_process *p = &node->processes[node->n_processes++];
    *p = (struct tmk_node_process){.device = device,
                                   .pid = (uint32_t)now->pid,
                                   .used_bytes = now->used_bytes,
                                   .container = k->container};
    memcpy(p->name, now->name, sizeof p->name);
    return 0;
}

static int take_device_processes(struct tmk_collector *c, struct tmk_node *node, unsigned i)
{
    struct tmk_node_device *d = &node->devices[i];
    if (d->about.kind == TMK_DEVICE_HOST ||
        tmk_devices_processes(c->devices, i, &c->listed, NULL) < 0)
        return 0;
    unsigned n = c->listed.n, shown = n < c->settings.max_processes ? n : c->settings.max_processes;
    if (n > 1)
        qsort(c->listed.items, n, sizeof c->listed.items[0], by_use);
    int rc = 0;
    for (unsigned k = 0; rc == 0 && k < shown; k++)
        rc = take_process(c, node, i, &c->listed.items[k]);
    d->n_processes = (uint64_t)n + c->listed.n_left_out;
    d->n_folded = d->n_processes - shown;
    for (unsigned k = shown; k < n; k++)
        if (c->listed.items[k].used_bytes != TMK_BYTES_UNKNOWN)
            d->folded_bytes += c->listed.items[k].used_bytes;
    return rc;
}

static int take_processes(struct tmk_collector *c, struct tmk_node *node, struct tmk_error *err)
{
    int rc = 0;
    node->n_processes = 0;
    for (unsigned i = 0; rc == 0 && i < node->n_devices; i++)
        rc = take_device_processes(c, node, i);
    forget_unseen(c);
    return rc < 0 ? tmk_fail(err, rc, "out of memory") : 0;
}

/* ---- which device a watched process means ---- */

/* The only GPU that the process uses, as the driver says; -1: none or several. */
static int only_gpu_of(const struct tmk_node *node, uint32_t pid)
{
    int found = -1;
    for (uint64_t i = 0; i < node->n_processes; i++) {
        if (node->processes[i].pid != pid)
            continue;
        if (found >= 0)
            return -1;
        found = (int)node->processes[i].device;
    }
    return found;
}

/* The number of a GPU among those of its kind; a part has its GPU's. */
static unsigned number_of_gpu(const struct tmk_devices *d, unsigned index)
{
    unsigned card = tmk_devices_get(d, index)->card, number = 0;
    for (unsigned i = 0; i < card; i++)
        number += tmk_devices_get(d, i)->kind == tmk_devices_get(d, card)->kind &&
                  tmk_devices_get(d, i)->mig != TMK_MIG_PART;
    return number;
}

/* The device that the process calls its number `index`. In a container NVIDIA_VISIBLE_DEVICES says
 * which GPUs there are, and CUDA_VISIBLE_DEVICES chooses among these. */
static int visible_gpu(const struct tmk_devices *d, const struct tmk_process_facts *facts,
                       unsigned index)
{
    bool is_given = facts->has_nvidia_visible && strcmp(facts->nvidia_visible, "all") != 0;
    struct tmk_visible_texts given = {is_given ? facts->nvidia_visible : NULL, NULL};
    struct tmk_visible_texts chosen = {facts->has_cuda_visible ? facts->cuda_visible : NULL, NULL};
    struct tmk_selection inner, outer;
    tmk_visible_devices(d, &given, &outer);
    if (!facts->has_cuda_visible)
        return index < outer.n ? (int)outer.items[index] : -1;
    tmk_visible_devices(d, &chosen, &inner);
    if (index >= inner.n)
        return -1;
    bool is_number = facts->cuda_visible[0] >= '0' && facts->cuda_visible[0] <= '9';
    if (!is_given || !is_number)
        return (int)inner.items[index];
    unsigned number = number_of_gpu(d, inner.items[index]); /* it counts within the container */
    return number < outer.n ? (int)outer.items[number] : -1;
}

static int device_of_use(const struct tmk_collector *c, const struct tmk_node *node,
                         const struct tmk_followed_job *j, const struct tmk_node_use *u)
{
    enum { CUDA = TMK_DEVICE_TYPE_CUDA, HIP = 6 }; /* torch's types */
    unsigned type = u->torch_device >> 8, index = u->torch_device & 0xff;
    if (u->torch_device == TIDEMARK_HOST)
        return (int)tmk_devices_count(c->devices) - 1;
    if (type != CUDA && type != HIP)
        return -1;
    unsigned n_gpus = 0;
    for (unsigned i = 0; i < j->job.n_uses; i++)
        n_gpus += j->job.uses[i].torch_device != TIDEMARK_HOST;
    int only = n_gpus == 1 ? only_gpu_of(node, j->job.pid) : -1;
    return only >= 0 ? only : visible_gpu(c->devices, &j->facts, index);
}

static int take_jobs(struct tmk_collector *c, struct tmk_node *node, struct tmk_error *err)
{
    struct tmk_followed_totals totals;
    int rc = tmk_followed_jobs_look(c->jobs, &totals, err);
    if (rc < 0)
        return rc;
    node->n_watched = totals.n_watched;
    node->n_jobs_folded = totals.n_folded;
    node->n_jobs = 0;
    if (TMK_GROW(node->jobs, totals.n, node->jobs_room) < 0)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    for (uint64_t i = 0; i < totals.n; i++) {
        const struct tmk_followed_job *j = tmk_followed_jobs_get(c->jobs, i);
        struct tmk_node_job *job = &node->jobs[node->n_jobs++];
        *job = j->job;
        for (unsigned k = 0; k < job->n_uses; k++)
            job->uses[k].device = device_of_use(c, node, j, &job->uses[k]);
    }
    return 0;
}

/* ---- together ---- */

int tmk_collector_look(struct tmk_collector *c, struct tmk_node *node, struct tmk_error *err)
{
    uint64_t start_ns = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    memcpy(node->host, c->host, sizeof node->host);
    int rc = take_devices(c, node, err);
    if (rc == 0)
        rc = take_processes(c, node, err);
    if (rc == 0)
        rc = take_jobs(c, node, err);
    c->reading_ns += tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
    node->reading_s = (double)c->reading_ns / 1e9;
    node->is_filled = rc == 0;
    return rc;
}
