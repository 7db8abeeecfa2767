/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_sweep_bars.c - the memory of each configuration at its peak: by component and by
 * category; and by the stage that allocated it, beside each stage's need. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot_bars.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_survey.h"
#include "kit/amount.h"
#include "kit/utf8.h"
#include "sweep/results.h"
#include "sweep/survey.h"

enum { /* points, except the first two */
       MOST_BARS = 40,
       LONGEST_NAME = 36, /* columns */
       TITLE = 50,
       TITLE_AND_NOTE = 70,
       BOTTOM = 76,
       LEAST_ROW = 30,
       PIECE_HEIGHT = 5,
       LEAST_GRAPH = 120,
       MOST_GRAPH = 1800,
};

#define RIGHT 0.985 /* share of the picture's width */

static uint32_t n_bars(const struct tmk_survey *g)
{
    return g->n_measured < MOST_BARS ? g->n_measured : MOST_BARS;
}

/* ---- choosing configurations ---- */

static int compare_bars_by_peak(const void *va, const void *vb)
{
    const struct tmk_survey_config *a = va, *b = vb;
    uint64_t x = a->cell->peak_allocated, y = b->cell->peak_allocated;
    return x != y ? (x > y ? -1 : 1) : a->number < b->number ? -1 : 1;
}

/* List the measured configurations, the largest first, as many as fit; the caller's. */
static struct tmk_survey_config *pick_largest_configs(const struct tmk_survey *g)
{
    struct tmk_survey_config *picked = tmk_xcalloc((size_t)g->n_measured + 1, sizeof *picked);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_configs; i++)
        if (g->configs[i].has_peak)
            picked[n++] = g->configs[i];
    qsort(picked, n, sizeof *picked, compare_bars_by_peak);
    return picked;
}

/* Whether the name of one would be cut. */
static bool is_long(const struct tmk_survey *g, const struct tmk_survey_config *picked)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < n_bars(g); i++) {
        size_t width = tmk_utf8_width(picked[i].name);
        longest = width > longest ? width : longest;
    }
    return longest > LONGEST_NAME;
}

/* Make a text about missing configurations, which the picture shows too; the caller's, NULL: none
 * is missing. */
static char *missing_text(const struct tmk_survey *g)
{
    return g->n_measured > MOST_BARS
               ? tmk_xformat("the %d largest of %u measured", MOST_BARS, g->n_measured)
               : NULL;
}

static void say_missing(const struct tmk_survey *g)
{
    if (g->n_measured > MOST_BARS)
        tmk_say("of %u configurations the %d largest are drawn", g->n_measured, MOST_BARS);
}

static void add_shares(struct tmk_bars *bars, const char *name, const struct tmk_shares *shares,
                       uint64_t peak)
{
    uint64_t known = 0;
    for (uint32_t i = 0; i < shares->n; i++) {
        const struct tmk_share *s = &shares->rows[i];
        tmk_bars_add(bars, name, s->key ? s->key : "unknown", s->bytes);
        known += s->bytes;
    }
    if (known < peak)
        tmk_bars_add(bars, name, "unknown", peak - known);
}

/* ---- two graphs side by side ---- */

struct plot_side {
    struct tmk_bars bars;
    const char *name;
    struct tmk_legend_item *items;
    struct tmk_legend legend;
};

struct two_plots {
    struct plot_side left, right;
    bool is_short;   /* bars are named by values only */
    char *note;      /* below the title; NULL: none */
    unsigned n_rows; /* rows of the legends */
    unsigned top;    /* points above the graphs */
    unsigned height;
};

static void set_legend(struct plot_side *side, double left, double right)
{
    side->items = tmk_bars_legend(&side->bars, &side->legend.n);
    side->legend.items = side->items;
    side->legend.left = left;
    side->legend.width = right - left;
}

/* Lay out two graphs, with room for rows of the legends, and for pieces of bars that are one below
 * the other. */
static void lay_out_two(struct two_plots *t, const struct tmk_survey *g)
{
    double left = tmk_bars_names_width(&t->left.bars), middle = left + (RIGHT - left) / 2;
    set_legend(&t->left, left, middle - 0.015);
    set_legend(&t->right, middle + 0.015, RIGHT);
    unsigned left_rows = tmk_legend_rows(&t->left.legend);
    t->n_rows = tmk_legend_rows(&t->right.legend);
    t->n_rows = left_rows > t->n_rows ? left_rows : t->n_rows;
    uint32_t n_bars = t->left.bars.n_bars;
    unsigned row = t->right.bars.is_beside ? PIECE_HEIGHT * t->right.bars.n_keys + 8 : 0;
    row = row < LEAST_ROW ? LEAST_ROW : row;
    unsigned graph = n_bars * row < LEAST_GRAPH ? LEAST_GRAPH : n_bars * row;
    graph = graph > MOST_GRAPH ? MOST_GRAPH : graph;
    char *rows = t->is_short ? tmk_xformat("rows: %s", g->names) : NULL;
    char *missing = missing_text(g);
    tmk_survey_note(&t->note, rows);
    tmk_survey_note(&t->note, missing);
    tmk_survey_note(&t->note, g->repeats_note);
    free(missing);
    free(rows);
    t->top = (t->note ? TITLE_AND_NOTE : TITLE) + t->n_rows * TMK_LEGEND_ROW;
    t->height = t->top + graph + BOTTOM;
}

