/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_json.c - see leak_answer.h: the leaks of a run, for machines. */
#include <stdlib.h>

#include "cli/answers/leak_answer.h"
#include "cli/front/target.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/json.h"

struct found {
    const struct tmk_leak_finding *item;
    const struct tmk_leak *leak;
};

static void add_site(struct tmk_json *j, const struct tmk_leak *leak)
{
    tmk_json_text(j, "file", leak->has_site ? leak->site.file : NULL);
    if (leak->has_site && leak->site.line)
        tmk_json_u64(j, "line", leak->site.line);
    else
        tmk_json_null(j, "line");
    tmk_json_text(j, "function", leak->has_site ? leak->site.function : NULL);
}

/* Without steps there is nothing "per step": null. */
static void add_per_step(struct tmk_json *j, bool has_steps, double bytes, double blocks)
{
    if (has_steps) {
        tmk_json_double(j, "bytes_per_step", bytes);
        tmk_json_double(j, "blocks_per_step", blocks);
    } else {
        tmk_json_null(j, "bytes_per_step");
        tmk_json_null(j, "blocks_per_step");
    }
}

static void add_parts(struct tmk_json *j, const struct tmk_process *p, const struct tmk_leak *leak)
{
    tmk_json_array(j, "parts");
    for (uint64_t i = 0; i < leak->n_parts; i++) {
        const struct tmk_leak_part *part = &leak->parts[i];
        struct tmk_frame f;
        char text[TMK_FRAME_TEXT_BYTES];
        bool known = tmk_stack_site(p, part->stack, &f);
        tmk_json_object(j, NULL);
        tmk_json_text(j, "site", known ? tmk_frame_text(&f, false, text) : NULL);
        tmk_json_text(j, "category", tmk_category_name(part->category));
        tmk_json_text(j, "module", part->module);
        tmk_json_text(j, "stage", part->stage);
        add_per_step(j, leak->first_step != TMK_NO_STEP, part->bytes_per_step,
                     part->blocks_per_step);
        tmk_json_double(j, "share", part->bytes_per_step / leak->bytes_per_step);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void add_whose(struct tmk_json *j, const struct tmk_process *p, const struct tmk_leak *leak)
{
    char device[24];
    tmk_json_text(j, "device", tmk_device_name(leak->device, device));
    if (p->rank >= 0)
        tmk_json_i64(j, "rank", p->rank);
    else
        tmk_json_null(j, "rank");
    tmk_process_json_pid(j, p);
}

static void add_leak(struct tmk_json *j, const struct tmk_leak_finding *item,
                     const struct tmk_leak *leak)
{
    double left;
    tmk_json_object(j, NULL);
    add_site(j, leak);
    tmk_process_json_stack(j, item->p, leak->stack);
    tmk_json_text(j, "category", tmk_category_name(leak->category));
    tmk_json_text(j, "module", leak->module);
    add_per_step(j, leak->first_step != TMK_NO_STEP, leak->bytes_per_step, leak->blocks_per_step);
    if (leak->first_step != TMK_NO_STEP)
        tmk_json_i64(j, "first_step", leak->first_step);
    else
        tmk_json_null(j, "first_step");
    tmk_json_fixed(j, "confidence", leak->confidence, 4);
    add_whose(j, item->p, leak);
    tmk_json_u64(j, "first_ns", leak->first_ns + item->p->offset_ns);
    tmk_json_u64(j, "growth_bytes", leak->bytes);
    tmk_json_double(j, "bytes_per_second", leak->bytes_per_second);
    if (tmk_leak_steps_left(item, leak, &left))
        tmk_json_double(j, "steps_left", left);
    else
        tmk_json_null(j, "steps_left");
    if (tmk_leak_seconds_left(item, leak, &left))
        tmk_json_double(j, "seconds_left", left);
    else
        tmk_json_null(j, "seconds_left");
    tmk_json_text(j, "kept_by", tmk_keeper_name(leak->keeper));
    tmk_json_text(j, "advice", tmk_keeper_advice(leak->keeper));
    add_parts(j, item->p, leak);
    tmk_json_end(j);
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

/* Of all processes, largest first: per second where one of them has no steps. */
static void add_leaks(struct tmk_json *j, const struct tmk_leak_findings *f)
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
    tmk_json_array(j, "leaks");
    for (uint64_t i = 0; i < n; i++)
        add_leak(j, all[i].item, all[i].leak);
    tmk_json_end(j);
    free(all);
}

static void add_cycles(struct tmk_json *j, const struct tmk_leak_findings *f)
{
    tmk_json_array(j, "falls_back");
    for (uint32_t i = 0; i < f->n; i++)
        for (uint64_t k = 0; k < tmk_leakage_n_cycles(f->items[i].leakage); k++) {
            const struct tmk_leak *c = tmk_leakage_cycle(f->items[i].leakage, k);
            if (!tmk_leak_is_wanted(f, c))
                continue;
            tmk_json_object(j, NULL);
            add_site(j, c);
            tmk_json_text(j, "category", tmk_category_name(c->category));
            tmk_json_text(j, "module", c->module);
            tmk_json_u64(j, "bytes", c->bytes);
            add_whose(j, f->items[i].p, c);
            tmk_json_end(j);
        }
    tmk_json_end(j);
}

static void add_doubts(struct tmk_json *j, const struct tmk_leak_findings *f)
{
    tmk_json_array(j, "not_judged");
    for (uint32_t i = 0; i < f->n; i++)
        for (uint64_t k = 0; k < tmk_leakage_n_doubts(f->items[i].leakage); k++) {
            const struct tmk_leak *doubt = tmk_leakage_doubt(f->items[i].leakage, k);
            if (!tmk_leak_is_wanted(f, doubt))
                continue;
            tmk_json_object(j, NULL);
            add_site(j, doubt);
            tmk_json_text(j, "category", tmk_category_name(doubt->category));
            tmk_json_text(j, "module", doubt->module);
            tmk_json_text(j, "reason", tmk_doubt_name(doubt->doubt));
            tmk_json_u64(j, "growth_bytes", doubt->bytes);
            tmk_json_u64(j, "rises", doubt->n_rises);
            add_whose(j, f->items[i].p, doubt);
            tmk_json_end(j);
        }
    tmk_json_end(j);
}

/* ---- a living process ---- */

static void add_python(struct tmk_json *j, const struct tmk_leak_live *live)
{
    tmk_json_object(j, "python");
    tmk_json_text(j, "reason", live->has_python ? NULL : live->reason);
    if (live->has_python) {
        tmk_json_u64(j, "objects_before", live->n_objects_before);
        tmk_json_u64(j, "objects", live->n_objects);
        tmk_json_fixed(j, "cost_ms", live->cost_ms, 3);
    }
    tmk_json_array(j, "growing");
    for (uint64_t i = 0; i < live->n_types; i++) {
        tmk_json_object(j, NULL);
        tmk_json_text(j, "type", live->types[i].type);
        tmk_json_u64(j, "before", live->types[i].before);
        tmk_json_u64(j, "after", live->types[i].after);
        tmk_json_end(j);
    }
    tmk_json_end(j);
    tmk_json_end(j);
}

static void add_live(struct tmk_json *j, const struct tmk_leak_live *live)
{
    bool has_host = live && live->has_host;
    if (live)
        tmk_json_fixed(j, "duration_s", live->seconds, 3);
    if (has_host) {
        tmk_json_object(j, "host");
        tmk_json_u64(j, "rss_before", live->rss_before);
        tmk_json_u64(j, "rss", live->rss_after);
        tmk_json_end(j);
    } else {
        tmk_json_null(j, "host");
    }
    if (live && (live->has_python || live->reason[0]))
        add_python(j, live);
    else
        tmk_json_null(j, "python");
}

void tmk_leak_json(const struct tmk_leak_findings *f)
{
    static const char *const verdicts[] = {
        [TMK_LEAK_CLEAN] = "clean", [TMK_LEAK_FOUND] = "leak", [TMK_LEAK_TOO_SHORT] = NULL};
    struct tmk_json j;
    uint64_t n_steps = 0, n_small = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        uint64_t n = tmk_leakage_n_steps(f->items[i].leakage);
        n_steps = n > n_steps ? n : n_steps;
        n_small += tmk_leakage_n_small(f->items[i].leakage);
    }
    tmk_json_init(&j, stdout, 2);
    tmk_json_object(&j, NULL);
    tmk_json_text(&j, "verdict", verdicts[tmk_leak_verdict_of(f)]);
    add_leaks(&j, f);
    add_cycles(&j, f);
    add_doubts(&j, f);
    if (n_steps)
        tmk_json_u64(&j, "steps", n_steps);
    else
        tmk_json_null(&j, "steps");
    tmk_json_u64(&j, "below_threshold", n_small);
    tmk_json_fixed(&j, "threshold_mb", (double)f->threshold_bytes / TMK_MB, 3);
    add_live(&j, f->live);
    tmk_json_end(&j);
}
