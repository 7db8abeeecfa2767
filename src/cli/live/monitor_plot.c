/* SPDX-License-Identifier: MIT */
/* cli/live/monitor_plot.c - see monitor_report.h.
 *
 * A line a device, and around it the band between least and most where one point stands for many
 * samples. Gaps stay open. Sizes of devices are dashed lines where they are near. */
#include "cli/live/monitor_report.h"

#include <stdlib.h>

#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_frame.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_picture.h"
#include "cli/plot/plot_style.h"
#include "device/device.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "monitor/history.h"
#include "monitor/sampler.h"
#include "monitor/status.h"

enum { MOST_POINTS = 900, LEFT = 62, BOTTOM = 52 /* points */ };

struct monitor_drawing {
    const struct tmk_monitor_status *status;
    struct tmk_picture picture;
    struct tmk_plot_frame frame;
    struct tmk_plot_unit time;
};

/* ---- data ---- */

/* Add the next entry to what a point stands for. */
static void extend_point(struct tmk_history_entry *point, const struct tmk_history_entry *e)
{
    point->end_ns = e->end_ns;
    point->last_bytes = e->last_bytes;
    point->min_bytes = e->min_bytes < point->min_bytes ? e->min_bytes : point->min_bytes;
    point->max_bytes = e->max_bytes > point->max_bytes ? e->max_bytes : point->max_bytes;
}

/* Draw the points as a line, and the band between least and most around it. */
static void draw_stretch(const struct monitor_drawing *d, const struct tmk_history_entry *points,
                         size_t n, uint32_t colour)
{
    struct tmk_point *line = tmk_xcalloc(n + 1, sizeof *line);
    struct tmk_point *band = tmk_xcalloc(2 * n + 1, sizeof *band);
    for (size_t i = 0; i < n; i++) {
        double x = tmk_plot_frame_x(&d->frame, (double)points[i].end_ns / d->time.size);
        line[i] = (struct tmk_point){x, tmk_plot_frame_y(&d->frame, (double)points[i].last_bytes)};
        band[i] = (struct tmk_point){x, tmk_plot_frame_y(&d->frame, (double)points[i].max_bytes)};
        band[2 * n - 1 - i] =
            (struct tmk_point){x, tmk_plot_frame_y(&d->frame, (double)points[i].min_bytes)};
    }
    tmk_canvas_path(d->picture.canvas, band, 2 * n, true,
                    &(struct tmk_paint){.fill = (colour & 0xffffff) | 0x40000000});
    if (n > 1)
        tmk_canvas_path(d->picture.canvas, line, n, false,
                        &(struct tmk_paint){.stroke = colour, .width = 2});
    else
        tmk_canvas_disc(d->picture.canvas, line[0].x, line[0].y, 2,
                        &(struct tmk_paint){.fill = colour});
    free(band);
    free(line);
}

/* Draw a history, several entries to a point where there are many; a gap stays open. */
static void draw_history(const struct monitor_drawing *d, const struct tmk_history *h,
                         uint32_t colour)
{
    uint64_t at_once = h->n / MOST_POINTS + 1, in_point = 0;
    struct tmk_history_entry *points = tmk_xcalloc(h->n + 1, sizeof *points);
    size_t n = 0;
    for (uint64_t i = 0; i < h->n; i++) {
        const struct tmk_history_entry *e = &h->entries[i];
        if (e->after_gap && n > 0) {
            draw_stretch(d, points, n, colour);
            n = 0;
        }
        if (n == 0 || in_point == at_once) {
            points[n++] = *e;
            in_point = 1;
        } else {
            extend_point(&points[n - 1], e);
            in_point++;
        }
    }
    if (n > 0)
        draw_stretch(d, points, n, colour);
    free(points);
}

/* Returns the height of the picture: the size of the largest device when its use comes near it,
 * else somewhat more than was used. */
static double most_bytes(const struct tmk_sampler *s)
{
    double most = 0, total = 0;
    for (unsigned i = 0; i < tmk_sampler_n_devices(s); i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(s, i);
        most = (double)u->max_bytes > most ? (double)u->max_bytes : most;
        total = (double)u->now.total_bytes > total ? (double)u->now.total_bytes : total;
    }
    double height = most > total / 3 ? total * 1.1 : most * 1.4;
    return height > 0 ? height : 1;
}

/* ---- drawing ---- */

