/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster.c - see cluster.h. Each question fills rows, which are found again by a key
 * of their labels; what is only counted or summed over a node or job follows at the end. */
#include "fleet/cluster/cluster.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "fleet/cluster/cluster_parts.h"
#include "fleet/cluster/cluster_queries.h"
#include "fleet/cluster/prometheus.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/language.h"

#define LATEST_S 253402300800.0 /* the year 10000 */

/* ---- texts and keys ---- */

const char *tmk_cluster_text(struct tmk_cluster *c, const char *text)
{
    uint32_t number;
    if (!text)
        return NULL;
    if (tmk_textmap_find(&c->names, text, &number))
        return c->names.texts[number];
    const char *copy = tmk_arena_text(&c->texts, text, strlen(text));
    return copy && tmk_textmap_put(&c->names, copy, &number) == 0 ? copy : NULL;
}

static const char *label_of(struct tmk_cluster *c, const struct tmk_prometheus_series *s,
                            const char *name)
{
    return tmk_cluster_text(c, tmk_prometheus_label(s, name));
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* Writes a key that is made up of four texts, until the next one; NULL without memory. */
static const char *write_key(struct tmk_cluster *c, const char *const parts[4])
{
    uint64_t n = 1;
    for (unsigned i = 0; i < 4; i++)
        n += strlen(or_empty(parts[i])) + 1;
    if (TMK_GROW(c->key, n, c->key_room) < 0)
        return NULL;
    char *to = c->key;
    for (unsigned i = 0; i < 4; i++) {
        to = stpcpy(to, or_empty(parts[i]));
        *to++ = '\x1f';
    }
    *to = '\0';
    return c->key;
}

/* Finds the row of a key: its number, or the number of rows for a new one; -1 without memory. */
static int64_t find_cluster_row(struct tmk_cluster *c, struct tmk_textmap *keys,
                                const char *const parts[4])
{
    uint32_t number;
    const char *key = write_key(c, parts);
    if (!key)
        return -1;
    if (tmk_textmap_find(keys, key, &number))
        return number;
    const char *copy = tmk_arena_text(&c->texts, key, strlen(key));
    return copy && tmk_textmap_put(keys, copy, &number) == 0 ? (int64_t)number : -1;
}

static uint64_t bytes_of_series(double value)
{
    return value >= 0 && value < 9e18 ? (uint64_t)(value + 0.5) : TMK_BYTES_UNKNOWN;
}

static double seconds_of(double value)
{
    return value >= 0 ? value : NAN;
}

static enum tmk_risk risk_of(double value)
{
    return value >= 0 && value <= 3 ? (enum tmk_risk)((int)value + TMK_RISK_LOW) : TMK_RISK_UNKNOWN;
}

static int64_t whole_of(const char *text)
{
    int64_t number;
    return text && tmk_integer_parse(text, &number) == 0 && number >= 0 ? number : -1;
}

static int64_t count_of_series(double value)
{
    return value >= 0 && value < 9e15 ? (int64_t)(value + 0.5) : -1;
}

/* ---- rows ---- */

static struct tmk_cluster_agent *agent_row(struct tmk_cluster *c,
                                           const struct tmk_prometheus_series *s)
{
    const char *parts[4] = {tmk_prometheus_label(s, "job"), tmk_prometheus_label(s, "instance")};
    int64_t i = find_cluster_row(c, &c->agent_keys, parts);
    if (i < 0 || TMK_GROW(c->agents, c->n_agents + 1, c->agents_room) < 0)
        return NULL;
    if ((uint64_t)i == c->n_agents)
        c->agents[c->n_agents++] = (struct tmk_cluster_agent){
            .scrape_job = label_of(c, s, "job"),
            .instance = label_of(c, s, "instance"),
            .state = TMK_AGENT_GONE,
            .answered_s = NAN,
            .used_bytes = TMK_BYTES_UNKNOWN,
            .total_bytes = TMK_BYTES_UNKNOWN,
        };
    return &c->agents[i];
}

static struct tmk_cluster_gpu *gpu_row(struct tmk_cluster *c, const struct tmk_prometheus_series *s)
{
    const char *parts[4] = {tmk_prometheus_label(s, "host"), tmk_prometheus_label(s, "gpu")};
    int64_t i = find_cluster_row(c, &c->gpu_keys, parts);
    if (i < 0 || TMK_GROW(c->gpus, c->n_gpus + 1, c->gpus_room) < 0)
        return NULL;
    if ((uint64_t)i == c->n_gpus)
        c->gpus[c->n_gpus++] = (struct tmk_cluster_gpu){
            .host = label_of(c, s, "host"),
            .gpu = label_of(c, s, "gpu"),
            .used_bytes = TMK_BYTES_UNKNOWN,
            .free_bytes = TMK_BYTES_UNKNOWN,
            .total_bytes = TMK_BYTES_UNKNOWN,
            .n_processes = NAN,
            .oom_s = NAN,
        };
    return &c->gpus[i];
}

/* Numbers processes, and remembers the first row of each. -1 without memory. */
static int64_t number_process(struct tmk_cluster *c, const char *const parts[4], uint32_t row)
{
    const char *const process[4] = {parts[0], parts[1], parts[2]};
    int64_t i = find_cluster_row(c, &c->process_keys, process);
    if (i < 0 || TMK_GROW(c->process_rows, c->process_keys.n, c->process_rows_room) < 0)
        return -1;
    if ((uint64_t)i == c->n_processes) {
        c->process_rows[i] = row;
        c->n_processes++;
    }
    return i;
}

static struct tmk_cluster_rank *rank_row(struct tmk_cluster *c,
                                         const struct tmk_prometheus_series *s)
{
    const char *parts[4] = {tmk_prometheus_label(s, "job"), tmk_prometheus_label(s, "host"),
                            tmk_prometheus_label(s, "pid"), tmk_prometheus_label(s, "gpu")};
    int64_t i = find_cluster_row(c, &c->rank_keys, parts);
    int64_t process = i < 0 ? -1 : number_process(c, parts, (uint32_t)i);
    if (process < 0 || TMK_GROW(c->ranks, c->n_ranks + 1, c->ranks_room) < 0)
        return NULL;
    if ((uint64_t)i == c->n_ranks)
        c->ranks[c->n_ranks++] = (struct tmk_cluster_rank){
            .job = label_of(c, s, "job"),
            .host = label_of(c, s, "host"),
            .gpu = label_of(c, s, "gpu"),
            .uuid = label_of(c, s, "uuid"),
            .namespace = label_of(c, s, "namespace"),
            .pod = label_of(c, s, "pod"),
            .container = label_of(c, s, "container"),
            .process = (uint32_t)process,
            .rank = whole_of(tmk_prometheus_label(s, "rank")),
            .pid = whole_of(tmk_prometheus_label(s, "pid")),
            .allocated_bytes = TMK_BYTES_UNKNOWN,
            .reserved_bytes = TMK_BYTES_UNKNOWN,
            .peak_bytes = TMK_BYTES_UNKNOWN,
            .limit_bytes = TMK_BYTES_UNKNOWN,
            .host_bytes = TMK_BYTES_UNKNOWN,
            .growth_bytes = NAN,
            .peak_growth_bytes = NAN,
            .oom_s = NAN,
            .oom_low_s = NAN,
            .oom_high_s = NAN,
            .confidence = NAN,
            .against_median = NAN,
        };
    return &c->ranks[i];
}

static struct tmk_cluster_job *job_row(struct tmk_cluster *c, const char *name)
{
    const char *parts[4] = {name};
    int64_t i = find_cluster_row(c, &c->job_keys, parts);
    if (i < 0 || TMK_GROW(c->jobs, c->n_jobs + 1, c->jobs_room) < 0)
        return NULL;
    if ((uint64_t)i == c->n_jobs)
        c->jobs[c->n_jobs++] = (struct tmk_cluster_job){
            .name = tmk_cluster_text(c, name),
            .world_size = -1,
            .allocated_bytes = TMK_BYTES_UNKNOWN,
            .peak_bytes = TMK_BYTES_UNKNOWN,
            .limit_bytes = TMK_BYTES_UNKNOWN,
            .median_bytes = NAN,
            .imbalance = NAN,
            .highest = UINT32_MAX,
            .soonest = UINT32_MAX,
            .oom_s = NAN,
            .growth_bytes = NAN,
        };
    return &c->jobs[i];
}

int tmk_cluster_number_rows(struct tmk_cluster *c, uint32_t *process_of)
{
    for (uint64_t i = 0; i < c->n_ranks; i++) {
        struct tmk_cluster_rank *r = &c->ranks[i];
        struct tmk_cluster_job *j = job_row(c, or_empty(r->job));
        if (!j)
            return TMK_ENOMEM;
        r->job_row = (uint32_t)(j - c->jobs);
        process_of[i] = r->process;
    }
    return 0;
}

/* ---- answers ---- */

static int take_time(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    c->now_s = s->value;
    return 0;
}

static int take_rules(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    c->has_rules = !isnan(s->value);
    return 0;
}

static int take_agent(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    struct tmk_cluster_agent *a = agent_row(c, s);
    if (!a)
        return TMK_ENOMEM;
    a->state = s->value > 0 ? TMK_AGENT_UP : TMK_AGENT_SILENT;
    return 0;
}

/* Agents that are not scraped any more have a row only if they are found to be gone. */
static int take_agent_version(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    uint64_t before = c->n_agents;
    struct tmk_cluster_agent *a = agent_row(c, s);
    if (!a)
        return TMK_ENOMEM;
    if (c->n_agents > before || !a->host) {
        a->host = label_of(c, s, "host");
        a->version = label_of(c, s, "version");
    }
    return 0;
}

static int take_gpu(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    struct tmk_cluster_gpu *g = gpu_row(c, s);
    const char *name = or_empty(tmk_prometheus_label(s, "__name__"));
    if (!g)
        return TMK_ENOMEM;
    if (!g->uuid)
        g->uuid = label_of(c, s, "uuid");
    if (strcmp(name, "tidemark_gpu_memory_total_bytes") == 0)
        g->total_bytes = bytes_of_series(s->value);
    else if (strcmp(name, "tidemark_gpu_memory_used_bytes") == 0)
        g->used_bytes = bytes_of_series(s->value);
    else if (strcmp(name, "tidemark_gpu_memory_free_bytes") == 0)
        g->free_bytes = bytes_of_series(s->value);
    else if (strcmp(name, "tidemark_gpu_oom_seconds") == 0)
        g->oom_s = seconds_of(s->value);
    else if (strcmp(name, "tidemark_gpu_oom_risk") == 0)
        g->risk = risk_of(s->value);
    else if (strcmp(name, "tidemark_gpu_processes") == 0)
        g->n_processes = seconds_of(s->value);
    return 0;
}

static int take_gpu_info(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    struct tmk_cluster_gpu *g = gpu_row(c, s);
    if (!g)
        return TMK_ENOMEM;
    g->model = label_of(c, s, "model");
    g->kind = label_of(c, s, "kind");
    return 0;
}

static void take_rank_bytes(struct tmk_cluster_rank *r, const char *what, double value)
{
    if (strcmp(what, "allocated_bytes") == 0)
        r->allocated_bytes = bytes_of_series(value);
    else if (strcmp(what, "reserved_bytes") == 0)
        r->reserved_bytes = bytes_of_series(value);
    else if (strcmp(what, "peak_allocated_bytes") == 0)
        r->peak_bytes = bytes_of_series(value);
    else if (strcmp(what, "limit_bytes") == 0)
        r->limit_bytes = bytes_of_series(value);
    else if (strcmp(what, "step_growth_bytes") == 0)
        r->growth_bytes = value;
    else if (strcmp(what, "peak_growth_bytes") == 0)
        r->peak_growth_bytes = value;
}

static int take_rank(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    static const char prefix[] = "tidemark_job_";
    const char *name = or_empty(tmk_prometheus_label(s, "__name__"));
    struct tmk_cluster_rank *r = rank_row(c, s);
    if (!r)
        return TMK_ENOMEM;
    const char *what =
        strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : "";
    if (strcmp(what, "oom_seconds") == 0)
        r->oom_s = seconds_of(s->value);
    else if (strcmp(what, "oom_low_seconds") == 0)
        r->oom_low_s = seconds_of(s->value);
    else if (strcmp(what, "oom_high_seconds") == 0)
        r->oom_high_s = seconds_of(s->value);
    else if (strcmp(what, "oom_confidence_ratio") == 0)
        r->confidence = s->value >= 0 && s->value <= 1 ? s->value : NAN;
    else if (strcmp(what, "oom_risk") == 0)
        r->risk = risk_of(s->value);
    else
        take_rank_bytes(r, what, s->value);
    return 0;
}

static int take_rank_info(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    struct tmk_cluster_rank *r = rank_row(c, s);
    if (!r)
        return TMK_ENOMEM;
    r->cause = label_of(c, s, "cause");
    r->run = label_of(c, s, "run");
    return 0;
}

static int take_job(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    const char *name = tmk_prometheus_label(s, "job");
    const char *figure = or_empty(tmk_prometheus_label(s, "figure"));
    struct tmk_cluster_job *j = name ? job_row(c, name) : NULL;
    if (!j)
        return name ? TMK_ENOMEM : 0;
    if (strcmp(figure, "ranks") == 0)
        j->n_ranks = s->value >= 0 && s->value < 1e9 ? (uint32_t)s->value : 0;
    else if (strcmp(figure, "world") == 0)
        j->world_size = count_of_series(s->value);
    else if (strcmp(figure, "median") == 0)
        j->median_bytes = s->value;
    else if (strcmp(figure, "imbalance") == 0)
        j->imbalance = s->value;
    return 0;
}

/* ---- findings ---- */

struct tmk_cluster_finding *tmk_cluster_add_finding(struct tmk_cluster *c)
{
    if (TMK_GROW(c->findings, c->n_findings + 1, c->findings_room) < 0)
        return NULL;
    struct tmk_cluster_finding *f = &c->findings[c->n_findings++];
    *f = (struct tmk_cluster_finding){
        .value = NAN, .rank = -1, .row = UINT32_MAX, .from_s = NAN, .to_s = NAN};
    return f;
}

static enum tmk_finding_kind kind_of(const char *name)
{
    unsigned i = 0;
    while (i < TMK_FINDING_KINDS && strcmp(name, tmk_finding_name((enum tmk_finding_kind)i)) != 0)
        i++;
    return (enum tmk_finding_kind)i;
}

/* The rank's row that a finding is about; where it names no GPU, the first of the process. */
static uint32_t row_of(struct tmk_cluster *c, const struct tmk_cluster_finding *f)
{
    const char *const parts[4] = {f->job, f->host, f->pid, f->gpu};
    const struct tmk_textmap *keys = f->gpu ? &c->rank_keys : &c->process_keys;
    const char *key = write_key(c, parts);
    uint32_t number;
    if (!f->pid || !key || !tmk_textmap_find(keys, key, &number))
        return UINT32_MAX;
    return f->gpu ? number : c->process_rows[number];
}

static int take_finding(void *arg, const struct tmk_prometheus_series *s)
{
    struct tmk_cluster *c = arg;
    enum tmk_finding_kind kind = kind_of(or_empty(tmk_prometheus_label(s, "finding")));
    struct tmk_cluster_finding *f = kind < TMK_FINDING_KINDS ? tmk_cluster_add_finding(c) : NULL;
    if (!f)
        return kind < TMK_FINDING_KINDS ? TMK_ENOMEM : 0;
    f->kind = kind;
    f->value = s->value;
    f->job = label_of(c, s, "job");
    f->host = label_of(c, s, "host");
    f->gpu = label_of(c, s, "gpu");
    f->pid = label_of(c, s, "pid");
    f->instance = label_of(c, s, "instance");
    f->rank = whole_of(tmk_prometheus_label(s, "rank"));
    if (kind == TMK_FINDING_AGENT_SILENT || kind == TMK_FINDING_AGENT_GONE)
        f->job = NULL; /* the scrape's */
    f->row = row_of(c, f);
    return 0;
}

/* The worst first; then as Prometheus gave them, which is in order of labels. */
static double urgency(const struct tmk_cluster *c, const struct tmk_cluster_finding *f)
{
    double oom_s = f->row != UINT32_MAX ? c->ranks[f->row].oom_s : NAN;
    return isnan(oom_s) ? INFINITY : oom_s;
}

static int compare_findings(const void *a, const void *b, void *cluster)
{
    const struct tmk_cluster_finding *x = a, *y = b;
    int by_severity = (int)tmk_finding_severity(x->kind) - (int)tmk_finding_severity(y->kind);
    if (by_severity != 0 || x->kind != y->kind)
        return by_severity ? by_severity : (int)x->kind - (int)y->kind;
    double s = urgency(cluster, x), t = urgency(cluster, y);
    if (s != t)
        return s < t ? -1 : 1;
    int by_text = strcmp(or_empty(x->job), or_empty(y->job));
    if (by_text == 0)
        by_text = strcmp(or_empty(x->host), or_empty(y->host));
    if (by_text == 0)
        by_text = strcmp(or_empty(x->instance), or_empty(y->instance));
    if (by_text == 0 && (x->from_s < y->from_s || x->from_s > y->from_s))
        return x->from_s < y->from_s ? -1 : 1;
    return by_text ? by_text : strcmp(or_empty(x->pid), or_empty(y->pid));
}

static bool is_same_finding(const struct tmk_cluster_finding *x,
                            const struct tmk_cluster_finding *y)
{
    return x->kind == y->kind && x->job == y->job && x->host == y->host && x->gpu == y->gpu &&
           x->pid == y->pid && x->instance == y->instance && x->rank == y->rank &&
           !(x->from_s < y->from_s || x->from_s > y->from_s);
}

/* Two Prometheus servers that scrape the same agents have each series twice: findings are told
 * once. */
static void sort_findings(struct tmk_cluster *c)
{
    uint64_t n = 0;
    if (c->n_findings > 1)
        qsort_r(c->findings, c->n_findings, sizeof *c->findings, compare_findings, c);
    for (uint64_t i = 0; i < c->n_findings; i++)
        if (n == 0 || !is_same_finding(&c->findings[n - 1], &c->findings[i]))
            c->findings[n++] = c->findings[i];
    c->n_findings = n;
}

uint64_t tmk_cluster_count(const struct tmk_cluster *c, enum tmk_severity severity)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < c->n_findings; i++)
        n += tmk_finding_severity(c->findings[i].kind) == severity;
    return n;
}

