/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster_tell.c - the sentences of findings: the verdict, and the numbers that show
 * it. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "fleet/cluster/cluster.h"
#include "fleet/cluster/cluster_parts.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/textmap.h"

#define SHOWN_MOST_S 8640000.0 /* a hundred days: more is as good as never */

/* ---- words ---- */

static const char *or_unknown(const char *text)
{
    return text ? text : "-";
}

const char *tmk_cluster_duration(double seconds, char *buffer)
{
    if (!(seconds >= 0))
        return NULL;
    if (seconds > SHOWN_MOST_S)
        return strcpy(buffer, _("> 100 days"));
    uint64_t whole = (uint64_t)(seconds + 0.5);
    if (whole < 120)
        snprintf(buffer, TMK_AMOUNT_BYTES, "%" PRIu64 " s", whole);
    else if (whole < 7200 && whole % 60 == 0)
        snprintf(buffer, TMK_AMOUNT_BYTES, "%" PRIu64 " min", whole / 60);
    else
        tmk_time_text(whole * 1000000000u, buffer);
    return buffer;
}

static const char *duration_text(double seconds, char *buffer)
{
    return or_unknown(tmk_cluster_duration(seconds, buffer));
}

/* A time of day here; with the date when it is not `now`'s. */
static const char *moment_clock_text(double time_s, double now_s, char *buffer, size_t room)
{
    time_t time = (time_t)time_s, now = (time_t)now_s;
    struct tm at, today;
    if (isnan(time_s) || !localtime_r(&time, &at) || !localtime_r(&now, &today))
        snprintf(buffer, room, "-");
    else if (at.tm_yday == today.tm_yday && at.tm_year == today.tm_year)
        strftime(buffer, room, "%H:%M:%S", &at);
    else
        strftime(buffer, room, "%Y-%m-%d %H:%M:%S", &at);
    return buffer;
}

/* "rank 5 on node-12" */
static const char *who_text(struct tmk_arena *a, const struct tmk_cluster_finding *f)
{
    if (f->rank >= 0)
        return tmk_arena_format(a, _("rank %" PRId64 " on %s"), f->rank, or_unknown(f->host));
    return tmk_arena_format(a, _("process %s on %s"), or_unknown(f->pid), or_unknown(f->host));
}

/* "GPU 3" */
static const char *device_text(struct tmk_arena *a, const char *gpu)
{
    if (gpu && strcmp(gpu, "host") == 0)
        return _("the host's memory");
    bool is_number = gpu && gpu[strspn(gpu, "0123456789:")] == '\0';
    return tmk_arena_format(a, "%s%s", is_number ? _("GPU ") : "", gpu ? gpu : _("its GPU"));
}

/* ---- numbers ---- */

/* "GPU 3: peak 71.3 GiB of 80.0 GiB; 12.0 MiB more kept after each step; leak" */
static const char *rank_evidence(struct tmk_arena *a, const struct tmk_cluster_rank *r)
{
    char peak[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES], growth[TMK_AMOUNT_BYTES];
    char low[TMK_AMOUNT_BYTES], high[TMK_AMOUNT_BYTES];
    const char *text = device_text(a, r->gpu), *of = "";
    if (text && r->peak_bytes != TMK_BYTES_UNKNOWN) {
        if (r->limit_bytes != TMK_BYTES_UNKNOWN)
            of = tmk_arena_format(a, _(" of %s"), tmk_size_text(r->limit_bytes, limit));
        text = of ? tmk_arena_format(a, _("%s: peak %s%s"), text,
                                     tmk_size_text(r->peak_bytes, peak), of)
                  : NULL;
    }
    if (text && r->growth_bytes > 0)
        text = tmk_arena_format(a, _("%s; keeps %s more after each step"), text,
                                tmk_size_text(tmk_size_whole(r->growth_bytes), growth));
    else if (text && r->peak_growth_bytes > 0)
        text = tmk_arena_format(a, _("%s; needs %s more in each step"), text,
                                tmk_size_text(tmk_size_whole(r->peak_growth_bytes), growth));
    if (text && r->oom_low_s >= 0 && r->oom_high_s >= r->oom_low_s + 1)
        text =
            tmk_arena_format(a, _("%s; between %s and %s"), text, duration_text(r->oom_low_s, low),
                             duration_text(r->oom_high_s, high));
    if (text && r->cause && strcmp(r->cause, "none") != 0)
        text = tmk_arena_format(a, _("%s; cause: %s"), text, _(r->cause));
    return text;
}

/* "llama-7b: rank 5 on node-12 runs out of memory in 3 min 20 s" */
static const char *rank_oom_text(struct tmk_arena *a, const char *job, const char *who,
                                 double oom_s)
{
    char time[TMK_AMOUNT_BYTES];
    if (isnan(oom_s))
        return tmk_arena_format(a, _("%s: %s is heading for an OOM"), job, who);
    if (oom_s < 1)
        return tmk_arena_format(a, _("%s: %s runs out of memory now"), job, who);
    return tmk_arena_format(a, _("%s: %s runs out of memory in %s"), job, who,
                            duration_text(oom_s, time));
}

