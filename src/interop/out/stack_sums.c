/* SPDX-License-Identifier: MIT */
/* interop/out/stack_sums.c - see stack_sums.h. */
#include "interop/out/stack_sums.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "model/run.h"
#include "passes/peak.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

struct sums_sweep {
    struct tmk_stack_sums *sums;
    const struct tmk_process *p;
    uint16_t device;
};

static void add_saturated(uint64_t *sum, uint64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum))
        *sum = UINT64_MAX;
}

static void add_to_stack(const struct sums_sweep *w, enum tmk_export_what what,
                         const struct tmk_block *b)
{
    struct tmk_stack frames;
    bool is_known = b->stack < w->sums->n && tmk_reader_stack(w->p->reader, b->stack, &frames);
    struct tmk_stack_sum *s = &w->sums->stacks[is_known ? b->stack : 0];
    add_saturated(&s->bytes[what], b->size_bytes);
    s->n_blocks[what]++;
    add_saturated(&w->sums->total.bytes[what], b->size_bytes);
    w->sums->total.n_blocks[what]++;
}

static void on_sums_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    const struct sums_sweep *w = arg;
    (void)rp;
    if (ev->kind == TMK_KIND_ALLOC && b && ev->device == w->device)
        add_to_stack(w, TMK_EXPORT_ALLOCATED, b);
}

static void add_found(const struct sums_sweep *w, const struct tmk_peak *peak,
                      const struct tmk_state *s)
{
    for (uint64_t i = 0; i < tmk_peak_n_blocks(peak); i++)
        add_to_stack(w, TMK_EXPORT_AT, tmk_peak_block(peak, i));
    for (uint32_t i = 1; i <= s->n_entries; i++)
        if (s->entries[i].live && s->entries[i].device == w->device)
            add_to_stack(w, TMK_EXPORT_LEFT, &s->entries[i]);
}

static int sweep_stacks(const struct tmk_export *x, const struct sums_sweep *w,
                        struct tmk_peak *peak, struct tmk_error *err)
{
    struct tmk_replay rp = {0};
    struct tmk_visitor all[] = {
        {.arg = (void *)(uintptr_t)w, .event = on_sums_event}, tmk_peak_visitor(peak), x->progress};
    int rc = tmk_process_sweep(x->p, all, 3, &rp, err);
    if (rc < 0)
        return rc;
    rc = tmk_peak_finish(peak, &rp, err);
    if (rc == 0)
        add_found(w, peak, &rp.state);
    tmk_replay_fini(&rp);
    return rc;
}

int tmk_stack_sums_make(const struct tmk_export *x, struct tmk_stack_sums *ret,
                        struct tmk_error *err)
{
    struct tmk_peak *peak = NULL;
    *ret = (struct tmk_stack_sums){.n = tmk_reader_n_stacks(x->p->reader) + 1};
    struct sums_sweep w = {.sums = ret, .p = x->p, .device = x->device};
    ret->stacks = calloc(ret->n, sizeof *ret->stacks);
    int rc = ret->stacks ? tmk_peak_open(x->p, &x->moment, &peak) : TMK_ENOMEM;
    rc = rc < 0 ? tmk_fail(err, rc, "no memory for the stacks") : sweep_stacks(x, &w, peak, err);
    if (rc == 0 && tmk_peak_found(peak)) {
        ret->is_found = true;
        ret->at_ns = tmk_peak_time_ns(peak) + x->p->offset_ns;
    }
    tmk_peak_close(peak);
    return rc;
}

int tmk_stack_sums_check(const struct tmk_export *x, const struct tmk_stack_sums *s,
                         struct tmk_error *err)
{
    char step[24];
    if (x->what != TMK_EXPORT_AT || s->is_found)
        return 0;
    snprintf(step, sizeof step, "%" PRId64, x->moment.step);
    if (x->moment.kind == TMK_MOMENT_STEP)
        return tmk_fail(err, TMK_ENOENT, "there is no step %s in %s", step, x->p->file);
    if (x->moment.kind == TMK_MOMENT_TIME)
        return tmk_fail(err, TMK_ENOENT, "the detail of that time is no longer in %s", x->p->file);
    return tmk_fail(err, TMK_ENOENT, "no block was ever allocated in %s", x->p->file);
}

void tmk_stack_sums_fini(struct tmk_stack_sums *s)
{
    free(s->stacks);
    s->stacks = NULL;
}
