/* SPDX-License-Identifier: MIT */
/* fleet/node_metrics.c - see node_metrics.h. A metric is an entry of a table: its family and the
 * function that finds its value. NAN is a value that is not known: it has no sample. */
#include "fleet/node_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/array.h"
#include "device/device.h"
#include "fleet/container.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "model/run.h"

#ifndef TMK_VERSION
#define TMK_VERSION "unknown"
#endif

enum { NUMBER_BYTES = 24 };

struct label_list {
    struct tmk_label items[TMK_LABELS_MOST];
    unsigned n;
};

static void add_label(struct label_list *l, const char *name, const char *value)
{
    if (l->n < TMK_LABELS_MOST)
        l->items[l->n++] = (struct tmk_label){name, value};
}

static void tell_sample(const struct tmk_metric_sink *sink, const struct label_list *l,
                        double value)
{
    if (!isnan(value))
        sink->sample(sink->arg, l->items, l->n, value);
}

static double bytes_or_nan(uint64_t bytes)
{
    return bytes == TMK_BYTES_UNKNOWN ? NAN : (double)bytes;
}

static double risk_or_nan(enum tmk_risk risk)
{
    return risk == TMK_RISK_UNKNOWN ? NAN : (double)(risk - TMK_RISK_LOW);
}

/* ---- devices ---- */

static void add_device_labels(struct label_list *l, const struct tmk_node *node,
                              const struct tmk_node_device *d)
{
    add_label(l, "host", node->host);
    add_label(l, "gpu", d->label);
    add_label(l, "uuid", d->about.kind == TMK_DEVICE_HOST ? NULL : d->about.id);
}

static double device_total(const struct tmk_node_device *d)
{
    return bytes_or_nan(d->total_bytes);
}

static double device_used(const struct tmk_node_device *d)
{
    return bytes_or_nan(d->used_bytes);
}

static double device_free(const struct tmk_node_device *d)
{
    return bytes_or_nan(d->free_bytes);
}

static double device_oom(const struct tmk_node_device *d)
{
    return d->oom_s;
}

static double device_risk(const struct tmk_node_device *d)
{
    return risk_or_nan(d->risk);
}

static double device_processes(const struct tmk_node_device *d)
{
    return bytes_or_nan(d->n_processes);
}

static double device_folded(const struct tmk_node_device *d)
{
    return bytes_or_nan(d->n_folded);
}

static const struct device_metric {
    struct tmk_metric_family family;
    double (*value)(const struct tmk_node_device *d);
} device_metrics[] = {
    {{"tidemark_gpu_memory_total_bytes", TMK_METRIC_GAUGE, "bytes", "Memory of the device."},
     device_total},
    {{"tidemark_gpu_memory_used_bytes", TMK_METRIC_GAUGE, "bytes",
      "Memory of the device used by all processes."},
     device_used},
    {{"tidemark_gpu_memory_free_bytes", TMK_METRIC_GAUGE, "bytes",
      "Memory of the device that a program could still allocate."},
     device_free},
    {{"tidemark_gpu_oom_seconds", TMK_METRIC_GAUGE, "seconds",
      "Forecast: time until the device is full."},
     device_oom},
    {{"tidemark_gpu_oom_risk", TMK_METRIC_GAUGE, NULL,
      "Risk that the device gets full: 0 low, 1 medium, 2 high, 3 critical."},
     device_risk},
    {{"tidemark_gpu_processes", TMK_METRIC_GAUGE, NULL, "Processes that use the device."},
     device_processes},
    {{"tidemark_gpu_processes_folded", TMK_METRIC_GAUGE, NULL,
      "Of these, those folded into the series with pid other."},
     device_folded},
};

/* Labels of dcgm-exporter beside ours, so that its metrics can be joined with tidemark's. */
static void tell_device_info(const struct tmk_node *node, const struct tmk_metric_sink *sink)
{
    static const struct tmk_metric_family family = {"tidemark_gpu", TMK_METRIC_INFO, NULL,
                                                    "A device, with the labels of dcgm-exporter."};
    sink->family(sink->arg, &family);
    for (uint64_t i = 0; i < node->n_devices; i++) {
        const struct tmk_node_device *d = &node->devices[i];
        bool is_nvidia = d->about.kind == TMK_DEVICE_NVIDIA;
        struct label_list l = {.n = 0};
        char device[NUMBER_BYTES + 8];
        snprintf(device, sizeof device, "nvidia%s", d->label);
        add_device_labels(&l, node, d);
        add_label(&l, "kind", tmk_device_kind_text(d->about.kind));
        add_label(&l, "device", is_nvidia && d->about.mig != TMK_MIG_PART ? device : NULL);
        add_label(&l, "model", d->about.name);
        add_label(&l, "UUID", is_nvidia ? d->about.id : NULL);
        add_label(&l, "Hostname", node->host);
        tell_sample(sink, &l, 1);
    }
}

