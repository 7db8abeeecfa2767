/* SPDX-License-Identifier: MIT */
/* tui/picture_parts.h - the parts of a picture, and the functions they share. */
#ifndef TMK_TUI_PICTURE_PARTS_H
#define TMK_TUI_PICTURE_PARTS_H

#include "tui/choice.h"
#include "tui/grid.h"
#include "tui/top_model.h"

/* A part of the grid. */
struct tmk_area {
    unsigned x, y, width, height;
};

enum { TMK_SHORT_BYTES = 16 };

/* Write "61.04G", "512.0M" or "-", at most 7 columns, to `buffer` of TMK_SHORT_BYTES; returns
 * it. */
const char *tmk_short_size(uint64_t bytes, char *buffer);
/* Draw a bar in at most `width` columns, filled by the share of `part` in `whole`. */
void tmk_picture_bar(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                     uint64_t part, uint64_t whole);
/* The ink for a share: good, and bad when it is nearly full. */
enum tmk_ink tmk_picture_level(uint64_t part, uint64_t whole);

/* Draw one line per device, and how many did not fit. */
void tmk_picture_devices(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m);
/* Draw graphs of devices, side by side. */
void tmk_picture_graphs(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                        const struct tmk_choice *v, struct tmk_hits *hits);
/* The lines that graphs need at least. */
enum { TMK_GRAPH_LEAST_LINES = 5 };
/* Draw the titles, and the rows of `order`. */
void tmk_picture_table(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                       const struct tmk_choice *v, const uint32_t *order, uint32_t n,
                       struct tmk_hits *hits);
void tmk_picture_details(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                         const struct tmk_choice *v, struct tmk_hits *hits);
void tmk_picture_help(struct tmk_grid *g, struct tmk_area area);

#endif
