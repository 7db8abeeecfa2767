/* SPDX-License-Identifier: MIT */
/* sql/table_fragmentation.c - the table fragmentation(t): what an allocator had reserved of each
 * device and did not use, t ns after the run's start; without t at the worst moment
 * (passes/frag/fragmentation.h). There is a row for each device, with pool NULL, and one for each
 * of its pools and streams. */
#include "kit/amount.h"
#include "model/run.h"
#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "trace/defs.h"
#include "trace/reader.h"
#include "trace/replay.h"

#define WORST INT64_MIN

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cuda:0 and so on")                                                   \
    X(time_ns, INT, TMK_PLAIN, "the moment, ns since the run's start")                             \
    X(step, INT, TMK_FEW, "training step then; NULL: before the first")                            \
    X(pool, TEXT, TMK_FEW, "small, large; NULL: the device as a whole")                            \
    X(stream, INT, TMK_FEW, "handle of the pool's stream, 0: default; NULL: not known")            \
    X(reserved, INT, TMK_PLAIN, "bytes reserved; NULL: not known")                                 \
    X(allocated, INT, TMK_PLAIN, "bytes allocated")                                                \
    X(free, INT, TMK_PLAIN, "bytes cached: reserved and not allocated")                            \
    X(largest_free, INT, TMK_PLAIN, "bytes of the largest free block; NULL: not known")            \
    X(largest_allocatable, INT, TMK_PLAIN, "largest request that needs no new memory")             \
    X(largest_allocatable_new, INT, TMK_PLAIN,                                                     \
      "largest request with all that the device has left")                                         \
    X(releasable, INT, TMK_PLAIN, "bytes that empty_cache() would give back")                      \
    X(segments, INT, TMK_PLAIN, "of the driver; NULL: not known")                                  \
    X(blocks, INT, TMK_PLAIN, "in use")                                                            \
    X(free_blocks, INT, TMK_PLAIN, "pieces that the free bytes are in; NULL: not known")           \
    X(request, INT, TMK_PLAIN,                                                                     \
      "bytes of the request that failed, where that is the moment; else NULL")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static void put_known_bytes(struct tmk_fill *f, uint32_t column, uint64_t row, uint64_t bytes)
{
    if (bytes != TMK_BYTES_UNKNOWN)
        tmk_rows_u64(f->rows, column, row, bytes);
}

static uint64_t add_fragmentation_row(struct tmk_fill *f, const struct tmk_frag_device *d,
                                      const struct tmk_frag_sum *sum)
{
    uint64_t row = tmk_rows_add(f->rows);
    tmk_rows_text(f->rows, COL_device, row, tmk_source_device(f->source, d->device));
    tmk_rows_int(f->rows, COL_time_ns, row, tmk_source_time(f->source, d->time_ns));
    tmk_rows_int(f->rows, COL_step, row, d->step);
    put_known_bytes(f, COL_reserved, row, sum->reserved_bytes);
    put_known_bytes(f, COL_allocated, row, sum->allocated_bytes);
    put_known_bytes(f, COL_free, row, sum->free_bytes);
    put_known_bytes(f, COL_largest_free, row, sum->largest_bytes);
    put_known_bytes(f, COL_largest_allocatable, row, sum->allocatable_bytes);
    put_known_bytes(f, COL_releasable, row, sum->whole_bytes);
    put_known_bytes(f, COL_blocks, row, sum->n_blocks);
    if (d->has_segments) {
        put_known_bytes(f, COL_segments, row, sum->n_segments);
        put_known_bytes(f, COL_free_blocks, row, sum->n_free);
    }
    return row;
}

static void add_fragmentation_device(struct tmk_fill *f, const struct tmk_frag_device *d)
{
    uint64_t row = add_fragmentation_row(f, d, &d->sum);
    put_known_bytes(f, COL_largest_allocatable_new, row, d->allocatable_new_bytes);
    if (d->is_oom)
        put_known_bytes(f, COL_request, row, d->request_bytes);
    for (uint64_t i = 0; i < d->n_pools; i++) {
        const struct tmk_frag_pool_row *pool = &d->pools[i];
        struct tmk_stream stream = {0};
        row = add_fragmentation_row(f, d, &pool->sum);
        tmk_fill_text(f, COL_pool, row, pool->pool == TMK_FRAG_SMALL ? "small" : "large");
        if (pool->has_stream &&
            (pool->stream == 0 || tmk_reader_stream(f->source->p->reader, pool->stream, &stream)))
            tmk_rows_int(f->rows, COL_stream, row, (int64_t)stream.handle);
    }
}

static int fill_fragmentation(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_process *p = f->source->p;
    struct tmk_frag_moment moment = {.kind = TMK_FRAG_WORST};
    struct tmk_fragmentation *frag = NULL;
    struct tmk_replay rp;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    if (f->args[0] != WORST) {
        if (f->args[0] < 0 || (uint64_t)f->args[0] < p->offset_ns)
            return 0; /* the process had not begun */
        moment = (struct tmk_frag_moment){.kind = TMK_FRAG_TIME,
                                          .time_ns = (uint64_t)f->args[0] - p->offset_ns};
    }
    int rc = tmk_fragmentation_open(p, &moment, &frag);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitor = tmk_fragmentation_visitor(frag);
    rc = tmk_process_sweep(p, &visitor, 1, &rp, err);
    if (rc == 0) {
        rc = tmk_fragmentation_finish(frag, &rp, err);
        tmk_replay_fini(&rp);
    }
    for (uint64_t i = 0; rc == 0 && i < tmk_fragmentation_n(frag); i++)
        add_fragmentation_device(f, tmk_fragmentation_get(frag, i));
    tmk_fragmentation_close(frag);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_fragmentation = {
    .doc =
        {.name = "fragmentation(t)",
         .meaning = "what an allocator had reserved and not allocated, t ns after the run's start",
         .columns = columns,
         .n_columns = N_COLUMNS,
         .example = "SELECT device, pool, reserved, free, largest_free FROM fragmentation",
         .more =
             {"SELECT device, reserved, free, largest_free FROM fragmentation WHERE pool IS NULL",
              "SELECT s.step, f.device, f.free FROM steps s JOIN fragmentation(s.end_ns) f ON "
              "f.pid = s.pid AND f.device = s.device WHERE f.pool IS NULL ORDER BY s.step"}},
    .name = "fragmentation",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .n_args = 1,
    .arg_names = {"t"},
    .arg_defaults = {WORST},
    .fill = fill_fragmentation,
};
