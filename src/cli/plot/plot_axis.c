/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_axis.c - see plot_axis.h. */
#include "cli/plot/plot_axis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/output/xalloc.h"
#include "draw/canvas.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum {
    MOST_TICS = 20,
    FEWEST_STEPS = 2, /* fewer are drawn by time */
};

#define BEFORE 0.12 /* share of the steps' width for the time before */
#define AFTER 0.04  /* and for the time after */

/* ---- the window ---- */

/* When the device's first block was allocated. The search from the front finds it soon. */
static uint64_t first_alloc_ns(const struct tmk_plot *plot)
{
    struct tmk_reader *r = plot->p->reader;
    struct tmk_cursor cursor = {0};
    struct tmk_event ev;
    uint64_t found = UINT64_MAX;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r) && found == UINT64_MAX; i++) {
        const struct tmk_chunk_ref *chunk = tmk_reader_chunk(r, i);
        struct tmk_view payload;
        if (chunk->header.kind != TMK_CHUNK_EVENTS || tmk_reader_payload(r, i, &payload, NULL) ||
            tmk_cursor_begin(&cursor, &chunk->header, payload, NULL))
            continue;
        while (found == UINT64_MAX && tmk_cursor_next(&cursor, &ev) > 0)
            if ((ev.kind == TMK_KIND_ALLOC || ev.kind == TMK_KIND_SEGMENT) &&
                ev.device == plot->device)
                found = ev.time_ns;
    }
    tmk_cursor_fini(&cursor);
    return found == UINT64_MAX ? 0 : found;
}

static const struct tmk_step_row *shown_row(const struct tmk_plot_axis *a, uint64_t i)
{
    return tmk_steps_get(a->steps, a->first_row + i);
}

static void choose_rows(struct tmk_plot_axis *a)
{
    const struct tmk_plot *plot = a->plot;
    uint64_t n = tmk_steps_n(a->steps);
    a->n_rows = n;
    if (!plot->has_window)
        return;
    while (a->first_row < n && tmk_steps_get(a->steps, a->first_row)->start_ns < plot->start_ns)
        a->first_row++;
    a->n_rows = 0;
    while (a->first_row + a->n_rows < n && shown_row(a, a->n_rows)->start_ns < plot->end_ns)
        a->n_rows++;
}

static int compare_durations(const void *va, const void *vb)
{
    uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;
    return a < b ? -1 : a > b;
}

/* The end of the last step. In the trace it lasts until the process ends, which is not its own
 * duration. */
static uint64_t end_of_last(const struct tmk_plot_axis *a)
{
    const struct tmk_step_row *last = shown_row(a, a->n_rows - 1);
    uint64_t n = a->n_rows - 1, *took = tmk_xcalloc(a->n_rows, sizeof *took);
    for (uint64_t i = 0; i < n; i++)
        took[i] = shown_row(a, i)->end_ns - shown_row(a, i)->start_ns;
    qsort(took, n, sizeof *took, compare_durations);
    uint64_t usual = n ? took[n / 2] : last->end_ns - last->start_ns;
    free(took);
    uint64_t end = last->start_ns + usual + usual / 4;
    return end < last->end_ns && last->open ? end : last->end_ns;
}

/* ---- knots ---- */

/* Add a knot. Time never goes back, and redundant knots are left out. */
static void add_knot(struct tmk_plot_axis *a, uint64_t ns, double x)
{
    if (a->n_knots && ns <= a->knots[a->n_knots - 1].ns)
        return;
    a->knots[a->n_knots++] = (struct tmk_plot_knot){ns, x};
}

