/* SPDX-License-Identifier: MIT */
/* cli/answers/explain_json.c - see explain_text.h: for machines. Unknown is null. */
#include "cli/answers/explain_text.h"

#include <string.h>

#include "cli/front/target.h"

static void add_bytes(struct tmk_json *j, const char *key, uint64_t bytes)
{
    if (bytes == TMK_SCENE_UNKNOWN)
        tmk_json_null(j, key);
    else
        tmk_json_u64(j, key, bytes);
}

static void add_step(struct tmk_json *j, const char *key, int64_t step)
{
    if (step == TMK_NO_STEP)
        tmk_json_null(j, key);
    else
        tmk_json_i64(j, key, step);
}

static void add_frame(struct tmk_json *j, const char *key, bool is_known, const struct tmk_frame *f)
{
    if (!is_known) {
        tmk_json_null(j, key);
        return;
    }
    tmk_json_object(j, key);
    tmk_json_text(j, "file", f->file);
    tmk_json_u64(j, "line", f->line);
    tmk_json_text(j, "function", f->function);
    tmk_json_end(j);
}

static void add_leak(struct tmk_json *j, const struct tmk_case *c)
{
    const struct tmk_leak *leak = c->inquiry.leak;
    if (!leak) {
        tmk_json_null(j, "leak");
        return;
    }
    tmk_json_object(j, "leak");
    tmk_json_u64(j, "bytes", c->inquiry.leaked_bytes);
    if (leak->first_step != TMK_NO_STEP)
        tmk_json_fixed(j, "bytes_per_step", leak->bytes_per_step, 1);
    else
        tmk_json_null(j, "bytes_per_step");
    add_step(j, "first_step", leak->first_step);
    add_frame(j, "site", leak->has_site, &leak->site);
    tmk_json_text(j, "keeper", tmk_keeper_name(leak->keeper));
    tmk_json_end(j);
}

static void add_steps(struct tmk_json *j, const struct tmk_inquiry *q)
{
    bool has_steps = q->n_steps > 0;
    tmk_json_object(j, "steps_before");
    tmk_json_u64(j, "n", q->n_steps);
    add_bytes(j, "median_peak", has_steps ? q->median_bytes : TMK_SCENE_UNKNOWN);
    add_bytes(j, "deviation", has_steps ? q->deviation_bytes : TMK_SCENE_UNKNOWN);
    add_bytes(j, "largest_peak", has_steps ? q->most_bytes : TMK_SCENE_UNKNOWN);
    add_bytes(j, "growth_per_step", has_steps ? q->growth_bytes : TMK_SCENE_UNKNOWN);
    tmk_json_end(j);
}

static void add_gaps(struct tmk_json *j, const struct tmk_inquiry *q)
{
    add_bytes(j, "largest_free", q->has_gaps ? q->largest_bytes : TMK_SCENE_UNKNOWN);
    add_bytes(j, "pinned", q->has_gaps ? q->pinned_bytes : TMK_SCENE_UNKNOWN);
    add_frame(j, "pinned_by", q->has_pin, &q->pin);
}

