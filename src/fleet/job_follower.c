/* SPDX-License-Identifier: MIT */
/* fleet/job_follower.c - see job_follower.h.
 *
 * The state that the replay leaves says what is allocated and what was most; the per-step history
 * feeds the forecast; blocks and segments of the state are what `peak` and `frag` would show. */
#include "fleet/job_follower.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "model/components.h"
#include "model/holders.h"
#include "model/owners.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "passes/oom/ooms.h"
#include "passes/steps.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

struct tmk_job_follower {
    struct tmk_watched watched;
    struct tmk_replay rp;
    bool has_replay;
    struct tmk_process process; /* reader NULL: not open */
    struct tmk_components *components;
    struct tmk_symbols *symbols;
    struct tmk_holders *holders; /* NULL: not needed yet */
    uint32_t n_defs;             /* definitions that the owners know */
    uint64_t n_ooms;
    uint64_t n_steps, last_ordinal, last_start_ns; /* of the rows counted */
};

struct tmk_job_follower *tmk_job_follower_open(const struct tmk_watched *w)
{
    struct tmk_job_follower *f = calloc(1, sizeof *f);
    if (f)
        f->watched = *w;
    return f;
}

static void close_trace(struct tmk_job_follower *f)
{
    if (f->has_replay)
        tmk_replay_fini(&f->rp);
    tmk_holders_close(f->holders);
    tmk_owners_close(f->process.owners);
    tmk_reader_close(f->process.reader);
    f->has_replay = false;
    f->holders = NULL;
    f->n_defs = 0;
    f->process = (struct tmk_process){.reader = NULL};
}

struct tmk_job_follower *tmk_job_follower_close(struct tmk_job_follower *f)
{
    if (!f)
        return NULL;
    close_trace(f);
    tmk_components_close(f->components);
    free(f);
    return NULL;
}

const struct tmk_watched *tmk_job_follower_watched(const struct tmk_job_follower *f)
{
    return &f->watched;
}

/* ---- opening ---- */

/* A ring names a trace, and a process may map any file as its ring: an agent that runs as root must
 * not read another user's trace for it. */
static int check_owner(const struct tmk_job_follower *f, struct tmk_error *err)
{
    char path[64];
    struct stat process, trace;
    int fd, rc = tmk_reader_open_again(f->process.reader, O_RDONLY, &fd, err);
    if (rc < 0)
        return rc;
    rc = fstat(fd, &trace);
    close(fd);
    snprintf(path, sizeof path, "/proc/%u", f->watched.pid);
    if (rc < 0 || stat(path, &process) < 0 || process.st_uid != trace.st_uid)
        return tmk_fail(err, TMK_EPROCESS, "the trace of process %u is another user's",
                        f->watched.pid);
    return 0;
}

static int64_t info_or_minus_one(const struct tmk_reader *r, const char *key)
{
    uint64_t value;
    return tmk_reader_info_u64(r, key, &value) && value <= INT64_MAX ? (int64_t)value : -1;
}

static int open_followed(struct tmk_job_follower *f, struct tmk_error *err)
{
    struct tmk_process *p = &f->process;
    int rc = tmk_reader_open(f->watched.trace_path, &p->reader, err);
    if (rc == 0)
        rc = check_owner(f, err);
    if (rc == 0 && (rc = tmk_replay_init(&f->rp, &tmk_state_limits_tool)) < 0)
        tmk_fail(err, rc, "no memory to replay the trace of process %u", f->watched.pid);
    if (rc < 0) {
        close_trace(f);
        return rc;
    }
    f->has_replay = true;
    f->rp.from_newest = true;
    p->symbols = &f->symbols;
    p->file = f->watched.trace_path;
    p->host = p->command = "";
    p->rank = info_or_minus_one(p->reader, "rank");
    p->world_size = info_or_minus_one(p->reader, "world_size");
    int64_t start = info_or_minus_one(p->reader, "start_realtime_ns");
    p->start_realtime_ns = start < 0 ? 0 : (uint64_t)start;
    p->live = true;
    return 0;
}

/* ---- reading on ---- */

static void count_oom(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                      struct tmk_block *b)
{
    (void)rp;
    (void)b;
    struct tmk_job_follower *f = arg;
    if (!f->holders && tmk_holders_open(&f->process, &f->holders) < 0)
        return;
    f->n_ooms += !tmk_oom_is_first_try(f->holders, ev);
}

