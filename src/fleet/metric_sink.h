/* SPDX-License-Identifier: MIT */
/* fleet/metric_sink.h - where metrics go: a text for scrapers (exposition.h) or a push
 * (otlp_json.h).
 *
 *     tmk_metric_family(sink, &family);
 *     tmk_metric_sample(sink, labels, n_labels, value);    // as often as there are series
 *
 * All samples of a family follow its announcement. Label values may be any bytes: they come from
 * traces and environments of other programs. A NULL or empty value leaves the label out. */
#ifndef TMK_FLEET_METRIC_SINK_H
#define TMK_FLEET_METRIC_SINK_H

enum { TMK_LABEL_VALUE_BYTES = 128, TMK_LABELS_MOST = 16 };

enum tmk_metric_type { TMK_METRIC_GAUGE, TMK_METRIC_COUNTER, TMK_METRIC_INFO };

struct tmk_metric_family {
    const char *name; /* with its unit, without "_total" and "_info" */
    enum tmk_metric_type type;
    const char *unit; /* "bytes", "seconds", "ratio": the name ends in it; NULL: none */
    const char *help; /* one sentence */
};

struct tmk_label {
    const char *name, *value;
};

struct tmk_metric_sink {
    void (*family)(void *arg, const struct tmk_metric_family *family);
    void (*sample)(void *arg, const struct tmk_label *labels, unsigned n, double value);
    void *arg;
};

#endif
