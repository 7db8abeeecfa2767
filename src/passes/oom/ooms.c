/* SPDX-License-Identifier: MIT */
/* passes/oom/ooms.c - see ooms.h. */
#include "passes/oom/ooms.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "passes/segment_sums.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { MAX_KEPT = 16, N_GROUPS = 3 };

/* The blocks that may be looked at in all: this bounds the time that a storm of errors costs. */
#define MAX_LOOKED_AT 50000000u

static const enum tmk_by kinds[N_GROUPS] = {TMK_BY_CATEGORY, TMK_BY_MODULE, TMK_BY_SITE};

struct kept {
    struct tmk_oom oom;
    struct tmk_labels labels;
    struct tmk_group *groups[N_GROUPS];
};

struct tmk_ooms {
    const struct tmk_process *p;
    struct tmk_segment_sums *sums;
    struct kept kept[MAX_KEPT];
    uint64_t n, n_kept, n_looked_at;
    struct tmk_sample_body seen[TMK_MAX_DEVICES]; /* last, by number */
    bool was_seen[TMK_MAX_DEVICES];
    struct tmk_near_miss near_misses[TMK_MAX_DEVICES]; /* by number; total_bytes 0: no sample */
    bool failed;
};

static void forget_kept_oom(struct kept *k)
{
    for (int g = 0; g < N_GROUPS; g++)
        tmk_group_close(k->groups[g]);
    tmk_labels_fini(&k->labels);
    *k = (struct kept){0};
}

static void look_at_device_use(const struct tmk_state *s, struct tmk_oom *oom)
{
    oom->reserved_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct tmk_device_use *d = &s->devices[i];
        if (d->device != oom->device)
            continue;
        oom->allocated_bytes = d->allocated_bytes;
        oom->reserved_bytes = d->has_reserved ? d->reserved_bytes : UINT64_MAX;
    }
}

static int add_up_holders(struct kept *k, const struct tmk_process *p, const struct tmk_state *s)
{
    int rc = tmk_labels_init(&k->labels, p, s);
    for (int g = 0; g < N_GROUPS && rc == 0; g++) {
        rc = tmk_group_open(&k->labels, kinds[g], &k->groups[g]);
        for (uint32_t i = 1; i <= s->n_entries && rc == 0; i++) {
            struct tmk_block settled = tmk_state_settled(s, &s->entries[i]);
            if (settled.live && settled.device == k->oom.device)
                tmk_group_add(k->groups[g], &settled);
        }
    }
    return rc;
}

static uint64_t held_bytes_on(const struct tmk_segment_sums *sums, uint16_t device)
{
    for (uint32_t i = 0; i < sums->n_devices; i++)
        if (sums->devices[i].device == device)
            return sums->devices[i].bytes;
    return 0;
}

/* The device number alone tells a process's devices apart. */
static void note_oom_sample(struct tmk_ooms *o, const struct tmk_event *ev)
{
    unsigned number = (ev->device & 0xff) % TMK_MAX_DEVICES;
    o->seen[number] = ev->sample;
    o->was_seen[number] = true;
    struct tmk_near_miss *near = &o->near_misses[number];
    const struct tmk_sample_body *now = &ev->sample;
    bool is_known = now->used_bytes != UINT64_MAX && now->total_bytes != UINT64_MAX;
    if (is_known && (near->total_bytes == 0 || now->used_bytes > near->used_bytes)) {
        near->device = ev->device;
        near->used_bytes = now->used_bytes;
        near->total_bytes = now->total_bytes;
    }
}

static void note_first_try(struct tmk_ooms *o, const struct tmk_event *ev)
{
    struct tmk_near_miss *near = &o->near_misses[(ev->device & 0xff) % TMK_MAX_DEVICES];
    near->device = ev->device;
    near->requested_bytes = ev->size_bytes;
    near->n_retries++;
}

static void look_at_oom_device(const struct tmk_ooms *o, struct tmk_oom *oom)
{
    unsigned number = (oom->device & 0xff) % TMK_MAX_DEVICES;
    bool is_known = o->was_seen[number] && oom->device != TIDEMARK_HOST;
    oom->used_bytes = is_known ? o->seen[number].used_bytes : UINT64_MAX;
    oom->total_bytes = is_known ? o->seen[number].total_bytes : UINT64_MAX;
}

bool tmk_oom_is_first_try(struct tmk_holders *holders, const struct tmk_event *ev)
{
    return ev->is_of_driver && ev->device != TIDEMARK_HOST &&
           strcmp(tmk_holders_get(holders, ev->stack)->owner, "torch") == 0;
}

