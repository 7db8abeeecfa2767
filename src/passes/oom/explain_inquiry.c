/* SPDX-License-Identifier: MIT */
/* passes/oom/explain_inquiry.c - see explain_inquiry.h.
 *
 * Gaps are looked at for the first few scenes, and replays are made for devices as they are met:
 * a program that catches the error a thousand times is explained as fast as one that dies of it.
 * Only a device's first OOM is replayed: nobody knows what the job would have done after it. */
#include "passes/oom/explain_inquiry.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/amount.h"
#include "model/alloc_conf.h"
#include "model/run.h"
#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "passes/group.h"
#include "passes/leak/leak.h"
#include "passes/leak/leaks.h"
#include "passes/oom/oom_scene.h"
#include "passes/steps.h"
#include "passes/whatif/whatif.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/state.h"

enum {
    MAX_LOOKS = 4,
    MAX_REPLAYED = 8,
    LAST_STEPS = 32,
    N_QUARTERS = 4,
    MAX_PINNED = 256,
    MAX_HALVES = 6,
    MIN_RISES = 4
};

/* Above this many events the least limit is not searched for: that takes a dozen replays. */
#define MAX_SEARCHED 200000u
/* The events that are replayed in all: a few seconds' worth. */
#define MAX_EVENTS 40000000u

struct frag_look {
    const struct tmk_scene *scene;
    struct tmk_fragmentation *gaps;
    struct tmk_group *pins;
};

struct tmk_inquirer {
    struct tmk_process *p;
    struct tmk_leakage *leakage;
    struct frag_look looks[MAX_LOOKS];
    uint32_t n_looks;
    struct {
        uint16_t device;
        struct tmk_whatif *whatif;
    } replayed[MAX_REPLAYED];
    uint32_t n_replayed;
    uint64_t n_events;
};

/* ---- the sweep ---- */

static int open_frag_look(struct tmk_inquirer *q, const struct tmk_scene *scene)
{
    struct tmk_frag_moment moment = {.kind = TMK_FRAG_TIME, .time_ns = scene->time_ns};
    struct frag_look *look = &q->looks[q->n_looks];
    if (q->n_looks == MAX_LOOKS || scene->device == TIDEMARK_HOST)
        return 0;
    int rc = tmk_fragmentation_open(q->p, &moment, &look->gaps);
    if (rc == 0) {
        look->scene = scene;
        q->n_looks++;
    }
    return rc;
}

static struct tmk_whatif *whatif_of(const struct tmk_inquirer *q, uint16_t device)
{
    for (uint32_t i = 0; i < q->n_replayed; i++)
        if (q->replayed[i].device == device)
            return q->replayed[i].whatif;
    return NULL;
}

static int open_whatif(struct tmk_inquirer *q, const struct tmk_scene *scene)
{
    if (q->n_replayed == MAX_REPLAYED || scene->device == TIDEMARK_HOST ||
        whatif_of(q, scene->device))
        return 0;
    int rc = tmk_whatif_open(q->p, scene->device, &q->replayed[q->n_replayed].whatif);
    if (rc == 0)
        q->replayed[q->n_replayed++].device = scene->device;
    return rc;
}

static int open_inquiry_passes(struct tmk_inquirer *q, const struct tmk_scenes *scenes)
{
    int rc = tmk_leakage_open(q->p, TMK_LEAK_DEFAULT_BYTES, &q->leakage);
    for (uint64_t i = 0; i < tmk_scenes_n(scenes) && rc == 0; i++) {
        rc = open_frag_look(q, tmk_scenes_get(scenes, i));
        if (rc == 0)
            rc = open_whatif(q, tmk_scenes_get(scenes, i));
    }
    return rc;
}

static int finish_inquiry_passes(struct tmk_inquirer *q, const struct tmk_replay *rp,
                                 struct tmk_error *err)
{
    int rc = tmk_leakage_finish(q->leakage, rp, err);
    for (uint32_t i = 0; i < q->n_looks && rc == 0; i++)
        rc = tmk_fragmentation_finish(q->looks[i].gaps, rp, err);
    for (uint32_t i = 0; i < q->n_replayed && rc == 0; i++)
        rc = tmk_whatif_finish(q->replayed[i].whatif, rp, err);
    return rc;
}

