/* SPDX-License-Identifier: MIT */
/* passes/imbalance/rank_facts.c - see rank_facts.h. */
#include "passes/imbalance/rank_facts.h"

#include "base/bytes.h"
#include "passes/quality.h"
#include "passes/steps.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

/* An OOM that ends a rank is among its last events. */
enum { LOOKED_CHUNKS = 4 };

const char *tmk_rank_end_name(enum tmk_rank_end end)
{
    static const char *const names[] = {[TMK_RANK_RUNNING] = "running",
                                        [TMK_RANK_CLOSED] = "closed",
                                        [TMK_RANK_KILLED] = "killed",
                                        [TMK_RANK_STOPPED] = "stopped"};
    return names[end];
}

static enum tmk_rank_end rank_end_of(const struct tmk_process *p)
{
    struct tmk_quality q = tmk_quality_of_status(p);
    if (p->live)
        return TMK_RANK_RUNNING;
    if (q.merged || q.unfinished)
        return TMK_RANK_KILLED;
    return q.stop == TMK_STOP_NONE ? TMK_RANK_CLOSED : TMK_RANK_STOPPED;
}

/* ---- the history ---- */

/* A step has a row for each device; steps are counted once. */
static void read_rank_steps(const struct tmk_process *p, struct tmk_rank_facts *ret)
{
    uint64_t counted_ns = UINT64_MAX;
    uint16_t devices[TMK_MAX_DEVICES];
    unsigned n_devices = 0;
    uint64_t n_allocs = 0;
    for (uint64_t i = tmk_reader_n_step_rows(p->reader); i > 0; i--) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i - 1);
        unsigned k = 0;
        while (k < n_devices && devices[k] != row->device)
            k++;
        if (k == n_devices && n_devices < TMK_MAX_DEVICES) { /* the device's last row */
            devices[n_devices++] = row->device;
            ret->end_bytes += row->end_bytes;
        }
        n_allocs += row->n_allocs;
        if (row->step == TMK_NO_STEP || row->start_ns == counted_ns)
            continue;
        counted_ns = row->start_ns;
        if (ret->last_step == TMK_NO_STEP)
            ret->last_step = row->step;
        ret->n_steps += !row->open;
    }
    ret->n_allocs = n_allocs > ret->n_allocs ? n_allocs : ret->n_allocs;
}

static uint64_t last_finished_ns(const struct tmk_process *p)
{
    uint64_t end_ns = 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if (row->step != TMK_NO_STEP && !row->open && row->end_ns > end_ns)
            end_ns = row->end_ns;
    }
    return end_ns;
}

/* ---- out of memory ---- */

static bool cursor_has_oom(struct tmk_cursor *c)
{
    struct tmk_event ev;
    while (tmk_view_left(&c->data[TMK_KIND_OTHER]) > 0 && tmk_cursor_read_other(c, &ev))
        if (ev.kind == TMK_KIND_OOM && !ev.is_of_driver)
            return true;
    return false;
}

/* Find the first OOM of the chunk that is not before `from_ns`. */
static bool find_chunk_oom(struct tmk_cursor *c, uint64_t from_ns, struct tmk_event *ret)
{
    while (tmk_cursor_next(c, ret) > 0)
        if (ret->kind == TMK_KIND_OOM && !ret->is_of_driver && ret->time_ns >= from_ns)
            return true;
    return false;
}

/* The step at a time, from the history. */
static int64_t step_of_time(const struct tmk_process *p, uint64_t ns)
{
    int64_t step = TMK_NO_STEP;
    uint64_t start_ns = 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if (row->step != TMK_NO_STEP && row->start_ns <= ns && row->start_ns >= start_ns) {
            start_ns = row->start_ns;
            step = row->step;
        }
    }
    return step;
}

/* Look for an OOM in chunk `i`, which is read twice if it has one: the section of rare events tells
 * whether, only the walk through all events tells when. */
static void look_for_oom(const struct tmk_process *p, uint32_t i, uint64_t from_ns,
                         struct tmk_cursor *c, struct tmk_rank_facts *ret)
{
    const struct tmk_chunk_header *h = &tmk_reader_chunk(p->reader, i)->header;
    struct tmk_view payload;
    struct tmk_event ev = {0};
    if (tmk_reader_payload(p->reader, i, &payload, NULL) < 0 ||
        tmk_cursor_begin(c, h, payload, NULL) < 0 || !cursor_has_oom(c) ||
        tmk_cursor_begin(c, h, payload, NULL) < 0 || !find_chunk_oom(c, from_ns, &ev))
        return;
    ret->has_oom = true;
    ret->oom_ns = ev.time_ns + p->offset_ns;
    ret->oom_step = step_of_time(p, ev.time_ns);
}

static void read_rank_oom(const struct tmk_process *p, struct tmk_rank_facts *ret)
{
    uint64_t from_ns = last_finished_ns(p);
    struct tmk_cursor cursor = {0};
    unsigned n_looked = 0;
    for (uint32_t i = tmk_reader_n_chunks(p->reader); i > 0 && n_looked < LOOKED_CHUNKS; i--) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(p->reader, i - 1)->header;
        if (h->kind != TMK_CHUNK_EVENTS)
            continue;
        if (h->end_ns < from_ns)
            break;
        n_looked++;
        look_for_oom(p, i - 1, from_ns, &cursor, ret);
    }
    tmk_cursor_fini(&cursor);
}

/* ---- all of it ---- */

int tmk_rank_facts_read(const struct tmk_process *p, struct tmk_rank_facts *ret)
{
    const struct tmk_step_row *peak = tmk_steps_peak(p, true, 0);
    *ret = (struct tmk_rank_facts){
        .rank = p->rank,
        .world_size = p->world_size,
        .host = p->host,
        .pid = p->pid,
        .has_peak = peak != NULL,
        .peak_step = TMK_NO_STEP,
        .last_step = TMK_NO_STEP,
        .oom_step = TMK_NO_STEP,
        .n_allocs = tmk_reader_status(p->reader)->n_allocs,
        .end_ns = p->end_ns + p->offset_ns,
        .end = rank_end_of(p),
    };
    read_rank_steps(p, ret);
    read_rank_oom(p, ret);
    if (!peak)
        return 0;
    ret->device = peak->device;
    ret->peak_bytes = peak->peak_bytes;
    ret->peak_ns = peak->peak_ns + p->offset_ns;
    ret->peak_step = peak->step;
    return tmk_forecast_of(p, peak->device, NULL, &ret->forecast);
}
