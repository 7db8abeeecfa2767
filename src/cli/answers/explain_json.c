/* SPDX-License-Identifier: MIT */
/* cli/answers/explain_json.c - see explain_answer.h: for machines. */
#include "cli/answers/explain_answer.h"
#include "cli/answers/ranks_answer.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/leak/leak.h"
#include "passes/oom/explain.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_fixes.h"
#include "passes/oom/oom_scene.h"
#include "trace/defs.h"
#include "trace/layout.h"

#include <math.h>

#include "cli/answers/answer_json.h"

static void add_explain_frame(struct tmk_tree *t, const char *key, bool is_known,
                              const struct tmk_frame *f)
{
    if (!tmk_tree_object_if(t, key, is_known))
        return;
    tmk_tree_text(t, "file", f->file);
    tmk_tree_u64(t, "line", f->line);
    tmk_tree_text(t, "function", f->function);
    tmk_tree_end(t);
}

static void add_explain_leak(struct tmk_tree *t, const struct tmk_case *c)
{
    const struct tmk_leak *leak = c->inquiry.leak;
    if (!tmk_tree_object_if(t, "leak", leak != NULL))
        return;
    tmk_tree_u64(t, "bytes", c->inquiry.leaked_bytes);
    bool has_steps = leak->first_step != TMK_NO_STEP;
    tmk_tree_fixed(t, "bytes_per_step", has_steps ? leak->bytes_per_step : NAN, 1);
    tmk_answer_put_step(t, "first_step", leak->first_step);
    add_explain_frame(t, "site", leak->has_site, &leak->site);
    tmk_tree_text(t, "keeper", tmk_keeper_name(leak->keeper));
    tmk_tree_end(t);
}

