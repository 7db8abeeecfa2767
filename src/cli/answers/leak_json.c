/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_json.c - see leak_answer.h: the leaks of a run, for machines. */
#include <math.h>
#include <stdlib.h>

#include "cli/answers/answer_json.h"
#include "cli/answers/leak_answer.h"
#include "cli/answers/leak_live.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/leak/leak.h"
#include "passes/leak/leaks.h"
#include "trace/defs.h"
#include "trace/layout.h"

struct found {
    const struct tmk_leak_process *item;
    const struct tmk_leak *leak;
};

/* Write the rates per step, which are unknown without steps. */
static void add_per_step(struct tmk_tree *t, bool has_steps, double bytes, double blocks)
{
    tmk_tree_double(t, "bytes_per_step", has_steps ? bytes : NAN);
    tmk_tree_double(t, "blocks_per_step", has_steps ? blocks : NAN);
}

static void add_leak_parts(struct tmk_tree *t, const struct tmk_process *p,
                           const struct tmk_leak *leak)
{
    tmk_tree_list(t, "parts");
    for (uint64_t i = 0; i < leak->n_parts; i++) {
        const struct tmk_leak_part *part = &leak->parts[i];
        struct tmk_frame f;
        char text[TMK_FRAME_TEXT_BYTES];
        bool known = tmk_stack_site(p, part->stack, &f);
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "site", known ? tmk_frame_text(&f, false, text) : NULL);
        tmk_tree_text(t, "category", tmk_category_name(part->category));
        tmk_tree_text(t, "module", part->module);
        tmk_tree_text(t, "stage", part->stage);
        add_per_step(t, leak->first_step != TMK_NO_STEP, part->bytes_per_step,
                     part->blocks_per_step);
        tmk_tree_double(t, "share", part->bytes_per_step / leak->bytes_per_step);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void add_leak_process(struct tmk_tree *t, const struct tmk_process *p,
                             const struct tmk_leak *leak)
{
    tmk_answer_put_device(t, leak->device);
    tmk_answer_put_rank(t, p);
    tmk_answer_put_pid(t, p);
}

static void add_leak_object(struct tmk_tree *t, const struct tmk_leak_process *item,
                            const struct tmk_leak *leak)
{
    double left;
    tmk_tree_object(t, NULL);
    tmk_answer_put_site(t, leak->has_site, &leak->site);
    tmk_answer_put_stack(t, "stack", item->p, leak->stack);
    tmk_tree_text(t, "category", tmk_category_name(leak->category));
    tmk_tree_text(t, "module", leak->module);
    add_per_step(t, leak->first_step != TMK_NO_STEP, leak->bytes_per_step, leak->blocks_per_step);
    tmk_answer_put_step(t, "first_step", leak->first_step);
    tmk_tree_fixed(t, "confidence", leak->confidence, 4);
    add_leak_process(t, item->p, leak);
    tmk_tree_u64(t, "first_ns", leak->first_ns + item->p->offset_ns);
    tmk_tree_u64(t, "growth_bytes", leak->bytes);
    tmk_tree_double(t, "bytes_per_second", leak->bytes_per_second);
    tmk_tree_double(t, "steps_left", tmk_leak_steps_left(item, leak, &left) ? left : NAN);
    tmk_tree_double(t, "seconds_left", tmk_leak_seconds_left(item, leak, &left) ? left : NAN);
    tmk_tree_text(t, "kept_by", tmk_keeper_name(leak->keeper));
    tmk_tree_text(t, "held_by", leak->holder);
    tmk_tree_text(t, "advice", tmk_leak_advice(leak));
    tmk_answer_put_evidence(t, item->p, leak);
    add_leak_parts(t, item->p, leak);
    tmk_tree_end(t);
}

static int by_step(const void *va, const void *vb)
{
    const struct tmk_leak *a = ((const struct found *)va)->leak;
    const struct tmk_leak *b = ((const struct found *)vb)->leak;
    return (a->bytes_per_step < b->bytes_per_step) - (a->bytes_per_step > b->bytes_per_step);
}

static int by_second(const void *va, const void *vb)
{
    const struct tmk_leak *a = ((const struct found *)va)->leak;
    const struct tmk_leak *b = ((const struct found *)vb)->leak;
    return (a->bytes_per_second < b->bytes_per_second) -
           (a->bytes_per_second > b->bytes_per_second);
}

/* Write the leaks of all processes, largest first: per second where one of them has no steps. */
static void add_leak_objects(struct tmk_tree *t, const struct tmk_leak_answer *f)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        n += tmk_leakage_n(f->items[i].leakage);
    struct found *all = tmk_xcalloc(n + 1, sizeof *all);
    n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        for (uint64_t k = 0; k < tmk_leakage_n(f->items[i].leakage); k++) {
            const struct tmk_leak *leak = tmk_leakage_get(f->items[i].leakage, k);
            if (tmk_leak_is_wanted(f, leak))
                all[n++] = (struct found){&f->items[i], leak};
        }
    qsort(all, (size_t)n, sizeof *all, tmk_leak_n_with_steps(f) == f->n ? by_step : by_second);
    tmk_tree_list(t, "leaks");
    for (uint64_t i = 0; i < n; i++)
        add_leak_object(t, all[i].item, all[i].leak);
    tmk_tree_end(t);
    free(all);
}

