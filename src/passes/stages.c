/* SPDX-License-Identifier: MIT */
/* passes/stages.c - see stages.h.
 *
 * Stages are known by the ids of their names; a process has few. The open ranges of each name are
 * counted; after a gap, they are counted anew from the state's ranges. Memory that was allocated
 * in no stage goes to the stage that its stack indicates (a model being loaded, a data loader),
 * or to "other"; such rows were never opened, unless there is a range of that name too. */
#include "passes/stages.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/grow.h"
#include "model/owners.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

static const char other[] = "other";

enum { MOST_STAGES = 256 }; /* names; further ones are "other" */

struct stage {
    struct tmk_stage_row row;
    uint32_t n_open;
    uint64_t open_ns; /* when the first of the open ranges opened */
};

struct tmk_stages {
    const struct tmk_process *p;
    uint16_t device;
    struct stage *stages;
    uint64_t n, room;
    uint64_t bytes; /* allocated on the device now */
    bool failed;
};

/* ---- rows ---- */

static struct stage *stage_of(struct tmk_stages *s, const char *name)
{
    for (uint64_t i = 0; i < s->n; i++)
        if (strcmp(s->stages[i].row.name, name) == 0)
            return &s->stages[i];
    if (s->n >= MOST_STAGES && strcmp(name, other) != 0)
        return stage_of(s, other);
    if (TMK_GROW(s->stages, s->n + 1, s->room) < 0) {
        s->failed = true;
        return NULL;
    }
    s->stages[s->n] = (struct stage){.row.name = name};
    return &s->stages[s->n++];
}

static struct stage *stage_named(struct tmk_stages *s, uint32_t string)
{
    const char *name = tmk_reader_string(s->p->reader, string);
    return name ? stage_of(s, name) : NULL;
}

static void note_peak(struct tmk_stages *s, struct stage *stage)
{
    if (s->bytes > stage->row.peak_bytes)
        stage->row.peak_bytes = s->bytes;
}

/* ---- during the sweep ---- */

static void open_stage(struct tmk_stages *s, uint32_t string, uint64_t ns)
{
    struct stage *stage = stage_named(s, string);
    if (!stage)
        return;
    if (stage->n_open++ == 0) {
        stage->open_ns = ns;
        stage->row.n_times++;
    }
    note_peak(s, stage);
}

static void end_stage(struct tmk_stages *s, struct stage *stage, uint64_t ns)
{
    stage->row.ns += ns > stage->open_ns ? ns - stage->open_ns : 0;
    stage->row.end_bytes = s->bytes;
    stage->n_open = 0;
}

static void close_stage(struct tmk_stages *s, uint32_t string, uint64_t ns)
{
    struct stage *stage = stage_named(s, string);
    if (stage && stage->n_open == 1)
        end_stage(s, stage, ns);
    else if (stage && stage->n_open > 1)
        stage->n_open--;
}

/* The stage that the event's thread is in, else the one that the stack indicates. */
static struct stage *stage_of_alloc(struct tmk_stages *s, const struct tmk_state *state,
                                    const struct tmk_event *ev)
{
    uint32_t context = tmk_state_thread_context(state, ev->thread);
    uint32_t stage = state->contexts[context].stage;
    if (stage)
        return stage_named(s, state->contexts[stage].name);
    const char *name = tmk_stack_stage(s->p, ev->stack);
    return stage_of(s, name ? name : other);
}

static void take_alloc(struct tmk_stages *s, const struct tmk_state *state,
                       const struct tmk_event *ev)
{
    struct stage *own = stage_of_alloc(s, state, ev);
    if (own) {
        own->row.allocated_bytes += ev->size_bytes;
        own->row.n_allocs++;
        note_peak(s, own);
        if (own->n_open == 0)
            own->row.end_bytes = s->bytes;
    }
    for (uint64_t i = 0; i < s->n; i++)
        if (s->stages[i].n_open)
            note_peak(s, &s->stages[i]);
}

static void take_device_bytes(struct tmk_stages *s, const struct tmk_state *state)
{
    for (uint32_t i = 0; i < state->n_devices; i++)
        if (state->devices[i].device == s->device)
            s->bytes = state->devices[i].allocated_bytes;
}

static void on_stage_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                           struct tmk_block *b)
{
    (void)b;
    struct tmk_stages *s = arg;
    if (ev->kind == TMK_KIND_ALLOC || ev->kind == TMK_KIND_FREE || ev->kind == TMK_KIND_DEVICE_END)
        take_device_bytes(s, &rp->state);
    if (ev->kind == TMK_KIND_ALLOC && ev->device == s->device)
        take_alloc(s, &rp->state, ev);
    else if (ev->kind == TMK_KIND_PUSH && ev->range_kind == TIDEMARK_STAGE)
        open_stage(s, ev->name, ev->time_ns);
    else if (ev->kind == TMK_KIND_POP && rp->closed.kind == TIDEMARK_STAGE)
        close_stage(s, rp->closed.name, ev->time_ns);
}

static void on_stages_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_stages *s = arg;
    const struct tmk_state *state = &rp->state;
    for (uint64_t i = 0; i < s->n; i++)
        if (s->stages[i].n_open)
            end_stage(s, &s->stages[i], state->now_ns);
    take_device_bytes(s, state);
    for (uint32_t t = 0; t < state->n_threads; t++)
        for (uint32_t r = state->thread_top[t]; r; r = state->ranges[r - 1].outer)
            if (state->ranges[r - 1].kind == TIDEMARK_STAGE)
                open_stage(s, state->ranges[r - 1].name, state->now_ns);
}

struct tmk_visitor tmk_stages_visitor(struct tmk_stages *s)
{
    return (struct tmk_visitor){.arg = s,
                                .kinds = TMK_HEARS(ALLOC) | TMK_HEARS(FREE) |
                                         TMK_HEARS(DEVICE_END) | TMK_HEARS(PUSH) | TMK_HEARS(POP),
                                .event = on_stage_event,
                                .restored = on_stages_restored};
}

/* ---- after it ---- */

int tmk_stages_finish(struct tmk_stages *s, const struct tmk_replay *rp, struct tmk_error *err)
{
    for (uint64_t i = 0; i < s->n; i++)
        if (s->stages[i].n_open)
            end_stage(s, &s->stages[i], rp->state.now_ns);
    return s->failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the stages") : 0;
}

uint32_t tmk_stages_n(const struct tmk_stages *s)
{
    return (uint32_t)s->n;
}

const struct tmk_stage_row *tmk_stages_get(const struct tmk_stages *s, uint32_t i)
{
    return &s->stages[i].row;
}

int tmk_stages_open(const struct tmk_process *p, uint16_t device, struct tmk_stages **ret_stages)
{
    struct tmk_stages *s = calloc(1, sizeof *s);
    if (!s)
        return TMK_ENOMEM;
    s->p = p;
    s->device = device;
    *ret_stages = s;
    return 0;
}

struct tmk_stages *tmk_stages_close(struct tmk_stages *s)
{
    if (!s)
        return NULL;
    free(s->stages);
    free(s);
    return NULL;
}