static void add_steps_before(struct tmk_tree *t, const struct tmk_inquiry *q)
{
    bool has_steps = q->n_steps > 0;
    tmk_tree_object(t, "steps_before");
    tmk_tree_u64(t, "n", q->n_steps);
    tmk_tree_bytes(t, "median_peak", has_steps ? q->median_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_bytes(t, "deviation", has_steps ? q->deviation_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_bytes(t, "largest_peak", has_steps ? q->most_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_bytes(t, "growth_per_step", has_steps ? q->growth_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_end(t);
}

static void add_gaps(struct tmk_tree *t, const struct tmk_inquiry *q)
{
    tmk_tree_bytes(t, "largest_free", q->has_gaps ? q->largest_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_bytes(t, "pinned", q->has_gaps ? q->pinned_bytes : TMK_BYTES_UNKNOWN);
    add_explain_frame(t, "pinned_by", q->has_pin, &q->pin);
}

static void add_replays(struct tmk_tree *t, const struct tmk_inquiry *q)
{
    tmk_tree_list(t, "replays");
    for (uint32_t i = 0; i < q->n_trials; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "conf", q->trials[i].conf);
        tmk_tree_bool(t, "runs_out", q->trials[i].runs_out);
        tmk_tree_bool(t, "runs_out_before", q->trials[i].runs_out_before);
        tmk_tree_bytes(t, "needs", q->trials[i].needs_bytes);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_explain_categories(struct tmk_tree *t, const struct tmk_scene *s)
{
    if (!tmk_tree_object_if(t, "categories", s->has_blocks))
        return;
    for (uint8_t i = 0; i < TMK_SCENE_CATEGORIES; i++)
        if (s->category_bytes[i] > 0)
            tmk_tree_u64(t, tmk_category_name(i), s->category_bytes[i]);
    tmk_tree_end(t);
}

static void add_explain_causes(struct tmk_tree *t, const struct tmk_oom_verdict *v)
{
    tmk_tree_list(t, "causes");
    for (int i = 0; i < TMK_N_CAUSES; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "cause", tmk_cause_name(v->rows[i].cause));
        tmk_tree_u64(t, "bytes", v->rows[i].bytes);
        tmk_tree_bool(t, "counts", v->rows[i].counts);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_evidence(struct tmk_tree *t, const struct tmk_case *c)
{
    const struct tmk_scene *s = &c->scene;
    const struct tmk_oom_verdict *v = &c->verdict;
    tmk_tree_object(t, "evidence");
    tmk_tree_u64(t, "allocated", s->allocated_bytes);
    tmk_tree_bytes(t, "reserved", s->reserved_bytes);
    tmk_tree_bytes(t, "free", v->free_bytes);
    tmk_tree_u64_if(t, "limit", v->limit_bytes > 0, v->limit_bytes);
    tmk_tree_u64(t, "limit_below", v->limit_below_bytes);
    tmk_tree_text(t, "limit_is", tmk_limit_name(v->limit));
    tmk_tree_u64(t, "missing", v->missing_bytes);
    tmk_tree_u64(t, "need", c->need.bytes);
    tmk_tree_bool(t, "need_is_estimate", c->need.is_estimate);
    tmk_tree_bool(t, "whole_step_known", c->need.is_whole_step_known);
    tmk_tree_bool(t, "keeps_graphs", tmk_scene_keeps_graphs(s));
    tmk_tree_bytes(t, "card", s->card_total_bytes);
    tmk_tree_bytes(t, "card_used", s->card_used_bytes);
    tmk_tree_bytes(t, "card_free", s->card_free_bytes);
    tmk_tree_bytes(t, "others", s->others_bytes);
    tmk_tree_bytes(t, "others_at_start", s->others_first_bytes);
    add_gaps(t, &c->inquiry);
    add_explain_leak(t, c);
    add_steps_before(t, &c->inquiry);
    add_explain_categories(t, s);
    tmk_tree_text(t, "alloc_conf", c->inquiry.alloc_conf);
    add_replays(t, &c->inquiry);
    add_explain_causes(t, v);
    tmk_tree_end(t);
}

static void add_explain_fix(struct tmk_tree *t, const struct tmk_fix *fix)
{
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "text", fix->text);
    tmk_tree_bytes(t, "saves_bytes", fix->saves_bytes);
    tmk_tree_text(t, "proof", tmk_proof_name(fix->proof));
    tmk_tree_text(t, "kind", fix->kind);
    tmk_tree_text(t, "conf", fix->conf);
    tmk_tree_bool(t, "avoids", fix->avoids);
    tmk_tree_bool(t, "enough", fix->is_enough);
    tmk_tree_fixed(t, "factor", fix->factor > 0 ? fix->factor : NAN, 2);
    tmk_tree_end(t);
}

static void add_explain_case(struct tmk_tree *t, const struct tmk_case *c)
{
    const struct tmk_scene *s = &c->scene;
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "time_ns", s->time_ns + c->p->offset_ns);
    tmk_answer_put_step(t, "step", s->step);
    tmk_tree_u64(t, "request_bytes", s->request_bytes);
    tmk_tree_text(t, "cause", tmk_cause_name(c->verdict.rows[0].cause));
    tmk_answer_put_device(t, s->device);
    tmk_answer_put_rank(t, c->p);
    tmk_answer_put_pid(t, c->p);
    tmk_tree_text(t, "source", s->is_of_driver ? "driver" : "allocator");
    tmk_tree_text(t, "stage", s->stage);
    tmk_tree_text(t, "module", s->module);
    add_explain_frame(t, "site", s->has_site, &s->site);
    add_evidence(t, c);
    tmk_tree_list(t, "fixes");
    for (uint32_t i = 0; i < c->n_fixes; i++)
        add_explain_fix(t, &c->fixes[i]);
    tmk_tree_end(t);
    tmk_tree_end(t);
}

static void add_cases(struct tmk_tree *t, const struct tmk_explain_answer *a, const char *key,
                      bool near)
{
    tmk_tree_list(t, key);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint64_t k = 0; k < tmk_explanation_n(a->processes[i].explanation); k++) {
            const struct tmk_case *c = tmk_explanation_get(a->processes[i].explanation, k);
            if ((c->scene.kind != TMK_SCENE_OOM) == near)
                add_explain_case(t, c);
        }
    tmk_tree_end(t);
}

void tmk_explain_json(const struct tmk_explain_answer *a, struct tmk_tree *t, const char *key)
{
    tmk_tree_object(t, key);
    add_cases(t, a, "ooms", false);
    add_cases(t, a, "near_misses", true);
    tmk_tree_u64(t, "n_ooms", tmk_explain_n_ooms(a));
    if (!key)
        tmk_ranks_json(a->ranks, a->run, t);
    tmk_tree_end(t);
}
