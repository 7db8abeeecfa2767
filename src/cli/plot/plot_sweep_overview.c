/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_sweep_overview.c - the peak against each parameter: a graph for each. Its lines are
 * the values of the most important other parameter; all others are as in the largest measured
 * configuration.
 *
 * Discs are measured, lines are the fit, rings are configurations that were not measured, with the
 * bounds of the estimate. A cross is one that ran out of memory, at its estimated height. Points
 * too far above the graph, or of unknown height, are written at its top. Values of a parameter that
 * are no numbers are in a row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_frame.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_picture.h"
#include "cli/plot/plot_survey.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"

enum {
    MOST_GRAPHS = 6,
    MOST_LINES = 6,
    CURVE_POINTS = 60,
    MOST_ABOVE = 3,     /* lines of text at the top */
    GRAPH_HEIGHT = 250, /* points, and so are the next ones */
    ONLY_GRAPH_HEIGHT = 380,
    LEFT = 62,
    RIGHT = 26,
    BELOW = 66,
    ABOVE = 8, /* between the legend and the graph */
    ABOVE_ROW = 16,
    ABOVE_WIDTH = 110, /* of a text at the top */
    VALUE = 110,       /* of a value below */
};

struct overview_graph {
    const struct tmk_survey *g;
    const struct tmk_picture *picture;
    struct tmk_plot_frame frame;
    uint32_t number;
    uint32_t p;      /* the parameter along x; UINT32_MAX: none has several values */
    uint32_t series; /* the parameter with a line for each value; UINT32_MAX: one line */
    const struct tmk_sweep_param *lines; /* that parameter; NULL: one line */
    uint32_t *choice;
    double from, to; /* range of x */
    double top;      /* bytes at the top of y */
};

static uint32_t n_graphs(const struct tmk_survey *g)
{
    return g->n_order < MOST_GRAPHS ? (g->n_order ? g->n_order : 1) : MOST_GRAPHS;
}

static uint32_t n_columns(const struct tmk_survey *g)
{
    return n_graphs(g) == 1 ? 1 : 2;
}

/* ---- along x ---- */

/* The parameter along x. If there is nothing to compare, the only configuration is a point above
 * its name. */
static const struct tmk_sweep_param *param_of(const struct overview_graph *a)
{
    static const char *names[] = {""};
    static const struct tmk_sweep_param none = {.name = "", .values = names, .n_values = 1};
    return a->p == UINT32_MAX ? &none : &a->g->r->params[a->p];
}

static double graph_x(const struct overview_graph *a, uint32_t v)
{
    const double *numbers = param_of(a)->numbers;
    return numbers ? numbers[v] : v;
}

static void find_graph_range(struct overview_graph *a)
{
    a->from = a->to = graph_x(a, 0);
    for (uint32_t v = 0; v < param_of(a)->n_values; v++) {
        a->from = graph_x(a, v) < a->from ? graph_x(a, v) : a->from;
        a->to = graph_x(a, v) > a->to ? graph_x(a, v) : a->to;
    }
}

static uint32_t n_lines(const struct overview_graph *a)
{
    return a->lines ? a->lines->n_values : 1;
}

/* Whether a value has a line. If there are more values than readable lines, a spread of them
 * has. */
static bool is_graph_line(const struct overview_graph *a, uint32_t s)
{
    uint32_t n = n_lines(a);
    if (n <= MOST_LINES)
        return true;
    for (uint32_t k = 0; k < MOST_LINES; k++)
        if (s == k * (n - 1) / (MOST_LINES - 1))
            return true;
    return false;
}

static uint32_t line_colour(const struct overview_graph *a, uint32_t s)
{
    unsigned n = 0;
    for (uint32_t k = 0; k < s; k++)
        n += is_graph_line(a, k);
    return tmk_palette_colour(n);
}

static const struct tmk_survey_config *config_at(struct overview_graph *a, uint32_t s, uint32_t v)
{
    if (a->p != UINT32_MAX)
        a->choice[a->p] = v;
    if (a->series != UINT32_MAX)
        a->choice[a->series] = s;
    return tmk_survey_at(a->g, a->choice);
}

/* ---- points: measured, estimated, out of memory ---- */

enum point_kind { MEASURED, ESTIMATED, REFUSED };

