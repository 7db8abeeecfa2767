/* SPDX-License-Identifier: MIT */
/* fleet/cluster/prometheus.c - see prometheus.h. Texts of an answer live in an arena of their own,
 * which the bounds on its bytes bound too. */
#include "fleet/cluster/prometheus.h"

#include <event2/http.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/json_in.h"
#include "kit/language.h"

enum { REASON_BYTES = 160, BODY_SHOWN = 60 };

struct tmk_prometheus {
    struct tmk_http_get *http;
};

/* An answer while it is read. */
struct answer_reader {
    struct tmk_json_in json;
    struct tmk_arena texts;
    struct tmk_label labels[TMK_PROMETHEUS_LABELS_MOST];
    struct tmk_prometheus_point *points;
    uint64_t n_points, room;
    uint64_t n_series;
    bool is_success, has_result;
    char reason[REASON_BYTES]; /* of an answer that says it is an error */
    int (*take)(void *arg, const struct tmk_prometheus_series *s);
    void *arg;
    int rc; /* of take */
};

/* ---- reading ---- */

static void fail_reader(struct answer_reader *r, const char *problem)
{
    if (!r->json.problem)
        r->json.problem = problem;
}

/* Values are texts: "0.5", "NaN", "+Inf". */
static double read_value(struct answer_reader *r)
{
    char *end;
    const char *text = tmk_json_in_text(&r->json);
    if (!text)
        return NAN;
    double value = strtod(text, &end);
    if (end == text || *end)
        fail_reader(r, "a value is no number");
    return isfinite(value) ? value : NAN;
}

/* [time, "value"] */
static struct tmk_prometheus_point read_point(struct answer_reader *r)
{
    struct tmk_prometheus_point point = {.value = NAN};
    tmk_json_in_array(&r->json);
    if (tmk_json_in_item(&r->json))
        point.time_s = tmk_json_in_double(&r->json);
    if (tmk_json_in_item(&r->json))
        point.value = read_value(r);
    else
        fail_reader(r, "a sample has no value");
    if (tmk_json_in_item(&r->json))
        fail_reader(r, "a sample has more than a time and a value");
    return point;
}

static void read_points(struct answer_reader *r)
{
    tmk_json_in_array(&r->json);
    while (tmk_json_in_item(&r->json)) {
        struct tmk_prometheus_point point = read_point(r);
        if (TMK_GROW(r->points, r->n_points + 1, r->room) < 0)
            fail_reader(r, "out of memory");
        else if (r->n_points > 0 && !(r->points[r->n_points - 1].time_s <= point.time_s))
            fail_reader(r, "samples are not in order of time");
        else
            r->points[r->n_points++] = point;
    }
}

static unsigned read_labels(struct answer_reader *r)
{
    const char *key;
    unsigned n = 0;
    tmk_json_in_object(&r->json);
    while ((key = tmk_json_in_key(&r->json))) {
        const char *value = tmk_json_in_text(&r->json);
        if (n == TMK_PROMETHEUS_LABELS_MOST)
            fail_reader(r, "a series has too many labels");
        else
            r->labels[n++] = (struct tmk_label){key, value ? value : ""};
    }
    return n;
}

static void give_series(struct answer_reader *r, const struct tmk_prometheus_series *s)
{
    r->n_series++;
    if (r->n_series > TMK_PROMETHEUS_SERIES_MOST)
        fail_reader(r, "there are more than 250000 series; --job NAME asks for less");
    else if (!r->json.problem && r->rc == 0)
        r->rc = r->take(r->arg, s);
    if (r->rc < 0)
        fail_reader(r, "not taken");
}

