/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_scene.c - see oom_scene.h.
 *
 * When the driver fails a request of torch's allocator, the request stays pending until its
 * outcome is known: the allocator's own OOM, or the next block on that device. */
#include "passes/oom/oom_scene.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "model/holders.h"
#include "model/owners.h"
#include "passes/oom/ooms.h"
#include "passes/segment_sums.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { N_CARDS = TMK_MAX_DEVICES + 1 };

/* The blocks that may be looked at in all: this bounds the time that a storm of errors costs. */
#define MAX_LOOKED_AT 50000000u

struct scene_place { /* a scene, and what its names are borrowed from */
    struct tmk_scene scene;
    struct tmk_labels labels;
    struct tmk_group *activations, *old, *old_stacks;
    const char **entered;
    bool is_taken;
};

struct entered_module { /* by the number of its name */
    uint64_t step;      /* the last one that it was entered in, counted from 1; 0: never */
    uint32_t n_open;    /* how often it is open now */
};

struct scene_device { /* by device number, which alone tells a process's devices apart; the host
                         comes last */
    struct tmk_sample_body seen; /* own and others as last told: not every sample tells them */
    bool was_seen, is_pending;
    uint64_t sampled_reserved; /* the allocator's reserved bytes at that sample */
    uint64_t first_others_bytes;
    uint64_t pending_bytes; /* requested by torch's allocator and failed by the driver */
    uint64_t n_retries;
    uint64_t turnover_bytes;
    bool had_oom;
    struct scene_place near;
};

struct tmk_scenes {
    const struct tmk_process *p;
    struct tmk_segment_sums *sums;
    struct scene_place kept[TMK_MAX_SCENES];
    struct scene_device cards[N_CARDS];
    const struct tmk_scene *found[TMK_MAX_SCENES + N_CARDS];
    uint64_t n_ooms, n_kept, n_found, n_looked_at;
    struct entered_module *modules;
    uint32_t n_modules;
    uint64_t n_steps;                   /* that began, and 1 */
    uint32_t n_forwards, most_forwards; /* as in tmk_scene */
    bool failed;
};

static void forget_scene(struct scene_place *k)
{
    tmk_group_close(k->activations);
    tmk_group_close(k->old);
    tmk_group_close(k->old_stacks);
    free(k->entered);
    tmk_labels_fini(&k->labels);
    *k = (struct scene_place){0};
}

static struct scene_device *scene_device_of(struct tmk_scenes *s, uint16_t device)
{
    bool is_host = device == TIDEMARK_HOST;
    return &s->cards[is_host ? TMK_MAX_DEVICES : (device & 0xff) % TMK_MAX_DEVICES];
}

/* ---- forwards and modules ---- */

static struct entered_module *entered_module_of(struct tmk_scenes *s, uint32_t name)
{
    if (name >= s->n_modules) {
        uint32_t n = name + 1 > 2 * s->n_modules ? name + 1 : 2 * s->n_modules;
        struct entered_module *more = reallocarray(s->modules, n, sizeof *more);
        if (!more) {
            s->failed = true;
            return NULL;
        }
        memset(more + s->n_modules, 0, (n - s->n_modules) * sizeof *more);
        s->modules = more;
        s->n_modules = n;
    }
    return &s->modules[name];
}

static void note_stage(struct tmk_scenes *s, const char *name)
{
    enum tmk_stage stage = name ? tmk_stage_of(name) : TMK_STAGE_NONE;
    if (stage == TMK_STAGE_FORWARD || stage == TMK_STAGE_EVAL)
        s->n_forwards++;
    if (stage != TMK_STAGE_BACKWARD)
        return;
    if (s->n_forwards > s->most_forwards)
        s->most_forwards = s->n_forwards;
    s->n_forwards = 0;
}

static void note_range(struct tmk_scenes *s, const struct tmk_event *ev)
{
    const char *name = tmk_reader_string(s->p->reader, ev->name);
    if (ev->range_kind == TIDEMARK_STAGE)
        note_stage(s, name);
    if (ev->range_kind != TIDEMARK_MODULE || !name)
        return;
    struct entered_module *m = entered_module_of(s, ev->name);
    if (m) {
        m->step = s->n_steps;
        m->n_open++;
    }
}

