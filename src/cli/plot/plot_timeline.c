/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_timeline.c - memory over time, stacked by category, below the reserved memory and
 * the memory in use on the device.
 *
 * Time is cut into parts as wide as a point of the picture. Each is drawn at the moment with the
 * most memory in it, so the height of the picture is the peak and the layers add up to it. Time
 * before the first block (imports, mostly) is left out. Steps are below, stages are faint bands if
 * there is room, OOMs are marked.
 *
 * A layer is drawn as an area from its top down to zero, the uppermost first: the layers below
 * cover the rest of it. That takes one edge a layer instead of two, and neighbours have no seam. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/front/target.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_axis.h"
#include "cli/plot/plot_frame.h"
#include "cli/plot/plot_layers.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_picture.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "passes/forecast.h"
#include "passes/oom/ooms.h"
#include "passes/timeline.h"

enum {
    MOST_LAYERS = 10,
    MOST_BANDS = 48,
    MOST_MARKS = 3,               /* rows of OOMs */
    N_PARTS = 720,                /* a point each, about */
    MOST_ITEMS = MOST_LAYERS + 5, /* of the legend */
    LEGEND = 300,                 /* points, at most; and so are the next ones */
    LEFT = 62,
    BOTTOM = 52,
    BAND_NAME = 18, /* rows above everything drawn: names of stages, */
    OOM_ROW = 18,   /* OOMs, */
    PEAK_ROW = 26,  /* the peak's size */
};

#define FAR_ABOVE 2.2 /* times the process's own memory */

struct timeline_drawing {
    const struct tmk_plot *plot;
    struct tmk_plot_layers layers;
    struct tmk_picture picture;
    struct tmk_plot_frame frame;
    const char *by;
    uint32_t colours[MOST_LAYERS + 1];
    uint32_t peak; /* the part with it */
    bool has_reserved;
    uint64_t most_reserved, most_used; /* 0: not known */
    bool used_is_above; /* use is above the limit, or far above: others use the GPU, too */
    uint64_t capacity;  /* the device's; 0: not known, or far above */
    uint32_t *oom_rows; /* row of each OOM; UINT32_MAX: none */
    uint32_t n_oom_rows;
    char sizes[MOST_ITEMS][TMK_AMOUNT_BYTES]; /* of the legend */
    struct tmk_legend_item items[MOST_ITEMS];
    uint32_t n_items;
};

static double timeline_x(const struct timeline_drawing *d, uint64_t ns)
{
    return tmk_plot_frame_x(&d->frame, tmk_plot_axis_x(&d->layers.axis, ns));
}

/* The left edge of a part. */
static double part_x(const struct timeline_drawing *d, uint32_t i)
{
    return d->frame.left + d->frame.width * i / d->layers.n_parts;
}

/* ---- areas and lines ---- */

/* Write a staircase through the parts: two points each. Returns how many. */
static size_t make_stairs(const struct timeline_drawing *d, const double *bytes,
                          struct tmk_point *to)
{
    size_t n = 0;
    for (uint32_t i = 0; i < d->layers.n_parts; i++) {
        double y = tmk_plot_frame_y(&d->frame, bytes[i]);
        to[n++] = (struct tmk_point){part_x(d, i), y};
        to[n++] = (struct tmk_point){part_x(d, i + 1), y};
    }
    return n;
}

static void draw_area(const struct timeline_drawing *d, const struct tmk_layer *layer,
                      uint32_t colour, const double *tops, struct tmk_point *points)
{
    char size[TMK_AMOUNT_BYTES];
    const struct tmk_plot_frame *f = &d->frame;
    char *title = tmk_xformat("%s: at most %s", layer->key, tmk_size_text(layer->most, size));
    size_t n = make_stairs(d, tops, points);
    points[n++] = (struct tmk_point){f->left + f->width, f->top + f->height};
    points[n++] = (struct tmk_point){f->left, f->top + f->height};
    tmk_canvas_group(d->picture.canvas, title);
    tmk_canvas_path(d->picture.canvas, points, n, true, &(struct tmk_paint){.fill = colour});
    tmk_canvas_ungroup(d->picture.canvas);
    free(title);
}

static void draw_areas(const struct timeline_drawing *d, struct tmk_point *points)
{
    const struct tmk_plot_layers *l = &d->layers;
    double *tops = tmk_xcalloc(l->n_parts, sizeof *tops);
    for (uint32_t k = 0; k < l->n_layers; k++)
        for (uint32_t i = 0; i < l->n_parts; i++)
            tops[i] += (double)l->layers[k].bytes[i];
    for (uint32_t k = l->n_layers; k-- > 0;) {
        draw_area(d, &l->layers[k], d->colours[k], tops, points);
        for (uint32_t i = 0; i < l->n_parts; i++)
            tops[i] -= (double)l->layers[k].bytes[i];
    }
    free(tops);
}

