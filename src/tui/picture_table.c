/* SPDX-License-Identifier: MIT */
/* tui/picture_table.c - draw the processes: a row each, in columns that come and go with the
 * width. */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "forecast/oom_forecast.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "trace/layout.h"
#include "tui/choice.h"
#include "tui/grid.h"
#include "tui/jobs.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

struct process_column {
    const char *title;
    enum tmk_sort sort;
    unsigned width; /* 0: the rest of the line */
    unsigned from;  /* columns of the screen from which on it is shown */
    bool is_text;   /* aligned left */
};

/* The columns, from left to right. */
static const struct process_column columns[] = {
    {"PID", TMK_SORT_PID, 7, 0, false},
    {"USER", TMK_SORT_USER, 8, 76, true},
    {"DEV", TMK_SORT_DEVICES, 5, 56, true},
    {"RANK", TMK_SORT_RANK, 5, 100, false},
    {"USED", TMK_SORT_USED, 7, 0, false},
    {"HOST", TMK_SORT_HOST, 7, 100, false},
    {"ALLOC", TMK_SORT_ALLOCATED, 7, 32, false},
    {"RESERVED", TMK_SORT_RESERVED, 8, 68, false},
    {"PEAK", TMK_SORT_PEAK, 7, 40, false},
    {"STEP", TMK_SORT_STEP, 7, 60, false},
    {"FORECAST", TMK_SORT_FORECAST, 20, 116, true},
    {"COMMAND", TMK_SORT_COMMAND, 0, 0, true},
};

enum { N_COLUMNS = TMK_N(columns), GAP = 1, CELL_BYTES = TMK_JOB_TEXT_BYTES };

/* ---- cells ---- */

static const char *job_text(const struct tmk_top_process *p, enum tmk_sort sort, char *buffer)
{
    const struct tmk_job *job = &p->job;
    strcpy(buffer, "-");
    if (!p->is_watched)
        return buffer;
    if (sort == TMK_SORT_RANK && job->rank >= 0)
        snprintf(buffer, CELL_BYTES, "%" PRId64, job->rank);
    if (sort == TMK_SORT_RANK || !job->has_memory)
        return buffer;
    if (sort == TMK_SORT_ALLOCATED)
        return tmk_short_size(job->allocated_bytes, buffer);
    if (sort == TMK_SORT_RESERVED)
        return tmk_short_size(job->reserved_bytes, buffer);
    if (sort == TMK_SORT_PEAK)
        return tmk_short_size(job->peak_bytes, buffer);
    if (sort == TMK_SORT_FORECAST)
        return tmk_forecast_text(&job->forecast, true, buffer);
    if (job->step != TMK_NO_STEP)
        snprintf(buffer, CELL_BYTES, "%" PRId64, job->step);
    return buffer;
}

static const char *text_or_dash(const char *text)
{
    return text[0] ? text : "-";
}

static const char *cell_text(const struct tmk_top_process *p, enum tmk_sort sort, char *buffer)
{
    switch (sort) {
    case TMK_SORT_PID:
        snprintf(buffer, CELL_BYTES, "%" PRIu32, p->pid);
        return buffer;
    case TMK_SORT_USER:
        return text_or_dash(p->user);
    case TMK_SORT_DEVICES: /* the driver's label, else the process's own number */
        if (p->devices[0] == '\0' && p->is_watched && p->job.has_memory)
            return tmk_device_name(p->job.device, buffer);
        return text_or_dash(p->devices);
    case TMK_SORT_USED:
        return tmk_short_size(p->used_bytes, buffer);
    case TMK_SORT_HOST:
        return tmk_short_size(p->host_bytes, buffer);
    case TMK_SORT_COMMAND:
        return text_or_dash(p->command);
    default:
        return job_text(p, sort, buffer);
    }
}

static void put_table_cell(struct tmk_grid *g, const struct process_column *c, unsigned x,
                           unsigned y, unsigned width, enum tmk_ink ink, const char *text)
{
    if (c->is_text)
        tmk_grid_put(g, x, y, width, ink, text);
    else
        tmk_grid_right(g, x, y, width, ink, text);
}

/* ---- lines ---- */

