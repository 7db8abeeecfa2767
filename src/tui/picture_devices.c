/* SPDX-License-Identifier: MIT */
/* tui/picture_devices.c - draw devices: a line each with a bar, and graphs of their use so far. */
#include <inttypes.h>

#include "device/device.h"
#include "kit/amount.h"
#include "tui/choice.h"
#include "tui/grid.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

enum {
    LABEL_WIDTH = 5,
    NAME_WIDTH = 24,
    FIGURES_WIDTH = 26, /* "  61.04 /  80.00 GiB  77 %" */
    NAMED_FROM = 70,    /* columns of the screen from which on names are shown */
    PANEL_LEAST_WIDTH = 36,
    PANEL_LEAST_LINES = 5,
    PANEL_GAP = 2,
};

static double gib(uint64_t bytes)
{
    return (double)bytes / (double)(1 << 30);
}

/* The bytes that no program can have any more: used ones, and those that the driver keeps for
 * itself and counts separately. Without the latter a full GPU would never look full. */
static uint64_t taken_bytes(const struct tmk_device_memory *memory, uint64_t used)
{
    bool has_reserved = memory->reserved_bytes != TMK_BYTES_UNKNOWN;
    uint64_t taken = used + (has_reserved ? memory->reserved_bytes : 0);
    return taken < memory->total_bytes ? taken : memory->total_bytes;
}

/* ---- lines ---- */

static void draw_figures(struct tmk_grid *g, unsigned x, unsigned y, unsigned width,
                         const struct tmk_device_memory *memory)
{
    char percent[TMK_AMOUNT_BYTES], text[64];
    tmk_percent_text(taken_bytes(memory, memory->used_bytes), memory->total_bytes, percent);
    if (width >= FIGURES_WIDTH)
        snprintf(text, sizeof text, "%7.2f / %6.2f GiB %5s", gib(memory->used_bytes),
                 gib(memory->total_bytes), percent);
    else
        snprintf(text, sizeof text, "%.2fG %5s", gib(memory->used_bytes), percent);
    tmk_grid_right(g, x, y, width, TMK_INK_PLAIN, text);
}

static bool has_device_memory(const struct tmk_top_device *d)
{
    return d->memory.total_bytes != TMK_BYTES_UNKNOWN && d->memory.used_bytes != TMK_BYTES_UNKNOWN;
}

static void draw_device(struct tmk_grid *g, struct tmk_area line, const struct tmk_top_device *d)
{
    unsigned x = line.x + 1, end = line.x + line.width - 1;
    tmk_grid_put(g, x, line.y, LABEL_WIDTH - 1, TMK_INK_STRONG, d->label);
    x += LABEL_WIDTH;
    if (line.width >= NAMED_FROM) {
        unsigned name = line.width >= 120 ? NAME_WIDTH + 8 : NAME_WIDTH;
        tmk_grid_put(g, x, line.y, name, TMK_INK_PLAIN,
                     d->about.kind == TMK_DEVICE_HOST ? "memory of the host" : d->about.name);
        x += name + 1;
    }
    if (end <= x)
        return;
    if (!has_device_memory(d)) {
        const char *why = d->reason[0] ? d->reason : "uses the memory of the host";
        tmk_grid_putf(g, x, line.y, end - x, d->reason[0] ? TMK_INK_WARN : TMK_INK_DIM, "- %s",
                      why);
        return;
    }
    unsigned figures = end - x >= FIGURES_WIDTH + 4 ? FIGURES_WIDTH : 13;
    uint64_t taken = taken_bytes(&d->memory, d->memory.used_bytes), total = d->memory.total_bytes;
    if (end - x > figures + 2)
        tmk_picture_bar(g, x, line.y, end - x - figures - 1, tmk_picture_level(taken, total), taken,
                        total);
    else
        figures = end - x;
    draw_figures(g, end - figures, line.y, figures, &d->memory);
}

void tmk_picture_devices(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m)
{
    bool fits = m->n_devices <= area.height;
    unsigned n = fits ? m->n_devices : area.height > 0 ? area.height - 1 : 0;
    for (unsigned i = 0; i < n; i++) {
        struct tmk_area line = {area.x, area.y + i, area.width, 1};
        draw_device(g, line, &m->devices[i]);
    }
    if (!fits && area.height > 0)
        tmk_grid_putf(g, area.x + 1, area.y + n, area.width - 1, TMK_INK_DIM,
                      "and %u more: a taller window, or: tidemark top --once --json",
                      m->n_devices - n);
}

/* ---- graphs ---- */

/* How many eighths of a character a sample fills in `height` lines. */
static unsigned eighths_of(const struct tmk_top_device *d, uint64_t used, unsigned height)
{
    if (used == TMK_BYTES_UNKNOWN || used == 0 || d->memory.total_bytes == TMK_BYTES_UNKNOWN ||
        d->memory.total_bytes == 0)
        return 0;
    unsigned most = height * 8;
    unsigned n = (unsigned)((double)used / (double)d->memory.total_bytes * most + 0.5);
    return n == 0 ? 1 : n > most ? most : n;
}

