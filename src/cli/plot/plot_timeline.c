/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_timeline.c - memory over time, stacked by category, below the reserved memory and
 * the memory in use on the device.
 *
 * A point of the stack is the moment with the most memory in its part of time, so the height of the
 * picture is the peak. Time before the first block (imports, mostly) is left out. Steps are at the
 * top, stages are faint bands if there is room, OOMs are marked. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/palette.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_axis.h"
#include "cli/plot/plot_layers.h"
#include "cli/plot/plot_legend.h"
#include "kit/amount.h"
#include "kit/utf8.h"
#include "passes/forecast.h"
#include "passes/oom/ooms.h"
#include "passes/timeline.h"

enum {
    RASTER_PARTS = 2400,
    VECTOR_PARTS = 700, /* each point takes some bytes of the file */
    MOST_LAYERS = 10,
    MOST_BANDS = 48,
    MOST_MARKS = 3, /* rows of OOMs */
    LETTERS = 150,  /* small letters in the picture's width */
};

#define FAR_ABOVE 2.2   /* times the process's own memory */
#define BAND_NAMES 0.06 /* share of the graph's height, at its top */
#define OOM_ROW 0.055   /* a row of OOMs below them */
#define LIMIT_NAME 0.05 /* room for the limit's name, above its line */

struct timeline_drawing {
    const struct tmk_plot *plot;
    struct tmk_plot_layers layers;
    struct tmk_gnuplot *g;
    const struct tmk_theme *theme;
    FILE *out;
    struct tmk_plot_unit size;
    double start, end; /* of the x axis */
    double height;     /* of the y axis, in units of size */
    bool has_reserved, has_used;
    uint64_t most_used;
    bool used_is_above; /* use is far above the picture: other processes use the GPU */
    uint64_t capacity;  /* the device's; 0: not known, or far above */
    uint32_t *oom_rows; /* row of each OOM; UINT32_MAX: none */
    uint32_t n_oom_rows;
};

static double timeline_x(const struct timeline_drawing *d, uint64_t ns)
{
    return tmk_plot_axis_x(&d->layers.axis, ns);
}

/* ---- data ---- */

/* Write x, the top of each layer, reserved, used; NaN: not known. */
static void put_timeline_data(const struct timeline_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    fputs("$d << EOD\n", d->out);
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const struct tmk_timeline_part *part = &l->parts[i];
        double top = 0;
        fprintf(d->out, "%.9g 0", timeline_x(d, i + 1 == l->n_parts ? part->end_ns : part->max_ns));
        for (uint32_t k = 0; k < l->n_layers; k++) {
            top += (double)l->layers[k].bytes[i] / d->size.size;
            fprintf(d->out, " %.6g", top);
        }
        double reserved = (double)part->max_reserved_bytes, used = (double)part->max_used_bytes;
        if (part->has_reserved)
            fprintf(d->out, " %.6g", reserved / d->size.size);
        else
            fputs(" NaN", d->out);
        if (part->has_used)
            fprintf(d->out, " %.6g\n", used / d->size.size);
        else
            fputs(" NaN\n", d->out);
    }
    fputs("EOD\n", d->out);
}

/* ---- bands, steps, marks ---- */

static double band_start(const struct timeline_drawing *d, const struct tmk_stage_span *span)
{
    double from = timeline_x(d, span->start_ns);
    return from < d->start ? d->start : from;
}

static double band_width(const struct timeline_drawing *d, const struct tmk_stage_span *span)
{
    double to = timeline_x(d, span->end_ns);
    return (to > d->end ? d->end : to) - band_start(d, span);
}

static void put_band(const struct timeline_drawing *d, const struct tmk_stage_span *span)
{
    double from = band_start(d, span), width = band_width(d, span);
    if (width > 0)
        fprintf(d->out,
                "set object rectangle from first %.9g, graph 0 to first %.9g, graph 1 behind "
                "fillcolor rgb '#e8%s' fillstyle solid noborder\n",
                from, from + width, tmk_palette_of(span->name) + 1);
}

/* Whether a band has its name: the widest of each name, if there is room. */
static bool has_name(const struct timeline_drawing *d, uint64_t i)
{
    const struct tmk_plot_layers *l = &d->layers;
    double width = band_width(d, &l->spans[i]);
    for (uint64_t k = 0; k < l->n_spans; k++)
        if (k != i && strcmp(l->spans[k].name, l->spans[i].name) == 0 &&
            band_width(d, &l->spans[k]) > width)
            return false;
    double columns = (double)tmk_utf8_width(l->spans[i].name) + 1;
    return width * LETTERS > columns * (d->end - d->start);
}

