/* SPDX-License-Identifier: MIT */
/* cli/answers/ps_answer.c - see ps_answer.h. */
#include "cli/answers/ps_answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answers/answer_json.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/json_in.h"
#include "model/run.h"
#include "model/watched.h"
#include "passes/steps.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

static const char *ps_text(struct tmk_ps_answer *a, const char *text)
{
    return text ? tmk_xarena_text(&a->texts, text, strlen(text)) : NULL;
}

static struct tmk_ps_row *add_ps_row(struct tmk_ps_answer *a)
{
    if (TMK_GROW(a->rows, a->n_rows + 1, a->room) < 0)
        tmk_die("out of memory");
    a->rows[a->n_rows] = (struct tmk_ps_row){.rank = -1,
                                             .step = TMK_NO_STEP,
                                             .allocated_bytes = TMK_BYTES_UNKNOWN,
                                             .reserved_bytes = TMK_BYTES_UNKNOWN,
                                             .peak_bytes = TMK_BYTES_UNKNOWN};
    return &a->rows[a->n_rows++];
}

/* ---- of this machine ---- */

static void read_watched(struct tmk_ps_answer *a, const struct tmk_watched *w)
{
    struct tmk_ps_row *row = add_ps_row(a);
    struct tmk_run *run = NULL;
    struct tmk_error err = {0};
    char folder[4096], device[24];
    row->pid = w->pid;
    row->folder = ps_text(a, tmk_watched_folder(w, folder, sizeof folder));
    if (tmk_run_open_watched(w, &run, &err) < 0) {
        tmk_say("process %" PRIu32 ": %s", w->pid, err.text);
        return;
    }
    const struct tmk_process *p = tmk_run_process(run, 0);
    const struct tmk_step_row *peak = tmk_steps_peak(p, true, 0);
    row->rank = p->rank;
    row->command = ps_text(a, p->command);
    if (peak) {
        row->device = ps_text(a, tmk_device_name(peak->device, device));
        row->peak_bytes = peak->peak_bytes;
        const struct tmk_step_row *last = tmk_steps_last(p, peak->device);
        row->allocated_bytes = last->end_bytes;
        if (last->has_reserved)
            row->reserved_bytes = last->end_reserved_bytes;
        uint64_t n = tmk_reader_n_step_rows(p->reader);
        row->step = tmk_reader_step_row(p->reader, n - 1)->step;
        (void)tmk_forecast_of(p, peak->device, NULL, &row->forecast);
    }
    tmk_run_close(run);
}

int tmk_ps_answer_here(struct tmk_ps_answer *a)
{
    struct tmk_watched *list = NULL;
    struct tmk_error err = {0};
    uint32_t n = 0;
    if (tmk_watched_list(&list, &n, &err) < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    for (uint32_t i = 0; i < n; i++)
        read_watched(a, &list[i]);
    free(list);
    return 0;
}

/* ---- of another machine ---- */

/* Returns whether the value is null, which is taken. */
static bool take_json_null(struct tmk_json_in *j)
{
    bool is_null = tmk_json_in_peek(j) == 'n';
    if (is_null)
        tmk_json_in_skip(j);
    return is_null;
}

static const char *take_json_text(struct tmk_json_in *j)
{
    return take_json_null(j) ? NULL : tmk_json_in_text(j);
}

static uint64_t take_json_bytes(struct tmk_json_in *j)
{
    return take_json_null(j) ? TMK_BYTES_UNKNOWN : tmk_json_in_u64(j);
}

/* Take a number with a fraction. *ret_known false: it is null. The text behind the object ends in a
 * zero byte. */
static double take_json_double(struct tmk_json_in *j, bool *ret_known)
{
    *ret_known = !take_json_null(j);
    if (!*ret_known)
        return 0;
    (void)tmk_json_in_peek(j); /* blanks are behind us */
    const char *start = j->at;
    tmk_json_in_skip(j);
    return j->problem ? 0 : strtod(start, NULL);
}

static enum tmk_risk risk_of_text(const char *text)
{
    for (int i = TMK_RISK_LOW; text && i <= TMK_RISK_CRITICAL; i++)
        if (strcmp(tmk_risk_text((enum tmk_risk)i), text) == 0)
            return (enum tmk_risk)i;
    return TMK_RISK_UNKNOWN;
}

static enum tmk_growth_cause cause_of_name(const char *name)
{
    for (int i = TMK_GROWTH_NONE; name && i <= TMK_GROWTH_NEARLY_FULL; i++)
        if (strcmp(tmk_growth_cause_name((enum tmk_growth_cause)i), name) == 0)
            return (enum tmk_growth_cause)i;
    return TMK_GROWTH_NONE;
}

static void take_json_forecast(struct tmk_json_in *j, struct tmk_forecast *f)
{
    bool is_known;
    const char *key;
    if (take_json_null(j))
        return;
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j)))
        if (strcmp(key, "risk") == 0)
            f->risk = risk_of_text(take_json_text(j));
        else if (strcmp(key, "cause") == 0)
            f->cause = cause_of_name(take_json_text(j));
        else if (strcmp(key, "seconds_to_oom") == 0)
            f->seconds_to_oom = take_json_double(j, &f->has_time);
        else if (strcmp(key, "seconds_low") == 0)
            f->seconds_low = take_json_double(j, &is_known);
        else if (strcmp(key, "seconds_high") == 0)
            f->seconds_high = take_json_double(j, &is_known);
        else if (strcmp(key, "steps_to_oom") == 0)
            f->steps_to_oom = take_json_double(j, &f->by_step);
        else if (strcmp(key, "confidence") == 0)
            f->confidence = take_json_double(j, &f->has_confidence);
        else
            tmk_json_in_skip(j);
}