static void add_cycles(struct tmk_tree *t, const struct tmk_leak_answer *f)
{
    tmk_tree_list(t, "falls_back");
    for (uint32_t i = 0; i < f->n; i++)
        for (uint64_t k = 0; k < tmk_leakage_n_cycles(f->items[i].leakage); k++) {
            const struct tmk_leak *c = tmk_leakage_cycle(f->items[i].leakage, k);
            if (!tmk_leak_is_wanted(f, c))
                continue;
            tmk_tree_object(t, NULL);
            tmk_answer_put_site(t, c->has_site, &c->site);
            tmk_tree_text(t, "category", tmk_category_name(c->category));
            tmk_tree_text(t, "module", c->module);
            tmk_tree_u64(t, "bytes", c->bytes);
            add_leak_process(t, f->items[i].p, c);
            tmk_tree_end(t);
        }
    tmk_tree_end(t);
}

static void add_doubts(struct tmk_tree *t, const struct tmk_leak_answer *f)
{
    tmk_tree_list(t, "not_judged");
    for (uint32_t i = 0; i < f->n; i++)
        for (uint64_t k = 0; k < tmk_leakage_n_doubts(f->items[i].leakage); k++) {
            const struct tmk_leak *doubt = tmk_leakage_doubt(f->items[i].leakage, k);
            if (!tmk_leak_is_wanted(f, doubt))
                continue;
            tmk_tree_object(t, NULL);
            tmk_answer_put_doubt(t, doubt);
            add_leak_process(t, f->items[i].p, doubt);
            tmk_tree_end(t);
        }
    tmk_tree_end(t);
}

/* ---- a living process ---- */

static void add_python(struct tmk_tree *t, const struct tmk_leak_live *live)
{
    bool is_judged = tmk_leak_live_is_judged(live);
    tmk_tree_text(t, "reason", live->has_python ? NULL : live->reason);
    if (live->has_python) {
        tmk_tree_u64(t, "objects_before", live->n_objects_before);
        tmk_tree_u64(t, "objects", live->n_objects);
        tmk_tree_fixed(t, "cost_ms", live->cost_ms, 3);
    }
    tmk_tree_list(t, "growing");
    for (uint64_t i = 0; i < live->n_types; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "type", live->types[i].type);
        tmk_tree_u64(t, "before", live->types[i].before);
        tmk_tree_u64(t, "after", live->types[i].after);
        tmk_tree_text(t, "verdict", !is_judged ? NULL : live->types[i].is_leak ? "leak" : "clean");
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    if (live->has_python) {
        char reason[TMK_LEAK_LIVE_REASON_BYTES];
        tmk_tree_u64(t, "looks", live->n_looks);
        tmk_tree_text(t, "verdict", !is_judged ? NULL : live->n_leaks ? "leak" : "clean");
        tmk_tree_text(t, "verdict_reason", tmk_leak_live_reason(live, reason));
    }
    tmk_tree_end(t);
}

static void add_live(struct tmk_tree *t, const struct tmk_leak_live *live)
{
    if (live)
        tmk_tree_fixed(t, "duration_s", live->seconds, 3);
    if (tmk_tree_object_if(t, "host", live && live->has_host)) {
        tmk_tree_u64(t, "rss_before", live->rss_before);
        tmk_tree_u64(t, "rss", live->rss_after);
        tmk_tree_end(t);
    }
    if (tmk_tree_object_if(t, "python", live && (live->has_python || live->reason[0])))
        add_python(t, live);
}

void tmk_leak_json(const struct tmk_leak_answer *f)
{
    static const char *const verdicts[] = {
        [TMK_LEAK_CLEAN] = "clean", [TMK_LEAK_FOUND] = "leak", [TMK_LEAK_TOO_SHORT] = NULL};
    struct tmk_tree t;
    uint64_t n_steps = 0, n_small = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        uint64_t n = tmk_leakage_n_steps(f->items[i].leakage);
        n_steps = n > n_steps ? n : n_steps;
        n_small += tmk_leakage_n_small(f->items[i].leakage);
    }
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_text(&t, "verdict", verdicts[tmk_leak_verdict_of(f)]);
    add_leak_objects(&t, f);
    add_cycles(&t, f);
    add_doubts(&t, f);
    tmk_tree_u64_if(&t, "steps", n_steps > 0, n_steps);
    tmk_tree_u64(&t, "below_threshold", n_small);
    tmk_tree_fixed(&t, "threshold_mb", (double)f->threshold_bytes / TMK_MB, 3);
    add_live(&t, f->live);
    tmk_tree_end(&t);
}
