/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_fixes.c - see oom_fixes.h: the order, and fixes that do not change the model. */
#include "passes/oom/oom_fixes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "model/run.h"
#include "passes/leak/leak.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_fixes_internal.h"
#include "passes/oom/oom_scene.h"
#include "trace/layout.h"

/* The cost of a fix to the user. */
enum { A_VARIABLE, A_LINE };

enum { MAX_TIMES = 1000 };

void tmk_fixing_add(struct tmk_fixing *f, struct tmk_fix fix, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, _(format), args);
    va_end(args);
    if (f->c->n_fixes == TMK_MAX_FIXES)
        return;
    fix.text = tmk_arena_text(f->arena, text, strlen(text));
    if (!fix.text) {
        f->failed = true;
        return;
    }
    f->c->fixes[f->c->n_fixes++] = fix;
}

bool tmk_fixing_covers(const struct tmk_case *c, uint64_t saves_bytes)
{
    const struct tmk_oom_verdict *v = &c->verdict;
    uint64_t over = c->need.bytes > v->limit_bytes ? c->need.bytes - v->limit_bytes : 0;
    return saves_bytes >= (over > v->missing_bytes ? over : v->missing_bytes);
}

bool tmk_fixing_is_much(const struct tmk_case *c, uint64_t bytes)
{
    return bytes > 0 && bytes >= c->verdict.limit_bytes / 20;
}

static bool is_first_cause(const struct tmk_case *c, enum tmk_cause cause)
{
    return c->verdict.rows[0].cause == cause;
}

/* ---- the allocator ---- */

/* How much less the allocator needs with the trial's settings; where that was not searched for,
 * at least what was missing. */
static uint64_t trial_saves(const struct tmk_case *c, const struct tmk_trial *trial)
{
    uint64_t with = trial->needs_bytes, without = c->inquiry.trials[0].needs_bytes;
    if (with == TMK_BYTES_UNKNOWN || without == TMK_BYTES_UNKNOWN)
        return c->verdict.missing_bytes;
    return without > with ? without - with : 0;
}

static const char *kind_of_conf(const char *conf)
{
    if (conf[0] == '\0')
        return "default_settings";
    return strncmp(conf, "expandable", 10) == 0 ? "expandable_segments" : "alloc_conf";
}

static void advise_conf(struct tmk_fixing *f, const struct tmk_trial *trial)
{
    const struct tmk_case *c = f->c;
    uint64_t saves = trial_saves(c, trial);
    bool is_plain = trial->conf[0] == '\0';
    enum tmk_cause first = c->verdict.rows[0].cause;
    struct tmk_fix fix = {.kind = kind_of_conf(trial->conf),
                          .conf = trial->conf,
                          .saves_bytes = saves,
                          .proof = TMK_PROOF_REPLAY,
                          .avoids = true,
                          .cost = A_VARIABLE,
                          .is_for_cause = first == TMK_CAUSE_SETTINGS ||
                                          (first == TMK_CAUSE_FRAGMENTATION && !is_plain)};
    if (is_plain)
        tmk_fixing_add(f, fix,
                       "Use torch's default allocator settings. They were "
                       "PYTORCH_CUDA_ALLOC_CONF=%.200s.",
                       c->inquiry.alloc_conf);
    else
        tmk_fixing_add(f, fix, "Set PYTORCH_CUDA_ALLOC_CONF=%s.", trial->conf);
}

static int rank_of_conf(const char *conf)
{
    return strncmp(conf, "expandable", 10) == 0 ? 0 : conf[0] == '\0' ? 1 : 2;
}

/* The better one needs less; where both need the same, expandable segments, since those never waste
 * more later on. Torch's own settings do not help against pieces. */
static bool is_better_trial(const struct tmk_case *c, const struct tmk_trial *a,
                            const struct tmk_trial *b)
{
    bool in_pieces = is_first_cause(c, TMK_CAUSE_FRAGMENTATION);
    if (in_pieces && (a->conf[0] == '\0') != (b->conf[0] == '\0'))
        return b->conf[0] == '\0';
    uint64_t saves_a = trial_saves(c, a), saves_b = trial_saves(c, b);
    return saves_a != saves_b ? saves_a > saves_b : rank_of_conf(a->conf) < rank_of_conf(b->conf);
}

/* Among settings that serve the request, advise the best one. */
static void try_settings(struct tmk_fixing *f)
{
    const struct tmk_inquiry *q = &f->c->inquiry;
    const struct tmk_trial *best = NULL;
    for (uint32_t i = 1; tmk_inquiry_has_witness(q) && i < q->n_trials; i++) {
        const struct tmk_trial *trial = &q->trials[i];
        if (!trial->runs_out && (!best || is_better_trial(f->c, trial, best)))
            best = trial;
    }
    if (best)
        advise_conf(f, best);
}