static void put_bands(const struct timeline_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    for (uint64_t i = 0; i < l->n_spans && l->n_spans <= MOST_BANDS; i++) {
        const struct tmk_stage_span *span = &l->spans[i];
        put_band(d, span);
        if (!has_name(d, i))
            continue;
        fputs("set label ", d->out);
        tmk_gnuplot_text(d->out, span->name);
        fprintf(d->out,
                " at first %.9g, graph 1 center front font ',%.4g' offset 0,-0.7 textcolor rgb "
                "'%s'\n",
                band_start(d, span) + band_width(d, span) / 2, tmk_gnuplot_points(d->g, 10),
                d->theme->faint);
    }
}

/* ---- OOMs ---- */

static const struct tmk_oom *oom_at(const struct timeline_drawing *d, uint64_t i)
{
    const struct tmk_oom *oom = tmk_ooms_get(d->layers.ooms, i);
    double at = timeline_x(d, oom->time_ns);
    return oom->device == d->plot->device && at >= d->start && at <= d->end ? oom : NULL;
}

/* Make "OOM: 27.0 MiB refused"; the caller's. */
static char *oom_text(const struct tmk_oom *oom)
{
    char size[TMK_AMOUNT_BYTES];
    return tmk_xformat("OOM: %s refused", tmk_size_text(oom->requested_bytes, size));
}

/* Whether its text is left of the line, because there is no room at the right. */
static bool is_text_left(const struct timeline_drawing *d, double at)
{
    return at > (d->start + d->end) / 2;
}

/* Place the texts of OOMs in a row above the graph, or several rows if they are close. OOMs without
 * room have only their line. */
static void place_ooms(struct timeline_drawing *d)
{
    double ends[MOST_MARKS] = {0}, letter = (d->end - d->start) * TMK_LETTER;
    uint64_t n = tmk_ooms_n_kept(d->layers.ooms);
    d->oom_rows = tmk_xcalloc(n + 1, sizeof *d->oom_rows);
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_oom *oom = oom_at(d, i);
        d->oom_rows[i] = UINT32_MAX;
        if (!oom)
            continue;
        char *text = oom_text(oom);
        double width = ((double)tmk_utf8_width(text) + 2) * letter,
               at = timeline_x(d, oom->time_ns);
        double from = is_text_left(d, at) ? at - width : at;
        uint32_t row = 0;
        while (row < d->n_oom_rows && ends[row] > from)
            row++;
        if (row < MOST_MARKS) {
            d->oom_rows[i] = row;
            ends[row] = from + width;
            d->n_oom_rows = row < d->n_oom_rows ? d->n_oom_rows : row + 1;
        }
        free(text);
    }
}

static void put_ooms(const struct timeline_drawing *d)
{
    uint64_t n = tmk_ooms_n_kept(d->layers.ooms);
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_oom *oom = oom_at(d, i);
        if (!oom)
            continue;
        double at = timeline_x(d, oom->time_ns);
        fprintf(d->out,
                "set arrow from first %.9g, graph 0 to first %.9g, graph 1 nohead front "
                "linewidth 2 linecolor rgb '%s'\n",
                at, at, d->theme->warning);
        if (d->oom_rows[i] == UINT32_MAX)
            continue;
        char *text = oom_text(oom);
        fprintf(
            d->out,
            "set label '%s' at first %.9g, graph %.3f %s front offset %s,0 textcolor rgb '%s'\n",
            text, at, 1 - BAND_NAMES - OOM_ROW * (d->oom_rows[i] + 0.5),
            is_text_left(d, at) ? "right" : "left", is_text_left(d, at) ? "-0.7" : "0.7",
            d->theme->warning);
        free(text);
    }
}

/* ---- measures ---- */

static uint64_t timeline_capacity(const struct tmk_plot *plot)
{
    struct tmk_forecast f;
    return tmk_forecast_of(plot->p, plot->device, NULL, &f) == 0 ? f.capacity_bytes : 0;
}

static void measure_timeline(struct timeline_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    uint64_t most = l->most_bytes;
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const struct tmk_timeline_part *part = &l->parts[i];
        d->has_reserved |= part->has_reserved;
        if (part->has_reserved && part->max_reserved_bytes > most)
            most = part->max_reserved_bytes;
        if (part->has_used && part->max_used_bytes > d->most_used)
            d->most_used = part->max_used_bytes;
    }
    d->has_used = d->most_used > 0;
    d->used_is_above = (double)d->most_used > FAR_ABOVE * (double)most;
    most = d->most_used > most && !d->used_is_above ? d->most_used : most;
    uint64_t capacity = timeline_capacity(d->plot);
    d->capacity = capacity >= most && (double)capacity < 1.35 * (double)most ? capacity : 0;
    d->size = tmk_plot_size_unit((double)most);
    d->start = tmk_plot_axis_start(&l->axis);
    d->end = tmk_plot_axis_end(&l->axis);
    place_ooms(d);
    double above = BAND_NAMES + OOM_ROW * d->n_oom_rows + (d->capacity ? LIMIT_NAME : 0);
    d->height = (double)(d->capacity ? d->capacity : most) / d->size.size;
    d->height *= d->n_oom_rows ? 1 / (1 - above) : 1.06;
}

