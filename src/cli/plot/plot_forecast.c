/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_forecast.c - the forecast of a process: the peak of each step, the line that the
 * forecast follows (passes/forecast.h) with its bounds, and the capacity.
 *
 * A process without steps, or a GPU that other processes fill, is forecast by time, from the
 * driver's samples; then these are drawn. If use does not grow there is no line, and the picture
 * says so. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_frame.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_picture.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "passes/forecast_samples.h"
#include "passes/oom/ooms.h"
#include "passes/steps.h"
#include "trace/layout.h"
#include "trace/replay.h"

enum { MOST_POINTS = 900, MOST_DISCS = 120, MOST_TICS = 12, LEFT = 62, BOTTOM = 52 /* points */ };

struct forecast_drawing {
    const struct tmk_plot *plot;
    struct tmk_forecast f;
    const struct tmk_device_samples *samples; /* NULL: none */
    struct tmk_steps *steps;
    char *warning; /* about its OOMs; NULL: none */
    bool by_step;  /* the x axis: by step or by time */
    struct tmk_plot_unit time;
    struct tmk_picture picture;
    struct tmk_plot_frame frame;
    double first_x, last_x, last_y; /* of the points */
    double lead, low, high; /* from the last point to the capacity, in units of x; 0: no forecast */
};

/* ---- no forecast ---- */

static int refuse_forecast(const struct tmk_plot *plot, const char *why)
{
    char device[24];
    tmk_say("%s: no forecast for %s: %s", plot->p->file, tmk_device_name(plot->device, device),
            why);
    return TMK_EXIT_FINDING;
}

/* ---- points ---- */

/* Count the steps that have ended; the need of an open one is not known. */
static uint64_t count_plotted_steps(const struct forecast_drawing *d)
{
    uint64_t n = tmk_steps_n(d->steps);
    while (n > 0 && tmk_steps_get(d->steps, n - 1)->open)
        n--;
    return n;
}

static uint64_t n_points(const struct forecast_drawing *d)
{
    return d->by_step ? count_plotted_steps(d) : d->samples->n;
}

/* Choose the axis. 0, or an exit status after a message: there is nothing to draw. */
static int choose_forecast_axis(struct forecast_drawing *d)
{
    uint64_t n = count_plotted_steps(d);
    d->by_step = d->f.by_step || !d->samples || n >= 2;
    if (d->f.has_time && !d->f.by_step && d->samples)
        d->by_step = false;
    if (d->by_step && n < 2)
        return refuse_forecast(d->plot,
                               n ? "it has one finished step only"
                                 : "it has no finished step, and the driver was not asked either");
    if (!d->by_step && d->samples->n < 2)
        return refuse_forecast(d->plot, "the driver was asked once only");
    if (d->f.capacity_bytes == 0)
        return refuse_forecast(d->plot, "how much memory there is is not known");
    return 0;
}

static double forecast_x(const struct forecast_drawing *d, uint64_t i)
{
    if (d->by_step)
        return (double)tmk_steps_get(d->steps, i)->step;
    return (double)(d->samples->items[i].time_ns + d->plot->p->offset_ns) / d->time.size;
}

static double bytes_of(const struct forecast_drawing *d, uint64_t i)
{
    return (double)(d->by_step ? tmk_steps_get(d->steps, i)->peak_bytes
                               : d->samples->items[i].used_bytes);
}

/* Draw the points and the line through them. If there are more than can be seen, the maximum of
 * neighbours represents them. */
static void draw_forecast_points(const struct forecast_drawing *d)
{
    uint64_t n = n_points(d), at_once = n / MOST_POINTS + 1;
    struct tmk_canvas *c = d->picture.canvas;
    struct tmk_point *points = tmk_xcalloc(n / at_once + 1, sizeof *points);
    uint32_t colour = tmk_palette_colour(0);
    size_t k = 0;
    for (uint64_t i = 0; i < n; i += at_once) {
        uint64_t best = i;
        for (uint64_t next = i; next < n && next < i + at_once; next++)
            best = bytes_of(d, next) > bytes_of(d, best) ? next : best;
        points[k++] = (struct tmk_point){tmk_plot_frame_x(&d->frame, forecast_x(d, best)),
                                         tmk_plot_frame_y(&d->frame, bytes_of(d, best))};
    }
    tmk_canvas_path(c, points, k, false, &(struct tmk_paint){.stroke = colour, .width = 2});
    for (size_t i = 0; i < k && n <= MOST_DISCS; i++)
        tmk_canvas_disc(c, points[i].x, points[i].y, 3, &(struct tmk_paint){.fill = colour});
    free(points);
}

