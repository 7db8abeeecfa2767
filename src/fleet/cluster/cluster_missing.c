/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster_missing.c - where the ranks that are missing were seen last, in the window.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/cluster/cluster.h"
#include "fleet/cluster/cluster_parts.h"
#include "fleet/cluster/cluster_queries.h"
#include "fleet/cluster/prometheus.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/language.h"
#include "kit/textmap.h"

enum { HOSTS_SHOWN = 3 };

struct last_place {
    const char *job, *host;
    double time_s;
};

struct place_search {
    struct tmk_cluster *c;
    struct last_place *places;
    uint64_t n, room;
};

static int take_place(void *arg, const struct tmk_prometheus_series *s)
{
    struct place_search *p = arg;
    const char *job = tmk_cluster_text(p->c, tmk_prometheus_label(s, "job"));
    const char *host = tmk_cluster_text(p->c, tmk_prometheus_label(s, "host"));
    if (!job || !host || isnan(s->value))
        return 0;
    if (TMK_GROW(p->places, p->n + 1, p->room) < 0)
        return TMK_ENOMEM;
    p->places[p->n++] = (struct last_place){.job = job, .host = host, .time_s = s->value};
    return 0;
}

/* By job; in it the latest first. */
static int compare_rank_places(const void *a, const void *b)
{
    const struct last_place *x = a, *y = b;
    int by_job = strcmp(x->job, y->job);
    if (by_job == 0 && x->time_s != y->time_s)
        return x->time_s > y->time_s ? -1 : 1;
    return by_job ? by_job : strcmp(x->host, y->host);
}

/* Write "last seen on node-1, node-2 and 3 more nodes" and the time. */
static int note_places(struct tmk_cluster *c, struct tmk_cluster_finding *f,
                       const struct last_place *places, uint64_t n)
{
    struct tmk_textmap hosts = {0};
    uint32_t number;
    int rc = 0;
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = tmk_textmap_put(&hosts, places[i].host, &number);
    const char *list = "";
    for (uint64_t i = 0; i < hosts.n && i < HOSTS_SHOWN && list; i++)
        list = tmk_arena_format(&c->texts, "%s%s%s", list, i ? ", " : "", hosts.texts[i]);
    if (list && hosts.n > HOSTS_SHOWN)
        list = tmk_arena_format(&c->texts, _("%s and %llu more nodes"), list,
                                (unsigned long long)(hosts.n - HOSTS_SHOWN));
    if (hosts.n == 1)
        f->host = places[0].host;
    f->last_hosts = list;
    f->from_s = places[0].time_s;
    tmk_textmap_fini(&hosts);
    return rc < 0 || !list ? TMK_ENOMEM : 0;
}

static int place_findings(struct place_search *p)
{
    int rc = 0;
    if (p->n > 1)
        qsort(p->places, p->n, sizeof *p->places, compare_rank_places);
    for (uint64_t k = 0; k < p->c->n_findings && rc == 0; k++) {
        struct tmk_cluster_finding *f = &p->c->findings[k];
        struct last_place wanted = {.job = f->job, .time_s = INFINITY, .host = ""};
        if (f->kind != TMK_FINDING_RANKS_MISSING || !f->job)
            continue;
        uint64_t low = 0, high = p->n;
        while (low < high) {
            uint64_t middle = (low + high) / 2;
            if (compare_rank_places(&p->places[middle], &wanted) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        while (high < p->n && p->places[high].job == f->job)
            high++;
        if (high > low)
            rc = note_places(p->c, f, &p->places[low], high - low);
    }
    return rc;
}

int tmk_cluster_find_missing(struct tmk_cluster *c, struct tmk_prometheus *p,
                             const struct tmk_cluster_question *question, struct tmk_error *err)
{
    struct place_search search = {.c = c};
    bool is_needed = false;
    for (uint64_t i = 0; i < c->n_findings; i++)
        is_needed |= c->findings[i].kind == TMK_FINDING_RANKS_MISSING;
    if (!is_needed)
        return 0;
    const char *text = tmk_cluster_query_text(&c->texts, TMK_QUERY_MISSING, question);
    int rc = text ? tmk_prometheus_query(p, text, c->now_s, take_place, &search, err) : TMK_ENOMEM;
    if (rc == 0)
        rc = place_findings(&search);
    free(search.places);
    return rc == TMK_ENOMEM ? tmk_fail(err, rc, "out of memory") : rc;
}
