/* SPDX-License-Identifier: MIT */
/* cli/answers/diff_json.c - see diff_answer.h: for programs. */
#include <math.h>
#include <stdlib.h>

#include "cli/answers/answer_json.h"
#include "cli/answers/diff_answer.h"
#include "cli/answers/moment_answer.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/diff/diff.h"
#include "passes/diff/diff_steps.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "trace/defs.h"

enum { LISTED_STEPS = 40 };

/* Write "a", "b" and "change" into the open object. */
static void add_both(struct tmk_tree *t, const bool known[2], const uint64_t bytes[2])
{
    tmk_tree_u64_if(t, "a", known[0], bytes[0]);
    tmk_tree_u64_if(t, "b", known[1], bytes[1]);
    tmk_tree_i64_if(t, "change", known[0] && known[1], tmk_diff_change(bytes[0], bytes[1]));
}

static void add_two(struct tmk_tree *t, const char *key, const struct tmk_two *two)
{
    tmk_tree_object(t, key);
    add_both(t, two->known, two->bytes);
    tmk_tree_end(t);
}

static const bool both_known[2] = {true, true};

static void add_diff_rows(struct tmk_tree *t, const struct tmk_diff_answer *c)
{
    tmk_tree_list(t, "by");
    for (uint64_t i = 0; i < tmk_diff_n_rows(c->diff); i++) {
        const struct tmk_diff_row *row = tmk_diff_row(c->diff, i);
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "key", row->key);
        add_both(t, both_known, row->bytes);
        tmk_tree_u64(t, "a_blocks", row->n_blocks[0]);
        tmk_tree_u64(t, "b_blocks", row->n_blocks[1]);
        if (c->by == TMK_BY_STACK) {
            tmk_answer_put_stack_if(t, "a_stack", c->shown->sides[0].p, row->stack[0]);
            tmk_answer_put_stack_if(t, "b_stack", c->shown->sides[1].p, row->stack[1]);
        }
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_gates(struct tmk_tree *t, const struct tmk_diff_answer *c)
{
    tmk_tree_list(t, "gates");
    for (unsigned i = 0; i < c->n_verdicts; i++) {
        const struct tmk_gate_verdict *v = &c->verdicts[i];
        char *text = tmk_verdict_text(v);
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "expr", v->gate.text);
        tmk_tree_bool(t, "passed", v->passed);
        tmk_tree_u64_if(t, "a", v->measure.known[0], v->measure.bytes[0]);
        tmk_tree_u64_if(t, "b", v->measure.known[1], v->measure.bytes[1]);
        tmk_tree_number(t, "rank", v->of->rank);
        tmk_tree_text(t, "text", text);
        tmk_tree_end(t);
        free(text);
    }
    tmk_tree_end(t);
}

static void add_diff_split(struct tmk_tree *t, const char *key, const struct tmk_diff_split *s)
{
    tmk_tree_object(t, key);
    tmk_tree_i64(t, "resized", s->resized);
    tmk_tree_i64(t, "recounted", s->recounted);
    tmk_tree_i64(t, "added", s->added);
    tmk_tree_i64(t, "gone", s->gone);
    tmk_tree_end(t);
}

static void add_cause(struct tmk_tree *t, const struct tmk_diff_answer *x,
                      const struct tmk_diff_cause *c)
{
    struct tmk_frame f;
    bool has_site = tmk_stack_site(x->shown->sides[c->stack_side].p, c->stack, &f);
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "category", tmk_category_name(c->category));
    tmk_tree_text(t, "module", c->owner);
    tmk_answer_put_site(t, has_site, &f);
    add_both(t, both_known, c->bytes);
    tmk_tree_u64(t, "a_blocks", c->n_blocks[0]);
    tmk_tree_u64(t, "b_blocks", c->n_blocks[1]);
    add_diff_split(t, "split", &c->split);
    tmk_tree_double(t, "least_factor", c->n_resized ? c->least_factor : NAN);
    tmk_tree_double(t, "most_factor", c->n_resized ? c->most_factor : NAN);
    tmk_tree_bool(t, "attributed", c->is_attributed);
    tmk_tree_end(t);
}

static bool has_cause_changed(const struct tmk_diff_cause *c)
{
    const struct tmk_diff_split *s = &c->split;
    return s->resized || s->recounted || s->added || s->gone;
}