struct graph_point {
    enum point_kind kind;
    bool known; /* its height is known; after an OOM it may not be */
    double y, low, high;
};

/* Find the point at a value; false: there is nothing to draw. */
static bool point_at(struct overview_graph *a, uint32_t s, uint32_t v, struct graph_point *ret)
{
    const struct tmk_survey_config *c = config_at(a, s, v);
    if (c->cell->outcome == TMK_CELL_EXCLUDED)
        return false;
    double peak = (double)c->cell->peak_allocated;
    struct tmk_estimate e = tmk_survey_estimate(a->g, c);
    bool is_refused = c->cell->outcome == TMK_CELL_OOM || c->cell->outcome == TMK_CELL_HOPELESS;
    *ret = (struct graph_point){ESTIMATED, e.known, e.bytes, e.low, e.high};
    if (c->has_peak)
        *ret = (struct graph_point){MEASURED, true, peak, peak, peak};
    else if (is_refused)
        ret->kind = REFUSED;
    return ret->known || ret->kind == REFUSED;
}

/* Whether a point has no place in the graph. Then it is written at the top. */
static bool is_above(const struct overview_graph *a, const struct graph_point *p)
{
    return !p->known || p->y > a->top;
}

/* ---- drawing points ---- */

static double point_x(const struct overview_graph *a, uint32_t v)
{
    return tmk_plot_frame_x(&a->frame, graph_x(a, v));
}

/* Draw the bounds of an estimate as far as they are in the graph. */
static void draw_bounds(const struct overview_graph *a, double x, const struct graph_point *p,
                        uint32_t colour)
{
    double low = tmk_plot_frame_y(&a->frame, fmax(p->low, 0));
    double high = tmk_plot_frame_y(&a->frame, fmin(p->high, a->top));
    const struct tmk_paint paint = {.stroke = colour, .width = 1.5};
    tmk_canvas_line(a->picture->canvas, x, low, x, high,
                    &(struct tmk_paint){.stroke = colour, .width = 1.5, .dash = TMK_DASH_DOTS});
    tmk_canvas_line(a->picture->canvas, x - 4, low, x + 4, low, &paint);
    tmk_canvas_line(a->picture->canvas, x - 4, high, x + 4, high, &paint);
}

static void draw_sign(const struct overview_graph *a, double x, double y, enum point_kind kind,
                      uint32_t colour)
{
    struct tmk_canvas *c = a->picture->canvas;
    const struct tmk_paint cross = {.stroke = colour, .width = 2.5};
    if (kind == MEASURED) {
        tmk_canvas_disc(c, x, y, 4.5, &(struct tmk_paint){.fill = colour});
    } else if (kind == ESTIMATED) {
        tmk_canvas_disc(c, x, y, 4.5,
                        &(struct tmk_paint){
                            .fill = a->picture->theme->background, .stroke = colour, .width = 1.5});
    } else {
        tmk_canvas_line(c, x - 5, y - 5, x + 5, y + 5, &cross);
        tmk_canvas_line(c, x - 5, y + 5, x + 5, y - 5, &cross);
    }
}

static void draw_points(struct overview_graph *a, uint32_t s)
{
    struct graph_point p;
    uint32_t colour = line_colour(a, s);
    for (uint32_t v = 0; v < param_of(a)->n_values; v++) {
        if (!point_at(a, s, v, &p) || is_above(a, &p))
            continue;
        char size[TMK_AMOUNT_BYTES];
        char *title =
            tmk_xformat("%s: %s%s", config_at(a, s, v)->name, p.kind == MEASURED ? "" : "about ",
                        tmk_size_text(tmk_size_whole(p.y), size));
        tmk_canvas_group(a->picture->canvas, title);
        if (p.kind == ESTIMATED)
            draw_bounds(a, point_x(a, v), &p, colour);
        draw_sign(a, point_x(a, v), tmk_plot_frame_y(&a->frame, p.y), p.kind, colour);
        tmk_canvas_ungroup(a->picture->canvas);
        free(title);
    }
}

/* ---- what is above the graph ---- */

/* Where a text at a value begins: at the edges of the graph it stays inside. */
static enum tmk_anchor anchor_at(const struct overview_graph *a, uint32_t v)
{
    double part = (point_x(a, v) - a->frame.left) / a->frame.width;
    return part > 0.88 ? TMK_ANCHOR_END : part < 0.12 ? TMK_ANCHOR_START : TMK_ANCHOR_MIDDLE;
}