static void note_range_end(struct tmk_scenes *s, const struct tmk_replay *rp)
{
    if (rp->closed.kind == TIDEMARK_MODULE && rp->closed.name < s->n_modules &&
        s->modules[rp->closed.name].n_open > 0)
        s->modules[rp->closed.name].n_open--;
}

static void note_scene_step(struct tmk_scenes *s)
{
    s->n_steps++;
    s->n_forwards = 0;
}

/* List the modules that this step has entered and left. */
static void list_entered_modules(struct tmk_scenes *s, struct scene_place *k)
{
    uint32_t n = 0;
    k->entered = calloc(s->n_modules ? s->n_modules : 1, sizeof *k->entered);
    if (!k->entered) {
        s->failed = true;
        return;
    }
    for (uint32_t i = 0; i < s->n_modules; i++) {
        const char *name = s->modules[i].step == s->n_steps && s->modules[i].n_open == 0
                               ? tmk_reader_string(s->p->reader, i)
                               : NULL;
        if (name)
            k->entered[n++] = name;
    }
    k->scene.entered = k->entered;
    k->scene.n_entered = n;
}

bool tmk_scene_keeps_graphs(const struct tmk_scene *s)
{
    bool is_evaluation = s->eval_activation_bytes > s->category_bytes[TIDEMARK_ACTIVATION] / 2;
    uint32_t least = is_evaluation ? 2 : 3, usual = is_evaluation ? 0 : s->most_forwards;
    return s->has_blocks && s->category_bytes[TIDEMARK_ACTIVATION] > 0 && s->n_forwards >= least &&
           s->n_forwards > 2 * usual && (is_evaluation || usual > 0);
}

/* ---- taking a scene ---- */

/* True for blocks made two steps ago or earlier that are not kept on purpose. */
static bool is_old_block(const struct tmk_scene *scene, const struct tmk_block *b, uint8_t category)
{
    return b->step != TMK_NO_STEP && scene->step != TMK_NO_STEP && b->step < scene->step - 1 &&
           category != TIDEMARK_PARAMETER && category != TIDEMARK_GRADIENT &&
           category != TIDEMARK_OPTIMIZER_STATE && category != TIDEMARK_BUFFER;
}

static int add_up_blocks(struct scene_place *k, const struct tmk_process *p,
                         const struct tmk_state *s)
{
    struct tmk_scene *scene = &k->scene;
    int rc = tmk_labels_init(&k->labels, p, s);
    if (rc == 0)
        rc = tmk_group_open(&k->labels, TMK_BY_MODULE, &k->activations);
    if (rc == 0)
        rc = tmk_group_open(&k->labels, TMK_BY_SITE, &k->old);
    if (rc == 0)
        rc = tmk_group_open(&k->labels, TMK_BY_STACK, &k->old_stacks);
    for (uint32_t i = 1; i <= s->n_entries && rc == 0; i++) {
        if (!s->entries[i].live || s->entries[i].device != scene->device)
            continue;
        struct tmk_block b = tmk_state_settled(s, &s->entries[i]);
        uint8_t category = tmk_block_category(p, k->labels.contexts, &b);
        if (category >= TMK_SCENE_CATEGORIES)
            category = TIDEMARK_UNKNOWN;
        scene->category_bytes[category] += b.size_bytes;
        if (is_old_block(scene, &b, category)) {
            tmk_group_add(k->old, &b);
            tmk_group_add(k->old_stacks, &b);
        }
        if (category != TIDEMARK_ACTIVATION)
            continue;
        tmk_group_add(k->activations, &b);
        const char *stage = b.context ? tmk_context_stage(p, s, b.context) : NULL;
        if (stage && tmk_stage_of(stage) == TMK_STAGE_EVAL)
            scene->eval_activation_bytes += b.size_bytes;
        if (b.size_bytes > scene->largest_activation_bytes)
            scene->largest_activation_bytes = b.size_bytes;
    }
    scene->has_blocks = rc == 0;
    return rc;
}

