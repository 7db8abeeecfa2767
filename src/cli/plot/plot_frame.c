/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_frame.c - see plot_frame.h. */
#include "cli/plot/plot_frame.h"

#include <math.h>
#include <stdio.h>

#include "cli/plot/plot.h"
#include "draw/canvas.h"
#include "draw/palette.h"

enum {
    SIZE_TIC = 62 /* points between sizes, at least */,
    BESIDE = 7,
    BELOW = 17,
    NAME = 36,
    SCALE_PARTS = 64
};

double tmk_plot_frame_x(const struct tmk_plot_frame *f, double x)
{
    double span = f->to > f->from ? f->to - f->from : 1;
    return f->left + (x - f->from) / span * f->width;
}

double tmk_plot_frame_y(const struct tmk_plot_frame *f, double bytes)
{
    return f->top + f->height - bytes / (f->most > 0 ? f->most : 1) * f->height;
}

/* Draw the sizes left of the frame, with or without the grid. */
static void draw_sizes(const struct tmk_plot_frame *f, bool has_grid)
{
    const struct tmk_theme *theme = f->picture->theme;
    struct tmk_canvas *c = f->picture->canvas;
    struct tmk_plot_unit unit = tmk_plot_size_unit(f->most);
    double tic = tmk_plot_tic(f->most / unit.size, (unsigned)(f->height / SIZE_TIC) + 1);
    const struct tmk_text_style style = {.colour = theme->faint, .anchor = TMK_ANCHOR_END};
    double top = f->top;
    for (unsigned i = 0; i * tic * unit.size <= f->most * (1 + 1e-9); i++) {
        char text[32];
        double y = tmk_plot_frame_y(f, i * tic * unit.size);
        snprintf(text, sizeof text, "%.9g", i * tic);
        if (has_grid)
            tmk_canvas_line(c, f->left, y, f->left + f->width, y,
                            &(struct tmk_paint){.stroke = i ? theme->grid : theme->axis});
        tmk_canvas_text(c, f->left - BESIDE, y + 4, text, &style);
        top = y;
    }
    /* Above the highest number, and never on it. */
    tmk_canvas_text(c, f->left - BESIDE, (top - 12 < f->top + 4 ? top - 12 : f->top + 4), unit.name,
                    &style);
}

void tmk_plot_frame_sizes(const struct tmk_plot_frame *f)
{
    draw_sizes(f, true);
}

void tmk_plot_frame_bottom(const struct tmk_plot_frame *f, const char *name)
{
    const struct tmk_theme *theme = f->picture->theme;
    double y = f->top + f->height;
    tmk_canvas_line(f->picture->canvas, f->left, y, f->left + f->width, y,
                    &(struct tmk_paint){.stroke = theme->axis});
    tmk_canvas_text(f->picture->canvas, f->left + f->width / 2, y + NAME, name,
                    &(struct tmk_text_style){.colour = theme->faint,
                                             .anchor = TMK_ANCHOR_MIDDLE,
                                             .most = f->width + 2 * BESIDE});
}

void tmk_plot_frame_tic(const struct tmk_plot_frame *f, double x, const char *text)
{
    const struct tmk_theme *theme = f->picture->theme;
    double at = tmk_plot_frame_x(f, x), y = f->top + f->height;
    tmk_canvas_line(f->picture->canvas, at, y, at, y + 4,
                    &(struct tmk_paint){.stroke = theme->axis});
    tmk_canvas_text(f->picture->canvas, at, y + BELOW, text,
                    &(struct tmk_text_style){.colour = theme->faint, .anchor = TMK_ANCHOR_MIDDLE});
}

void tmk_plot_frame_numbers(const struct tmk_plot_frame *f, unsigned n, double least)
{
    double tic = tmk_plot_tic(f->to - f->from, n);
    tic = tic < least ? least : tic;
    double first = ceil(f->from / tic - 1e-9), last = floor(f->to / tic + 1e-9);
    for (unsigned i = 0; i <= last - first; i++) { /* adding 1 to 2^60 changes nothing */
        char text[32];
        double x = (first + i) * tic + 0.0; /* no -0 */
        snprintf(text, sizeof text, "%.9g", x);
        tmk_plot_frame_tic(f, x, text);
    }
}

void tmk_plot_frame_limit(const struct tmk_plot_frame *f, double bytes)
{
    double y = tmk_plot_frame_y(f, bytes);
    if (bytes <= f->most)
        tmk_canvas_line(f->picture->canvas, f->left, y, f->left + f->width, y,
                        &(struct tmk_paint){.stroke = f->picture->theme->capacity,
                                            .width = 1.5,
                                            .dash = TMK_DASH_LONG});
}

void tmk_plot_frame_scale(const struct tmk_plot_frame *f)
{
    const struct tmk_theme *theme = f->picture->theme;
    for (unsigned i = 0; i < SCALE_PARTS; i++) {
        double top = f->top + f->height * i / SCALE_PARTS;
        double end = f->top + f->height * (i + 1) / SCALE_PARTS;
        uint32_t colour = tmk_palette_ramp(theme, 1 - (i + 0.5) / SCALE_PARTS);
        tmk_canvas_rect(f->picture->canvas, f->left, top, f->width, end - top,
                        &(struct tmk_paint){.fill = colour});
    }
    draw_sizes(f, false);
}
