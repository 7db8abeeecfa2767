/* SPDX-License-Identifier: MIT */
/* sweep/measure.c - see measure.h. */
#include "sweep/measure.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/oom/ooms.h"
#include "passes/peak.h"
#include "passes/quality.h"
#include "passes/segment_sums.h"
#include "passes/stages.h"
#include "passes/steps.h"
#include "sweep/driver_peak.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"
#include "trace/stops.h"

/* More blocks than this after an OOM are no clean-up: the program continues without steps. */
enum { WENT_ON_BLOCKS = 1000 };

struct deciding_device {            /* the device that decides for a process */
    const struct tmk_step_row *row; /* the row with its peak; NULL: no block was ever reported */
    uint64_t reserved_bytes;        /* the peak of reserved bytes, TMK_BYTES_UNKNOWN: not known */
};

static bool is_larger_peak(const struct tmk_step_row *a, const struct tmk_step_row *b)
{
    bool a_is_card = a->device != TIDEMARK_HOST, b_is_card = b->device != TIDEMARK_HOST;
    if (a_is_card != b_is_card)
        return a_is_card;
    return a->peak_bytes > b->peak_bytes;
}

/* Find the device from the history of steps, which has every peak to the byte. */
static struct deciding_device find_best(const struct tmk_process *p)
{
    struct deciding_device best = {.reserved_bytes = TMK_BYTES_UNKNOWN};
    uint64_t n = tmk_reader_n_step_rows(p->reader);
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if (row->peak_bytes > 0 && (!best.row || is_larger_peak(row, best.row)))
            best.row = row;
    }
    for (uint64_t i = 0; best.row && i < n; i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if (row->device == best.row->device && row->has_reserved &&
            (best.reserved_bytes == TMK_BYTES_UNKNOWN ||
             row->peak_reserved_bytes > best.reserved_bytes))
            best.reserved_bytes = row->peak_reserved_bytes;
    }
    return best;
}

/* ---- the driver's samples, and events after an OOM ---- */

struct watched_gpu {
    uint16_t device;
    uint64_t total_bytes, used_bytes; /* TMK_BYTES_UNKNOWN: not known */
};

struct driver_watch {
    struct watched_gpu cards[TMK_MAX_DEVICES];
    uint32_t n_cards;
    uint64_t n_steps;
    bool step_began;     /* a step began since the last OOM */
    uint64_t n_blocks;   /* blocks allocated since then on the same device */
    uint16_t oom_device; /* the device of the last OOM */
};

/* Find a GPU, adding a new one; NULL: there are too many. */
static struct watched_gpu *watched_gpu_of(struct driver_watch *w, uint16_t device)
{
    for (uint32_t i = 0; i < w->n_cards; i++)
        if (w->cards[i].device == device)
            return &w->cards[i];
    if (w->n_cards == TMK_MAX_DEVICES)
        return NULL;
    w->cards[w->n_cards] = (struct watched_gpu){device, TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN};
    return &w->cards[w->n_cards++];
}

static void on_driver_sample(struct driver_watch *w, uint16_t device,
                             const struct tmk_sample_body *sample)
{
    struct watched_gpu *c = watched_gpu_of(w, device);
    if (!c)
        return;
    c->total_bytes = sample->total_bytes;
    if (sample->used_bytes != UINT64_MAX &&
        (c->used_bytes == TMK_BYTES_UNKNOWN || sample->used_bytes > c->used_bytes))
        c->used_bytes = sample->used_bytes;
}

static void on_measured_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                              struct tmk_block *b)
{
    struct driver_watch *w = arg;
    (void)rp;
    (void)b;
    if (ev->kind == TMK_KIND_SAMPLE)
        on_driver_sample(w, ev->device, &ev->sample);
    if (ev->kind == TMK_KIND_STEP || ev->kind == TMK_KIND_OOM)
        w->step_began = ev->kind == TMK_KIND_STEP;
    if (ev->kind == TMK_KIND_OOM) {
        w->n_blocks = 0;
        w->oom_device = ev->device;
    }
    w->n_blocks += ev->kind == TMK_KIND_ALLOC && ev->device == w->oom_device;
    w->n_steps += ev->kind == TMK_KIND_STEP;
}

/* ---- a process ---- */

struct measurement { /* the results of one replay */
    struct tmk_process *p;
    struct deciding_device best;
    struct driver_watch watch;
    struct tmk_driver_peak held; /* memory outside frameworks' allocators */
    struct tmk_peak *peak;
    struct tmk_stages *stages;
    struct tmk_ooms *ooms;
    struct tmk_quality quality;
};