/* ---- the line ahead ---- */

static void find_lead(struct forecast_drawing *d)
{
    const struct tmk_forecast *f = &d->f;
    uint64_t n = n_points(d);
    d->first_x = forecast_x(d, 0);
    d->last_x = forecast_x(d, n - 1);
    d->last_y = bytes_of(d, n - 1);
    if (!f->has_time || f->has_run_out || f->seconds_to_oom <= 0 || f->by_step != d->by_step)
        return;
    double one = d->by_step ? f->seconds_to_oom / (f->steps_to_oom > 0 ? f->steps_to_oom : 1)
                            : d->time.size / 1e9;
    d->lead = f->seconds_to_oom / one;
    d->low = f->seconds_low / one;
    d->high = f->seconds_high / one;
}

/* The same colour, so pale that what is below is seen. */
static uint32_t pale(uint32_t colour)
{
    return (colour & 0xffffff) | 0x33000000;
}

/* Draw the line to where the limit is met, between its bounds. */
static void draw_lead(const struct forecast_drawing *d)
{
    const struct tmk_plot_frame *f = &d->frame;
    uint32_t colour = d->picture.theme->warning;
    double x = tmk_plot_frame_x(f, d->last_x), y = tmk_plot_frame_y(f, d->last_y);
    double top = tmk_plot_frame_y(f, (double)d->f.capacity_bytes);
    const struct tmk_point bounds[] = {{x, y},
                                       {tmk_plot_frame_x(f, d->last_x + d->low), top},
                                       {tmk_plot_frame_x(f, d->last_x + d->high), top}};
    tmk_canvas_clip(d->picture.canvas, f->left, f->top, f->width, f->height);
    tmk_canvas_path(d->picture.canvas, bounds, 3, true, &(struct tmk_paint){.fill = pale(colour)});
    tmk_canvas_line(d->picture.canvas, x, y, tmk_plot_frame_x(f, d->last_x + d->lead), top,
                    &(struct tmk_paint){.stroke = colour, .width = 2, .dash = TMK_DASH_LONG});
    tmk_canvas_ungroup(d->picture.canvas);
}

/* Where the OOM that has happened is drawn; false: there is none, or not on this axis. */
static bool find_oom_x(const struct forecast_drawing *d, double *ret)
{
    if (!d->f.has_oom || (d->by_step && d->f.oom_step == TMK_NO_STEP))
        return false;
    *ret = d->by_step ? (double)d->f.oom_step
                      : (double)(d->f.oom_ns + d->plot->p->offset_ns) / d->time.size;
    return true;
}

/* The end of the axis: as far as the line reaches, but the points keep a third of the picture. */
static double forecast_end(const struct forecast_drawing *d)
{
    double span = d->last_x - d->first_x, ahead = d->lead > 0 ? 1.08 * d->high : 0;
    ahead = ahead > 2 * span ? 2 * span : ahead;
    ahead = ahead < 1.05 * d->lead ? 1.05 * d->lead : ahead;
    ahead = ahead > 6 * span ? 6 * span : ahead;
    double end = d->last_x + (d->lead > 0 ? ahead : 0.02 * span), oom;
    return find_oom_x(d, &oom) && end < oom + 0.05 * span ? oom + 0.05 * span : end;
}

/* ---- drawing ---- */