static void set_steps(struct tmk_plot_axis *a, uint64_t start_ns, uint64_t end_ns)
{
    double n = (double)a->n_rows;
    a->by_step = true;
    if (start_ns < shown_row(a, 0)->start_ns)
        add_knot(a, start_ns, -(n * BEFORE > 0.5 ? n * BEFORE : 0.5));
    for (uint64_t i = 0; i < a->n_rows; i++)
        add_knot(a, shown_row(a, i)->start_ns, (double)i);
    uint64_t last_ns = end_of_last(a);
    add_knot(a, last_ns, n);
    if (end_ns > last_ns && !a->plot->has_window)
        add_knot(a, end_ns, n + (n * AFTER > 0.2 ? n * AFTER : 0.2));
}

static void set_time_axis(struct tmk_plot_axis *a, uint64_t start_ns, uint64_t end_ns)
{
    uint64_t from = a->plot->has_window ? start_ns : 0;
    uint64_t offset = a->plot->has_window ? 0 : a->plot->p->offset_ns;
    a->unit = tmk_plot_time_unit(end_ns - start_ns);
    add_knot(a, start_ns, (double)(start_ns - from + offset) / a->unit.size);
    add_knot(a, end_ns, (double)(end_ns - from + offset) / a->unit.size);
}

int tmk_plot_axis_init(struct tmk_plot_axis *a, const struct tmk_plot *plot)
{
    *a = (struct tmk_plot_axis){.plot = plot};
    if (tmk_steps_open(plot->p, plot->device, &a->steps) < 0)
        return tmk_plot_failed(plot, &(struct tmk_error){0});
    choose_rows(a);
    a->knots = tmk_xcalloc(a->n_rows + 4, sizeof *a->knots);
    uint64_t start = plot->has_window ? plot->start_ns : first_alloc_ns(plot);
    uint64_t end = plot->has_window ? plot->end_ns : plot->p->end_ns;
    if (plot->has_window && a->n_rows)
        end = end_of_last(a);
    start = start < UINT64_MAX ? start : 0; /* for a trace with senseless times */
    end = end > start ? end : start + 1;
    if (a->n_rows >= FEWEST_STEPS && !plot->by_time)
        set_steps(a, start, end);
    if (a->n_knots < 2) {
        a->n_knots = 0;
        a->by_step = false;
        set_time_axis(a, start, end);
    }
    return 0;
}

void tmk_plot_axis_fini(struct tmk_plot_axis *a)
{
    tmk_steps_close(a->steps);
    free(a->knots);
    *a = (struct tmk_plot_axis){0};
}

/* ---- back and forth ---- */

double tmk_plot_axis_start(const struct tmk_plot_axis *a)
{
    return a->knots[0].x;
}

double tmk_plot_axis_end(const struct tmk_plot_axis *a)
{
    return a->knots[a->n_knots - 1].x;
}

/* The knot at or before a position; there is one after it. */
static const struct tmk_plot_knot *knot_at(const struct tmk_plot_axis *a, uint64_t ns, double x)
{
    uint64_t low = 0, high = a->n_knots - 1;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (ns == UINT64_MAX ? a->knots[middle].x <= x : a->knots[middle].ns <= ns)
            low = middle;
        else
            high = middle;
    }
    return &a->knots[low];
}

bool tmk_plot_axis_has(const struct tmk_plot_axis *a, uint64_t ns)
{
    return ns >= a->knots[0].ns && ns <= a->knots[a->n_knots - 1].ns;
}

double tmk_plot_axis_x(const struct tmk_plot_axis *a, uint64_t ns)
{
    if (ns <= a->knots[0].ns)
        return a->knots[0].x;
    const struct tmk_plot_knot *k = knot_at(a, ns == UINT64_MAX ? ns - 1 : ns, 0);
    double part = (double)(ns - k[0].ns) / (double)(k[1].ns - k[0].ns);
    return k[0].x + (part > 1 ? 1 : part) * (k[1].x - k[0].x);
}

