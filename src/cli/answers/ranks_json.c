/* SPDX-License-Identifier: MIT */
/* cli/answers/ranks_json.c - see ranks_answer.h: for machines. The notes of cmd_report.c list the
 * keys. */
#include <math.h>

#include "cli/answers/answer_json.h"
#include "cli/answers/ranks_answer.h"
#include "kit/tree.h"
#include "model/run.h"
#include "model/run_clock.h"
#include "passes/imbalance/imbalance.h"
#include "passes/imbalance/rank_facts.h"

static void add_rank_of_row(struct tmk_tree *t, const struct tmk_imbalance *b, struct tmk_run *run,
                            uint32_t row)
{
    tmk_answer_put_rank(t, tmk_run_process(run, row));
    tmk_tree_label(t, "host", b->rows[row].facts.host);
    tmk_answer_put_pid(t, tmk_run_process(run, row));
}

static void add_highest(struct tmk_tree *t, const struct tmk_imbalance *b, struct tmk_run *run)
{
    if (!tmk_tree_object_if(t, "highest", b->is_judged))
        return;
    const struct tmk_rank_facts *f = &b->rows[b->highest].facts;
    add_rank_of_row(t, b, run, b->highest);
    tmk_tree_u64(t, "peak", f->peak_bytes);
    tmk_answer_put_device(t, f->device);
    tmk_tree_u64(t, "time_ns", f->peak_ns);
    tmk_answer_put_step(t, "step", f->peak_step);
    tmk_tree_fixed(t, "times_median",
                   b->median_bytes > 0 ? (double)f->peak_bytes / b->median_bytes : NAN, 3);
    tmk_tree_number(t, "compared_with", b->rows[b->typical].facts.rank);
    tmk_tree_u64(t, "more_bytes", f->peak_bytes - b->rows[b->typical].facts.peak_bytes);
    tmk_tree_end(t);
}

static void add_rank_part(struct tmk_tree *t, const char *key,
                          const struct tmk_imbalance_part *part)
{
    if (!tmk_tree_object_if(t, key, part->key != NULL))
        return;
    tmk_tree_text(t, "key", part->key);
    tmk_tree_u64(t, "more_bytes", part->more_bytes);
    tmk_tree_end(t);
}

static void add_rank_why(struct tmk_tree *t, const struct tmk_imbalance_why *why)
{
    if (!tmk_tree_object_if(t, "why", why->is_known))
        return;
    add_rank_part(t, "category", &why->category);
    add_rank_part(t, "module", &why->module);
    add_rank_part(t, "stage", &why->stage);
    tmk_tree_fixed(t, "batch_factor", why->batch_factor > 0 ? why->batch_factor : NAN, 2);
    tmk_tree_end(t);
}

static void add_first_oom(struct tmk_tree *t, const struct tmk_imbalance *b, struct tmk_run *run)
{
    char list[TMK_RANK_LIST_BYTES];
    if (!tmk_tree_object_if(t, "first_oom", b->first_oom != TMK_RANK_NONE))
        return;
    add_rank_of_row(t, b, run, b->first_oom);
    tmk_tree_u64(t, "time_ns", b->rows[b->first_oom].facts.oom_ns);
    tmk_answer_put_step(t, "step", b->rows[b->first_oom].facts.oom_step);
    tmk_tree_label(t, "only_died_of_it", tmk_rank_list_text(b, tmk_rank_died_of_it, 0, list));
    tmk_tree_end(t);
}

static void add_first_ended(struct tmk_tree *t, const struct tmk_imbalance *b, struct tmk_run *run)
{
    char list[TMK_RANK_LIST_BYTES];
    if (!tmk_tree_object_if(t, "ended_early", b->first_ended != TMK_RANK_NONE))
        return;
    const struct tmk_rank_facts *f = &b->rows[b->first_ended].facts;
    add_rank_of_row(t, b, run, b->first_ended);
    tmk_tree_u64(t, "time_ns", f->end_ns);
    tmk_answer_put_step(t, "step", f->last_step);
    tmk_tree_text(t, "end", tmk_rank_end_name(f->end));
    tmk_tree_text(t, "all", tmk_rank_list_text(b, tmk_rank_ended_early, 0, list));
    tmk_tree_end(t);
}

static void add_next_oom(struct tmk_tree *t, const struct tmk_imbalance *b, struct tmk_run *run)
{
    if (!tmk_tree_object_if(t, "next_oom", b->next_oom != TMK_RANK_NONE))
        return;
    add_rank_of_row(t, b, run, b->next_oom);
    tmk_answer_put_forecast(t, "forecast", &b->rows[b->next_oom].facts.forecast);
    tmk_tree_end(t);
}

static void add_rank_clocks(struct tmk_tree *t, const struct tmk_clock_match *c)
{
    bool is_measured = c->n_hosts > 1 && c->n_measured == c->n_hosts;
    tmk_tree_object(t, "clocks");
    tmk_tree_u64(t, "hosts", c->n_hosts);
    tmk_tree_u64_if(t, "within_ns", is_measured || c->n_hosts == 1, c->within_ns);
    tmk_tree_u64(t, "moved_ns", c->moved_ns);
    tmk_tree_u64_if(t, "steps", is_measured, c->n_steps);
    tmk_tree_end(t);
}

static void add_rank_groups(struct tmk_tree *t, const struct tmk_imbalance *b)
{
    char list[TMK_RANK_LIST_BYTES];
    tmk_tree_list(t, "groups");
    for (uint32_t i = 0; i < b->n_groups; i++) {
        const struct tmk_rank_group *g = &b->groups[i];
        const struct tmk_rank_row *first = &b->rows[g->first];
        tmk_tree_object(t, NULL);
        tmk_tree_label(t, "ranks", tmk_rank_list_text(b, tmk_rank_is_in_group, i, list));
        tmk_tree_u64(t, "processes", g->n);
        tmk_tree_u64(t, "first", g->first);
        tmk_tree_u64_if(t, "least_peak", first->facts.has_peak, g->least_bytes);
        tmk_tree_u64_if(t, "most_peak", first->facts.has_peak, g->most_bytes);
        tmk_tree_text(t, "end", tmk_rank_end_name(first->facts.end));
        tmk_tree_bool(t, "ran_out", first->facts.has_oom);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_ranks_sentence(void *arg, const char *text)
{
    tmk_tree_text(arg, NULL, text);
}

void tmk_ranks_json(const struct tmk_imbalance *b, struct tmk_run *run, struct tmk_tree *t)
{
    char list[TMK_RANK_LIST_BYTES];
    if (!tmk_tree_object_if(t, "ranks", b && b->n_ranks > 0))
        return;
    tmk_tree_text(t, "verdict",
                  !b->is_judged      ? NULL
                  : b->is_imbalanced ? "imbalanced"
                                     : "balanced");
    tmk_tree_u64(t, "n", b->n_ranks);
    tmk_tree_number(t, "world_size", b->world_size);
    tmk_tree_label(t, "missing", tmk_rank_missing_text(b, list));
    tmk_tree_u64_if(t, "median_peak", b->is_judged, (uint64_t)(b->median_bytes + 0.5));
    add_highest(t, b, run);
    add_rank_why(t, &b->why);
    add_first_oom(t, b, run);
    add_first_ended(t, b, run);
    add_next_oom(t, b, run);
    add_rank_clocks(t, &b->clock);
    add_rank_groups(t, b);
    tmk_tree_list(t, "says");
    tmk_imbalance_tell(b, add_ranks_sentence, t);
    tmk_tree_end(t);
    tmk_tree_end(t);
}
