/* SPDX-License-Identifier: MIT */
/* sql/table_segments.c - the table segments: what the driver gave to the process, and who asked
 * for it. */
#include "model/run.h"
#include "passes/segment_rows.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "trace/replay.h"
#include "trace/segments.h"

#define COLUMNS(X)                                                                                 \
    X(id, INT, TMK_PLAIN, "number of the segment, rising as they begin")                           \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cuda:0 and so on; NULL: memory of the host")                         \
    X(kind, TEXT, TMK_FEW,                                                                         \
      "device, array, physical, mapping, pool, async, managed, pinned, registered or ipc")         \
    X(on_device, INT, TMK_FEW, "1: it takes memory of the device; 0: it does not, or not surely")  \
    X(address, INT, TMK_PLAIN, "where; of physical, pool and array their handle")                  \
    X(size, INT, TMK_PLAIN, "bytes, as requested; of a pool what it has")                          \
    X(alloc_ns, INT, TMK_ORDER_TIME, "when it began, ns since the run's start")                    \
    X(free_ns, INT, TMK_PLAIN, "when it ended; NULL: it has not")                                  \
    X(owner, TEXT, TMK_FEW, "torch, nccl, cublas, jax, user and so on; NULL: not known")           \
    X(library, TEXT, TMK_FEW, "file that called the driver; NULL: not known")                      \
    X(thread, INT, TMK_FEW, "the system's number of the thread that asked")                        \
    X(stack_id, INT, TMK_PLAIN, "who requested it, C frames too: stacks.id")                       \
    X(step, INT, TMK_FEW, "training step it began in; NULL: before the first")                     \
    X(stage, TEXT, TMK_FEW, "innermost stage then")                                                \
    X(module, TEXT, TMK_FEW, "innermost module then")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static void add_segment_cells(struct tmk_fill *f, const struct tmk_segment_row *r)
{
    struct tmk_rows *rows = f->rows;
    const struct tmk_driver_segment *g = &r->segment;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_int(rows, COL_id, row, tmk_source_id(f->source, g->serial));
    if (!tmk_segment_is_of_host(g->kind))
        tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, g->device));
    tmk_fill_text(f, COL_kind, row, tmk_segment_kind_text(g->kind));
    tmk_rows_int(rows, COL_on_device, row, tmk_segment_is_on_device(g->kind));
    tmk_rows_int(rows, COL_address, row, (int64_t)g->address);
    tmk_rows_u64(rows, COL_size, row, g->size_bytes);
    tmk_rows_int(rows, COL_alloc_ns, row, tmk_source_time(f->source, g->alloc_ns));
    if (r->end_ns != UINT64_MAX)
        tmk_rows_int(rows, COL_free_ns, row, tmk_source_time(f->source, r->end_ns));
    tmk_fill_text(f, COL_owner, row, r->owner);
    tmk_fill_text(f, COL_library, row, r->library);
    tmk_rows_int(rows, COL_thread, row, tmk_source_thread(f->source, g->thread));
    tmk_rows_int(rows, COL_stack_id, row, tmk_source_id(f->source, g->stack));
    tmk_rows_int(rows, COL_step, row, g->step);
    tmk_fill_text(f, COL_stage, row, r->stage);
    tmk_fill_text(f, COL_module, row, r->module);
}

static int fill_segments(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_segment_rows *all = NULL;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    int rc = tmk_segment_rows_open(f->source->p, &all);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitor = tmk_segment_rows_visitor(all);
    rc = tmk_process_sweep(f->source->p, &visitor, 1, NULL, err);
    if (rc == 0)
        rc = tmk_segment_rows_finish(all, err);
    for (uint64_t i = 0; rc == 0 && i < tmk_segment_rows_n(all); i++)
        add_segment_cells(f, tmk_segment_rows_get(all, i));
    tmk_segment_rows_close(all);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_segments = {
    .doc = {.name = "segments",
            .meaning = "what the driver gave to the process, and who requested it",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT device, owner, kind, count(*), sum(size) FROM segments "
                       "WHERE free_ns IS NULL GROUP BY 1, 2, 3",
            .more = {"SELECT owner, sum(size) AS bytes FROM segments WHERE free_ns IS NULL AND "
                     "on_device GROUP BY owner",
                     "SELECT s.size, t.text FROM segments s JOIN stacks t ON t.id = s.stack_id "
                     "ORDER BY s.size DESC LIMIT 10"}},
    .name = "segments",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_segments,
};
