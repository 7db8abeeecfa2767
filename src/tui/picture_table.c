/* SPDX-License-Identifier: MIT */
/* tui/picture_table.c - draw the processes: a row each, in columns that come and go with the
 * width. */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "trace/layout.h"
#include "tui/choice.h"
#include "tui/grid.h"
#include "tui/jobs.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

/* Widths of the forecast: a time; "high 47m15s (0.87)"; "high: 47m15s, 1,234 steps (0.87)". */
enum { SENTENCE_WIDTH = 23, WHOLE_WIDTH = 36, MARK_WIDTH = 1 };

struct process_column {
    const char *title;
    enum tmk_sort sort;
    unsigned width;    /* 0: the rest of the line */
    unsigned from, to; /* columns of the screen between which it is shown; to 0: always */
    bool is_text;      /* aligned left */
};

/* The columns, from left to right. */
static const struct process_column columns[] = {
    {"PID", TMK_SORT_PID, 7, 0, 0, false},
    {"USER", TMK_SORT_USER, 8, 76, 0, true},
    {"DEV", TMK_SORT_DEVICES, 6, 56, 0, true},
    {"RANK", TMK_SORT_RANK, 5, 90, 0, false},
    {"USED", TMK_SORT_USED, 7, 0, 0, false},
    {"HOST", TMK_SORT_HOST, 7, 124, 0, false},
    {"ALLOC", TMK_SORT_ALLOCATED, 7, 32, 0, false},
    {"RESERVED", TMK_SORT_RESERVED, 8, 104, 0, false},
    {"PEAK", TMK_SORT_PEAK, 7, 64, 0, false},
    {"GROWTH", TMK_SORT_GROWTH, 8, 70, 0, false},
    {"STEP", TMK_SORT_STEP, 7, 112, 0, false},
    {"STEP TIME", TMK_SORT_STEP_TIME, 9, 150, 0, false},
    {"FORECAST", TMK_SORT_FORECAST, 9, 40, 119, false},
    {"FORECAST", TMK_SORT_FORECAST, SENTENCE_WIDTH, 120, 169, true},
    {"FORECAST", TMK_SORT_FORECAST, WHOLE_WIDTH, 170, 0, true},
    {"COMMAND", TMK_SORT_COMMAND, 0, 0, 0, true},
};

enum { N_COLUMNS = TMK_N(columns), GAP = 1, CELL_BYTES = TMK_JOB_TEXT_BYTES };

/* ---- cells ---- */

/* Write how the memory kept after a step changes: "+384.0K", "0", "-12.0M". */
static const char *growth_text(const struct tmk_job *job, char *buffer)
{
    char size[TMK_SHORT_BYTES];
    double change = job->bytes_per_step;
    if (!job->has_growth)
        return "-";
    if (tmk_size_whole(change < 0 ? -change : change) == 0)
        return "0";
    snprintf(buffer, CELL_BYTES, "%c%s", change < 0 ? '-' : '+',
             tmk_short_size(tmk_size_whole(change < 0 ? -change : change), size));
    return buffer;
}

const char *tmk_picture_forecast(const struct tmk_forecast *f, unsigned width, char *buffer)
{
    char time[TMK_SHORT_BYTES], count[TMK_AMOUNT_BYTES], steps[48] = "", confidence[16] = "";
    const char *risk = tmk_risk_text(f->risk);
    if (!risk || !f->has_time || f->has_run_out) {
        snprintf(buffer, TMK_FORECAST_CELL_BYTES, "%s",
                 !risk                           ? "-"
                 : f->has_run_out && f->has_time ? _("OOM")
                                                 : risk);
        return buffer;
    }
    tmk_short_time(f->seconds_to_oom, time);
    if (f->has_confidence)
        snprintf(confidence, sizeof confidence, " (%.2f)", f->confidence);
    if (f->by_step)
        snprintf(steps, sizeof steps, _(", %s steps"),
                 tmk_count_text(tmk_size_whole(f->steps_to_oom), count));
    if (width >= WHOLE_WIDTH)
        snprintf(buffer, TMK_FORECAST_CELL_BYTES, "%s: %s%s%s", risk, time, steps, confidence);
    else if (width >= SENTENCE_WIDTH)
        snprintf(buffer, TMK_FORECAST_CELL_BYTES, "%s %s%s", risk, time, confidence);
    else
        snprintf(buffer, TMK_FORECAST_CELL_BYTES, "%s", time);
    return buffer;
}

