/* SPDX-License-Identifier: MIT */
/* sql/table_ooms.c - the table ooms: requests that failed. */
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/walk.h"
#include "trace/events.h"
#include "trace/kinds.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(time_ns, INT, TMK_ORDER_TIME, "when, ns since the run's start")                              \
    X(step, INT, TMK_ORDER_STEP, "training step; NULL: before the first")                          \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(requested, INT, TMK_PLAIN, "bytes requested")                                                \
    X(capacity, INT, TMK_PLAIN, "bytes that may be used; NULL: not known")                         \
    X(allocated, INT, TMK_PLAIN, "bytes allocated by the process on the device then")              \
    X(thread, INT, TMK_FEW, "the system's number of the thread that asked")                        \
    X(stack_id, INT, TMK_PLAIN, "who requested it: stacks.id")                                     \
    X(stage, TEXT, TMK_FEW, "innermost stage")                                                     \
    X(module, TEXT, TMK_FEW, "innermost module")                                                   \
    X(source, TEXT, TMK_FEW, "what failed it: allocator (the framework's) or driver")              \
    X(device_free, INT, TMK_PLAIN, "bytes of the device that nobody had then; NULL: not known")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static uint64_t walked_allocated_bytes(const struct tmk_walk *w, uint16_t device)
{
    for (uint32_t i = 0; i < w->n_devices; i++)
        if (w->devices[i].device == device)
            return w->devices[i].allocated_bytes;
    return 0;
}

static void add_oom_row(void *arg)
{
    struct tmk_fill *f = arg;
    struct tmk_rows *rows = f->rows;
    const struct tmk_event *ev = &f->walk->event;
    if (ev->kind != TMK_KIND_OOM)
        return;
    const struct tmk_walk_range *top = tmk_walk_top(f->walk);
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_int(rows, COL_time_ns, row, tmk_source_time(f->source, ev->time_ns));
    tmk_rows_int(rows, COL_step, row, f->walk->step);
    tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, ev->device));
    tmk_rows_u64(rows, COL_requested, row, ev->size_bytes);
    if (ev->capacity_bytes)
        tmk_rows_u64(rows, COL_capacity, row, ev->capacity_bytes);
    tmk_rows_u64(rows, COL_allocated, row, walked_allocated_bytes(f->walk, ev->device));
    tmk_fill_text(f, COL_source, row, ev->is_of_driver ? "driver" : "allocator");
    if (ev->free_bytes != UINT64_MAX)
        tmk_rows_u64(rows, COL_device_free, row, ev->free_bytes);
    tmk_rows_int(rows, COL_thread, row, tmk_source_thread(f->source, ev->thread));
    tmk_rows_int(rows, COL_stack_id, row, tmk_source_id(f->source, ev->stack));
    if (top && top->stage_name)
        tmk_rows_text(rows, COL_stage, row, tmk_source_text(f->source, top->stage_name));
    if (top && top->module)
        tmk_rows_text(rows, COL_module, row, tmk_source_text(f->source, top->module));
}

static int fill_ooms(struct tmk_fill *f, struct tmk_error *err)
{
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    return tmk_walk_chunk(f->walk, f->source, f->chunk, TMK_WALK_OTHER, add_oom_row, f, err);
}

const struct tmk_vtab_def tmk_vtab_ooms = {
    .doc =
        {.name = "ooms",
         .meaning = "requests that failed: out of memory",
         .columns = columns,
         .n_columns = N_COLUMNS,
         .example = "SELECT time_ns, step, device, requested, capacity, allocated FROM ooms",
         .more =
             {"SELECT o.step, o.requested, s.text FROM ooms o JOIN stacks s ON s.id = o.stack_id",
              "SELECT l.category, sum(l.size) AS bytes FROM ooms o JOIN live_at(o.time_ns) l ON "
              "l.pid = o.pid GROUP BY l.category ORDER BY bytes DESC"}},
    .name = "ooms",
    .specs = specs,
    .scope = TMK_SCOPE_CHUNK,
    .fill = fill_ooms,
};