static int sweep_inquiry(struct tmk_inquirer *q, const struct tmk_visitor *watcher,
                         struct tmk_error *err)
{
    struct tmk_visitor visitors[2 + MAX_LOOKS + MAX_REPLAYED];
    uint32_t n = 0;
    visitors[n++] = tmk_leakage_visitor(q->leakage);
    for (uint32_t i = 0; i < q->n_looks; i++)
        visitors[n++] = tmk_fragmentation_visitor(q->looks[i].gaps);
    for (uint32_t i = 0; i < q->n_replayed; i++)
        visitors[n++] = tmk_whatif_visitor(q->replayed[i].whatif);
    if (watcher)
        visitors[n++] = *watcher;
    struct tmk_replay rp;
    int rc = tmk_process_sweep(q->p, visitors, n, &rp, err);
    if (rc < 0)
        return rc;
    rc = finish_inquiry_passes(q, &rp, err);
    tmk_replay_fini(&rp);
    return rc;
}

int tmk_inquirer_open(struct tmk_process *p, const struct tmk_scenes *scenes,
                      const struct tmk_visitor *watcher, struct tmk_inquirer **ret_inquirer,
                      struct tmk_error *err)
{
    struct tmk_inquirer *q = calloc(1, sizeof *q);
    if (!q)
        return TMK_ENOMEM;
    q->p = p;
    int rc = open_inquiry_passes(q, scenes);
    if (rc == 0)
        rc = sweep_inquiry(q, watcher, err);
    if (rc < 0) {
        tmk_inquirer_close(q);
        return rc;
    }
    *ret_inquirer = q;
    return 0;
}

struct tmk_inquirer *tmk_inquirer_close(struct tmk_inquirer *q)
{
    if (!q)
        return NULL;
    for (uint32_t i = 0; i < q->n_looks; i++) {
        tmk_group_close(q->looks[i].pins);
        tmk_fragmentation_close(q->looks[i].gaps);
    }
    for (uint32_t i = 0; i < q->n_replayed; i++)
        tmk_whatif_close(q->replayed[i].whatif);
    tmk_leakage_close(q->leakage);
    free(q);
    return NULL;
}

/* ---- steps ---- */

static int compare_peak_bytes(const void *a, const void *b)
{
    uint64_t m = *(const uint64_t *)a, n = *(const uint64_t *)b;
    return (m > n) - (m < n);
}

static uint64_t median_bytes(uint64_t *values, uint64_t n)
{
    qsort(values, n, sizeof *values, compare_peak_bytes);
    return values[n / 2];
}

/* How much the peaks grow a step, if the medians of quarters rise each time, by a twentieth in
 * all. `newest` has the last step first. */
static uint64_t growth_of_peaks(const uint64_t *newest, uint64_t n)
{
    uint64_t quarter = n / N_QUARTERS, middle[N_QUARTERS], some[LAST_STEPS];
    if (quarter < 2)
        return 0;
    for (int i = 0; i < N_QUARTERS; i++) {
        memcpy(some, newest + (uint64_t)i * quarter, quarter * sizeof *some);
        middle[i] = median_bytes(some, quarter);
        if (i > 0 && middle[i] >= middle[i - 1])
            return 0;
    }
    uint64_t rise = middle[0] - middle[N_QUARTERS - 1];
    return rise > middle[0] / 20 ? rise / (quarter * (N_QUARTERS - 1)) : 0;
}

/* How much the memory kept after a step grew per step, if it did with every one; the first step
 * may make the optimizer's state. `newest` has the last step first. */
static uint64_t rise_per_step(const uint64_t *newest, uint64_t n)
{
    if (n < MIN_RISES + 1)
        return 0;
    for (uint64_t i = 0; i + 2 < n; i++)
        if (newest[i] <= newest[i + 1])
            return 0;
    return (newest[0] - newest[n - 2]) / (n - 2);
}

/* Ask for the last steps that had ended when the scene came. */
static int ask_steps(const struct tmk_inquirer *q, const struct tmk_scene *scene,
                     struct tmk_inquiry *ret)
{
    struct tmk_steps *steps = NULL;
    uint64_t peaks[LAST_STEPS], ends[LAST_STEPS], apart[LAST_STEPS], n = 0;
    int rc = tmk_steps_open(q->p, scene->device, &steps);
    if (rc < 0)
        return rc;
    for (uint64_t i = tmk_steps_n(steps); i > 0 && n < LAST_STEPS; i--) {
        const struct tmk_step_row *row = tmk_steps_get(steps, i - 1);
        if (row->open || row->end_ns > scene->time_ns)
            continue;
        peaks[n] = row->peak_bytes;
        ends[n++] = row->end_bytes;
    }
    tmk_steps_close(steps);
    ret->n_steps = n;
    if (n == 0)
        return 0;
    ret->growth_bytes = growth_of_peaks(peaks, n);
    ret->median_bytes = median_bytes(peaks, n);
    ret->most_bytes = peaks[n - 1];
    ret->rise_bytes = rise_per_step(ends, n);
    ret->kept_bytes = median_bytes(ends, n);
    for (uint64_t i = 0; i < n; i++)
        apart[i] = peaks[i] > ret->median_bytes ? peaks[i] - ret->median_bytes
                                                : ret->median_bytes - peaks[i];
    ret->deviation_bytes = median_bytes(apart, n);
    return 0;
}

