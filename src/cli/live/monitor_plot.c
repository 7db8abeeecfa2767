/* SPDX-License-Identifier: MIT */
/* cli/live/monitor_plot.c - see monitor_report.h.
 *
 * A line a device, and around it the band between least and most where one point stands for many
 * samples. Gaps stay open. Sizes of devices are dashed lines where they are near. */
#include "cli/live/monitor_report.h"

#include "cli/output/palette.h"
#include "cli/output/say.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot_style.h"
#include "device/device.h"
#include "kit/amount.h"
#include "monitor/history.h"
#include "monitor/sampler.h"
#include "monitor/status.h"

enum { MOST_POINTS = 1500 };

#define GIB 1073741824.0

struct axis {
    double unit_s;
    const char *name;
};

static struct axis time_axis(uint64_t elapsed_ns)
{
    double s = (double)elapsed_ns / 1e9;
    if (s <= 300)
        return (struct axis){1, "seconds"};
    if (s <= 3 * 3600)
        return (struct axis){60, "minutes"};
    return (struct axis){3600, "hours"};
}

/* ---- data ---- */

static void plot_point(FILE *out, const struct tmk_history_entry *e, double unit_s)
{
    fprintf(out, "%.4f %.6f %.6f %.6f\n", (double)e->end_ns / 1e9 / unit_s,
            (double)e->min_bytes / GIB, (double)e->max_bytes / GIB, (double)e->last_bytes / GIB);
}

/* Write the entries of a history, several to a point where there are many; an empty line where a
 * gap is. */
static void put_history(FILE *out, const struct tmk_history *h, double unit_s)
{
    uint64_t at_once = h->n / MOST_POINTS + 1, n = 0;
    struct tmk_history_entry point = {0};
    for (uint64_t i = 0; i < h->n; i++) {
        const struct tmk_history_entry *e = &h->entries[i];
        if (n == at_once || e->after_gap) {
            plot_point(out, &point, unit_s);
            n = 0;
        }
        if (e->after_gap)
            fputc('\n', out);
        if (n++ == 0) {
            point = *e;
            continue;
        }
        point.end_ns = e->end_ns;
        point.last_bytes = e->last_bytes;
        point.min_bytes = e->min_bytes < point.min_bytes ? e->min_bytes : point.min_bytes;
        point.max_bytes = e->max_bytes > point.max_bytes ? e->max_bytes : point.max_bytes;
    }
    if (n)
        plot_point(out, &point, unit_s);
}

/* Returns the height of the picture: the size of the largest device when its use comes near it,
 * else somewhat more than was used. */
static double height_gib(const struct tmk_sampler *s)
{
    double most = 0, total = 0;
    for (unsigned i = 0; i < tmk_sampler_n_devices(s); i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(s, i);
        most = (double)u->max_bytes > most ? (double)u->max_bytes : most;
        total = (double)u->now.total_bytes > total ? (double)u->now.total_bytes : total;
    }
    double height = most > total / 3 ? total * 1.04 : most * 1.4;
    return height > 0 ? height / GIB : 1;
}

/* ---- the script ---- */

static void put_monitor_title(FILE *out, const struct tmk_watched_device *u)
{
    char text[TMK_DEVICE_TEXT_BYTES + 64], most[TMK_AMOUNT_BYTES];
    snprintf(text, sizeof text, "%s%s%s, at most %s", u->label, u->device->name[0] ? "  " : "",
             u->device->name, tmk_size_text(u->max_bytes, most));
    tmk_gnuplot_text(out, text);
}

static void put_device_curves(FILE *out, const struct tmk_sampler *s)
{
    const char *between = "plot ";
    for (unsigned i = 0; i < tmk_sampler_n_devices(s); i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(s, i);
        const char *colour = tmk_palette_colour(i);
        if (u->history.n == 0)
            continue;
        fprintf(out,
                "%s$d%u using 1:2:3 with filledcurves linecolor rgb '%s' notitle, "
                "$d%u using 1:4 with lines linewidth 2 linecolor rgb '%s' title ",
                between, i, colour, i, colour);
        put_monitor_title(out, u);
        between = ", ";
    }
    fputc('\n', out);
}

/* Returns whether it is the first of the devices of its size. */
static bool is_first_of_size(const struct tmk_sampler *s, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (tmk_sampler_device(s, k)->now.total_bytes == tmk_sampler_device(s, i)->now.total_bytes)
            return false;
    return true;
}

static void put_device_sizes(FILE *out, const struct tmk_theme *theme, const struct tmk_sampler *s,
                             double height)
{
    for (unsigned i = 0; i < tmk_sampler_n_devices(s); i++) {
        uint64_t total = tmk_sampler_device(s, i)->now.total_bytes;
        double at = (double)total / GIB;
        char text[TMK_AMOUNT_BYTES];
        if (total == 0 || at > height || !is_first_of_size(s, i))
            continue;
        fprintf(out,
                "set arrow from graph 0, first %.6f to graph 1, first %.6f nohead dashtype 2 "
                "linewidth 1 linecolor rgb '%s'\n"
                "set label 'size %s' at graph 1, first %.6f right offset 0,-0.7 textcolor rgb "
                "'%s'\n",
                at, at, theme->axis, tmk_size_text(total, text), at, theme->faint);
    }
}

static void put_script(struct tmk_gnuplot *g, const struct tmk_monitor_status *st)
{
    FILE *out = tmk_gnuplot_script(g);
    char iso[TMK_ISO_BYTES];
    struct axis axis = time_axis(st->elapsed_ns);
    for (unsigned i = 0; i < tmk_sampler_n_devices(st->sampler); i++) {
        fprintf(out, "$d%u << EOD\n", i);
        put_history(out, &tmk_sampler_device(st->sampler, i)->history, axis.unit_s);
        fputs("EOD\n", out);
    }
    double height = height_gib(st->sampler);
    tmk_gnuplot_title(g, "Device memory");
    fprintf(out,
            "set xlabel '%s since %s'\n"
            "set ylabel 'GiB used'\n"
            "set xrange [0:%.4f]\nset yrange [0:%.6f]\n",
            axis.name, tmk_iso_text(st->started, iso), (double)st->elapsed_ns / 1e9 / axis.unit_s,
            height);
    put_device_sizes(out, tmk_gnuplot_theme(g), st->sampler, height);
    put_device_curves(out, st->sampler);
}

int tmk_monitor_plot(const struct tmk_monitor_status *status, const char *path)
{
    struct tmk_gnuplot *g = NULL;
    uint64_t n = 0;
    for (unsigned i = 0; i < tmk_sampler_n_devices(status->sampler); i++)
        n += tmk_sampler_device(status->sampler, i)->n_samples;
    if (n == 0) {
        tmk_say("no device answered: there is nothing to draw in %s", path);
        return TMK_EXIT_FINDING;
    }
    int rc = tmk_gnuplot_open(path, &(struct tmk_plot_style){0}, TMK_PICTURE_HEIGHT, &g);
    if (rc != 0)
        return rc;
    put_script(g, status);
    rc = tmk_gnuplot_close(g);
    if (rc == 0)
        tmk_say("picture written to %s", path);
    return rc;
}
