/* SPDX-License-Identifier: MIT */
/* tui/picture_graphs.c - draw how memory was used so far: of the selected process, and of devices.
 *
 *     0 H100 80GB HBM3        41.50 GiB now
 *      48G ┤               ▁▂▃▅▆▇█
 *          │      ▁▂▃▅▆▇██████████
 *        0 └ 37s ago ───────── now
 *
 * A column is one look, the newest at the right. The axis ends a little above what is shown; near
 * the capacity it ends there, and a line marks it. */
#include <inttypes.h>
#include <string.h>

#include "device/device.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "tui/choice.h"
#include "tui/grid.h"
#include "tui/jobs.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

enum {
    PANEL_LEAST_WIDTH = 36,
    PANEL_LEAST_LINES = 5,
    PANEL_GAP = 2,
    AXIS_WIDTH = 6, /* " 512M" and the line */
    NEAR_PERCENT = 80,
    TIME_FROM = 12, /* columns of a plot from which on the time axis has texts */
};

/* One graph: what it shows, of what capacity. */
struct graph {
    char title[TMK_JOB_TEXT_BYTES + 16];
    const char *what; /* behind the figure of now */
    const uint64_t *bytes;
    unsigned n;
    uint64_t capacity_bytes;                /* TMK_BYTES_UNKNOWN or 0: not known */
    const struct tmk_device_memory *memory; /* of a device: what its driver keeps is taken too */
};

/* ---- axes ---- */

uint64_t tmk_picture_axis_end(uint64_t bytes)
{
    uint64_t end = 1024;
    while (end < bytes && end < (uint64_t)1 << 62) {
        if (end + end / 2 >= bytes && end >= 2048)
            return end + end / 2;
        end *= 2;
    }
    return end;
}

