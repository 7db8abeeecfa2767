/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_sweep_bars.c - the memory of each configuration at its peak: by component and by
 * category; and by the stage that allocated it, beside each stage's need. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot_bars.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_picture.h"
#include "cli/plot/plot_survey.h"
#include "draw/canvas.h"
#include "kit/amount.h"
#include "sweep/results.h"
#include "sweep/survey.h"

enum {
    MOST_BARS = 40,
    LONGEST_NAME = 250, /* points, and so are the next ones */
    BETWEEN = 18,
    PIECE_HEIGHT = 5,
    LEAST_GRAPH = 110,
    MOST_GRAPH = 1800,
};

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
    for (uint32_t i = 0; i < n_bars(g); i++)
        if (tmk_text_width(picked[i].name, 12, false) > LONGEST_NAME)
            return true;
    return false;
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
    bool is_short;    /* bars are named by values only */
    char *note;       /* below the title; NULL: none */
    uint64_t limit;   /* a line in both; 0: none */
    double top, rows; /* of the graphs, and their height */
};

static void set_legend(struct plot_side *side, double left, double right)
{
    side->items = tmk_bars_legend(&side->bars, &side->legend.n);
    side->legend.items = side->items;
    side->legend.left = left;
    side->legend.width = right - left;
}

static void make_note(struct two_plots *t, const struct tmk_survey *g)
{
    char size[TMK_AMOUNT_BYTES];
    char *rows = t->is_short ? tmk_xformat("rows: %s", g->names) : NULL;
    char *missing = missing_text(g);
    char *limit =
        t->limit ? tmk_xformat("dashed capacity, %s", tmk_size_text(t->limit, size)) : NULL;
    tmk_survey_note(&t->note, rows);
    tmk_survey_note(&t->note, missing);
    tmk_survey_note(&t->note, limit);
    tmk_survey_note(&t->note, g->repeats_note);
    free(limit);
    free(missing);
    free(rows);
}

/* Lay out two graphs, with room for rows of the legends, and for pieces of bars that are one below
 * the other. */
static void lay_out_two(struct two_plots *t, const struct tmk_survey *g)
{
    double left = TMK_PICTURE_SIDE + tmk_bars_names_width(&t->left.bars);
    double middle = left + (TMK_PICTURE_WIDE - TMK_PICTURE_SIDE - left) / 2;
    set_legend(&t->left, left, middle - BETWEEN);
    set_legend(&t->right, middle + BETWEEN, TMK_PICTURE_WIDE - TMK_PICTURE_SIDE);
    unsigned n_left = tmk_legend_rows(&t->left.legend), n_right = tmk_legend_rows(&t->right.legend);
    uint32_t n_bars = t->left.bars.n_bars;
    unsigned row = t->right.bars.is_beside ? PIECE_HEIGHT * t->right.bars.n_keys + 8 : 0;
    row = row < TMK_BAR_ROW ? TMK_BAR_ROW : row;
    t->rows = n_bars * row < LEAST_GRAPH ? LEAST_GRAPH : n_bars * row;
    t->rows = t->rows > MOST_GRAPH ? MOST_GRAPH : t->rows;
    t->limit = tmk_survey_limit(g);
    make_note(t, g);
    t->top = tmk_picture_top(t->note, NULL) + 12 +
             (n_left > n_right ? n_left : n_right) * TMK_LEGEND_ROW;
}

static void two_fini(struct two_plots *t)
{
    tmk_bars_fini(&t->left.bars);
    tmk_bars_fini(&t->right.bars);
    free(t->note);
    free(t->left.items);
    free(t->right.items);
}

static void draw_side(const struct two_plots *t, const struct plot_side *side,
                      const struct tmk_picture *p)
{
    tmk_legend_draw(&side->legend, p, tmk_picture_top(t->note, NULL));
    tmk_bars_draw(&side->bars, p,
                  &(struct tmk_bars_place){.left = side->legend.left,
                                           .top = t->top,
                                           .width = side->legend.width,
                                           .height = t->rows,
                                           .no_names = side == &t->right,
                                           .label = side->name,
                                           .limit = t->limit});
}

/* Draw both graphs, and say which configurations are missing. */
static void draw_two(const struct tmk_survey *g, const char *path,
                     const struct tmk_plot_style *style, const char *what, struct two_plots *t,
                     struct tmk_picture *p)
{
    char *title = tmk_survey_title(g, what);
    say_missing(g);
    tmk_picture_open(p, path, style, TMK_PICTURE_WIDE, t->top + t->rows + TMK_BARS_BELOW);
    tmk_picture_title(p, title, t->note, NULL);
    draw_side(t, &t->left, p);
    draw_side(t, &t->right, p);
    free(title);
    two_fini(t);
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

static void draw_components_picture(const struct tmk_survey *g, const char *path,
                                    const struct tmk_plot_style *style, struct tmk_picture *p)
{
    struct two_plots t = make_components(g);
    draw_two(g, path, style, "What fills each configuration at its peak", &t, p);
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

static void draw_operations_picture(const struct tmk_survey *g, const char *path,
                                    const struct tmk_plot_style *style, struct tmk_picture *p)
{
    struct two_plots t = make_operations(g);
    draw_two(g, path, style, "What each stage needs", &t, p);
}

const struct tmk_survey_picture tmk_survey_components = {draw_components_picture};
const struct tmk_survey_picture tmk_survey_operations = {draw_operations_picture};
