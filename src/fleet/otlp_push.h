/* SPDX-License-Identifier: MIT */
/* fleet/otlp_push.h - send metrics to an OpenTelemetry collector: OTLP over HTTP or HTTPS, as JSON.
 *
 * One push at a time; one that finds the last still under way is left out and counts as failed. A
 * failure is said when it begins and when it ends, not each time. */
#ifndef TMK_FLEET_OTLP_PUSH_H
#define TMK_FLEET_OTLP_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct event_base;

enum { TMK_OTLP_TIMEOUT_S = 10 };

struct tmk_otlp_settings {
    const char *url;     /* "http://localhost:4318"; "/v1/metrics" is added if it is not there */
    const char *headers; /* "key=value,key=value", as OTEL_EXPORTER_OTLP_HEADERS; NULL: none */
    const char *ca_file; /* authorities for https; NULL: the system's */
    void (*say)(const char *text);
};

struct tmk_otlp_push;

/* 0; TMK_EINVAL with what is wrong with the settings. Texts of `settings` are copied. */
int tmk_otlp_push_open(struct event_base *base, const struct tmk_otlp_settings *settings,
                       struct tmk_otlp_push **ret_push, struct tmk_error *err);
struct tmk_otlp_push *tmk_otlp_push_close(struct tmk_otlp_push *p); /* takes NULL */

/* Begin to send a body of `n` bytes, which is copied. */
void tmk_otlp_push_send(struct tmk_otlp_push *p, const char *body, size_t n);
uint64_t tmk_otlp_push_n_ok(const struct tmk_otlp_push *p);
uint64_t tmk_otlp_push_n_failed(const struct tmk_otlp_push *p);

#endif
