/* SPDX-License-Identifier: MIT */
/* passes/imbalance/imbalance_why.c - see imbalance_why.h. */
#include "passes/imbalance/imbalance_why.h"

#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "model/run.h"
#include "passes/diff/align.h"
#include "passes/diff/diff.h"
#include "passes/group.h"
#include "passes/imbalance/rank_facts.h"
#include "passes/peak.h"
#include "tidemark/tidemark.h"
#include "trace/replay.h"

static int find_rank_peak(struct tmk_process *p, const struct tmk_rank_facts *f,
                          struct tmk_peak **ret_peak, struct tmk_error *err)
{
    struct tmk_moment moment = {.kind = TMK_MOMENT_PEAK, .device = f->device};
    struct tmk_replay rp;
    int rc = tmk_peak_open(p, &moment, ret_peak);
    if (rc < 0)
        return tmk_fail(err, rc, "out of memory");
    struct tmk_visitor visitor = tmk_peak_visitor(*ret_peak);
    rc = tmk_process_sweep(p, &visitor, 1, &rp, err);
    if (rc < 0)
        return rc;
    rc = tmk_peak_finish(*ret_peak, &rp, err);
    tmk_replay_fini(&rp);
    return rc;
}

static bool has_all_blocks(const struct tmk_peak *k, const struct tmk_rank_facts *f)
{
    return tmk_peak_found(k) && tmk_peak_bytes(k) >= f->peak_bytes;
}

/* A key that says nothing about where memory comes from. */
static bool is_known_key(const char *key)
{
    return key && strcmp(key, "unknown") != 0 && strcmp(key, "other") != 0;
}

static int take_part(struct tmk_imbalance *b, struct tmk_peak *const peaks[2], enum tmk_by by,
                     struct tmk_imbalance_part *ret, struct tmk_error *err)
{
    struct tmk_diff *d = NULL;
    int rc = tmk_diff_open(peaks, by, &d, err);
    if (rc < 0)
        return rc;
    for (uint64_t i = 0; i < tmk_diff_n_rows(d); i++) {
        const struct tmk_diff_row *row = tmk_diff_row(d, i);
        int64_t more = tmk_diff_change(row->bytes[TMK_SIDE_A], row->bytes[TMK_SIDE_B]);
        if (!is_known_key(row->key) || more <= 0 || (uint64_t)more <= ret->more_bytes)
            continue;
        ret->more_bytes = (uint64_t)more;
        ret->key = tmk_arena_text(&b->words, row->key, strlen(row->key));
        rc = ret->key ? 0 : tmk_fail(err, TMK_ENOMEM, "out of memory");
    }
    tmk_diff_close(d);
    return rc;
}

static bool is_made_of_batch(uint8_t category)
{
    return category == TIDEMARK_ACTIVATION || category == TIDEMARK_INPUT ||
           category == TIDEMARK_AUTOGRAD_DETAIL || category == TIDEMARK_KV_CACHE;
}

/* A larger batch makes the same blocks larger, all by one factor. That is so when at least half of
 * what came more is in activations and inputs that were resized by the factor of the largest. */
static double batch_factor_of(const struct tmk_diff *d)
{
    double factor = 0, of_batch = 0, grown = 0;
    int64_t largest = 0;
    for (uint64_t i = 0; i < tmk_diff_n_causes(d); i++) {
        const struct tmk_diff_cause *c = tmk_diff_cause(d, i);
        if (is_made_of_batch(c->category) && c->n_resized > 0 && c->split.resized > largest) {
            largest = c->split.resized;
            factor = c->most_factor;
        }
    }
    for (uint64_t i = 0; i < tmk_diff_n_causes(d); i++) {
        const struct tmk_diff_cause *c = tmk_diff_cause(d, i);
        int64_t more = tmk_diff_change(c->bytes[TMK_SIDE_A], c->bytes[TMK_SIDE_B]);
        grown += more > 0 ? (double)more : 0;
        bool is_even =
            c->n_resized > 0 && c->least_factor > factor * 0.95 && c->most_factor < factor * 1.05;
        if (is_made_of_batch(c->category) && is_even && c->split.resized > 0)
            of_batch += (double)c->split.resized;
    }
    return factor > 1.05 && of_batch * 2 >= grown ? factor : 0;
}

static int compare_peaks(struct tmk_imbalance *b, struct tmk_peak *const peaks[2],
                         struct tmk_error *err)
{
    struct tmk_imbalance_why *why = &b->why;
    struct tmk_diff *d = NULL;
    int rc = take_part(b, peaks, TMK_BY_CATEGORY, &why->category, err);
    if (rc == 0)
        rc = take_part(b, peaks, TMK_BY_MODULE, &why->module, err);
    if (rc == 0)
        rc = take_part(b, peaks, TMK_BY_STAGE, &why->stage, err);
    if (rc == 0)
        rc = tmk_diff_open(peaks, TMK_BY_CATEGORY, &d, err);
    if (rc == 0)
        why->batch_factor = batch_factor_of(d);
    why->is_known = rc == 0;
    tmk_diff_close(d);
    return rc;
}

int tmk_imbalance_find_why(struct tmk_imbalance *b, struct tmk_run *run, struct tmk_error *err)
{
    const uint32_t rows[2] = {b->typical, b->highest};
    struct tmk_peak *peaks[2] = {NULL, NULL};
    int rc = 0;
    if ((double)b->rows[b->highest].facts.peak_bytes * 100 <=
        (double)b->rows[b->typical].facts.peak_bytes * TMK_ALIKE_PERCENT)
        return 0;
    for (unsigned i = 0; rc == 0 && i < 2; i++)
        rc = find_rank_peak(tmk_run_process(run, rows[i]), &b->rows[rows[i]].facts, &peaks[i], err);
    if (rc == 0 && has_all_blocks(peaks[0], &b->rows[b->typical].facts) &&
        has_all_blocks(peaks[1], &b->rows[b->highest].facts))
        rc = compare_peaks(b, peaks, err);
    tmk_peak_close(peaks[0]);
    tmk_peak_close(peaks[1]);
    return rc;
}