/* Where no replay can tell: there were gaps, and expandable segments close most of them. */
static void try_unproven_conf(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    char size[TMK_AMOUNT_BYTES];
    const char *conf = c->inquiry.alloc_conf;
    if (!is_first_cause(c, TMK_CAUSE_FRAGMENTATION) || c->scene.is_of_driver ||
        tmk_inquiry_has_witness(&c->inquiry) || (conf && strstr(conf, "expandable_segments:True")))
        return;
    tmk_fixing_add(f,
                   (struct tmk_fix){.kind = "expandable_segments",
                                    .conf = "expandable_segments:True",
                                    .saves_bytes = c->verdict.free_bytes,
                                    .proof = TMK_PROOF_ESTIMATE,
                                    .avoids = c->verdict.free_bytes >= c->verdict.missing_bytes,
                                    .cost = A_VARIABLE,
                                    .is_for_cause = true},
                   "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. It joins most of the "
                   "free pieces, %s. It was not replayed; tidemark whatif replays settings.",
                   tmk_size_text(c->verdict.free_bytes, size));
}

static void empty_cache(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    char size[TMK_AMOUNT_BYTES];
    uint64_t unused = c->verdict.free_bytes;
    if (!c->scene.is_of_driver || unused == TMK_BYTES_UNKNOWN || !tmk_fixing_is_much(c, unused))
        return;
    tmk_fixing_add(f,
                   (struct tmk_fix){.kind = "empty_cache",
                                    .saves_bytes = unused,
                                    .proof = TMK_PROOF_MEASURED,
                                    .avoids = unused >= c->verdict.missing_bytes,
                                    .cost = A_LINE,
                                    .is_for_cause = is_first_cause(c, TMK_CAUSE_FRAGMENTATION)},
                   "Call torch.cuda.empty_cache() before %s allocates. Torch had %s cached. "
                   "torch.cuda.set_per_process_memory_fraction() keeps it below a limit.",
                   c->scene.owner ? c->scene.owner : _("another library"),
                   tmk_size_text(unused, size));
}

static void raise_limit(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    uint64_t left = c->scene.card_free_bytes;
    char free_text[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES];
    if (c->verdict.limit != TMK_LIMIT_SETTING || left == TMK_BYTES_UNKNOWN || left == 0)
        return;
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "limit",
                         .saves_bytes = TMK_BYTES_UNKNOWN, /* it makes room, it saves nothing */
                         .proof = TMK_PROOF_MEASURED,
                         .avoids = tmk_fixing_covers(c, left),
                         .cost = A_LINE,
                         .is_for_cause = is_first_cause(c, TMK_CAUSE_DEMAND)},
        "Raise the limit of torch.cuda.set_per_process_memory_fraction(). It was about %s, and %s "
        "of the GPU were free.",
        tmk_size_text(c->verdict.limit_bytes, limit), tmk_size_text(left, free_text));
}

/* ---- leaks, large steps, neighbours ---- */

static void stop_leak(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    const struct tmk_leak *leak = c->inquiry.leak;
    char size[TMK_AMOUNT_BYTES], rate[TMK_AMOUNT_BYTES], site[TMK_FRAME_TEXT_BYTES];
    if (!leak || !tmk_fixing_is_much(c, c->inquiry.leaked_bytes))
        return;
    bool has_steps = leak->first_step != TMK_NO_STEP;
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "leak",
                         .saves_bytes = c->inquiry.leaked_bytes,
                         .proof = TMK_PROOF_MEASURED,
                         .avoids = c->inquiry.leaked_bytes >= c->verdict.missing_bytes,
                         .cost = A_LINE,
                         .is_for_cause = is_first_cause(c, TMK_CAUSE_LEAK)},
        "Stop the leak at %.200s. It kept %s more a %s and had reached %s. To free it: %s.",
        leak->has_site ? tmk_frame_text(&leak->site, true, site) : _("a line that is not known"),
        tmk_size_text(tmk_size_whole(has_steps ? leak->bytes_per_step : leak->bytes_per_second),
                      rate),
        has_steps ? _("step") : _("second"), tmk_size_text(c->inquiry.leaked_bytes, size),
        tmk_leak_advice(leak));
}

/* How many times the usual batch would have fitted: memory kept between steps does not grow with
 * it. */
static double times_usual_batch(const struct tmk_case *c)
{
    const struct tmk_inquiry *q = &c->inquiry;
    double fixed = (double)q->kept_bytes, usual = (double)q->median_bytes - fixed;
    double room = 0.9 * (double)c->verdict.limit_bytes - fixed;
    double times = usual > 0 && room > usual ? room / usual : 1;
    return times < MAX_TIMES ? times : MAX_TIMES;
}