/* Draw "× ↑47.2": an OOM, and the estimated need. */
static void draw_above(struct overview_graph *a, uint32_t s, uint32_t v,
                       const struct graph_point *p, unsigned row)
{
    char text[48];
    double y = p->y / tmk_plot_size_unit(a->top).size;
    if (p->known)
        snprintf(text, sizeof text, "%s↑%.*f", p->kind == REFUSED ? "× " : "",
                 y < 10     ? 2
                 : y < 1000 ? 1
                            : 0,
                 y);
    else
        snprintf(text, sizeof text, "× OOM");
    enum tmk_anchor anchor = anchor_at(a, v);
    static const double shifts[] = {-12, 0, 12};
    tmk_canvas_text(a->picture->canvas, point_x(a, v) + shifts[anchor],
                    a->frame.top + 14 + ABOVE_ROW * row, text,
                    &(struct tmk_text_style){.colour = line_colour(a, s),
                                             .halo = a->picture->theme->background,
                                             .is_bold = true,
                                             .anchor = anchor});
}

/* Draw the lines that are above the graph at this value, one below the other; false: none. */
static bool draw_all_at(struct overview_graph *a, uint32_t v)
{
    struct graph_point p;
    unsigned row = 0;
    for (uint32_t s = 0; s < n_lines(a) && row < MOST_ABOVE; s++)
        if (is_graph_line(a, s) && point_at(a, s, v, &p) && is_above(a, &p))
            draw_above(a, s, v, &p, row++);
    return row > 0;
}

/* Draw them from the last value on, leaving out values that are too close. */
static void draw_all_above(struct overview_graph *a)
{
    uint32_t n = param_of(a)->n_values, n_put = 0;
    double *put = tmk_xcalloc((size_t)n + 1, sizeof *put);
    for (uint32_t v = n; v-- > 0;) {
        bool is_free = true;
        for (uint32_t i = 0; i < n_put; i++)
            is_free &= fabs(point_x(a, v) - put[i]) > ABOVE_WIDTH;
        if (is_free && draw_all_at(a, v))
            put[n_put++] = point_x(a, v);
    }
    free(put);
}

/* Draw "1 of 3" beside a disc. */
static void draw_repeats(struct overview_graph *a)
{
    for (uint32_t v = 0; v < param_of(a)->n_values; v++)
        for (uint32_t s = 0; s < n_lines(a); s++) {
            if (!is_graph_line(a, s))
                continue;
            const struct tmk_survey_config *c = config_at(a, s, v);
            bool is_last = anchor_at(a, v) == TMK_ANCHOR_END;
            if (c->repeats)
                tmk_canvas_text(a->picture->canvas, point_x(a, v) + (is_last ? -8 : 8),
                                tmk_plot_frame_y(&a->frame, (double)c->cell->peak_allocated) + 16,
                                c->repeats,
                                &(struct tmk_text_style){.colour = a->picture->theme->warning,
                                                         .anchor = is_last ? TMK_ANCHOR_END
                                                                           : TMK_ANCHOR_START});
        }
}

/* Draw the fit between the values; without numbers, or a fit, connect the measured points. */
static void draw_curve(struct overview_graph *a, uint32_t s)
{
    const struct tmk_results *r = a->g->r;
    bool has_fit = a->g->fit && param_of(a)->numbers;
    uint32_t n = has_fit ? CURVE_POINTS + 1 : param_of(a)->n_values;
    double *numbers = tmk_xcalloc((size_t)r->n_params + 1, sizeof *numbers);
    struct tmk_point *points = tmk_xcalloc((size_t)n + 1, sizeof *points);
    size_t n_points = 0;
    config_at(a, s, 0);
    for (uint32_t p = 0; p < r->n_params; p++)
        numbers[p] = r->params[p].numbers ? r->params[p].numbers[a->choice[p]] : 0;
    for (uint32_t i = 0; i < n; i++) {
        double x = has_fit ? a->from + (a->to - a->from) * i / CURVE_POINTS : graph_x(a, i);
        struct tmk_estimate e = {0};
        if (has_fit) {
            numbers[a->p] = x;
            e = tmk_fit_at(a->g->fit, numbers, a->choice);
        } else {
            const struct tmk_survey_config *c = config_at(a, s, i);
            e = (struct tmk_estimate){.known = c->has_peak,
                                      .bytes = (double)c->cell->peak_allocated};
        }
        if (e.known)
            points[n_points++] = (struct tmk_point){tmk_plot_frame_x(&a->frame, x),
                                                    tmk_plot_frame_y(&a->frame, e.bytes)};
    }
    if (n_points > 1)
        tmk_canvas_path(a->picture->canvas, points, n_points, false,
                        &(struct tmk_paint){.stroke = line_colour(a, s), .width = 1.5});
    free(points);
    free(numbers);
}