const char *tmk_severity_name(enum tmk_severity severity)
{
    static const char *const names[] = {N_("critical"), N_("warning"), N_("info")};
    return names[severity];
}

/* ---- asking ---- */

struct asked {
    struct tmk_cluster *c;
    int (*take)(void *arg, const struct tmk_prometheus_series *s);
};

/* A server that answers with a range where a moment was asked for answers another question. */
static int take_moment(void *arg, const struct tmk_prometheus_series *s)
{
    const struct asked *asked = arg;
    return s->n_points > 0 ? TMK_EFORMAT : asked->take(asked->c, s);
}

static int ask_cluster_moment(struct tmk_cluster *c, struct tmk_prometheus *p, const char *text,
                              int (*take)(void *arg, const struct tmk_prometheus_series *s),
                              struct tmk_error *err)
{
    struct asked asked = {c, take};
    int rc = text ? tmk_prometheus_query(p, text, c->now_s, take_moment, &asked, err) : TMK_ENOMEM;
    if (rc == TMK_EFORMAT)
        return tmk_fail(err, TMK_EIO, "it answers with a range where a moment was asked for");
    return rc == TMK_ENOMEM ? tmk_fail(err, rc, "out of memory") : rc;
}

static int ask_all(struct tmk_cluster *c, struct tmk_prometheus *p,
                   const struct tmk_cluster_question *question, struct tmk_error *err)
{
    static const struct {
        enum tmk_cluster_query query;
        int (*take)(void *arg, const struct tmk_prometheus_series *s);
    } list[] = {
        {TMK_QUERY_AGENTS, take_agent},     {TMK_QUERY_VERSIONS, take_agent_version},
        {TMK_QUERY_GPUS, take_gpu},         {TMK_QUERY_GPU_INFO, take_gpu_info},
        {TMK_QUERY_RANKS, take_rank},       {TMK_QUERY_RANK_INFO, take_rank_info},
        {TMK_QUERY_JOBS, take_job},         {TMK_QUERY_RULES, take_rules},
        {TMK_QUERY_FINDINGS, take_finding},
    };
    int rc = 0;
    for (size_t i = 0; i < TMK_N(list) && rc == 0; i++)
        rc = ask_cluster_moment(c, p, tmk_cluster_query_text(&c->texts, list[i].query, question),
                                list[i].take, err);
    return rc;
}