const char *tmk_short_time(double seconds, char *buffer)
{
    uint64_t s = seconds > 0 && seconds < 1e15 ? (uint64_t)(seconds + 0.5) : 0;
    static const struct {
        uint64_t below, whole, part;
        char units[2];
    } steps[] = {{3600, 60, 1, {'m', 's'}},
                 {86400, 3600, 60, {'h', 'm'}},
                 {86400 * 100, 86400, 3600, {'d', 'h'}}};
    if (s < 60) {
        snprintf(buffer, TMK_SHORT_BYTES, "%us", (unsigned)s);
        return buffer;
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (s < steps[i].below) {
            snprintf(buffer, TMK_SHORT_BYTES, "%u%c%02u%c", (unsigned)(s / steps[i].whole),
                     steps[i].units[0], (unsigned)(s % steps[i].whole / steps[i].part),
                     steps[i].units[1]);
            return buffer;
        }
    snprintf(buffer, TMK_SHORT_BYTES, seconds < 1e12 ? "%" PRIu64 "d" : ">9999d", s / 86400);
    return buffer;
}

/* "48G", "1.5G": a size at an axis, without decimals that are zero. */
static const char *axis_text(uint64_t bytes, char *buffer)
{
    static const char units[] = "BKMGTP";
    unsigned unit = 0;
    double value = (double)bytes;
    for (; value >= 1024 && units[unit + 1]; unit++)
        value /= 1024;
    if (bytes == 0)
        snprintf(buffer, TMK_SHORT_BYTES, "0");
    else if (value >= 10 || value == (double)(uint64_t)value)
        snprintf(buffer, TMK_SHORT_BYTES, "%.0f%c", value, units[unit]);
    else
        snprintf(buffer, TMK_SHORT_BYTES, "%.1f%c", value, units[unit]);
    return buffer;
}

static bool has_capacity(const struct graph *graph)
{
    return graph->capacity_bytes != 0 && graph->capacity_bytes != TMK_BYTES_UNKNOWN;
}

static uint64_t most_shown(const struct graph *graph, unsigned n)
{
    uint64_t most = 0;
    for (unsigned i = graph->n - n; i < graph->n; i++)
        if (graph->bytes[i] != TMK_BYTES_UNKNOWN && graph->bytes[i] > most)
            most = graph->bytes[i];
    return most;
}

/* The upper end of the y axis, and whether it is the capacity. */
static uint64_t upper_end(const struct graph *graph, unsigned n, bool *ret_is_capacity)
{
    uint64_t most = most_shown(graph, n);
    *ret_is_capacity =
        has_capacity(graph) && (double)most * 100 >= (double)graph->capacity_bytes * NEAR_PERCENT;
    if (*ret_is_capacity)
        return most > graph->capacity_bytes ? most : graph->capacity_bytes;
    uint64_t end =
        tmk_picture_axis_end(most > (uint64_t)64 << 20 ? most + most / 50 : (uint64_t)64 << 20);
    return has_capacity(graph) && end > graph->capacity_bytes ? graph->capacity_bytes : end;
}

/* ---- columns ---- */

/* How many eighths of a character a value fills in `height` lines. */
static unsigned eighths_of(uint64_t bytes, uint64_t end, unsigned height)
{
    if (bytes == TMK_BYTES_UNKNOWN || bytes == 0 || end == 0)
        return 0;
    unsigned most = height * 8, n = (unsigned)((double)bytes / (double)end * most + 0.5);
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

static enum tmk_ink column_ink(const struct graph *graph, uint64_t bytes)
{
    if (!has_capacity(graph) || bytes == TMK_BYTES_UNKNOWN)
        return TMK_INK_GRAPH;
    uint64_t taken = graph->memory ? tmk_picture_taken(graph->memory, bytes) : bytes;
    enum tmk_ink ink = tmk_picture_level(taken, graph->capacity_bytes);
    return ink == TMK_INK_GOOD ? TMK_INK_GRAPH : ink;
}

static void draw_column(struct tmk_grid *g, unsigned x, struct tmk_area plot,
                        const struct graph *graph, uint64_t bytes, uint64_t end)
{
    unsigned eighths = eighths_of(bytes, end, plot.height);
    enum tmk_ink ink = column_ink(graph, bytes);
    for (unsigned row = 0; row < plot.height; row++) {
        unsigned below = (plot.height - 1 - row) * 8;
        if (eighths > below)
            tmk_grid_fill(g, x, plot.y + row, 1, ink, graph_glyph(eighths - below, g->ascii));
    }
}

/* ---- one panel ---- */

static void draw_graph_title(struct tmk_grid *g, struct tmk_area panel, const struct graph *graph)
{
    char right[64], size[TMK_AMOUNT_BYTES];
    uint64_t now = graph->n ? graph->bytes[graph->n - 1] : TMK_BYTES_UNKNOWN;
    unsigned n =
        (unsigned)snprintf(right, sizeof right, "%s %s",
                           now == TMK_BYTES_UNKNOWN ? "-" : tmk_size_text(now, size), graph->what);
    unsigned room = panel.width > n + 2 ? panel.width - n - 2 : 0;
    tmk_grid_put(g, panel.x, panel.y, room, TMK_INK_STRONG, graph->title);
    tmk_grid_right(g, panel.x, panel.y, panel.width, TMK_INK_DIM, right + (room ? 0 : n));
}

static void draw_y_axis(struct tmk_grid *g, struct tmk_area plot, uint64_t end, bool is_capacity)
{
    char text[TMK_SHORT_BYTES];
    unsigned x = plot.x - AXIS_WIDTH, line = plot.x - 1;
    for (unsigned row = 0; row <= plot.height; row++) {
        bool has_text = row == 0 ||
                        (row == plot.height / 2 && plot.height % 2 == 0 && plot.height >= 4) ||
                        row == plot.height;
        uint64_t at = row == 0 ? end : row == plot.height ? 0 : end / 2;
        if (has_text)
            tmk_grid_right(g, x, plot.y + row, AXIS_WIDTH - 1,
                           row == 0 && is_capacity ? TMK_INK_BAD : TMK_INK_DIM,
                           axis_text(at, text));
        uint32_t glyph = row == plot.height ? 0x2514 : has_text ? 0x2524 : 0x2502;
        tmk_grid_fill(g, line, plot.y + row, 1, TMK_INK_DIM,
                      !g->ascii            ? glyph
                      : row == plot.height ? '+'
                                           : '|');
    }
}

/* Draw "37s ago ─────── now" below the plot: the time of its first column, and of its last. */
static void draw_time_axis(struct tmk_grid *g, struct tmk_area plot, const struct tmk_top_model *m,
                           unsigned n)
{
    char time[TMK_SHORT_BYTES], text[TMK_SHORT_BYTES + 8];
    unsigned y = plot.y + plot.height;
    tmk_grid_fill(g, plot.x, y, plot.width, TMK_INK_DIM, g->ascii ? '-' : 0x2500);
    if (plot.width < TIME_FROM || n < 2 || n > m->n_looks)
        return;
    double seconds = (double)(m->look_ns[m->n_looks - 1] - m->look_ns[m->n_looks - n]) / 1e9;
    unsigned width =
        (unsigned)snprintf(text, sizeof text, _(" %s ago "), tmk_short_time(seconds, time));
    unsigned first = plot.width - n;
    if (first + width + 5 <= plot.width)
        tmk_grid_put(g, plot.x + first, y, width, TMK_INK_DIM, text);
    tmk_grid_put(g, plot.x + plot.width - 4, y, 4, TMK_INK_DIM, " now");
}

static void mark_capacity(struct tmk_grid *g, struct tmk_area plot)
{
    for (unsigned x = plot.x; x < plot.x + plot.width; x++)
        if (tmk_grid_cell(g, x, plot.y) && tmk_grid_cell(g, x, plot.y)->c == ' ')
            tmk_grid_fill(g, x, plot.y, 1, TMK_INK_BAD, g->ascii ? '-' : 0x2504);
}

static void draw_graph(struct tmk_grid *g, struct tmk_area panel, const struct graph *graph,
                       const struct tmk_top_model *m)
{
    struct tmk_area plot = {panel.x + AXIS_WIDTH, panel.y + 1, panel.width - AXIS_WIDTH,
                            panel.height - 2};
    bool is_capacity;
    draw_graph_title(g, panel, graph);
    if (panel.width <= AXIS_WIDTH + 2)
        return;
    unsigned n = graph->n < plot.width ? graph->n : plot.width;
    uint64_t end = upper_end(graph, n, &is_capacity);
    for (unsigned i = 0; i < n; i++) {
        uint64_t bytes = graph->bytes[graph->n - n + i];
        draw_column(g, plot.x + plot.width - n + i, plot, graph, bytes, end);
    }
    draw_y_axis(g, plot, end, is_capacity);
    draw_time_axis(g, plot, m, n);
    if (is_capacity)
        mark_capacity(g, plot);
}

/* ---- what the panels show ---- */

static struct graph graph_of_device(const struct tmk_top_device *d)
{
    struct graph graph = {.what = "used",
                          .bytes = d->history,
                          .n = d->n_history,
                          .capacity_bytes = d->memory.total_bytes,
                          .memory = &d->memory};
    if (d->about.kind == TMK_DEVICE_HOST)
        snprintf(graph.title, sizeof graph.title, _("host memory"));
    else
        snprintf(graph.title, sizeof graph.title, _("GPU %s  %s"), d->label,
                 tmk_picture_device_name(d, true));
    return graph;
}

static const struct tmk_top_series *series_of(const struct tmk_top_model *m,
                                              const struct tmk_top_process *p)
{
    for (uint64_t i = 0; i < m->n_series; i++)
        if (m->series[i]->pid == p->pid && m->series[i]->is_watched == p->is_watched)
            return m->series[i];
    return NULL;
}

/* The graph of a process; false: it has none. */
static bool graph_of_process(const struct tmk_top_model *m, const struct tmk_top_process *p,
                             struct graph *ret)
{
    const struct tmk_top_series *s = series_of(m, p);
    if (!s)
        return false;
    *ret = (struct graph){.what = s->is_watched ? _("allocated") : _("used"),
                          .bytes = s->bytes,
                          .n = s->n,
                          .capacity_bytes = s->is_watched ? p->job.forecast.capacity_bytes : 0};
    snprintf(ret->title, sizeof ret->title, "%" PRIu32 "  %s", p->pid, p->command);
    return true;
}

/* Add a series to sums, both of which end now. */
static void add_series(const struct tmk_top_series *s, uint64_t *sums, unsigned *n)
{
    if (s->n > *n) { /* it is longer than the sums so far */
        memmove(sums + (s->n - *n), sums, *n * sizeof *sums);
        for (unsigned i = 0; i < s->n - *n; i++)
            sums[i] = TMK_BYTES_UNKNOWN;
        *n = s->n;
    }
    for (unsigned i = 0; i < s->n; i++) {
        uint64_t *sum = &sums[*n - s->n + i];
        if (s->bytes[i] != TMK_BYTES_UNKNOWN)
            *sum = (*sum == TMK_BYTES_UNKNOWN ? 0 : *sum) + s->bytes[i];
    }
}

/* The graph of all processes of a run together; false: there is none. `sums` has room for
 * TMK_TOP_HISTORY. */
static bool graph_of_run(const struct tmk_top_model *m, const struct tmk_top_process *first,
                         uint64_t *sums, struct graph *ret)
{
    uint64_t run = tmk_choice_run_key(first);
    const char *slash = strrchr(first->job.run, '/');
    *ret = (struct graph){.what = "allocated", .bytes = sums};
    for (uint64_t i = 0; i < m->n_processes; i++) {
        const struct tmk_top_process *p = &m->processes[i];
        const struct tmk_top_series *s =
            p->is_watched && tmk_choice_run_key(p) == run ? series_of(m, p) : NULL;
        if (s)
            add_series(s, sums, &ret->n);
    }
    snprintf(ret->title, sizeof ret->title, "%s", slash && slash[1] ? slash + 1 : first->job.run);
    return ret->n > 0;
}

/* The first device of a process, or 0. */
static unsigned device_of(const struct tmk_top_model *m, uint32_t pid)
{
    for (uint64_t i = 0; i < m->n_uses; i++)
        if (m->uses[i].pid == pid)
            return m->uses[i].device;
    return 0;
}

/* Draw as many panels as there is room for, all of one size. */
void tmk_picture_graphs(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                        const struct tmk_choice *v, const struct tmk_top_row *selected,
                        struct tmk_hits *hits)
{
    struct graph graph;
    uint64_t sums[TMK_TOP_HISTORY];
    const struct tmk_top_process *p = selected ? &m->processes[selected->process] : NULL;
    bool has_process =
        p && (selected->n ? graph_of_run(m, p, sums, &graph) : graph_of_process(m, p, &graph));
    unsigned n = m->n_devices + has_process;
    unsigned inner = area.width > 2 ? area.width - 2 : area.width;
    unsigned columns = (inner + PANEL_GAP) / (PANEL_LEAST_WIDTH + PANEL_GAP);
    unsigned lines = area.height / PANEL_LEAST_LINES;
    columns = columns ? columns : 1;
    columns = columns < n ? columns : n;
    lines = lines ? lines : 1;
    unsigned needed = (n + columns - 1) / columns;
    lines = lines < needed ? lines : needed;
    if (lines == needed) /* fill the last line too, if possible */
        columns = (n + lines - 1) / lines;
    unsigned n_devices = columns * lines > has_process ? columns * lines - has_process : 0;
    hits->graph_most = m->n_devices > n_devices ? m->n_devices - n_devices : 0;
    unsigned wanted = v->graph == TMK_GRAPH_OF_SELECTED ? device_of(m, p ? p->pid : 0) : v->graph;
    hits->graph_first = wanted < hits->graph_most ? wanted : hits->graph_most;
    unsigned width = (inner + PANEL_GAP) / columns - PANEL_GAP, height = area.height / lines;
    for (unsigned i = 0; i < columns * lines && i < n; i++) {
        struct tmk_area panel = {area.x + 1 + i % columns * (width + PANEL_GAP),
                                 area.y + i / columns * height, width, height};
        unsigned device = hits->graph_first + i - has_process;
        if (i >= has_process && device < m->n_devices)
            graph = graph_of_device(&m->devices[device]);
        else if (i >= has_process)
            break;
        draw_graph(g, panel, &graph, m);
    }
}
