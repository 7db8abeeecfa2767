/* SPDX-License-Identifier: MIT */
/* fleet/exposition.h - metrics as the text that Prometheus scrapes, in either of its forms:
 * OpenMetrics 1.0 or the classic text format 0.0.4.
 *
 *     struct tmk_exposition x;
 *     tmk_exposition_init(&x, TMK_EXPOSITION_OPENMETRICS);
 *     struct tmk_metric_sink sink = tmk_exposition_sink(&x);
 *     ... families and samples ...
 *     rc = tmk_exposition_end(&x);     // x.text, x.n_bytes
 *     tmk_exposition_fini(&x);
 *
 * Label values become valid UTF-8 of at most TMK_LABEL_VALUE_BYTES, with an "…" at a cut, and are
 * escaped, so that no value can end its line or look like another series. */
#ifndef TMK_FLEET_EXPOSITION_H
#define TMK_FLEET_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fleet/metric_sink.h"

enum tmk_exposition_form { TMK_EXPOSITION_OPENMETRICS, TMK_EXPOSITION_CLASSIC };

struct tmk_exposition {
    enum tmk_exposition_form form;
    const struct tmk_metric_family *family; /* announced last */
    bool has_header;                        /* and written */
    bool failed;                            /* no memory */
    char *text;
    uint64_t n_bytes, room;
};

void tmk_exposition_init(struct tmk_exposition *x, enum tmk_exposition_form form);
void tmk_exposition_fini(struct tmk_exposition *x);
struct tmk_metric_sink tmk_exposition_sink(struct tmk_exposition *x);
/* Write the end mark. Returns 0 or TMK_ENOMEM. */
int tmk_exposition_end(struct tmk_exposition *x);

/* The Content-Type of a form. */
const char *tmk_exposition_content_type(enum tmk_exposition_form form);
/* The form that an Accept header asks for: OpenMetrics if it is listed with a weight that is not
 * below that of the classic text, else classic. NULL: no such header. */
enum tmk_exposition_form tmk_exposition_choose(const char *accept);

/* Write `value` as it stands in a label into `to`: valid, cut, not escaped. */
void tmk_label_value_clean(const char *value, char to[TMK_LABEL_VALUE_BYTES + 1]);

#endif
