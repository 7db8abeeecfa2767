/* SPDX-License-Identifier: MIT */
/* sql/table_marks.c - the table marks: what the program reported about a moment. */
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "sql/walk.h"
#include "trace/events.h"
#include "trace/kinds.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(time_ns, INT, TMK_ORDER_TIME, "when, ns since the run's start")                              \
    X(step, INT, TMK_ORDER_STEP, "training step; NULL: before the first")                          \
    X(thread, INT, TMK_FEW, "the system's number of the thread")                                   \
    X(event, TEXT, TMK_FEW, "name of the mark")                                                    \
    X(info, TEXT, TMK_PLAIN, "what was said; NULL: nothing")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static void add_mark(void *arg)
{
    struct tmk_fill *f = arg;
    struct tmk_rows *rows = f->rows;
    const struct tmk_event *ev = &f->walk->event;
    if (ev->kind != TMK_KIND_MARK)
        return;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_int(rows, COL_time_ns, row, tmk_source_time(f->source, ev->time_ns));
    tmk_rows_int(rows, COL_step, row, f->walk->step);
    tmk_rows_int(rows, COL_thread, row, tmk_source_thread(f->source, ev->thread));
    tmk_rows_text(rows, COL_event, row, tmk_source_text(f->source, ev->name));
    if (ev->text_bytes > 0)
        tmk_rows_text(rows, COL_info, row, tmk_textpool_copy(f->pool, ev->text, ev->text_bytes));
}

static int fill_marks(struct tmk_fill *f, struct tmk_error *err)
{
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    return tmk_walk_chunk(f->walk, f->source, f->chunk, TMK_WALK_OTHER, add_mark, f, err);
}

const struct tmk_vtab_def tmk_vtab_marks = {
    .doc = {.name = "marks",
            .meaning = "what the program said about moments",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT time_ns, event, info FROM marks ORDER BY time_ns",
            .more = {"SELECT event, count(*) AS times FROM marks GROUP BY event",
                     "SELECT m.info, sum(l.size) AS bytes FROM marks m JOIN live_at(m.time_ns) l "
                     "ON l.pid = m.pid GROUP BY m.time_ns"}},
    .name = "marks",
    .specs = specs,
    .scope = TMK_SCOPE_CHUNK,
    .fill = fill_marks,
};
