/* SPDX-License-Identifier: MIT */
/* sql/table_forecast.c - the table forecast: when each process runs out of each device's memory,
 * and why. */
#include <math.h>

#include "base/array.h"
#include "base/text.h"
#include "forecast/oom_forecast.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "passes/forecast_samples.h"
#include "passes/leak/leak_cause.h"
#include "passes/leak/leaks.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "trace/replay.h"
#include "trace/state.h"

#define COLUMNS(X)                                                                                 \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(risk, TEXT, TMK_FEW, "low, medium, high or critical; NULL: too short, or size not known")    \
    X(seconds_to_oom, SECONDS, TMK_PLAIN, "from the end of the trace on; NULL: does not grow")     \
    X(seconds_low, SECONDS, TMK_PLAIN, "not before")                                               \
    X(seconds_high, SECONDS, TMK_PLAIN, "not after")                                               \
    X(steps_to_oom, INT, TMK_PLAIN, "the same in training steps; NULL: it has none")               \
    X(confidence, SECONDS, TMK_PLAIN,                                                              \
      "that it is between low and high, if the job goes on; 0 to 1")                               \
    X(cause, TEXT, TMK_FEW, "none, leak, growing_batch, steps_up, fragmentation and so on")        \
    X(advice, TEXT, TMK_FEW, "what to do; NULL: nothing")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

/* Set a number: columns of seconds hold ns, so any number fits; a forecast is good for three
 * decimals only. */
static void set_number(struct tmk_fill *f, uint32_t column, uint64_t row, double value)
{
    if (value < 9e9)
        tmk_rows_int(f->rows, column, row, (int64_t)llround(value * 1e3) * 1000000);
}

static void set_advice(struct tmk_fill *f, uint64_t row, const struct tmk_forecast *c)
{
    char buffer[512];
    struct tmk_text text;
    tmk_text_init(&text, buffer, sizeof buffer);
    const char *advice;
    for (unsigned i = 0; (advice = tmk_growth_cause_advice(c->cause, c->risk, i)) != NULL; i++)
        tmk_text_add(&text, "%s%s", i ? "; " : "", advice);
    tmk_fill_text(f, COL_advice, row, text.length ? buffer : NULL);
}

static void add_forecast_row(struct tmk_fill *f, const struct tmk_forecast *c)
{
    uint64_t row = tmk_rows_add(f->rows);
    tmk_rows_text(f->rows, COL_device, row, tmk_source_device(f->source, c->device));
    tmk_fill_text(f, COL_risk, row, tmk_risk_text(c->risk));
    if (c->risk == TMK_RISK_UNKNOWN)
        return;
    tmk_fill_text(f, COL_cause, row, tmk_growth_cause_name(c->cause));
    set_advice(f, row, c);
    if (!c->has_time)
        return;
    set_number(f, COL_seconds_to_oom, row, c->seconds_to_oom);
    set_number(f, COL_seconds_low, row, c->seconds_low);
    set_number(f, COL_seconds_high, row, c->seconds_high);
    if (c->by_step)
        tmk_rows_int(f->rows, COL_steps_to_oom, row, (int64_t)ceil(c->steps_to_oom - 1e-6));
    if (c->has_confidence)
        set_number(f, COL_confidence, row, c->confidence);
}

/* A cause is called a leak where the leak pass finds one, so that the table agrees with `leak`. */
static int sweep_forecast(struct tmk_fill *f, struct tmk_forecast_samples *samples,
                          struct tmk_leakage *leakage, struct tmk_error *err)
{
    struct tmk_forecast list[TMK_MAX_DEVICES];
    struct tmk_visitor visitors[] = {tmk_forecast_samples_visitor(samples),
                                     tmk_leakage_visitor(leakage)};
    struct tmk_replay rp;
    uint32_t n = 0;
    int rc = tmk_process_sweep(f->source->p, visitors, TMK_N(visitors), &rp, err);
    if (rc < 0)
        return rc;
    rc = tmk_leakage_finish(leakage, &rp, err);
    tmk_replay_fini(&rp);
    if (rc == 0)
        rc = tmk_forecast_list(f->source->p, samples, list, &n, err);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        tmk_leak_settle_cause(leakage, &list[i]);
        add_forecast_row(f, &list[i]);
    }
    return rc;
}

static int fill_forecast(struct tmk_fill *f, struct tmk_error *err)
{
    struct tmk_forecast_samples *samples = NULL;
    struct tmk_leakage *leakage = NULL;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    int rc = tmk_forecast_samples_open(&samples);
    if (rc == 0)
        rc = tmk_leakage_open(f->source->p, TMK_LEAK_DEFAULT_BYTES, &leakage);
    if (rc == 0)
        rc = sweep_forecast(f, samples, leakage, err);
    tmk_leakage_close(leakage);
    tmk_forecast_samples_close(samples);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_forecast = {
    .doc = {.name = "forecast",
            .meaning = "when a process runs out of a device's memory, and why",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT device, risk, seconds_to_oom, confidence, cause FROM forecast",
            .more = {"SELECT rank, device, steps_to_oom, cause FROM forecast WHERE risk IN "
                     "('high', 'critical')",
                     "SELECT DISTINCT advice FROM forecast WHERE risk <> 'low'"}},
    .name = "forecast",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_forecast,
};