static int follow_trace(struct tmk_job_follower *f, struct tmk_error *err)
{
    struct tmk_visitor visitor = {.arg = f, .kinds = TMK_HEARS(OOM), .event = count_oom};
    int rc = f->process.reader ? tmk_reader_follow(f->process.reader, err) : open_followed(f, err);
    if (rc == TMK_EAGAIN) { /* it went round while nobody looked; the OOMs seen so far stay */
        close_trace(f);
        rc = open_followed(f, err);
    }
    if (rc >= 0)
        rc = tmk_replay_follow(&f->rp, f->process.reader, &visitor, err);
    if (rc < 0)
        close_trace(f);
    return rc < 0 ? rc : 0;
}

/* ---- figures ---- */

static void take_use_forecast(const struct tmk_job_follower *f, uint16_t device,
                              struct tmk_node_use *u)
{
    struct tmk_forecast forecast = {0};
    u->limit_bytes = TMK_BYTES_UNKNOWN;
    u->peak_growth_bytes = u->oom_s = u->oom_low_s = u->oom_high_s = u->confidence = NAN;
    u->risk = TMK_RISK_UNKNOWN;
    if (tmk_forecast_of(&f->process, device, NULL, &forecast) < 0)
        return;
    u->limit_bytes = forecast.capacity_bytes ? forecast.capacity_bytes : TMK_BYTES_UNKNOWN;
    u->risk = forecast.risk;
    u->cause = forecast.cause;
    if (forecast.risk != TMK_RISK_UNKNOWN)
        u->peak_growth_bytes = forecast.slope;
    if (forecast.has_time) {
        u->oom_s = forecast.seconds_to_oom;
        u->oom_low_s = forecast.seconds_low;
        u->oom_high_s = forecast.seconds_high;
    }
    if (forecast.has_confidence)
        u->confidence = forecast.confidence;
}

static double step_growth_of(const struct tmk_job_follower *f, uint16_t device)
{
    struct tmk_steps *steps = NULL;
    if (tmk_steps_open(&f->process, device, &steps) < 0)
        return NAN;
    struct tmk_steps_digest digest = tmk_steps_digest(steps);
    tmk_steps_close(steps);
    switch (digest.trend) {
    case TMK_STEPS_TREND_GROWING:
    case TMK_STEPS_TREND_SHRINKING:
        return digest.bytes_per_step;
    case TMK_STEPS_TREND_STEADY:
    case TMK_STEPS_TREND_VARYING:
        return 0;
    default:
        return NAN;
    }
}

static struct tmk_node_use *need_use(struct tmk_node_job *job, uint16_t device)
{
    for (unsigned i = 0; i < job->n_uses; i++)
        if (job->uses[i].torch_device == device)
            return &job->uses[i];
    if (job->n_uses == TMK_NODE_JOB_DEVICES)
        return NULL;
    struct tmk_node_use *u = &job->uses[job->n_uses++];
    *u = (struct tmk_node_use){.device = -1,
                               .torch_device = device,
                               .cached_bytes = TMK_BYTES_UNKNOWN,
                               .largest_free_bytes = TMK_BYTES_UNKNOWN};
    tmk_device_name(device, u->torch_name);
    return u;
}

/* Steps have every device, the host too, whether or not the process has anything there. */
static bool was_used(const struct tmk_device_use *d)
{
    return d->max_bytes > 0 || (d->has_reserved && d->max_reserved_bytes > 0);
}

static void take_uses(const struct tmk_job_follower *f, struct tmk_node_job *job)
{
    for (uint32_t i = 0; i < f->rp.state.n_devices; i++) {
        const struct tmk_device_use *d = &f->rp.state.devices[i];
        struct tmk_node_use *u = was_used(d) ? need_use(job, d->device) : NULL;
        if (!u)
            continue;
        u->allocated_bytes = d->allocated_bytes;
        u->peak_allocated_bytes = d->max_bytes;
        u->reserved_bytes = d->has_reserved ? d->reserved_bytes : TMK_BYTES_UNKNOWN;
        u->peak_reserved_bytes = d->has_reserved ? d->max_reserved_bytes : TMK_BYTES_UNKNOWN;
        u->step_growth_bytes = step_growth_of(f, d->device);
        take_use_forecast(f, d->device, u);
    }
}

/* A step has a row for each device; all of them begin at the same time. */
static void count_job_steps(struct tmk_job_follower *f)
{
    const struct tmk_reader *r = f->process.reader;
    uint64_t n = tmk_reader_n_step_rows(r), first = n;
    while (first > 0 && tmk_reader_step_row(r, first - 1)->ordinal > f->last_ordinal)
        first--;
    for (uint64_t i = first; i < n; i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        if (row->open)
            continue;
        bool is_new =
            row->step != TMK_NO_STEP && (f->n_steps == 0 || row->start_ns != f->last_start_ns);
        f->n_steps += is_new;
        f->last_start_ns = row->start_ns;
        f->last_ordinal = row->ordinal;
    }
}

