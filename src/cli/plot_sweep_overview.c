/* SPDX-License-Identifier: MIT */
/* cli/plot_sweep_overview.c - the peak against each parameter: a graph each, in which lines are the
 * values of the parameter that matters most besides, and all others are as in the largest
 * configuration that was measured.
 *
 * Discs are measured, lines are the fit, rings are configurations that were not measured, with the
 * bounds of the estimate; a cross is one that ran out of memory. Of parameters that are no numbers
 * the values stand in a row. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plot.h"
#include "cli/plot_survey.h"
#include "cli/xalloc.h"
#include "kit/amount.h"
#include "kit/utf8.h"

enum {
    MOST_GRAPHS = 6,
    MOST_LINES = 6,
    GRAPH_HEIGHT = 400,
    TOP = 70,
    CURVE_POINTS = 60,
    MARK_LETTERS = 5, /* beside a line's name, and what gnuplot leaves between them */
    LONGEST_NAME = 32,
};

#define LETTER 0.0075 /* of the picture's width; so are those beside a graph */
#define LEFT_SIDE 0.065
#define SIDES 0.085

struct graph {
    const struct tmk_survey *g;
    FILE *out;
    const struct tmk_theme *theme;
    uint32_t number;
    uint32_t p;      /* along x; UINT32_MAX: no parameter has several values */
    uint32_t series; /* a line each of its values; UINT32_MAX: one line */
    uint32_t *choice;
    struct tmk_plot_unit unit;
    double top; /* of y, in units */
};

static uint32_t n_graphs(const struct tmk_survey *g)
{
    return g->n_order < MOST_GRAPHS ? (g->n_order ? g->n_order : 1) : MOST_GRAPHS;
}

static uint32_t n_columns(const struct tmk_survey *g)
{
    return n_graphs(g) == 1 ? 1 : 2;
}

static unsigned height_of(const struct tmk_survey *g)
{
    uint32_t n_rows = (n_graphs(g) + n_columns(g) - 1) / n_columns(g);
    return TOP + n_rows * (n_columns(g) == 1 ? 530 : GRAPH_HEIGHT);
}

/* ---- along x ---- */

/* Where there is nothing to compare, the only configuration is a point above its name. */
static const struct tmk_sweep_param *param_of(const struct graph *a)
{
    static const char *names[] = {""};
    static const struct tmk_sweep_param none = {.name = "", .values = names, .n_values = 1};
    return a->p == UINT32_MAX ? &none : &a->g->r->params[a->p];
}

static double x_of(const struct graph *a, uint32_t v)
{
    return param_of(a)->numbers ? param_of(a)->numbers[v] : v;
}

static uint32_t n_lines(const struct graph *a)
{
    return a->series == UINT32_MAX ? 1 : a->g->r->params[a->series].n_values;
}

/* Of more values than lines are readable, some spread over them. */
static bool is_line(const struct graph *a, uint32_t s)
{
    uint32_t n = n_lines(a);
    if (n <= MOST_LINES)
        return true;
    for (uint32_t k = 0; k < MOST_LINES; k++)
        if (s == k * (n - 1) / (MOST_LINES - 1))
            return true;
    return false;
}

static const struct tmk_survey_config *config_at(struct graph *a, uint32_t s, uint32_t v)
{
    if (a->p != UINT32_MAX)
        a->choice[a->p] = v;
    if (a->series != UINT32_MAX)
        a->choice[a->series] = s;
    return tmk_survey_at(a->g, a->choice);
}

/* ---- data: measured, estimated, refused, and the curve ---- */

static void put_measured(struct graph *a, uint32_t s)
{
    fprintf(a->out, "$m%u_%u << EOD\nNaN NaN\n", a->number, s);
    for (uint32_t v = 0; v < param_of(a)->n_values; v++) {
        const struct tmk_survey_config *c = config_at(a, s, v);
        if (c->has_peak)
            fprintf(a->out, "%.9g %.7g\n", x_of(a, v),
                    (double)c->cell->peak_allocated / a->unit.size);
    }
    fputs("EOD\n", a->out);
}