/* {"metric": {...}, "value": [...]} or "values" */
static void read_series(struct answer_reader *r)
{
    struct tmk_prometheus_series s = {.labels = r->labels, .value = NAN};
    const char *key;
    bool has_value = false;
    r->n_points = 0;
    tmk_json_in_object(&r->json);
    while ((key = tmk_json_in_key(&r->json))) {
        if (strcmp(key, "metric") == 0) {
            s.n_labels = read_labels(r);
        } else if (strcmp(key, "value") == 0) {
            s.value = read_point(r).value;
            has_value = true;
        } else if (strcmp(key, "values") == 0) {
            read_points(r);
            has_value = true;
        } else {
            tmk_json_in_skip(&r->json);
        }
    }
    s.points = r->points;
    s.n_points = r->n_points;
    if (!has_value)
        fail_reader(r, "a series has no value");
    if (!r->json.problem)
        give_series(r, &s);
}

/* An array of series, or the one sample of a scalar. */
static void read_result(struct answer_reader *r)
{
    struct tmk_prometheus_series s = {.labels = r->labels};
    bool is_scalar = false;
    r->has_result = true;
    tmk_json_in_array(&r->json);
    while (tmk_json_in_item(&r->json)) {
        if (tmk_json_in_peek(&r->json) == '{') {
            read_series(r);
        } else if (!is_scalar && r->n_series == 0) {
            is_scalar = true;
            tmk_json_in_double(&r->json);
        } else {
            s.value = read_value(r);
            if (!r->json.problem)
                give_series(r, &s);
        }
    }
    if (is_scalar && r->n_series != 1)
        fail_reader(r, "a scalar is no time and a value");
}

static void read_answer_data(struct answer_reader *r)
{
    const char *key;
    tmk_json_in_object(&r->json);
    while ((key = tmk_json_in_key(&r->json)))
        if (strcmp(key, "result") == 0)
            read_result(r);
        else
            tmk_json_in_skip(&r->json);
}

static void read_prometheus_answer(struct answer_reader *r)
{
    const char *key;
    tmk_json_in_object(&r->json);
    while ((key = tmk_json_in_key(&r->json))) {
        bool is_text = tmk_json_in_peek(&r->json) == '"';
        const char *text = is_text ? tmk_json_in_text(&r->json) : NULL;
        if (text && strcmp(key, "status") == 0)
            r->is_success = strcmp(text, "success") == 0;
        else if (text && strcmp(key, "error") == 0)
            snprintf(r->reason, sizeof r->reason, "%s", text);
        else if (!text && strcmp(key, "data") == 0 && tmk_json_in_peek(&r->json) == '{')
            read_answer_data(r);
        else if (!text)
            tmk_json_in_skip(&r->json);
    }
    tmk_json_in_end(&r->json);
}

static int judge_answer(const struct answer_reader *r, struct tmk_error *err)
{
    if (r->rc < 0)
        return r->rc;
    if (r->json.problem)
        return tmk_fail(err, TMK_EIO, "its answer cannot be read: byte %llu: %s",
                        (unsigned long long)(r->json.at - r->json.start), _(r->json.problem));
    if (!r->is_success)
        return tmk_fail(err, TMK_EIO, "it refuses the question: %s",
                        r->reason[0] ? r->reason : _("it does not say why"));
    if (!r->has_result)
        return tmk_fail(err, TMK_EIO, "its answer has no result");
    return 0;
}

int tmk_prometheus_read(const char *body, size_t n,
                        int (*take)(void *arg, const struct tmk_prometheus_series *s), void *arg,
                        struct tmk_error *err)
{
    struct answer_reader r = {.take = take, .arg = arg};
    tmk_json_in_init(&r.json, body, n, &r.texts);
    read_prometheus_answer(&r);
    int rc = judge_answer(&r, err);
    tmk_arena_fini(&r.texts);
    free(r.points);
    return rc;
}

const char *tmk_prometheus_label(const struct tmk_prometheus_series *s, const char *name)
{
    for (unsigned i = 0; i < s->n_labels; i++)
        if (strcmp(s->labels[i].name, name) == 0)
            return s->labels[i].value[0] ? s->labels[i].value : NULL;
    return NULL;
}

