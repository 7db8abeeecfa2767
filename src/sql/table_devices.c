/* SPDX-License-Identifier: MIT */
/* sql/table_devices.c - the table devices: what each process had on each device, from the history
 * of steps. */
#include "model/run.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "trace/reader.h"
#include "trace/state.h"

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(allocated, INT, TMK_PLAIN, "bytes allocated at the end")                                     \
    X(max_allocated, INT, TMK_PLAIN, "most bytes ever")                                            \
    X(max_ns, INT, TMK_PLAIN, "when that was, ns since the run's start")                           \
    X(allocations, INT, TMK_PLAIN, "blocks made")                                                  \
    X(frees, INT, TMK_PLAIN, "frees")                                                              \
    X(bytes, INT, TMK_PLAIN, "bytes of all blocks made")                                           \
    X(reserved, INT, TMK_PLAIN, "bytes reserved at the end, blocks and cache; NULL: not known")    \
    X(max_reserved, INT, TMK_PLAIN, "most bytes ever reserved; NULL: not known")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

struct use {
    uint16_t device;
    uint64_t allocated_bytes, max_bytes, max_ns, n_allocs, n_frees, alloc_bytes;
    bool has_reserved;
    uint64_t reserved_bytes, max_reserved_bytes;
};

static void add_up_use(struct use *u, const struct tmk_step_row *row)
{
    if (row->peak_bytes > u->max_bytes) {
        u->max_bytes = row->peak_bytes;
        u->max_ns = row->peak_ns;
    }
    u->allocated_bytes = row->end_bytes;
    u->n_allocs += row->n_allocs;
    u->n_frees += row->n_frees;
    u->alloc_bytes += row->alloc_bytes;
    if (!row->has_reserved)
        return;
    u->has_reserved = true;
    u->reserved_bytes = row->end_reserved_bytes;
    if (row->peak_reserved_bytes > u->max_reserved_bytes)
        u->max_reserved_bytes = row->peak_reserved_bytes;
}

static void add_device_row(struct tmk_fill *f, const struct use *u)
{
    struct tmk_rows *rows = f->rows;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_text(rows, COL_device, row, tmk_source_device(f->source, u->device));
    tmk_rows_u64(rows, COL_allocated, row, u->allocated_bytes);
    tmk_rows_u64(rows, COL_max_allocated, row, u->max_bytes);
    tmk_rows_int(rows, COL_max_ns, row, tmk_source_time(f->source, u->max_ns));
    tmk_rows_u64(rows, COL_allocations, row, u->n_allocs);
    tmk_rows_u64(rows, COL_frees, row, u->n_frees);
    tmk_rows_u64(rows, COL_bytes, row, u->alloc_bytes);
    if (!u->has_reserved)
        return;
    tmk_rows_u64(rows, COL_reserved, row, u->reserved_bytes);
    tmk_rows_u64(rows, COL_max_reserved, row, u->max_reserved_bytes);
}

static int fill_devices(struct tmk_fill *f, struct tmk_error *err)
{
    (void)err;
    const struct tmk_process *p = f->source->p;
    struct use uses[TMK_MAX_DEVICES];
    uint32_t n = 0;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        uint32_t d = 0;
        while (d < n && uses[d].device != row->device)
            d++;
        if (d == TMK_MAX_DEVICES)
            continue;
        if (d == n)
            uses[n++] = (struct use){.device = row->device};
        add_up_use(&uses[d], row);
    }
    for (uint32_t d = 0; d < n; d++)
        add_device_row(f, &uses[d]);
    return 0;
}

const struct tmk_vtab_def tmk_vtab_devices = {
    .doc = {.name = "devices",
            .meaning = "what each process had on each device",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT rank, device, max_allocated FROM devices",
            .more = {"SELECT device, sum(max_allocated) AS bytes FROM devices GROUP BY device",
                     "SELECT rank, device, allocations - frees AS blocks_left FROM devices"}},
    .name = "devices",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_devices,
};