static void cap_step(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    uint64_t above = tmk_oom_verdict_bytes(&c->verdict, TMK_CAUSE_OUTLIER);
    char usual[TMK_AMOUNT_BYTES], most[TMK_AMOUNT_BYTES];
    if (above == 0)
        return;
    double times = times_usual_batch(c);
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "outlier",
                         .saves_bytes = above,
                         .proof = TMK_PROOF_MEASURED,
                         .avoids = above >= c->verdict.missing_bytes,
                         .factor = (double)(uint64_t)(times * 10) / 10,
                         .cost = A_LINE,
                         .is_for_cause = is_first_cause(c, TMK_CAUSE_OUTLIER)},
        "Cap the largest batches. Cut or skip the longest samples, or put samples of similar "
        "length together. Earlier steps peaked at %s, the largest at %s; about %.1f times their "
        "batch fits.",
        tmk_size_text(c->inquiry.median_bytes, usual), tmk_size_text(c->inquiry.most_bytes, most),
        times);
}

static void move_other_processes(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    const struct tmk_scene *s = &c->scene;
    char size[TMK_AMOUNT_BYTES], device[24];
    if (c->verdict.limit != TMK_LIMIT_CARD || s->others_bytes == TMK_BYTES_UNKNOWN ||
        !tmk_fixing_is_much(c, s->others_bytes))
        return;
    tmk_fixing_add(f,
                   (struct tmk_fix){.kind = "other_process",
                                    .saves_bytes = s->others_bytes,
                                    .proof = TMK_PROOF_MEASURED,
                                    .avoids = tmk_fixing_covers(c, s->others_bytes),
                                    .cost = A_LINE,
                                    .is_for_cause = is_first_cause(c, TMK_CAUSE_OTHER_PROCESS)},
                   "End or move the other processes on %s, or use another GPU. They used %s of it; "
                   "tidemark top and nvidia-smi name them.",
                   tmk_device_name(s->device, device), tmk_size_text(s->others_bytes, size));
}

/* ---- the order ---- */

static int by_worth(const void *a, const void *b)
{
    const struct tmk_fix *p = a, *q = b;
    if (p->avoids != q->avoids)
        return p->avoids ? -1 : 1;
    if (p->is_for_cause != q->is_for_cause)
        return p->is_for_cause ? -1 : 1;
    if (p->cost != q->cost)
        return p->cost < q->cost ? -1 : 1;
    uint64_t m = p->saves_bytes == TMK_BYTES_UNKNOWN ? 0 : p->saves_bytes;
    uint64_t n = q->saves_bytes == TMK_BYTES_UNKNOWN ? 0 : q->saves_bytes;
    return m != n ? (m < n ? 1 : -1) : strcmp(p->kind, q->kind);
}

/* Whether it is known what the job would have needed after the request. */
static bool is_rest_known(const struct tmk_case *c, const struct tmk_fix *fix)
{
    if (c->scene.kind != TMK_SCENE_OOM || fix->proof != TMK_PROOF_MEASURED)
        return false;
    if (strcmp(fix->kind, "leak") == 0 || strcmp(fix->kind, "outlier") == 0)
        return c->inquiry.n_steps > 1; /* without it, steps are like those before */
    if (strcmp(fix->kind, "no_grad") == 0)
        return c->inquiry.n_steps > 1 && c->inquiry.growth_bytes == 0;
    return c->need.is_whole_step_known && c->inquiry.growth_bytes == 0;
}

int tmk_fixes_find(struct tmk_case *c, struct tmk_arena *arena)
{
    struct tmk_fixing f = {.c = c, .arena = arena};
    c->n_fixes = 0;
    try_settings(&f);
    try_unproven_conf(&f);
    empty_cache(&f);
    raise_limit(&f);
    stop_leak(&f);
    cap_step(&f);
    move_other_processes(&f);
    if (!is_first_cause(c, TMK_CAUSE_LEAK)) /* without the leak it would only come later */
        tmk_fixing_model(&f);
    for (uint32_t i = 0; i < c->n_fixes; i++)
        c->fixes[i].is_enough = c->fixes[i].avoids && is_rest_known(c, &c->fixes[i]);
    qsort(c->fixes, c->n_fixes, sizeof c->fixes[0], by_worth);
    if (c->n_fixes > TMK_SHOWN_FIXES)
        c->n_fixes = TMK_SHOWN_FIXES;
    return f.failed ? TMK_ENOMEM : 0;
}

const char *tmk_proof_name(enum tmk_proof proof)
{
    static const char *const names[] = {[TMK_PROOF_REPLAY] = "replay",
                                        [TMK_PROOF_MEASURED] = "measured",
                                        [TMK_PROOF_ESTIMATE] = "estimate"};
    return names[proof];
}