static void close_measurement(struct measurement *l)
{
    l->peak = tmk_peak_close(l->peak);
    l->stages = tmk_stages_close(l->stages);
    l->ooms = tmk_ooms_close(l->ooms);
    tmk_driver_peak_fini(&l->held);
}

static int open_measurement(struct measurement *l)
{
    uint16_t device = l->best.row ? l->best.row->device : TIDEMARK_HOST;
    struct tmk_moment moment = {.kind = TMK_MOMENT_PEAK, .device = device};
    int rc = tmk_peak_open(l->p, &moment, &l->peak);
    if (rc == 0)
        rc = tmk_stages_open(l->p, device, &l->stages);
    if (rc == 0)
        rc = tmk_ooms_open(l->p, &l->ooms);
    if (rc == 0)
        rc = tmk_driver_peak_init(&l->held, l->p);
    return rc;
}

static int replay_for_measurement(struct measurement *l, struct tmk_error *err)
{
    struct tmk_visitor visitors[] = {
        tmk_peak_visitor(l->peak),
        tmk_stages_visitor(l->stages),
        tmk_ooms_visitor(l->ooms),
        tmk_driver_peak_visitor(&l->held),
        {.arg = &l->watch, .event = on_measured_event},
    };
    struct tmk_replay rp;
    int rc = tmk_process_sweep(l->p, visitors, TMK_N(visitors), &rp, err);
    if (rc < 0)
        return rc;
    rc = tmk_peak_finish(l->peak, &rp, err);
    if (rc == 0)
        rc = tmk_stages_finish(l->stages, &rp, err);
    if (rc == 0)
        rc = tmk_ooms_finish(l->ooms, err);
    l->quality = tmk_quality_of(l->p, &rp);
    tmk_replay_fini(&rp);
    return rc;
}

/* ---- shares ---- */

static bool add_share(struct tmk_shares *s, struct tmk_arena *a, const char *key, uint64_t bytes)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->rows[i].key, key) == 0) {
            s->rows[i].bytes += bytes;
            return true;
        }
    const char *copy = tmk_arena_text(a, key, strlen(key));
    s->rows[s->n++] = (struct tmk_share){copy, bytes};
    return copy != NULL;
}

/* Sort shares, the largest first; only combined ones can be out of order. */
static void sort_shares(struct tmk_shares *s)
{
    for (uint32_t i = 1; i < s->n; i++)
        for (uint32_t j = i; j > 0 && s->rows[j].bytes > s->rows[j - 1].bytes; j--) {
            struct tmk_share swap = s->rows[j];
            s->rows[j] = s->rows[j - 1];
            s->rows[j - 1] = swap;
        }
}

/* Make the shares of `whole`; bytes that no block accounts for are unknown. */
static int make_shares(struct tmk_peak *peak, enum tmk_by by, uint64_t whole, const char *nameless,
                       struct tmk_arena *a, struct tmk_shares *ret)
{
    const struct tmk_peak_row *rows;
    uint64_t n, sum = 0;
    struct tmk_shares s = {0};
    int rc = tmk_peak_group(peak, by, &rows, &n, NULL);
    if (rc < 0)
        return rc;
    s.rows = tmk_arena_take(a, (size_t)(n + 1) * sizeof *s.rows);
    bool good = s.rows != NULL;
    for (uint64_t i = 0; i < n && good; i++) {
        sum += rows[i].bytes;
        good = add_share(&s, a, rows[i].key ? rows[i].key : nameless, rows[i].bytes);
    }
    if (good && sum < whole)
        good = add_share(&s, a, "unknown", whole - sum);
    if (!good)
        return TMK_ENOMEM;
    sort_shares(&s);
    if (sum <= whole) /* a larger sum means that the trace is damaged */
        *ret = s;
    return 0;
}

static int take_shares(struct measurement *l, struct tmk_arena *a, struct tmk_cell *c)
{
    uint64_t whole = c->peak_allocated;
    if (!tmk_peak_found(l->peak) || tmk_peak_bytes(l->peak) != whole)
        return 0;
    int rc = make_shares(l->peak, TMK_BY_CATEGORY, whole, "unknown", a, &c->categories);
    if (rc == 0)
        rc = make_shares(l->peak, TMK_BY_COMPONENT, whole, "other", a, &c->components);
    if (rc == 0)
        rc = make_shares(l->peak, TMK_BY_STAGE, whole, "other", a, &c->at_stage);
    return rc;
}

