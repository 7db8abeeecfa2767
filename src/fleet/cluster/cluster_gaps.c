/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster_gaps.c - when agents were cut off: times of the window in which they have
 * no sample.
 *
 * Prometheus first counts the scrapes of each agent, all and good ones. Only those with fewer good
 * ones than the best are then asked for, sample by sample, and the best itself, which shows when
 * Prometheus was away. What lies between two good samples is a gap when a scrape failed in it, or
 * when two are missing at least: one that is late is no gap. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/cluster/cluster.h"
#include "fleet/cluster/cluster_parts.h"
#include "fleet/cluster/cluster_queries.h"
#include "fleet/cluster/prometheus.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"

enum { ASKED_MOST = 48, ASKED_BYTES = 3000, GAPS_MOST = 64 };
/* Times the usual time between samples. */
#define GAP_LENGTH_FAILED 1.75
#define GAP_LENGTH 2.5

struct scrape_count {
    const char *job, *instance;
    double n_all, n_good;
};

struct gap_search {
    struct tmk_cluster *c;
    struct scrape_count *counts;
    uint64_t n, room;
    struct tmk_textmap keys;
    struct scrape_count best; /* with the most good scrapes */
    uint64_t first;           /* finding of ours */
    /* The agent that is looked at: */
    struct tmk_cluster_agent *agent;
    double usual_s;
    bool of_best;
};

/* ---- which agents ---- */

static int take_scrape_count(void *arg, const struct tmk_prometheus_series *s)
{
    struct gap_search *g = arg;
    const char *job = tmk_cluster_text(g->c, tmk_prometheus_label(s, "job"));
    const char *instance = tmk_cluster_text(g->c, tmk_prometheus_label(s, "instance"));
    const char *figure = tmk_prometheus_label(s, "figure");
    const char *key =
        job && instance ? tmk_arena_format(&g->c->texts, "%s\x1f%s", job, instance) : NULL;
    uint32_t i;
    if (!key || !figure)
        return 0; /* no target has neither */
    if (tmk_textmap_put(&g->keys, key, &i) < 0 || TMK_GROW(g->counts, g->n + 1, g->room) < 0)
        return TMK_ENOMEM;
    if (i == g->n)
        g->counts[g->n++] = (struct scrape_count){.job = job, .instance = instance};
    *(strcmp(figure, "good") == 0 ? &g->counts[i].n_good : &g->counts[i].n_all) = s->value;
    return 0;
}

/* Those with failed scrapes first, then those with the fewest. */
static int compare_counts(const void *a, const void *b)
{
    const struct scrape_count *x = a, *y = b;
    bool x_failed = x->n_good < x->n_all, y_failed = y->n_good < y->n_all;
    if (x_failed != y_failed)
        return x_failed ? -1 : 1;
    if (x->n_good != y->n_good)
        return x->n_good < y->n_good ? -1 : 1;
    return strcmp(x->instance, y->instance);
}

static struct tmk_cluster_agent *agent_of(const struct tmk_cluster *c, const char *job,
                                          const char *instance)
{
    for (uint64_t i = 0; i < c->n_agents; i++)
        if (c->agents[i].instance == instance && c->agents[i].scrape_job == job)
            return &c->agents[i];
    return NULL;
}

/* ---- gaps of one agent ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of the times between samples, good or not; NAN: there are too few. */
static double usual_time(const struct tmk_prometheus_series *s)
{
    if (s->n_points < 3)
        return NAN;
    uint64_t n = s->n_points - 1;
    double *times = calloc(n, sizeof *times);
    if (!times)
        return NAN;
    for (uint64_t i = 0; i < n; i++)
        times[i] = s->points[i + 1].time_s - s->points[i].time_s;
    qsort(times, n, sizeof *times, compare_doubles);
    double median = times[n / 2];
    free(times);
    return median > 0 ? median : NAN;
}

/* Whether Prometheus itself was away then: the best agent has the same gap, without a scrape. */
static bool is_covered(const struct gap_search *g, double from_s, double to_s)
{
    for (uint64_t i = g->first; i < g->c->n_findings; i++) {
        const struct tmk_cluster_finding *f = &g->c->findings[i];
        if (f->is_everywhere && f->from_s <= from_s + g->usual_s && to_s <= f->to_s + g->usual_s)
            return true;
    }
    return false;
}

static int add_agent_gap(struct gap_search *g, double from_s, double to_s, bool has_failed)
{
    bool is_everywhere = g->of_best && !has_failed && !isnan(to_s);
    if (!is_everywhere && !has_failed && is_covered(g, from_s, to_s))
        return 0;
    struct tmk_cluster_finding *f = tmk_cluster_add_finding(g->c);
    if (!f)
        return TMK_ENOMEM;
    f->kind = TMK_FINDING_GAP;
    f->host = is_everywhere ? NULL : g->agent->host;
    f->instance = is_everywhere ? NULL : g->agent->instance;
    f->from_s = from_s;
    f->to_s = to_s;
    f->has_failed = has_failed;
    f->is_everywhere = is_everywhere;
    f->value = isnan(to_s) ? NAN : floor((to_s - from_s) / g->usual_s + 0.5) - 1;
    return 0;
}

