/* SPDX-License-Identifier: MIT */
/* sql/blockrows.c - see blockrows.h.
 *
 * A block's entry in the replay's state has the number of its row (`row`, from 1), so that its
 * free and its tags find the row. After a gap entries are new: they are matched with the open
 * rows by serial number; rows without a live block were freed in the gap, and end where that was
 * noticed. */
#include "sql/blockrows.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"
#include "model/owners.h"
#include "model/run.h"
#include "sql/rows.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

const struct tmk_sql_column tmk_block_columns[] = {TMK_BLOCK_COLUMNS(TMK_COLUMN_DOC)};
const struct tmk_column_spec tmk_block_specs[] = {TMK_BLOCK_COLUMNS(TMK_COLUMN_SPEC)};

/* ---- one block ---- */

/* The block's stage, which mostly comes from a range. */
static uint32_t stage_text(struct tmk_source *s, const struct tmk_state *state,
                           const struct tmk_block *b)
{
    uint32_t stage = state->contexts[b->context].stage;
    return stage ? tmk_source_text(s, state->contexts[stage].name)
                 : tmk_textpool_put(s->pool, tmk_block_stage(s->p, state->contexts, b));
}

/* Set module and component, from the name if that decides: `b` is settled. */
static void set_module(struct tmk_fill *f, const struct tmk_state *state, uint64_t row,
                       const struct tmk_block *b)
{
    struct tmk_source *s = f->source;
    const struct tmk_context *contexts = state->contexts;
    uint32_t module = contexts[b->context].module;
    bool is_plain = module && (b->name == 0 || !tmk_block_has_parameter(s->p, b));
    if (tmk_rows_want(f->rows, COL_module))
        tmk_rows_text(f->rows, COL_module, row,
                      module && !tmk_block_has_maker(s->p, b)
                          ? tmk_source_text(s, contexts[module].name)
                          : tmk_textpool_put(s->pool, tmk_block_module(s->p, contexts, b)));
    if (tmk_rows_want(f->rows, COL_component))
        tmk_rows_text(f->rows, COL_component, row,
                      is_plain ? tmk_source_component(s, contexts[module].name)
                               : tmk_textpool_put(s->pool, tmk_block_component(s->p, contexts, b)));
}

/* Set the category as far as it is known now. */
static void set_category(struct tmk_fill *f, const struct tmk_state *state, uint64_t row,
                         const struct tmk_block *b)
{
    if (!tmk_rows_want(f->rows, COL_category))
        return;
    struct tmk_block settled = tmk_state_settled(state, b);
    uint8_t category = tmk_block_category(f->source->p, state->contexts, &settled);
    tmk_rows_text(f->rows, COL_category, row, tmk_source_category(f->source, category));
}

/* Set category, name and what follows from them: also the stage, where no range tells it. */
static void set_tag(struct tmk_fill *f, const struct tmk_state *state, uint64_t row,
                    const struct tmk_block *b)
{
    struct tmk_rows *rows = f->rows;
    set_category(f, state, row, b);
    if (tmk_rows_want(rows, COL_tensor)) {
        uint32_t name = tmk_state_name(state, b);
        tmk_rows_text(rows, COL_tensor, row, name ? tmk_source_text(f->source, name) : 0);
    }
    struct tmk_block settled = tmk_state_settled(state, b);
    if (tmk_rows_want(rows, COL_module) || tmk_rows_want(rows, COL_component))
        set_module(f, state, row, &settled);
    if (tmk_rows_want(rows, COL_stage))
        tmk_rows_text(rows, COL_stage, row, stage_text(f->source, state, &settled));
}

/* Settle a row when its block goes, or at the end: only the category can have changed, and what
 * follows from it. */
static void settle_row(struct tmk_fill *f, const struct tmk_state *state, uint64_t row,
                       const struct tmk_block *b)
{
    if (b->name)
        set_tag(f, state, row, b);
    else
        set_category(f, state, row, b);
}

/* The handle of the block's stream; the host has none. */
static int64_t stream_of_block(const struct tmk_source *s, const struct tmk_block *b)
{
    struct tmk_stream stream;
    if (b->stream == 0)
        return b->device == TIDEMARK_HOST ? TMK_NULL_INT : 0;
    return tmk_reader_stream(s->p->reader, b->stream, &stream) ? (int64_t)stream.handle
                                                               : TMK_NULL_INT;
}

static void set_block_row(struct tmk_fill *f, const struct tmk_state *state, uint64_t row,
                          const struct tmk_block *b, uint64_t requested_bytes)
{
    struct tmk_rows *rows = f->rows;
    struct tmk_source *s = f->source;
    tmk_rows_int(rows, COL_id, row, tmk_source_id(s, b->serial));
    if (tmk_rows_want(rows, COL_device))
        tmk_rows_text(rows, COL_device, row, tmk_source_device(s, b->device));
    tmk_rows_int(rows, COL_address, row, (int64_t)b->address);
    tmk_rows_u64(rows, COL_size, row, b->size_bytes);
    if (requested_bytes)
        tmk_rows_u64(rows, COL_requested, row, requested_bytes);
    tmk_rows_int(rows, COL_step, row, b->step);
    set_tag(f, state, row, b);
    if (b->serial == 0)
        return; /* met after a gap: nothing is known of its allocation */
    tmk_rows_int(rows, COL_alloc_ns, row, tmk_source_time(s, b->alloc_ns));
    if (tmk_rows_want(rows, COL_thread))
        tmk_rows_int(rows, COL_thread, row, tmk_source_thread(s, b->thread));
    tmk_rows_int(rows, COL_stack_id, row, tmk_source_id(s, b->stack));
    if (tmk_rows_want(rows, COL_stream))
        tmk_rows_int(rows, COL_stream, row, stream_of_block(s, b));
}

