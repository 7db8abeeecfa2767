/* SPDX-License-Identifier: MIT */
/* sql/table_samples.c - the table samples: what the driver reported of a device, about every
 * second. */
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/walk.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process that asked")                                                     \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(time_ns, INT, TMK_ORDER_TIME, "when, ns since the run's start")                              \
    X(step, INT, TMK_ORDER_STEP, "training step; NULL: before the first")                          \
    X(device, TEXT, TMK_FEW, "cuda:0 and so on, as the process counts them")                       \
    X(used, INT, TMK_PLAIN, "bytes of the device in use, by whomever; NULL: not known")            \
    X(total, INT, TMK_PLAIN, "bytes that it has; NULL: not known")                                 \
    X(own, INT, TMK_PLAIN, "bytes that the process uses, by the driver; NULL: not known")          \
    X(others, INT, TMK_PLAIN, "bytes that other processes use; NULL: not known")                   \
    X(allocated, INT, TMK_PLAIN, "bytes allocated by the process then")                            \
    X(reserved, INT, TMK_PLAIN, "bytes reserved by its allocator then; NULL: not known")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static void set_known(struct tmk_rows *rows, uint32_t column, uint64_t row, uint64_t bytes)
{
    if (bytes != UINT64_MAX)
        tmk_rows_u64(rows, column, row, bytes);
}

static void set_blocks(struct tmk_fill *f, uint64_t row, uint16_t device)
{
    const struct tmk_walk *w = f->walk;
    for (uint32_t i = 0; i < w->n_devices; i++) {
        if (w->devices[i].device != device)
            continue;
        tmk_rows_u64(f->rows, COL_allocated, row, w->devices[i].allocated_bytes);
        if (w->devices[i].has_reserved)
            tmk_rows_u64(f->rows, COL_reserved, row, w->devices[i].reserved_bytes);
        return;
    }
    tmk_rows_u64(f->rows, COL_allocated, row, 0);
}

static void add_sample(void *arg)
{
    struct tmk_fill *f = arg;
    struct tmk_rows *rows = f->rows;
    const struct tmk_event *ev = &f->walk->event;
    if (ev->kind != TMK_KIND_SAMPLE)
        return;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_int(rows, COL_time_ns, row, tmk_source_time(f->source, ev->time_ns));
    tmk_rows_int(rows, COL_step, row, f->walk->step);
    tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, ev->device));
    set_known(rows, COL_used, row, ev->sample.used_bytes);
    set_known(rows, COL_total, row, ev->sample.total_bytes);
    set_known(rows, COL_own, row, ev->sample.own_bytes);
    set_known(rows, COL_others, row, ev->sample.others_bytes);
    set_blocks(f, row, ev->device);
}

static int fill_samples(struct tmk_fill *f, struct tmk_error *err)
{
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    return tmk_walk_chunk(f->walk, f->source, f->chunk, TMK_WALK_OTHER, add_sample, f, err);
}

const struct tmk_vtab_def tmk_vtab_samples = {
    .doc = {.name = "samples",
            .meaning = "what the driver said of a device, every second or so",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT time_ns, device, used, own, others, reserved, allocated "
                       "FROM samples ORDER BY time_ns",
            .more =
                {"SELECT device, max(used) * 100.0 / total AS percent FROM samples GROUP BY device",
                 "SELECT device, max(others) AS others FROM samples GROUP BY device"}},
    .name = "samples",
    .specs = specs,
    .scope = TMK_SCOPE_CHUNK,
    .fill = fill_samples,
};
