/* SPDX-License-Identifier: MIT */
/* sql/table_whatif.c - the table whatif(capacity): what torch's allocator would have reserved on
 * each GPU under the recorded settings and under those that are worth a try
 * (passes/whatif/whatif.h), on a GPU of `capacity` bytes; without it on the recorded one. */
#include "passes/whatif/whatif.h"

#include <string.h>

#include "kit/amount.h"
#include "model/alloc_conf.h"
#include "model/run.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "tidemark/tidemark.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { AS_RECORDED = 0 };

#define COLUMNS(X)                                                                                 \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cuda:0 and so on")                                                   \
    X(conf, TEXT, TMK_FEW, "settings as in PYTORCH_CUDA_ALLOC_CONF; '': torch's defaults")         \
    X(recorded, INT, TMK_FEW, "1: these are the recorded ones")                                    \
    X(max_bytes, INT, TMK_PLAIN, "what torch may have; NULL: no limit")                            \
    X(peak_allocated, INT, TMK_PLAIN, "most bytes allocated")                                      \
    X(peak_reserved, INT, TMK_PLAIN, "most bytes reserved")                                        \
    X(retries, INT, TMK_PLAIN, "times that everything cached was given back")                      \
    X(segments, INT, TMK_PLAIN, "most at once; expandable ones are not counted")                   \
    X(oom_event, INT, TMK_PLAIN, "allocations and frees before it ran out; NULL: it did not")      \
    X(oom_request, INT, TMK_PLAIN, "bytes requested then")                                         \
    X(oom_ns, INT, TMK_PLAIN, "when, about, ns since the run's start")                             \
    X(oom_step, INT, TMK_PLAIN, "training step then")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static void add_whatif_row(struct tmk_fill *f, const char *conf, bool is_recorded, uint64_t limit,
                           const struct tmk_whatif_result *r)
{
    uint64_t row = tmk_rows_add(f->rows);
    tmk_fill_text(f, COL_conf, row, conf);
    tmk_rows_int(f->rows, COL_recorded, row, is_recorded);
    if (limit != TMK_ALLOC_NO_BOUND)
        tmk_rows_u64(f->rows, COL_max_bytes, row, limit);
    tmk_rows_u64(f->rows, COL_peak_allocated, row, r->peak_allocated_bytes);
    tmk_rows_u64(f->rows, COL_peak_reserved, row, r->peak_reserved_bytes);
    tmk_rows_u64(f->rows, COL_retries, row, r->n_retries);
    tmk_rows_u64(f->rows, COL_segments, row, r->n_segments);
    if (!r->has_oom)
        return;
    tmk_rows_u64(f->rows, COL_oom_event, row, r->oom.event);
    tmk_rows_u64(f->rows, COL_oom_request, row, r->oom.requested_bytes);
    tmk_rows_int(f->rows, COL_oom_ns, row, tmk_source_time(f->source, r->oom.time_ns));
    tmk_rows_int(f->rows, COL_oom_step, row, r->oom.step);
}

static uint64_t limit_of_setting(const struct tmk_fill *f,
                                 const struct tmk_whatif_recorded *recorded)
{
    if (f->args[0] > 0)
        return tmk_whatif_share(recorded, (uint64_t)f->args[0]);
    if (recorded->limit_bytes != TMK_BYTES_UNKNOWN)
        return recorded->limit_bytes;
    return recorded->card_bytes == TMK_BYTES_UNKNOWN
               ? TMK_ALLOC_NO_BOUND
               : tmk_whatif_share(recorded, recorded->card_bytes);
}

