/* SPDX-License-Identifier: MIT */
/* cli/fleet/fleet_text.c - see fleet_answer.h: the words. The verdict, the findings with what
 * shows them and what to do, then nodes, GPUs, jobs and ranks, the most urgent first. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "cli/fleet/fleet_answer.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "fleet/cluster/cluster.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/table.h"
#include "kit/utf8.h"

enum { INDENT = 2, WIDE = 100, WIDEST = 120, COLUMNS_MOST = 16, SEVERITY_COLUMNS = 10 };

struct fleet_page {
    const struct tmk_fleet_answer *a;
    const struct tmk_cluster *c;
    struct tmk_sheet sheet;
    unsigned width;
    bool *is_told; /* by row of a rank: its numbers stand above */
};

/* Whether a table has no room for row `i`. */
static bool is_full(const struct fleet_page *p, uint64_t i)
{
    return p->a->rows_most > 0 && i >= p->a->rows_most;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void say_rest(const struct fleet_page *p, uint64_t n, const char *of_what)
{
    char count[TMK_AMOUNT_BYTES];
    uint64_t rest = p->a->rows_most > 0 && n > p->a->rows_most ? n - p->a->rows_most : 0;
    if (rest > 0)
        tmk_print(p->sheet.out, _("  and %s more %s%s; --rows N shows more, --json all\n"),
                  tmk_count_text(rest, count), _(of_what), plural(rest));
}

static void print_fleet_table(const struct fleet_page *p, struct tmk_table *t)
{
    struct tmk_table_style style = {.indent = INDENT,
                                    .width = p->width,
                                    .title_on = tmk_sheet_role(&p->sheet, TMK_ROLE_DETAIL),
                                    .title_off = tmk_colour_end(p->sheet.colour)};
    if (tmk_table_n_rows(t) > 0 && tmk_table_print(t, p->sheet.out, &style) < 0)
        tmk_die("out of memory");
    tmk_table_close(t);
}

static void put_duration(struct tmk_table *t, double seconds)
{
    char text[TMK_AMOUNT_BYTES];
    tmk_table_cell(t, tmk_cluster_duration(seconds, text));
}

/* ---- the verdict ---- */

static const char *severity_colour(const struct fleet_page *p, enum tmk_severity severity)
{
    static const enum tmk_role roles[] = {TMK_ROLE_BAD, TMK_ROLE_WARN, TMK_ROLE_PLAIN};
    return tmk_sheet_role(&p->sheet, roles[severity]);
}

static void write_verdict(const struct fleet_page *p)
{
    const struct tmk_cluster *c = p->c;
    uint64_t n_critical = tmk_cluster_count(c, TMK_SEVERITY_CRITICAL);
    uint64_t n_warnings = tmk_cluster_count(c, TMK_SEVERITY_WARNING);
    char *text;
    enum tmk_severity severity = TMK_SEVERITY_INFO;
    if (c->job && c->n_ranks == 0)
        text = tmk_xformat(_("Nothing is known of a job '%s' now."), c->job);
    else if (c->n_agents == 0 && c->n_gpus == 0)
        text = tmk_xformat(_("Prometheus has nothing of tidemark's agents."));
    else if (n_critical + n_warnings == 0)
        text = tmk_xformat(_("Nothing is wrong: no rank is heading for an OOM or leaks."));
    else {
        char critical[40] = "";
        severity = n_critical ? TMK_SEVERITY_CRITICAL : TMK_SEVERITY_WARNING;
        if (n_critical)
            snprintf(critical, sizeof critical, _("%" PRIu64 " critical, "), n_critical);
        text = tmk_xformat(_("%s%" PRIu64 " warning%s: %s."), critical, n_warnings,
                           plural(n_warnings), c->findings[0].text);
    }
    fputs(severity_colour(p, severity), p->sheet.out);
    tmk_sheet_wrap(p->sheet.out, text, "");
    fputs(tmk_colour_end(p->sheet.colour), p->sheet.out);
    free(text);
}

static void write_scope(const struct fleet_page *p)
{
    const struct tmk_cluster *c = p->c;
    uint64_t n_up = 0, n_gpus = 0;
    char clock[16] = "-", window[TMK_AMOUNT_BYTES];
    time_t now = (time_t)c->now_s;
    struct tm at;
    for (uint64_t i = 0; i < c->n_agents; i++)
        n_up += c->agents[i].state == TMK_AGENT_UP;
    for (uint64_t i = 0; i < c->n_gpus; i++)
        n_gpus += c->gpus[i].kind && strcmp(c->gpus[i].kind, "host") != 0;
    if (localtime_r(&now, &at))
        strftime(clock, sizeof clock, "%H:%M:%S", &at);
    char *text = tmk_xformat(
        _("%" PRIu64 " of %" PRIu64 " agent%s answer%s, %" PRIu64 " GPU%s, %" PRIu64
          " job%s, %" PRIu64 " watched process%s; as of %s, with findings of the last %s"),
        n_up, c->n_agents, plural(c->n_agents), n_up == 1 ? "s" : "", n_gpus, plural(n_gpus),
        c->n_jobs, plural(c->n_jobs), c->n_processes, c->n_processes == 1 ? "" : "es", clock,
        tmk_cluster_duration(c->window_s, window));
    fputs(tmk_sheet_role(&p->sheet, TMK_ROLE_DETAIL), p->sheet.out);
    tmk_sheet_wrap(p->sheet.out, text, "");
    fputs(tmk_colour_end(p->sheet.colour), p->sheet.out);
    free(text);
}

/* Say what to do where there is nothing to see. */
static void write_advice(const struct fleet_page *p)
{
    const struct tmk_cluster *c = p->c;
    if (c->n_agents == 0 && c->n_gpus == 0)
        tmk_sheet_wrap(
            p->sheet.out,
            _("Run tidemark agent on each node, and have Prometheus scrape them by a job "
              "that has tidemark in its name: docs/fleet.md."),
            "  ");
    else if (c->job && c->n_ranks == 0)
        tmk_sheet_wrap(p->sheet.out, _("tidemark fleet without --job lists the jobs there are."),
                       "  ");
    if (c->n_agents > 0 && !c->has_rules)
        tmk_sheet_wrap(p->sheet.out,
                       _("The rules of deploy/prometheus are not evaluated there: no alert will "
                         "tell anybody of this."),
                       "  ");
}

/* ---- findings ---- */

static void write_finding(struct fleet_page *p, const struct tmk_cluster_finding *f)
{
    char lead[40];
    enum tmk_severity severity = tmk_finding_severity(f->kind);
    const char *command = tmk_fleet_command(p->a, f);
    bool is_told = f->row != UINT32_MAX && p->is_told[f->row];
    bool is_numbers = f->kind <= TMK_FINDING_OOM_LIKELY || f->kind == TMK_FINDING_LEAK;
    const char *name = _(tmk_severity_name(severity));
    int pad = SEVERITY_COLUMNS - (int)tmk_utf8_width(name);
    snprintf(lead, sizeof lead, "  %s%*s", name, pad, "");
    fputs(severity_colour(p, severity), p->sheet.out);
    tmk_sheet_wrap(p->sheet.out, f->text, lead);
    fputs(tmk_colour_end(p->sheet.colour), p->sheet.out);
    fputs(tmk_sheet_role(&p->sheet, TMK_ROLE_DETAIL), p->sheet.out);
    if (f->evidence && !(is_told && is_numbers))
        tmk_sheet_wrap(p->sheet.out, f->evidence, "            ");
    fputs(tmk_colour_end(p->sheet.colour), p->sheet.out);
    if (command && !(is_told && is_numbers)) /* in one piece, to be copied */
        tmk_print(p->sheet.out, "            %s\n", command);
    if (is_numbers && f->row != UINT32_MAX)
        p->is_told[f->row] = true;
}

static void write_findings(struct fleet_page *p)
{
    if (p->c->n_findings == 0)
        return;
    tmk_sheet_heading(&p->sheet, "FINDINGS");
    for (uint64_t i = 0; i < p->c->n_findings && !is_full(p, i); i++)
        write_finding(p, &p->c->findings[i]);
    say_rest(p, p->c->n_findings, "finding");
    if (p->c->n_gaps_unseen > 0)
        tmk_print(p->sheet.out, _("  Gaps of %" PRIu64 " more agent%s were not looked for.\n"),
                  p->c->n_gaps_unseen, plural(p->c->n_gaps_unseen));
}

/* ---- nodes and GPUs ---- */

static double share(uint64_t part, uint64_t whole)
{
    return part == TMK_BYTES_UNKNOWN || whole == TMK_BYTES_UNKNOWN || whole == 0
               ? -1
               : (double)part / (double)whole;
}

static void put_share(struct tmk_table *t, uint64_t part, uint64_t whole)
{
    double s = share(part, whole);
    if (s < 0)
        tmk_table_cell(t, NULL);
    else
        tmk_table_cellf(t, "%.0f %%", s * 100);
}

static int compare_agents(const void *a, const void *b)
{
    const struct tmk_cluster_agent *x = a, *y = b;
    if (x->state != y->state)
        return y->state == TMK_AGENT_UP ? -1 : x->state == TMK_AGENT_UP ? 1 : 0;
    double s = share(x->used_bytes, x->total_bytes), u = share(y->used_bytes, y->total_bytes);
    if (s != u)
        return s > u ? -1 : 1;
    return strcmp(x->host ? x->host : "", y->host ? y->host : "");
}

static void write_nodes(struct fleet_page *p)
{
    static const struct tmk_column columns[] = {
        {"node", TMK_LEFT, TMK_SHRINK},    {"agent", TMK_LEFT, TMK_FIXED},
        {"GPUs", TMK_RIGHT, TMK_FIXED},    {"used", TMK_RIGHT, TMK_FIXED},
        {"of", TMK_RIGHT, TMK_FIXED},      {"full", TMK_RIGHT, TMK_FIXED},
        {"watched", TMK_RIGHT, TMK_FIXED},
    };
    static const char *const states[] = {N_("up"), N_("SILENT"), N_("GONE")};
    struct tmk_cluster *c = p->a->cluster;
    if (c->n_agents == 0)
        return;
    qsort(c->agents, c->n_agents, sizeof *c->agents, compare_agents);
    tmk_sheet_heading(&p->sheet, "NODES");
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < c->n_agents && !is_full(p, i); i++) {
        const struct tmk_cluster_agent *a = &c->agents[i];
        tmk_table_cell(t, a->host ? a->host : a->instance);
        tmk_table_cell(t, _(states[a->state]));
        if (a->state == TMK_AGENT_UP)
            tmk_table_cellf(t, "%" PRIu32, a->n_gpus);
        else
            tmk_table_cell(t, NULL);
        tmk_table_size(t, a->used_bytes);
        tmk_table_size(t, a->total_bytes);
        put_share(t, a->used_bytes, a->total_bytes);
        if (a->state == TMK_AGENT_UP)
            tmk_table_cellf(t, "%" PRIu32, a->n_ranks);
        else
            tmk_table_cell(t, NULL);
    }
    print_fleet_table(p, t);
    say_rest(p, c->n_agents, "node");
}