static void set_block_constants(struct tmk_fill *f)
{
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
}

/* ---- all blocks ---- */

struct open_row {
    uint64_t serial; /* 0: not known */
    bool open, found;
};

struct rows_sweep {
    struct tmk_fill *f;
    enum tmk_block_choice choice;
    struct open_row *blocks; /* by row */
    uint64_t n, room;
    bool failed;
};

static void add_open_row(struct rows_sweep *w, const struct tmk_state *state, struct tmk_block *b)
{
    if (TMK_GROW(w->blocks, w->n + 1, w->room) < 0 || w->n >= UINT32_MAX - 1) {
        w->failed = true;
        return;
    }
    w->blocks[w->n++] = (struct open_row){.serial = b->serial, .open = true};
    uint64_t row = tmk_rows_add(w->f->rows);
    set_block_row(w->f, state, row, b, tmk_state_requested(state, b));
    b->row = (uint32_t)w->n;
}

static bool is_row_open(const struct rows_sweep *w, const struct tmk_block *b)
{
    return b->row > 0 && b->row <= w->n && w->blocks[b->row - 1].open &&
           w->blocks[b->row - 1].serial == b->serial;
}

static void end_block_row(struct rows_sweep *w, uint64_t row, uint64_t ns)
{
    w->blocks[row].open = false;
    tmk_rows_int(w->f->rows, COL_free_ns, row, tmk_source_time(w->f->source, ns));
}

static void on_block_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                           struct tmk_block *b)
{
    struct rows_sweep *w = arg;
    if (!b || w->failed)
        return;
    switch (ev->kind) {
    case TMK_KIND_ALLOC:
        b->row = 0;
        if (w->choice == TMK_BLOCKS_ALL)
            add_open_row(w, &rp->state, b);
        break;
    case TMK_KIND_TAG:
        if (is_row_open(w, b))
            set_tag(w->f, &rp->state, b->row - 1, b);
        else if (w->choice == TMK_BLOCKS_ALL || tmk_state_name(&rp->state, b))
            add_open_row(w, &rp->state, b);
        break;
    case TMK_KIND_FREE:
        if (!is_row_open(w, b))
            break;
        settle_row(w->f, &rp->state, b->row - 1, b);
        end_block_row(w, b->row - 1, ev->time_ns);
        break;
    default:
        break;
    }
}

/* ---- after a gap ---- */

struct row_serial {
    uint64_t serial;
    uint32_t row;
};

static int compare_row_serials(const void *va, const void *vb)
{
    const struct row_serial *a = va, *b = vb;
    return (a->serial > b->serial) - (a->serial < b->serial);
}

/* The open rows with a serial number, sorted by it; malloc'ed. */
static struct row_serial *list_open_rows(const struct rows_sweep *w, uint64_t *ret_n)
{
    struct row_serial *list = malloc((size_t)(w->n + 1) * sizeof *list);
    uint64_t n = 0;
    for (uint64_t i = 0; list && i < w->n; i++)
        if (w->blocks[i].open && w->blocks[i].serial)
            list[n++] = (struct row_serial){.serial = w->blocks[i].serial, .row = (uint32_t)i};
    if (list)
        qsort(list, (size_t)n, sizeof *list, compare_row_serials);
    *ret_n = n;
    return list;
}

/* Find the block's row among the open ones, or add one. */
static void match_block(struct rows_sweep *w, const struct tmk_state *state, struct tmk_block *b,
                        const struct row_serial *list, uint64_t n)
{
    if (!is_row_open(w, b)) {
        struct row_serial key = {.serial = b->serial};
        const struct row_serial *match =
            b->serial ? bsearch(&key, list, (size_t)n, sizeof *list, compare_row_serials) : NULL;
        b->row = match ? match->row + 1 : 0;
        if (!match && (w->choice == TMK_BLOCKS_ALL || tmk_state_name(state, b)))
            add_open_row(w, state, b);
        if (b->row && !w->failed)
            set_tag(w->f, state, b->row - 1, b);
    }
    if (b->row && !w->failed)
        w->blocks[b->row - 1].found = true;
}