static const char *job_text(const struct tmk_job *job, const struct process_column *c, char *buffer)
{
    if (c->sort == TMK_SORT_RANK && job->rank >= 0) {
        snprintf(buffer, CELL_BYTES, "%" PRId64, job->rank);
        return buffer;
    }
    if (c->sort == TMK_SORT_RANK || !job->has_memory)
        return "-";
    if (c->sort == TMK_SORT_ALLOCATED)
        return tmk_short_size(job->allocated_bytes, buffer);
    if (c->sort == TMK_SORT_RESERVED)
        return tmk_short_size(job->reserved_bytes, buffer);
    if (c->sort == TMK_SORT_PEAK)
        return tmk_short_size(job->peak_bytes, buffer);
    if (c->sort == TMK_SORT_GROWTH)
        return growth_text(job, buffer);
    if (c->sort == TMK_SORT_FORECAST)
        return tmk_picture_forecast(&job->forecast, c->width, buffer);
    if (c->sort == TMK_SORT_STEP_TIME)
        return job->step_ns ? tmk_time_text(job->step_ns, buffer) : "-";
    if (job->step == TMK_NO_STEP)
        return "-";
    snprintf(buffer, CELL_BYTES, "%" PRId64, job->step);
    return buffer;
}

static const char *text_or_dash(const char *text)
{
    return text[0] ? text : "-";
}

