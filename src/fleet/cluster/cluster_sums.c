/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster_sums.c - what agents and jobs have together, from the rows of their GPUs
 * and ranks.
 *
 * A rank's figures are those of its GPUs; of a rank without one, those of the host's memory. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fleet/cluster/cluster.h"
#include "fleet/cluster/cluster_parts.h"
#include "kit/amount.h"
#include "kit/textmap.h"

enum { MISSING_BYTES = 120 }; /* of the list of missing ranks; then it is cut */

static bool is_host_row(const char *gpu)
{
    return gpu && strcmp(gpu, "host") == 0;
}

static void add_bytes(uint64_t *sum, uint64_t bytes)
{
    if (bytes == TMK_BYTES_UNKNOWN)
        return;
    *sum = *sum == TMK_BYTES_UNKNOWN ? bytes : *sum + bytes;
}

/* ---- agents ---- */

/* By host, the agent that answers rather than one that does not. */
static int find_hosts(struct tmk_cluster *c, struct tmk_textmap *hosts, uint32_t *agents)
{
    for (uint64_t i = 0; i < c->n_agents; i++) {
        uint32_t number;
        uint64_t before = hosts->n;
        if (!c->agents[i].host)
            continue;
        if (tmk_textmap_put(hosts, c->agents[i].host, &number) < 0)
            return TMK_ENOMEM;
        if (number == before || c->agents[i].state < c->agents[agents[number]].state)
            agents[number] = (uint32_t)i;
    }
    return 0;
}

static void sum_gpus(struct tmk_cluster *c, const struct tmk_textmap *hosts, const uint32_t *agents)
{
    uint32_t number;
    for (unsigned with_host = 0; with_host < 2; with_host++)
        for (uint64_t i = 0; i < c->n_gpus; i++) {
            const struct tmk_cluster_gpu *g = &c->gpus[i];
            if (!g->host || is_host_row(g->gpu) != (with_host == 1) ||
                !tmk_textmap_find(hosts, g->host, &number))
                continue;
            struct tmk_cluster_agent *a = &c->agents[agents[number]];
            if (with_host && a->n_gpus > 0)
                continue;
            a->n_gpus += !with_host;
            add_bytes(&a->used_bytes, g->used_bytes);
            add_bytes(&a->total_bytes, g->total_bytes);
        }
}

static void count_ranks(struct tmk_cluster *c, const struct tmk_textmap *hosts,
                        const uint32_t *agents)
{
    uint32_t number;
    for (uint64_t i = 0; i < c->n_processes; i++) {
        const struct tmk_cluster_rank *r = &c->ranks[c->process_rows[i]];
        if (r->host && tmk_textmap_find(hosts, r->host, &number))
            c->agents[agents[number]].n_ranks++;
    }
}

/* An agent that was moved, or that answered in the window only, is no row where it is not missed.
 */
static int forget_agents(struct tmk_cluster *c)
{
    struct tmk_textmap missed = {0};
    uint32_t number;
    uint64_t n = 0;
    int rc = 0;
    for (uint64_t i = 0; i < c->n_findings && rc == 0; i++)
        if (c->findings[i].kind == TMK_FINDING_AGENT_GONE)
            rc = tmk_textmap_put(&missed, c->findings[i].instance, &number);
    for (uint64_t i = 0; i < c->n_agents; i++)
        if (c->agents[i].state != TMK_AGENT_GONE ||
            tmk_textmap_find(&missed, c->agents[i].instance, &number))
            c->agents[n++] = c->agents[i];
    c->n_agents = n;
    tmk_textmap_fini(&missed);
    return rc;
}

static int sum_agents(struct tmk_cluster *c)
{
    struct tmk_textmap hosts = {0};
    uint32_t *agents = calloc(c->n_agents + 1, sizeof *agents);
    int rc = agents ? find_hosts(c, &hosts, agents) : TMK_ENOMEM;
    if (rc == 0) {
        sum_gpus(c, &hosts, agents);
        count_ranks(c, &hosts, agents);
    }
    tmk_textmap_fini(&hosts);
    free(agents);
    return rc;
}

/* ---- ranks ---- */

/* Which row of a process is aside, and what the process has on the host. */
static int pair_rows(struct tmk_cluster *c, const uint32_t *process_of)
{
    uint8_t *has_gpu = calloc(c->n_processes + 1, 1);
    uint64_t *host_bytes = calloc(c->n_processes + 1, sizeof *host_bytes);
    for (uint64_t i = 0; i < c->n_processes && host_bytes; i++)
        host_bytes[i] = TMK_BYTES_UNKNOWN;
    for (uint64_t i = 0; i < c->n_ranks && has_gpu && host_bytes; i++)
        if (is_host_row(c->ranks[i].gpu))
            host_bytes[process_of[i]] = c->ranks[i].allocated_bytes;
        else
            has_gpu[process_of[i]] = 1;
    for (uint64_t i = 0; i < c->n_ranks && has_gpu && host_bytes; i++) {
        struct tmk_cluster_rank *r = &c->ranks[i];
        bool is_host = is_host_row(r->gpu);
        r->is_aside = is_host && has_gpu[process_of[i]];
        r->host_bytes = is_host ? TMK_BYTES_UNKNOWN : host_bytes[process_of[i]];
        r->is_over = r->allocated_bytes == TMK_BYTES_UNKNOWN &&
                     r->limit_bytes == TMK_BYTES_UNKNOWN && r->peak_bytes != TMK_BYTES_UNKNOWN;
    }
    bool failed = !has_gpu || !host_bytes;
    free(has_gpu);
    free(host_bytes);
    return failed ? TMK_ENOMEM : 0;
}