/* Draw the titles, and note where they are. */
static void draw_heads(struct tmk_grid *g, struct tmk_area line, const struct tmk_choice *v,
                       struct tmk_hits *hits)
{
    unsigned x = line.x;
    bool downward = v->sort != TMK_SORT_PID && v->sort != TMK_SORT_RANK &&
                    v->sort != TMK_SORT_USER && v->sort != TMK_SORT_DEVICES &&
                    v->sort != TMK_SORT_COMMAND;
    const char *mark = downward != v->is_reversed ? (g->ascii ? "v" : "↓") : (g->ascii ? "^" : "↑");
    tmk_grid_fill(g, line.x, line.y, line.width, TMK_INK_HEAD, ' ');
    for (unsigned i = 0; i < N_COLUMNS; i++) {
        const struct process_column *c = &columns[i];
        unsigned end = line.x + line.width;
        if (line.width < c->from || x >= end)
            continue;
        unsigned width = c->width ? c->width : end - x;
        char title[32];
        bool is_sorted = c->sort == v->sort;
        snprintf(title, sizeof title, "%s%s", c->title, is_sorted ? mark : "");
        put_table_cell(g, c, x, line.y, width, is_sorted ? TMK_INK_SORTED : TMK_INK_HEAD, title);
        hits->heads[hits->n_heads].x = x;
        hits->heads[hits->n_heads].width = width;
        hits->heads[hits->n_heads++].sort = c->sort;
        x += width + GAP;
    }
}

static const struct process_column *column_of(enum tmk_sort sort)
{
    const struct process_column *c = columns;
    while (c->sort != sort)
        c++;
    return c;
}

static void draw_row(struct tmk_grid *g, struct tmk_area line, const struct tmk_top_process *p,
                     bool is_selected, const struct tmk_hits *hits)
{
    char buffer[CELL_BYTES];
    for (unsigned i = 0; i < hits->n_heads; i++) {
        enum tmk_sort sort = hits->heads[i].sort;
        const char *text = cell_text(p, sort, buffer);
        bool is_alarm = sort == TMK_SORT_FORECAST && p->job.forecast.risk >= TMK_RISK_HIGH;
        enum tmk_ink ink =
            strcmp(text, "-") == 0 ? TMK_INK_DIM
            : is_alarm             ? TMK_INK_WARN
            : p->is_watched && sort >= TMK_SORT_ALLOCATED && sort <= TMK_SORT_FORECAST
                ? TMK_INK_STRONG
                : TMK_INK_PLAIN;
        put_table_cell(g, column_of(sort), hits->heads[i].x, line.y, hits->heads[i].width, ink,
                       text);
    }
    if (is_selected)
        tmk_grid_ink(g, line.x, line.y, line.width, TMK_INK_SELECTED);
}

static void say_no_processes(struct tmk_grid *g, struct tmk_area area,
                             const struct tmk_top_model *m, const struct tmk_choice *v)
{
    bool is_whole = true; /* all devices answered */
    for (unsigned i = 0; i < m->n_devices; i++)
        is_whole &= m->devices[i].users_reason[0] == '\0';
    const char *text = v->filter[0] ? "no process fits the filter; Esc clears it"
                       : is_whole   ? "no process uses a device or is watched; to watch one: "
                                      "tidemark run -- PROGRAM ..."
                                    : "no process is watched; who uses the devices is not known";
    if (area.height > 1)
        tmk_grid_put(g, area.x + 1, area.y + 1, area.width - 1, TMK_INK_DIM, text);
}

/* The first row shown: unchanged, unless the selected row would not be visible. */
static uint32_t first_row(uint32_t top, uint32_t selected, uint32_t n, uint32_t n_shown)
{
    uint32_t last = n > n_shown ? n - n_shown : 0;
    if (top > selected)
        top = selected;
    if (selected >= top + n_shown)
        top = selected - n_shown + 1;
    return top < last ? top : last;
}

void tmk_picture_table(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                       const struct tmk_choice *v, const uint32_t *order, uint32_t n,
                       struct tmk_hits *hits)
{
    if (area.height == 0)
        return;
    hits->head_y = area.y;
    draw_heads(g, area, v, hits);
    if (n == 0) {
        say_no_processes(g, area, m, v);
        return;
    }
    uint32_t n_shown = area.height - 1;
    uint32_t selected = tmk_choice_selected(v, m, order, n);
    hits->table_y = area.y + 1;
    hits->top = n_shown ? first_row(v->top, selected, n, n_shown) : 0;
    for (uint32_t i = 0; i < n_shown && hits->top + i < n; i++) {
        struct tmk_area line = {area.x, hits->table_y + i, area.width, 1};
        draw_row(g, line, &m->processes[order[hits->top + i]], hits->top + i == selected, hits);
        hits->n_rows++;
    }
}
