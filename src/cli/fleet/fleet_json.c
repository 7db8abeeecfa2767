/* SPDX-License-Identifier: MIT */
/* cli/fleet/fleet_json.c - see fleet_answer.h. Keys of forecasts are those of the table forecast.
 * Times are Unix seconds. */
#include <math.h>

#include "cli/fleet/fleet_answer.h"
#include "fleet/cluster/cluster.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "kit/tree.h"

static void put_time(struct tmk_tree *t, const char *key, double time_s)
{
    if (isnan(time_s))
        tmk_tree_unknown(t, key);
    else
        tmk_tree_fixed(t, key, time_s, 3);
}

static void put_agents(struct tmk_tree *t, const struct tmk_cluster *c)
{
    static const char *const states[] = {"up", "silent", "gone"};
    tmk_tree_list(t, "nodes");
    for (uint64_t i = 0; i < c->n_agents; i++) {
        const struct tmk_cluster_agent *a = &c->agents[i];
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "host", a->host);
        tmk_tree_text(t, "instance", a->instance);
        tmk_tree_text(t, "agent", states[a->state]);
        tmk_tree_text(t, "version", a->version);
        put_time(t, "answered", a->state == TMK_AGENT_UP ? NAN : a->answered_s);
        tmk_tree_u64(t, "gpus", a->n_gpus);
        tmk_tree_u64(t, "processes", a->n_ranks);
        tmk_tree_bytes(t, "used", a->used_bytes);
        tmk_tree_bytes(t, "total", a->total_bytes);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_gpus(struct tmk_tree *t, const struct tmk_cluster *c)
{
    tmk_tree_list(t, "gpus");
    for (uint64_t i = 0; i < c->n_gpus; i++) {
        const struct tmk_cluster_gpu *g = &c->gpus[i];
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "host", g->host);
        tmk_tree_text(t, "gpu", g->gpu);
        tmk_tree_text(t, "uuid", g->uuid);
        tmk_tree_text(t, "kind", g->kind);
        tmk_tree_text(t, "model", g->model);
        tmk_tree_bytes(t, "used", g->used_bytes);
        tmk_tree_bytes(t, "free", g->free_bytes);
        tmk_tree_bytes(t, "total", g->total_bytes);
        tmk_tree_i64_if(t, "processes", !isnan(g->n_processes),
                        isnan(g->n_processes) ? 0 : (int64_t)g->n_processes);
        tmk_tree_text(t, "risk", tmk_risk_text(g->risk));
        tmk_tree_double(t, "seconds_to_oom", g->oom_s);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_jobs(struct tmk_tree *t, const struct tmk_cluster *c)
{
    tmk_tree_list(t, "jobs");
    for (uint64_t i = 0; i < c->n_jobs; i++) {
        const struct tmk_cluster_job *j = &c->jobs[i];
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "job", j->name);
        tmk_tree_u64(t, "ranks", j->n_ranks);
        tmk_tree_number(t, "world_size", j->world_size);
        tmk_tree_text(t, "missing", j->missing);
        tmk_tree_u64(t, "nodes", j->n_nodes);
        tmk_tree_bytes(t, "allocated", j->allocated_bytes);
        tmk_tree_bytes(t, "peak", j->peak_bytes);
        tmk_tree_bytes(t, "limit", j->limit_bytes);
        tmk_tree_double(t, "median_peak", j->median_bytes);
        tmk_tree_double(t, "imbalance", j->imbalance);
        tmk_tree_double(t, "bytes_per_step", j->growth_bytes);
        tmk_tree_text(t, "risk", tmk_risk_text(j->risk));
        tmk_tree_double(t, "seconds_to_oom", j->oom_s);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_rank(struct tmk_tree *t, const struct tmk_cluster_rank *r)
{
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "job", r->job);
    tmk_tree_number(t, "rank", r->rank);
    tmk_tree_text(t, "host", r->host);
    tmk_tree_number(t, "pid", r->pid);
    tmk_tree_text(t, "gpu", r->gpu);
    tmk_tree_text(t, "uuid", r->uuid);
    tmk_tree_text(t, "namespace", r->namespace);
    tmk_tree_text(t, "pod", r->pod);
    tmk_tree_text(t, "container", r->container);
    tmk_tree_text(t, "run", r->run);
    tmk_tree_bool(t, "ended", r->is_over);
    tmk_tree_bytes(t, "allocated", r->allocated_bytes);
    tmk_tree_bytes(t, "reserved", r->reserved_bytes);
    tmk_tree_bytes(t, "peak", r->peak_bytes);
    tmk_tree_bytes(t, "limit", r->limit_bytes);
    tmk_tree_bytes(t, "host_allocated", r->host_bytes);
    tmk_tree_double(t, "bytes_per_step", r->growth_bytes);
    tmk_tree_double(t, "peak_bytes_per_step", r->peak_growth_bytes);
    tmk_tree_double(t, "against_median", r->against_median);
    tmk_tree_text(t, "risk", tmk_risk_text(r->risk));
    tmk_tree_double(t, "seconds_to_oom", r->oom_s);
    tmk_tree_double(t, "seconds_low", r->oom_low_s);
    tmk_tree_double(t, "seconds_high", r->oom_high_s);
    tmk_tree_double(t, "confidence", r->confidence);
    tmk_tree_text(t, "cause", r->cause);
    tmk_tree_end(t);
}

static void put_findings(struct tmk_tree *t, const struct tmk_fleet_answer *a)
{
    tmk_tree_list(t, "findings");
    for (uint64_t i = 0; i < a->cluster->n_findings; i++) {
        const struct tmk_cluster_finding *f = &a->cluster->findings[i];
        int64_t pid;
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "kind", tmk_finding_name(f->kind));
        tmk_tree_text(t, "severity", tmk_severity_name(tmk_finding_severity(f->kind)));
        tmk_tree_text(t, "alert", tmk_finding_alert(f->kind));
        tmk_tree_text(t, "job", f->job);
        tmk_tree_number(t, "rank", f->rank);
        tmk_tree_text(t, "host", f->host);
        tmk_tree_text(t, "gpu", f->gpu);
        tmk_tree_number(t, "pid", f->pid && tmk_integer_parse(f->pid, &pid) == 0 ? pid : -1);
        tmk_tree_text(t, "instance", f->instance);
        tmk_tree_double(t, "value", f->value);
        put_time(t, "from", f->from_s);
        put_time(t, "to", f->to_s);
        tmk_tree_text(t, "text", f->text);
        tmk_tree_text(t, "evidence", f->evidence);
        tmk_tree_text(t, "command", tmk_fleet_command(a, f));
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

void tmk_fleet_json(const struct tmk_fleet_answer *a, FILE *out, unsigned lines)
{
    struct tmk_tree t;
    const struct tmk_cluster *c = a->cluster;
    tmk_tree_init_json(&t, out, lines);
    tmk_tree_object(&t, NULL);
    tmk_tree_text(&t, "prometheus", a->url);
    put_time(&t, "time", c->now_s);
    tmk_tree_double(&t, "window_seconds", c->window_s);
    tmk_tree_bool(&t, "rules_loaded", c->has_rules);
    tmk_tree_u64(&t, "critical", tmk_cluster_count(c, TMK_SEVERITY_CRITICAL));
    tmk_tree_u64(&t, "warnings", tmk_cluster_count(c, TMK_SEVERITY_WARNING));
    put_findings(&t, a);
    put_agents(&t, c);
    put_gpus(&t, c);
    put_jobs(&t, c);
    tmk_tree_list(&t, "ranks");
    for (uint64_t i = 0; i < a->n_order; i++)
        put_rank(&t, &c->ranks[a->order[i]]);
    tmk_tree_end(&t);
    tmk_tree_u64(&t, "gaps_not_looked_for", c->n_gaps_unseen);
    tmk_tree_end(&t);
}
