/* SPDX-License-Identifier: MIT */
/* cli/answers/ranks_text.c - see ranks_answer.h: the words. */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/ranks_answer.h"
#include "cli/answers/summary_line.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/imbalance/imbalance.h"
#include "passes/imbalance/rank_facts.h"

enum { MOST_LINES = 24 };

/* Say why the ranks could not be compared. Returns an exit status; 0: they were. */
static int ranks_status(const struct tmk_run *run, int rc, const struct tmk_error *e)
{
    if (rc == 0)
        return 0;
    tmk_say("%s: %s", tmk_run_path(run), e->text[0] ? e->text : tmk_result_text(rc));
    return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
}

int tmk_ranks_answer(struct tmk_run *run, struct tmk_imbalance **ret)
{
    struct tmk_error err = {0};
    *ret = NULL;
    return ranks_status(run, tmk_imbalance_open(run, ret, &err), &err);
}

int tmk_ranks_line(struct tmk_run *run, FILE *out)
{
    struct tmk_imbalance *b;
    struct tmk_error err = {0};
    char line[TMK_IMBALANCE_LINE_BYTES];
    int status = ranks_status(run, tmk_imbalance_open_brief(run, &b, &err), &err);
    if (status != 0)
        return status;
    tmk_print(out, "%s\n", tmk_imbalance_line(b, line));
    tmk_imbalance_close(b);
    return 0;
}

/* ---- the table ---- */

/* The row of a group with the largest peak, whose figures the line shows. */
static uint32_t highest_of_group(const struct tmk_imbalance *b, uint32_t group)
{
    uint32_t best = b->groups[group].first;
    for (uint32_t i = best; i < b->n_rows; i++)
        if (b->rows[i].group == group &&
            b->rows[i].facts.peak_bytes > b->rows[best].facts.peak_bytes)
            best = i;
    return best;
}

static void add_group_label(struct tmk_table *t, const struct tmk_imbalance *b, struct tmk_run *run,
                            uint32_t group, bool is_chosen)
{
    char label[40], list[TMK_RANK_LIST_BYTES];
    const char *star = is_chosen ? " *" : "";
    const struct tmk_rank_group *g = &b->groups[group];
    if (g->n == 1)
        tmk_table_cellf(t, "%s%s", tmk_process_label(tmk_run_process(run, g->first), label), star);
    else if (b->rows[g->first].is_main)
        tmk_table_cellf(t, _("ranks %s%s"),
                        tmk_rank_list_text(b, tmk_rank_is_in_group, group, list), star);
    else
        tmk_table_cellf(t, _("%" PRIu32 " processes%s"), g->n, star);
}

static bool is_one_host(const struct tmk_imbalance *b, uint32_t group)
{
    const char *host = b->rows[b->groups[group].first].facts.host;
    for (uint32_t i = b->groups[group].first; i < b->n_rows; i++)
        if (b->rows[i].group == group && strcmp(b->rows[i].facts.host, host) != 0)
            return false;
    return true;
}

static void add_group_line(struct tmk_table *t, const struct tmk_imbalance *b, struct tmk_run *run,
                           uint32_t group, uint32_t chosen)
{
    char device[24], time[TMK_AMOUNT_BYTES];
    const struct tmk_rank_facts *f = &b->rows[highest_of_group(b, group)].facts;
    add_group_label(t, b, run, group, b->rows[chosen].group == group);
    tmk_table_cell(t, !is_one_host(b, group) ? _("several") : f->host[0] ? f->host : NULL);
    tmk_table_size(t, f->has_peak ? f->peak_bytes : TMK_BYTES_UNKNOWN);
    tmk_table_cell(t, f->has_peak ? tmk_device_name(f->device, device) : NULL);
    tmk_table_cell(t, f->has_peak ? tmk_time_text(f->peak_ns, time) : NULL);
    tmk_table_count(t, f->n_allocs);
    tmk_table_size(t, f->end_bytes);
}

static void write_groups(const struct tmk_imbalance *b, struct tmk_run *run, uint32_t chosen,
                         struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {
        {"process", TMK_LEFT, TMK_SHRINK},    {"host", TMK_LEFT, TMK_SHRINK},
        {"peak", TMK_RIGHT, TMK_FIXED},       {"on", TMK_LEFT, TMK_FIXED},
        {"after", TMK_RIGHT, TMK_FIXED},      {"allocations", TMK_RIGHT, TMK_FIXED},
        {"at the end", TMK_RIGHT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    uint32_t n_lines = b->n_groups > MOST_LINES ? MOST_LINES : b->n_groups;
    for (uint32_t i = 0; i < n_lines; i++)
        add_group_line(t, b, run, i, chosen);
    tmk_sheet_table(sheet, t);
    if (b->n_groups > n_lines)
        tmk_sheet_text(sheet, "%" PRIu32 " more groups are in --json and in the SQL table ranks.",
                       b->n_groups - n_lines);
    if (b->n_groups < b->n_rows)
        tmk_sheet_text(sheet, "Processes that are alike share a line, which shows the one with "
                              "the largest peak.");
}

/* ---- the verdict ---- */

static void write_ranks_sentence(void *arg, const char *text)
{
    tmk_sheet_text(arg, "%s", text);
}

void tmk_ranks_verdict_text(const struct tmk_imbalance *b, struct tmk_sheet *sheet)
{
    tmk_imbalance_tell(b, write_ranks_sentence, sheet);
}

void tmk_ranks_text(const struct tmk_imbalance *b, struct tmk_run *run, uint32_t chosen,
                    struct tmk_sheet *sheet)
{
    tmk_sheet_heading(sheet, "PROCESSES");
    write_groups(b, run, chosen, sheet);
    tmk_ranks_verdict_text(b, sheet);
}

static void line_ranks(void *arg, const char *text)
{
    tmk_summary_line(arg, "ranks", "%s", text);
}

void tmk_ranks_summary(const struct tmk_imbalance *b, FILE *out)
{
    tmk_imbalance_tell(b, line_ranks, out);
}
