/* SPDX-License-Identifier: MIT */
/* cli/serve/served_run.c - see served_run.h. */
#include "cli/serve/served_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/answers/answer_json.h"
#include "cli/front/target.h"
#include "cli/output/chart.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/page/page_data.h"
#include "kit/language.h"
#include "kit/tree.h"
#include "model/watched.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "passes/pyramid/pyramid.h"
#include "trace/replay.h"
#include "web/url_query.h"

enum { WINDOW_BINS_LEAST = 16, WINDOW_BINS_MOST = 4096, PEAK_ROWS = 100 };
enum { SQL_ROWS = 1000, SQL_INSTRUCTIONS = 10000, SQL_BYTES = 4 << 20 };

/* ---- bodies ---- */

static void take_json(struct tmk_served_body *ret, FILE *out)
{
    ret->type = "application/json";
    if (fclose(out) != 0)
        tmk_die("out of memory");
}

void tmk_serve_error(struct tmk_served_body *ret, int status, const char *text)
{
    struct tmk_tree t;
    *ret = (struct tmk_served_body){.status = status};
    FILE *out = tmk_xmemstream(&ret->bytes, &ret->n);
    tmk_tree_init_json(&t, out, 0);
    tmk_tree_object(&t, NULL);
    tmk_tree_text(&t, "error", text);
    tmk_tree_end(&t);
    take_json(ret, out);
}

static void serve_failure(struct tmk_served_body *ret, int rc, const struct tmk_error *err)
{
    tmk_serve_error(ret, 500, err->text[0] ? err->text : tmk_result_text(rc));
}

/* ---- the run ---- */

static void forget_run(struct tmk_served_run *s)
{
    s->sql = tmk_sql_close(s->sql);
    if (s->has_report)
        tmk_report_answer_fini(&s->report);
    s->has_report = false;
    s->run = tmk_run_close(s->run);
}

static int read_run(struct tmk_served_run *s, struct tmk_run *run)
{
    uint64_t start_ns = tmk_clock_monotonic_ns();
    forget_run(s);
    s->run = run;
    int status = tmk_report_answer_init(&s->report, run, s->rank, TMK_CHART_COLUMNS);
    s->has_report = true;
    s->is_live = false;
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++)
        s->is_live |= tmk_run_process(run, i)->live;
    s->state++;
    s->read_ns = tmk_clock_monotonic_ns();
    s->cost_ns = s->read_ns - start_ns;
    return status;
}

int tmk_served_run_open(struct tmk_served_run *s, const char *target, const char *rank)
{
    struct tmk_run *run = NULL;
    struct tmk_watched watched;
    uint32_t pid = tmk_watched_parse(target);
    *s = (struct tmk_served_run){.target = tmk_xstrdup(target), .rank = rank};
    if (pid && tmk_watched_find(pid, &watched, NULL) == 0)
        s->trace = tmk_xstrdup(watched.trace_path);
    int status = tmk_target_open(target, &run);
    return status != 0 ? status : read_run(s, run);
}

void tmk_served_run_close(struct tmk_served_run *s)
{
    forget_run(s);
    free(s->target);
    free(s->trace);
    *s = (struct tmk_served_run){0};
}

bool tmk_served_run_refresh(struct tmk_served_run *s)
{
    struct tmk_error err = {0};
    struct tmk_run *run = NULL;
    if (!s->is_live)
        return false;
    int rc = tmk_run_open(s->target, &run, &err);
    if (rc < 0 && s->trace)
        rc = tmk_run_open(s->trace, &run, &err);
    if (rc < 0) {
        s->is_live = false;
        return false;
    }
    return read_run(s, run) == 0;
}

/* ---- the page and its windows ---- */

void tmk_serve_page(struct tmk_served_run *s, struct tmk_served_body *ret)
{
    struct tmk_error err = {0};
    struct tmk_pyramid *y = NULL;
    struct tmk_process *p = s->report.about.p;
    struct tmk_page_detail detail = tmk_page_detail_halved(0);
    int rc = tmk_page_sweep(p, 0, p->end_ns, TMK_PAGE_BINS, false, &y, &err);
    if (rc < 0) {
        serve_failure(ret, rc, &err);
    } else {
        *ret = (struct tmk_served_body){.status = 200, .type = "application/octet-stream"};
        tmk_page_data(&(struct tmk_page_source){&s->report, y}, &detail, &ret->bytes, &ret->n);
    }
    tmk_pyramid_close(y);
}