static void tell_devices(const struct tmk_node *node, const struct tmk_metric_sink *sink)
{
    tell_device_info(node, sink);
    for (size_t m = 0; m < TMK_N(device_metrics); m++) {
        sink->family(sink->arg, &device_metrics[m].family);
        for (uint64_t i = 0; i < node->n_devices; i++) {
            struct label_list l = {.n = 0};
            add_device_labels(&l, node, &node->devices[i]);
            tell_sample(sink, &l, device_metrics[m].value(&node->devices[i]));
        }
    }
}

/* ---- processes ---- */

static void add_container_labels(struct label_list *l, const struct tmk_container *c)
{
    add_label(l, "namespace", c->namespace);
    add_label(l, "pod", c->pod);
    add_label(l, "container", c->container);
}

static void tell_folded_processes(const struct tmk_node *node, const struct tmk_metric_sink *sink)
{
    for (uint64_t i = 0; i < node->n_devices; i++) {
        const struct tmk_node_device *d = &node->devices[i];
        struct label_list l = {.n = 0};
        if (d->n_folded == 0 || d->n_folded == TMK_BYTES_UNKNOWN)
            continue;
        add_device_labels(&l, node, d);
        add_label(&l, "pid", "other");
        tell_sample(sink, &l, (double)d->folded_bytes);
    }
}

static void tell_processes(const struct tmk_node *node, const struct tmk_metric_sink *sink)
{
    static const struct tmk_metric_family family = {"tidemark_process_gpu_memory_bytes",
                                                    TMK_METRIC_GAUGE, "bytes",
                                                    "Memory of the device used by the process."};
    sink->family(sink->arg, &family);
    for (uint64_t i = 0; i < node->n_processes; i++) {
        const struct tmk_node_process *p = &node->processes[i];
        struct label_list l = {.n = 0};
        char pid[NUMBER_BYTES];
        snprintf(pid, sizeof pid, "%" PRIu32, p->pid);
        add_device_labels(&l, node, &node->devices[p->device]);
        add_label(&l, "pid", pid);
        add_label(&l, "process", p->name);
        add_container_labels(&l, &p->container);
        tell_sample(sink, &l, bytes_or_nan(p->used_bytes));
    }
    tell_folded_processes(node, sink);
}

/* ---- watched processes ---- */

struct job_labels {
    char pid[NUMBER_BYTES], rank[NUMBER_BYTES];
};

/* `u` NULL: the metric is about the process as a whole. */
static void add_job_labels(struct label_list *l, struct job_labels *texts,
                           const struct tmk_node *node, const struct tmk_node_job *j,
                           const struct tmk_node_use *u)
{
    if (u && u->device >= 0) {
        add_device_labels(l, node, &node->devices[u->device]);
    } else {
        add_label(l, "host", node->host);
        add_label(l, "gpu", u ? u->torch_name : NULL);
    }
    snprintf(texts->pid, sizeof texts->pid, "%" PRIu32, j->pid);
    snprintf(texts->rank, sizeof texts->rank, "%" PRId64, j->rank);
    add_label(l, "pid", texts->pid);
    add_label(l, "job", j->job);
    add_label(l, "rank", j->rank < 0 ? NULL : texts->rank);
    add_container_labels(l, &j->container);
}

static double use_allocated(const struct tmk_node_use *u)
{
    return bytes_or_nan(u->allocated_bytes);
}

static double use_reserved(const struct tmk_node_use *u)
{
    return bytes_or_nan(u->reserved_bytes);
}

static double use_peak_allocated(const struct tmk_node_use *u)
{
    return bytes_or_nan(u->peak_allocated_bytes);
}

static double use_peak_reserved(const struct tmk_node_use *u)
{
    return bytes_or_nan(u->peak_reserved_bytes);
}

static double use_limit(const struct tmk_node_use *u)
{
    return bytes_or_nan(u->limit_bytes);
}

static double use_cached(const struct tmk_node_use *u)
{
    return bytes_or_nan(u->cached_bytes);
}

static double use_largest_free(const struct tmk_node_use *u)
{
    return bytes_or_nan(u->largest_free_bytes);
}