/* Draw the sizes of devices as lines, each size once. */
static void draw_device_sizes(const struct monitor_drawing *d)
{
    const struct tmk_sampler *s = d->status->sampler;
    for (unsigned i = 0; i < tmk_sampler_n_devices(s); i++) {
        uint64_t total = tmk_sampler_device(s, i)->now.total_bytes;
        char size[TMK_AMOUNT_BYTES];
        bool is_first = total != 0 && (double)total <= d->frame.most;
        for (unsigned k = 0; k < i; k++)
            is_first = is_first && tmk_sampler_device(s, k)->now.total_bytes != total;
        if (!is_first)
            continue;
        char *text = tmk_xformat("size %s", tmk_size_text(total, size));
        tmk_plot_frame_limit(&d->frame, (double)total);
        tmk_canvas_text(d->picture.canvas, d->frame.left + d->frame.width - 4,
                        tmk_plot_frame_y(&d->frame, (double)total) - 6, text,
                        &(struct tmk_text_style){.colour = d->picture.theme->capacity,
                                                 .halo = d->picture.theme->background,
                                                 .anchor = TMK_ANCHOR_END});
        free(text);
    }
}

/* List the devices with samples; the caller's, and the texts too. */
static struct tmk_legend_item *make_devices(const struct tmk_sampler *s, uint32_t *ret_n)
{
    unsigned n_devices = tmk_sampler_n_devices(s);
    struct tmk_legend_item *items = tmk_xcalloc((size_t)n_devices + 1, sizeof *items);
    for (unsigned i = 0; i < n_devices; i++) {
        const struct tmk_watched_device *u = tmk_sampler_device(s, i);
        char most[TMK_AMOUNT_BYTES];
        if (u->history.n == 0)
            continue;
        items[(*ret_n)++] = (struct tmk_legend_item){
            .text = tmk_xformat("%s%s%s, at most %s", u->label, u->device->name[0] ? "  " : "",
                                u->device->name, tmk_size_text(u->max_bytes, most)),
            .colour = tmk_palette_colour(i),
            .mark = TMK_LEGEND_LINE};
    }
    return items;
}

static void draw_monitor_axes(const struct monitor_drawing *d)
{
    char iso[TMK_ISO_BYTES];
    char *name = tmk_xformat("%s since %s", d->time.name, tmk_iso_text(d->status->started, iso));
    tmk_plot_frame_sizes(&d->frame);
    tmk_plot_frame_bottom(&d->frame, name);
    tmk_plot_frame_numbers(&d->frame, 10, 0);
    free(name);
}

static void draw_monitor(struct monitor_drawing *d)
{
    const struct tmk_sampler *s = d->status->sampler;
    uint64_t elapsed = d->status->elapsed_ns ? d->status->elapsed_ns : 1;
    struct tmk_legend legend = {.left = TMK_PICTURE_SIDE,
                                .width = TMK_PICTURE_WIDTH - 2 * TMK_PICTURE_SIDE};
    struct tmk_legend_item *items = make_devices(s, &legend.n);
    legend.items = items;
    d->time = tmk_plot_time_unit(elapsed);
    double top = tmk_picture_title(&d->picture, "Device memory in use", NULL, NULL);
    d->frame = (struct tmk_plot_frame){.picture = &d->picture,
                                       .left = LEFT,
                                       .top = top + tmk_legend_rows(&legend) * TMK_LEGEND_ROW + 10,
                                       .width = TMK_PICTURE_WIDTH - TMK_PICTURE_SIDE - LEFT,
                                       .to = (double)elapsed / d->time.size,
                                       .most = most_bytes(s)};
    d->frame.height = d->picture.height - BOTTOM - d->frame.top;
    draw_monitor_axes(d);
    tmk_legend_draw(&legend, &d->picture, top);
    for (unsigned i = 0; i < tmk_sampler_n_devices(s); i++)
        draw_history(d, &tmk_sampler_device(s, i)->history, tmk_palette_colour(i));
    draw_device_sizes(d);
    for (uint32_t i = 0; i < legend.n; i++)
        free((char *)items[i].text);
    free(items);
}

int tmk_monitor_plot(const struct tmk_monitor_status *status, const char *path)
{
    struct monitor_drawing d = {.status = status};
    uint64_t n = 0;
    unsigned n_devices = tmk_sampler_n_devices(status->sampler);
    for (unsigned i = 0; i < n_devices; i++)
        n += tmk_sampler_device(status->sampler, i)->n_samples;
    if (n == 0) {
        tmk_say("no device answered: there is nothing to draw in %s", path);
        return TMK_EXIT_FINDING;
    }
    tmk_picture_open(&d.picture, path, &(struct tmk_plot_style){0}, TMK_PICTURE_WIDTH,
                     TMK_PICTURE_HEIGHT + n_devices / 4 * TMK_LEGEND_ROW);
    draw_monitor(&d);
    int rc = tmk_picture_save(&d.picture);
    if (rc == 0)
        tmk_say("picture written to %s", path);
    return rc;
}
