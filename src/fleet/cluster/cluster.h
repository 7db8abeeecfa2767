/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster.h - a cluster as Prometheus knows it at one moment: agents, GPUs, jobs,
 * ranks, and what is wrong with them.
 *
 *     struct tmk_cluster c = {0};
 *     rc = tmk_cluster_ask(&c, prometheus, &question, &err);
 *     ... c.findings[0 .. c.n_findings - 1], the worst first ...
 *     tmk_cluster_fini(&c);
 *
 * What is found is the answer of the expressions of deploy/prometheus/tidemark.alerts.yml, without
 * their `for` (cluster_queries.h): the joins and the history are PromQL. Nothing is kept from one
 * question to the next. Numbers that are not known are NAN, sizes TMK_BYTES_UNKNOWN, texts NULL.
 * Texts are a stranger's; they live until fini. */
#ifndef TMK_FLEET_CLUSTER_CLUSTER_H
#define TMK_FLEET_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "forecast/oom_forecast.h"
#include "kit/arena.h"
#include "kit/textmap.h"

struct tmk_prometheus;
struct tmk_prometheus_series;

struct tmk_cluster_question {
    const char *job; /* NULL: all */
    double window_s; /* how far back gaps, OOMs and agents that vanished are looked for */
};

enum tmk_agent_state { TMK_AGENT_UP, TMK_AGENT_SILENT, TMK_AGENT_GONE };

/* A scrape target: an agent, and so a node. */
struct tmk_cluster_agent {
    const char *instance, *scrape_job;
    const char *host; /* NULL: it never answered in the window */
    const char *version;
    enum tmk_agent_state state;
    double answered_s; /* Unix time of its last answer, where that was looked for; NAN */
    uint32_t n_gpus, n_ranks;
    uint64_t used_bytes, total_bytes; /* of its GPUs; without one, of the host */
};

struct tmk_cluster_gpu {
    const char *host, *gpu, *uuid, *model, *kind;
    uint64_t used_bytes, free_bytes, total_bytes;
    double n_processes, oom_s;
    enum tmk_risk risk;
};

/* A watched process on a device. */
struct tmk_cluster_rank {
    const char *job, *host, *gpu, *uuid, *namespace, *pod, *container, *cause, *run;
    int64_t rank; /* -1: it has none */
    int64_t pid;  /* -1: what stands there is no number */
    uint64_t allocated_bytes, reserved_bytes, peak_bytes, limit_bytes;
    double growth_bytes;      /* kept more after each step */
    double peak_growth_bytes; /* needed more in each step, as the forecast sees it */
    double oom_s, oom_low_s, oom_high_s, confidence;
    enum tmk_risk risk;
    double against_median;     /* its peak ÷ the median of the job's ranks */
    uint64_t host_bytes;       /* allocated on the host by the same process; of a GPU's row */
    bool is_over;              /* the process has ended: peaks are all that is left */
    bool is_aside;             /* the host's memory of a process that has a GPU */
    uint32_t job_row, process; /* number of its job, of its process */
};

struct tmk_cluster_job {
    const char *name;
    uint32_t n_ranks;   /* numbers seen */
    int64_t world_size; /* -1: not known */
    uint32_t n_nodes;
    uint64_t allocated_bytes, peak_bytes,
        limit_bytes; /* peak: the highest of a rank, on a device; limit: of that one */
    double median_bytes, imbalance;
    uint32_t highest; /* row with that peak; UINT32_MAX: none */
    uint32_t soonest; /* row with the shortest time to an OOM; UINT32_MAX: none */
    double oom_s, growth_bytes;
    enum tmk_risk risk;
    const char *missing; /* "3, 7-9"; NULL: none, or not known */
};

enum tmk_finding_kind {
    TMK_FINDING_OOM_SOON,
    TMK_FINDING_OOM_LIKELY,
    TMK_FINDING_OOM,
    TMK_FINDING_LEAK,
    TMK_FINDING_IMBALANCE,
    TMK_FINDING_RANKS_MISSING,
    TMK_FINDING_AGENT_SILENT,
    TMK_FINDING_AGENT_GONE,
    TMK_FINDING_GPU_NEARLY_FULL,
    TMK_FINDING_FRAGMENTATION,
    TMK_FINDING_LABELS_RENAMED,
    TMK_FINDING_GAP,
    TMK_FINDING_FIGURES_OLD,
    TMK_FINDING_EVENTS_DROPPED,
    TMK_FINDING_KINDS
};

enum tmk_severity { TMK_SEVERITY_CRITICAL, TMK_SEVERITY_WARNING, TMK_SEVERITY_INFO };

struct tmk_cluster_finding {
    enum tmk_finding_kind kind;
    double value; /* what the expression gave */
    const char *job, *host, *gpu, *pid, *instance;
    int64_t rank;           /* -1: none */
    uint32_t row;           /* of the rank it is about; UINT32_MAX: none */
    double from_s, to_s;    /* of a gap, Unix time; to NAN: it goes on */
    bool is_everywhere;     /* a gap of Prometheus itself */
    bool has_failed;        /* a gap in which scrapes failed; else there were none */
    const char *last_hosts; /* of missing ranks: where they were last, at from_s */
    const char *text;       /* the verdict: a sentence without full stop */
    const char *evidence;   /* numbers; NULL: there are none */
};

struct tmk_cluster {
    struct tmk_arena texts;
    struct tmk_textmap names; /* each text once */
    double now_s;             /* by Prometheus' clock */
    double window_s;
    const char *job; /* that was asked for; NULL: all */
    bool has_rules;  /* the recording rules are evaluated there */
    struct tmk_cluster_agent *agents;
    struct tmk_cluster_gpu *gpus;
    struct tmk_cluster_rank *ranks;
    struct tmk_cluster_job *jobs;
    struct tmk_cluster_finding *findings;
    uint64_t n_agents, n_gpus, n_ranks, n_jobs, n_findings;
    uint64_t agents_room, gpus_room, ranks_room, jobs_room, findings_room;
    uint64_t n_gaps_unseen; /* agents with gaps that were too many to look at */
    /* How rows are found again while they are filled. */
    struct tmk_textmap agent_keys, gpu_keys, rank_keys, job_keys, process_keys;
    uint32_t *process_rows; /* by number of process: its first row */
    uint64_t n_processes, process_rows_room;
    char *key;
    uint64_t key_room;
};

/* Ask. 0; TMK_EIO with what Prometheus says or does not say; TMK_ENOMEM. In any case fini. */
int tmk_cluster_ask(struct tmk_cluster *c, struct tmk_prometheus *p,
                    const struct tmk_cluster_question *question, struct tmk_error *err);
void tmk_cluster_fini(struct tmk_cluster *c);

/* "oom_soon" and so on, and the alert in deploy/prometheus that says the same; NULL: none. */
const char *tmk_finding_name(enum tmk_finding_kind kind);
const char *tmk_finding_alert(enum tmk_finding_kind kind);
enum tmk_severity tmk_finding_severity(enum tmk_finding_kind kind);
const char *tmk_severity_name(enum tmk_severity severity);

/* Write "45 s", "3 min 20 s", "5 h 02 min" into a buffer of TMK_AMOUNT_BYTES; NULL: not known. */
const char *tmk_cluster_duration(double seconds, char *buffer);

/* How many findings are of that severity. */
uint64_t tmk_cluster_count(const struct tmk_cluster *c, enum tmk_severity severity);

#endif