static const char *cell_text(const struct tmk_top_process *p, const struct process_column *c,
                             char *buffer)
{
    switch (c->sort) {
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
        return p->is_watched ? job_text(&p->job, c, buffer) : "-";
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

enum tmk_ink tmk_picture_risk(enum tmk_risk risk)
{
    return risk >= TMK_RISK_HIGH     ? TMK_INK_BAD
           : risk == TMK_RISK_MEDIUM ? TMK_INK_WARN
                                     : TMK_INK_PLAIN;
}

/* Red is an OOM to come, yellow is growth. */
static enum tmk_ink cell_ink(const struct tmk_top_process *p, enum tmk_sort sort, const char *text)
{
    const struct tmk_job *job = &p->job;
    if (strcmp(text, "-") == 0)
        return TMK_INK_DIM;
    if (!p->is_watched)
        return TMK_INK_PLAIN;
    if (sort == TMK_SORT_FORECAST)
        return tmk_picture_risk(job->forecast.risk);
    if (sort == TMK_SORT_GROWTH)
        return job->bytes_per_step > 0 ? TMK_INK_WARN : TMK_INK_PLAIN;
    return sort == TMK_SORT_ALLOCATED ? TMK_INK_STRONG : TMK_INK_PLAIN;
}

/* ---- a run in one line ---- */

static void add_known(uint64_t *sum, uint64_t bytes)
{
    if (bytes != TMK_BYTES_UNKNOWN)
        *sum = (*sum == TMK_BYTES_UNKNOWN ? 0 : *sum) + bytes;
}

/* Add a process to the line of its run: sums of what is used and allocated; of peak, growth and
 * forecast those of the process that is worst. */
static void add_to_run(struct tmk_top_process *sum, const struct tmk_top_process *p)
{
    struct tmk_job *s = &sum->job;
    const struct tmk_job *j = &p->job;
    add_known(&sum->used_bytes, p->used_bytes);
    add_known(&sum->host_bytes, p->host_bytes);
    if (!j->has_memory)
        return;
    bool is_first = !s->has_memory;
    s->has_memory = true;
    add_known(&s->allocated_bytes, j->allocated_bytes);
    add_known(&s->reserved_bytes, j->reserved_bytes);
    if (is_first || j->peak_bytes > s->peak_bytes)
        s->peak_bytes = j->peak_bytes;
    if (is_first || j->step < s->step)
        s->step = j->step;
    if (j->step_ns > s->step_ns)
        s->step_ns = j->step_ns;
    if (j->has_growth && (!s->has_growth || j->bytes_per_step > s->bytes_per_step)) {
        s->has_growth = true;
        s->bytes_per_step = j->bytes_per_step;
    }
    const struct tmk_forecast *f = &j->forecast;
    bool is_sooner =
        f->has_time && (!s->forecast.has_time || f->seconds_to_oom < s->forecast.seconds_to_oom);
    if (is_first || f->risk > s->forecast.risk || (f->risk == s->forecast.risk && is_sooner)) {
        s->forecast = *f;
        s->rank = f->risk >= TMK_RISK_MEDIUM ? j->rank : -1;
    }
}

/* The line of a run, as a process; its rank is the one that may run out. */
static struct tmk_top_process sum_of_run(const struct tmk_top_model *m, const struct tmk_choice *v,
                                         const struct tmk_top_row *row)
{
    const struct tmk_top_process *first = &m->processes[row->process];
    struct tmk_top_process sum = *first;
    uint64_t run = tmk_choice_run_key(first);
    sum.used_bytes = sum.host_bytes = TMK_BYTES_UNKNOWN;
    sum.devices[0] = '\0';
    sum.job = (struct tmk_job){.rank = -1,
                               .step = TMK_NO_STEP,
                               .allocated_bytes = TMK_BYTES_UNKNOWN,
                               .reserved_bytes = TMK_BYTES_UNKNOWN};
    for (uint64_t i = 0; i < m->n_processes; i++) {
        const struct tmk_top_process *p = &m->processes[i];
        if (p->is_watched && tmk_choice_run_key(p) == run && tmk_choice_is_shown(v, p))
            add_to_run(&sum, p);
    }
    return sum;
}

/* ---- lines ---- */

static bool is_column_shown(const struct process_column *c, unsigned width)
{
    return width >= c->from && (c->to == 0 || width <= c->to);
}

/* The title, with a mark on the column that sorts. */
static const char *head_text(const struct process_column *c, const struct tmk_grid *g,
                             const struct tmk_choice *v, char *buffer, size_t size)
{
    bool downward = v->sort != TMK_SORT_PID && v->sort != TMK_SORT_RANK &&
                    v->sort != TMK_SORT_USER && v->sort != TMK_SORT_DEVICES &&
                    v->sort != TMK_SORT_COMMAND;
    const char *mark = downward != v->is_reversed ? (g->ascii ? "v" : "↓") : (g->ascii ? "^" : "↑");
    snprintf(buffer, size, "%s%s", c->title, c->sort == v->sort ? mark : "");
    return buffer;
}

/* Draw the titles, and note where they are. */
static void draw_heads(struct tmk_grid *g, struct tmk_area line, const struct tmk_choice *v,
                       struct tmk_hits *hits)
{
    char title[32];
    unsigned x = line.x + MARK_WIDTH, end = line.x + line.width;
    tmk_grid_fill(g, line.x, line.y, line.width, TMK_INK_HEAD, ' ');
    for (unsigned i = 0; i < N_COLUMNS; i++) {
        const struct process_column *c = &columns[i];
        if (!is_column_shown(c, line.width) || x >= end)
            continue;
        unsigned width = c->width ? c->width : end - x;
        put_table_cell(g, c, x, line.y, width, c->sort == v->sort ? TMK_INK_SORTED : TMK_INK_HEAD,
                       head_text(c, g, v, title, sizeof title));
        hits->heads[hits->n_heads].x = x;
        hits->heads[hits->n_heads].width = width;
        hits->heads[hits->n_heads++].sort = c->sort;
        x += width + GAP;
    }
}

/* Draw the cells of a process; of a run's line all but PID and command. */
static void draw_cells(struct tmk_grid *g, unsigned y, unsigned screen_width,
                       const struct tmk_top_process *p, const struct tmk_top_row *row,
                       const struct tmk_hits *hits)
{
    char buffer[CELL_BYTES];
    unsigned n = 0;
    for (unsigned i = 0; i < N_COLUMNS && n < hits->n_heads; i++) {
        const struct process_column *c = &columns[i];
        if (!is_column_shown(c, screen_width))
            continue;
        unsigned x = hits->heads[n].x, width = hits->heads[n].width;
        n++;
        const char *text = cell_text(p, c, buffer);
        enum tmk_ink ink = cell_ink(p, c->sort, text);
        bool is_of_run = c->sort == TMK_SORT_PID || c->sort == TMK_SORT_DEVICES;
        if (row->n > 0 && (is_of_run || c->sort == TMK_SORT_COMMAND))
            continue;
        if (c->sort == TMK_SORT_COMMAND && row->is_member) {
            const char *branch = row->is_last ? (g->ascii ? "`-" : "└─") : (g->ascii ? "|-" : "├─");
            tmk_grid_put(g, x, y, width, TMK_INK_DIM, branch);
            unsigned indent = width < 3 ? width : 3;
            if (p->job.rank >= 0 && width > indent)
                x = tmk_grid_putf(g, x + indent, y, width - indent, TMK_INK_PLAIN,
                                  _("rank %" PRId64 " "), p->job.rank);
            else
                x += indent;
            width = hits->heads[n - 1].x + hits->heads[n - 1].width - x;
        }
        put_table_cell(g, c, x, y, width, ink, text);
    }
}

/* Draw what a run's line has instead of PID and command: "2 ranks" and its name. */
static void draw_run_name(struct tmk_grid *g, unsigned y, const struct tmk_top_process *first,
                          const struct tmk_top_row *row, const struct tmk_hits *hits)
{
    char count[16];
    const char *fold = row->is_folded ? (g->ascii ? "+" : "▸") : (g->ascii ? "-" : "▾");
    const char *slash = strrchr(first->job.run, '/');
    const char *name = slash && slash[1] ? slash + 1 : first->job.run;
    for (unsigned i = 0; i < hits->n_heads; i++) {
        unsigned x = hits->heads[i].x, width = hits->heads[i].width;
        if (hits->heads[i].sort == TMK_SORT_PID) {
            snprintf(count, sizeof count, g->ascii ? "x%" PRIu32 : "×%" PRIu32, row->n);
            tmk_grid_put(g, x - MARK_WIDTH, y, MARK_WIDTH, TMK_INK_KEY, fold);
            tmk_grid_right(g, x, y, width, TMK_INK_STRONG, count);
        }
        if (hits->heads[i].sort == TMK_SORT_COMMAND)
            tmk_grid_putf(g, x, y, width, TMK_INK_STRONG, "%s  %s", name, first->command);
    }
}

static void draw_row(struct tmk_grid *g, struct tmk_area line, const struct tmk_top_model *m,
                     const struct tmk_choice *v, const struct tmk_top_row *row, bool is_selected,
                     const struct tmk_hits *hits)
{
    const struct tmk_top_process *p = &m->processes[row->process];
    if (row->n > 0) {
        struct tmk_top_process sum = sum_of_run(m, v, row);
        draw_cells(g, line.y, line.width, &sum, row, hits);
        draw_run_name(g, line.y, p, row, hits);
    } else {
        if (p->is_watched)
            tmk_grid_fill(g, line.x, line.y, 1, TMK_INK_GOOD, g->ascii ? '*' : 0x25cf);
        draw_cells(g, line.y, line.width, p, row, hits);
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
    const char *text = v->filter[0] ? _("no process fits the filter; Esc clears it")
                       : is_whole   ? _("no process uses a device or is watched; to watch one: "
                                          "tidemark run -- PROGRAM ...")
                                    : _("no process is watched; who uses the devices is not known");
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
                       const struct tmk_choice *v, const struct tmk_top_row *rows, uint32_t n,
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
    uint32_t selected = tmk_choice_selected(v, m, rows, n);
    hits->table_y = area.y + 1;
    hits->top = n_shown ? first_row(v->top, selected, n, n_shown) : 0;
    for (uint32_t i = 0; i < n_shown && hits->top + i < n; i++) {
        struct tmk_area line = {area.x, hits->table_y + i, area.width, 1};
        draw_row(g, line, m, v, &rows[hits->top + i], hits->top + i == selected, hits);
        hits->n_rows++;
    }
}