/* x, estimate, low, high: of those not measured, `refused` or not. */
static void put_estimated(struct graph *a, uint32_t s, bool refused)
{
    fprintf(a->out, "$%c%u_%u << EOD\nNaN NaN NaN NaN\n", refused ? 'o' : 'e', a->number, s);
    for (uint32_t v = 0; v < param_of(a)->n_values; v++) {
        const struct tmk_survey_config *c = config_at(a, s, v);
        bool is_refused =
            c->cell && (c->cell->outcome == TMK_CELL_OOM || c->cell->outcome == TMK_CELL_HOPELESS);
        struct tmk_estimate e = tmk_survey_estimate(a->g, c);
        if (c->has_peak || !c->cell || c->cell->outcome == TMK_CELL_EXCLUDED ||
            is_refused != refused || (!e.known && !refused))
            continue;
        double unit = a->unit.size, y = e.known ? e.bytes / unit : a->top;
        double low = e.known ? e.low / unit : y, high = e.known ? e.high / unit : y;
        y = y > a->top ? a->top * 0.98 : y;
        fprintf(a->out, "%.9g %.7g %.7g %.7g\n", x_of(a, v), y, low, high);
    }
    fputs("EOD\n", a->out);
}

/* What the fit says between the values; without numbers, or a fit, through those measured. */
static void put_curve(struct graph *a, uint32_t s)
{
    const struct tmk_results *r = a->g->r;
    double *numbers = tmk_xcalloc((size_t)r->n_params + 1, sizeof *numbers);
    uint32_t n = param_of(a)->n_values;
    fprintf(a->out, "$c%u_%u << EOD\nNaN NaN\n", a->number, s);
    config_at(a, s, 0);
    for (uint32_t p = 0; p < r->n_params; p++)
        numbers[p] = r->params[p].numbers ? r->params[p].numbers[a->choice[p]] : 0;
    double from = x_of(a, 0), to = from;
    for (uint32_t v = 0; v < n; v++) {
        from = x_of(a, v) < from ? x_of(a, v) : from;
        to = x_of(a, v) > to ? x_of(a, v) : to;
    }
    for (unsigned i = 0; a->g->f && param_of(a)->numbers && i <= CURVE_POINTS; i++) {
        numbers[a->p] = from + (to - from) * i / CURVE_POINTS;
        struct tmk_estimate e = tmk_fit_at(a->g->f, numbers, a->choice);
        if (e.known)
            fprintf(a->out, "%.9g %.7g\n", numbers[a->p], e.bytes / a->unit.size);
    }
    for (uint32_t v = 0; !(a->g->f && param_of(a)->numbers) && v < n; v++) {
        const struct tmk_survey_config *c = config_at(a, s, v);
        if (c->has_peak)
            fprintf(a->out, "%.9g %.7g\n", x_of(a, v),
                    (double)c->cell->peak_allocated / a->unit.size);
    }
    fputs("EOD\n", a->out);
    free(numbers);
}

/* ---- a graph ---- */

