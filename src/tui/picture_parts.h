/* SPDX-License-Identifier: MIT */
/* tui/picture_parts.h - the parts of a picture, and the functions they share. */
#ifndef TMK_TUI_PICTURE_PARTS_H
#define TMK_TUI_PICTURE_PARTS_H

#include "forecast/oom_forecast.h"
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

/* The bytes that no program can have any more: `used`, and those that the driver keeps for itself
 * and counts separately. Without the latter a full GPU would never look full. */
uint64_t tmk_picture_taken(const struct tmk_device_memory *memory, uint64_t used);
/* A device's name; short: without its maker. */
const char *tmk_picture_device_name(const struct tmk_top_device *d, bool is_short);

/* Draw one line per device under a line of titles, and how many did not fit. */
void tmk_picture_devices(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m);
/* Draw graphs side by side: of the selected line (NULL: there is none), then of devices. */
void tmk_picture_graphs(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                        const struct tmk_choice *v, const struct tmk_top_row *selected,
                        struct tmk_hits *hits);
/* The least of 1, 2, 3, 4, 6, 8, 12 ... KiB, MiB and so on that is not less than `bytes`: the upper
 * end of an axis. */
uint64_t tmk_picture_axis_end(uint64_t bytes);
/* Write "45s", "2m05s", "3h02m" or "12d04h" to `buffer` of TMK_SHORT_BYTES; returns it. */
const char *tmk_short_time(double seconds, char *buffer);
/* The lines that graphs need at least. */
enum { TMK_GRAPH_LEAST_LINES = 5 };
/* Draw the titles, and the lines. */
void tmk_picture_table(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                       const struct tmk_choice *v, const struct tmk_top_row *rows, uint32_t n,
                       struct tmk_hits *hits);
/* The ink of a forecast. */
enum tmk_ink tmk_picture_risk(enum tmk_risk risk);
/* Write a forecast for a column of that width into the caller's buffer of TMK_FORECAST_CELL_BYTES;
 * returns it. */
enum { TMK_FORECAST_CELL_BYTES = 96 };
const char *tmk_picture_forecast(const struct tmk_forecast *f, unsigned width, char *buffer);
void tmk_picture_details(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                         const struct tmk_choice *v, struct tmk_hits *hits);
void tmk_picture_help(struct tmk_grid *g, struct tmk_area area);
/* Draw the list of signals over what is there. */
void tmk_picture_signals(struct tmk_grid *g, struct tmk_area area, const struct tmk_choice *v);

#endif