/* Note what the framework's allocator reports, and what all owners have of the driver. */
static void look_at_process(const struct tmk_scenes *s, const struct tmk_state *state,
                            struct tmk_scene *scene)
{
    scene->reserved_bytes = scene->max_reserved_bytes = TMK_BYTES_UNKNOWN;
    for (uint32_t i = 0; i < state->n_devices; i++) {
        const struct tmk_device_use *d = &state->devices[i];
        if (d->device != scene->device)
            continue;
        scene->allocated_bytes = d->allocated_bytes;
        if (d->has_reserved) {
            scene->reserved_bytes = d->reserved_bytes;
            scene->max_reserved_bytes = d->max_reserved_bytes;
        }
    }
    for (uint32_t i = 0; i < s->sums->n_devices; i++) {
        const struct tmk_device_sums *d = &s->sums->devices[i];
        if (d->device != scene->device)
            continue;
        scene->segment_bytes = d->bytes;
        scene->sees_driver = d->owners[TMK_SUMS_TORCH].n_segments > 0;
    }
}

/* a - b, where both are known and it is not negative. */
static uint64_t known_difference(uint64_t a, uint64_t b)
{
    bool is_known = a != TMK_BYTES_UNKNOWN && b != TMK_BYTES_UNKNOWN && a >= b;
    return is_known ? a - b : TMK_BYTES_UNKNOWN;
}

static void look_at_scene_device(const struct scene_device *c, struct tmk_scene *scene)
{
    bool is_known = c->was_seen;
    scene->card_total_bytes = is_known ? c->seen.total_bytes : TMK_BYTES_UNKNOWN;
    scene->card_used_bytes = is_known ? c->seen.used_bytes : TMK_BYTES_UNKNOWN;
    scene->own_bytes = is_known ? c->seen.own_bytes : TMK_BYTES_UNKNOWN;
    scene->others_bytes = is_known ? c->seen.others_bytes : TMK_BYTES_UNKNOWN;
    scene->others_first_bytes = is_known ? c->first_others_bytes : TMK_BYTES_UNKNOWN;
    if (scene->card_free_bytes == TMK_BYTES_UNKNOWN)
        scene->card_free_bytes = known_difference(scene->card_total_bytes, scene->card_used_bytes);
    scene->outside_bytes = known_difference(scene->own_bytes, is_known ? c->sampled_reserved : 0);
}

static void take_scene(struct tmk_scenes *s, struct scene_place *k, const struct tmk_replay *rp,
                       const struct tmk_event *ev, struct tmk_scene scene)
{
    const struct tmk_state *state = &rp->state;
    uint32_t context = tmk_state_thread_context(state, ev->thread);
    forget_scene(k);
    k->is_taken = true;
    scene.time_ns = ev->time_ns;
    scene.step = state->step;
    scene.times = 1;
    scene.turnover_bytes = scene_device_of(s, scene.device)->turnover_bytes;
    scene.module = context ? tmk_context_module(s->p, state, context) : NULL;
    scene.stage = context ? tmk_context_stage(s->p, state, context) : NULL;
    scene.stage_kind = scene.stage ? tmk_stage_of(scene.stage) : TMK_STAGE_NONE;
    scene.n_forwards = s->n_forwards;
    scene.most_forwards = s->most_forwards;
    look_at_process(s, state, &scene);
    look_at_scene_device(scene_device_of(s, scene.device), &scene);
    k->scene = scene;
    list_entered_modules(s, k);
    s->n_looked_at += state->n_entries;
    if (s->n_looked_at <= MAX_LOOKED_AT && add_up_blocks(k, s->p, state) < 0)
        s->failed = true;
}

