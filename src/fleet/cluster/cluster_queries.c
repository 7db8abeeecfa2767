/* SPDX-License-Identifier: MIT */
/* fleet/cluster/cluster_queries.c - see cluster_queries.h. */
#include "fleet/cluster/cluster_queries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* tidemark:rank_peak_allocated_bytes:max{rank!=""} */
#define RANK_PEAK                                                                                  \
    "(max by (job, rank, host, pid) (tidemark_job_peak_allocated_bytes{gpu!=\"host\",rank!=\"\","  \
    "$J}) or max by (job, rank, host, pid) (tidemark_job_peak_allocated_bytes{gpu=\"host\","       \
    "rank!=\"\",$J}))"
/* tidemark:job_peak_imbalance:ratio, tidemark:job_ranks:count, tidemark:job_world_size:max */
#define MEDIAN_PEAK "quantile by (job) (0.5, " RANK_PEAK ")"
#define IMBALANCE "(max by (job) (" RANK_PEAK ") / " MEDIAN_PEAK ")"
#define N_RANKS                                                                                    \
    "count by (job) (count by (job, rank) (tidemark_job_read_timestamp_seconds{rank!=\"\",$J}))"
#define WORLD_SIZE "max by (job) (tidemark_job_world_size{$J})"
/* tidemark:gpu_memory_used:ratio{gpu!="host"} */
#define USED_RATIO                                                                                 \
    "(tidemark_gpu_memory_used_bytes{gpu!=\"host\"} / (tidemark_gpu_memory_used_bytes{gpu!="       \
    "\"host\"} + tidemark_gpu_memory_free_bytes{gpu!=\"host\"}))"
/* The agents' targets: those of a scrape job that has tidemark in its name. */
#define TARGETS "{job=~\".*tidemark.*\"}"
#define OOMS "max_over_time(tidemark_job_ooms_total{$J}[$W])"

static const struct {
    const char *name, *alert;
    enum tmk_severity severity;
    const char *expr; /* NULL: found in another way */
    bool is_node;     /* not of jobs */
} findings[] = {
    [TMK_FINDING_OOM_SOON] = {"oom_soon", "TidemarkOOMSoon", TMK_SEVERITY_CRITICAL,
                              "tidemark_job_oom_seconds{$J} < 600 and tidemark_job_oom_risk >= 2",
                              false},
    [TMK_FINDING_OOM_LIKELY] =
        {"oom_likely", "TidemarkOOMLikely", TMK_SEVERITY_WARNING,
         "tidemark_job_oom_risk{$J} >= 2 unless tidemark_job_oom_seconds < 600", false},
    [TMK_FINDING_OOM] = {"oom", "TidemarkOOM", TMK_SEVERITY_WARNING,
                         "((" OOMS " - tidemark_job_ooms_total{$J} offset $W) or (" OOMS
                         " unless tidemark_job_ooms_total{$J} offset $W)) > 0",
                         false},
    [TMK_FINDING_LEAK] = {"leak", "TidemarkLeak", TMK_SEVERITY_WARNING,
                          "tidemark_job_step_growth_bytes{$J} > 0 and on (host, gpu, pid, job) "
                          "tidemark_job_info{cause=\"leak\"}",
                          false},
    [TMK_FINDING_IMBALANCE] = {"imbalance", "TidemarkImbalance", TMK_SEVERITY_WARNING,
                               IMBALANCE " > 1.25 and " N_RANKS " > 1", false},
    [TMK_FINDING_RANKS_MISSING] = {"ranks_missing", "TidemarkRanksMissing", TMK_SEVERITY_WARNING,
                                   N_RANKS " < " WORLD_SIZE, false},
    [TMK_FINDING_AGENT_SILENT] = {"agent_silent", "TidemarkAgentSilent", TMK_SEVERITY_WARNING,
                                  "up" TARGETS " == 0", true},
    [TMK_FINDING_AGENT_GONE] = {"agent_gone", NULL, TMK_SEVERITY_WARNING,
                                "last_over_time(tidemark_build_info[$W]) unless on (job, instance) "
                                "up unless on (host) tidemark_build_info",
                                true},
    [TMK_FINDING_GPU_NEARLY_FULL] = {"gpu_nearly_full", "TidemarkGPUNearlyFull",
                                     TMK_SEVERITY_WARNING, USED_RATIO " > 0.95", true},
    [TMK_FINDING_FRAGMENTATION] = {"fragmentation", "TidemarkFragmentation", TMK_SEVERITY_WARNING,
                                   "tidemark_job_fragmentation_ratio{$J} > 0.5 and "
                                   "tidemark_job_cached_bytes > 0.1 * tidemark_job_limit_bytes",
                                   false},
    [TMK_FINDING_LABELS_RENAMED] = {"labels_renamed", "TidemarkLabelsRenamed", TMK_SEVERITY_WARNING,
                                    "count(tidemark_job_steps_total{exported_job!=\"\"}) > 0",
                                    true},
    [TMK_FINDING_GAP] = {"gap", NULL, TMK_SEVERITY_INFO, NULL, true},
    [TMK_FINDING_FIGURES_OLD] = {"figures_old", "TidemarkFiguresOld", TMK_SEVERITY_INFO,
                                 "time() - tidemark_job_read_timestamp_seconds{$J} > 600", false},
    [TMK_FINDING_EVENTS_DROPPED] = {"events_dropped", "TidemarkEventsDropped", TMK_SEVERITY_INFO,
                                    "increase(tidemark_job_dropped_events_total{$J}[5m]) > 0",
                                    false},
};