/* ---- asking ---- */

static int take_nothing(void *arg, const struct tmk_prometheus_series *s)
{
    (void)arg;
    (void)s;
    return 0;
}

/* Say what an answer that is not 200 means. Prometheus gives its reason as JSON with each. */
static int fail_status(const struct tmk_http_get_answer *answer, struct tmk_error *err)
{
    struct tmk_error inner = {0};
    if (answer->status == 401 || answer->status == 403)
        return tmk_fail(err, TMK_EIO,
                        "it wants another login (%d): see --user, --password-file, --token-file",
                        answer->status);
    if (answer->status >= 300 && answer->status < 400)
        return tmk_fail(err, TMK_EIO,
                        "it sends us to '%s', and that is not followed: give the address of the "
                        "API itself",
                        answer->location);
    tmk_prometheus_read(answer->body, answer->n, take_nothing, NULL, &inner);
    if (strncmp(inner.text, "it refuses", 10) == 0)
        return tmk_fail(err, TMK_EIO, "%s (%d)", inner.text, answer->status);
    if (answer->status == 404)
        return tmk_fail(err, TMK_EIO,
                        "it has no /api/v1/query (404): is it Prometheus, and is a path missing, "
                        "such as http://HOST:PORT/prometheus?");
    return tmk_fail(err, TMK_EIO, "it answers with HTTP status %d", answer->status);
}

static int take_body(const struct tmk_http_get_answer *answer,
                     int (*take)(void *arg, const struct tmk_prometheus_series *s), void *arg,
                     struct tmk_error *err)
{
    if (answer->status != 200)
        return fail_status(answer, err);
    if (answer->n == 0 || answer->body[0] != '{')
        return tmk_fail(err, TMK_EIO,
                        "what it answers is not Prometheus' JSON: is the address that of the API?");
    return tmk_prometheus_read(answer->body, answer->n, take, arg, err);
}

int tmk_prometheus_query(struct tmk_prometheus *p, const char *expr, double time_s,
                         int (*take)(void *arg, const struct tmk_prometheus_series *s), void *arg,
                         struct tmk_error *err)
{
    struct tmk_arena arena = {0};
    struct tmk_http_get_answer answer = {.status = 0};
    char *encoded = evhttp_uriencode(expr, -1, 0);
    /* nocache: VictoriaMetrics hides the last 30 seconds otherwise. */
    const char *what = !encoded ? NULL
                       : isnan(time_s)
                           ? tmk_arena_format(&arena, "/api/v1/query?nocache=1&query=%s", encoded)
                           : tmk_arena_format(&arena, "/api/v1/query?nocache=1&time=%.3f&query=%s",
                                              time_s, encoded);
    int rc = what ? tmk_http_get(p->http, what, &answer, err)
                  : tmk_fail(err, TMK_ENOMEM, "out of memory");
    if (rc == 0) {
        rc = take_body(&answer, take, arg, err);
        tmk_http_get_answer_fini(&answer);
    }
    free(encoded);
    tmk_arena_fini(&arena);
    return rc;
}

int tmk_prometheus_open(const struct tmk_http_get_settings *settings, struct tmk_prometheus **ret,
                        struct tmk_error *err)
{
    struct tmk_http_get_settings s = *settings;
    struct tmk_prometheus *p = calloc(1, sizeof *p);
    if (!p)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    s.body_most = TMK_PROMETHEUS_BODY_MOST;
    int rc = tmk_http_get_open(&s, &p->http, err);
    if (rc < 0) {
        tmk_prometheus_close(p);
        return rc;
    }
    *ret = p;
    return 0;
}

struct tmk_prometheus *tmk_prometheus_close(struct tmk_prometheus *p)
{
    if (!p)
        return NULL;
    tmk_http_get_close(p->http);
    free(p);
    return NULL;
}