static int tell_rank(struct tmk_cluster *c, struct tmk_cluster_finding *f)
{
    struct tmk_arena *a = &c->texts;
    char amount[TMK_AMOUNT_BYTES];
    const struct tmk_cluster_rank *r = f->row != UINT32_MAX ? &c->ranks[f->row] : NULL;
    const char *who = who_text(a, f), *job = or_unknown(f->job);
    if (!who)
        return TMK_ENOMEM;
    if (f->kind == TMK_FINDING_OOM_SOON)
        f->text = rank_oom_text(a, job, who, f->value);
    else if (f->kind == TMK_FINDING_OOM_LIKELY)
        f->text = rank_oom_text(a, job, who, r ? r->oom_s : NAN);
    else if (f->kind == TMK_FINDING_LEAK)
        f->text = tmk_arena_format(a, _("%s: %s leaks %s a step"), job, who,
                                   tmk_size_text(tmk_size_whole(f->value), amount));
    else
        f->text = tmk_arena_format(a, _("%s: %s has %.0f %% of its cached memory in small pieces"),
                                   job, who, f->value * 100);
    f->evidence = r ? rank_evidence(a, r) : NULL;
    return f->text ? 0 : TMK_ENOMEM;
}

static int tell_process(struct tmk_cluster *c, struct tmk_cluster_finding *f)
{
    struct tmk_arena *a = &c->texts;
    char amount[TMK_AMOUNT_BYTES];
    const char *who = who_text(a, f), *job = or_unknown(f->job);
    if (!who)
        return TMK_ENOMEM;
    if (f->kind == TMK_FINDING_OOM) {
        f->text = tmk_arena_format(a, _("%s: %s ran out of memory"), job, who);
        f->evidence =
            tmk_arena_format(a, _("%.0f time%s in the last %s"), f->value,
                             f->value > 1.5 ? "s" : "", duration_text(c->window_s, amount));
    } else if (f->kind == TMK_FINDING_FIGURES_OLD) {
        f->text = tmk_arena_format(a, _("%s: the agent has not read %s for %s"), job, who,
                                   duration_text(f->value, amount));
    } else {
        f->text =
            tmk_arena_format(a, _("%s: events of %s were lost; its figures may be off"), job, who);
    }
    return f->text ? 0 : TMK_ENOMEM;
}

/* ---- jobs ---- */

static const struct tmk_cluster_job *job_of(const struct tmk_cluster *c,
                                            const struct tmk_cluster_finding *f)
{
    uint32_t number;
    char *key = NULL;
    bool found = f->job && asprintf(&key, "%s\x1f\x1f\x1f\x1f", f->job) > 0 &&
                 tmk_textmap_find(&c->job_keys, key, &number);
    free(key);
    return found ? &c->jobs[number] : NULL;
}

static int tell_imbalance(struct tmk_cluster *c, struct tmk_cluster_finding *f)
{
    struct tmk_arena *a = &c->texts;
    char peak[TMK_AMOUNT_BYTES], median[TMK_AMOUNT_BYTES];
    const struct tmk_cluster_job *j = job_of(c, f);
    const char *who = "a rank";
    if (j && j->highest != UINT32_MAX) {
        const struct tmk_cluster_rank *r = &c->ranks[j->highest];
        f->row = j->highest;
        f->rank = r->rank;
        f->host = r->host;
        f->gpu = r->gpu;
        f->pid = r->pid < 0 ? NULL : tmk_arena_format(a, "%" PRId64, r->pid);
        who = who_text(a, f);
        f->evidence =
            tmk_arena_format(a, _("peak %s, median %s"), tmk_size_text(j->peak_bytes, peak),
                             tmk_size_text(tmk_size_whole(j->median_bytes), median));
    }
    if (who)
        f->text = tmk_arena_format(a, _("%s: %s peaks at %.2f times the median of the ranks"),
                                   or_unknown(f->job), who, f->value);
    return f->text ? 0 : TMK_ENOMEM;
}

static int tell_missing_ranks(struct tmk_cluster *c, struct tmk_cluster_finding *f)
{
    const struct tmk_cluster_job *j = job_of(c, f);
    int64_t world = j ? j->world_size : -1;
    if (j && j->missing)
        f->text = tmk_arena_format(&c->texts, _("%s: rank%s %s of %" PRId64 " %s missing"),
                                   or_unknown(f->job), world - j->n_ranks == 1 ? "" : "s",
                                   j->missing, world, world - j->n_ranks == 1 ? "is" : "are");
    else
        f->text =
            tmk_arena_format(&c->texts, _("%s: only %.0f ranks are seen, fewer than were started"),
                             or_unknown(f->job), f->value);
    char time[64];
    if (f->last_hosts)
        f->evidence = tmk_arena_format(&c->texts, _("last seen on %s, at %s"), f->last_hosts,
                                       moment_clock_text(f->from_s, c->now_s, time, sizeof time));
    return f->text ? 0 : TMK_ENOMEM;
}