static int compare_gpus(const void *a, const void *b)
{
    const struct tmk_cluster_gpu *x = a, *y = b;
    double s = share(x->used_bytes, x->total_bytes), u = share(y->used_bytes, y->total_bytes);
    return s > u ? -1 : s < u;
}

/* GPUs; the hosts' memory is not among them. */
static void write_gpus(struct fleet_page *p)
{
    static const struct tmk_column columns[] = {
        {"node", TMK_LEFT, TMK_SHRINK},      {"GPU", TMK_LEFT, TMK_FIXED},
        {"model", TMK_LEFT, TMK_SHRINK},     {"used", TMK_RIGHT, TMK_FIXED},
        {"of", TMK_RIGHT, TMK_FIXED},        {"full", TMK_RIGHT, TMK_FIXED},
        {"processes", TMK_RIGHT, TMK_FIXED},
    };
    struct tmk_cluster *c = p->a->cluster;
    uint64_t n = 0;
    if (c->n_gpus > 1)
        qsort(c->gpus, c->n_gpus, sizeof *c->gpus, compare_gpus);
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < c->n_gpus; i++) {
        const struct tmk_cluster_gpu *g = &c->gpus[i];
        if ((g->gpu && strcmp(g->gpu, "host") == 0) || is_full(p, n++))
            continue;
        tmk_table_cell(t, g->host);
        tmk_table_cell(t, g->gpu);
        tmk_table_cell(t, g->model);
        tmk_table_size(t, g->used_bytes);
        tmk_table_size(t, g->total_bytes);
        put_share(t, g->used_bytes, g->total_bytes);
        tmk_table_number(t, isnan(g->n_processes) ? -1 : (int64_t)g->n_processes);
    }
    if (n > 0)
        tmk_sheet_heading(&p->sheet, "GPUS");
    print_fleet_table(p, t);
    say_rest(p, n, "GPU");
}

