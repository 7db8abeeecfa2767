/* SPDX-License-Identifier: MIT */
/* sql/table_events.c - the table events: everything that was recorded, in order. */
#include <stdio.h>
#include <string.h>

#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "sql/walk.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/segments.h"

/* ", allocate, free, tag ..." */
#define X(name, number, word, form, fields) ", " word
static const char kind_words[] = TMK_EVENT_KINDS(X);
#undef X

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(time_ns, INT, TMK_ORDER_TIME, "when, ns since the run's start")                              \
    X(step, INT, TMK_ORDER_STEP, "training step; NULL: before the first")                          \
    X(thread, INT, TMK_FEW, "the system's number of the thread")                                   \
    X(kind, TEXT, TMK_FEW, &kind_words[2])                                                         \
    X(device, TEXT, TMK_FEW, "of what is about a device")                                          \
    X(address, INT, TMK_PLAIN, "of allocate, free, tag, segment, segment_end")                     \
    X(size, INT, TMK_PLAIN,                                                                        \
      "bytes of the block or segment, requested (oom), reserved, used (sample)")                   \
    X(stack_id, INT, TMK_PLAIN, "who: stacks.id")                                                  \
    X(stage, TEXT, TMK_FEW, "innermost stage of the thread")                                       \
    X(module, TEXT, TMK_FEW, "innermost module of the thread")                                     \
    X(category, TEXT, TMK_FEW, "of tag")                                                           \
    X(name, TEXT, TMK_FEW, "of tag (tensor), open, close (range), mark, segment (its kind)")       \
    X(range, TEXT, TMK_FEW, "of open, close: stage, module, user or mode")                         \
    X(info, TEXT, TMK_PLAIN, "of mark: what was said; of drop: how many were lost")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static const char *const range_names[] = {[TMK_RANGE_GRAD_MODE] = "mode",
                                          [TIDEMARK_STAGE] = "stage",
                                          [TIDEMARK_MODULE] = "module",
                                          [TIDEMARK_USER] = "user"};

enum {
    N_RANGES = sizeof range_names / sizeof range_names[0],
    WORD_FIELDS =
        TMK_HAS_CATEGORY | TMK_HAS_RANGE | TMK_HAS_NAME | TMK_HAS_SEGMENT_KIND | TMK_HAS_TEXT,
};

struct event_maker {
    struct tmk_fill *f;
    uint32_t kinds[TMK_N_KINDS], ranges[N_RANGES]; /* numbers of the names */
};

static void set_string(struct tmk_fill *f, uint32_t column, uint64_t row, uint32_t string)
{
    if (tmk_rows_want(f->rows, column) && string)
        tmk_rows_text(f->rows, column, row, tmk_source_text(f->source, string));
}

/* Set the size: a free has its block's, a sample what is in use, if known. */
static void set_event_size(struct tmk_fill *f, uint64_t row, unsigned has)
{
    const struct tmk_event *ev = &f->walk->event;
    if (has & TMK_HAS_SIZE)
        tmk_rows_u64(f->rows, COL_size, row, ev->size_bytes);
    else if (ev->kind == TMK_KIND_FREE && f->walk->freed_bytes != UINT64_MAX)
        tmk_rows_u64(f->rows, COL_size, row, f->walk->freed_bytes);
    else if (has & TMK_HAS_SAMPLE && ev->sample.used_bytes != UINT64_MAX)
        tmk_rows_u64(f->rows, COL_size, row, ev->sample.used_bytes);
}

static void set_lost(struct tmk_fill *f, uint64_t row)
{
    char text[32];
    snprintf(text, sizeof text, "%llu lost", (unsigned long long)f->walk->event.size_bytes);
    tmk_fill_text(f, COL_info, row, text);
}

/* The range that an open event opened or a close event closed, else the innermost one. */
static const struct tmk_walk_range *range_of(const struct tmk_walk *w)
{
    return w->n_closed ? w->closed : tmk_walk_top(w);
}

static void set_range(const struct event_maker *m, uint64_t row)
{
    const struct tmk_walk *w = m->f->walk;
    const struct tmk_walk_range *closed = w->n_closed ? w->closed : NULL;
    uint32_t name = w->event.kind == TMK_KIND_PUSH ? w->event.name : closed ? closed->name : 0;
    if (w->event.range_kind < N_RANGES)
        tmk_rows_text(m->f->rows, COL_range, row, m->ranges[w->event.range_kind]);
    set_string(m->f, COL_name, row, name);
}

