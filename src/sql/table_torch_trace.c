/* SPDX-License-Identifier: MIT */
/* sql/table_torch_trace.c - the table python.torch_trace: rows where a module opens or closes in a
 * stage, one for each device.
 *
 * The innermost stage must be backward, optimizer ("step" in the stage's text), or forward, eval
 * or one of the user's own names, which all count as forward. A module that is closed together
 * with something around it has no post row, as nothing reported its end. The devices are the
 * accelerators that the process ever had bytes on, else the host; MB are 1048576 bytes. Cached is
 * what the framework's allocator has reserved, allocated blocks included.
 *
 * A chunk is walked once for each device, and each walk finds the same rows: those of the first of
 * three devices are rows 0, 3, 6 and so on, so that all rows are in the order of the trace. */
#include "base/array.h"
#include "base/error.h"
#include "model/run.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "sql/walk.h"
#include "sql/walk_modules.h"
#include "trace/layout.h"
#include "trace/state.h"

#define COLUMNS(X)                                                                                 \
    X(step, INT, TMK_ORDER_STEP, "training step; NULL before the first")                           \
    X(seq, COUNT, TMK_IN_STEP, "order in the step, from 0; counts modules outside stages too")     \
    X(module, TEXT, TMK_FEW, "dotted path of the module")                                          \
    X(stage, TEXT, TMK_FEW, "pre or post, then forward, backward or step")                         \
    X(allocated, MB, TMK_PLAIN, "MB allocated at that moment")                                     \
    X(max_allocated, MB, TMK_PLAIN, "the most so far, MB")                                         \
    X(cached, MB, TMK_PLAIN, "MB reserved, blocks included; NULL: not known")                      \
    X(max_cached, MB, TMK_PLAIN, "the most so far, MB; NULL: not known")                           \
    X(time_offset, SECONDS, TMK_PLAIN, "seconds since the step began")                             \
    X(duration, SECONDS, TMK_PLAIN, "post: seconds since pre")                                     \
    X(local_step, INT, TMK_FEW, "the process's steps counted from 0")                              \
    X(rank, INT, TMK_FEW, "rank of the process; -1: none")                                         \
    X(world_size, INT, TMK_FEW, "number of ranks")                                                 \
    X(role, TEXT, TMK_FEW, "role of the rank, as its launcher says; NULL: not known")              \
    X(allocated_delta, MB, TMK_PLAIN, "post: allocated minus that of pre")                         \
    X(max_allocated_delta, MB, TMK_PLAIN, "post: max_allocated minus that of pre")                 \
    X(device, TEXT, TMK_FEW, "whose memory this is")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static const char *const stage_texts[TMK_N_STAGES][2] = {
    [TMK_STAGE_FORWARD] = {"pre forward", "post forward"},
    [TMK_STAGE_BACKWARD] = {"pre backward", "post backward"},
    [TMK_STAGE_OPTIMIZER] = {"pre step", "post step"},
    [TMK_STAGE_EVAL] = {"pre forward", "post forward"},
    [TMK_STAGE_OTHER] = {"pre forward", "post forward"},
};

struct torch_row_maker {
    struct tmk_rows *rows;
    struct tmk_source *source;
    const struct tmk_walk *walk;
    uint32_t stages[TMK_N_STAGES][2]; /* numbers of the texts; 0: no rows */
    int64_t *step, *allocated, *max_allocated, *time_offset, *duration, *local_step;
    int64_t *allocated_delta, *max_allocated_delta, *cached, *max_cached;
    uint32_t *seq, *module, *stage, *device;
    uint32_t device_text;  /* its number */
    uint64_t next, stride; /* number of the next row, and of rows to the one after it */
    bool has_more;         /* than step, module, stage and allocated */
};

/* The bytes of a process that has reported no block are not known. */
static void set_bytes_unknown(struct tmk_rows *rows)
{
    static const uint32_t of_bytes[] = {COL_allocated,       COL_max_allocated,
                                        COL_cached,          COL_max_cached,
                                        COL_allocated_delta, COL_max_allocated_delta};
    for (size_t i = 0; i < TMK_N(of_bytes); i++)
        tmk_rows_constant_int(rows, of_bytes[i], TMK_NULL_INT);
}

