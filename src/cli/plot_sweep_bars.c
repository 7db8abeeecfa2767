/* SPDX-License-Identifier: MIT */
/* cli/plot_sweep_bars.c - what fills each configuration at its peak: by component and by category;
 * and by the stage that made it, beside what each stage needs. */
#include <stdlib.h>
#include <string.h>

#include "cli/plot_bars.h"
#include "cli/plot_survey.h"
#include "cli/say.h"
#include "cli/xalloc.h"
#include "kit/amount.h"

enum { MOST_BARS = 40 };

static uint32_t n_bars(const struct tmk_survey *g)
{
    return g->n_measured < MOST_BARS ? g->n_measured : MOST_BARS;
}

static unsigned height_of(const struct tmk_survey *g)
{
    return tmk_bars_height(n_bars(g)) + 60;
}

/* ---- which configurations ---- */

static int by_peak(const void *va, const void *vb)
{
    const struct tmk_survey_config *a = va, *b = vb;
    uint64_t x = a->cell->peak_allocated, y = b->cell->peak_allocated;
    return x != y ? (x > y ? -1 : 1) : a->number < b->number ? -1 : 1;
}

/* Those measured, the largest first, as many as have room; the caller's. */
static struct tmk_survey_config *pick(const struct tmk_survey *g)
{
    struct tmk_survey_config *picked = tmk_xcalloc((size_t)g->n_measured + 1, sizeof *picked);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_configs; i++)
        if (g->configs[i].has_peak)
            picked[n++] = g->configs[i];
    qsort(picked, n, sizeof *picked, by_peak);
    if (n > MOST_BARS)
        tmk_say("of %u configurations the %d largest are drawn", n, MOST_BARS);
    return picked;
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

struct two {
    struct tmk_bars left, right;
    const char *left_name, *right_name;
};

static void place(FILE *out, unsigned height)
{
    fprintf(out, "set tmargin at screen %.4f\nset bmargin at screen %.4f\n", 1 - 120.0 / height,
            84.0 / height);
}

static void put_two(const struct tmk_survey *g, struct tmk_gnuplot *plot, const struct two *t,
                    const char *what)
{
    FILE *out = tmk_gnuplot_script(plot);
    const struct tmk_theme *theme = tmk_gnuplot_theme(plot);
    char *title = tmk_survey_title(g, what);
    fputs("set multiplot\nset key at graph 0, graph 1 left bottom horizontal Left reverse samplen "
          "1 width 1 maxrows 3\n",
          out);
    tmk_gnuplot_heading(plot, title, NULL);
    place(out, height_of(g));
    double left = tmk_bars_names_width(&t->left), middle = left + (0.985 - left) / 2;
    tmk_bars_put(
        &t->left, out, theme,
        &(struct tmk_bars_place){.left = left, .right = middle - 0.015, .label = t->left_name});
    fputs("unset label\nunset arrow\nunset object\n", out);
    tmk_bars_put(
        &t->right, out, theme,
        &(struct tmk_bars_place){
            .left = middle + 0.015, .right = 0.985, .no_names = true, .label = t->right_name});
    fputs("unset multiplot\n", out);
    free(title);
}

static void put_components(const struct tmk_survey *g, struct tmk_gnuplot *plot)
{
    struct two t = {.left_name = "by component", .right_name = "by category"};
    struct tmk_survey_config *picked = pick(g);
    for (uint32_t i = 0; i < n_bars(g); i++) {
        const struct tmk_cell *cell = picked[i].cell;
        char *name = tmk_survey_name(g, &picked[i]);
        add_shares(&t.left, name, &cell->components, cell->peak_allocated);
        add_shares(&t.right, name, &cell->categories, cell->peak_allocated);
        free(name);
    }
    put_two(g, plot, &t, "What fills each configuration at its peak");
    tmk_bars_fini(&t.left);
    tmk_bars_fini(&t.right);
    free(picked);
}

static void add_stages(struct tmk_bars *bars, const char *name, const struct tmk_cell *cell)
{
    tmk_bars_get(bars, name);
    for (uint32_t i = 0; i < cell->n_stages; i++) {
        const struct tmk_cell_stage *s = &cell->stages[i];
        if (s->peak != TMK_UNKNOWN_BYTES)
            tmk_bars_add(bars, name, s->name ? s->name : "unknown", s->peak);
    }
}

static void put_operations(const struct tmk_survey *g, struct tmk_gnuplot *plot)
{
    struct two t = {.left_name = "alive at the peak, by the stage that made it",
                    .right_name = "most allocated in each stage",
                    .right = {.is_dots = true}};
    struct tmk_survey_config *picked = pick(g);
    for (uint32_t i = 0; i < n_bars(g); i++) {
        const struct tmk_cell *cell = picked[i].cell;
        char *name = tmk_survey_name(g, &picked[i]);
        add_shares(&t.left, name, &cell->at_stage, cell->peak_allocated);
        add_stages(&t.right, name, cell);
        free(name);
    }
    put_two(g, plot, &t, "What each stage needs");
    tmk_bars_fini(&t.left);
    tmk_bars_fini(&t.right);
    free(picked);
}

const struct tmk_survey_picture tmk_survey_components = {height_of, put_components};
const struct tmk_survey_picture tmk_survey_operations = {height_of, put_operations};