/* ---- leaks ---- */

/* What is alive at the scene of blocks that the leak's stacks made. */
static uint64_t bytes_alive_of(const struct tmk_leak *leak, const struct tmk_scene *scene)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < scene->n_old_stacks; i++)
        for (uint64_t part = 0; part < leak->n_parts; part++)
            if (leak->parts[part].stack == scene->old_stacks[i].stack) {
                bytes += scene->old_stacks[i].bytes;
                break;
            }
    return bytes;
}

/* True when most of the leak was let go in a step before that of the scene. In the step of the
 * scene, the error itself may have let go of it. */
static bool was_let_go_before(const struct tmk_leak *leak, const struct tmk_scene *scene)
{
    return leak->is_let_go && scene->has_blocks && leak->at_step != TMK_NO_STEP &&
           scene->step != TMK_NO_STEP && leak->at_step < scene->step - 1;
}

/* The bytes that a leak had kept when the scene came; it may have gone on since. */
static uint64_t bytes_leaked_by(const struct tmk_leak *leak, const struct tmk_scene *scene)
{
    if (leak->first_ns > scene->time_ns)
        return 0;
    if (was_let_go_before(leak, scene))
        return bytes_alive_of(leak, scene);
    double bytes = (double)leak->bytes;
    double until = scene->step != TMK_NO_STEP && leak->first_step != TMK_NO_STEP
                       ? ((double)scene->step - (double)leak->first_step + 1) * leak->bytes_per_step
                       : (double)(scene->time_ns - leak->first_ns) / 1e9 * leak->bytes_per_second;
    return tmk_size_whole(until < bytes ? until : bytes);
}

/* Without steps, a program that only fills up may look like a leak. It is one if it kept on
 * growing while several times as much came and went. */
static bool is_leak_believed(const struct tmk_inquirer *q, const struct tmk_leak *leak,
                             uint64_t bytes, const struct tmk_scene *scene)
{
    return tmk_leakage_n_steps(q->leakage) > 0 ||
           (leak->confidence >= 0.8 && scene->turnover_bytes / 4 >= bytes);
}

static void ask_leaks(const struct tmk_inquirer *q, const struct tmk_scene *scene,
                      struct tmk_inquiry *ret)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < tmk_leakage_n(q->leakage); i++) {
        const struct tmk_leak *leak = tmk_leakage_get(q->leakage, i);
        uint64_t bytes = leak->device == scene->device ? bytes_leaked_by(leak, scene) : 0;
        if (!is_leak_believed(q, leak, bytes, scene))
            continue;
        ret->leaked_bytes += bytes;
        if (bytes > most) {
            most = bytes;
            ret->leak = leak;
        }
    }
    /* Leaked memory is alive, so it cannot be more than is allocated. */
    if (ret->leaked_bytes > scene->allocated_bytes)
        ret->leaked_bytes = scene->allocated_bytes;
}

/* There are too few steps for a verdict, but the memory kept grew with each: name the blocks of
 * earlier steps. */
static void ask_short_leak(const struct tmk_inquirer *q, const struct tmk_scene *scene,
                           struct tmk_inquiry *ret)
{
    struct tmk_leak *leak = &ret->short_leak;
    if (tmk_leakage_verdict(q->leakage) != TMK_LEAK_TOO_SHORT || ret->rise_bytes == 0 ||
        scene->n_old == 0)
        return;
    for (uint64_t i = 0; i < scene->n_old; i++)
        ret->leaked_bytes += scene->old[i].bytes;
    *leak = (struct tmk_leak){.device = scene->device,
                              .stack = scene->old[0].stack,
                              .bytes_per_step = (double)ret->rise_bytes,
                              .bytes = ret->leaked_bytes};
    if (__builtin_sub_overflow(scene->step, (int64_t)ret->n_steps, &leak->first_step))
        leak->first_step = scene->step;
    leak->has_site = tmk_stack_site(q->p, leak->stack, &leak->site);
    leak->keeper = leak->has_site ? TMK_KEEPER_CONTAINER : TMK_KEEPER_UNKNOWN;
    ret->leak = leak;
}

