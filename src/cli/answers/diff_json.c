/* SPDX-License-Identifier: MIT */
/* cli/answers/diff_json.c - see diff_answer.h: for programs. */
#include <math.h>
#include <stdlib.h>

#include "cli/answers/diff_answer.h"
#include "cli/front/target.h"
#include "kit/json.h"

enum { LISTED_STEPS = 40 };

static void add_i64_or_null(struct tmk_json *j, const char *key, bool known, int64_t value)
{
    if (known)
        tmk_json_i64(j, key, value);
    else
        tmk_json_null(j, key);
}

static void add_u64_or_null(struct tmk_json *j, const char *key, bool known, uint64_t value)
{
    if (known)
        tmk_json_u64(j, key, value);
    else
        tmk_json_null(j, key);
}

/* "a", "b" and "change" of the object that is open. */
static void add_both(struct tmk_json *j, const bool known[2], const uint64_t bytes[2])
{
    add_u64_or_null(j, "a", known[0], bytes[0]);
    add_u64_or_null(j, "b", known[1], bytes[1]);
    add_i64_or_null(j, "change", known[0] && known[1], tmk_diff_change(bytes[0], bytes[1]));
}

static void add_two(struct tmk_json *j, const char *key, const struct tmk_two *two)
{
    tmk_json_object(j, key);
    add_both(j, two->known, two->bytes);
    tmk_json_end(j);
}

static const bool both_known[2] = {true, true};

static void add_frames(struct tmk_json *j, const char *key, const struct tmk_process *p,
                       uint32_t stack)
{
    struct tmk_stack frames;
    char text[TMK_FRAME_TEXT_BYTES];
    if (stack == 0 || !tmk_reader_stack(p->reader, stack, &frames)) {
        tmk_json_null(j, key);
        return;
    }
    tmk_json_array(j, key);
    for (uint32_t i = 0; i < frames.n_frames; i++) {
        struct tmk_frame f;
        bool known = tmk_process_frame(p, frames.frames[i], &f);
        tmk_json_text(j, NULL, tmk_frame_text(known ? &f : NULL, false, text));
    }
    tmk_json_end(j);
}