/* ---- jobs ---- */

static int compare_jobs(const void *a, const void *b)
{
    const struct tmk_cluster_job *x = a, *y = b;
    if (x->risk != y->risk)
        return x->risk > y->risk ? -1 : 1;
    double s = isnan(x->oom_s) ? INFINITY : x->oom_s, u = isnan(y->oom_s) ? INFINITY : y->oom_s;
    if (s != u)
        return s < u ? -1 : 1;
    double v = share(x->peak_bytes, x->limit_bytes), w = share(y->peak_bytes, y->limit_bytes);
    if (v != w)
        return v > w ? -1 : 1;
    return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

static void put_job_cells(struct tmk_table *t, const struct tmk_cluster_job *j)
{
    tmk_table_cell(t, j->name);
    if (j->world_size > 0)
        tmk_table_cellf(t, _("%" PRIu32 " of %" PRId64), j->n_ranks, j->world_size);
    else
        tmk_table_number(t, j->n_ranks > 0 ? (int64_t)j->n_ranks : -1);
    tmk_table_cellf(t, "%" PRIu32, j->n_nodes);
    tmk_table_size(t, j->allocated_bytes);
    tmk_table_size(t, j->peak_bytes);
    tmk_table_size(t, j->limit_bytes);
    if (isnan(j->imbalance) || j->n_ranks < 2)
        tmk_table_cell(t, NULL);
    else
        tmk_table_cellf(t, "%.2f", j->imbalance);
    put_duration(t, j->oom_s);
}

/* Jobs are asked for by number elsewhere: a copy is sorted. */
static void write_jobs(struct fleet_page *p)
{
    static const struct tmk_column columns[] = {
        {"job", TMK_LEFT, TMK_SHRINK},      {"ranks", TMK_RIGHT, TMK_FIXED},
        {"nodes", TMK_RIGHT, TMK_FIXED},    {"allocated", TMK_RIGHT, TMK_FIXED},
        {"peak", TMK_RIGHT, TMK_FIXED},     {"limit", TMK_RIGHT, TMK_FIXED},
        {"÷ median", TMK_RIGHT, TMK_FIXED}, {"OOM in", TMK_RIGHT, TMK_FIXED},
    };
    const struct tmk_cluster *c = p->c;
    if (c->n_jobs == 0)
        return;
    struct tmk_cluster_job *jobs = tmk_xcalloc(c->n_jobs, sizeof *jobs);
    memcpy(jobs, c->jobs, c->n_jobs * sizeof *jobs);
    qsort(jobs, c->n_jobs, sizeof *jobs, compare_jobs);
    tmk_sheet_heading(&p->sheet, c->job ? "JOB" : "JOBS");
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < c->n_jobs && !is_full(p, i); i++)
        put_job_cells(t, &jobs[i]);
    free(jobs);
    print_fleet_table(p, t);
    say_rest(p, c->n_jobs, "job");
}