/* ---- blocks ---- */

/* Owners know the definitions that were there when they were opened. */
static int renew_owners(struct tmk_job_follower *f)
{
    const struct tmk_reader *r = f->process.reader;
    uint32_t n = tmk_reader_n_strings(r) + tmk_reader_n_stacks(r) + tmk_reader_n_parameters(r);
    if (f->process.owners && f->n_defs == n)
        return 0;
    f->process.owners = tmk_owners_close(f->process.owners);
    f->n_defs = n;
    struct tmk_error ignored; /* about the user's own components, which are not told */
    if (!f->components && tmk_components_open(&f->components, &ignored) < 0)
        return TMK_ENOMEM;
    return tmk_owners_open(r, f->components, &f->process.owners);
}

static void sum_categories(const struct tmk_job_follower *f, struct tmk_node_job *job)
{
    const struct tmk_state *s = &f->rp.state;
    struct tmk_node_use *use = NULL;
    uint32_t of = UINT32_MAX;
    for (unsigned i = 0; i < job->n_uses; i++) {
        job->uses[i].has_categories = true;
        memset(job->uses[i].categories, 0, sizeof job->uses[i].categories);
    }
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        if (!s->entries[i].live)
            continue;
        struct tmk_block b = tmk_state_settled(s, &s->entries[i]);
        uint8_t category = tmk_block_category(&f->process, s->contexts, &b);
        if (of != b.device)
            use = need_use(job, b.device);
        of = b.device;
        if (use && category < TMK_NODE_CATEGORIES)
            use->categories[category] += b.size_bytes;
    }
}

static int find_fragmentation(struct tmk_job_follower *f, struct tmk_node_job *job,
                              struct tmk_error *err)
{
    struct tmk_frag_moment now = {.kind = TMK_FRAG_TIME, .time_ns = UINT64_MAX};
    struct tmk_fragmentation *frag = NULL;
    int rc = tmk_fragmentation_open(&f->process, &now, &frag);
    if (rc < 0)
        return tmk_fail(err, rc, "out of memory");
    struct tmk_visitor visitor = tmk_fragmentation_visitor(frag);
    visitor.restored(visitor.arg, &f->rp); /* the state as it is, without what led to it */
    rc = tmk_fragmentation_finish(frag, &f->rp, err);
    for (uint64_t i = 0; rc == 0 && i < tmk_fragmentation_n(frag); i++) {
        const struct tmk_frag_device *d = tmk_fragmentation_get(frag, i);
        struct tmk_node_use *u = need_use(job, d->device);
        if (u) {
            u->cached_bytes = d->sum.free_bytes;
            u->largest_free_bytes = d->sum.largest_bytes;
        }
    }
    tmk_fragmentation_close(frag);
    return rc;
}

static int take_job_blocks(struct tmk_job_follower *f, struct tmk_node_job *job,
                           struct tmk_error *err)
{
    int rc = renew_owners(f);
    if (rc < 0)
        return tmk_fail(err, rc, "out of memory");
    sum_categories(f, job);
    rc = find_fragmentation(f, job, err);
    if (rc == 0)
        job->blocks_s = (double)tmk_clock_ns(CLOCK_REALTIME) / 1e9;
    return rc;
}

/* ---- together ---- */

int tmk_job_follower_look(struct tmk_job_follower *f, bool wants_blocks, struct tmk_node_job *job,
                          struct tmk_error *err)
{
    int rc = follow_trace(f, err);
    job->is_readable = rc == 0;
    if (rc < 0)
        return rc;
    uint64_t start_ns = f->process.start_realtime_ns;
    job->rank = f->process.rank;
    job->world_size = f->process.world_size;
    job->start_s = start_ns ? (double)start_ns / 1e9 : NAN;
    job->read_s = (double)tmk_clock_ns(CLOCK_REALTIME) / 1e9;
    count_job_steps(f);
    job->n_steps = f->n_steps;
    job->n_ooms = f->n_ooms;
    job->n_dropped = tmk_reader_status(f->process.reader)->n_dropped;
    take_uses(f, job);
    if (wants_blocks)
        rc = take_job_blocks(f, job, err);
    tmk_reader_forget(f->process.reader, TMK_FOLLOWED_CHUNKS, TMK_FOLLOWED_ROWS);
    tmk_replay_rest(&f->rp);
    return rc;
}
