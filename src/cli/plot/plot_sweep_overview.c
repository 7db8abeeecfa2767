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
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/palette.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_survey.h"
#include "kit/amount.h"
#include "kit/utf8.h"
#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"

enum {
    MOST_GRAPHS = 6,
    MOST_LINES = 6,
    GRAPH_HEIGHT = 380, /* points, and so are the next two */
    TOP = 70,
    BELOW = 84,
    CURVE_POINTS = 60,
    MOST_ABOVE = 3, /* lines of text at the top */
    ABOVE_LETTERS = 18,
};

#define LEFT_SIDE 0.065 /* beside a graph, as a share of the picture's width */
#define SIDES 0.085

struct overview_graph {
    const struct tmk_survey *g;
    FILE *out;
    const struct tmk_theme *theme;
    uint32_t number;
    uint32_t p;      /* the parameter along x; UINT32_MAX: none has several values */
    uint32_t series; /* the parameter with a line for each value; UINT32_MAX: one line */
    const struct tmk_sweep_param *lines; /* that parameter; NULL: one line */
    uint32_t *choice;
    struct tmk_plot_unit unit;
    double from, to; /* range of x */
    double top;      /* top of y, in units */
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

static const char *line_colour(const struct overview_graph *a, uint32_t s)
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
    double unit = a->unit.size, peak = (double)c->cell->peak_allocated / unit;
    struct tmk_estimate e = tmk_survey_estimate(a->g, c);
    bool is_refused = c->cell->outcome == TMK_CELL_OOM || c->cell->outcome == TMK_CELL_HOPELESS;
    *ret = (struct graph_point){ESTIMATED, e.known, e.bytes / unit, e.low / unit, e.high / unit};
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

/* Write points as x, y, low, high. */
static void put_graph_points(struct overview_graph *a, uint32_t s, enum point_kind kind)
{
    struct graph_point p;
    fprintf(a->out, "$%c%u_%u << EOD\nNaN NaN NaN NaN\n", "meo"[kind], a -> number, s);
    for (uint32_t v = 0; v < param_of(a)->n_values; v++)
        if (point_at(a, s, v, &p) && p.kind == kind && !is_above(a, &p))
            fprintf(a->out, "%.9g %.7g %.7g %.7g\n", graph_x(a, v), p.y, p.low, p.high);
    fputs("EOD\n", a->out);
}

/* Write "× ↑47.2": an OOM, and the estimated need. */
static void put_above(struct overview_graph *a, uint32_t s, uint32_t v, const struct graph_point *p,
                      unsigned row)
{
    char text[48];
    if (p->known)
        snprintf(text, sizeof text, "%s↑%.*f", p->kind == REFUSED ? "× " : "",
                 p->y < 10     ? 2
                 : p->y < 1000 ? 1
                               : 0,
                 p->y);
    else
        snprintf(text, sizeof text, "× OOM");
    double part = a->to > a->from ? (graph_x(a, v) - a->from) / (a->to - a->from) : 0.5;
    fprintf(a->out,
            "set label '%s' at first %.9g, graph 1 %s front boxed offset %s,%.1f textcolor rgb "
            "'%s'\n",
            text, graph_x(a, v),
            part > 0.9   ? "right"
            : part < 0.1 ? "left"
                         : "center",
            part > 0.9   ? "1.5"
            : part < 0.1 ? "-1.5"
                         : "0",
            -0.8 - 1.2 * row, line_colour(a, s));
}

/* Write the lines that are above the graph at this value, one below the other; false: none. */
static bool put_all_at(struct overview_graph *a, uint32_t v)
{
    struct graph_point p;
    unsigned row = 0;
    for (uint32_t s = 0; s < n_lines(a) && row < MOST_ABOVE; s++)
        if (is_graph_line(a, s) && point_at(a, s, v, &p) && is_above(a, &p))
            put_above(a, s, v, &p, row++);
    return row > 0;
}

/* Write them from the last value on, leaving out values that are too close. */
static void put_all_above(struct overview_graph *a)
{
    double room = ABOVE_LETTERS * TMK_LETTER * n_columns(a->g) * (a->to - a->from);
    uint32_t n = param_of(a)->n_values, n_put = 0;
    double *put = tmk_xcalloc((size_t)n + 1, sizeof *put);
    for (uint32_t v = n; v-- > 0;) {
        bool is_free = true;
        for (uint32_t i = 0; i < n_put; i++)
            is_free &= fabs(graph_x(a, v) - put[i]) > room;
        if (is_free && put_all_at(a, v))
            put[n_put++] = graph_x(a, v);
    }
    free(put);
}

/* Write "1 of 3" beside a disc. */
static void put_repeats(struct overview_graph *a)
{
    for (uint32_t v = 0; v < param_of(a)->n_values; v++)
        for (uint32_t s = 0; s < n_lines(a); s++) {
            if (!is_graph_line(a, s))
                continue;
            const struct tmk_survey_config *c = config_at(a, s, v);
            bool is_last = graph_x(a, v) > a->from + 0.9 * (a->to - a->from);
            if (c->repeats)
                fprintf(a->out,
                        "set label '%s' at first %.9g, first %.7g %s front offset %s,-0.7 "
                        "textcolor rgb '%s'\n",
                        c->repeats, graph_x(a, v), (double)c->cell->peak_allocated / a->unit.size,
                        is_last ? "right" : "left", is_last ? "-0.8" : "0.8", a->theme->warning);
        }
}

/* Draw the fit between the values; without numbers, or a fit, connect the measured points. */
static void put_curve(struct overview_graph *a, uint32_t s)
{
    const struct tmk_results *r = a->g->r;
    double *numbers = tmk_xcalloc((size_t)r->n_params + 1, sizeof *numbers);
    uint32_t n = param_of(a)->n_values;
    fprintf(a->out, "$c%u_%u << EOD\nNaN NaN\n", a->number, s);
    config_at(a, s, 0);
    for (uint32_t p = 0; p < r->n_params; p++)
        numbers[p] = r->params[p].numbers ? r->params[p].numbers[a->choice[p]] : 0;
    for (unsigned i = 0; a->g->fit && param_of(a)->numbers && i <= CURVE_POINTS; i++) {
        numbers[a->p] = a->from + (a->to - a->from) * i / CURVE_POINTS;
        struct tmk_estimate e = tmk_fit_at(a->g->fit, numbers, a->choice);
        if (e.known)
            fprintf(a->out, "%.9g %.7g\n", numbers[a->p], e.bytes / a->unit.size);
    }
    for (uint32_t v = 0; !(a->g->fit && param_of(a)->numbers) && v < n; v++) {
        const struct tmk_survey_config *c = config_at(a, s, v);
        if (c->has_peak)
            fprintf(a->out, "%.9g %.7g\n", graph_x(a, v),
                    (double)c->cell->peak_allocated / a->unit.size);
    }
    fputs("EOD\n", a->out);
    free(numbers);
}

/* ---- a graph ---- */

/* Write the values of the other parameters: "rank=16 physical=4". */
static void put_others(const struct overview_graph *a)
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
    fputs("set xlabel ", a->out);
    tmk_gnuplot_short_text(a->out, text, n_columns(a->g) == 1 ? 110 : 60);
    fputc('\n', a->out);
    free(text);
}