static void two_fini(struct two_plots *t)
{
    tmk_bars_fini(&t->left.bars);
    tmk_bars_fini(&t->right.bars);
    free(t->note);
    free(t->left.items);
    free(t->right.items);
}

static void put_side(const struct two_plots *t, const struct plot_side *side,
                     struct tmk_gnuplot *plot)
{
    FILE *out = tmk_gnuplot_script(plot);
    const struct tmk_theme *theme = tmk_gnuplot_theme(plot);
    tmk_legend_put(&side->legend, out, theme, t->height - t->top + TMK_LEGEND_ROW * 0.6, t->height);
    tmk_bars_put(&side->bars, out, theme,
                 &(struct tmk_bars_place){.left = side->legend.left,
                                          .right = side->legend.left + side->legend.width,
                                          .no_names = side == &t->right,
                                          .no_key = true,
                                          .label = side->name});
    fputs("unset label\nunset arrow\nunset object\n", out);
}

static void put_two(const struct tmk_survey *g, struct tmk_gnuplot *plot, const struct two_plots *t,
                    const char *what)
{
    FILE *out = tmk_gnuplot_script(plot);
    char *title = tmk_survey_title(g, what);
    fputs("set multiplot\nunset key\n", out);
    tmk_gnuplot_heading(plot, title, t->note);
    fprintf(out, "set tmargin at screen %.4f\nset bmargin at screen %.4f\n",
            1 - (double)t->top / t->height, (double)BOTTOM / t->height);
    put_side(t, &t->left, plot);
    put_side(t, &t->right, plot);
    fputs("unset multiplot\n", out);
    free(title);
}

/* Write a note behind the bar of a configuration that did not end well each time. */
static void note_repeats(const struct tmk_survey_config *c, const char *name, struct two_plots *t)
{
    char size[TMK_AMOUNT_BYTES];
    struct tmk_bar *bars[] = {tmk_bars_get(&t->left.bars, name),
                              tmk_bars_get(&t->right.bars, name)};
    for (size_t i = 0; c->repeats && i < TMK_N(bars); i++) {
        bars[i]->note =
            tmk_xformat("%s, %s", tmk_size_text(c->cell->peak_allocated, size), c->repeats);
        bars[i]->is_warning = true;
    }
}

/* ---- components ---- */

static struct two_plots make_components(const struct tmk_survey *g)
{
    struct two_plots t = {.left.name = "by component", .right.name = "by category"};
    struct tmk_survey_config *picked = pick_largest_configs(g);
    t.is_short = is_long(g, picked);
    for (uint32_t i = 0; i < n_bars(g); i++) {
        const struct tmk_cell *cell = picked[i].cell;
        const char *name = t.is_short ? picked[i].values : picked[i].name;
        add_shares(&t.left.bars, name, &cell->components, cell->peak_allocated);
        add_shares(&t.right.bars, name, &cell->categories, cell->peak_allocated);
        note_repeats(&picked[i], name, &t);
    }
    free(picked);
    lay_out_two(&t, g);
    return t;
}

static unsigned components_height(const struct tmk_survey *g)
{
    struct two_plots t = make_components(g);
    two_fini(&t);
    return t.height;
}

static void put_components_plot(const struct tmk_survey *g, struct tmk_gnuplot *plot)
{
    struct two_plots t = make_components(g);
    say_missing(g);
    put_two(g, plot, &t, "What fills each configuration at its peak");
    two_fini(&t);
}

/* ---- operations ---- */

static void add_cell_stages(struct tmk_bars *bars, const char *name, const struct tmk_cell *cell)
{
    tmk_bars_get(bars, name);
    for (uint32_t i = 0; i < cell->n_stages; i++) {
        const struct tmk_cell_stage *s = &cell->stages[i];
        if (s->peak != TMK_BYTES_UNKNOWN)
            tmk_bars_add(bars, name, s->name ? s->name : "unknown", s->peak);
    }
}

static struct two_plots make_operations(const struct tmk_survey *g)
{
    struct two_plots t = {
        .left.name = "alive at the peak, by the stage that made it",
        .right = {.name = "most allocated in each stage", .bars.is_beside = true}};
    struct tmk_survey_config *picked = pick_largest_configs(g);
    t.is_short = is_long(g, picked);
    for (uint32_t i = 0; i < n_bars(g); i++) {
        const struct tmk_cell *cell = picked[i].cell;
        const char *name = t.is_short ? picked[i].values : picked[i].name;
        add_shares(&t.left.bars, name, &cell->at_stage, cell->peak_allocated);
        add_cell_stages(&t.right.bars, name, cell);
        note_repeats(&picked[i], name, &t);
    }
    free(picked);
    lay_out_two(&t, g);
    return t;
}

static unsigned operations_height(const struct tmk_survey *g)
{
    struct two_plots t = make_operations(g);
    two_fini(&t);
    return t.height;
}

static void put_operations_plot(const struct tmk_survey *g, struct tmk_gnuplot *plot)
{
    struct two_plots t = make_operations(g);
    say_missing(g);
    put_two(g, plot, &t, "What each stage needs");
    two_fini(&t);
}

const struct tmk_survey_picture tmk_survey_components = {components_height, put_components_plot};
const struct tmk_survey_picture tmk_survey_operations = {operations_height, put_operations_plot};