static void add_diff_causes(struct tmk_tree *t, const struct tmk_diff_answer *c)
{
    struct tmk_diff_split split = tmk_diff_split(c->diff);
    tmk_tree_double(t, "attributed", tmk_diff_answer_attributed(c));
    add_diff_split(t, "split", &split);
    tmk_tree_i64(t, "unexplained", tmk_diff_answer_unexplained(c));
    tmk_tree_list(t, "causes");
    for (uint64_t i = 0; i < tmk_diff_n_causes(c->diff); i++)
        if (has_cause_changed(tmk_diff_cause(c->diff, i)))
            add_cause(t, c, tmk_diff_cause(c->diff, i));
    tmk_tree_end(t);
    tmk_tree_bool(t, "names_unwrapped", tmk_diff_unwraps(c->diff));
}

static void add_diff_steps(struct tmk_tree *t, const struct tmk_diff_answer *c)
{
    uint64_t picked[LISTED_STEPS];
    uint64_t n = tmk_diff_steps_pick(c->steps, LISTED_STEPS, picked);
    struct tmk_two settled = {0};
    int64_t apart = 0;
    bool has_apart = tmk_diff_steps_apart(c->steps, &apart);
    for (unsigned side = 0; side < 2; side++)
        settled.known[side] = tmk_diff_steps_settled(c->steps, side, &settled.bytes[side]);
    tmk_tree_object(t, "steps");
    add_two(t, "median_peak", &settled);
    tmk_tree_i64_if(t, "part_at", has_apart, apart);
    tmk_tree_list(t, "rows");
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_diff_step *row = tmk_diff_steps_get(c->steps, picked[i]);
        tmk_tree_object(t, NULL);
        tmk_tree_i64(t, "step", row->step);
        add_both(t, row->has, row->peak_bytes);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    tmk_tree_end(t);
}

static void add_ranks(struct tmk_tree *t, const struct tmk_diff_answer *c)
{
    tmk_tree_list(t, "ranks");
    for (uint32_t i = 0; i < c->n_pairs; i++) {
        const struct tmk_diff_pair *pair = &c->pairs[i];
        tmk_tree_object(t, NULL);
        tmk_tree_number(t, "rank", pair->sides[1].p->rank);
        add_both(t, pair->known, pair->bytes);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_diff_side(struct tmk_tree *t, const char *key, const struct tmk_diff_answer *c,
                          unsigned side)
{
    const struct tmk_moment_answer *l = &c->shown->sides[side];
    tmk_tree_object(t, key);
    tmk_tree_text(t, "run", c->paths[side]);
    tmk_tree_number(t, "rank", l->p->rank);
    tmk_answer_put_pid(t, l->p);
    tmk_answer_put_device(t, tmk_moment_answer_device(l));
    tmk_answer_put_step(t, "step", tmk_moment_answer_step(l));
    const char *stage, *module;
    tmk_peak_place(l->peak, &stage, &module);
    tmk_tree_u64(t, "time_ns", tmk_moment_answer_ns(l));
    tmk_tree_text(t, "stage", l->detail_lost ? NULL : stage);
    tmk_tree_text(t, "module", l->detail_lost ? NULL : module);
    tmk_tree_bool(t, "detail_lost", l->detail_lost);
    tmk_tree_end(t);
}

void tmk_diff_json(const struct tmk_diff_answer *c)
{
    struct tmk_tree t;
    struct tmk_two peak = {.known = {true, true}};
    struct tmk_two reserved = tmk_diff_answer_reserved(c), most = tmk_diff_answer_most_reserved(c);
    for (unsigned side = 0; side < 2; side++)
        peak.bytes[side] = tmk_moment_answer_bytes(&c->shown->sides[side]);
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    add_two(&t, "peak", &peak);
    add_diff_rows(&t, c);
    add_gates(&t, c);
    add_two(&t, "reserved", &reserved);
    add_two(&t, "most_reserved", &most);
    add_diff_causes(&t, c);
    add_diff_steps(&t, c);
    add_ranks(&t, c);
    add_diff_side(&t, "a", c, 0);
    add_diff_side(&t, "b", c, 1);
    tmk_tree_end(&t);
}