static void on_oom_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                         struct tmk_block *b)
{
    (void)b;
    struct tmk_ooms *o = arg;
    const struct tmk_state *s = &rp->state;
    if (ev->kind == TMK_KIND_SAMPLE)
        note_oom_sample(o, ev);
    tmk_segment_sums_event(o->sums, rp, ev);
    if (ev->kind != TMK_KIND_OOM)
        return;
    if (tmk_oom_is_first_try(o->sums->holders, ev)) {
        note_first_try(o, ev);
        return;
    }
    o->n++;
    struct kept *k = &o->kept[o->n_kept < MAX_KEPT ? o->n_kept++ : MAX_KEPT - 1];
    forget_kept_oom(k);
    uint32_t context = tmk_state_thread_context(s, ev->thread);
    k->oom = (struct tmk_oom){
        .time_ns = ev->time_ns,
        .step = s->step,
        .device = ev->device,
        .requested_bytes = ev->size_bytes,
        .capacity_bytes = ev->capacity_bytes,
        .free_bytes = ev->free_bytes,
        .is_of_driver = ev->is_of_driver,
        .segment_bytes = held_bytes_on(o->sums, ev->device),
        .module = context ? tmk_context_module(o->p, s, context) : NULL,
        .stage = context ? tmk_context_stage(o->p, s, context) : NULL,
    };
    look_at_device_use(s, &k->oom);
    look_at_oom_device(o, &k->oom);
    k->oom.has_site = tmk_stack_site(o->p, ev->stack, &k->oom.site);
    o->n_looked_at += s->n_entries;
    if (o->n_looked_at <= MAX_LOOKED_AT && add_up_holders(k, o->p, s) < 0)
        o->failed = true;
}

static void on_ooms_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_ooms *o = arg;
    tmk_segment_sums_restored(o->sums, rp);
}

struct tmk_visitor tmk_ooms_visitor(struct tmk_ooms *o)
{
    return (struct tmk_visitor){.arg = o,
                                .kinds =
                                    TMK_SEGMENT_SUMS_KINDS | TMK_HEARS(SAMPLE) | TMK_HEARS(OOM),
                                .event = on_oom_event,
                                .restored = on_ooms_restored};
}

int tmk_ooms_finish(struct tmk_ooms *o, struct tmk_error *err)
{
    bool failed = o->failed || tmk_segment_sums_check(o->sums) < 0;
    return failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the out-of-memory events") : 0;
}

uint64_t tmk_ooms_n(const struct tmk_ooms *o)
{
    return o->n;
}

uint64_t tmk_ooms_n_kept(const struct tmk_ooms *o)
{
    return o->n_kept;
}

const struct tmk_oom *tmk_ooms_get(const struct tmk_ooms *o, uint64_t i)
{
    return &o->kept[i].oom;
}

/* As full as explain takes note of. */
static bool is_almost_full(const struct tmk_near_miss *near)
{
    uint64_t percent = near->total_bytes / 100;
    return percent > 0 && near->used_bytes / percent >= TMK_NEAR_PERCENT;
}

bool tmk_ooms_near_miss(const struct tmk_ooms *o, struct tmk_near_miss *ret)
{
    const struct tmk_near_miss *best = NULL;
    for (int i = 0; i < TMK_MAX_DEVICES && o->n == 0; i++) {
        const struct tmk_near_miss *near = &o->near_misses[i];
        if ((near->n_retries > 0 || is_almost_full(near)) &&
            (!best || near->n_retries > best->n_retries))
            best = near;
    }
    if (best)
        *ret = *best;
    return best != NULL;
}

int tmk_ooms_holders(const struct tmk_ooms *o, uint64_t i, enum tmk_by by,
                     const struct tmk_peak_row **ret_rows, uint64_t *ret_n)
{
    for (int g = 0; g < N_GROUPS; g++)
        if (kinds[g] == by && o->kept[i].groups[g])
            return tmk_group_rows(o->kept[i].groups[g], ret_rows, ret_n);
    *ret_rows = NULL;
    *ret_n = 0;
    return 0;
}

int tmk_ooms_open(const struct tmk_process *p, struct tmk_ooms **ret_ooms)
{
    struct tmk_ooms *o = calloc(1, sizeof *o);
    if (!o)
        return TMK_ENOMEM;
    o->p = p;
    int rc = tmk_segment_sums_open(p, &o->sums);
    if (rc < 0) {
        free(o);
        return rc;
    }
    *ret_ooms = o;
    return 0;
}

struct tmk_ooms *tmk_ooms_close(struct tmk_ooms *o)
{
    if (!o)
        return NULL;
    for (int i = 0; i < MAX_KEPT; i++)
        forget_kept_oom(&o->kept[i]);
    tmk_segment_sums_close(o->sums);
    free(o);
    return NULL;
}