/* What the others are: "rank=16 physical=4". */
static void put_others(const struct graph *a)
{
    char *text = NULL;
    size_t n = 0;
    FILE *name = tmk_xmemstream(&text, &n);
    const struct tmk_results *r = a->g->r;
    const uint32_t *fixed = a->g->configs[a->g->largest].cell->choice;
    const char *between = ", with ";
    char *only = tmk_survey_name(a->g, &a->g->configs[a->g->largest]);
    fputs(a->g->n_order ? param_of(a)->name : only, name);
    free(only);
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

static void put_axes(const struct graph *a)
{
    const struct tmk_sweep_param *param = param_of(a);
    double from = x_of(a, 0), to = from;
    bool is_number = param->numbers != NULL;
    for (uint32_t v = 0; v < param->n_values; v++) {
        from = x_of(a, v) < from ? x_of(a, v) : from;
        to = x_of(a, v) > to ? x_of(a, v) : to;
    }
    double margin = to > from ? 0.06 * (to - from) : 0.5;
    fprintf(a->out, "set xrange [%.9g:%.9g]\nset yrange [0:%.7g]\nset ylabel '%s'\nset xtics (",
            from - margin, to + margin, a->top, a->unit.name);
    double last = from;
    const char *between = "";
    for (uint32_t v = 0; v < param->n_values; v++) {
        size_t letters = tmk_utf8_width(param->values[v]) + 2;
        double room = (double)letters * LETTER * (to - from + 2 * margin) * n_columns(a->g);
        if (is_number && x_of(a, v) - last < room && v > 0)
            continue; /* for its name there is none */
        fputs(between, a->out);
        tmk_gnuplot_short_text(a->out, param->values[v], 14);
        fprintf(a->out, " %.9g", x_of(a, v));
        last = x_of(a, v);
        between = ", ";
    }
    fputs(")\n", a->out);
    put_others(a);
    double capacity = (double)a->g->capacity / a->unit.size;
    if (a->g->capacity && capacity <= a->top)
        tmk_plot_limit(a->out, a->theme, capacity, NULL);
}

/* Letters for which there is room above a graph. */
static double room_above(const struct graph *a)
{
    return (1.0 / n_columns(a->g) - SIDES) / LETTER;
}

/* Do "seq=128" of all lines stand in one row? Else the name stands before them once. */
static bool has_full_names(const struct graph *a)
{
    const struct tmk_sweep_param *p = &a->g->r->params[a->series];
    size_t letters = 0;
    for (uint32_t s = 0; s < n_lines(a); s++)
        if (is_line(a, s))
            letters += tmk_utf8_width(p->name) + 1 + tmk_utf8_width(p->values[s]) + MARK_LETTERS;
    return (double)letters <= room_above(a);
}

static void put_key(const struct graph *a)
{
    double from = 0;
    if (a->series != UINT32_MAX && !has_full_names(a)) {
        const char *name = a->g->r->params[a->series].name;
        fputs("set label ", a->out);
        tmk_gnuplot_short_text(a->out, name, LONGEST_NAME);
        fprintf(a->out, " at graph 0, graph 1 left offset 0,0.5 textcolor rgb '%s'\n",
                a->theme->faint);
        size_t letters = tmk_utf8_width(name);
        from = (double)(letters < LONGEST_NAME ? letters : LONGEST_NAME) / room_above(a);
    }
    fprintf(a->out,
            "set key at graph %.4f, graph 1 left bottom horizontal Left reverse samplen 1\n", from);
}

static void put_line(const struct graph *a, uint32_t s, unsigned colour_i, const char *between)
{
    const char *colour = tmk_palette_colour(colour_i);
    unsigned n = a->number;
    fprintf(a->out,
            "%s$c%u_%u with lines linewidth 1.5 linecolor rgb '%s' notitle, "
            "$e%u_%u using 1:2:3:4 with yerrorbars pointtype 6 pointsize 1.2 linewidth 1.5 "
            "dashtype 2 linecolor rgb '%s' notitle, "
            "$m%u_%u with points pointtype 7 pointsize 1.3 linecolor rgb '%s' title ",
            between, n, s, colour, n, s, colour, n, s, colour);
    const struct tmk_sweep_param *p = a->series == UINT32_MAX ? NULL : &a->g->r->params[a->series];
    char *name = !p                  ? tmk_xstrdup("measured")
                 : has_full_names(a) ? tmk_xformat("%s=%s", p->name, p->values[s])
                                     : tmk_xstrdup(p->values[s]);
    tmk_gnuplot_short_text(a->out, name, 24);
    free(name);
    fprintf(a->out,
            ", $o%u_%u using 1:2 with points pointtype 2 pointsize 1.4 linewidth 2.5 linecolor rgb "
            "'%s' notitle",
            n, s, a->theme->warning);
}

static void put_graph(struct graph *a)
{
    unsigned n_drawn = 0;
    for (uint32_t s = 0; s < n_lines(a); s++) {
        if (!is_line(a, s))
            continue;
        put_measured(a, s);
        put_estimated(a, s, false);
        put_estimated(a, s, true);
        put_curve(a, s);
    }
    put_axes(a);
    put_key(a);
    for (uint32_t s = 0; s < n_lines(a); s++)
        if (is_line(a, s)) {
            put_line(a, s, n_drawn, n_drawn ? ", " : "plot ");
            n_drawn++;
        }
    fputc('\n', a->out);
}

static void place_graph(const struct graph *a)
{
    unsigned height = height_of(a->g), columns = n_columns(a->g);
    unsigned row = a->number / columns, column = a->number % columns;
    double h = (height - TOP) / (double)height / ((n_graphs(a->g) + columns - 1) / columns);
    double top = 1 - (double)TOP / height - row * h, w = 1.0 / columns;
    fprintf(a->out,
            "set lmargin at screen %.4f\nset rmargin at screen %.4f\n"
            "set tmargin at screen %.4f\nset bmargin at screen %.4f\n",
            column * w + LEFT_SIDE, (column + 1) * w - (SIDES - LEFT_SIDE), top - 28.0 / height,
            top - h + 84.0 / height);
}

/* ---- the picture ---- */

/* High enough for what was measured and, where it is near, for what there is. */
static double top_of(const struct tmk_survey *g)
{
    double most = (double)g->most, capacity = (double)g->capacity;
    bool has_refused = false;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        const struct tmk_cell *cell = g->configs[i].cell;
        struct tmk_estimate e = tmk_survey_estimate(g, &g->configs[i]);
        has_refused |=
            cell && (cell->outcome == TMK_CELL_OOM || cell->outcome == TMK_CELL_HOPELESS);
        if (cell && cell->outcome != TMK_CELL_EXCLUDED && e.known && e.bytes > most)
            most = e.bytes;
    }
    double near = capacity > (double)g->most && has_refused ? capacity : (double)g->most;
    most = most > 1.4 * near ? 1.4 * near : most;
    if (capacity > most && (has_refused || capacity < 2 * most))
        most = capacity;
    return 1.12 * most;
}

