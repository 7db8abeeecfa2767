/* SPDX-License-Identifier: MIT */
/* sql/table_processes.c - the table processes: the traces of the run, and what is known of each
 * as a whole. */
#include "base/array.h"
#include "model/run.h"
#include "passes/quality.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/stops.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(world_size, INT, TMK_FEW, "number of ranks")                                                 \
    X(host, TEXT, TMK_FEW, "machine it ran on")                                                    \
    X(command, TEXT, TMK_PLAIN, "its command line, secrets left out")                              \
    X(file, TEXT, TMK_PLAIN, "name of its trace")                                                  \
    X(start_ns, INT, TMK_PLAIN, "when it began, ns since the run's start")                         \
    X(end_ns, INT, TMK_PLAIN, "its last event")                                                    \
    X(start_realtime_ns, INT, TMK_PLAIN, "when it began, ns since 1970 UTC")                       \
    X(state, TEXT, TMK_FEW, "open, closed or stopped (recording ended early)")                     \
    X(reason, TEXT, TMK_FEW, "why recording stopped")                                              \
    X(events, INT, TMK_PLAIN, "events recorded")                                                   \
    X(allocations, INT, TMK_PLAIN, "of these, blocks made")                                        \
    X(frees, INT, TMK_PLAIN, "and frees")                                                          \
    X(dropped, INT, TMK_PLAIN, "events lost because the ring was full")                            \
    X(given_up, INT, TMK_PLAIN, "events given up to stay under the size allowed")                  \
    X(untracked, INT, TMK_PLAIN, "blocks that could not be followed")                              \
    X(file_bytes, INT, TMK_PLAIN, "size of the trace")                                             \
    X(alloc_conf, TEXT, TMK_FEW, "settings of torch's allocator; '': its defaults")                \
    X(without_details, INT, TMK_PLAIN,                                                             \
      "blocks alive at the end, of unknown age and origin: that is no longer in the trace")        \
    X(unnamed, INT, TMK_PLAIN, "times that a name, stack or stream found no room in the recorder") \
    X(role, TEXT, TMK_FEW, "role of the rank, as its launcher says; NULL: not known")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {
        [TMK_STATE_OPEN] = "open", [TMK_STATE_CLOSED] = "closed", [TMK_STATE_STOPPED] = "stopped"};
    return state < TMK_N(names) ? names[state] : NULL;
}

static const char *stop_reason_text(const struct tmk_status *s)
{
    return s->state == TMK_STATE_STOPPED ? tmk_stop_text((enum tmk_stop)s->reason) : NULL;
}

static void set_status(struct tmk_fill *f, uint64_t row, const struct tmk_status *s)
{
    tmk_fill_text(f, COL_state, row, state_name(s->state));
    tmk_fill_text(f, COL_reason, row, stop_reason_text(s));
    tmk_rows_u64(f->rows, COL_events, row, s->n_events);
    tmk_rows_u64(f->rows, COL_allocations, row, s->n_allocs);
    tmk_rows_u64(f->rows, COL_frees, row, s->n_frees);
    tmk_rows_u64(f->rows, COL_dropped, row, s->n_dropped);
    tmk_rows_u64(f->rows, COL_given_up, row, s->n_given_up);
    tmk_rows_u64(f->rows, COL_untracked, row, s->n_untracked);
    tmk_rows_u64(f->rows, COL_unnamed, row, s->n_unnamed);
}

static int fill_processes(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_process *p = f->source->p;
    struct tmk_rows *rows = f->rows;
    uint64_t n_without = 0;
    int rc = 0;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_int(rows, COL_pid, row, tmk_source_pid(f->source));
    tmk_rows_int(rows, COL_rank, row, tmk_source_rank(f->source));
    tmk_rows_int(rows, COL_world_size, row, p->world_size < 0 ? TMK_NULL_INT : p->world_size);
    tmk_fill_text(f, COL_role, row, p->role);
    tmk_fill_text(f, COL_host, row, p->host[0] ? p->host : NULL);
    tmk_fill_text(f, COL_command, row, p->command[0] ? p->command : NULL);
    tmk_fill_text(f, COL_file, row, p->file);
    tmk_rows_int(rows, COL_start_ns, row, tmk_source_time(f->source, 0));
    tmk_rows_int(rows, COL_end_ns, row, tmk_source_time(f->source, p->end_ns));
    if (p->start_realtime_ns)
        tmk_rows_u64(rows, COL_start_realtime_ns, row, p->start_realtime_ns);
    tmk_fill_text(f, COL_alloc_conf, row, tmk_reader_info(p->reader, "alloc_conf"));
    tmk_rows_u64(rows, COL_file_bytes, row, tmk_reader_file_bytes(p->reader));
    if (!tmk_reader_damage(p->reader)->status_lost)
        set_status(f, row, tmk_reader_status(p->reader));
    if (tmk_rows_want(rows, COL_without_details))
        rc = tmk_quality_without_details(p, &n_without, err);
    if (rc == 0)
        tmk_rows_u64(rows, COL_without_details, row, n_without);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_processes = {
    .doc = {.name = "processes",
            .meaning = "the processes of the run",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT rank, pid, state, events, dropped FROM processes",
            .more = {"SELECT sum(events) AS events, sum(dropped) AS dropped, sum(given_up) AS "
                     "given_up FROM processes",
                     "SELECT pid, reason FROM processes WHERE state = 'stopped'"}},
    .name = "processes",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_processes,
};