static void take_oom(struct tmk_scenes *s, const struct tmk_replay *rp, const struct tmk_event *ev)
{
    struct scene_device *c = scene_device_of(s, ev->device);
    struct tmk_scene scene = {
        .kind = TMK_SCENE_OOM,
        .device = ev->device,
        .is_first = !c->had_oom,
        .request_bytes = ev->size_bytes,
        .is_of_driver = ev->is_of_driver,
        .driver_refused = c->is_pending || ev->is_of_driver,
        .stated_bytes = ev->capacity_bytes ? ev->capacity_bytes : TMK_BYTES_UNKNOWN,
        .tells_free = ev->free_bytes != TMK_BYTES_UNKNOWN,
        .card_free_bytes = ev->free_bytes,
    };
    const char *owner = ev->is_of_driver ? tmk_holders_get(s->sums->holders, ev->stack)->owner : "";
    scene.owner = owner[0] ? owner : NULL;
    scene.has_site = tmk_stack_site(s->p, ev->stack, &scene.site);
    c->is_pending = false;
    c->had_oom = true;
    s->n_ooms++;
    take_scene(s, &s->kept[s->n_kept < TMK_MAX_SCENES ? s->n_kept++ : TMK_MAX_SCENES - 1], rp, ev,
               scene);
}

/* ---- near misses ---- */

/* Keep one near miss per device: a request that the driver failed tells more than a sample, and
 * the larger of two samples more than the other. */
static void take_near_scene(struct tmk_scenes *s, const struct tmk_replay *rp,
                            const struct tmk_event *ev, enum tmk_scene_kind kind, uint64_t bytes)
{
    struct scene_device *c = scene_device_of(s, ev->device);
    struct tmk_scene scene = {.kind = kind,
                              .device = ev->device,
                              .request_bytes = bytes,
                              .driver_refused = kind == TMK_SCENE_RETRY,
                              .stated_bytes = TMK_BYTES_UNKNOWN,
                              .card_free_bytes = TMK_BYTES_UNKNOWN};
    take_scene(s, &c->near, rp, ev, scene);
}

static uint64_t reserved_bytes_on(const struct tmk_state *state, uint16_t device)
{
    for (uint32_t i = 0; i < state->n_devices; i++)
        if (state->devices[i].device == device && state->devices[i].has_reserved)
            return state->devices[i].reserved_bytes;
    return 0;
}

static void note_scene_sample(struct tmk_scenes *s, const struct tmk_replay *rp,
                              const struct tmk_event *ev)
{
    struct scene_device *c = scene_device_of(s, ev->device);
    const struct tmk_sample_body *now = &ev->sample;
    const struct tmk_scene *near = &c->near.scene;
    if (!c->was_seen)
        c->seen = *now;
    if (!c->was_seen || c->first_others_bytes == TMK_BYTES_UNKNOWN)
        c->first_others_bytes = now->others_bytes;
    c->was_seen = true;
    c->seen.used_bytes = now->used_bytes;
    c->seen.total_bytes = now->total_bytes;
    if (now->others_bytes != TMK_BYTES_UNKNOWN)
        c->seen.others_bytes = now->others_bytes;
    if (now->own_bytes != TMK_BYTES_UNKNOWN) {
        c->seen.own_bytes = now->own_bytes;
        c->sampled_reserved = reserved_bytes_on(&rp->state, ev->device);
    }
    uint64_t percent = now->total_bytes / 100;
    bool is_full = now->used_bytes != TMK_BYTES_UNKNOWN && now->total_bytes != TMK_BYTES_UNKNOWN &&
                   percent > 0 && now->used_bytes / percent >= TMK_NEAR_PERCENT;
    bool is_more = !c->near.is_taken || (near->kind == TMK_SCENE_FULL &&
                                         now->used_bytes > near->card_used_bytes + percent / 2);
    if (is_full && is_more && !c->had_oom)
        take_near_scene(s, rp, ev, TMK_SCENE_FULL, 0);
}

/* A block came where a request had failed before: the allocator made room. */
static void note_retry(struct tmk_scenes *s, struct scene_device *c, const struct tmk_replay *rp,
                       const struct tmk_event *ev)
{
    c->is_pending = false;
    c->n_retries++;
    if (!c->had_oom)
        take_near_scene(s, rp, ev, TMK_SCENE_RETRY, c->pending_bytes);
}

/* ---- the sweep ---- */