/* All questions are about one moment, which is by the server's clock. */
static int ask_time(struct tmk_cluster *c, struct tmk_prometheus *p, struct tmk_error *err)
{
    c->now_s = NAN;
    int rc = ask_cluster_moment(c, p, "time()", take_time, err);
    if (rc == 0 && !(c->now_s > 0 && c->now_s < LATEST_S))
        return tmk_fail(err, TMK_EIO, "its clock gives no time");
    return rc;
}

int tmk_cluster_ask(struct tmk_cluster *c, struct tmk_prometheus *p,
                    const struct tmk_cluster_question *question, struct tmk_error *err)
{
    c->window_s = question->window_s;
    c->job = question->job;
    int rc = ask_time(c, p, err);
    if (rc == 0)
        rc = ask_all(c, p, question, err);
    if (rc == 0)
        rc = tmk_cluster_find_gaps(c, p, question, err);
    if (rc == 0)
        rc = tmk_cluster_find_missing(c, p, question, err);
    if (rc == 0 && (rc = tmk_cluster_sum_up(c)) < 0)
        return tmk_fail(err, rc, "out of memory");
    if (rc < 0)
        return rc;
    sort_findings(c);
    rc = tmk_cluster_tell(c);
    return rc < 0 ? tmk_fail(err, rc, "out of memory") : 0;
}

void tmk_cluster_fini(struct tmk_cluster *c)
{
    tmk_textmap_fini(&c->names);
    tmk_textmap_fini(&c->agent_keys);
    tmk_textmap_fini(&c->gpu_keys);
    tmk_textmap_fini(&c->rank_keys);
    tmk_textmap_fini(&c->job_keys);
    free(c->agents);
    free(c->gpus);
    free(c->ranks);
    free(c->jobs);
    free(c->findings);
    free(c->process_rows);
    free(c->key);
    tmk_textmap_fini(&c->process_keys);
    tmk_arena_fini(&c->texts);
    *c = (struct tmk_cluster){.n_agents = 0};
}