/* An agent that does not answer now has a finding of its own. */
static int take_scrapes(void *arg, const struct tmk_prometheus_series *s)
{
    struct gap_search *g = arg;
    double last_s = NAN;
    bool has_failed = false;
    unsigned n_gaps = 0;
    const char *job = tmk_cluster_text(g->c, tmk_prometheus_label(s, "job"));
    const char *instance = tmk_cluster_text(g->c, tmk_prometheus_label(s, "instance"));
    g->agent = agent_of(g->c, job, instance);
    g->usual_s = usual_time(s);
    if (!g->agent || isnan(g->usual_s))
        return 0;
    g->of_best = instance == g->best.instance && job == g->best.job;
    for (uint64_t i = 0; i < s->n_points; i++) {
        double time_s = s->points[i].time_s;
        if (!(s->points[i].value > 0)) {
            has_failed = true;
            continue;
        }
        if (!isnan(last_s) &&
            time_s - last_s > (has_failed ? GAP_LENGTH_FAILED : GAP_LENGTH) * g->usual_s &&
            n_gaps++ < GAPS_MOST && add_agent_gap(g, last_s, time_s, has_failed) < 0)
            return TMK_ENOMEM;
        last_s = time_s;
        has_failed = false;
    }
    g->agent->answered_s = last_s;
    return 0;
}

/* ---- asking ---- */

/* A regular expression that matches the instances, and nothing else. */
static const char *instances_text(struct tmk_cluster *c, const struct scrape_count *counts,
                                  uint64_t n)
{
    const char *all = "";
    for (uint64_t i = 0; i < n && all; i++) {
        char *quoted = tmk_arena_take(&c->texts, strlen(counts[i].instance) * 2 + 1), *to = quoted;
        for (const char *at = counts[i].instance; *at && to; at++) {
            if (strchr("\\.+*?()|[]{}^$", *at))
                *to++ = '\\';
            *to++ = *at;
        }
        all = quoted ? tmk_arena_format(&c->texts, "%s%s%s", all, *all ? "|" : "", quoted) : NULL;
    }
    return all ? tmk_promql_text(&c->texts, all) : NULL;
}

static int ask_scrapes(struct gap_search *g, struct tmk_prometheus *p,
                       const struct scrape_count *counts, uint64_t n, struct tmk_error *err)
{
    const char *instances = instances_text(g->c, counts, n);
    const char *text = instances ? tmk_arena_format(&g->c->texts,
                                                    "up{job=~\".*tidemark.*\",instance=~%s}"
                                                    "[%" PRIu64 "s]",
                                                    instances, (uint64_t)g->c->window_s)
                                 : NULL;
    return text ? tmk_prometheus_query(p, text, g->c->now_s, take_scrapes, g, err) : TMK_ENOMEM;
}

static int search_gaps(struct gap_search *g, struct tmk_prometheus *p, struct tmk_error *err)
{
    uint64_t n = 0;
    if (g->n == 0)
        return 0;
    g->best = g->counts[0];
    for (uint64_t i = 1; i < g->n; i++)
        if (g->counts[i].n_good > g->best.n_good)
            g->best = g->counts[i];
    int rc = ask_scrapes(g, p, &g->best, 1, err); /* first: it says when Prometheus was away */
    qsort(g->counts, g->n, sizeof *g->counts, compare_counts);
    while (n < g->n &&
           (g->counts[n].n_good < g->counts[n].n_all || g->counts[n].n_good < g->best.n_good - 1))
        n++;
    for (uint64_t i = 0; i < n; i++)
        if (g->counts[i].instance == g->best.instance && g->counts[i].job == g->best.job)
            memmove(&g->counts[i], &g->counts[i + 1], (--n - i) * sizeof *g->counts);
    uint64_t n_asked = 0;
    for (size_t n_bytes = 0; n_asked < n && n_asked < ASKED_MOST; n_asked++)
        if ((n_bytes += strlen(g->counts[n_asked].instance)) > ASKED_BYTES)
            break;
    g->c->n_gaps_unseen = n - n_asked;
    n = n_asked;
    return rc == 0 && n > 0 ? ask_scrapes(g, p, g->counts, n, err) : rc;
}

int tmk_cluster_find_gaps(struct tmk_cluster *c, struct tmk_prometheus *p,
                          const struct tmk_cluster_question *question, struct tmk_error *err)
{
    struct gap_search g = {.c = c, .first = c->n_findings};
    const char *text = tmk_cluster_query_text(&c->texts, TMK_QUERY_SCRAPES, question);
    int rc =
        text ? tmk_prometheus_query(p, text, c->now_s, take_scrape_count, &g, err) : TMK_ENOMEM;
    if (rc == 0)
        rc = search_gaps(&g, p, err);
    tmk_textmap_fini(&g.keys);
    free(g.counts);
    return rc == TMK_ENOMEM ? tmk_fail(err, rc, "out of memory") : rc;
}