static void set_torch_constants(struct tmk_fill *f)
{
    struct tmk_rows *rows = f->rows;
    const struct tmk_process *p = f->source->p;
    tmk_rows_constant_int(rows, COL_rank, p->rank);
    tmk_rows_constant_int(rows, COL_world_size, p->world_size < 0 ? TMK_NULL_INT : p->world_size);
    tmk_rows_constant_text(rows, COL_role, p->role ? tmk_textpool_keep(f->pool, p->role) : 0);
    if (!f->source->has_device)
        set_bytes_unknown(rows);
    if (f->source->n_devices < 2)
        tmk_rows_constant_text(
            rows, COL_device,
            f->source->has_device ? tmk_source_device(f->source, f->source->devices[0]) : 0);
}

/* Make rows of the walk, of the `nth` of `n_devices`. */
static void init_maker(struct torch_row_maker *m, struct tmk_fill *f, const struct tmk_walk *w,
                       uint32_t nth, uint32_t n_devices)
{
    struct tmk_rows *rows = f->rows;
    bool has_bytes = f->source->has_device;
    *m = (struct torch_row_maker){
        .rows = rows,
        .source = f->source,
        .walk = w,
        .next = nth,
        .stride = n_devices,
        .device = n_devices > 1 ? rows->columns[COL_device] : NULL,
        .device_text = n_devices > 1 ? tmk_source_device(f->source, w->device) : 0,
        .step = rows->columns[COL_step],
        .seq = rows->columns[COL_seq],
        .module = rows->columns[COL_module],
        .stage = rows->columns[COL_stage],
        .allocated = has_bytes ? rows->columns[COL_allocated] : NULL,
        .max_allocated = has_bytes ? rows->columns[COL_max_allocated] : NULL,
        .cached = has_bytes ? rows->columns[COL_cached] : NULL,
        .max_cached = has_bytes ? rows->columns[COL_max_cached] : NULL,
        .time_offset = rows->columns[COL_time_offset],
        .duration = rows->columns[COL_duration],
        .local_step = rows->columns[COL_local_step],
        .allocated_delta = has_bytes ? rows->columns[COL_allocated_delta] : NULL,
        .max_allocated_delta = has_bytes ? rows->columns[COL_max_allocated_delta] : NULL,
    };
    m->has_more = m->seq || m->max_allocated || m->cached || m->max_cached || m->time_offset ||
                  m->duration || m->local_step || m->allocated_delta || m->max_allocated_delta;
    for (int s = 0; s < TMK_N_STAGES; s++)
        for (int post = 0; post < 2; post++)
            m->stages[s][post] = tmk_textpool_put(f->pool, stage_texts[s][post]);
}

/* Set what only a post row knows. */
static void compare_with_pre_row(const struct torch_row_maker *m, uint64_t i,
                                 const struct tmk_walk_range *range, bool is_post)
{
    const struct tmk_walk_device *d = &m->walk->devices[m->walk->main_device];
    bool known = is_post && range->seen;
    if (m->duration)
        m->duration[i] =
            is_post ? tmk_int_of(m->walk->event.time_ns - range->start_ns) : TMK_NULL_INT;
    if (m->allocated_delta)
        m->allocated_delta[i] =
            known ? (int64_t)(d->allocated_bytes - range->allocated_bytes) : TMK_NULL_INT;
    if (m->max_allocated_delta)
        m->max_allocated_delta[i] =
            known ? (int64_t)(d->max_bytes - range->max_bytes) : TMK_NULL_INT;
}

/* Set the columns that are asked for less often. */
static void add_more_columns(const struct torch_row_maker *m, uint64_t i,
                             const struct tmk_walk_range *range, bool is_post)
{
    const struct tmk_walk *w = m->walk;
    bool has_step = w->step != TMK_NO_STEP;
    if (m->seq) /* the event itself is counted already */
        m->seq[i] = (uint32_t)(w->n_step_module_events - 1);
    const struct tmk_walk_device *d = &w->devices[w->main_device];
    if (m->max_allocated)
        m->max_allocated[i] = tmk_int_of(d->max_bytes);
    if (m->cached)
        m->cached[i] = d->has_reserved ? tmk_int_of(d->reserved_bytes) : TMK_NULL_INT;
    if (m->max_cached)
        m->max_cached[i] = d->has_reserved ? tmk_int_of(d->max_reserved_bytes) : TMK_NULL_INT;
    if (m->time_offset)
        m->time_offset[i] =
            has_step ? tmk_int_of(w->event.time_ns - w->step_start_ns) : TMK_NULL_INT;
    if (m->local_step)
        m->local_step[i] = has_step ? w->local_step : TMK_NULL_INT;
    compare_with_pre_row(m, i, range, is_post);
}