/* Set the texts; a segment's name is its kind. */
static void set_words(const struct event_maker *m, uint64_t row, unsigned has)
{
    struct tmk_fill *f = m->f;
    const struct tmk_event *ev = &f->walk->event;
    if (has & TMK_HAS_CATEGORY && tmk_rows_want(f->rows, COL_category))
        tmk_rows_text(f->rows, COL_category, row, tmk_source_category(f->source, ev->category));
    if (has & TMK_HAS_RANGE)
        set_range(m, row);
    else if (has & TMK_HAS_NAME)
        set_string(f, COL_name, row, ev->name);
    if (has & TMK_HAS_SEGMENT_KIND)
        tmk_fill_text(f, COL_name, row, tmk_segment_kind_text(ev->segment_kind));
    if (has & TMK_HAS_TEXT && ev->text_bytes && tmk_rows_want(f->rows, COL_info))
        tmk_rows_text(f->rows, COL_info, row, tmk_textpool_copy(f->pool, ev->text, ev->text_bytes));
}

/* What the event's kind has. */
static void set_fields(const struct event_maker *m, uint64_t row)
{
    struct tmk_fill *f = m->f;
    const struct tmk_event *ev = &f->walk->event;
    unsigned has = tmk_kind_fields(ev->kind);
    if (has & TMK_HAS_DEVICE) {
        if (tmk_rows_want(f->rows, COL_device))
            tmk_rows_text(f->rows, COL_device, row, tmk_source_device(f->source, ev->device));
        if (has & TMK_HAS_ADDRESS)
            tmk_rows_int(f->rows, COL_address, row, (int64_t)ev->address);
    }
    if (has & TMK_HAS_STACK)
        tmk_rows_int(f->rows, COL_stack_id, row, tmk_source_id(f->source, ev->stack));
    if (ev->kind == TMK_KIND_DROP)
        set_lost(f, row);
    else
        set_event_size(f, row, has);
    if (has & WORD_FIELDS)
        set_words(m, row, has);
}

static void add_event_row(void *arg)
{
    const struct event_maker *m = arg;
    struct tmk_fill *f = m->f;
    struct tmk_rows *rows = f->rows;
    const struct tmk_walk *w = f->walk;
    const struct tmk_walk_range *range = range_of(w);
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_int(rows, COL_time_ns, row, tmk_source_time(f->source, w->event.time_ns));
    tmk_rows_int(rows, COL_step, row, w->step);
    if (tmk_rows_want(rows, COL_thread))
        tmk_rows_int(rows, COL_thread, row, tmk_source_thread(f->source, w->event.thread));
    if (w->event.kind < TMK_N_KINDS)
        tmk_rows_text(rows, COL_kind, row, m->kinds[w->event.kind]);
    if (range) {
        set_string(f, COL_stage, row, range->stage_name);
        set_string(f, COL_module, row, range->module);
    }
    set_fields(m, row);
}

static int fill_events(struct tmk_fill *f, struct tmk_error *err)
{
    struct event_maker m = {.f = f};
    for (uint32_t i = 0; i < TMK_N_KINDS; i++)
        if (tmk_kind_fields(i))
            m.kinds[i] = tmk_textpool_put(f->pool, tmk_kind_word(i));
    for (uint32_t i = 0; i < N_RANGES; i++)
        m.ranges[i] = tmk_textpool_put(f->pool, range_names[i]);
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    return tmk_walk_chunk(f->walk, f->source, f->chunk, TMK_WALK_ALL, add_event_row, &m, err);
}

const struct tmk_vtab_def tmk_vtab_events = {
    .doc = {.name = "events",
            .meaning = "everything that was recorded, in order",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT kind, count(*) FROM events GROUP BY kind",
            .more = {"SELECT time_ns, kind, size, address FROM events WHERE step = 3 ORDER BY "
                     "time_ns LIMIT 20",
                     "SELECT thread, count(*) AS blocks FROM events WHERE kind = 'allocate' GROUP "
                     "BY thread"}},
    .name = "events",
    .specs = specs,
    .scope = TMK_SCOPE_CHUNK,
    .rows_per_event = 1,
    .fill = fill_events,
};