/* ---- a graph ---- */

/* Make the name of x with the values of the other parameters: "seq, with rank=16 physical=4"; the
 * caller's. */
static char *make_x_name(const struct overview_graph *a)
{
    char *text = NULL;
    size_t n = 0;
    FILE *name = tmk_xmemstream(&text, &n);
    const struct tmk_results *r = a->g->r;
    const uint32_t *fixed = a->g->largest->cell->choice;
    const char *between = ", with ";
    fputs(a->g->n_order ? param_of(a)->name : a->g->largest->name, name);
    for (uint32_t i = 0; i < a->g->n_order; i++) {
        uint32_t p = a->g->order[i];
        if (p == a->p || p == a->series)
            continue;
        fprintf(name, "%s%s=%s", between, r->params[p].name, r->params[p].values[fixed[p]]);
        between = " ";
    }
    fclose(name);
    return text;
}

static void draw_graph_axes(const struct overview_graph *a)
{
    const struct tmk_sweep_param *param = param_of(a);
    const struct tmk_plot_frame *f = &a->frame;
    double last = -INFINITY, y = f->top + f->height;
    double room = fmin(VALUE, f->width / param->n_values);
    tmk_plot_frame_sizes(f);
    char *name = make_x_name(a);
    tmk_plot_frame_bottom(f, name);
    free(name);
    for (uint32_t v = 0; v < param->n_values; v++) {
        double x = point_x(a, v),
               half = fmin(tmk_text_width(param->values[v], 12, false), VALUE) / 2;
        if (param->numbers && x - half < last + 8)
            continue; /* there is no room for its name */
        tmk_canvas_line(a->picture->canvas, x, y, x, y + 4,
                        &(struct tmk_paint){.stroke = a->picture->theme->axis});
        tmk_canvas_text(a->picture->canvas, x, y + 17, param->values[v],
                        &(struct tmk_text_style){.colour = a->picture->theme->faint,
                                                 .anchor = TMK_ANCHOR_MIDDLE,
                                                 .most = param->numbers ? VALUE : room});
        last = x + half;
    }
    if (a->g->capacity)
        tmk_plot_frame_limit(f, (double)a->g->capacity);
}

/* ---- its legend ---- */

struct graph_key {
    struct tmk_legend_item items[MOST_LINES + 1];
    char *texts[MOST_LINES + 1];
    struct tmk_legend legend;
};

static void set_names(const struct overview_graph *a, struct graph_key *key, bool is_full)
{
    const struct tmk_sweep_param *p = a->lines;
    uint32_t n = 0;
    if (p && !is_full)
        key->texts[n++] = tmk_xstrdup(p->name);
    for (uint32_t s = 0; s < n_lines(a); s++) {
        if (!is_graph_line(a, s))
            continue;
        key->items[n].colour = line_colour(a, s);
        key->items[n].mark = TMK_LEGEND_DISC;
        key->texts[n++] = !p        ? tmk_xstrdup("measured")
                          : is_full ? tmk_xformat("%s=%s", p->name, p->values[s])
                                    : tmk_xstrdup(p->values[s]);
    }
    for (uint32_t i = 0; i < n; i++)
        key->items[i].text = key->texts[i];
    key->legend.items = key->items;
    key->legend.n = n;
}

static void key_fini(struct graph_key *key)
{
    for (uint32_t i = 0; i < TMK_N(key->texts); i++)
        free(key->texts[i]);
}

static double column_width(const struct tmk_survey *g)
{
    return (double)(TMK_PICTURE_WIDE - TMK_PICTURE_SIDE) / n_columns(g);
}