/* ---- into the cell ---- */

static int take_stages(const struct measurement *l, struct tmk_arena *a, struct tmk_cell *c)
{
    uint32_t n = tmk_stages_n(l->stages);
    c->stages = tmk_arena_take(a, (n + 1) * sizeof *c->stages);
    if (!c->stages)
        return TMK_ENOMEM;
    for (c->n_stages = 0; c->n_stages < n; c->n_stages++) {
        const struct tmk_stage_row *row = tmk_stages_get(l->stages, c->n_stages);
        const char *name = row->name ? row->name : "unknown";
        c->stages[c->n_stages] = (struct tmk_cell_stage){
            .name = tmk_arena_text(a, name, strlen(name)),
            .peak = row->peak_bytes,
            .end = row->end_bytes,
            .allocated = row->allocated_bytes,
            .n_times = row->n_times,
            .ns = row->ns,
        };
        if (!c->stages[c->n_stages].name)
            return TMK_ENOMEM;
    }
    return 0;
}

static int take_step_times(const struct measurement *l, struct tmk_cell *c)
{
    struct tmk_steps *steps = NULL;
    int rc = tmk_steps_open(l->p, l->best.row->device, &steps);
    if (rc < 0)
        return rc;
    c->n_steps = tmk_steps_digest(steps).n_steps;
    tmk_steps_close(steps);
    return 0;
}

/* Take the device and its driver's figures. */
static int take_device(struct measurement *l, uint16_t device, struct tmk_arena *a,
                       struct tmk_cell *c)
{
    char name[24];
    tmk_device_name(device, name);
    c->device = tmk_arena_text(a, name, strlen(name));
    const struct watched_gpu *card = watched_gpu_of(&l->watch, device);
    if (card) {
        c->capacity = card->total_bytes;
        c->peak_device = card->used_bytes;
    }
    uint64_t n = tmk_ooms_n_kept(l->ooms);
    const struct tmk_oom *oom = n > 0 ? tmk_ooms_get(l->ooms, n - 1) : NULL;
    if (oom && oom->device == device && oom->capacity_bytes)
        c->capacity = oom->capacity_bytes; /* the allocator's limit */
    return c->device ? 0 : TMK_ENOMEM;
}

/* Take the figures of a process with blocks that its framework reported. */
static int take_blocks(struct measurement *l, struct tmk_arena *a, struct tmk_cell *c)
{
    const struct tmk_step_row *row = l->best.row;
    c->peak_allocated = row->peak_bytes;
    c->peak_reserved = l->best.reserved_bytes;
    c->peak_step = row->step < 0 ? -1 : row->step;
    int rc = take_device(l, row->device, a, c);
    if (rc == 0)
        rc = take_step_times(l, c);
    if (rc == 0)
        rc = take_shares(l, a, c);
    if (rc == 0)
        rc = take_stages(l, a, c);
    return rc;
}

static int one_share(struct tmk_arena *a, const char *key, uint64_t bytes, struct tmk_shares *ret)
{
    ret->rows = tmk_arena_take(a, sizeof *ret->rows);
    return ret->rows && add_share(ret, a, key, bytes) ? 0 : TMK_ENOMEM;
}

/* Take the figures of a process that asked the driver itself: only the owners are known. */
static int take_held(struct measurement *l, struct tmk_arena *a, struct tmk_cell *c)
{
    const struct tmk_device_sums *peak = &l->held.peak;
    c->peak_allocated = c->peak_reserved = peak->bytes;
    c->peak_step = l->held.step < 0 ? -1 : l->held.step;
    c->n_steps = l->watch.n_steps;
    c->components.rows = tmk_arena_take(a, TMK_SUMS_MAX_OWNERS * sizeof *c->components.rows);
    int rc = c->components.rows ? take_device(l, peak->device, a, c) : TMK_ENOMEM;
    for (uint32_t i = 0; i < TMK_SUMS_MAX_OWNERS && rc == 0; i++)
        if (peak->owners[i].bytes > 0 &&
            !add_share(&c->components, a, tmk_driver_peak_owner(&l->held, i),
                       peak->owners[i].bytes))
            rc = TMK_ENOMEM;
    sort_shares(&c->components);
    if (rc == 0)
        rc = one_share(a, "unknown", peak->bytes, &c->categories);
    return rc == 0 ? one_share(a, "other", peak->bytes, &c->at_stage) : rc;
}

