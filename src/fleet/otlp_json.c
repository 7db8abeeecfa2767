/* SPDX-License-Identifier: MIT */
/* fleet/otlp_json.c - see otlp_json.h. Times and counts are texts, as protobuf's JSON has 64-bit
 * numbers. */
#include "fleet/otlp_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "fleet/exposition.h"
#include "fleet/metric_sink.h"
#include "fleet/node_metrics.h"
#include "kit/amount.h"
#include "kit/json.h"

#ifndef TMK_VERSION
#define TMK_VERSION "unknown"
#endif

enum { NAME_BYTES = 96, NUMBER_BYTES = 24, CUMULATIVE = 2 };

struct otlp_writer {
    struct tmk_json json;
    const struct tmk_metric_family *family; /* announced last */
    bool is_open;                           /* its points are being written */
    char now[NUMBER_BYTES], start[NUMBER_BYTES];
};

/* UCUM, as OTLP has units. */
static const char *otlp_unit(const struct tmk_metric_family *f)
{
    if (!f->unit)
        return "1";
    return strcmp(f->unit, "bytes") == 0 ? "By" : strcmp(f->unit, "seconds") == 0 ? "s" : "1";
}

static void otlp_name(const struct tmk_metric_family *f, char to[NAME_BYTES])
{
    snprintf(to, NAME_BYTES, "%s%s", f->name, f->type == TMK_METRIC_INFO ? "_info" : "");
    size_t n = strlen(to), unit = f->unit ? strlen(f->unit) : 0;
    if (unit && n > unit + 1 && strcmp(to + n - unit, f->unit) == 0)
        to[n - unit - 1] = '\0';
    for (char *c = to; *c; c++)
        if (*c == '_')
            *c = '.';
}

static void put_attribute(struct tmk_json *j, const char *key, const char *value)
{
    tmk_json_object(j, NULL);
    tmk_json_text(j, "key", key);
    tmk_json_object(j, "value");
    tmk_json_text(j, "stringValue", value);
    tmk_json_end(j);
    tmk_json_end(j);
}

/* ---- points ---- */

static void open_metric(struct otlp_writer *w, const char *name, const char *unit,
                        const char *description, bool is_sum)
{
    struct tmk_json *j = &w->json;
    tmk_json_object(j, NULL);
    tmk_json_text(j, "name", name);
    tmk_json_text(j, "unit", unit);
    tmk_json_text(j, "description", description);
    tmk_json_object(j, is_sum ? "sum" : "gauge");
    if (is_sum) {
        tmk_json_u64(j, "aggregationTemporality", CUMULATIVE);
        tmk_json_bool(j, "isMonotonic", true);
    }
    tmk_json_array(j, "dataPoints");
    w->is_open = true;
}

static void close_metric(struct otlp_writer *w)
{
    for (int i = 0; w->is_open && i < 3; i++)
        tmk_json_end(&w->json);
    w->is_open = false;
}

static void put_point(struct otlp_writer *w, bool is_sum, double value)
{
    struct tmk_json *j = &w->json;
    if (is_sum)
        tmk_json_text(j, "startTimeUnixNano", w->start);
    tmk_json_text(j, "timeUnixNano", w->now);
    tmk_json_double(j, "asDouble", value);
}

static void take_otlp_family(void *arg, const struct tmk_metric_family *family)
{
    struct otlp_writer *w = arg;
    close_metric(w);
    w->family = family;
}

static void take_otlp_sample(void *arg, const struct tmk_label *labels, unsigned n, double value)
{
    struct otlp_writer *w = arg;
    const struct tmk_metric_family *f = w->family;
    char text[TMK_LABEL_VALUE_BYTES + 1], name[NAME_BYTES];
    bool is_sum = f->type == TMK_METRIC_COUNTER;
    if (!isfinite(value))
        return;
    if (!w->is_open) {
        otlp_name(f, name);
        open_metric(w, name, otlp_unit(f), f->help, is_sum);
    }
    tmk_json_object(&w->json, NULL);
    tmk_json_array(&w->json, "attributes");
    for (unsigned i = 0; i < n; i++) {
        if (!labels[i].value || !labels[i].value[0])
            continue;
        tmk_label_value_clean(labels[i].value, text);
        put_attribute(&w->json, labels[i].name, text);
    }
    tmk_json_end(&w->json);
    put_point(w, is_sum, value);
    tmk_json_end(&w->json);
}