static void put_graph_axes(const struct overview_graph *a)
{
    const struct tmk_sweep_param *param = param_of(a);
    double from = a->from, to = a->to;
    bool is_number = param->numbers != NULL;
    double margin = to > from ? 0.06 * (to - from) : 0.5;
    fprintf(a->out, "set xrange [%.9g:%.9g]\nset yrange [0:%.7g]\nset ylabel '%s'\nset xtics (",
            from - margin, to + margin, a->top, a->unit.name);
    double last = from;
    const char *between = "";
    for (uint32_t v = 0; v < param->n_values; v++) {
        size_t letters = tmk_utf8_width(param->values[v]) + 2;
        double room = (double)letters * TMK_LETTER * (to - from + 2 * margin) * n_columns(a->g);
        if (is_number && graph_x(a, v) - last < room && v > 0)
            continue; /* there is no room for its name */
        fputs(between, a->out);
        tmk_gnuplot_tic(a->out, param->values[v], 14);
        fprintf(a->out, " %.9g", graph_x(a, v));
        last = graph_x(a, v);
        between = ", ";
    }
    fputs(")\n", a->out);
    put_others(a);
    double capacity = (double)a->g->capacity / a->unit.size;
    if (a->g->capacity && capacity <= a->top)
        tmk_plot_limit(a->out, a->theme, capacity, NULL);
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

/* Make the legend: "seq=128" for each line if they fit in one row; else the name comes once before
 * the values. */
static void make_graph_key(const struct overview_graph *a, struct graph_key *ret)
{
    unsigned column = a->number % n_columns(a->g);
    double width = 1.0 / n_columns(a->g);
    struct tmk_legend legend = {
        .left = column * width + LEFT_SIDE, .width = width - SIDES, .is_disc = true};
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

static unsigned row_height(const struct tmk_survey *g)
{
    return (n_columns(g) == 1 ? 510 : GRAPH_HEIGHT) + key_rows(g) * TMK_LEGEND_ROW;
}

static unsigned overview_height(const struct tmk_survey *g)
{
    uint32_t n_rows = (n_graphs(g) + n_columns(g) - 1) / n_columns(g);
    return TOP + n_rows * row_height(g);
}

static void place_graph(const struct overview_graph *a, const struct tmk_legend *legend)
{
    unsigned height = overview_height(a->g), row = a->number / n_columns(a->g);
    double top = (double)height - TOP - row * (double)row_height(a->g);
    double graph_top = top - key_rows(a->g) * (double)TMK_LEGEND_ROW - 6;
    fprintf(a->out,
            "set lmargin at screen %.4f\nset rmargin at screen %.4f\n"
            "set tmargin at screen %.4f\nset bmargin at screen %.4f\n",
            legend->left, legend->left + legend->width, graph_top / height,
            (top - row_height(a->g) + BELOW) / height);
    tmk_legend_put(legend, a->out, a->theme, graph_top + 16, height);
}

/* ---- the script of a graph ---- */

static void put_graph_line(const struct overview_graph *a, uint32_t s, const char *between)
{
    const char *colour = line_colour(a, s);
    unsigned n = a->number;
    fprintf(a->out,
            "%s$c%u_%u with lines linewidth 1.5 linecolor rgb '%s' notitle, "
            "$e%u_%u using 1:2:3:4 with yerrorbars pointtype 6 pointsize 1.2 linewidth 1.5 "
            "dashtype 2 linecolor rgb '%s' notitle, "
            "$m%u_%u with points pointtype 7 pointsize 1.3 linecolor rgb '%s' notitle, "
            "$o%u_%u using 1:2 with points pointtype 2 pointsize 1.6 linewidth 2.5 linecolor rgb "
            "'%s' notitle",
            between, n, s, colour, n, s, colour, n, s, colour, n, s, colour);
}

static void put_graph(struct overview_graph *a)
{
    struct graph_key key;
    const char *between = "plot ";
    make_graph_key(a, &key);
    place_graph(a, &key.legend);
    key_fini(&key);
    for (uint32_t s = 0; s < n_lines(a); s++) {
        if (!is_graph_line(a, s))
            continue;
        for (enum point_kind kind = MEASURED; kind <= REFUSED; kind++)
            put_graph_points(a, s, kind);
        put_curve(a, s);
    }
    put_graph_axes(a);
    put_all_above(a);
    put_repeats(a);
    for (uint32_t s = 0; s < n_lines(a); s++)
        if (is_graph_line(a, s)) {
            put_graph_line(a, s, between);
            between = ", ";
        }
    fputc('\n', a->out);
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
    char *limit =
        has_limit ? tmk_xformat("dashed capacity, %s", tmk_size_text(g->capacity, size)) : NULL;
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

static void put_overview_heading(const struct tmk_survey *g, struct tmk_gnuplot *plot, char *note)
{
    char *title = tmk_survey_title(g, g->n_order ? "Peak memory against each parameter"
                                                 : "Peak memory of the only configuration");
    tmk_gnuplot_heading(plot, title, note);
    free(title);
}

/* Prepare the i-th graph for drawing, with the other choices as in the largest configuration. */
static struct overview_graph begin_graph(const struct tmk_survey *g, uint32_t i,
                                         struct tmk_gnuplot *plot, uint32_t *choice, double top)
{
    struct overview_graph a = make_graph(g, i);
    a.out = tmk_gnuplot_script(plot);
    a.theme = tmk_gnuplot_theme(plot);
    a.choice = choice;
    a.unit = tmk_plot_size_unit(top);
    a.top = top / a.unit.size;
    memcpy(choice, g->largest->cell->choice, g->r->n_params * sizeof *choice);
    return a;
}

static void put_overview_plot(const struct tmk_survey *g, struct tmk_gnuplot *plot)
{
    FILE *out = tmk_gnuplot_script(plot);
    double top = top_of(g);
    uint32_t *choice = tmk_xcalloc((size_t)g->r->n_params + 1, sizeof *choice);
    struct graph_signs signs = {0};
    for (uint32_t i = 0; i < n_graphs(g); i++) {
        struct overview_graph a = begin_graph(g, i, plot, choice, top);
        note_graph_signs(&a, &signs);
    }
    char *note = make_overview_note(g, &signs, top);
    fputs("set multiplot\nunset key\n", out);
    put_overview_heading(g, plot, note);
    for (uint32_t i = 0; i < n_graphs(g); i++) {
        struct overview_graph a = begin_graph(g, i, plot, choice, top);
        put_graph(&a);
        fputs("unset label\nunset arrow\n", out);
    }
    fputs("unset multiplot\n", out);
    free(note);
    free(choice);
}

const struct tmk_survey_picture tmk_survey_overview = {overview_height, put_overview_plot};
