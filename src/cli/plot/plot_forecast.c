/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_forecast.c - the forecast of a process: the peak of each step, the line that the
 * forecast follows (passes/forecast.h) with its bounds, and the capacity.
 *
 * A process without steps, or a GPU that other processes fill, is forecast by time, from the
 * driver's samples; then these are drawn. If use does not grow there is no line, and the picture
 * says so. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/front/target.h"
#include "cli/output/palette.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "passes/forecast_samples.h"
#include "passes/steps.h"
#include "trace/layout.h"
#include "trace/replay.h"

enum { MOST_POINTS = 2000, MOST_TICS = 14 };

struct forecast_drawing {
    const struct tmk_plot *plot;
    struct tmk_forecast f;
    const struct tmk_device_samples *samples; /* NULL: none */
    struct tmk_steps *steps;
    bool by_step; /* the x axis: by step or by time */
    struct tmk_plot_unit size, time;
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

/* Write the points. If there are more than can be seen, the maximum of neighbours represents
 * them. */
static void put_forecast_points(struct forecast_drawing *d, FILE *out)
{
    uint64_t n = n_points(d), at_once = n / MOST_POINTS + 1;
    fputs("$d << EOD\n", out);
    for (uint64_t i = 0; i < n; i += at_once) {
        uint64_t best = i;
        for (uint64_t k = i; k < n && k < i + at_once; k++)
            best = bytes_of(d, k) > bytes_of(d, best) ? k : best;
        fprintf(out, "%.9g %.7g\n", forecast_x(d, best), bytes_of(d, best) / d->size.size);
    }
    fputs("EOD\n", out);
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

static void put_lead(const struct forecast_drawing *d, FILE *out)
{
    double top = (double)d->f.capacity_bytes / d->size.size, y = d->last_y / d->size.size;
    fprintf(out, "$f << EOD\n%.9g %.7g\n%.9g %.7g\n%.9g %.7g\nEOD\n", d->last_x, y,
            d->last_x + d->low, top, d->last_x + d->high, top);
    fprintf(out, "$l << EOD\n%.9g %.7g\n%.9g %.7g\nEOD\n", d->last_x, y, d->last_x + d->lead, top);
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

/* ---- the script ---- */

static void put_forecast_title(const struct forecast_drawing *d, struct tmk_gnuplot *g)
{
    const struct tmk_forecast *f = &d->f;
    char slope[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    char *growth =
        tmk_xformat("%s, +%s a %s", tmk_growth_cause_name(f->cause),
                    tmk_size_text(tmk_size_whole(f->slope), slope), f->by_step ? "step" : "second");
    for (char *at = growth; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    char *title, step[TMK_STEP_TEXT_BYTES];
    if (f->has_run_out)
        title = tmk_plot_title(d->plot, "ran out of memory%s",
                               tmk_step_text(d->plot->p, f->oom_step, " ", step));
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
    tmk_gnuplot_title(g, title);
    free(title);
}

static void put_forecast_axes(const struct forecast_drawing *d, FILE *out,
                              const struct tmk_theme *theme)
{
    char size[TMK_AMOUNT_BYTES], text[TMK_AMOUNT_BYTES + 16];
    double capacity = (double)d->f.capacity_bytes, most = (double)d->f.highest_bytes;
    most = most > d->last_y ? most : d->last_y;
    bool has_limit = d->lead > 0 || d->f.has_oom || capacity < 3 * most;
    double height = 1.1 * (has_limit && capacity > most ? capacity : most) / d->size.size;
    fprintf(out, "set ylabel '%s'\nset yrange [0:%.7g]\nset xrange [%.9g:%.9g]\n", d->size.name,
            height, d->first_x, forecast_end(d));
    double tic = tmk_plot_tic(forecast_end(d) - d->first_x, MOST_TICS);
    if (d->by_step) /* there are no half steps */
        fprintf(out, "set xlabel 'step'\nset xtics %.9g\n", tic > 1 ? tic : 1);
    else
        fprintf(out, "set xlabel '%s since the start of the run'\n", d->time.name);
    snprintf(text, sizeof text, "limit %s", tmk_size_text(d->f.capacity_bytes, size));
    if (has_limit)
        tmk_plot_limit(out, theme, capacity / d->size.size, text);
    else
        fprintf(out, "set label '%s' at graph 1, screen 0 right offset 0,0.8 textcolor rgb '%s'\n",
                text, theme->faint);
}

static void put_mark(const struct forecast_drawing *d, FILE *out, const struct tmk_theme *theme)
{
    double at = d->last_x + d->lead, top = (double)d->f.capacity_bytes / d->size.size;
    if (at > forecast_end(d))
        return;
    fprintf(out,
            "set label '' at first %.9g, first %.7g point pointtype 2 pointsize 2 linewidth 3 "
            "linecolor rgb '%s' front\n",
            at, top, theme->warning);
    if (d->by_step)
        fprintf(out,
                "set label 'step %.0f' at first %.9g, first %.7g center front boxed offset 0,-1.2 "
                "textcolor rgb '%s'\n",
                at, at, top, theme->warning);
}

static void mark_oom_of_forecast(const struct forecast_drawing *d, FILE *out,
                                 const struct tmk_theme *theme)
{
    double x, top = (double)d->f.capacity_bytes / d->size.size;
    if (!find_oom_x(d, &x))
        return;
    fprintf(out,
            "set label 'out of memory' at first %.9g, first %.7g point pointtype 2 pointsize 2 "
            "linewidth 3 linecolor rgb '%s' right front offset -1,-1 textcolor rgb '%s'\n",
            x, top, theme->warning, theme->warning);
}

static int draw_forecast(struct forecast_drawing *d)
{
    struct tmk_gnuplot *g = NULL;
    int status = tmk_gnuplot_open(d->plot->path, &d->plot->style, TMK_PICTURE_HEIGHT, &g);
    if (status != 0)
        return status;
    FILE *out = tmk_gnuplot_script(g);
    const struct tmk_theme *theme = tmk_gnuplot_theme(g);
    const char *colour = tmk_palette_colour(0);
    find_lead(d);
    double most = d->lead > 0 ? (double)d->f.capacity_bytes : (double)d->f.highest_bytes;
    d->size = tmk_plot_size_unit(most > d->last_y ? most : d->last_y);
    put_forecast_points(d, out);
    put_forecast_title(d, g);
    put_forecast_axes(d, out, theme);
    mark_oom_of_forecast(d, out, theme);
    if (d->lead > 0) {
        put_lead(d, out);
        put_mark(d, out, theme);
        fprintf(out,
                "plot $f with filledcurves closed linecolor rgb '%s' title 'between these', $l "
                "with lines linewidth 2 dashtype 2 linecolor rgb '%s' title 'where it leads', ",
                theme->warning, theme->warning);
    } else {
        fputs("plot ", out);
    }
    fprintf(
        out,
        "$d with linespoints pointtype 7 pointsize %s linewidth 2 linecolor rgb '%s' title '%s'\n",
        n_points(d) > 120 ? "0.2" : "0.6", colour,
        d->by_step ? "peak of each step" : "in use on the device");
    return tmk_gnuplot_close(g);
}

static int read_samples(const struct tmk_plot *plot, struct tmk_forecast_samples **ret)
{
    struct tmk_replay rp;
    if (tmk_forecast_samples_open(ret) < 0)
        return tmk_plot_failed(plot, &(struct tmk_error){0});
    struct tmk_visitor visitor = tmk_forecast_samples_visitor(*ret);
    int status = tmk_plot_replay(plot, &visitor, 1, &rp);
    if (status == 0)
        tmk_replay_fini(&rp);
    return status;
}

int tmk_plot_forecast(const struct tmk_plot *plot)
{
    struct forecast_drawing d = {.plot = plot, .time = tmk_plot_time_unit(plot->p->end_ns)};
    struct tmk_forecast_samples *samples = NULL;
    int status = read_samples(plot, &samples);
    if (status == 0 && (tmk_forecast_of(plot->p, plot->device, samples, &d.f) < 0 ||
                        tmk_steps_open(plot->p, plot->device, &d.steps) < 0))
        status = tmk_plot_failed(plot, &(struct tmk_error){0});
    if (status == 0) {
        d.samples = tmk_forecast_samples_get(samples, plot->device);
        status = choose_forecast_axis(&d);
    }
    if (status == 0)
        status = draw_forecast(&d);
    tmk_steps_close(d.steps);
    tmk_forecast_samples_close(samples);
    return status;
}