static inline void add_torch_row(void *arg, const struct tmk_walk *w,
                                 const struct tmk_walk_range *range, bool is_post)
{
    struct torch_row_maker *m = arg;
    if (m->stages[range->stage][0] == 0)
        return;
    uint64_t i = m->next;
    m->next += m->stride;
    if (m->step)
        m->step[i] = w->step;
    if (m->module)
        m->module[i] = tmk_source_text(m->source, range->name);
    if (m->stage)
        m->stage[i] = m->stages[range->stage][is_post];
    if (m->allocated)
        m->allocated[i] = tmk_int_of(w->devices[w->main_device].allocated_bytes);
    if (m->device)
        m->device[i] = m->device_text;
    if (m->has_more)
        add_more_columns(m, i, range, is_post);
}

static void want_columns(struct tmk_walk *w, const struct tmk_rows *rows, bool deltas)
{
    w->want_local_step = tmk_rows_want(rows, COL_local_step);
    w->want_times = w->want_local_step || tmk_rows_want(rows, COL_time_offset) ||
                    tmk_rows_want(rows, COL_duration);
    w->want_bytes =
        deltas || tmk_rows_want(rows, COL_allocated) || tmk_rows_want(rows, COL_max_allocated);
    w->want_reserved = tmk_rows_want(rows, COL_cached) || tmk_rows_want(rows, COL_max_cached);
}

/* Make the rows of one device, and count those of all. Returns 0, also for a damaged chunk, or an
 * error. */
static int fill_rows_of_device(struct tmk_fill *f, struct tmk_walk *w, uint32_t nth,
                               uint32_t n_devices, uint64_t *ret_n, struct tmk_error *err)
{
    bool deltas = tmk_rows_want(f->rows, COL_allocated_delta) ||
                  tmk_rows_want(f->rows, COL_max_allocated_delta);
    want_columns(w, f->rows, deltas);
    int rc = deltas ? tmk_walk_begin_seen(w, f->source, f->chunk, err)
                    : tmk_walk_begin(w, f->source, f->chunk, err);
    *ret_n = 0;
    if (rc == 0) /* only now is the number of events known */
        rc = tmk_rows_reserve(f->rows,
                              (uint64_t)f->source->chunks[f->chunk].header->n_items * n_devices);
    if (rc < 0)
        return rc == TMK_EDAMAGED ? 0 : rc;
    struct torch_row_maker m;
    init_maker(&m, f, w, nth, n_devices);
    rc = tmk_walk_modules(w, add_torch_row, &m);
    *ret_n = m.next - nth;
    return rc == TMK_EDAMAGED ? 0 : rc;
}

static int fill_torch_trace(struct tmk_fill *f, struct tmk_error *err)
{
    int rc = tmk_source_read_device(f->source, err);
    if (rc < 0)
        return rc;
    uint32_t n = f->source->n_devices > 1 ? f->source->n_devices : 1;
    struct tmk_walk *w = f->walk;
    uint64_t n_rows = 0, least = UINT64_MAX;
    set_torch_constants(f);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        if (i > 0)
            w = tmk_walk_beside(w);
        if (!w)
            return tmk_fail(err, TMK_ENOMEM, "out of memory");
        w->want_device = n > 1;
        w->device = f->source->devices[i];
        rc = fill_rows_of_device(f, w, i, n, &n_rows, err);
        least = n_rows < least ? n_rows : least;
    }
    f->rows->n = rc == 0 ? least : 0;
    return rc;
}

const struct tmk_vtab_def tmk_vtab_torch_trace = {
    .doc =
        {.name = "python.torch_trace",
         .meaning = "memory where modules open and close in forward, backward and optimizer",
         .columns = columns,
         .n_columns = N_COLUMNS,
         .example = "SELECT step, max(allocated) FROM python.torch_trace GROUP BY step",
         .more = {"SELECT module, sum(duration) AS seconds FROM python.torch_trace WHERE stage = "
                  "'post forward' GROUP BY module ORDER BY seconds DESC LIMIT 10",
                  "SELECT rank, max(max_allocated) AS mb FROM python.torch_trace GROUP BY rank"}},
    .schema = "python",
    .name = "torch_trace",
    .specs = specs,
    .scope = TMK_SCOPE_CHUNK,
    .rows_per_event = 1,
    .fill = fill_torch_trace,
};