static void take_json_process(struct tmk_json_in *j, struct tmk_ps_row *row)
{
    const char *key;
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j)))
        if (strcmp(key, "pid") == 0)
            row->pid = tmk_json_in_u64(j);
        else if (strcmp(key, "rank") == 0)
            row->rank = take_json_null(j) ? -1 : (int64_t)tmk_json_in_u64(j);
        else if (strcmp(key, "run") == 0)
            row->folder = take_json_text(j);
        else if (strcmp(key, "device") == 0)
            row->device = take_json_text(j);
        else if (strcmp(key, "allocated") == 0)
            row->allocated_bytes = take_json_bytes(j);
        else if (strcmp(key, "reserved") == 0)
            row->reserved_bytes = take_json_bytes(j);
        else if (strcmp(key, "step") == 0)
            row->step = take_json_null(j) ? TMK_NO_STEP : (int64_t)tmk_json_in_u64(j);
        else if (strcmp(key, "peak") == 0)
            row->peak_bytes = take_json_bytes(j);
        else if (strcmp(key, "command") == 0)
            row->command = take_json_text(j);
        else if (strcmp(key, "forecast") == 0)
            take_json_forecast(j, &row->forecast);
        else
            tmk_json_in_skip(j);
}

int tmk_ps_answer_add(struct tmk_ps_answer *a, const char *host, const char *json, size_t n,
                      struct tmk_error *err)
{
    struct tmk_json_in j;
    size_t n_before = a->n_rows;
    const char *key;
    const char *text = tmk_xarena_text(&a->texts, json, n); /* with a zero byte behind */
    tmk_json_in_init(&j, text, n, &a->texts);
    tmk_json_in_object(&j);
    while ((key = tmk_json_in_key(&j)))
        if (strcmp(key, "processes") != 0) {
            tmk_json_in_skip(&j);
        } else {
            tmk_json_in_array(&j);
            while (tmk_json_in_item(&j)) {
                struct tmk_ps_row *row = add_ps_row(a);
                row->host = host;
                take_json_process(&j, row);
            }
        }
    tmk_json_in_end(&j);
    if (!j.problem)
        return 0;
    a->n_rows = n_before;
    return tmk_fail(err, TMK_EFORMAT, "what it printed is no list of processes: byte %zu: %s",
                    (size_t)(j.at - j.start), j.problem);
}

/* ---- order ---- */

const char *const tmk_ps_sort_names[TMK_PS_N_SORTS] = {
    [TMK_PS_BY_PID] = "pid",
    [TMK_PS_BY_RANK] = "rank",
    [TMK_PS_BY_ALLOCATED] = "allocated",
    [TMK_PS_BY_RESERVED] = "reserved",
    [TMK_PS_BY_PEAK] = "peak",
    [TMK_PS_BY_FORECAST] = "forecast",
};

/* The number to sort by, largest first; unknown is negative. */
static double ps_weight(const struct tmk_ps_row *row, enum tmk_ps_sort sort)
{
    const struct tmk_forecast *f = &row->forecast;
    uint64_t bytes = sort == TMK_PS_BY_ALLOCATED  ? row->allocated_bytes
                     : sort == TMK_PS_BY_RESERVED ? row->reserved_bytes
                                                  : row->peak_bytes;
    switch (sort) {
    case TMK_PS_BY_PID:
        return 0;
    case TMK_PS_BY_RANK:
        return row->rank < 0 ? -1 : 1 / (1 + (double)row->rank);
    case TMK_PS_BY_FORECAST: /* risks are apart by 1, and times make less than that */
        return (double)f->risk + (f->has_time ? 1 / (2 + f->seconds_to_oom) : 0);
    default:
        return bytes == TMK_BYTES_UNKNOWN ? -1 : (double)bytes;
    }
}

static int by_ps_sort(const void *va, const void *vb, void *arg)
{
    const struct tmk_ps_row *a = va, *b = vb;
    double x = ps_weight(a, *(enum tmk_ps_sort *)arg), y = ps_weight(b, *(enum tmk_ps_sort *)arg);
    if (x != y)
        return x > y ? -1 : 1;
    int host = strcmp(a->host ? a->host : "", b->host ? b->host : "");
    return host ? host : (a->pid > b->pid) - (a->pid < b->pid);
}

void tmk_ps_answer_sort(struct tmk_ps_answer *a, enum tmk_ps_sort sort)
{
    if (a->n_rows > 1)
        qsort_r(a->rows, a->n_rows, sizeof *a->rows, by_ps_sort, &sort);
}

/* ---- as JSON ---- */

void tmk_ps_answer_put(struct tmk_tree *t, const struct tmk_ps_row *row)
{
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "host", row->host);
    tmk_tree_u64(t, "pid", row->pid);
    tmk_tree_number(t, "rank", row->rank);
    tmk_tree_text(t, "run", row->folder);
    tmk_tree_text(t, "device", row->device);
    tmk_tree_bytes(t, "allocated", row->allocated_bytes);
    tmk_tree_bytes(t, "peak", row->peak_bytes);
    tmk_tree_text(t, "command", row->command);
    tmk_answer_put_forecast(t, "forecast", row->device ? &row->forecast : NULL);
    tmk_tree_bytes(t, "reserved", row->reserved_bytes);
    tmk_answer_put_step(t, "step", row->step);
    tmk_tree_end(t);
}

void tmk_ps_answer_fini(struct tmk_ps_answer *a)
{
    tmk_arena_fini(&a->texts);
    free(a->rows);
    *a = (struct tmk_ps_answer){0};
}
