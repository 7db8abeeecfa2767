/* SPDX-License-Identifier: MIT */
/* passes/segment_rows.c - see segment_rows.h.
 *
 * A row is found by the segment's serial number, by which rows are ordered. Rows of segments that
 * are still there are also in a list of their own: that is all that has to be searched when the
 * state was replaced. */
#include "passes/segment_rows.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"
#include "model/holders.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/segments.h"
#include "trace/state.h"

struct open_segment {
    struct tmk_segment_row told;
    uint64_t open_at; /* its index in `open` while it has not ended */
};

struct tmk_segment_rows {
    const struct tmk_process *p;
    struct open_segment *rows; /* by serial */
    uint64_t n, room;
    uint64_t *open; /* numbers of rows, in no order */
    uint64_t n_open, open_room;
    uint64_t n_begun; /* of the state's segments, when last looked at */
    struct tmk_holders *holders;
    bool is_out_of_order, failed;
};

static const char *known_text(const char *text)
{
    return text[0] ? text : NULL;
}

/* Search the first `n` rows. */
static struct open_segment *find_segment_row(const struct tmk_segment_rows *s, uint64_t n,
                                             uint64_t serial)
{
    uint64_t low = 0, high = n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (s->rows[middle].told.segment.serial < serial)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && s->rows[low].told.segment.serial == serial ? &s->rows[low] : NULL;
}

static void end_segment_row(struct tmk_segment_rows *s, struct open_segment *row, uint64_t ns)
{
    row->told.end_ns = ns;
    uint64_t last = s->open[--s->n_open];
    s->open[row->open_at] = last;
    s->rows[last].open_at = row->open_at;
}

/* Append a row; sort_segment_rows() is to follow. */
static void add_segment_row(struct tmk_segment_rows *s, const struct tmk_state *state,
                            const struct tmk_driver_segment *segment)
{
    if (TMK_GROW(s->rows, s->n + 1, s->room) < 0 || TMK_GROW(s->open, s->n + 1, s->open_room) < 0) {
        s->failed = true;
        return;
    }
    uint32_t context = segment->context;
    const struct tmk_holder *holder = tmk_holders_get(s->holders, segment->stack);
    s->rows[s->n++].told = (struct tmk_segment_row){
        .segment = *segment,
        .end_ns = UINT64_MAX,
        .stage = context ? tmk_context_stage(s->p, state, context) : NULL,
        .module = context ? tmk_context_module(s->p, state, context) : NULL,
        .owner = known_text(holder->owner),
        .library = known_text(holder->library),
    };
}

static int by_serial(const void *va, const void *vb)
{
    uint64_t a = ((const struct open_segment *)va)->told.segment.serial;
    uint64_t b = ((const struct open_segment *)vb)->told.segment.serial;
    return (a > b) - (a < b);
}

/* Rows from `first` on are new. Only a damaged trace has numbers smaller than earlier ones; then
 * a row may not be found any more, and rows are sorted at the end. */
static void sort_segment_rows(struct tmk_segment_rows *s, uint64_t first)
{
    if (s->n > first + 1)
        qsort(s->rows + first, (size_t)(s->n - first), sizeof *s->rows, by_serial);
    if (s->n > first && first > 0 && by_serial(&s->rows[first - 1], &s->rows[first]) >= 0)
        s->is_out_of_order = true;
    for (uint64_t i = first; i < s->n; i++) {
        s->rows[i].open_at = s->n_open;
        s->open[s->n_open++] = i;
    }
}

static void on_segment_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                             struct tmk_block *b)
{
    struct tmk_segment_rows *s = arg;
    const struct tmk_segments *all = &rp->state.segments;
    (void)b;
    struct open_segment *ended =
        rp->ended.kind ? find_segment_row(s, s->n, rp->ended.serial) : NULL;
    if (ended && ended->told.end_ns == UINT64_MAX)
        end_segment_row(s, ended, ev->time_ns);
    const struct tmk_driver_segment *new =
        ev->kind == TMK_KIND_SEGMENT ? tmk_segments_find(all, ev->segment_kind, ev->address) : NULL;
    uint64_t n_before = s->n;
    if (new) /* else there was no room for it */
        add_segment_row(s, &rp->state, new);
    sort_segment_rows(s, n_before);
    s->n_begun = all->n_begun;
}

static bool is_segment_there(const struct tmk_segments *all,
                             const struct tmk_driver_segment *segment)
{
    const struct tmk_driver_segment *now = tmk_segments_find(all, segment->kind, segment->address);
    return now && now->serial == segment->serial;
}

/* Segments that the state has and we have not are new; those that it no longer has ended
 * meanwhile. */
static void on_segments_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_segment_rows *s = arg;
    const struct tmk_segments *all = &rp->state.segments;
    if (all->n == s->n_open && all->n_begun == s->n_begun)
        return; /* none began, so none of them ended */
    for (uint64_t i = s->n_open; i-- > 0;) {
        struct open_segment *row = &s->rows[s->open[i]];
        if (!is_segment_there(all, &row->told.segment))
            end_segment_row(s, row, rp->state.now_ns);
    }
    uint64_t n_before = s->n;
    for (uint32_t i = 0; i < all->n && !s->failed; i++)
        if (!find_segment_row(s, n_before, all->items[i].serial))
            add_segment_row(s, &rp->state, &all->items[i]);
    sort_segment_rows(s, n_before);
    s->n_begun = all->n_begun;
}

struct tmk_visitor tmk_segment_rows_visitor(struct tmk_segment_rows *s)
{
    return (struct tmk_visitor){.arg = s,
                                .kinds = TMK_HEARS(SEGMENT) | TMK_HEARS(SEGMENT_END),
                                .event = on_segment_event,
                                .restored = on_segments_restored};
}

int tmk_segment_rows_finish(struct tmk_segment_rows *s, struct tmk_error *err)
{
    bool failed = s->failed || tmk_holders_failed(s->holders);
    if (s->is_out_of_order)
        qsort(s->rows, (size_t)s->n, sizeof *s->rows, by_serial);
    s->is_out_of_order = false;
    return failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the driver's segments") : 0;
}

uint64_t tmk_segment_rows_n(const struct tmk_segment_rows *s)
{
    return s->n;
}

const struct tmk_segment_row *tmk_segment_rows_get(const struct tmk_segment_rows *s, uint64_t i)
{
    return &s->rows[i].told;
}

int tmk_segment_rows_open(const struct tmk_process *p, struct tmk_segment_rows **ret_rows)
{
    struct tmk_segment_rows *s = calloc(1, sizeof *s);
    if (!s)
        return TMK_ENOMEM;
    s->p = p;
    if (tmk_holders_open(p, &s->holders) < 0) {
        free(s);
        return TMK_ENOMEM;
    }
    *ret_rows = s;
    return 0;
}

struct tmk_segment_rows *tmk_segment_rows_close(struct tmk_segment_rows *s)
{
    if (!s)
        return NULL;
    free(s->rows);
    free(s->open);
    tmk_holders_close(s->holders);
    free(s);
    return NULL;
}