static double use_fragmentation(const struct tmk_node_use *u)
{
    if (u->cached_bytes == TMK_BYTES_UNKNOWN || u->largest_free_bytes == TMK_BYTES_UNKNOWN)
        return NAN;
    if (u->cached_bytes == 0)
        return 0;
    return 1 - (double)u->largest_free_bytes / (double)u->cached_bytes;
}

static double use_step_growth(const struct tmk_node_use *u)
{
    return u->step_growth_bytes;
}

static double use_peak_growth(const struct tmk_node_use *u)
{
    return u->peak_growth_bytes;
}

static double use_oom(const struct tmk_node_use *u)
{
    return u->oom_s;
}

static double use_oom_low(const struct tmk_node_use *u)
{
    return u->oom_low_s;
}

static double use_oom_high(const struct tmk_node_use *u)
{
    return u->oom_high_s;
}

static double use_confidence(const struct tmk_node_use *u)
{
    return u->confidence;
}

static double use_risk(const struct tmk_node_use *u)
{
    return risk_or_nan(u->risk);
}

static const struct use_metric {
    struct tmk_metric_family family;
    double (*value)(const struct tmk_node_use *u);
    bool is_kept; /* it means something when the process has ended */
} use_metrics[] = {
    {{"tidemark_job_allocated_bytes", TMK_METRIC_GAUGE, "bytes", "Bytes in live blocks."},
     use_allocated,
     false},
    {{"tidemark_job_reserved_bytes", TMK_METRIC_GAUGE, "bytes",
      "Bytes that the framework's allocator has reserved."},
     use_reserved,
     false},
    {{"tidemark_job_peak_allocated_bytes", TMK_METRIC_GAUGE, "bytes",
      "Most bytes allocated since the process began."},
     use_peak_allocated,
     true},
    {{"tidemark_job_peak_reserved_bytes", TMK_METRIC_GAUGE, "bytes",
      "Most bytes reserved since the process began."},
     use_peak_reserved,
     true},
    {{"tidemark_job_limit_bytes", TMK_METRIC_GAUGE, "bytes",
      "What the process can have of the device."},
     use_limit,
     false},
    {{"tidemark_job_cached_bytes", TMK_METRIC_GAUGE, "bytes",
      "Bytes reserved and not allocated, from segments and blocks."},
     use_cached,
     false},
    {{"tidemark_job_largest_free_bytes", TMK_METRIC_GAUGE, "bytes",
      "The largest free block among the cached bytes."},
     use_largest_free,
     false},
    {{"tidemark_job_fragmentation_ratio", TMK_METRIC_GAUGE, "ratio",
      "1 - largest free block / cached bytes."},
     use_fragmentation,
     false},
    {{"tidemark_job_step_growth_bytes", TMK_METRIC_GAUGE, "bytes",
      "Growth, per step, of the memory kept after a step."},
     use_step_growth,
     false},
    {{"tidemark_job_peak_growth_bytes", TMK_METRIC_GAUGE, "bytes",
      "Growth, per step, of a step's peak."},
     use_peak_growth,
     false},
    {{"tidemark_job_oom_seconds", TMK_METRIC_GAUGE, "seconds",
      "Forecast: time until the process runs out of memory."},
     use_oom,
     false},
    {{"tidemark_job_oom_low_seconds", TMK_METRIC_GAUGE, "seconds",
      "Forecast: the lower bound of that time."},
     use_oom_low,
     false},
    {{"tidemark_job_oom_high_seconds", TMK_METRIC_GAUGE, "seconds",
      "Forecast: the upper bound of that time."},
     use_oom_high,
     false},
    {{"tidemark_job_oom_confidence_ratio", TMK_METRIC_GAUGE, "ratio",
      "Probability that the OOM comes between the bounds."},
     use_confidence,
     false},
    {{"tidemark_job_oom_risk", TMK_METRIC_GAUGE, NULL,
      "Risk of an OOM: 0 low, 1 medium, 2 high, 3 critical."},
     use_risk,
     false},
};

static void tell_uses(const struct tmk_node *node, const struct tmk_metric_sink *sink)
{
    for (size_t m = 0; m < TMK_N(use_metrics); m++) {
        sink->family(sink->arg, &use_metrics[m].family);
        for (uint64_t i = 0; i < node->n_jobs; i++) {
            const struct tmk_node_job *j = &node->jobs[i];
            for (unsigned k = 0; k < j->n_uses; k++) {
                struct label_list l = {.n = 0};
                struct job_labels texts = {0};
                if (j->is_over && !use_metrics[m].is_kept)
                    continue;
                add_job_labels(&l, &texts, node, j, &j->uses[k]);
                tell_sample(sink, &l, use_metrics[m].value(&j->uses[k]));
            }
        }
    }
}

