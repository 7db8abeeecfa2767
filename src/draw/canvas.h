/* SPDX-License-Identifier: MIT */
/* draw/canvas.h - a picture as a list of shapes and texts, which layout code appends to and a
 * writer (svg_writer.h, cairo_writer.h) prints. All formats are printed from the same list, so they
 * show the same picture.
 *
 *     struct tmk_canvas *c = NULL;
 *     if (tmk_canvas_open(1000, 500, theme->background, &c) < 0) ...
 *     tmk_canvas_group(c, "activation: 8.1 GiB");
 *     tmk_canvas_path(c, points, n, true, &(struct tmk_paint){.fill = colour});
 *     tmk_canvas_ungroup(c);
 *     tmk_canvas_text(c, 10, 20, "GiB", &(struct tmk_text_style){.size = 12, .colour = grey});
 *     if (tmk_canvas_error(c) < 0) ... it ran out of memory on the way
 *     c = tmk_canvas_close(c);
 *
 * Lengths are in points, y grows downwards, a text stands on its y. Colours are 0xaarrggbb; 0 draws
 * nothing. Appending does not fail: the first failure is kept, as a stdio stream does.
 *
 * Layout must know how wide a text is before anything draws it. tmk_text_width() has a table of
 * DejaVu Sans, which is wider than Arial, Helvetica and Liberation Sans: room that is enough for it
 * is enough for them. */
#ifndef TMK_DRAW_CANVAS_H
#define TMK_DRAW_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_canvas;

struct tmk_point {
    double x, y;
};

enum tmk_dash { TMK_DASH_NONE, TMK_DASH_LONG, TMK_DASH_DOTS };

struct tmk_paint {
    uint32_t fill, stroke;
    double width; /* of the stroke; 0: 1 */
    enum tmk_dash dash;
};

enum tmk_anchor { TMK_ANCHOR_START, TMK_ANCHOR_MIDDLE, TMK_ANCHOR_END };

struct tmk_text_style {
    double size; /* 0: 12 */
    uint32_t colour;
    uint32_t halo; /* a rim around the letters, for texts on data; 0: none */
    enum tmk_anchor anchor;
    bool is_bold;
    double angle; /* degrees, against the clock */
    double most;  /* a wider text is shortened in its middle; 0: it is not */
};

int tmk_canvas_open(double width, double height, uint32_t background, struct tmk_canvas **ret);
struct tmk_canvas *tmk_canvas_close(struct tmk_canvas *c);
int tmk_canvas_error(const struct tmk_canvas *c); /* 0 or TMK_ENOMEM */

void tmk_canvas_rect(struct tmk_canvas *c, double x, double y, double width, double height,
                     const struct tmk_paint *paint);
void tmk_canvas_line(struct tmk_canvas *c, double x1, double y1, double x2, double y2,
                     const struct tmk_paint *paint);
/* Points that lie on the straight line between their neighbours, rounded to a tenth of a point, are
 * left out. */
void tmk_canvas_path(struct tmk_canvas *c, const struct tmk_point *points, size_t n, bool is_closed,
                     const struct tmk_paint *paint);
void tmk_canvas_disc(struct tmk_canvas *c, double x, double y, double radius,
                     const struct tmk_paint *paint);
/* Bytes that are not UTF-8 and control characters are shown as U+FFFD. */
void tmk_canvas_text(struct tmk_canvas *c, double x, double y, const char *text,
                     const struct tmk_text_style *style);
/* What follows, until ungroup, is cut to a rectangle, or has a title: the text that a browser shows
 * when the mouse points at it. Groups nest. */
void tmk_canvas_clip(struct tmk_canvas *c, double x, double y, double width, double height);
void tmk_canvas_group(struct tmk_canvas *c, const char *title);
void tmk_canvas_ungroup(struct tmk_canvas *c);

/* The most that a text of that size takes. */
double tmk_text_width(const char *text, double size, bool is_bold);

#endif