/* ---- hw.gpu.* ---- */

static void put_hardware(struct otlp_writer *w, const struct tmk_node_device *d, double value)
{
    struct tmk_json *j = &w->json;
    tmk_json_object(j, NULL);
    tmk_json_array(j, "attributes");
    put_attribute(j, "hw.id", d->about.id[0] ? d->about.id : d->label);
    put_attribute(j, "hw.name", d->label);
    put_attribute(j, "hw.vendor", d->about.kind == TMK_DEVICE_NVIDIA ? "NVIDIA" : "AMD");
    if (d->about.name[0])
        put_attribute(j, "hw.model", d->about.name);
    tmk_json_end(j);
    put_point(w, false, value);
    tmk_json_end(j);
}

static double memory_limit(const struct tmk_node_device *d)
{
    return (double)d->total_bytes;
}

static double memory_usage(const struct tmk_node_device *d)
{
    return (double)d->used_bytes;
}

static double memory_utilization(const struct tmk_node_device *d)
{
    return (double)d->used_bytes / (double)d->total_bytes;
}

static void put_hardware_metrics(struct otlp_writer *w, const struct tmk_node *node)
{
    static const struct {
        const char *name, *unit, *description;
        double (*value)(const struct tmk_node_device *d);
    } metrics[] = {
        {"hw.gpu.memory.limit", "By", "Size of the GPU memory.", memory_limit},
        {"hw.gpu.memory.usage", "By", "GPU memory used.", memory_usage},
        {"hw.gpu.memory.utilization", "1", "Fraction of GPU memory used.", memory_utilization},
    };
    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; m++) {
        close_metric(w);
        for (uint64_t i = 0; i < node->n_devices; i++) {
            const struct tmk_node_device *d = &node->devices[i];
            if (d->about.kind == TMK_DEVICE_HOST || d->used_bytes == TMK_BYTES_UNKNOWN ||
                d->total_bytes == TMK_BYTES_UNKNOWN || d->total_bytes == 0)
                continue;
            if (!w->is_open)
                open_metric(w, metrics[m].name, metrics[m].unit, metrics[m].description, false);
            put_hardware(w, d, metrics[m].value(d));
        }
    }
    close_metric(w);
}

/* ---- the body ---- */

static void put_body(struct otlp_writer *w, const struct tmk_node *node,
                     const struct tmk_node_agent *agent)
{
    struct tmk_json *j = &w->json;
    struct tmk_metric_sink sink = {
        .family = take_otlp_family, .sample = take_otlp_sample, .arg = w};
    tmk_json_object(j, NULL);
    tmk_json_array(j, "resourceMetrics");
    tmk_json_object(j, NULL);
    tmk_json_object(j, "resource");
    tmk_json_array(j, "attributes");
    put_attribute(j, "service.name", "tidemark");
    put_attribute(j, "service.version", TMK_VERSION);
    put_attribute(j, "host.name", node->host);
    tmk_json_end(j);
    tmk_json_end(j);
    tmk_json_array(j, "scopeMetrics");
    tmk_json_object(j, NULL);
    tmk_json_object(j, "scope");
    tmk_json_text(j, "name", "tidemark.agent");
    tmk_json_text(j, "version", TMK_VERSION);
    tmk_json_end(j);
    tmk_json_array(j, "metrics");
    tmk_node_metrics(node, agent, &sink);
    put_hardware_metrics(w, node);
    for (int i = 0; i < 6; i++)
        tmk_json_end(j);
}

int tmk_otlp_json(const struct tmk_node *node, const struct tmk_node_agent *agent, uint64_t now_ns,
                  char **ret_text, size_t *ret_n)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    struct otlp_writer w = {.is_open = false};
    if (!out)
        return TMK_ENOMEM;
    snprintf(w.now, sizeof w.now, "%" PRIu64, now_ns);
    snprintf(w.start, sizeof w.start, "%" PRIu64, (uint64_t)(agent->start_s * 1e9));
    tmk_json_init(&w.json, out, 0);
    put_body(&w, node, agent);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return TMK_ENOMEM;
    }
    *ret_text = text;
    *ret_n = n;
    return 0;
}