enum timeline_line { RESERVED, USED };

static bool is_line_known(const struct tmk_timeline_part *part, enum timeline_line line)
{
    return line == RESERVED ? part->has_reserved : part->has_used;
}

/* Draw a line through the parts where its value is known. */
static void draw_line(const struct timeline_drawing *d, enum timeline_line line,
                      struct tmk_point *points, const struct tmk_paint *paint)
{
    const struct tmk_plot_layers *l = &d->layers;
    size_t n = 0;
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const struct tmk_timeline_part *part = &l->parts[i];
        if (is_line_known(part, line)) {
            uint64_t bytes = line == RESERVED ? part->max_reserved_bytes : part->max_used_bytes;
            double y = tmk_plot_frame_y(&d->frame, (double)bytes);
            points[n++] = (struct tmk_point){part_x(d, i), y};
            points[n++] = (struct tmk_point){part_x(d, i + 1), y};
        }
        if (n && (!is_line_known(part, line) || i + 1 == l->n_parts)) {
            tmk_canvas_path(d->picture.canvas, points, n, false, paint);
            n = 0;
        }
    }
}

static void draw_curves(const struct timeline_drawing *d)
{
    const struct tmk_theme *theme = d->picture.theme;
    struct tmk_point *points = tmk_xcalloc(2 * (size_t)d->layers.n_parts + 2, sizeof *points);
    draw_areas(d, points);
    if (d->has_reserved)
        draw_line(d, RESERVED, points,
                  &(struct tmk_paint){.stroke = theme->reserved, .width = 1.5});
    if (d->most_used && !d->used_is_above)
        draw_line(
            d, USED, points,
            &(struct tmk_paint){.stroke = theme->device, .width = 1.5, .dash = TMK_DASH_DOTS});
    free(points);
}

/* ---- bands ---- */

static double band_start(const struct timeline_drawing *d, const struct tmk_stage_span *span)
{
    return fmax(timeline_x(d, span->start_ns), d->frame.left);
}

static double band_width(const struct timeline_drawing *d, const struct tmk_stage_span *span)
{
    return fmin(timeline_x(d, span->end_ns), d->frame.left + d->frame.width) - band_start(d, span);
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
    return width > tmk_text_width(l->spans[i].name, 11, false) + 6;
}

static void draw_bands(const struct timeline_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    for (uint64_t i = 0; i < l->n_spans && l->n_spans <= MOST_BANDS; i++) {
        const struct tmk_stage_span *span = &l->spans[i];
        double width = band_width(d, span);
        if (width <= 0)
            continue;
        uint32_t colour = (tmk_palette_of(span->name) & 0xffffff) | 0x1a000000;
        tmk_canvas_rect(d->picture.canvas, band_start(d, span), d->frame.top, width,
                        d->frame.height, &(struct tmk_paint){.fill = colour});
        if (has_name(d, i))
            tmk_canvas_text(
                d->picture.canvas, band_start(d, span) + width / 2, d->frame.top + 13, span->name,
                &(struct tmk_text_style){
                    .size = 11, .colour = d->picture.theme->faint, .anchor = TMK_ANCHOR_MIDDLE});
    }
}

/* ---- OOMs and the peak ---- */

static const struct tmk_oom *oom_at(const struct timeline_drawing *d, uint64_t i)
{
    const struct tmk_oom *oom = tmk_ooms_get(d->layers.ooms, i);
    bool is_shown = tmk_plot_axis_has(&d->layers.axis, oom->time_ns);
    return oom->device == d->plot->device && is_shown ? oom : NULL;
}

/* Whether its text is left of the line, because there is no room at the right. */
static bool is_text_left(const struct timeline_drawing *d, double at)
{
    return at > d->frame.left + d->frame.width / 2;
}

/* Place the texts of OOMs in a row, or in several rows if they are close. OOMs without room have
 * only their line. */
