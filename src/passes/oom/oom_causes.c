/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_causes.c - see oom_causes.h: the rules, one function each. */
#include "passes/oom/oom_causes.h"

#include <stdlib.h>
#include <string.h>

#include "kit/amount.h"
#include "model/alloc_conf.h"
#include "tidemark/tidemark.h"

enum { LEAST_PART = 20, MIN_STEPS = 3, N_DEVIATIONS = 5 };

static bool are_bytes_known(uint64_t bytes)
{
    return bytes != TMK_BYTES_UNKNOWN;
}

static uint64_t saturated_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX - 1 : sum;
}

static uint64_t subtract_known(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* ---- the limit ---- */

/* The bytes that torch's allocator asks of the driver; others ask for what they need. */
static uint64_t bytes_asked_of_driver(const struct tmk_scene *scene, const struct tmk_inquiry *q)
{
    struct tmk_alloc_conf conf;
    if (scene->kind != TMK_SCENE_OOM || scene->is_of_driver ||
        !are_bytes_known(scene->reserved_bytes))
        return scene->request_bytes;
    if (tmk_alloc_conf_parse(q->alloc_conf, &conf, NULL) < 0)
        tmk_alloc_conf_init(&conf);
    uint64_t rounded = tmk_alloc_round(&conf, scene->request_bytes);
    if (conf.expandable_segments)
        return rounded; /* it grows by pages, and its end may be free already */
    return tmk_alloc_segment_bytes(&conf, rounded);
}

static enum tmk_limit kind_of_limit(const struct tmk_scene *scene, uint64_t asked_bytes)
{
    if (are_bytes_known(scene->stated_bytes))
        return TMK_LIMIT_STATED;
    if (scene->device == TIDEMARK_HOST)
        return TMK_LIMIT_UNKNOWN;
    if (scene->driver_refused || scene->kind != TMK_SCENE_OOM)
        return TMK_LIMIT_CARD;
    if (scene->tells_free)
        return scene->card_free_bytes < asked_bytes ? TMK_LIMIT_CARD : TMK_LIMIT_SETTING;
    return scene->sees_driver ? TMK_LIMIT_SETTING : TMK_LIMIT_UNKNOWN;
}

static uint64_t bytes_held_in(const struct tmk_scene *scene)
{
    if (scene->is_of_driver)
        return are_bytes_known(scene->own_bytes) && scene->own_bytes > scene->segment_bytes
                   ? scene->own_bytes
                   : scene->segment_bytes;
    return are_bytes_known(scene->reserved_bytes) ? scene->reserved_bytes : scene->allocated_bytes;
}

/* The most that the device leaves to the framework's allocator, or to another owner that asked. */
static uint64_t card_limit(const struct tmk_scene *scene)
{
    uint64_t beside = scene->is_of_driver ? 0 : scene->outside_bytes;
    if (scene->tells_free)
        return saturated_sum(bytes_held_in(scene), scene->card_free_bytes);
    if (!are_bytes_known(scene->card_total_bytes) || !are_bytes_known(scene->others_bytes) ||
        !are_bytes_known(beside))
        return 0;
    return subtract_known(scene->card_total_bytes, saturated_sum(scene->others_bytes, beside));
}

static void find_limit(const struct tmk_scene *scene, const struct tmk_inquiry *q,
                       struct tmk_oom_verdict *v)
{
    bool is_near = scene->kind != TMK_SCENE_OOM;
    v->held_bytes = bytes_held_in(scene);
    v->asked_bytes = bytes_asked_of_driver(scene, q);
    v->limit = kind_of_limit(scene, v->asked_bytes);
    v->free_bytes = are_bytes_known(scene->reserved_bytes)
                        ? subtract_known(scene->reserved_bytes, scene->allocated_bytes)
                        : TMK_BYTES_UNKNOWN;
    uint64_t below = is_near ? UINT64_MAX : saturated_sum(v->held_bytes, v->asked_bytes);
    uint64_t least = v->held_bytes;
    if (v->limit == TMK_LIMIT_CARD && card_limit(scene) > least)
        least = card_limit(scene);
    bool held_more = !scene->is_of_driver && are_bytes_known(scene->max_reserved_bytes) &&
                     scene->max_reserved_bytes > least;
    if (v->limit != TMK_LIMIT_CARD && held_more)
        least = scene->max_reserved_bytes;
    if (v->limit == TMK_LIMIT_STATED)
        least = below = scene->stated_bytes;
    else if (least >= below)
        least = subtract_known(below, 1);
    v->limit_bytes = least;
    v->limit_below_bytes = is_near ? least : below;
    v->missing_bytes =
        is_near ? 0 : subtract_known(saturated_sum(v->held_bytes, v->asked_bytes), least);
    if (!is_near && v->missing_bytes == 0)
        v->missing_bytes = 1; /* the request did fail */
}

/* ---- the causes ---- */

static const struct tmk_trial *trial_of(const struct tmk_inquiry *q, const char *conf)
{
    for (uint32_t i = 1; i < q->n_trials; i++)
        if (strcmp(q->trials[i].conf, conf) == 0)
            return &q->trials[i];
    return NULL;
}

/* True when enough was reserved and not allocated. */
static bool had_room(const struct tmk_scene *scene, const struct tmk_oom_verdict *v)
{
    if (!are_bytes_known(v->free_bytes) || v->free_bytes == 0)
        return false;
    if (scene->is_of_driver) /* torch's cache stood in the way of another owner */
        return scene->device != TIDEMARK_HOST && v->free_bytes >= v->missing_bytes;
    if (scene->kind != TMK_SCENE_OOM)
        return v->free_bytes >= v->limit_bytes / LEAST_PART;
    return v->free_bytes >= scene->request_bytes &&
           saturated_sum(scene->allocated_bytes, scene->request_bytes) <= v->limit_bytes;
}

/* True when some settings would have served the request. */
static bool can_request_be_served(const struct tmk_inquiry *q)
{
    for (uint32_t i = 1; i < q->n_trials; i++)
        if (!q->trials[i].runs_out)
            return true;
    return false;
}

static uint64_t fragmentation_bytes(const struct tmk_scene *scene, const struct tmk_inquiry *q,
                                    const struct tmk_oom_verdict *v, uint64_t need_bytes)
{
    if (!had_room(scene, v) || (!scene->is_of_driver && need_bytes > v->limit_below_bytes))
        return 0;
    return tmk_inquiry_has_witness(q) && !can_request_be_served(q) ? 0 : v->free_bytes;
}

static uint64_t settings_bytes(const struct tmk_scene *scene, const struct tmk_inquiry *q,
                               const struct tmk_oom_verdict *v)
{
    const struct tmk_trial *plain = trial_of(q, "");
    bool helps = tmk_inquiry_has_witness(q) && plain && !plain->runs_out;
    return helps && !scene->is_of_driver && are_bytes_known(v->free_bytes)
               ? saturated_sum(v->free_bytes, 1)
               : 0;
}

static uint64_t outlier_bytes(const struct tmk_scene *scene, const struct tmk_inquiry *q,
                              const struct tmk_oom_verdict *v)
{
    uint64_t need = saturated_sum(scene->allocated_bytes, tmk_scene_lacking(scene));
    uint64_t spread = tmk_size_whole((double)q->deviation_bytes * 1.4826 * N_DEVIATIONS);
    uint64_t usual = saturated_sum(q->median_bytes, spread);
    bool stands_out = q->n_steps >= MIN_STEPS && need > usual &&
                      need > saturated_sum(q->median_bytes, q->median_bytes / 4);
    bool others_fit = q->median_bytes < v->limit_bytes / 10 * 9;
    return stands_out && others_fit && !tmk_scene_keeps_graphs(scene) ? need - q->median_bytes : 0;
}

static uint64_t other_process_bytes(const struct tmk_scene *scene, const struct tmk_oom_verdict *v)
{
    return v->limit == TMK_LIMIT_CARD && are_bytes_known(scene->others_bytes) ? scene->others_bytes
                                                                              : 0;
}

static uint64_t weight_of_cause(const struct tmk_cause_row *row)
{
    bool is_of_cache = row->cause == TMK_CAUSE_FRAGMENTATION || row->cause == TMK_CAUSE_SETTINGS;
    return is_of_cache ? saturated_sum(row->bytes, row->bytes) : row->bytes;
}

static int by_weight(const void *a, const void *b)
{
    const struct tmk_cause_row *p = a, *q = b;
    if (p->counts != q->counts)
        return p->counts ? -1 : 1;
    uint64_t m = weight_of_cause(p), n = weight_of_cause(q);
    return m != n ? (m < n ? 1 : -1) : (int)p->cause - (int)q->cause;
}

void tmk_causes_judge(const struct tmk_scene *scene, const struct tmk_inquiry *inquiry,
                      uint64_t need_bytes, struct tmk_oom_verdict *ret)
{
    *ret = (struct tmk_oom_verdict){0};
    find_limit(scene, inquiry, ret);
    uint64_t least = ret->limit_bytes / LEAST_PART;
    const uint64_t bytes[TMK_N_CAUSES] = {
        [TMK_CAUSE_DEMAND] = least,
        [TMK_CAUSE_FRAGMENTATION] = fragmentation_bytes(scene, inquiry, ret, need_bytes),
        [TMK_CAUSE_LEAK] = inquiry->leaked_bytes,
        [TMK_CAUSE_OUTLIER] = outlier_bytes(scene, inquiry, ret),
        [TMK_CAUSE_OTHER_PROCESS] = other_process_bytes(scene, ret),
        [TMK_CAUSE_SETTINGS] = settings_bytes(scene, inquiry, ret),
    };
    for (int i = 0; i < TMK_N_CAUSES; i++) {
        bool is_of_cache = i == TMK_CAUSE_FRAGMENTATION || i == TMK_CAUSE_SETTINGS;
        bool is_enough = bytes[i] >= ret->missing_bytes && (bytes[i] >= least || is_of_cache);
        ret->rows[i] =
            (struct tmk_cause_row){.cause = (enum tmk_cause)i,
                                   .bytes = bytes[i],
                                   .counts = i == TMK_CAUSE_DEMAND || (bytes[i] > 0 && is_enough)};
    }
    qsort(ret->rows, TMK_N_CAUSES, sizeof ret->rows[0], by_weight);
}

uint64_t tmk_oom_verdict_bytes(const struct tmk_oom_verdict *v, enum tmk_cause cause)
{
    for (int i = 0; i < TMK_N_CAUSES; i++)
        if (v->rows[i].cause == cause)
            return v->rows[i].bytes;
    return 0;
}

const char *tmk_cause_name(enum tmk_cause cause)
{
    static const char *const names[] = {
        [TMK_CAUSE_DEMAND] = "demand",
        [TMK_CAUSE_FRAGMENTATION] = "fragmentation",
        [TMK_CAUSE_LEAK] = "leak",
        [TMK_CAUSE_OUTLIER] = "outlier",
        [TMK_CAUSE_OTHER_PROCESS] = "other_process",
        [TMK_CAUSE_SETTINGS] = "settings",
    };
    return names[cause];
}

const char *tmk_limit_name(enum tmk_limit limit)
{
    static const char *const names[] = {
        [TMK_LIMIT_UNKNOWN] = NULL,
        [TMK_LIMIT_CARD] = "card",
        [TMK_LIMIT_SETTING] = "setting",
        [TMK_LIMIT_STATED] = "stated",
    };
    return names[limit];
}