/* Make the legend: "seq=128" for each line if they fit in one row; else the name comes once before
 * the values. */
static void make_graph_key(const struct overview_graph *a, struct graph_key *ret)
{
    unsigned column = a->number % n_columns(a->g);
    struct tmk_legend legend = {.left = column * column_width(a->g) + LEFT,
                                .width = column_width(a->g) - LEFT - RIGHT};
    *ret = (struct graph_key){.legend = legend};
    set_names(a, ret, true);
    if (tmk_legend_rows(&ret->legend) < 2)
        return;
    key_fini(ret);
    *ret = (struct graph_key){.legend = legend};
    set_names(a, ret, false);
}

/* ---- position of a graph ---- */

static struct overview_graph make_graph(const struct tmk_survey *g, uint32_t number)
{
    struct overview_graph a = {.g = g,
                               .number = number,
                               .p = g->n_order ? g->order[number] : UINT32_MAX,
                               .series =
                                   g->n_order > 1 ? g->order[number == 0 ? 1 : 0] : UINT32_MAX};
    a.lines = a.series == UINT32_MAX ? NULL : &g->r->params[a.series];
    find_graph_range(&a);
    return a;
}

/* The rows of the largest legend, because all graphs have the same height. */
static unsigned key_rows(const struct tmk_survey *g)
{
    unsigned most = 1;
    for (uint32_t i = 0; i < n_graphs(g); i++) {
        struct overview_graph a = make_graph(g, i);
        struct graph_key key;
        make_graph_key(&a, &key);
        unsigned rows = tmk_legend_rows(&key.legend);
        most = rows > most ? rows : most;
        key_fini(&key);
    }
    return most;
}

static double graph_height(const struct tmk_survey *g)
{
    return n_columns(g) == 1 ? ONLY_GRAPH_HEIGHT : GRAPH_HEIGHT;
}

static double row_height(const struct tmk_survey *g)
{
    return key_rows(g) * TMK_LEGEND_ROW + ABOVE + graph_height(g) + BELOW;
}

static void lay_out_graph(struct overview_graph *a, const struct tmk_legend *legend, double top)
{
    double margin = a->to > a->from ? 0.06 * (a->to - a->from) : 0.5;
    a->frame = (struct tmk_plot_frame){.picture = a->picture,
                                       .left = legend->left,
                                       .top = top + key_rows(a->g) * TMK_LEGEND_ROW + ABOVE,
                                       .width = legend->width,
                                       .height = graph_height(a->g),
                                       .from = a->from - margin,
                                       .to = a->to + margin,
                                       .most = a->top};
}

static void draw_graph(struct overview_graph *a, double top)
{
    struct graph_key key;
    make_graph_key(a, &key);
    lay_out_graph(a, &key.legend, top);
    draw_graph_axes(a);
    tmk_legend_draw(&key.legend, a->picture, top);
    key_fini(&key);
    const struct tmk_plot_frame *f = &a->frame;
    tmk_canvas_clip(a->picture->canvas, f->left, f->top, f->width, f->height);
    for (uint32_t s = 0; s < n_lines(a); s++)
        if (is_graph_line(a, s))
            draw_curve(a, s);
    tmk_canvas_ungroup(a->picture->canvas);
    for (uint32_t s = 0; s < n_lines(a); s++)
        if (is_graph_line(a, s))
            draw_points(a, s);
    draw_all_above(a);
    draw_repeats(a);
}

/* ---- the picture ---- */

/* The top of the y axis: high enough for all measured peaks and, if it is near, for the
 * capacity. */
static double top_of(const struct tmk_survey *g)
{
    double most = (double)g->most, capacity = (double)g->capacity;
    bool has_refused = false;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        const struct tmk_cell *cell = g->configs[i].cell;
        struct tmk_estimate e = tmk_survey_estimate(g, &g->configs[i]);
        has_refused |= cell->outcome == TMK_CELL_OOM || cell->outcome == TMK_CELL_HOPELESS;
        if (cell->outcome != TMK_CELL_EXCLUDED && e.known && e.bytes > most)
            most = e.bytes;
    }
    double near = capacity > (double)g->most && has_refused ? capacity : (double)g->most;
    most = most > 2 * near ? 2 * near : most;
    if (capacity > most && (has_refused || capacity < 2 * most))
        most = capacity;
    return 1.12 * most;
}