/* ---- ranks ---- */

static void put_job_name(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_cell(t, r->job);
}

static void put_rank_number(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_number(t, r->rank);
}

static void put_host(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_cell(t, r->host);
}

static void put_gpu(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_cell(t, r->gpu);
}

static void put_pid(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_number(t, r->pid);
}

static void put_allocated(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    if (r->is_over)
        tmk_table_cell(t, _("ended"));
    else
        tmk_table_size(t, r->allocated_bytes);
}

static void put_peak(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_size(t, r->peak_bytes);
}

static void put_limit(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_size(t, r->limit_bytes);
}

static void put_growth(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    double growth = tmk_fleet_growth(r);
    tmk_table_size(t, isnan(growth) ? TMK_BYTES_UNKNOWN : tmk_size_whole(growth));
}

static void put_median(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    if (isnan(r->against_median))
        tmk_table_cell(t, NULL);
    else
        tmk_table_cellf(t, "%.2f", r->against_median);
}

static void put_time_to_oom(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    put_duration(t, r->oom_s);
}

static void put_risk(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_cell(t, _(tmk_risk_text(r->risk)));
}

static void put_cause(struct tmk_table *t, const struct tmk_cluster_rank *r)
{
    tmk_table_cell(t, r->cause && strcmp(r->cause, "none") != 0 ? r->cause : NULL);
}