static void place_ooms(struct timeline_drawing *d)
{
    double ends[MOST_MARKS] = {0};
    uint64_t n = tmk_ooms_n_kept(d->layers.ooms);
    d->oom_rows = tmk_xcalloc(n + 1, sizeof *d->oom_rows);
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_oom *oom = oom_at(d, i);
        d->oom_rows[i] = UINT32_MAX;
        if (!oom)
            continue;
        char *text = tmk_plot_oom_text(oom);
        double width = tmk_text_width(text, 12, true) + 14, at = timeline_x(d, oom->time_ns);
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

static void draw_ooms(const struct timeline_drawing *d)
{
    const struct tmk_plot_frame *f = &d->frame;
    uint64_t n = tmk_ooms_n_kept(d->layers.ooms);
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_oom *oom = oom_at(d, i);
        if (!oom)
            continue;
        double at = timeline_x(d, oom->time_ns);
        bool is_left = is_text_left(d, at);
        tmk_canvas_line(d->picture.canvas, at, f->top, at, f->top + f->height,
                        &(struct tmk_paint){.stroke = d->picture.theme->warning, .width = 2});
        if (d->oom_rows[i] == UINT32_MAX)
            continue;
        char *text = tmk_plot_oom_text(oom);
        tmk_canvas_text(
            d->picture.canvas, at + (is_left ? -7 : 7),
            f->top + BAND_NAME + OOM_ROW * d->oom_rows[i] + 13, text,
            &(struct tmk_text_style){.colour = d->picture.theme->warning,
                                     .halo = d->picture.theme->background,
                                     .is_bold = true,
                                     .anchor = is_left ? TMK_ANCHOR_END : TMK_ANCHOR_START});
        free(text);
    }
}

/* Draw a disc at the peak, and its size above all that is drawn, with a line between them. */
static void draw_peak(const struct timeline_drawing *d)
{
    char size[TMK_AMOUNT_BYTES], step[TMK_STEP_TEXT_BYTES];
    const struct tmk_theme *theme = d->picture.theme;
    const struct tmk_timeline_part *part = &d->layers.parts[d->peak];
    int64_t in = tmk_plot_axis_step(&d->layers.axis, part->max_ns);
    char *text = tmk_xformat("peak %s%s", tmk_size_text(part->max_bytes, size),
                             tmk_step_text(d->plot->p, in, ", ", step));
    double x = part_x(d, d->peak) + 0.5, y = tmk_plot_frame_y(&d->frame, (double)part->max_bytes);
    double above = d->frame.top + BAND_NAME + OOM_ROW * d->n_oom_rows + 13;
    bool is_left = is_text_left(d, x);
    tmk_canvas_line(d->picture.canvas, x, above - 9, x, y,
                    &(struct tmk_paint){.stroke = theme->text});
    tmk_canvas_disc(d->picture.canvas, x, y, 3.5,
                    &(struct tmk_paint){.fill = theme->text, .stroke = theme->background});
    tmk_canvas_text(
        d->picture.canvas, x + (is_left ? -6 : 6), above, text,
        &(struct tmk_text_style){.colour = theme->text,
                                 .halo = theme->background,
                                 .anchor = is_left ? TMK_ANCHOR_END : TMK_ANCHOR_START});
    free(text);
}

/* ---- the legend ---- */

static void add_item(struct timeline_drawing *d, const char *text, uint32_t colour,
                     enum tmk_legend_mark mark, uint64_t bytes)
{
    struct tmk_legend_item *item = &d->items[d->n_items];
    *item = (struct tmk_legend_item){
        .text = text,
        .colour = colour,
        .mark = mark,
        .size = bytes == TMK_BYTES_UNKNOWN ? NULL : tmk_size_text(bytes, d->sizes[d->n_items])};
    d->n_items++;
}

/* List the layers as they are stacked, with their sizes at the peak; then the lines. */
static void make_legend(struct timeline_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    const struct tmk_theme *theme = d->picture.theme;
    add_item(d, "at the peak", 0, TMK_LEGEND_SQUARE, TMK_BYTES_UNKNOWN);
    for (uint32_t k = l->n_layers; k-- > 0;)
        add_item(d, l->layers[k].key, d->colours[k], TMK_LEGEND_SQUARE,
                 l->layers[k].bytes[d->peak]);
    if (d->has_reserved || d->most_used || d->capacity)
        d->n_items++; /* some room */
    if (d->capacity)
        add_item(d, "limit", theme->capacity, TMK_LEGEND_DASHED, d->capacity);
    if (d->has_reserved)
        add_item(d, "reserved", theme->reserved, TMK_LEGEND_LINE, d->most_reserved);
    if (d->most_used)
        add_item(d, d->used_is_above ? "device, not drawn" : "device in use", theme->device,
                 TMK_LEGEND_DOTTED, d->most_used);
}

/* ---- measures ---- */