/* The signs that the picture uses. */
struct graph_signs {
    bool estimated, above;
    bool refused, hopeless; /* ran out of memory; was not tried */
    bool known;             /* the estimate of one of these two is known */
};

static void note_graph_signs(struct overview_graph *a, struct graph_signs *signs)
{
    struct graph_point p;
    for (uint32_t s = 0; s < n_lines(a); s++)
        for (uint32_t v = 0; v < param_of(a)->n_values; v++) {
            if (!is_graph_line(a, s) || !point_at(a, s, v, &p))
                continue;
            signs->estimated |= p.kind == ESTIMATED && !is_above(a, &p);
            bool is_hopeless = config_at(a, s, v)->cell->outcome == TMK_CELL_HOPELESS;
            signs->refused |= p.kind == REFUSED && !is_hopeless;
            signs->hopeless |= p.kind == REFUSED && is_hopeless;
            signs->known |= p.kind == REFUSED && p.known;
            signs->above |= p.known && is_above(a, &p);
        }
}

/* Explain the signs. */
static char *make_overview_note(const struct tmk_survey *g, const struct graph_signs *signs,
                                double top)
{
    char size[TMK_AMOUNT_BYTES], *note = NULL;
    bool has_limit = g->capacity && (double)g->capacity <= top;
    const char *capacity = tmk_size_text(g->capacity, size);
    char *limit = has_limit     ? tmk_xformat("dashed capacity, %s", capacity)
                  : g->capacity ? tmk_xformat("capacity %s, above the graphs", capacity)
                                : NULL;
    char *cross = NULL;
    if (signs->refused || signs->hopeless)
        cross = tmk_xformat("× %s%s%s%s", signs->refused ? "ran out of memory" : "",
                            signs->refused && signs->hopeless ? " or " : "",
                            signs->hopeless ? "too big to try" : "",
                            signs->known ? ", at its estimate" : "");
    tmk_survey_note(&note, "discs measured");
    tmk_survey_note(&note, g->fit ? "lines fitted" : NULL);
    tmk_survey_note(&note, signs->estimated ? "rings estimated" : NULL);
    tmk_survey_note(&note, cross);
    tmk_survey_note(&note, signs->above ? "↑ estimated above the graph" : NULL);
    tmk_survey_note(&note, limit);
    tmk_survey_note(&note, g->repeats_note);
    free(cross);
    free(limit);
    return note;
}

/* Prepare the i-th graph for drawing, with the other choices as in the largest configuration. */
static struct overview_graph begin_graph(const struct tmk_survey *g, uint32_t i, uint32_t *choice,
                                         double top)
{
    struct overview_graph a = make_graph(g, i);
    a.choice = choice;
    a.top = top;
    memcpy(choice, g->largest->cell->choice, g->r->n_params * sizeof *choice);
    return a;
}

static void draw_overview_picture(const struct tmk_survey *g, const char *path,
                                  const struct tmk_plot_style *style, struct tmk_picture *p)
{
    double top = top_of(g);
    uint32_t *choice = tmk_xcalloc((size_t)g->r->n_params + 1, sizeof *choice);
    uint32_t n_rows = (n_graphs(g) + n_columns(g) - 1) / n_columns(g);
    struct graph_signs signs = {0};
    for (uint32_t i = 0; i < n_graphs(g); i++) {
        struct overview_graph a = begin_graph(g, i, choice, top);
        note_graph_signs(&a, &signs);
    }
    char *note = make_overview_note(g, &signs, top);
    char *title = tmk_survey_title(g, g->n_order ? "Peak memory against each parameter"
                                                 : "Peak memory of the only configuration");
    tmk_picture_open(p, path, style, TMK_PICTURE_WIDE,
                     tmk_picture_top(note, NULL) + n_rows * row_height(g));
    double y = tmk_picture_title(p, title, note, NULL);
    for (uint32_t i = 0; i < n_graphs(g); i++) {
        struct overview_graph a = begin_graph(g, i, choice, top);
        a.picture = p;
        draw_graph(&a, y + i / n_columns(g) * row_height(g));
    }
    free(title);
    free(note);
    free(choice);
}

const struct tmk_survey_picture tmk_survey_overview = {draw_overview_picture};