static uint32_t graph_glyph(unsigned eighths, bool ascii)
{
    if (eighths >= 8)
        return ascii ? '#' : 0x2588;
    if (ascii)
        return eighths >= 5 ? ':' : eighths > 0 ? '.' : ' ';
    return eighths > 0 ? 0x2580 + eighths : ' ';
}

static void draw_column(struct tmk_grid *g, unsigned x, struct tmk_area plot,
                        const struct tmk_top_device *d, uint64_t used)
{
    unsigned eighths = eighths_of(d, used, plot.height);
    uint64_t taken = used == TMK_BYTES_UNKNOWN ? 0 : taken_bytes(&d->memory, used);
    enum tmk_ink ink = tmk_picture_level(taken, d->memory.total_bytes);
    ink = ink == TMK_INK_GOOD ? TMK_INK_GRAPH : ink;
    for (unsigned row = 0; row < plot.height; row++) {
        unsigned below = (plot.height - 1 - row) * 8;
        if (eighths > below)
            tmk_grid_fill(g, x, plot.y + row, 1, ink, graph_glyph(eighths - below, g->ascii));
    }
}

/* Draw the title "0  NVIDIA H100        max 61.04 GiB, last 1 min 16 s". */
static void draw_panel_title(struct tmk_grid *g, struct tmk_area panel,
                             const struct tmk_top_device *d, unsigned n, double interval_s)
{
    uint64_t most = 0;
    for (unsigned i = d->n_history - n; i < d->n_history; i++)
        if (d->history[i] != TMK_BYTES_UNKNOWN && d->history[i] > most)
            most = d->history[i];
    char right[96], time[TMK_AMOUNT_BYTES];
    double span = n > 1 ? interval_s * (n - 1) : 0;
    if (span < 120)
        snprintf(time, sizeof time, "%.0f s", span);
    else
        tmk_time_text((uint64_t)(span * 1e9), time);
    snprintf(right, sizeof right, "most %.2f GiB in %s", gib(most), time);
    unsigned x = tmk_grid_put(g, panel.x, panel.y, panel.width, TMK_INK_STRONG, d->label);
    unsigned figures = (unsigned)snprintf(NULL, 0, "%s", right);
    if (panel.x + panel.width > x + figures + 4)
        tmk_grid_put(g, x + 1, panel.y, panel.x + panel.width - x - figures - 3, TMK_INK_DIM,
                     d->about.kind == TMK_DEVICE_HOST ? "memory" : d->about.name);
    tmk_grid_right(g, x + 1, panel.y, panel.x + panel.width - x - 1, TMK_INK_DIM, right);
}

static void draw_panel(struct tmk_grid *g, struct tmk_area panel, const struct tmk_top_device *d,
                       double interval_s)
{
    struct tmk_area plot = {panel.x, panel.y + 1, panel.width, panel.height - 2};
    unsigned n = d->n_history < plot.width ? d->n_history : plot.width;
    draw_panel_title(g, panel, d, n, interval_s);
    for (unsigned i = 0; i < n; i++)
        draw_column(g, plot.x + plot.width - n + i, plot, d, d->history[d->n_history - n + i]);
    tmk_grid_fill(g, panel.x, panel.y + panel.height - 1, panel.width, TMK_INK_DIM,
                  g->ascii ? '-' : 0x2500);
}

/* Draw as many panels as there is room for, all of one size. */
void tmk_picture_graphs(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                        const struct tmk_choice *v, struct tmk_hits *hits)
{
    unsigned inner = area.width > 2 ? area.width - 2 : area.width;
    unsigned columns = (inner + PANEL_GAP) / (PANEL_LEAST_WIDTH + PANEL_GAP);
    unsigned lines = area.height / PANEL_LEAST_LINES;
    columns = columns ? columns : 1;
    columns = columns < m->n_devices ? columns : m->n_devices;
    lines = lines ? lines : 1;
    unsigned needed = (m->n_devices + columns - 1) / columns;
    lines = lines < needed ? lines : needed;
    if (lines == needed) /* fill the last line too, if possible */
        columns = (m->n_devices + lines - 1) / lines;
    unsigned shown = columns * lines;
    hits->graph_most = m->n_devices > shown ? m->n_devices - shown : 0;
    unsigned first = v->graph < hits->graph_most ? v->graph : hits->graph_most;
    unsigned width = (inner + PANEL_GAP) / columns - PANEL_GAP, height = area.height / lines;
    for (unsigned i = 0; i < shown && first + i < m->n_devices; i++) {
        struct tmk_area panel = {area.x + 1 + i % columns * (width + PANEL_GAP),
                                 area.y + i / columns * height, width, height};
        draw_panel(g, panel, &m->devices[first + i], m->interval_s);
    }
}