static char *make_forecast_title(const struct forecast_drawing *d)
{
    const struct tmk_forecast *f = &d->f;
    char slope[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    char *growth =
        tmk_xformat("%s, +%s a %s", tmk_growth_cause_name(f->cause),
                    tmk_size_text(tmk_size_whole(f->slope), slope), f->by_step ? "step" : "second");
    for (char *at = growth; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    char *title, step[TMK_STEP_TEXT_BYTES];
    if (f->has_run_out || (d->warning && d->lead <= 0))
        title =
            tmk_plot_title(d->plot, "ran out of memory%s",
                           f->has_run_out ? tmk_step_text(d->plot->p, f->oom_step, " ", step) : "");
    else if (d->lead > 0)
        title =
            tmk_plot_title(d->plot, "%s risk, full in %s (%s)", tmk_risk_text(f->risk),
                           tmk_time_text(tmk_size_whole(f->seconds_to_oom * 1e9), time), growth);
    else if (f->risk == TMK_RISK_UNKNOWN)
        title = tmk_plot_title(d->plot, "too short to say where it leads");
    else if (f->slope > 0)
        title = tmk_plot_title(d->plot, "%s, %s the limit", growth,
                               f->highest_bytes < f->capacity_bytes ? "far from" : "past");
    else
        title = tmk_plot_title(d->plot, "does not grow towards the limit");
    free(growth);
    return title;
}

static bool has_forecast_limit(const struct forecast_drawing *d)
{
    double most = fmax((double)d->f.highest_bytes, d->last_y);
    if (!d->by_step && (double)d->f.capacity_bytes < most)
        return false; /* it is the process's, and the points are of the whole device */
    return d->lead > 0 || d->f.has_oom || (double)d->f.capacity_bytes < 3 * most;
}

static void lay_out_forecast(struct forecast_drawing *d, double top)
{
    double capacity = (double)d->f.capacity_bytes, most = (double)d->f.highest_bytes;
    most = fmax(most, d->last_y);
    d->frame = (struct tmk_plot_frame){
        .picture = &d->picture,
        .left = LEFT,
        .top = top + TMK_LEGEND_ROW + 14,
        .width = TMK_PICTURE_WIDTH - TMK_PICTURE_SIDE - LEFT,
        .from = d->first_x,
        .to = forecast_end(d),
        .most = 1.12 * (has_forecast_limit(d) && capacity > most ? capacity : most)};
    d->frame.height = TMK_PICTURE_HEIGHT - BOTTOM - d->frame.top;
}

static void draw_forecast_axes(const struct forecast_drawing *d)
{
    char name[64];
    tmk_plot_frame_sizes(&d->frame);
    if (has_forecast_limit(d))
        tmk_plot_frame_limit(&d->frame, (double)d->f.capacity_bytes);
    snprintf(name, sizeof name, "%s since the start of the run", d->time.name);
    tmk_plot_frame_bottom(&d->frame, d->by_step ? "step" : name);
    tmk_plot_frame_numbers(&d->frame, MOST_TICS, d->by_step ? 1 : 0); /* there are no half steps */
}

static void draw_forecast_legend(const struct forecast_drawing *d, double top)
{
    const struct tmk_theme *theme = d->picture.theme;
    char size[TMK_AMOUNT_BYTES];
    struct tmk_legend_item items[5];
    uint32_t n = 0;
    bool is_above = (double)d->f.capacity_bytes > d->frame.most;
    char *limit = tmk_xformat("limit %s%s", tmk_size_text(d->f.capacity_bytes, size),
                              has_forecast_limit(d) ? ""
                              : is_above            ? ", above the picture"
                                                    : " for this process, not drawn");
    items[n++] =
        (struct tmk_legend_item){.text = d->by_step ? "peak of each step" : "in use on the device",
                                 .colour = tmk_palette_colour(0),
                                 .mark = TMK_LEGEND_DISC};
    if (d->lead > 0) {
        items[n++] = (struct tmk_legend_item){
            .text = "where it leads", .colour = theme->warning, .mark = TMK_LEGEND_DASHED};
        items[n++] =
            (struct tmk_legend_item){.text = "between these", .colour = pale(theme->warning)};
    }
    items[n++] = (struct tmk_legend_item){
        .text = limit, .colour = theme->capacity, .mark = TMK_LEGEND_DASHED};
    tmk_legend_draw(&(struct tmk_legend){.items = items,
                                         .n = n,
                                         .left = TMK_PICTURE_SIDE,
                                         .width = TMK_PICTURE_WIDTH - 2 * TMK_PICTURE_SIDE},
                    &d->picture, top);
    free(limit);
}

/* Draw a cross at the limit, and what it is beside it. */
static void draw_cross(const struct forecast_drawing *d, double at, const char *text)
{
    const struct tmk_plot_frame *f = &d->frame;
    const struct tmk_theme *theme = d->picture.theme;
    const struct tmk_paint paint = {.stroke = theme->warning, .width = 3};
    double x = tmk_plot_frame_x(f, at), y = tmk_plot_frame_y(f, (double)d->f.capacity_bytes);
    bool is_left = x > f->left + f->width / 2;
    tmk_canvas_line(d->picture.canvas, x - 6, y - 6, x + 6, y + 6, &paint);
    tmk_canvas_line(d->picture.canvas, x - 6, y + 6, x + 6, y - 6, &paint);
    tmk_canvas_text(
        d->picture.canvas, x + (is_left ? -12 : 12), y - 9, text,
        &(struct tmk_text_style){.colour = theme->warning,
                                 .halo = theme->background,
                                 .is_bold = true,
                                 .anchor = is_left ? TMK_ANCHOR_END : TMK_ANCHOR_START});
}

static void draw_marks(const struct forecast_drawing *d)
{
    double oom;
    if (find_oom_x(d, &oom)) {
        draw_cross(d, oom, "out of memory");
    } else if (d->lead > 0 && d->last_x + d->lead <= d->frame.to) {
        char text[48];
        snprintf(text, sizeof text, "step %.0f", d->last_x + d->lead);
        draw_cross(d, d->last_x + d->lead, d->by_step ? text : "full");
    }
}

static int draw_forecast(struct forecast_drawing *d)
{
    find_lead(d);
    tmk_picture_open(&d->picture, d->plot->path, &d->plot->style, TMK_PICTURE_WIDTH,
                     TMK_PICTURE_HEIGHT);
    char *title = make_forecast_title(d);
    double top = tmk_picture_title(&d->picture, title, NULL, d->warning);
    free(title);
    lay_out_forecast(d, top);
    draw_forecast_legend(d, top);
    draw_forecast_axes(d);
    if (d->lead > 0)
        draw_lead(d);
    draw_forecast_points(d);
    draw_marks(d);
    return tmk_picture_save(&d->picture);
}

/* Replay the process for the driver's samples and for the OOMs. */
static int read_forecast(const struct tmk_plot *plot, struct tmk_forecast_samples *samples,
                         struct tmk_ooms *ooms)
{
    struct tmk_error err = {0};
    struct tmk_replay rp;
    struct tmk_visitor visitors[] = {tmk_forecast_samples_visitor(samples), tmk_ooms_visitor(ooms)};
    int status = tmk_plot_replay(plot, visitors, TMK_N(visitors), &rp);
    if (status != 0)
        return status;
    tmk_replay_fini(&rp);
    return tmk_ooms_finish(ooms, &err) < 0 ? tmk_plot_failed(plot, &err) : 0;
}

int tmk_plot_forecast(const struct tmk_plot *plot)
{
    struct forecast_drawing d = {.plot = plot, .time = tmk_plot_time_unit(plot->p->end_ns)};
    struct tmk_forecast_samples *samples = NULL;
    struct tmk_ooms *ooms = NULL;
    int status = 0;
    if (tmk_forecast_samples_open(&samples) < 0 || tmk_ooms_open(plot->p, &ooms) < 0)
        status = tmk_plot_failed(plot, &(struct tmk_error){0});
    if (status == 0)
        status = read_forecast(plot, samples, ooms);
    if (status == 0 && (tmk_forecast_of(plot->p, plot->device, samples, &d.f) < 0 ||
                        tmk_steps_open(plot->p, plot->device, &d.steps) < 0))
        status = tmk_plot_failed(plot, &(struct tmk_error){0});
    if (status == 0) {
        d.samples = tmk_forecast_samples_get(samples, plot->device);
        status = choose_forecast_axis(&d);
    }
    if (status == 0)
        d.warning = tmk_plot_ooms_text(plot, ooms);
    if (status == 0)
        status = draw_forecast(&d);
    free(d.warning);
    tmk_ooms_close(ooms);
    tmk_steps_close(d.steps);
    tmk_forecast_samples_close(samples);
    return status;
}