/* ---- jobs ---- */

static void sum_rank(struct tmk_cluster *c, uint32_t row)
{
    struct tmk_cluster_rank *r = &c->ranks[row];
    struct tmk_cluster_job *j = &c->jobs[r->job_row];
    j->risk = r->risk > j->risk ? r->risk : j->risk;
    if (r->oom_s < (j->soonest == UINT32_MAX ? INFINITY : j->oom_s)) {
        j->oom_s = r->oom_s;
        j->soonest = row;
    }
    if (r->is_aside)
        return;
    add_bytes(&j->allocated_bytes, r->allocated_bytes);
    if (r->growth_bytes > (isnan(j->growth_bytes) ? -INFINITY : j->growth_bytes))
        j->growth_bytes = r->growth_bytes;
    if (r->peak_bytes != TMK_BYTES_UNKNOWN &&
        (j->highest == UINT32_MAX || r->peak_bytes > j->peak_bytes)) {
        j->peak_bytes = r->peak_bytes;
        j->limit_bytes = r->limit_bytes;
        j->highest = row;
    }
    if (r->rank >= 0 && j->median_bytes > 0 && r->peak_bytes != TMK_BYTES_UNKNOWN)
        r->against_median = (double)r->peak_bytes / j->median_bytes;
}

static int compare_rank_rows(const void *a, const void *b, void *cluster)
{
    const struct tmk_cluster *c = cluster;
    const struct tmk_cluster_rank *x = &c->ranks[*(const uint32_t *)a];
    const struct tmk_cluster_rank *y = &c->ranks[*(const uint32_t *)b];
    if (x->job_row != y->job_row)
        return x->job_row < y->job_row ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Append "3" or "7-9". False: the list is full. */
static bool add_cluster_range(char *list, int64_t first, int64_t last)
{
    size_t n = strlen(list);
    if (n > MISSING_BYTES - 44) {
        strcat(list, ", …");
        return false;
    }
    n += (size_t)snprintf(list + n, MISSING_BYTES - n, "%s%" PRId64, n ? ", " : "", first);
    if (last > first)
        snprintf(list + n, MISSING_BYTES - n, "-%" PRId64, last);
    return true;
}

/* `rows` are those of one job, by rank. */
static int list_missing(struct tmk_cluster *c, const uint32_t *rows, uint64_t n)
{
    char list[MISSING_BYTES] = "";
    struct tmk_cluster_job *j = &c->jobs[c->ranks[rows[0]].job_row];
    int64_t next = 0;
    bool has_room = true;
    if (j->world_size <= (int64_t)j->n_ranks)
        return 0;
    for (uint64_t i = 0; i < n && has_room; i++) {
        const struct tmk_cluster_rank *r = &c->ranks[rows[i]];
        if (r->rank < 0 || r->is_over || r->rank >= j->world_size)
            continue;
        if (r->rank > next)
            has_room = add_cluster_range(list, next, r->rank - 1);
        next = r->rank + 1;
    }
    if (has_room && next < j->world_size)
        add_cluster_range(list, next, j->world_size - 1);
    if (list[0] && !(j->missing = tmk_cluster_text(c, list)))
        return TMK_ENOMEM;
    return 0;
}

static uint32_t count_cluster_nodes(const struct tmk_cluster *c, const uint32_t *rows, uint64_t n)
{
    struct tmk_textmap hosts = {0};
    uint32_t number;
    for (uint64_t i = 0; i < n; i++)
        if (c->ranks[rows[i]].host)
            (void)tmk_textmap_put(&hosts, c->ranks[rows[i]].host, &number);
    uint32_t n_hosts = (uint32_t)hosts.n;
    tmk_textmap_fini(&hosts);
    return n_hosts;
}

static int sum_jobs(struct tmk_cluster *c, uint32_t *rows)
{
    int rc = 0;
    for (uint32_t i = 0; i < c->n_ranks; i++) {
        rows[i] = i;
        sum_rank(c, i);
    }
    if (c->n_ranks > 1)
        qsort_r(rows, c->n_ranks, sizeof *rows, compare_rank_rows, c);
    for (uint64_t i = 0, n; i < c->n_ranks && rc == 0; i += n) {
        uint32_t job = c->ranks[rows[i]].job_row;
        for (n = 1; i + n < c->n_ranks && c->ranks[rows[i + n]].job_row == job; n++)
            continue;
        c->jobs[job].n_nodes = count_cluster_nodes(c, rows + i, n);
        rc = list_missing(c, rows + i, n);
    }
    return rc;
}

int tmk_cluster_sum_up(struct tmk_cluster *c)
{
    uint32_t *rows = calloc(c->n_ranks + 1, sizeof *rows);
    int rc = rows ? tmk_cluster_number_rows(c, rows) : TMK_ENOMEM;
    if (rc == 0)
        rc = pair_rows(c, rows);
    if (rc == 0)
        rc = sum_jobs(c, rows);
    free(rows);
    if (rc == 0)
        rc = sum_agents(c);
    return rc == 0 ? forget_agents(c) : rc;
}