void tmk_serve_summary(struct tmk_served_run *s, struct tmk_served_body *ret)
{
    struct tmk_tree t;
    *ret = (struct tmk_served_body){.status = 200};
    FILE *out = tmk_xmemstream(&ret->bytes, &ret->n);
    tmk_tree_init_json(&t, out, 0);
    tmk_tree_object(&t, NULL);
    tmk_tree_bool(&t, "live", s->is_live);
    tmk_report_json_chosen(&s->report, &t, "report");
    tmk_tree_end(&t);
    take_json(ret, out);
}

/* Times of an address are those of the trace; without any, the whole run is meant. */
static bool read_window(const struct tmk_process *p, const char *query, uint64_t *ret_start,
                        uint64_t *ret_end)
{
    *ret_start = 0;
    *ret_end = p->end_ns;
    tmk_url_query_number(query, "t0", ret_start);
    tmk_url_query_number(query, "t1", ret_end);
    if (*ret_end > p->end_ns)
        *ret_end = p->end_ns;
    return *ret_start <= *ret_end;
}

void tmk_serve_timeline(struct tmk_served_run *s, const char *query, struct tmk_served_body *ret)
{
    struct tmk_error err = {0};
    struct tmk_pyramid *y = NULL;
    struct tmk_process *p = s->report.about.p;
    uint64_t start, end, width = 1024;
    tmk_url_query_number(query, "width", &width);
    width = width < WINDOW_BINS_LEAST  ? WINDOW_BINS_LEAST
            : width > WINDOW_BINS_MOST ? WINDOW_BINS_MOST
                                       : width;
    if (!read_window(p, query, &start, &end)) {
        tmk_serve_error(ret, 400, _("t0 is behind t1, or behind the end"));
        return;
    }
    int rc = tmk_page_sweep(p, start, end, (uint32_t)width, false, &y, &err);
    if (rc < 0) {
        serve_failure(ret, rc, &err);
    } else {
        *ret = (struct tmk_served_body){.status = 200, .type = "application/octet-stream"};
        tmk_page_window_data(p, y, &ret->bytes, &ret->n);
    }
    tmk_pyramid_close(y);
}

/* ---- a moment ---- */

static void put_moment_row(struct tmk_tree *t, const struct tmk_process *p, enum tmk_by by,
                           const struct tmk_peak_row *row)
{
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "key", row->key);
    tmk_tree_u64(t, "bytes", row->bytes);
    tmk_tree_u64(t, "blocks", row->n_blocks);
    if (by == TMK_BY_STACK)
        tmk_answer_put_stack(t, "stack", p, row->stack);
    tmk_tree_end(t);
}

static int write_moment(struct tmk_peak *k, const struct tmk_process *p, enum tmk_by by, FILE *out,
                        struct tmk_error *err)
{
    struct tmk_tree t;
    const struct tmk_peak_row *rows;
    uint64_t n, reserved = 0;
    int rc = tmk_peak_group(k, by, &rows, &n, err);
    if (rc < 0)
        return rc;
    tmk_tree_init_json(&t, out, 0);
    tmk_tree_object(&t, NULL);
    tmk_tree_u64(&t, "time_ns", tmk_peak_time_ns(k) + p->offset_ns);
    tmk_answer_put_step(&t, "step", tmk_peak_step(k));
    tmk_answer_put_device(&t, tmk_peak_device(k));
    tmk_tree_u64(&t, "allocated", tmk_peak_bytes(k));
    tmk_tree_u64_if(&t, "reserved", tmk_peak_reserved(k, &reserved), reserved);
    tmk_tree_u64(&t, "rows", n);
    tmk_tree_list(&t, "by");
    for (uint64_t i = 0; i < n && i < PEAK_ROWS; i++)
        put_moment_row(&t, p, by, &rows[i]);
    tmk_tree_end(&t);
    tmk_tree_end(&t);
    return 0;
}

static int sweep_moment(struct tmk_process *p, const struct tmk_moment *moment,
                        struct tmk_peak **ret, struct tmk_error *err)
{
    struct tmk_replay rp;
    int rc = tmk_peak_open(p, moment, ret);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitor = tmk_peak_visitor(*ret);
    rc = tmk_process_sweep(p, &visitor, 1, &rp, err);
    if (rc < 0)
        return rc;
    rc = tmk_peak_finish(*ret, &rp, err);
    tmk_replay_fini(&rp);
    return rc;
}