/* ---- gaps ---- */

/* Find the line that made most of the blocks that pin segments. */
static int find_pin(const struct tmk_inquirer *q, struct frag_look *look, uint64_t device,
                    const struct tmk_frag_segment **pinned, uint64_t n, struct tmk_inquiry *ret)
{
    const struct tmk_peak_row *rows;
    uint64_t n_rows;
    int rc = tmk_group_open(tmk_fragmentation_labels(look->gaps), TMK_BY_SITE, &look->pins);
    for (uint64_t i = 0; i < n && rc == 0; i++)
        for (uint64_t b = 0; b < pinned[i]->n_blocks; b++)
            tmk_group_add(look->pins,
                          tmk_fragmentation_block(look->gaps, device, pinned[i]->first_block + b));
    if (rc == 0)
        rc = tmk_group_rows(look->pins, &rows, &n_rows);
    if (rc == 0 && n_rows > 0)
        ret->has_pin = tmk_stack_site(q->p, rows[0].stack, &ret->pin);
    return rc;
}

static int ask_gaps(const struct tmk_inquirer *q, struct frag_look *look, struct tmk_inquiry *ret)
{
    const struct tmk_frag_segment *pinned[MAX_PINNED];
    for (uint64_t i = 0; i < tmk_fragmentation_n(look->gaps); i++) {
        const struct tmk_frag_device *d = tmk_fragmentation_get(look->gaps, i);
        if (d->device != look->scene->device || !d->has_segments)
            continue;
        ret->n_pinned = tmk_fragmentation_pinned(look->gaps, i, pinned, MAX_PINNED);
        uint64_t n = ret->n_pinned < MAX_PINNED ? ret->n_pinned : MAX_PINNED;
        for (uint64_t k = 0; k < n; k++)
            ret->pinned_bytes += pinned[k]->free_bytes;
        ret->has_gaps = d->sum.largest_bytes != TMK_BYTES_UNKNOWN;
        for (uint64_t k = 0; k < d->n_segments && !ret->alloc_conf; k++)
            if (d->segments[k]
                    .is_expandable) /* the setting must have been on, whatever else was set */
                ret->alloc_conf = "expandable_segments:True";
        ret->largest_bytes = d->sum.largest_bytes;
        return n ? find_pin(q, look, i, pinned, n, ret) : 0;
    }
    return 0;
}

int tmk_inquirer_ask(struct tmk_inquirer *q, const struct tmk_scene *scene, struct tmk_inquiry *ret,
                     struct tmk_error *err)
{
    *ret = (struct tmk_inquiry){0};
    const struct tmk_whatif *whatif = whatif_of(q, scene->device);
    ret->alloc_conf = whatif ? tmk_whatif_recorded(whatif)->alloc_conf : NULL;
    ask_leaks(q, scene, ret);
    int rc = ask_steps(q, scene, ret);
    if (rc == 0)
        ask_short_leak(q, scene, ret);
    for (uint32_t i = 0; i < q->n_looks && rc == 0; i++)
        if (q->looks[i].scene->time_ns == scene->time_ns &&
            q->looks[i].scene->device == scene->device)
            rc = ask_gaps(q, &q->looks[i], ret);
    return rc < 0 ? tmk_fail(err, rc, "no memory to look into an out-of-memory event") : 0;
}

/* ---- trials ---- */

struct trials { /* of one scene */
    struct tmk_inquirer *q;
    const struct tmk_whatif *whatif;
    const struct tmk_scene *scene;
    uint64_t limit_bytes;
    uint64_t end; /* number of the event at which the job had its OOM, once known */
};

static bool is_here(const struct tmk_whatif_result *r, const struct tmk_scene *scene)
{
    return r->has_oom && r->oom.is_recorded && r->oom.step == scene->step &&
           r->oom.requested_bytes == scene->request_bytes;
}

static int replay_trial(struct trials *t, const struct tmk_alloc_conf *conf,
                        struct tmk_whatif_result *ret, struct tmk_error *err)
{
    struct tmk_whatif_setting setting = {.conf = *conf, .limit_bytes = t->limit_bytes};
    t->q->n_events += tmk_whatif_recorded(t->whatif)->n_events;
    return tmk_whatif_replay(t->whatif, &setting, ret, err);
}