static void put_heading(const struct tmk_survey *g, struct tmk_gnuplot *plot, double top)
{
    char size[TMK_AMOUNT_BYTES];
    bool has_limit = g->capacity && (double)g->capacity <= top;
    char *title = tmk_survey_title(g, g->n_order ? "Peak memory against each parameter"
                                                 : "Peak memory of the only configuration");
    char *note = tmk_xformat("discs measured%s   crosses ran out of memory%s%s",
                             g->f ? "   lines fitted   rings estimated" : "",
                             has_limit ? "   dashed capacity, " : "",
                             has_limit ? tmk_size_text(g->capacity, size) : "");
    tmk_gnuplot_heading(plot, title, note);
    free(title);
    free(note);
}

static void put(const struct tmk_survey *g, struct tmk_gnuplot *plot)
{
    FILE *out = tmk_gnuplot_script(plot);
    double top = top_of(g);
    struct tmk_plot_unit unit = tmk_plot_size_unit(top);
    uint32_t *choice = tmk_xcalloc((size_t)g->r->n_params + 1, sizeof *choice);
    fputs("set multiplot\n", out);
    for (uint32_t i = 0; i < n_graphs(g); i++) {
        struct graph a = {.g = g,
                          .out = out,
                          .theme = tmk_gnuplot_theme(plot),
                          .number = i,
                          .p = g->n_order ? g->order[i] : UINT32_MAX,
                          .series = UINT32_MAX,
                          .choice = choice,
                          .unit = unit,
                          .top = top / unit.size};
        if (g->n_order > 1)
            a.series = g->order[i == 0 ? 1 : 0];
        memcpy(choice, g->configs[g->largest].cell->choice, g->r->n_params * sizeof *choice);
        fputs("unset label\nunset arrow\n", out);
        if (i == 0)
            put_heading(g, plot, top);
        place_graph(&a);
        put_graph(&a);
    }
    fputs("unset multiplot\n", out);
    free(choice);
}

const struct tmk_survey_picture tmk_survey_overview = {height_of, put};
