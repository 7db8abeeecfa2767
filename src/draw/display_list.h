/* SPDX-License-Identifier: MIT */
/* draw/display_list.h - the list behind a canvas, for canvas.c and the writers only.
 *
 * Marks are in the order in which they are drawn. Points and texts lie in arrays of their own; a
 * mark has the number of its first one. Points are rounded to tenths, the finest that an SVG
 * prints. */
#ifndef TMK_DRAW_DISPLAY_LIST_H
#define TMK_DRAW_DISPLAY_LIST_H

#include "draw/canvas.h"

enum tmk_canvas_mark_kind {
    TMK_MARK_RECT, /* x, y, width, height */
    TMK_MARK_DISC, /* x, y, width: radius */
    TMK_MARK_PATH,
    TMK_MARK_TEXT,
    TMK_MARK_CLIP,
    TMK_MARK_GROUP,
    TMK_MARK_UNGROUP,
};

struct tmk_canvas_mark {
    enum tmk_canvas_mark_kind kind;
    bool is_closed;
    double x, y, width, height;
    struct tmk_paint paint;
    struct tmk_text_style style;
    uint64_t first_point, n_points;
    uint64_t text; /* byte in texts, ends with a zero byte: a text, or a group's title */
    uint64_t full; /* the text before it was shortened; equal to `text`: it was not */
};

struct tmk_canvas {
    double width, height;
    uint32_t background;
    int rc;
    struct tmk_canvas_mark *marks;
    uint64_t n_marks, mark_room;
    struct tmk_point *points;
    uint64_t n_points, point_room;
    char *texts;
    uint64_t n_texts, text_room; /* bytes */
};

/* The fonts that texts are shown in, the first that is there; letters that it lacks come from any
 * other. As a list of CSS, which Pango reads too. */
#define TMK_FONTS                                                                                  \
    "Arial,Liberation Sans,DejaVu Sans,Noto Sans CJK SC,PingFang SC,Microsoft YaHei,sans-serif"

#define TMK_HALO_WIDTH 3.0 /* of the stroke behind the letters */

/* The lengths of dashes and gaps. */
static inline const double *tmk_dash_lengths(enum tmk_dash dash)
{
    static const double lengths[][2] = {{0, 0}, {6, 4}, {1.5, 3}};
    return lengths[dash];
}

#endif