static void add_replays(struct tmk_json *j, const struct tmk_inquiry *q)
{
    tmk_json_array(j, "replays");
    for (uint32_t i = 0; i < q->n_trials; i++) {
        tmk_json_object(j, NULL);
        tmk_json_text(j, "conf", q->trials[i].conf);
        tmk_json_bool(j, "runs_out", q->trials[i].runs_out);
        tmk_json_bool(j, "runs_out_before", q->trials[i].runs_out_before);
        add_bytes(j, "needs", q->trials[i].needs_bytes);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void add_categories(struct tmk_json *j, const struct tmk_scene *s)
{
    if (!s->has_blocks) {
        tmk_json_null(j, "categories");
        return;
    }
    tmk_json_object(j, "categories");
    for (uint8_t i = 0; i < TMK_SCENE_CATEGORIES; i++)
        if (s->category_bytes[i] > 0)
            tmk_json_u64(j, tmk_category_name(i), s->category_bytes[i]);
    tmk_json_end(j);
}

static void add_causes(struct tmk_json *j, const struct tmk_oom_verdict *v)
{
    tmk_json_array(j, "causes");
    for (int i = 0; i < TMK_N_CAUSES; i++) {
        tmk_json_object(j, NULL);
        tmk_json_text(j, "cause", tmk_cause_name(v->rows[i].cause));
        tmk_json_u64(j, "bytes", v->rows[i].bytes);
        tmk_json_bool(j, "counts", v->rows[i].counts);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void add_evidence(struct tmk_json *j, const struct tmk_case *c)
{
    const struct tmk_scene *s = &c->scene;
    const struct tmk_oom_verdict *v = &c->verdict;
    tmk_json_object(j, "evidence");
    tmk_json_u64(j, "allocated", s->allocated_bytes);
    add_bytes(j, "reserved", s->reserved_bytes);
    add_bytes(j, "free", v->free_bytes);
    tmk_json_u64(j, "limit", v->limit_bytes);
    tmk_json_u64(j, "limit_below", v->limit_below_bytes);
    tmk_json_text(j, "limit_is", tmk_limit_name(v->limit));
    tmk_json_u64(j, "missing", v->missing_bytes);
    tmk_json_u64(j, "need", c->need.bytes);
    tmk_json_bool(j, "need_is_estimate", c->need.is_estimate);
    add_bytes(j, "card", s->card_total_bytes);
    add_bytes(j, "card_used", s->card_used_bytes);
    add_bytes(j, "card_free", s->card_free_bytes);
    add_bytes(j, "others", s->others_bytes);
    add_bytes(j, "others_at_start", s->others_first_bytes);
    add_gaps(j, &c->inquiry);
    add_leak(j, c);
    add_steps(j, &c->inquiry);
    add_categories(j, s);
    tmk_json_text(j, "alloc_conf", c->inquiry.alloc_conf);
    add_replays(j, &c->inquiry);
    add_causes(j, v);
    tmk_json_end(j);
}

static void add_fix(struct tmk_json *j, const struct tmk_fix *fix)
{
    tmk_json_object(j, NULL);
    tmk_json_text(j, "text", fix->text);
    add_bytes(j, "saves_bytes", fix->saves_bytes);
    tmk_json_text(j, "proof", tmk_proof_name(fix->proof));
    tmk_json_text(j, "kind", fix->kind);
    tmk_json_text(j, "conf", fix->conf);
    tmk_json_bool(j, "avoids", fix->avoids);
    if (fix->factor > 0)
        tmk_json_fixed(j, "factor", fix->factor, 2);
    else
        tmk_json_null(j, "factor");
    tmk_json_end(j);
}

void tmk_explain_json(const struct tmk_case *c, struct tmk_json *j)
{
    const struct tmk_scene *s = &c->scene;
    char device[24];
    tmk_json_object(j, NULL);
    tmk_json_u64(j, "time_ns", s->time_ns + c->p->offset_ns);
    add_step(j, "step", s->step);
    tmk_json_u64(j, "request_bytes", s->request_bytes);
    tmk_json_text(j, "cause", tmk_cause_name(c->verdict.rows[0].cause));
    tmk_json_text(j, "device", tmk_device_name(s->device, device));
    if (c->p->rank >= 0)
        tmk_json_i64(j, "rank", c->p->rank);
    else
        tmk_json_null(j, "rank");
    tmk_process_json_pid(j, c->p);
    tmk_json_text(j, "source", s->is_of_driver ? "driver" : "allocator");
    tmk_json_text(j, "stage", s->stage);
    tmk_json_text(j, "module", s->module);
    add_frame(j, "site", s->has_site, &s->site);
    add_evidence(j, c);
    tmk_json_array(j, "fixes");
    for (uint32_t i = 0; i < c->n_fixes; i++)
        add_fix(j, &c->fixes[i]);
    tmk_json_end(j);
    tmk_json_end(j);
}