int64_t tmk_plot_axis_step(const struct tmk_plot_axis *a, uint64_t ns)
{
    uint64_t low = 0, high = a->n_rows; /* the first row that begins later is among these */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (shown_row(a, middle)->start_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && ns <= shown_row(a, low - 1)->end_ns ? shown_row(a, low - 1)->step
                                                          : TMK_NO_STEP;
}

uint64_t *tmk_plot_axis_cut(const struct tmk_plot_axis *a, uint32_t n)
{
    uint64_t *times = tmk_xcalloc((size_t)n + 1, sizeof *times);
    double start = tmk_plot_axis_start(a), width = tmk_plot_axis_end(a) - start;
    for (uint32_t i = 0; i < n; i++) {
        double x = start + width * i / n;
        const struct tmk_plot_knot *k = knot_at(a, UINT64_MAX, x);
        double part = (x - k[0].x) / (k[1].x - k[0].x);
        times[i] = k[0].ns + (uint64_t)(part * (double)(k[1].ns - k[0].ns));
        if (i > 0 && times[i] < times[i - 1])
            times[i] = times[i - 1]; /* rounding */
    }
    times[n] = a->knots[a->n_knots - 1].ns;
    times[n] = times[n] < times[n - 1] ? times[n - 1] : times[n];
    return times;
}

/* ---- drawing ---- */

/* Draw a step's number below the bottom or, on an axis by time, above the frame. */
static void draw_step(const struct tmk_plot_axis *a, const struct tmk_plot_frame *f, int64_t step,
                      double x)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, step);
    if (a->by_step)
        tmk_plot_frame_tic(f, x, text);
    else
        tmk_canvas_text(f->picture->canvas, tmk_plot_frame_x(f, x), f->top - 5, text,
                        &(struct tmk_text_style){.colour = f->picture->theme->faint,
                                                 .anchor = TMK_ANCHOR_MIDDLE});
}

/* Draw the numbers of steps where they begin, with enough distance between them. */
static void draw_steps(const struct tmk_plot_axis *a, const struct tmk_plot_frame *f)
{
    double room = a->by_step ? 0 : tmk_text_width("step", 12, false) + 16;
    double least = f->width / MOST_TICS, last = f->left + room - least;
    double apart = tmk_plot_tic((double)a->n_rows, MOST_TICS);
    int64_t distance = apart > 1 ? (int64_t)apart : 1;
    for (uint64_t i = 0; i < a->n_rows; i++) {
        const struct tmk_step_row *row = shown_row(a, i);
        double x = tmk_plot_axis_x(a, row->start_ns), at = tmk_plot_frame_x(f, x);
        bool is_round = !a->by_step || row->step % distance == 0;
        if (at < last + least - 0.01 || !is_round)
            continue;
        draw_step(a, f, row->step, x);
        last = at;
    }
}

static void draw_time(const struct tmk_plot_axis *a, const struct tmk_plot_frame *f)
{
    char name[96];
    if (a->plot->has_window)
        snprintf(name, sizeof name, "%s since the start of step %" PRId64, a->unit.name,
                 a->plot->first_step);
    else
        snprintf(name, sizeof name, "%s since the start of the run", a->unit.name);
    tmk_plot_frame_bottom(f, name);
    tmk_plot_frame_numbers(f, MOST_TICS / 2, 0);
    if (a->n_rows < FEWEST_STEPS)
        return;
    tmk_canvas_text(f->picture->canvas, f->left, f->top - 5, "step",
                    &(struct tmk_text_style){.colour = f->picture->theme->faint});
    draw_steps(a, f);
}

void tmk_plot_axis_draw(const struct tmk_plot_axis *a, const struct tmk_plot_frame *f)
{
    if (!a->by_step) {
        draw_time(a, f);
        return;
    }
    tmk_plot_frame_bottom(f, "step");
    draw_steps(a, f);
    double before = tmk_plot_frame_x(f, 0) - f->left;
    if (before > tmk_text_width("before", 12, false) + 12)
        tmk_canvas_text(f->picture->canvas, f->left + before / 2, f->top + f->height + 17, "before",
                        &(struct tmk_text_style){.colour = f->picture->theme->faint,
                                                 .anchor = TMK_ANCHOR_MIDDLE});
}