/* Blocks on a GPU go before segments, and a GPU before the host. */
static int take_process_peaks(struct measurement *l, struct tmk_arena *a, struct tmk_cell *c)
{
    bool has_card = l->best.row && l->best.row->device != TIDEMARK_HOST;
    if (!has_card && l->held.found)
        return take_held(l, a, c);
    return l->best.row ? take_blocks(l, a, c) : 0;
}

/* Write Write "rank 1 ran out of memory in step 3 (forward): 1.2 GiB more on cuda:0, 22.1 of 24.0
 * GiB in use". */
static int tell_oom(const struct measurement *l, struct tmk_arena *a, struct tmk_measured *ret)
{
    uint64_t n = tmk_ooms_n_kept(l->ooms);
    const struct tmk_oom *o = tmk_ooms_get(l->ooms, n - 1);
    char device[24], wanted[TMK_AMOUNT_BYTES], used[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES];
    char who[40] = "", when[48] = "";
    if (l->p->rank >= 0)
        snprintf(who, sizeof who, "rank %" PRId64 " ", l->p->rank);
    if (o->step != TMK_NO_STEP)
        snprintf(when, sizeof when, " in step %" PRId64, o->step);
    bool went_on = l->watch.step_began || l->watch.n_blocks >= WENT_ON_BLOCKS;
    ret->went_on = went_on && (!ret->ran_out || ret->went_on);
    ret->ran_out = true;
    uint64_t total =
        o->is_of_driver && o->total_bytes != UINT64_MAX ? o->total_bytes : o->capacity_bytes;
    uint64_t held = o->is_of_driver ? o->segment_bytes : o->allocated_bytes;
    ret->oom = tmk_arena_format(
        a, "%sran out of memory%s%s%s%s: wanted %s more on %s, %s%s%s in use", who, when,
        o->stage ? " (" : "", o->stage ? o->stage : "", o->stage ? ")" : "",
        tmk_size_text(o->requested_bytes, wanted), tmk_device_name(o->device, device),
        tmk_size_text(held, used), total ? " of " : "", total ? tmk_size_text(total, limit) : "");
    return ret->oom ? 0 : TMK_ENOMEM;
}

/* ---- incomplete traces ---- */

/* Say in the caller's buffer why the largest sum seen may not be the peak; false: it is. */
static bool find_trace_gap(const struct measurement *l, char *buffer, size_t size)
{
    const struct tmk_quality *q = &l->quality;
    char amount[TMK_AMOUNT_BYTES];
    if (q->stop != TMK_STOP_NONE)
        snprintf(buffer, size, "recording stopped after %s: %s",
                 tmk_time_text(l->p->end_ns, amount), tmk_stop_text(q->stop));
    else if (q->unfinished || q->live)
        snprintf(buffer, size, "its trace has no end");
    else if (q->n_dropped > 0)
        snprintf(buffer, size, "%s events were dropped", tmk_count_text(q->n_dropped, amount));
    else if (q->n_untracked > 0)
        snprintf(buffer, size, "%s blocks were not followed",
                 tmk_count_text(q->n_untracked, amount));
    else if (q->n_bad_chunks > 0)
        snprintf(buffer, size, "%u parts of its trace cannot be read", q->n_bad_chunks);
    else
        return false;
    return true;
}

static void forget_peak(struct tmk_cell *c)
{
    c->peak_allocated = c->peak_reserved = c->peak_device = TMK_BYTES_UNKNOWN;
    c->peak_step = -1;
    c->categories.n = c->components.n = c->at_stage.n = c->n_stages = 0;
}

/* Write Write "rank 1: recording stopped after 2.1 s: the disk was full; its peak is not known
 * (20.6 MiB were seen)". */
static int look_for_hole(const struct measurement *l, struct tmk_arena *a, struct tmk_cell *c,
                         struct tmk_measured *ret)
{
    char hole[160], who[40] = "", size[TMK_AMOUNT_BYTES], seen[TMK_AMOUNT_BYTES + 24] = "";
    if (!find_trace_gap(l, hole, sizeof hole))
        return 0;
    if (l->p->rank >= 0)
        snprintf(who, sizeof who, "rank %" PRId64 ": ", l->p->rank);
    if (c->peak_allocated != TMK_BYTES_UNKNOWN)
        snprintf(seen, sizeof seen, " (%s were seen)", tmk_size_text(c->peak_allocated, size));
    forget_peak(c);
    if (!ret->incomplete)
        ret->incomplete = tmk_arena_format(a, "%s%s; the peak is not known%s", who, hole, seen);
    return ret->incomplete ? 0 : TMK_ENOMEM;
}