static void tell_categories(const struct tmk_node *node, const struct tmk_metric_sink *sink)
{
    static const struct tmk_metric_family family = {"tidemark_job_category_bytes", TMK_METRIC_GAUGE,
                                                    "bytes", "Bytes in live blocks, by category."};
    sink->family(sink->arg, &family);
    for (uint64_t i = 0; i < node->n_jobs; i++) {
        const struct tmk_node_job *j = &node->jobs[i];
        for (unsigned k = 0; k < j->n_uses && !j->is_over; k++) {
            for (unsigned c = 0; c < TMK_NODE_CATEGORIES && j->uses[k].has_categories; c++) {
                struct label_list l = {.n = 0};
                struct job_labels texts = {0};
                add_job_labels(&l, &texts, node, j, &j->uses[k]);
                add_label(&l, "category", tmk_category_name((uint8_t)c));
                tell_sample(sink, &l, (double)j->uses[k].categories[c]);
            }
        }
    }
}

static void tell_job_info(const struct tmk_node *node, const struct tmk_metric_sink *sink)
{
    static const struct tmk_metric_family family = {
        "tidemark_job", TMK_METRIC_INFO, NULL,
        "A watched process: its run, and the cause of growth that the forecast sees."};
    sink->family(sink->arg, &family);
    for (uint64_t i = 0; i < node->n_jobs; i++) {
        const struct tmk_node_job *j = &node->jobs[i];
        for (unsigned k = 0; k < j->n_uses && !j->is_over; k++) {
            const struct tmk_node_use *u = &j->uses[k];
            struct label_list l = {.n = 0};
            struct job_labels texts = {0};
            add_job_labels(&l, &texts, node, j, u);
            add_label(&l, "cause",
                      u->risk == TMK_RISK_UNKNOWN ? NULL : tmk_growth_cause_name(u->cause));
            add_label(&l, "run", j->run);
            tell_sample(sink, &l, 1);
        }
    }
}

static double job_ooms(const struct tmk_node_job *j)
{
    return (double)j->n_ooms;
}

static double job_steps(const struct tmk_node_job *j)
{
    return (double)j->n_steps;
}

static double job_dropped(const struct tmk_node_job *j)
{
    return (double)j->n_dropped;
}

static double job_world_size(const struct tmk_node_job *j)
{
    return j->world_size < 0 || j->is_over ? NAN : (double)j->world_size;
}

static double job_start(const struct tmk_node_job *j)
{
    return j->start_s;
}

static double job_read(const struct tmk_node_job *j)
{
    return j->is_over ? NAN : j->read_s;
}

static double job_blocks(const struct tmk_node_job *j)
{
    return j->is_over ? NAN : j->blocks_s;
}

static const struct job_metric {
    struct tmk_metric_family family;
    double (*value)(const struct tmk_node_job *j);
} job_metrics[] = {
    {{"tidemark_job_ooms", TMK_METRIC_COUNTER, NULL,
      "OOMs that the agent has seen, caught ones included."},
     job_ooms},
    {{"tidemark_job_steps", TMK_METRIC_COUNTER, NULL, "Finished steps."}, job_steps},
    {{"tidemark_job_dropped_events", TMK_METRIC_COUNTER, NULL,
      "Events lost because the recorder's ring was full."},
     job_dropped},
    {{"tidemark_job_world_size", TMK_METRIC_GAUGE, NULL, "Ranks that the job was started with."},
     job_world_size},
    {{"tidemark_job_start_time_seconds", TMK_METRIC_GAUGE, "seconds",
      "Unix time at which the recording began."},
     job_start},
    {{"tidemark_job_read_timestamp_seconds", TMK_METRIC_GAUGE, "seconds",
      "Unix time at which the figures of the process were read."},
     job_read},
    {{"tidemark_job_blocks_timestamp_seconds", TMK_METRIC_GAUGE, "seconds",
      "Unix time at which categories and fragmentation were read."},
     job_blocks},
};

static void tell_jobs(const struct tmk_node *node, const struct tmk_metric_sink *sink)
{
    tell_job_info(node, sink);
    tell_uses(node, sink);
    tell_categories(node, sink);
    for (size_t m = 0; m < TMK_N(job_metrics); m++) {
        sink->family(sink->arg, &job_metrics[m].family);
        for (uint64_t i = 0; i < node->n_jobs; i++) {
            struct label_list l = {.n = 0};
            struct job_labels texts = {0};
            if (!node->jobs[i].is_readable)
                continue;
            add_job_labels(&l, &texts, node, &node->jobs[i], NULL);
            tell_sample(sink, &l, job_metrics[m].value(&node->jobs[i]));
        }
    }
}