static int fill_trial(struct trials *t, const struct tmk_alloc_conf *conf,
                      const struct tmk_whatif_result *r, bool is_recorded, struct tmk_trial *trial,
                      struct tmk_error *err)
{
    trial->runs_out = r->has_oom && r->oom.event <= t->end;
    trial->runs_out_before = trial->runs_out && (r->oom.event < t->end || !is_here(r, t->scene));
    trial->needs_bytes = TMK_BYTES_UNKNOWN;
    bool is_wanted = !trial->runs_out || (is_recorded && !trial->runs_out_before);
    if (!is_wanted || tmk_whatif_recorded(t->whatif)->n_events > MAX_SEARCHED)
        return 0;
    return tmk_whatif_smallest(t->whatif, conf, &trial->needs_bytes, err);
}

/* Replay with the recorded settings. The limit is only known to lie between two bounds: it is the
 * one at which the replay runs out where the job did, if there is one. Where the lower bound is
 * too little for the replay, the interval is halved. */
static int try_recorded_conf(struct trials *t, const struct tmk_alloc_conf *conf,
                             uint64_t below_bytes, struct tmk_trial *trial, struct tmk_error *err)
{
    struct tmk_whatif_result r;
    uint64_t low = t->limit_bytes, high = below_bytes > low ? below_bytes - 1 : low;
    int rc = replay_trial(t, conf, &r, err);
    for (int i = 0; i < MAX_HALVES && rc == 0 && low < high && !is_here(&r, t->scene); i++) {
        bool is_too_little = r.has_oom && !r.oom.is_recorded;
        if (i > 0 && !is_too_little)
            high = t->limit_bytes;
        else if (is_too_little)
            low = t->limit_bytes;
        else
            break; /* even the least is more than it needs */
        t->limit_bytes = i == 0 ? high : low + (high - low) / 2;
        rc = replay_trial(t, conf, &r, err);
    }
    if (rc < 0)
        return rc;
    if (is_here(&r, t->scene))
        t->end = r.oom.event;
    return fill_trial(t, conf, &r, true, trial, err);
}

static int try_other_confs(struct trials *t, const char *recorded, struct tmk_inquiry *inquiry,
                           struct tmk_error *err)
{
    static const char *const confs[] = {"",
                                        "expandable_segments:True",
                                        "max_split_size_mb:32",
                                        "max_split_size_mb:64",
                                        "max_split_size_mb:128",
                                        "max_split_size_mb:256",
                                        "max_split_size_mb:512"};
    _Static_assert(TMK_N(confs) < TMK_MAX_TRIALS, "and the recorded ones");
    for (size_t i = 0; i < TMK_N(confs); i++) {
        struct tmk_alloc_conf conf;
        struct tmk_whatif_result r;
        if (strcmp(confs[i], recorded) == 0)
            continue;
        int rc = tmk_alloc_conf_parse(confs[i], &conf, err);
        if (rc == 0)
            rc = replay_trial(t, &conf, &r, err);
        struct tmk_trial *trial = &inquiry->trials[inquiry->n_trials];
        trial->conf = confs[i];
        if (rc == 0)
            rc = fill_trial(t, &conf, &r, false, trial, err);
        if (rc < 0)
            return rc;
        inquiry->n_trials++;
    }
    return 0;
}

int tmk_inquirer_try(struct tmk_inquirer *q, const struct tmk_scene *scene,
                     const struct tmk_oom_verdict *verdict, struct tmk_inquiry *inquiry,
                     struct tmk_error *err)
{
    struct trials t = {.q = q,
                       .whatif = whatif_of(q, scene->device),
                       .scene = scene,
                       .limit_bytes = verdict->limit_bytes,
                       .end = UINT64_MAX};
    const char *recorded = inquiry->alloc_conf ? inquiry->alloc_conf : "";
    struct tmk_alloc_conf conf;
    bool is_for_it = scene->kind == TMK_SCENE_OOM && scene->is_first && !scene->is_of_driver &&
                     t.whatif && scene->reserved_bytes != TMK_BYTES_UNKNOWN;
    if (!is_for_it || tmk_whatif_recorded(t.whatif)->is_async || q->n_events > MAX_EVENTS ||
        tmk_alloc_conf_parse(recorded, &conf, NULL) < 0)
        return 0;
    int rc = try_recorded_conf(&t, &conf, verdict->limit_below_bytes, &inquiry->trials[0], err);
    if (rc < 0)
        return rc;
    inquiry->trials[0].conf = recorded;
    inquiry->n_trials = 1;
    return t.end == UINT64_MAX ? 0 : try_other_confs(&t, recorded, inquiry, err);
}
