/* SPDX-License-Identifier: MIT */
/* fleet/cluster/prometheus.h - ask Prometheus, or whatever speaks its HTTP API, with PromQL.
 *
 *     static int take(void *arg, const struct tmk_prometheus_series *s)
 *     {
 *         const char *host = tmk_prometheus_label(s, "host");   // NULL: it has none
 *         ... s->value ...
 *         return 0;
 *     }
 *     rc = tmk_prometheus_query(p, "up == 0", now, take, arg, &err);
 *
 * The server may be anything: its answer is read strictly and within bounds, and on an error
 * whatever was taken so far means nothing. A value that is no finite number is NAN. */
#ifndef TMK_FLEET_CLUSTER_PROMETHEUS_H
#define TMK_FLEET_CLUSTER_PROMETHEUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "fleet/cluster/http_get.h"
#include "fleet/metric_sink.h"

#define TMK_PROMETHEUS_BODY_MOST ((size_t)64 << 20)
enum { TMK_PROMETHEUS_SERIES_MOST = 250000, TMK_PROMETHEUS_LABELS_MOST = 64 };

struct tmk_prometheus_point {
    double time_s, value;
};

struct tmk_prometheus_series {
    const struct tmk_label *labels; /* they live until the function that gets them returns */
    unsigned n_labels;
    double value;                              /* of a vector or a scalar */
    const struct tmk_prometheus_point *points; /* of a matrix, in order of time */
    uint64_t n_points;
};

struct tmk_prometheus;

/* `settings` as for tmk_http_get_open(), which sets `body_most` itself. */
int tmk_prometheus_open(const struct tmk_http_get_settings *settings, struct tmk_prometheus **ret,
                        struct tmk_error *err);
struct tmk_prometheus *tmk_prometheus_close(struct tmk_prometheus *p); /* takes NULL */

/* Evaluate `expr` as of `time_s`, NAN: now, and give each series to `take`, which returns 0 or an
 * error that ends it. 0; TMK_EIO with a sentence when there is no answer or one that is no answer;
 * what `take` returned. */
int tmk_prometheus_query(struct tmk_prometheus *p, const char *expr, double time_s,
                         int (*take)(void *arg, const struct tmk_prometheus_series *s), void *arg,
                         struct tmk_error *err);

const char *tmk_prometheus_label(const struct tmk_prometheus_series *s, const char *name);

/* Read an answer's body, likewise; a part of the above. */
int tmk_prometheus_read(const char *body, size_t n,
                        int (*take)(void *arg, const struct tmk_prometheus_series *s), void *arg,
                        struct tmk_error *err);

#endif
