/* SPDX-License-Identifier: MIT */
/* cli/fleet/fleet_answer.c - see fleet_answer.h: the order of ranks, and commands. */
#include "cli/fleet/fleet_answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/xalloc.h"
#include "cli/remote/endpoint.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"

/* ---- order ---- */

double tmk_fleet_growth(const struct tmk_cluster_rank *r)
{
    return fmax(r->growth_bytes, r->peak_growth_bytes); /* one of them, where the other is NAN */
}

struct rank_order {
    const struct tmk_cluster_rank *ranks;
    enum tmk_fleet_sort by;
};

static double size_key(uint64_t bytes)
{
    return bytes == TMK_BYTES_UNKNOWN ? -1 : (double)bytes;
}

static double used_key(const struct tmk_cluster_rank *r)
{
    return r->peak_bytes == TMK_BYTES_UNKNOWN || r->limit_bytes == TMK_BYTES_UNKNOWN ||
                   r->limit_bytes == 0
               ? -1
               : (double)r->peak_bytes / (double)r->limit_bytes;
}

static double growth_key(const struct tmk_cluster_rank *r)
{
    double growth = tmk_fleet_growth(r);
    return isnan(growth) ? -INFINITY : growth;
}

/* The larger key comes first, unknown last. */
static double sort_key(const struct tmk_cluster_rank *r, enum tmk_fleet_sort by)
{
    switch (by) {
    case TMK_FLEET_BY_OOM:
        return isnan(r->oom_s) ? -INFINITY : -r->oom_s;
    case TMK_FLEET_BY_PEAK:
        return size_key(r->peak_bytes);
    case TMK_FLEET_BY_ALLOCATED:
        return size_key(r->allocated_bytes);
    case TMK_FLEET_BY_USED:
        return used_key(r);
    case TMK_FLEET_BY_GROWTH:
        return growth_key(r);
    case TMK_FLEET_BY_RANK:
        return r->rank < 0 ? -INFINITY : -(double)r->rank;
    default:
        return (double)r->risk;
    }
}

static int compare_keys(const struct tmk_cluster_rank *x, const struct tmk_cluster_rank *y,
                        enum tmk_fleet_sort by)
{
    double a = sort_key(x, by), b = sort_key(y, by);
    return a > b ? -1 : a < b;
}

/* Equal ones by risk, time to an OOM and share of the limit; then as they came. */
static int compare_rank_order(const void *a, const void *b, void *order_wanted)
{
    const struct rank_order *wanted = order_wanted;
    static const enum tmk_fleet_sort next[] = {TMK_FLEET_BY_RISK, TMK_FLEET_BY_OOM,
                                               TMK_FLEET_BY_USED, TMK_FLEET_BY_PEAK,
                                               TMK_FLEET_BY_RANK};
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    int order = compare_keys(&wanted->ranks[i], &wanted->ranks[k], wanted->by);
    for (size_t n = 0; n < sizeof next / sizeof next[0] && order == 0; n++)
        order = compare_keys(&wanted->ranks[i], &wanted->ranks[k], next[n]);
    return order ? order : i < k ? -1 : i > k;
}

void tmk_fleet_sort_ranks(struct tmk_fleet_answer *a, enum tmk_fleet_sort by)
{
    const struct tmk_cluster *c = a->cluster;
    a->order = tmk_xcalloc(c->n_ranks + 1, sizeof *a->order);
    a->n_order = 0;
    for (uint32_t i = 0; i < c->n_ranks; i++)
        if (!c->ranks[i].is_aside || c->ranks[i].risk >= TMK_RISK_MEDIUM)
            a->order[a->n_order++] = i;
    struct rank_order wanted = {c->ranks, by};
    if (a->n_order > 1)
        qsort_r(a->order, a->n_order, sizeof *a->order, compare_rank_order, &wanted);
}

/* ---- commands ---- */

