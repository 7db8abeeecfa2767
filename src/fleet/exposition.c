/* SPDX-License-Identifier: MIT */
/* fleet/exposition.c - see exposition.h. A family's header is written with its first sample, so a
 * metric without series is not there at all. */
#include "fleet/exposition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "kit/grow.h"
#include "kit/utf8.h"

enum { NUMBER_BYTES = 40, ELLIPSIS_BYTES = 3 };

static const char ellipsis[] = "…";

static void put_bytes(struct tmk_exposition *x, const char *bytes, size_t n)
{
    if (x->failed || TMK_GROW(x->text, x->n_bytes + n + 1, x->room) < 0) {
        x->failed = true;
        return;
    }
    memcpy(x->text + x->n_bytes, bytes, n);
    x->n_bytes += n;
    x->text[x->n_bytes] = '\0';
}

static void put_text(struct tmk_exposition *x, const char *text)
{
    put_bytes(x, text, strlen(text));
}

/* ---- label values ---- */

void tmk_label_value_clean(const char *value, char to[TMK_LABEL_VALUE_BYTES + 1])
{
    char whole[TMK_LABEL_VALUE_BYTES + 8]; /* room to see that it is too long */
    size_t n = tmk_utf8_repair(value, whole, sizeof whole);
    if (n <= TMK_LABEL_VALUE_BYTES) {
        memcpy(to, whole, n + 1);
        return;
    }
    n = TMK_LABEL_VALUE_BYTES - ELLIPSIS_BYTES;
    while (n > 0 && ((unsigned char)whole[n] & 0xc0) == 0x80)
        n--;
    memcpy(to, whole, n);
    memcpy(to + n, ellipsis, sizeof ellipsis);
}

static void put_escaped(struct tmk_exposition *x, const char *text)
{
    for (;;) {
        size_t n = strcspn(text, "\\\"\n");
        put_bytes(x, text, n);
        text += n;
        if (!*text)
            return;
        put_text(x, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\");
        text++;
    }
}

static void put_labels(struct tmk_exposition *x, const struct tmk_label *labels, unsigned n)
{
    char value[TMK_LABEL_VALUE_BYTES + 1];
    bool some = false;
    for (unsigned i = 0; i < n; i++) {
        if (!labels[i].value || !labels[i].value[0])
            continue;
        put_text(x, some ? "," : "{");
        put_text(x, labels[i].name);
        put_text(x, "=\"");
        tmk_label_value_clean(labels[i].value, value);
        put_escaped(x, value);
        put_text(x, "\"");
        some = true;
    }
    if (some)
        put_text(x, "}");
}

/* ---- families ---- */

static void put_header_line(struct tmk_exposition *x, const char *word, const char *suffix,
                            const char *text)
{
    put_text(x, "# ");
    put_text(x, word);
    put_text(x, " ");
    put_text(x, x->family->name);
    put_text(x, suffix);
    put_text(x, " ");
    put_text(x, text);
    put_text(x, "\n");
}

static const char *name_suffix(enum tmk_metric_type type)
{
    return type == TMK_METRIC_COUNTER ? "_total" : type == TMK_METRIC_INFO ? "_info" : "";
}

/* The classic form has no infos, and names counters with their suffix. */
static void put_family_header(struct tmk_exposition *x)
{
    static const char *const names[] = {"gauge", "counter", "info"};
    enum tmk_metric_type type = x->family->type;
    bool is_classic = x->form == TMK_EXPOSITION_CLASSIC;
    const char *suffix = is_classic ? name_suffix(type) : "";
    put_header_line(x, "HELP", suffix, x->family->help);
    put_header_line(x, "TYPE", suffix,
                    names[is_classic && type == TMK_METRIC_INFO ? TMK_METRIC_GAUGE : type]);
    if (!is_classic && x->family->unit)
        put_header_line(x, "UNIT", suffix, x->family->unit);
    x->has_header = true;
}

static void take_family(void *arg, const struct tmk_metric_family *family)
{
    struct tmk_exposition *x = arg;
    x->family = family;
    x->has_header = false;
}

/* The shortest of two forms that reads back as the same number. */
static void put_number(struct tmk_exposition *x, double value)
{
    char text[NUMBER_BYTES];
    if (isinf(value)) {
        put_text(x, value > 0 ? "+Inf" : "-Inf");
        return;
    }
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    put_text(x, text);
}

static void take_sample(void *arg, const struct tmk_label *labels, unsigned n, double value)
{
    struct tmk_exposition *x = arg;
    if (isnan(value))
        return;
    if (!x->has_header)
        put_family_header(x);
    put_text(x, x->family->name);
    put_text(x, name_suffix(x->family->type));
    put_labels(x, labels, n);
    put_text(x, " ");
    put_number(x, value);
    put_text(x, "\n");
}

/* ---- the whole ---- */

void tmk_exposition_init(struct tmk_exposition *x, enum tmk_exposition_form form)
{
    *x = (struct tmk_exposition){.form = form};
}

void tmk_exposition_fini(struct tmk_exposition *x)
{
    free(x->text);
    x->text = NULL;
}

struct tmk_metric_sink tmk_exposition_sink(struct tmk_exposition *x)
{
    return (struct tmk_metric_sink){.family = take_family, .sample = take_sample, .arg = x};
}

int tmk_exposition_end(struct tmk_exposition *x)
{
    put_text(x, x->form == TMK_EXPOSITION_OPENMETRICS ? "# EOF\n" : "");
    return x->failed ? TMK_ENOMEM : 0;
}

const char *tmk_exposition_content_type(enum tmk_exposition_form form)
{
    return form == TMK_EXPOSITION_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- Accept ---- */

/* The weight of a media range, from 0 to 1: of "a/b;q=0.5" 0.5, without q 1. */
static double weight_of_labels(const char *range, size_t n)
{
    for (size_t i = 0; i + 3 < n; i++) {
        if (range[i] != ';')
            continue;
        size_t at = i + 1;
        while (at < n && range[at] == ' ')
            at++;
        if (at + 2 < n && (range[at] | 0x20) == 'q' && range[at + 1] == '=') {
            double q = 0, digit = 1;
            for (at += 2; at < n && (range[at] == '.' || (range[at] >= '0' && range[at] <= '9'));
                 at++) {
                if (range[at] == '.')
                    continue;
                q += digit * (range[at] - '0');
                digit /= 10;
            }
            return q;
        }
    }
    return 1;
}

enum tmk_exposition_form tmk_exposition_choose(const char *accept)
{
    static const char wanted[] = "application/openmetrics-text", plain[] = "text/plain";
    double of_wanted = 0, of_plain = 0;
    while (accept && *accept) {
        accept += strspn(accept, " ,");
        size_t n = strcspn(accept, ",");
        size_t type = strcspn(accept, ",; ");
        if (type == sizeof wanted - 1 && strncasecmp(accept, wanted, type) == 0)
            of_wanted = weight_of_labels(accept, n);
        else if (type == sizeof plain - 1 && strncasecmp(accept, plain, type) == 0)
            of_plain = weight_of_labels(accept, n);
        accept += n;
    }
    return of_wanted > 0 && of_wanted >= of_plain ? TMK_EXPOSITION_OPENMETRICS
                                                  : TMK_EXPOSITION_CLASSIC;
}