static void on_scene_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                           struct tmk_block *b)
{
    (void)b;
    struct tmk_scenes *s = arg;
    tmk_segment_sums_event(s->sums, rp, ev);
    if (ev->kind == TMK_KIND_ALLOC) {
        struct scene_device *c = scene_device_of(s, ev->device);
        c->turnover_bytes += ev->size_bytes;
        if (__builtin_expect(c->is_pending, 0))
            note_retry(s, c, rp, ev);
    } else if (ev->kind == TMK_KIND_PUSH) {
        note_range(s, ev);
    } else if (ev->kind == TMK_KIND_POP) {
        note_range_end(s, rp);
    } else if (ev->kind == TMK_KIND_STEP) {
        note_scene_step(s);
    } else if (ev->kind == TMK_KIND_SAMPLE) {
        note_scene_sample(s, rp, ev);
    } else if (ev->kind == TMK_KIND_OOM && tmk_oom_is_first_try(s->sums->holders, ev)) {
        scene_device_of(s, ev->device)->is_pending = true;
        scene_device_of(s, ev->device)->pending_bytes = ev->size_bytes;
    } else if (ev->kind == TMK_KIND_OOM) {
        take_oom(s, rp, ev);
    }
}

static void on_scene_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_scenes *s = arg;
    tmk_segment_sums_restored(s->sums, rp);
}

struct tmk_visitor tmk_scenes_visitor(struct tmk_scenes *s)
{
    return (struct tmk_visitor){.arg = s,
                                .kinds = TMK_SEGMENT_SUMS_KINDS | TMK_HEARS(ALLOC) |
                                         TMK_HEARS(SAMPLE) | TMK_HEARS(OOM) | TMK_HEARS(PUSH) |
                                         TMK_HEARS(POP) | TMK_HEARS(STEP),
                                .event = on_scene_event,
                                .restored = on_scene_restored};
}

static void settle_scene(struct tmk_scenes *s, struct scene_place *k)
{
    struct tmk_scene *scene = &k->scene;
    if (scene->has_blocks &&
        (tmk_group_rows(k->activations, &scene->activations, &scene->n_activations) < 0 ||
         tmk_group_rows(k->old, &scene->old, &scene->n_old) < 0 ||
         tmk_group_rows(k->old_stacks, &scene->old_stacks, &scene->n_old_stacks) < 0))
        s->failed = true;
    s->found[s->n_found++] = scene;
}

int tmk_scenes_finish(struct tmk_scenes *s, struct tmk_error *err)
{
    for (uint64_t i = 0; i < s->n_kept; i++)
        settle_scene(s, &s->kept[i]);
    for (uint32_t i = 0; i < N_CARDS; i++) {
        struct scene_device *c = &s->cards[i];
        if (!c->near.is_taken || c->had_oom)
            continue;
        if (c->near.scene.kind == TMK_SCENE_RETRY)
            c->near.scene.times = c->n_retries;
        settle_scene(s, &c->near);
    }
    bool failed = s->failed || tmk_segment_sums_check(s->sums) < 0;
    return failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the out-of-memory events") : 0;
}

uint64_t tmk_scenes_n_ooms(const struct tmk_scenes *s)
{
    return s->n_ooms;
}

uint64_t tmk_scenes_n(const struct tmk_scenes *s)
{
    return s->n_found;
}

const struct tmk_scene *tmk_scenes_get(const struct tmk_scenes *s, uint64_t i)
{
    return s->found[i];
}

int tmk_scenes_open(const struct tmk_process *p, struct tmk_scenes **ret_scenes)
{
    struct tmk_scenes *s = calloc(1, sizeof *s);
    if (!s)
        return TMK_ENOMEM;
    s->p = p;
    s->n_steps = 1;
    int rc = tmk_segment_sums_open(p, &s->sums);
    if (rc < 0) {
        free(s);
        return rc;
    }
    *ret_scenes = s;
    return 0;
}

struct tmk_scenes *tmk_scenes_close(struct tmk_scenes *s)
{
    if (!s)
        return NULL;
    for (int i = 0; i < TMK_MAX_SCENES; i++)
        forget_scene(&s->kept[i]);
    for (int i = 0; i < N_CARDS; i++)
        forget_scene(&s->cards[i].near);
    tmk_segment_sums_close(s->sums);
    free(s->modules);
    free(s);
    return NULL;
}