/* A name that ssh takes; NULL: it could mean something else. */
static const char *host_word(struct tmk_arena *a, const char *host)
{
    char name[TMK_HOST_BYTES];
    if (!host || tmk_endpoint_host(host, name, NULL) < 0)
        return NULL;
    return tmk_xshell_word(a, name);
}

/* "tidemark leak node-12:4242" */
static const char *process_command(struct tmk_arena *a, const char *verb,
                                   const struct tmk_cluster_finding *f)
{
    int64_t pid;
    const char *host = host_word(a, f->host);
    if (!host || !f->pid || tmk_integer_parse(f->pid, &pid) < 0 || pid <= 0)
        return NULL;
    const char *bracket = strchr(host, ':') ? "[" : "";
    return tmk_xarena_format(a, "tidemark %s %s%s%s:%" PRId64, verb, bracket, host,
                             *bracket ? "]" : "", pid);
}

static bool is_leak(const struct tmk_cluster *c, const struct tmk_cluster_finding *f)
{
    const char *cause = f->row == UINT32_MAX ? NULL : c->ranks[f->row].cause;
    return cause && strcmp(cause, "leak") == 0;
}

static const char *host_command(struct tmk_arena *a, const char *before, const char *host,
                                const char *behind)
{
    const char *word = host_word(a, host);
    return word ? tmk_xarena_format(a, "%s%s%s", before, word, behind) : NULL;
}

static const char *job_command(const struct tmk_fleet_answer *a,
                               const struct tmk_cluster_finding *f)
{
    struct tmk_arena *texts = &a->cluster->texts;
    if (a->cluster->job || !f->job)
        return f->row != UINT32_MAX ? process_command(texts, "report", f) : NULL;
    const char *job = tmk_xshell_word(texts, f->job);
    if (!a->is_url_given)
        return tmk_xarena_format(texts, "tidemark fleet --job %s", job);
    return tmk_xarena_format(texts, "tidemark fleet --prometheus %s --job %s",
                             tmk_xshell_word(texts, a->url), job);
}

/* The host of an agent that never told its name: the target's, without its port. */
static const char *agent_host(struct tmk_arena *a, const struct tmk_cluster_finding *f)
{
    const char *colon = f->instance ? strrchr(f->instance, ':') : NULL;
    if (f->host || !f->instance)
        return f->host;
    return tmk_xarena_text(a, f->instance,
                           colon ? (size_t)(colon - f->instance) : strlen(f->instance));
}

const char *tmk_fleet_command(const struct tmk_fleet_answer *a, const struct tmk_cluster_finding *f)
{
    struct tmk_arena *texts = &a->cluster->texts;
    switch (f->kind) {
    case TMK_FINDING_OOM_SOON:
    case TMK_FINDING_OOM_LIKELY:
        return process_command(texts, is_leak(a->cluster, f) ? "leak" : "report", f);
    case TMK_FINDING_LEAK:
        return process_command(texts, "leak", f);
    case TMK_FINDING_OOM:
        return process_command(texts, "explain", f);
    case TMK_FINDING_FRAGMENTATION:
        return process_command(texts, "frag", f);
    case TMK_FINDING_EVENTS_DROPPED:
        return process_command(texts, "check", f);
    case TMK_FINDING_IMBALANCE:
    case TMK_FINDING_RANKS_MISSING:
        return job_command(a, f);
    case TMK_FINDING_AGENT_SILENT:
    case TMK_FINDING_AGENT_GONE:
        return host_command(texts, "ssh ", agent_host(texts, f),
                            " systemctl status tidemark-agent");
    case TMK_FINDING_GAP:
        return f->has_failed ? host_command(texts, "ssh ", f->host, " journalctl -u tidemark-agent")
                             : NULL;
    case TMK_FINDING_GPU_NEARLY_FULL:
        return host_command(texts, "ssh -t ", f->host, " tidemark top");
    case TMK_FINDING_FIGURES_OLD:
        return host_command(texts, "tidemark ps ", f->host, "");
    default:
        return NULL;
    }
}
