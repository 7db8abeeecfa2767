/* SPDX-License-Identifier: MIT */
/* tui/picture.h - the screen of `top` as a function: model, choices and size in, a grid out.
 *
 * A picture asks nothing and keeps nothing, so it is tested by comparing it with a file. Any size
 * will do: things without room are left out, the least important first. */
#ifndef TMK_TUI_PICTURE_H
#define TMK_TUI_PICTURE_H

#include "tui/choice.h"
#include "tui/grid.h"

/* Draw on a blank grid, and return where things are. 0 or TMK_ENOMEM. */
int tmk_picture_draw(struct tmk_grid *g, const struct tmk_top_model *m, const struct tmk_choice *v,
                     struct tmk_hits *ret_hits);

/* Draw all devices and processes on a page as high as needed, without graphs and keys, for a file.
 * 0 and the caller's grid, or TMK_ENOMEM. */
int tmk_picture_page(struct tmk_grid *ret_grid, unsigned width, const struct tmk_top_model *m,
                     const struct tmk_choice *v);

#endif