static void add_rows(struct tmk_json *j, const struct tmk_comparison *c)
{
    tmk_json_array(j, "by");
    for (uint64_t i = 0; i < tmk_diff_n_rows(c->diff); i++) {
        const struct tmk_diff_row *row = tmk_diff_row(c->diff, i);
        tmk_json_object(j, NULL);
        tmk_json_text(j, "key", row->key);
        add_both(j, both_known, row->bytes);
        tmk_json_u64(j, "a_blocks", row->n_blocks[0]);
        tmk_json_u64(j, "b_blocks", row->n_blocks[1]);
        if (c->by == TMK_BY_STACK) {
            add_frames(j, "a_stack", c->shown->looks[0].p, row->stack[0]);
            add_frames(j, "b_stack", c->shown->looks[1].p, row->stack[1]);
        }
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void add_gates(struct tmk_json *j, const struct tmk_comparison *c)
{
    tmk_json_array(j, "gates");
    for (unsigned i = 0; i < c->n_verdicts; i++) {
        const struct tmk_gate_verdict *v = &c->verdicts[i];
        char *text = tmk_verdict_text(v);
        tmk_json_object(j, NULL);
        tmk_json_text(j, "expr", v->gate.text);
        tmk_json_bool(j, "passed", v->passed);
        add_u64_or_null(j, "a", v->measure.known[0], v->measure.bytes[0]);
        add_u64_or_null(j, "b", v->measure.known[1], v->measure.bytes[1]);
        add_i64_or_null(j, "rank", v->of->rank >= 0, v->of->rank);
        tmk_json_text(j, "text", text);
        tmk_json_end(j);
        free(text);
    }
    tmk_json_end(j);
}

static void add_split(struct tmk_json *j, const char *key, const struct tmk_diff_split *s)
{
    tmk_json_object(j, key);
    tmk_json_i64(j, "resized", s->resized);
    tmk_json_i64(j, "recounted", s->recounted);
    tmk_json_i64(j, "added", s->added);
    tmk_json_i64(j, "gone", s->gone);
    tmk_json_end(j);
}

static void add_cause(struct tmk_json *j, const struct tmk_comparison *x,
                      const struct tmk_diff_cause *c)
{
    struct tmk_frame f;
    bool has_site = tmk_stack_site(x->shown->looks[c->stack_side].p, c->stack, &f);
    tmk_json_object(j, NULL);
    tmk_json_text(j, "category", tmk_category_name(c->category));
    tmk_json_text(j, "module", c->owner);
    tmk_json_text(j, "file", has_site ? f.file : NULL);
    add_u64_or_null(j, "line", has_site && f.line, has_site ? f.line : 0);
    tmk_json_text(j, "function", has_site ? f.function : NULL);
    add_both(j, both_known, c->bytes);
    tmk_json_u64(j, "a_blocks", c->n_blocks[0]);
    tmk_json_u64(j, "b_blocks", c->n_blocks[1]);
    add_split(j, "split", &c->split);
    tmk_json_double(j, "least_factor", c->n_resized ? c->least_factor : NAN);
    tmk_json_double(j, "most_factor", c->n_resized ? c->most_factor : NAN);
    tmk_json_bool(j, "attributed", c->is_attributed);
    tmk_json_end(j);
}

static bool has_changed(const struct tmk_diff_cause *c)
{
    const struct tmk_diff_split *s = &c->split;
    return s->resized || s->recounted || s->added || s->gone;
}

static void add_causes(struct tmk_json *j, const struct tmk_comparison *c)
{
    struct tmk_diff_split split = tmk_diff_split(c->diff);
    tmk_json_double(j, "attributed", tmk_comparison_attributed(c));
    add_split(j, "split", &split);
    tmk_json_i64(j, "unexplained", tmk_comparison_unexplained(c));
    tmk_json_array(j, "causes");
    for (uint64_t i = 0; i < tmk_diff_n_causes(c->diff); i++)
        if (has_changed(tmk_diff_cause(c->diff, i)))
            add_cause(j, c, tmk_diff_cause(c->diff, i));
    tmk_json_end(j);
    tmk_json_bool(j, "names_unwrapped", tmk_diff_unwraps(c->diff));
}

static void add_steps(struct tmk_json *j, const struct tmk_comparison *c)
{
    uint64_t picked[LISTED_STEPS];
    uint64_t n = tmk_diff_steps_pick(c->steps, LISTED_STEPS, picked);
    struct tmk_two settled = {0};
    int64_t apart = 0;
    bool has_apart = tmk_diff_steps_apart(c->steps, &apart);
    for (unsigned side = 0; side < 2; side++)
        settled.known[side] = tmk_diff_steps_settled(c->steps, side, &settled.bytes[side]);
    tmk_json_object(j, "steps");
    add_two(j, "median_peak", &settled);
    add_i64_or_null(j, "part_at", has_apart, apart);
    tmk_json_array(j, "rows");
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_diff_step *row = tmk_diff_steps_get(c->steps, picked[i]);
        tmk_json_object(j, NULL);
        tmk_json_i64(j, "step", row->step);
        add_both(j, row->has, row->peak_bytes);
        tmk_json_end(j);
    }
    tmk_json_end(j);
    tmk_json_end(j);
}

static void add_ranks(struct tmk_json *j, const struct tmk_comparison *c)
{
    tmk_json_array(j, "ranks");
    for (uint32_t i = 0; i < c->n_pairs; i++) {
        const struct tmk_pair *pair = &c->pairs[i];
        tmk_json_object(j, NULL);
        add_i64_or_null(j, "rank", pair->looks[1].p->rank >= 0, pair->looks[1].p->rank);
        add_both(j, pair->known, pair->bytes);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void add_side(struct tmk_json *j, const char *key, const struct tmk_comparison *c,
                     unsigned side)
{
    const struct tmk_look *l = &c->shown->looks[side];
    char device[24];
    tmk_json_object(j, key);
    tmk_json_text(j, "run", c->paths[side]);
    add_i64_or_null(j, "rank", l->p->rank >= 0, l->p->rank);
    tmk_process_json_pid(j, l->p);
    tmk_json_text(j, "device", tmk_device_name(tmk_look_device(l), device));
    add_i64_or_null(j, "step", tmk_look_step(l) != TMK_NO_STEP, tmk_look_step(l));
    tmk_json_u64(j, "time_ns", tmk_look_ns(l));
    tmk_json_bool(j, "detail_lost", l->detail_lost);
    tmk_json_end(j);
}

void tmk_comparison_json(const struct tmk_comparison *c)
{
    struct tmk_json j;
    struct tmk_two peak = {.known = {true, true}};
    struct tmk_two reserved = tmk_comparison_reserved(c), most = tmk_comparison_most_reserved(c);
    for (unsigned side = 0; side < 2; side++)
        peak.bytes[side] = tmk_look_bytes(&c->shown->looks[side]);
    tmk_json_init(&j, stdout, 2);
    tmk_json_object(&j, NULL);
    add_two(&j, "peak", &peak);
    add_rows(&j, c);
    add_gates(&j, c);
    add_two(&j, "reserved", &reserved);
    add_two(&j, "most_reserved", &most);
    add_causes(&j, c);
    add_steps(&j, c);
    add_ranks(&j, c);
    add_side(&j, "a", c, 0);
    add_side(&j, "b", c, 1);
    tmk_json_end(&j);
}