static const char *const texts[] = {
    [TMK_QUERY_AGENTS] = "up" TARGETS,
    [TMK_QUERY_VERSIONS] = "last_over_time(tidemark_build_info[$W])",
    [TMK_QUERY_SCRAPES] =
        "label_replace(count_over_time(up" TARGETS "[$W]), \"figure\", \"all\", \"\", \"\") or "
        "label_replace(sum_over_time(up" TARGETS "[$W]), \"figure\", \"good\", \"\", \"\")",
    [TMK_QUERY_GPUS] =
        "max by (__name__, host, gpu, uuid) ({__name__=~\"tidemark_gpu_memory_(total|used|free)_"
        "bytes|tidemark_gpu_oom_(seconds|risk)|tidemark_gpu_processes\"})",
    [TMK_QUERY_GPU_INFO] = "max by (host, gpu, kind, model) (tidemark_gpu_info)",
    [TMK_QUERY_RANKS] =
        "max by (__name__, job, rank, host, gpu, uuid, pid, namespace, pod, container) ("
        "{__name__=~\"tidemark_job_(allocated|reserved|peak_allocated|limit|step_growth|"
        "peak_growth)_bytes|tidemark_job_oom_(risk|(low_|high_)?seconds|confidence_ratio)\",$J})",
    [TMK_QUERY_RANK_INFO] = "max by (job, host, gpu, pid, cause, run) (tidemark_job_info{$J})",
    [TMK_QUERY_JOBS] = "label_replace(" N_RANKS ", \"figure\", \"ranks\", \"\", \"\") or "
                       "label_replace(" WORLD_SIZE ", \"figure\", \"world\", \"\", \"\") or "
                       "label_replace(" MEDIAN_PEAK ", \"figure\", \"median\", \"\", \"\") or "
                       "label_replace(" IMBALANCE ", \"figure\", \"imbalance\", \"\", \"\")",
    [TMK_QUERY_RULES] = "tidemark:agents:up",
    [TMK_QUERY_MISSING] =
        "(max by (job, rank, host) (last_over_time(tidemark_job_read_timestamp_seconds{rank!=\"\","
        "$J}[$W])) unless on (job, rank) tidemark_job_read_timestamp_seconds) and on (job) "
        "(" N_RANKS " < " WORLD_SIZE ")",
};

const char *tmk_finding_name(enum tmk_finding_kind kind)
{
    return findings[kind].name;
}

const char *tmk_finding_alert(enum tmk_finding_kind kind)
{
    return findings[kind].alert;
}

enum tmk_severity tmk_finding_severity(enum tmk_finding_kind kind)
{
    return findings[kind].severity;
}

const char *tmk_promql_text(struct tmk_arena *a, const char *text)
{
    char *copy = tmk_arena_take(a, strlen(text) * 2 + 3), *to = copy;
    if (!copy)
        return NULL;
    *to++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\' || *text == '\n')
            *to++ = '\\';
        *to++ = *text == '\n' ? 'n' : *text;
    }
    *to = '"';
    return copy;
}

/* Fill in $J and $W. */
static const char *fill_query(struct tmk_arena *a, const char *text,
                              const struct tmk_cluster_question *question)
{
    char *filled = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&filled, &n);
    const char *job = question->job ? tmk_promql_text(a, question->job) : "\"\"";
    if (!out || !job) {
        if (out)
            fclose(out);
        free(filled);
        return NULL;
    }
    for (; *text; text++) {
        bool is_job = text[0] == '$' && text[1] == 'J',
             is_window = text[0] == '$' && text[1] == 'W';
        if (is_job)
            fprintf(out, "job%s%s", question->job ? "=" : "!=", job);
        else if (is_window)
            fprintf(out, "%" PRIu64 "s", (uint64_t)question->window_s);
        else
            fputc(*text, out);
        text += is_job || is_window;
    }
    bool failed = fclose(out) != 0;
    const char *result = failed ? NULL : tmk_arena_text(a, filled, n);
    free(filled);
    return result;
}

/* All findings as one expression. */
static const char *findings_text(struct tmk_arena *a, bool of_job)
{
    const char *all = "";
    for (unsigned i = 0; i < TMK_N(findings) && all; i++)
        if (findings[i].expr && !(of_job && findings[i].is_node))
            all = tmk_arena_format(a, "%s%slabel_replace(%s, \"finding\", \"%s\", \"\", \"\")", all,
                                   *all ? " or " : "", findings[i].expr, findings[i].name);
    return all;
}

const char *tmk_cluster_query_text(struct tmk_arena *a, enum tmk_cluster_query query,
                                   const struct tmk_cluster_question *question)
{
    const char *text =
        query == TMK_QUERY_FINDINGS ? findings_text(a, question->job != NULL) : texts[query];
    return text ? fill_query(a, text, question) : NULL;
}