/* From which width on a column is shown: of all ranks, and side by side with --job. */
static const struct rank_column {
    struct tmk_column column;
    void (*put)(struct tmk_table *t, const struct tmk_cluster_rank *r);
    unsigned width_of_all, width_of_job;
} rank_columns[] = {
    {{"job", TMK_LEFT, TMK_SHRINK}, put_job_name, 0, UINT32_MAX},
    {{"rank", TMK_RIGHT, TMK_FIXED}, put_rank_number, 0, 0},
    {{"node", TMK_LEFT, TMK_SHRINK}, put_host, 0, 0},
    {{"GPU", TMK_LEFT, TMK_FIXED}, put_gpu, 0, 0},
    {{"pid", TMK_RIGHT, TMK_FIXED}, put_pid, WIDEST, WIDE},
    {{"allocated", TMK_RIGHT, TMK_FIXED}, put_allocated, WIDE, 0},
    {{"peak", TMK_RIGHT, TMK_FIXED}, put_peak, 0, 0},
    {{"limit", TMK_RIGHT, TMK_FIXED}, put_limit, 0, 0},
    {{"growth a step", TMK_RIGHT, TMK_SHRINK}, put_growth, 0, 0},
    {{"÷ median", TMK_RIGHT, TMK_FIXED}, put_median, WIDEST, 0},
    {{"OOM in", TMK_RIGHT, TMK_FIXED}, put_time_to_oom, 0, 0},
    {{"risk", TMK_LEFT, TMK_FIXED}, put_risk, WIDE - 10, WIDE},
    {{"cause", TMK_LEFT, TMK_SHRINK}, put_cause, WIDEST, WIDEST},
};

/* Say how many ranks are not in the table, and their peaks. */
static void say_other_ranks(const struct fleet_page *p, uint64_t n_shown)
{
    char least[TMK_AMOUNT_BYTES], most[TMK_AMOUNT_BYTES], count[TMK_AMOUNT_BYTES];
    uint64_t least_bytes = UINT64_MAX, most_bytes = 0;
    if (n_shown == p->a->n_order)
        return;
    for (uint64_t i = n_shown; i < p->a->n_order; i++) {
        uint64_t bytes = p->c->ranks[p->a->order[i]].peak_bytes;
        if (bytes == TMK_BYTES_UNKNOWN)
            continue;
        least_bytes = bytes < least_bytes ? bytes : least_bytes;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    tmk_print(p->sheet.out, _("  and %s more"), tmk_count_text(p->a->n_order - n_shown, count));
    if (least_bytes != UINT64_MAX)
        tmk_print(p->sheet.out, _(", with peaks from %s to %s"), tmk_size_text(least_bytes, least),
                  tmk_size_text(most_bytes, most));
    tmk_print(p->sheet.out, _("; --rows N shows more\n"));
}

static void write_ranks(struct fleet_page *p)
{
    struct tmk_column columns[COLUMNS_MOST];
    const struct rank_column *shown[COLUMNS_MOST];
    uint32_t n = 0;
    if (p->a->n_order == 0)
        return;
    for (size_t i = 0; i < TMK_N(rank_columns); i++) {
        unsigned width = p->c->job ? rank_columns[i].width_of_job : rank_columns[i].width_of_all;
        if (p->width < width)
            continue;
        shown[n] = &rank_columns[i];
        columns[n++] = rank_columns[i].column;
    }
    tmk_sheet_heading(&p->sheet, "RANKS");
    struct tmk_table *t = tmk_table_open(columns, n);
    uint64_t rows = 0;
    for (; rows < p->a->n_order && !is_full(p, rows); rows++)
        for (uint32_t k = 0; k < n; k++)
            shown[k]->put(t, &p->c->ranks[p->a->order[rows]]);
    print_fleet_table(p, t);
    say_other_ranks(p, rows);
}

void tmk_fleet_text(const struct tmk_fleet_answer *a, FILE *out, unsigned width, bool colour)
{
    struct fleet_page p = {.a = a,
                           .c = a->cluster,
                           .sheet = {.out = out, .colour = colour},
                           .width = width,
                           .is_told = tmk_xcalloc(a->cluster->n_ranks + 1, sizeof(bool))};
    write_verdict(&p);
    write_scope(&p);
    write_advice(&p);
    p.sheet.is_begun = true;
    write_findings(&p);
    if (!a->cluster->job && !a->leaves_out_nodes) {
        write_nodes(&p);
        write_gpus(&p);
    }
    write_jobs(&p);
    write_ranks(&p);
    free(p.is_told);
}
