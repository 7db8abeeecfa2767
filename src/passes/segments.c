/* SPDX-License-Identifier: MIT */
/* passes/segments.c - see segments.h. Rows that are still open are found by the segment's number,
 * which only rises: from the end, where those that change are. */
#include "passes/segments.h"

#include <stdlib.h>

#include "kit/grow.h"

struct tmk_segment_rows {
    const struct tmk_process *p;
    struct tmk_segment_row *rows; /* by serial, which rises */
    uint64_t n, room;
    struct tmk_holders *holders;
    bool failed;
};

static const char *known(const char *text)
{
    return text[0] ? text : NULL;
}

static struct tmk_segment_row *find(struct tmk_segment_rows *s, uint64_t serial)
{
    uint64_t low = 0, high = s->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (s->rows[middle].segment.serial < serial)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n && s->rows[low].segment.serial == serial ? &s->rows[low] : NULL;
}

static void end_row(struct tmk_segment_rows *s, uint64_t serial, uint64_t ns)
{
    struct tmk_segment_row *row = find(s, serial);
    if (row && row->end_ns == UINT64_MAX)
        row->end_ns = ns;
}

static void add_row(struct tmk_segment_rows *s, const struct tmk_state *state,
                    const struct tmk_driver_segment *segment)
{
    struct tmk_segment_row *more = tmk_grow(s->rows, s->n + 1, &s->room, sizeof *more);
    if (!more) {
        s->failed = true;
        return;
    }
    s->rows = more;
    uint32_t context = segment->context;
    const struct tmk_holder *holder = tmk_holders_get(s->holders, segment->stack);
    s->rows[s->n++] = (struct tmk_segment_row){
        .segment = *segment,
        .end_ns = UINT64_MAX,
        .stage = context ? tmk_context_stage(s->p, state, context) : NULL,
        .module = context ? tmk_context_module(s->p, state, context) : NULL,
        .owner = known(holder->owner),
        .library = known(holder->library),
    };
}

static void on_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                     struct tmk_block *b)
{
    struct tmk_segment_rows *s = arg;
    (void)b;
    if (ev->kind != TMK_KIND_SEGMENT && ev->kind != TMK_KIND_SEGMENT_END)
        return;
    if (rp->ended.kind)
        end_row(s, rp->ended.serial, ev->time_ns);
    if (ev->kind == TMK_KIND_SEGMENT) {
        const struct tmk_segments *all = &rp->state.segments;
        add_row(s, &rp->state,
                &(struct tmk_driver_segment){.address = ev->address,
                                             .size_bytes = ev->size_bytes,
                                             .alloc_ns = ev->time_ns,
                                             .serial = all->n_begun,
                                             .step = rp->state.step,
                                             .stack = ev->stack,
                                             .thread = ev->thread,
                                             .context =
                                                 tmk_state_thread_context(&rp->state, ev->thread),
                                             .device = ev->device,
                                             .kind = ev->segment_kind});
    }
}

static int by_serial(const void *va, const void *vb)
{
    const struct tmk_segment_row *a = va, *b = vb;
    return (a->segment.serial > b->segment.serial) - (a->segment.serial < b->segment.serial);
}

/* What the state has now and we do not is new; what it has not any more has ended meanwhile. */
static void on_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_segment_rows *s = arg;
    const struct tmk_segments *all = &rp->state.segments;
    uint64_t n_before = s->n;
    for (uint64_t i = 0; i < n_before; i++) {
        struct tmk_segment_row *row = &s->rows[i];
        const struct tmk_driver_segment *now =
            row->end_ns == UINT64_MAX
                ? tmk_segments_find(all, row->segment.kind, row->segment.address)
                : NULL;
        if (row->end_ns == UINT64_MAX && (!now || now->serial != row->segment.serial))
            row->end_ns = rp->state.now_ns;
    }
    for (uint32_t i = 0; i < all->n && !s->failed; i++)
        if (!find(s, all->items[i].serial))
            add_row(s, &rp->state, &all->items[i]);
    if (s->n > n_before)
        qsort(s->rows, (size_t)s->n, sizeof *s->rows, by_serial);
}

struct tmk_visitor tmk_segment_rows_visitor(struct tmk_segment_rows *s)
{
    return (struct tmk_visitor){.arg = s, .event = on_event, .restored = on_restored};
}

int tmk_segment_rows_finish(struct tmk_segment_rows *s, struct tmk_error *err)
{
    return s->failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the driver's segments") : 0;
}

uint64_t tmk_segment_rows_n(const struct tmk_segment_rows *s)
{
    return s->n;
}

const struct tmk_segment_row *tmk_segment_rows_get(const struct tmk_segment_rows *s, uint64_t i)
{
    return &s->rows[i];
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
    tmk_holders_close(s->holders);
    free(s);
    return NULL;
}