void tmk_serve_peak(struct tmk_served_run *s, const char *query, struct tmk_served_body *ret)
{
    struct tmk_error err = {0};
    struct tmk_peak *k = NULL;
    struct tmk_moment moment = {.kind = TMK_MOMENT_PEAK, .any_device = true};
    char name[16] = "category";
    enum tmk_by by;
    if (tmk_url_query_number(query, "t", &moment.time_ns))
        moment.kind = TMK_MOMENT_TIME;
    tmk_url_query_text(query, "by", name, sizeof name);
    if (!tmk_by_find(name, &by)) {
        tmk_serve_error(ret, 400, _("there is no such key"));
        return;
    }
    int rc = sweep_moment(s->report.about.p, &moment, &k, &err);
    *ret = (struct tmk_served_body){.status = 200};
    FILE *out = tmk_xmemstream(&ret->bytes, &ret->n);
    if (rc == 0 && tmk_peak_found(k))
        rc = write_moment(k, s->report.about.p, by, out, &err);
    bool is_found = k && tmk_peak_found(k);
    take_json(ret, out);
    if (rc < 0 || !is_found) {
        free(ret->bytes);
        if (rc < 0)
            serve_failure(ret, rc, &err);
        else
            tmk_serve_error(ret, 422, _("nothing was allocated"));
    }
    tmk_peak_close(k);
}

/* ---- SQL ---- */

static int is_query_late(void *arg)
{
    const struct tmk_served_run *s = arg;
    return s->is_late != 0;
}

static void put_value(struct tmk_tree *t, sqlite3_stmt *statement, int i)
{
    switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER:
        tmk_tree_i64(t, NULL, sqlite3_column_int64(statement, i));
        break;
    case SQLITE_FLOAT:
        tmk_tree_double(t, NULL, sqlite3_column_double(statement, i));
        break;
    case SQLITE_NULL:
        tmk_tree_unknown(t, NULL);
        break;
    default:
        tmk_tree_text(t, NULL, (const char *)sqlite3_column_text(statement, i));
    }
}

/* Returns what ended the rows. */
static int put_result(struct tmk_tree *t, sqlite3_stmt *statement, FILE *out, bool *ret_more)
{
    int n = sqlite3_column_count(statement), rc;
    tmk_tree_list(t, "columns");
    for (int i = 0; i < n; i++)
        tmk_tree_text(t, NULL, sqlite3_column_name(statement, i));
    tmk_tree_end(t);
    tmk_tree_list(t, "rows");
    unsigned rows = 0;
    *ret_more = false;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        *ret_more = rows++ >= SQL_ROWS || ftello(out) > SQL_BYTES;
        if (*ret_more)
            break;
        tmk_tree_list(t, NULL);
        for (int i = 0; i < n; i++)
            put_value(t, statement, i);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    return *ret_more ? SQLITE_DONE : rc;
}

static void answer_statement(struct tmk_served_run *s, sqlite3_stmt *statement,
                             struct tmk_served_body *ret)
{
    struct tmk_tree t;
    bool has_more;
    uint64_t start_ns = tmk_clock_monotonic_ns();
    *ret = (struct tmk_served_body){.status = 200};
    FILE *out = tmk_xmemstream(&ret->bytes, &ret->n);
    tmk_tree_init_json(&t, out, 0);
    tmk_tree_object(&t, NULL);
    int rc = put_result(&t, statement, out, &has_more);
    tmk_tree_bool(&t, "more", has_more);
    tmk_tree_double(&t, "seconds", (double)(tmk_clock_monotonic_ns() - start_ns) / 1e9);
    tmk_tree_end(&t);
    take_json(ret, out);
    if (rc == SQLITE_DONE)
        return;
    free(ret->bytes);
    tmk_serve_error(ret, 422,
                    s->is_late ? _("the query took too long")
                               : sqlite3_errmsg(tmk_sql_handle(s->sql)));
}

void tmk_serve_sql(struct tmk_served_run *s, const char *text, struct tmk_served_body *ret)
{
    struct tmk_error err = {0};
    sqlite3_stmt *statement = NULL;
    int rc = s->sql ? 0 : tmk_sql_open(s->run, &s->sql, &err);
    if (rc < 0) {
        serve_failure(ret, rc, &err);
        return;
    }
    sqlite3 *db = tmk_sql_handle(s->sql);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, SQL_BYTES);
    tmk_sql_stop_by(s->sql, &s->is_late);
    tmk_sql_read_only(s->sql);
    sqlite3_progress_handler(db, SQL_INSTRUCTIONS, is_query_late, s);
    rc = sqlite3_prepare_v2(db, text, -1, &statement, NULL);
    if (rc == SQLITE_OK && statement && tmk_sql_allows(s->sql, statement))
        answer_statement(s, statement, ret);
    else if (tmk_sql_refusal(s->sql))
        tmk_serve_error(ret, 422, _("only statements that read are answered"));
    else
        tmk_serve_error(ret, 422,
                        rc == SQLITE_OK ? _("there is no statement") : sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    sqlite3_progress_handler(db, 0, NULL, NULL);
}