static uint64_t timeline_capacity(const struct tmk_plot *plot)
{
    struct tmk_forecast f;
    return tmk_forecast_of(plot->p, plot->device, NULL, &f) == 0 ? f.capacity_bytes : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void measure_bytes(struct timeline_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    unsigned n_others = 0;
    for (uint32_t k = 0; k < l->n_layers; k++)
        d->colours[k] = tmk_palette_next(l->layers[k].key, &n_others);
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const struct tmk_timeline_part *part = &l->parts[i];
        d->has_reserved |= part->has_reserved;
        if (part->has_reserved)
            d->most_reserved = larger(d->most_reserved, part->max_reserved_bytes);
        if (part->has_used)
            d->most_used = larger(d->most_used, part->max_used_bytes);
        d->peak = part->max_bytes > l->parts[d->peak].max_bytes ? i : d->peak;
    }
}

/* Lay out the frame, with room for the legend beside it and for texts above what is drawn. */
static void measure_frame(struct timeline_drawing *d, double top)
{
    const struct tmk_plot_layers *l = &d->layers;
    uint64_t most = larger(l->most_bytes, d->most_reserved);
    uint64_t capacity = timeline_capacity(d->plot);
    bool is_near = (double)capacity < (tmk_ooms_n(l->ooms) ? 3 : 1.6) * (double)most;
    d->capacity = capacity >= most && is_near ? capacity : 0;
    d->used_is_above = (double)d->most_used > FAR_ABOVE * (double)most ||
                       (d->capacity && d->most_used > d->capacity);
    most = d->used_is_above ? most : larger(most, d->most_used);
    make_legend(d);
    double legend = tmk_legend_column_width(d->items, d->n_items, LEGEND);
    bool has_names_above = !l->axis.by_step && l->axis.n_rows > 1;
    d->frame = (struct tmk_plot_frame){
        .picture = &d->picture,
        .left = LEFT,
        .top = top + (has_names_above ? 12 : 0),
        .from = tmk_plot_axis_start(&l->axis),
        .to = tmk_plot_axis_end(&l->axis),
    };
    d->frame.width = d->picture.width - TMK_PICTURE_SIDE - legend - 24 - LEFT;
    d->frame.height = d->picture.height - BOTTOM - d->frame.top;
    place_ooms(d);
    double above = BAND_NAME + OOM_ROW * d->n_oom_rows + PEAK_ROW;
    d->frame.most = (double)larger(most, d->capacity) / (1 - above / d->frame.height);
}

/* ---- the picture ---- */

static double draw_title(const struct timeline_drawing *d)
{
    char size[TMK_AMOUNT_BYTES];
    bool has_several = tmk_ooms_n(d->layers.ooms) > 1; /* else its own text is enough */
    char *warning = has_several ? tmk_plot_ooms_text(d->plot, d->layers.ooms) : NULL;
    char *title = tmk_plot_title(d->plot, "%s by %s, at most %s",
                                 d->layers.holdings ? "reserved on the device" : "allocated", d->by,
                                 tmk_size_text(d->layers.most_bytes, size));
    double top = tmk_picture_title(&d->picture, title, NULL, warning);
    free(title);
    free(warning);
    return top;
}

static int draw_timeline(struct timeline_drawing *d)
{
    tmk_picture_open(&d->picture, d->plot->path, &d->plot->style, TMK_PICTURE_WIDTH,
                     TMK_PICTURE_HEIGHT);
    measure_bytes(d);
    measure_frame(d, draw_title(d));
    draw_bands(d);
    tmk_plot_frame_sizes(&d->frame);
    draw_curves(d);
    tmk_plot_frame_limit(&d->frame, d->capacity ? (double)d->capacity : INFINITY);
    tmk_plot_axis_draw(&d->layers.axis, &d->frame);
    draw_ooms(d);
    draw_peak(d);
    const struct tmk_legend legend = {.items = d->items,
                                      .n = d->n_items,
                                      .left = d->frame.left + d->frame.width + 24,
                                      .width = d->picture.width - TMK_PICTURE_SIDE - d->frame.left -
                                               d->frame.width - 24};
    tmk_legend_column(&legend, &d->picture, d->frame.top);
    return tmk_picture_save(&d->picture);
}

int tmk_plot_timeline(const struct tmk_plot *plot)
{
    struct timeline_drawing d = {.plot = plot,
                                 .by = plot->by           ? plot->by
                                       : plot->has_blocks ? "category"
                                                          : "owner"};
    int status = tmk_picture_check(plot->path);
    if (status == 0)
        status = tmk_plot_layers_read(&d.layers, plot, d.by, N_PARTS, MOST_LAYERS);
    if (status == 0)
        status = draw_timeline(&d);
    tmk_plot_layers_fini(&d.layers);
    free(d.oom_rows);
    return status;
}