/* ---- the run ---- */

static const struct tmk_cell nothing = {.peak_step = -1,
                                        .capacity = TMK_BYTES_UNKNOWN,
                                        .peak_allocated = TMK_BYTES_UNKNOWN,
                                        .peak_reserved = TMK_BYTES_UNKNOWN,
                                        .peak_device = TMK_BYTES_UNKNOWN};

static int measure_process(struct tmk_process *p, struct tmk_arena *a, struct tmk_cell *c,
                           struct tmk_measured *ret, struct tmk_error *err)
{
    struct measurement l = {.p = p, .best = find_best(p)};
    int rc = open_measurement(&l);
    if (rc == 0)
        rc = replay_for_measurement(&l, err);
    if (rc == 0)
        rc = take_process_peaks(&l, a, c);
    if (rc == 0 && tmk_ooms_n(l.ooms) > 0)
        rc = tell_oom(&l, a, ret);
    if (rc == 0)
        rc = look_for_hole(&l, a, c, ret);
    close_measurement(&l);
    return rc;
}

/* Whether the figures of `a` decide rather than those of `b`. */
static bool cell_decides(const struct tmk_cell *a, const struct tmk_cell *b)
{
    bool a_is_card = strcmp(a->device, "cpu") != 0;
    bool b_is_card = b->device && strcmp(b->device, "cpu") != 0;
    if (!b->device || a_is_card != b_is_card)
        return !b->device || a_is_card;
    return b->peak_allocated == TMK_BYTES_UNKNOWN ||
           (a->peak_allocated != TMK_BYTES_UNKNOWN && a->peak_allocated > b->peak_allocated);
}

static void add_rank(struct tmk_cell *c, const struct tmk_process *p, const struct tmk_cell *m)
{
    c->ranks[c->n_ranks++] = (struct tmk_cell_rank){.rank = p->rank,
                                                    .pid = p->pid,
                                                    .device = m->device,
                                                    .peak_allocated = m->peak_allocated,
                                                    .peak_reserved = m->peak_reserved};
}

/* Take over everything but the fields that the sweep itself sets. */
static void adopt_cell(struct tmk_cell *c, const struct tmk_cell *best)
{
    struct tmk_cell all = *best;
    all.choice = c->choice;
    all.repeat = c->repeat;
    all.seconds = c->seconds;
    all.ranks = c->ranks;
    all.n_ranks = c->n_ranks;
    *c = all;
}

static int measure_all(struct tmk_run *run, struct tmk_arena *a, struct tmk_cell *c,
                       struct tmk_measured *ret, struct tmk_error *err)
{
    uint32_t n = tmk_run_n_processes(run);
    struct tmk_cell best = nothing;
    c->ranks = tmk_arena_take(a, (n + 1) * sizeof *c->ranks);
    c->n_ranks = 0;
    int rc = c->ranks ? 0 : TMK_ENOMEM;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct tmk_process *p = tmk_run_process(run, i);
        struct tmk_cell m = nothing;
        rc = measure_process(p, a, &m, ret, err);
        if (rc < 0 || !m.device)
            continue;
        add_rank(c, p, &m);
        if (cell_decides(&m, &best))
            best = m;
    }
    struct tmk_error unread;
    if (tmk_run_n_unreadable(run, &unread) > 0 && !ret->incomplete)
        ret->incomplete = tmk_arena_format(a, "%s; the peak is not known", unread.text);
    if (ret->incomplete) /* another process may have used more */
        forget_peak(&best);
    ret->found = best.device != NULL;
    adopt_cell(c, &best);
    return rc;
}

int tmk_measure_run(const char *path, struct tmk_arena *a, struct tmk_cell *c,
                    struct tmk_measured *ret, struct tmk_error *err)
{
    struct tmk_run *run = NULL;
    struct tmk_measured m = {0};
    int rc = tmk_run_open(path, &run, err);
    if (rc == 0)
        rc = measure_all(run, a, c, &m, err);
    else if (rc == TMK_ENOENT)
        rc = 0;
    tmk_run_close(run);
    if (rc == 0)
        *ret = m;
    return rc == TMK_ENOMEM ? tmk_fail(err, rc, "no memory to look at %s", path) : rc;
}