/* ---- the agent ---- */

static void tell_one(const struct tmk_node *node, const struct tmk_metric_sink *sink,
                     const struct tmk_metric_family *family, double value)
{
    struct label_list l = {.n = 0};
    add_label(&l, "host", node->host);
    sink->family(sink->arg, family);
    tell_sample(sink, &l, value);
}

static void tell_counts(const struct tmk_node *node, const struct tmk_metric_sink *sink,
                        const struct tmk_metric_family *family, const char *name,
                        const struct tmk_node_count *counts, unsigned n)
{
    sink->family(sink->arg, family);
    for (unsigned i = 0; i < n; i++) {
        struct label_list l = {.n = 0};
        add_label(&l, "host", node->host);
        add_label(&l, name, counts[i].label);
        tell_sample(sink, &l, (double)counts[i].n);
    }
}

static void tell_requests(const struct tmk_node *node, const struct tmk_node_agent *a,
                          const struct tmk_metric_sink *sink)
{
    static const struct tmk_metric_family requests = {"tidemark_agent_http_requests",
                                                      TMK_METRIC_COUNTER, NULL,
                                                      "Requests answered, by status code."},
                                          refused = {"tidemark_agent_http_refused",
                                                     TMK_METRIC_COUNTER, NULL,
                                                     "Connections refused, by reason."},
                                          exports = {"tidemark_agent_otlp_exports",
                                                     TMK_METRIC_COUNTER, NULL,
                                                     "OTLP pushes, by result."};
    const struct tmk_node_count results[] = {{"ok", a->n_exports_ok},
                                             {"failed", a->n_exports_failed}};
    tell_counts(node, sink, &requests, "code", a->requests, a->n_requests);
    tell_counts(node, sink, &refused, "reason", a->refused, a->n_refused);
    tell_counts(node, sink, &exports, "result", results, a->has_otlp ? TMK_N(results) : 0);
}

static void tell_agent(const struct tmk_node *node, const struct tmk_node_agent *a,
                       const struct tmk_metric_sink *sink)
{
    static const struct tmk_metric_family build = {"tidemark_build", TMK_METRIC_INFO, NULL,
                                                   "The version of the agent."};
    struct label_list l = {.n = 0};
    const struct {
        struct tmk_metric_family family;
        double value;
    } figures[] = {
        {{"tidemark_agent_watched_jobs", TMK_METRIC_GAUGE, NULL,
          "Watched processes that the agent has found."},
         (double)a->n_watched},
        {{"tidemark_agent_jobs_folded", TMK_METRIC_GAUGE, NULL,
          "Of these, those left out because of --max-jobs."},
         (double)a->n_jobs_folded},
        {{"tidemark_agent_jobs_unreadable", TMK_METRIC_GAUGE, NULL,
          "Of these, those with a trace that cannot be read."},
         (double)a->n_unreadable},
        {{"tidemark_agent_scrape_seconds", TMK_METRIC_GAUGE, "seconds",
          "What writing the last answer took."},
         a->scrape_s},
        {{"tidemark_agent_reading_seconds", TMK_METRIC_COUNTER, "seconds",
          "Processor time spent on reading devices and traces."},
         a->reading_s},
        {{"process_cpu_seconds", TMK_METRIC_COUNTER, "seconds", "Processor time of the agent."},
         a->cpu_s},
        {{"process_resident_memory_bytes", TMK_METRIC_GAUGE, "bytes",
          "Resident memory of the agent."},
         a->resident_bytes},
        {{"process_start_time_seconds", TMK_METRIC_GAUGE, "seconds",
          "Unix time at which the agent started."},
         a->start_s},
    };
    add_label(&l, "host", node->host);
    add_label(&l, "version", TMK_VERSION);
    sink->family(sink->arg, &build);
    tell_sample(sink, &l, 1);
    for (size_t i = 0; i < TMK_N(figures); i++)
        tell_one(node, sink, &figures[i].family, figures[i].value);
    tell_requests(node, a, sink);
}

void tmk_node_metrics(const struct tmk_node *node, const struct tmk_node_agent *agent,
                      const struct tmk_metric_sink *sink)
{
    tell_devices(node, sink);
    tell_processes(node, sink);
    tell_jobs(node, sink);
    tell_agent(node, agent, sink);
}