/* ---- the script ---- */

static void put_timeline_title(const struct timeline_drawing *d, const char *by)
{
    char size[TMK_AMOUNT_BYTES];
    char *title = tmk_plot_title(d->plot, "%s by %s, at most %s",
                                 d->layers.holdings ? "held of the device" : "allocated", by,
                                 tmk_size_text(d->layers.most_bytes, size));
    tmk_gnuplot_title(d->g, title);
    free(title);
}

static void put_timeline_axes(const struct timeline_drawing *d)
{
    fprintf(d->out, "set ylabel '%s'\nset yrange [0:%.9g]\nset tics front\n", d->size.name,
            d->height);
    tmk_plot_axis_put(&d->layers.axis, d->out, d->theme);
    char size[TMK_AMOUNT_BYTES];
    if (d->has_used && d->used_is_above)
        fprintf(d->out,
                "set label 'device in use: at most %s, not drawn' at graph 1, screen 0 right "
                "offset 0,0.8 textcolor rgb '%s'\n",
                tmk_size_text(d->most_used, size), d->theme->faint);
    if (d->capacity) {
        char text[TMK_AMOUNT_BYTES + 24];
        snprintf(text, sizeof text, "limit %s", tmk_size_text(d->capacity, size));
        tmk_plot_limit(d->out, d->theme, (double)d->capacity / d->size.size, text);
    }
}

static void put_timeline_curves(const struct timeline_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    unsigned n_others = 0;
    fputs("set style fill solid 1 noborder\nplot ", d->out);
    for (uint32_t k = l->n_layers; k > 0; k--) {
        fprintf(d->out, "$d using 1:%u:%u with filledcurves linecolor rgb '%s' title ", k + 1,
                k + 2, tmk_palette_next(l->layers[k - 1].key, &n_others));
        tmk_gnuplot_tail_text(d->out, l->layers[k - 1].key, 40);
        fputs(k > 1 ? ", " : "", d->out);
    }
    /* A peak of a millisecond is thinner than a point and pale, so this line shows it. */
    fprintf(d->out, ", $d using 1:%u with lines linewidth 0.75 linecolor rgb '%s' notitle",
            l->n_layers + 2, d->theme->faint);
    if (d->has_reserved)
        fprintf(d->out,
                ", $d using 1:%u with lines linewidth 1.5 linecolor rgb '%s' title 'reserved'",
                l->n_layers + 3, d->theme->reserved);
    if (d->has_used && !d->used_is_above)
        fprintf(d->out,
                ", $d using 1:%u with lines linewidth 1.5 dashtype 3 linecolor rgb '%s' title "
                "'device in use'",
                l->n_layers + 4, d->theme->device);
    fputc('\n', d->out);
}

static int draw_timeline(struct timeline_drawing *d, const char *by)
{
    d->theme = tmk_gnuplot_theme(d->g);
    d->out = tmk_gnuplot_script(d->g);
    measure_timeline(d);
    put_timeline_data(d);
    put_timeline_title(d, by);
    put_timeline_axes(d);
    put_bands(d);
    put_ooms(d);
    put_timeline_curves(d);
    return tmk_gnuplot_close(d->g);
}

int tmk_plot_timeline(const struct tmk_plot *plot)
{
    struct timeline_drawing d = {.plot = plot};
    const char *by = plot->by ? plot->by : plot->has_blocks ? "category" : "owner";
    int status = tmk_gnuplot_check(plot->path);
    if (status != 0)
        return status;
    uint32_t n_parts = tmk_gnuplot_is_vector(plot->path) ? VECTOR_PARTS : RASTER_PARTS;
    status = tmk_plot_layers_read(&d.layers, plot, by, n_parts, MOST_LAYERS);
    if (status == 0)
        status = tmk_gnuplot_open(plot->path, &plot->style, TMK_PICTURE_HEIGHT, &d.g);
    if (status == 0)
        status = draw_timeline(&d, by);
    tmk_plot_layers_fini(&d.layers);
    free(d.oom_rows);
    return status;
}