static int add_whatif_setting(struct tmk_fill *f, const struct tmk_whatif *w, const char *conf,
                              bool is_recorded, uint16_t device, struct tmk_error *err)
{
    const struct tmk_whatif_recorded *recorded = tmk_whatif_recorded(w);
    uint64_t card = f->args[0] > 0 ? (uint64_t)f->args[0] : recorded->card_bytes;
    struct tmk_whatif_setting setting = {0};
    struct tmk_whatif_result result = {0};
    int rc = tmk_alloc_conf_parse(conf, &setting.conf, err);
    setting.limit_bytes = tmk_whatif_limit(&setting.conf, limit_of_setting(f, recorded), card);
    if (rc == 0)
        rc = tmk_whatif_replay(w, &setting, &result, err);
    if (rc < 0)
        return rc;
    uint64_t row = f->rows->n;
    add_whatif_row(f, conf, is_recorded, setting.limit_bytes, &result);
    tmk_rows_text(f->rows, COL_device, row, tmk_source_device(f->source, device));
    return 0;
}

static int add_whatif_device(struct tmk_fill *f, const struct tmk_whatif *w, uint16_t device,
                             struct tmk_error *err)
{
    const struct tmk_whatif_recorded *recorded = tmk_whatif_recorded(w);
    const char *conf = tmk_whatif_recorded_conf(recorded);
    bool has_limit = limit_of_setting(f, recorded) != TMK_ALLOC_NO_BOUND;
    int rc = recorded->n_events ? add_whatif_setting(f, w, conf, true, device, err) : 0;
    for (const struct tmk_whatif_choice *c = tmk_whatif_choices;
         c->conf && rc == 0 && recorded->n_events; c++)
        if ((!c->needs_limit || has_limit) && strcmp(c->conf, conf) != 0)
            rc = add_whatif_setting(f, w, c->conf, false, device, err);
    return rc;
}

static int fill_device(struct tmk_fill *f, uint16_t device, struct tmk_error *err)
{
    struct tmk_process *p = f->source->p;
    struct tmk_whatif *w = NULL;
    struct tmk_replay rp;
    int rc = tmk_whatif_open(p, device, &w);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitor = tmk_whatif_visitor(w);
    rc = tmk_process_sweep(p, &visitor, 1, &rp, err);
    if (rc == 0) {
        rc = tmk_whatif_finish(w, &rp, err);
        tmk_replay_fini(&rp);
    }
    if (rc == 0)
        rc = add_whatif_device(f, w, device, err);
    tmk_whatif_close(w);
    return rc;
}

/* True for the first row of the history that names the device. */
static bool is_new_device(const struct tmk_reader *r, uint64_t i)
{
    for (uint64_t k = 0; k < i; k++)
        if (tmk_reader_step_row(r, k)->device == tmk_reader_step_row(r, i)->device)
            return false;
    return true;
}

static int fill_whatif(struct tmk_fill *f, struct tmk_error *err)
{
    const struct tmk_reader *r = f->source->p->reader;
    uint64_t n_seen = 0;
    int rc = 0;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(r) && n_seen < TMK_MAX_DEVICES && rc == 0;
         i++) {
        uint16_t device = tmk_reader_step_row(r, i)->device;
        if (device == TIDEMARK_HOST || !is_new_device(r, i))
            continue;
        n_seen++;
        rc = fill_device(f, device, err);
    }
    return rc;
}

const struct tmk_vtab_def tmk_vtab_whatif = {
    .doc =
        {.name = "whatif(capacity)",
         .meaning =
             "what torch would have reserved under other settings, on a GPU of so many bytes",
         .columns = columns,
         .n_columns = N_COLUMNS,
         .example = "SELECT conf, peak_reserved, retries FROM whatif ORDER BY peak_reserved",
         .more =
             {"SELECT conf, peak_reserved FROM whatif(24 * 1073741824) WHERE oom_request IS NULL "
              "ORDER BY peak_reserved",
              "SELECT conf, peak_reserved - peak_allocated AS wasted FROM whatif ORDER BY wasted"}},
    .name = "whatif",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .n_args = 1,
    .arg_names = {"capacity"},
    .arg_defaults = {AS_RECORDED},
    .fill = fill_whatif,
};