/* ---- nodes ---- */

/* Find the host of each agent that is silent or gone, and when it last answered. */
static int place_agents(struct tmk_cluster *c)
{
    struct tmk_textmap instances = {0};
    uint32_t number, *rows = calloc(c->n_agents + 1, sizeof *rows);
    int rc = rows ? 0 : TMK_ENOMEM;
    for (uint64_t i = 0; i < c->n_agents && rc == 0; i++)
        if ((rc = tmk_textmap_put(&instances, c->agents[i].instance, &number)) == 0)
            rows[number] = (uint32_t)i;
    for (uint64_t i = 0; i < c->n_findings && rc == 0; i++) {
        struct tmk_cluster_finding *f = &c->findings[i];
        if ((f->kind != TMK_FINDING_AGENT_SILENT && f->kind != TMK_FINDING_AGENT_GONE) ||
            !tmk_textmap_find(&instances, f->instance, &number))
            continue;
        f->host = c->agents[rows[number]].host;
        f->from_s = c->agents[rows[number]].answered_s;
    }
    tmk_textmap_fini(&instances);
    free(rows);
    return rc;
}

static int tell_cluster_agent(struct tmk_cluster *c, struct tmk_cluster_finding *f)
{
    struct tmk_arena *a = &c->texts;
    char time[64], amount[TMK_AMOUNT_BYTES];
    const char *name = f->host
                           ? tmk_arena_format(a, _("on %s (%s)"), f->host, or_unknown(f->instance))
                           : tmk_arena_format(a, _("at %s"), or_unknown(f->instance));
    if (!name)
        return TMK_ENOMEM;
    f->text = tmk_arena_format(a, _("the agent %s %s"), name,
                               f->kind == TMK_FINDING_AGENT_SILENT ? _("does not answer")
                                                                   : _("is not scraped any more"));
    if (!isnan(f->from_s))
        f->evidence = tmk_arena_format(a, _("its last answer was at %s"),
                                       moment_clock_text(f->from_s, c->now_s, time, sizeof time));
    else if (!f->host)
        f->evidence = tmk_arena_format(a, _("it has not answered in the last %s"),
                                       duration_text(c->window_s, amount));
    return f->text ? 0 : TMK_ENOMEM;
}

static int tell_full(struct tmk_cluster *c, struct tmk_cluster_finding *f)
{
    struct tmk_arena *a = &c->texts;
    const char *device = device_text(a, f->gpu);
    f->text = device ? tmk_arena_format(a, _("%s of %s is %.0f %% full"), device,
                                        or_unknown(f->host), f->value * 100)
                     : NULL;
    return f->text ? 0 : TMK_ENOMEM;
}

static int tell_gap(struct tmk_cluster *c, struct tmk_cluster_finding *f)
{
    struct tmk_arena *a = &c->texts;
    char from[64], to[64];
    const char *name = f->is_everywhere ? _("Prometheus") : f->host ? f->host : f->instance;
    f->text = tmk_arena_format(a, _("%s has no samples%s from %s to %s"), or_unknown(name),
                               f->is_everywhere ? _(" of anything") : "",
                               moment_clock_text(f->from_s, c->now_s, from, sizeof from),
                               moment_clock_text(f->to_s, c->now_s, to, sizeof to));
    f->evidence = tmk_arena_format(a, _("%.0f missing: %s"), f->value,
                                   f->is_everywhere ? _("it was away itself")
                                   : f->has_failed  ? _("the agent did not answer")
                                                    : _("Prometheus did not ask the agent"));
    return f->text ? 0 : TMK_ENOMEM;
}

/* ---- all ---- */

static int tell_finding(struct tmk_cluster *c, struct tmk_cluster_finding *f)
{
    switch (f->kind) {
    case TMK_FINDING_OOM_SOON:
    case TMK_FINDING_OOM_LIKELY:
    case TMK_FINDING_LEAK:
    case TMK_FINDING_FRAGMENTATION:
        return tell_rank(c, f);
    case TMK_FINDING_OOM:
    case TMK_FINDING_FIGURES_OLD:
    case TMK_FINDING_EVENTS_DROPPED:
        return tell_process(c, f);
    case TMK_FINDING_IMBALANCE:
        return tell_imbalance(c, f);
    case TMK_FINDING_RANKS_MISSING:
        return tell_missing_ranks(c, f);
    case TMK_FINDING_AGENT_SILENT:
    case TMK_FINDING_AGENT_GONE:
        return tell_cluster_agent(c, f);
    case TMK_FINDING_GPU_NEARLY_FULL:
        return tell_full(c, f);
    case TMK_FINDING_GAP:
        return tell_gap(c, f);
    default:
        f->text = _("agents are scraped without honor_labels: true, so jobs are not recognised");
        return 0;
    }
}

int tmk_cluster_tell(struct tmk_cluster *c)
{
    int rc = place_agents(c);
    for (uint64_t i = 0; i < c->n_findings && rc == 0; i++)
        rc = tell_finding(c, &c->findings[i]);
    return rc;
}