static void on_blocks_restored(void *arg, const struct tmk_replay *rp)
{
    struct rows_sweep *w = arg;
    const struct tmk_state *state = &rp->state;
    uint64_t n_list;
    struct row_serial *list = list_open_rows(w, &n_list);
    if (!list) {
        w->failed = true;
        return;
    }
    for (uint64_t i = 0; i < w->n; i++)
        w->blocks[i].found = false;
    for (uint32_t i = 1; i <= state->n_entries && !w->failed; i++)
        if (state->entries[i].live)
            match_block(w, state, &state->entries[i], list, n_list);
    for (uint64_t i = 0; i < w->n; i++)
        if (w->blocks[i].open && !w->blocks[i].found)
            end_block_row(w, i, state->now_ns);
    free(list);
}

/* Settle the rows of blocks that live to the end. */
static void settle_live_rows(struct rows_sweep *w, const struct tmk_state *state)
{
    for (uint32_t i = 1; i <= state->n_entries && !w->failed; i++)
        if (state->entries[i].live && is_row_open(w, &state->entries[i]))
            settle_row(w->f, state, state->entries[i].row - 1, &state->entries[i]);
}

int tmk_block_rows(struct tmk_fill *f, enum tmk_block_choice choice, struct tmk_error *err)
{
    struct rows_sweep w = {.f = f, .choice = choice};
    struct tmk_visitor visitor = {
        .arg = &w, .event = on_block_event, .restored = on_blocks_restored};
    struct tmk_replay rp = {0};
    set_block_constants(f);
    int rc = tmk_process_sweep(f->source->p, &visitor, 1, &rp, err);
    if (rc == 0) {
        settle_live_rows(&w, &rp.state);
        tmk_replay_fini(&rp);
    }
    free(w.blocks);
    return rc == 0 && w.failed ? TMK_ENOMEM : rc;
}

/* ---- blocks at a moment ---- */

struct fate { /* of a block: what the pass does not keep */
    int64_t free_ns;
    uint64_t requested_bytes;
};

struct frees {
    struct fate *blocks; /* by row */
    uint64_t n, room;
    bool failed;
};

static void number_block(struct frees *w, const struct tmk_state *state, struct tmk_block *b)
{
    if (TMK_GROW(w->blocks, w->n + 1, w->room) < 0 || w->n >= UINT32_MAX - 1) {
        w->failed = true;
        return;
    }
    w->blocks[w->n++] =
        (struct fate){.free_ns = TMK_NULL_INT, .requested_bytes = tmk_state_requested(state, b)};
    b->row = (uint32_t)w->n;
}

static void note_free(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                      struct tmk_block *b)
{
    struct frees *w = arg;
    if (!b || w->failed)
        return;
    if (ev->kind == TMK_KIND_ALLOC)
        number_block(w, &rp->state, b);
    else if (ev->kind == TMK_KIND_FREE && b->row > 0 && b->row <= w->n)
        w->blocks[b->row - 1].free_ns = (int64_t)(ev->time_ns & INT64_MAX);
}

/* Frees in a gap are not known: blocks found after it are new ones. */
static void note_frees_gap(void *arg, const struct tmk_replay *rp)
{
    struct frees *w = arg;
    for (uint32_t i = 1; i <= rp->state.n_entries && !w->failed; i++)
        if (rp->state.entries[i].live && rp->state.entries[i].row == 0)
            number_block(w, &rp->state, &rp->state.entries[i]);
}

static void add_peak_rows(struct tmk_fill *f, const struct tmk_peak *peak,
                          const struct tmk_state *state, const struct frees *frees)
{
    for (uint64_t i = 0; i < tmk_peak_n_blocks(peak); i++) {
        const struct tmk_block *b = tmk_peak_block(peak, i);
        uint64_t row = tmk_rows_add(f->rows);
        bool is_known = b->row > 0 && b->row <= frees->n;
        struct fate fate =
            is_known ? frees->blocks[b->row - 1] : (struct fate){.free_ns = TMK_NULL_INT};
        set_block_row(f, state, row, b, fate.requested_bytes);
        if (fate.free_ns != TMK_NULL_INT)
            tmk_rows_int(f->rows, COL_free_ns, row,
                         tmk_source_time(f->source, (uint64_t)fate.free_ns));
    }
}

int tmk_block_rows_at(struct tmk_fill *f, const struct tmk_moment *moment, struct tmk_error *err)
{
    struct tmk_peak *peak = NULL;
    struct tmk_replay rp = {0};
    struct frees frees = {0};
    set_block_constants(f);
    int rc = tmk_peak_open(f->source->p, moment, &peak);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitors[2] = {tmk_peak_visitor(peak)};
    uint32_t n_visitors = 1;
    if (tmk_rows_want(f->rows, COL_free_ns) ||
        tmk_rows_want(f->rows, COL_requested)) { /* before the pass, which copies blocks */
        visitors[1] = visitors[0];
        visitors[0] =
            (struct tmk_visitor){.arg = &frees, .event = note_free, .restored = note_frees_gap};
        n_visitors = 2;
    }
    rc = tmk_process_sweep(f->source->p, visitors, n_visitors, &rp, err);
    if (rc == 0) {
        rc = frees.failed ? TMK_ENOMEM : tmk_peak_finish(peak, &rp, err);
        if (rc == 0)
            add_peak_rows(f, peak, &rp.state, &frees);
        tmk_replay_fini(&rp);
    }
    tmk_peak_close(peak);
    free(frees.blocks);
    return rc;
}
