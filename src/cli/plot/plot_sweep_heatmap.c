/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_sweep_heatmap.c - the peak of every configuration: the two parameters that matter
 * most as axes, a field for each combination of the others.
 *
 * Each cell shows its figure. Cells that were not measured look different: an estimate is pale and
 * has "≈", and a cell that ran out of memory, failed, or was not tried says so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/palette.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_survey.h"
#include "kit/amount.h"
#include "kit/utf8.h"
#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"

enum { LONGEST_TIC = 12, MOST_FIELDS = 24, TOP = 110, BOTTOM = 84, FIELD_LABEL = 40 };

#define FIELDS_LEFT 0.085 /* share of the picture's width */
#define FIELDS_WIDTH 0.815
#define LETTER 9.6 /* points */

struct heatmap_layout {
    uint32_t x, y; /* parameters; UINT32_MAX: none */
    uint32_t n_x, n_y;
    uint32_t n_fields; /* combinations of the other parameters' values */
    uint32_t n_columns, n_rows;
    unsigned cell_height; /* points */
    unsigned letters;     /* width of a cell in letters */
};

/* ---- layout ---- */

static uint32_t n_param_values(const struct tmk_survey *g, uint32_t p)
{
    uint32_t n = p == UINT32_MAX ? 1 : g->r->params[p].n_values;
    return n ? n : 1;
}

static struct heatmap_layout lay_out_heatmap(const struct tmk_survey *g)
{
    struct heatmap_layout l = {.x = g->n_order > 0 ? g->order[0] : UINT32_MAX,
                               .y = g->n_order > 1 ? g->order[1] : UINT32_MAX,
                               .n_fields = 1};
    if (n_param_values(g, l.y) >
        n_param_values(g, l.x)) { /* because the picture is wider than high */
        uint32_t swap = l.x;
        l.x = l.y;
        l.y = swap;
    }
    l.n_x = n_param_values(g, l.x);
    l.n_y = n_param_values(g, l.y);
    for (uint32_t i = 2; i < g->n_order; i++)
        l.n_fields *= n_param_values(g, g->order[i]);
    uint32_t shown = l.n_fields < MOST_FIELDS ? l.n_fields : MOST_FIELDS;
    uint32_t most = 14 / (l.n_x > 14 ? 14 : l.n_x); /* columns of fields that fit */
    most = most < 1 ? 1 : most > 4 ? 4 : most;
    l.n_columns = shown < most ? shown : most;
    if (g->n_order > 2 && n_param_values(g, g->order[2]) <= most)
        l.n_columns = n_param_values(g, g->order[2]);
    l.n_rows = (shown + l.n_columns - 1) / l.n_columns;
    l.letters = (unsigned)((FIELDS_WIDTH * TMK_PICTURE_WIDTH / l.n_columns - 20) / l.n_x / LETTER);
    l.cell_height = l.n_rows == 1 ? 64 : l.n_rows <= 3 ? 46 : 34;
    return l;
}

static unsigned heatmap_height(const struct tmk_survey *g)
{
    struct heatmap_layout l = lay_out_heatmap(g);
    unsigned height = TOP + BOTTOM + l.n_rows * (l.n_y * l.cell_height + FIELD_LABEL);
    return height < 360 ? 360 : height > 3000 ? 3000 : height;
}

/* Set the choices of field `n`: those of the largest configuration, except for the other
 * parameters. */
static void choose_field(const struct tmk_survey *g, uint32_t n, uint32_t *choice)
{
    memcpy(choice, g->largest->cell->choice, g->r->n_params * sizeof *choice);
    for (uint32_t i = 2; i < g->n_order; i++) {
        choice[g->order[i]] = n % n_param_values(g, g->order[i]);
        n /= n_param_values(g, g->order[i]);
    }
}

/* ---- a cell ---- */

enum cell_style { MEASURED, ESTIMATED, REFUSED, EMPTY };

struct shown_config {
    enum cell_style style;
    bool is_mixed; /* measured, but not all repeats ended well */
    bool is_excluded;
    double bytes; /* 0: none */
    char why[32]; /* why it was not measured; "": it was, or will be */
    char text[TMK_AMOUNT_BYTES];
};

static void set_plot_size(struct shown_config *s, const char *lead, double bytes,
                          struct tmk_plot_unit unit)
{
    double value = bytes / unit.size;
    snprintf(s->text, sizeof s->text, "%s%.*f", lead, value < 10 ? 2 : value < 1000 ? 1 : 0, value);
    s->bytes = bytes;
}

static struct shown_config show_config(const struct tmk_survey *g,
                                       const struct tmk_survey_config *c, struct tmk_plot_unit unit)
{
    static const char *const words[] = {
        [TMK_CELL_PENDING] = "",         [TMK_CELL_DONE] = "",           [TMK_CELL_OOM] = "OOM",
        [TMK_CELL_FAILED] = "failed",    [TMK_CELL_TIMEOUT] = "timeout", [TMK_CELL_EXCLUDED] = "–",
        [TMK_CELL_HOPELESS] = "too big",
    };
    enum tmk_cell_outcome outcome = c->cell->outcome;
    struct tmk_estimate e = tmk_survey_estimate(g, c);
    struct shown_config s = {.style = EMPTY, .is_excluded = outcome == TMK_CELL_EXCLUDED};
    s.is_mixed = c->repeats != NULL;
    const char *word = outcome == TMK_CELL_DONE && !c->has_peak ? "no peak" : words[outcome];
    snprintf(s.why, sizeof s.why, "%s", c->repeats ? c->repeats : word);
    if (c->has_peak) {
        s.style = MEASURED;
        set_plot_size(&s, "", (double)c->cell->peak_allocated, unit);
    } else if (outcome != TMK_CELL_EXCLUDED) {
        bool is_refused = outcome == TMK_CELL_OOM || outcome == TMK_CELL_HOPELESS;
        s.style = is_refused ? REFUSED : e.known ? ESTIMATED : EMPTY;
        if (e.known)
            set_plot_size(&s, "≈", e.bytes, unit);
        else if (outcome == TMK_CELL_PENDING)
            snprintf(s.why, sizeof s.why, "not tried");
    }
    return s;
}

static const char *text_colour(const struct tmk_survey *g, const struct tmk_theme *theme,
                               const struct shown_config *s)
{
    bool is_dark = theme == tmk_palette_theme(true);
    if (s->style == REFUSED)
        return theme->warning;
    if (s->style == ESTIMATED && g->capacity && s->bytes > (double)g->capacity)
        return theme->warning;
    if (s->style == EMPTY || s->style == ESTIMATED)
        return theme->faint;
    return s->bytes > 0.55 * (double)g->most ? (is_dark ? "#101318" : "#ffffff") : theme->text;
}

/* ---- a field ---- */

static void put_heatmap_text(FILE *out, const char *text, uint32_t x, uint32_t y,
                             const char *offset, const char *colour)
{
    if (!text[0])
        return;
    fputs("set label ", out);
    tmk_gnuplot_text(out, text);
    fprintf(out, " at first %u, first %u center front offset 0,%s textcolor rgb '%s'\n", x, y,
            offset, colour);
}

static void put_heatmap_cell(const struct tmk_survey *g, FILE *out, const struct tmk_theme *theme,
                             const struct shown_config *s, uint32_t x, uint32_t y)
{
    bool is_bad = s->style == REFUSED || s->is_mixed;
    if (is_bad || s->style == ESTIMATED)
        fprintf(out,
                "set object rectangle from first %.2f, first %.2f to first %.2f, first %.2f front "
                "fillstyle empty border linecolor rgb '%s' linewidth %s dashtype %d\n",
                x - 0.46, y - 0.44, x + 0.46, y + 0.44, is_bad ? theme->warning : theme->axis,
                s->is_mixed ? "2.5" : "1", is_bad ? 1 : 2);
    put_heatmap_text(out, s->why, x, y, s->text[0] ? "0.5" : "0", text_colour(g, theme, s));
    put_heatmap_text(out, s->text, x, y, s->why[0] ? "-0.5" : "0", text_colour(g, theme, s));
}

/* Shorten a cell's texts until they fit: a measured cell loses the number of repeats; another first
 * loses its estimate, then its reason becomes a sign. */
static void make_text_fit(struct shown_config *s, const struct heatmap_layout *l)
{
    if (s->is_mixed && tmk_utf8_width(s->why) > l->letters)
        s->why[0] = '\0';
    if (s->why[0] && (tmk_utf8_width(s->text) > l->letters || tmk_utf8_width(s->why) > l->letters))
        s->text[0] = '\0';
    if (tmk_utf8_width(s->why) > l->letters)
        snprintf(s->why, sizeof s->why, "%s", s->style == REFUSED ? "×" : "?");
    if (tmk_utf8_width(s->text) > l->letters)
        s->text[0] = '\0';
}

static void put_tics(const struct tmk_survey *g, FILE *out, const struct tmk_theme *theme,
                     char axis, uint32_t p, bool is_shown, unsigned every)
{
    if (!is_shown) {
        fprintf(out, "unset %ctics\n", axis);
        return;
    }
    fprintf(out, "set %ctics scale 0 textcolor rgb '%s' (", axis, theme->text);
    for (uint32_t v = 0; v < n_param_values(g, p); v += every) {
        fputs(v ? ", " : "", out);
        tmk_gnuplot_tic(out, p == UINT32_MAX ? "" : g->r->params[p].values[v], LONGEST_TIC);
        fprintf(out, " %u", v);
    }
    fputs(")\n", out);
}

static void put_field_name(const struct tmk_survey *g, FILE *out, const struct tmk_theme *theme,
                           const uint32_t *choice)
{
    char *text = NULL;
    size_t n = 0;
    FILE *name = tmk_xmemstream(&text, &n);
    for (uint32_t i = 2; i < g->n_order; i++) {
        const struct tmk_sweep_param *p = &g->r->params[g->order[i]];
        fprintf(name, "%s%s=%s", i > 2 ? " " : "", p->name, p->values[choice[g->order[i]]]);
    }
    fclose(name);
    fputs("set label ", out);
    tmk_gnuplot_short_text(out, text, 60);
    fprintf(out, " at graph 0, graph 1 left offset 0,0.7 textcolor rgb '%s'\n", theme->text);
    free(text);
}

static struct shown_config show_cell(const struct tmk_survey *g, const struct heatmap_layout *l,
                                     uint32_t *choice, uint32_t x, uint32_t y,
                                     struct tmk_plot_unit unit)
{
    if (l->x != UINT32_MAX)
        choice[l->x] = x;
    if (l->y != UINT32_MAX)
        choice[l->y] = y;
    return show_config(g, tmk_survey_at(g, choice), unit);
}

static void put_field(const struct tmk_survey *g, FILE *out, const struct tmk_theme *theme,
                      const struct heatmap_layout *l, uint32_t field, struct tmk_plot_unit unit)
{
    uint32_t *choice = tmk_xcalloc((size_t)g->r->n_params + 1, sizeof *choice);
    choose_field(g, field, choice);
    fputs("unset label\nunset object\n", out);
    fprintf(out, "$f%u << EOD\nNaN NaN NaN\n", field);
    for (uint32_t i = 0; i < l->n_x * l->n_y; i++) {
        uint32_t x = i % l->n_x, y = i / l->n_x;
        struct shown_config s = show_cell(g, l, choice, x, y, unit);
        if (s.style == MEASURED)
            fprintf(out, "%u %u %.7g\n", x, y, s.bytes / unit.size);
    }
    fputs("EOD\n", out);
    for (uint32_t i = 0; i < l->n_x * l->n_y; i++) {
        uint32_t x = i % l->n_x, y = i / l->n_x;
        struct shown_config s = show_cell(g, l, choice, x, y, unit);
        make_text_fit(&s, l);
        put_heatmap_cell(g, out, theme, &s, x, y);
    }
    if (g->n_order > 2)
        put_field_name(g, out, theme, choice);
    free(choice);
}

static void place_field(FILE *out, const struct heatmap_layout *l, uint32_t field, unsigned height)
{
    uint32_t column = field % l->n_columns, row = field / l->n_columns;
    double left = FIELDS_LEFT, width = FIELDS_WIDTH / l->n_columns;
    double top = 1 - (TOP - FIELD_LABEL + 0.0) / height - FIELD_LABEL / (double)height;
    double step = (top - BOTTOM / (double)height) / l->n_rows;
    fprintf(out,
            "set lmargin at screen %.4f\nset rmargin at screen %.4f\n"
            "set tmargin at screen %.4f\nset bmargin at screen %.4f\n",
            left + column * width, left + (column + 1) * width - 0.015, top - row * step,
            top - (row + 1) * step + (l->n_rows > 1 ? FIELD_LABEL / (double)height : 0));
}

/* Every n-th value of x has its name, so that the names fit. */
static unsigned tic_distance(const struct tmk_survey *g, const struct heatmap_layout *l)
{
    size_t longest = 1;
    for (uint32_t v = 0; l->x != UINT32_MAX && v < l->n_x; v++) {
        size_t width = tmk_utf8_width(g->r->params[l->x].values[v]);
        longest = width > longest ? width : longest;
    }
    longest = longest > LONGEST_TIC ? LONGEST_TIC : longest;
    return l->letters > longest ? 1 : (unsigned)(longest / (l->letters ? l->letters : 1) + 1);
}

/* ---- the picture ---- */

/* Explain the signs that the picture uses; NULL: none. The caller's. */
static char *make_heatmap_note(const struct tmk_survey *g)
{
    bool has_estimated = false, has_excluded = false;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        struct shown_config s = show_config(g, &g->configs[i], tmk_plot_size_unit((double)g->most));
        has_estimated |= s.style != MEASURED && s.text[0];
        has_excluded |= s.is_excluded;
    }
    char *note = NULL;
    tmk_survey_note(&note, has_estimated ? "≈ estimated, not measured" : NULL);
    tmk_survey_note(&note, has_excluded ? "– excluded" : NULL);
    tmk_survey_note(&note, g->repeats_note);
    return note;
}

static void put_axes_names(const struct tmk_survey *g, FILE *out, const struct tmk_theme *theme,
                           const struct heatmap_layout *l, uint32_t field, uint32_t n)
{
    bool is_left = field % l->n_columns == 0, is_last = field + l->n_columns >= n;
    put_tics(g, out, theme, 'x', l->x, is_last, tic_distance(g, l));
    put_tics(g, out, theme, 'y', l->y, is_left, 1);
    fputs("set xlabel ", out);
    tmk_gnuplot_text(out, is_last && l->x != UINT32_MAX ? g->r->params[l->x].name : "");
    fputs("\nset ylabel ''\n", out);
    if (field == 0 &&
        l->y != UINT32_MAX) { /* only once, because it may be longer than a field is high */
        fputs("set label ", out);
        tmk_gnuplot_text(out, g->r->params[l->y].name);
        fprintf(out, " at screen 0.015, screen %.4f center rotate textcolor rgb '%s'\n",
                (1 - (double)TOP / heatmap_height(g) + (double)BOTTOM / heatmap_height(g)) / 2,
                theme->faint);
    }
}

/* Write the heading, and the unit above the colour scale. */
static void put_heatmap_heading(const struct tmk_survey *g, struct tmk_gnuplot *plot,
                                struct tmk_plot_unit unit)
{
    char *title = tmk_survey_title(g, "Peak of each configuration"), *note = make_heatmap_note(g);
    tmk_gnuplot_heading(plot, title, note);
    fprintf(tmk_gnuplot_script(plot),
            "set label '%s' at screen 0.925, screen 0.75 left offset 0,0.9 textcolor rgb '%s'\n",
            unit.name, tmk_gnuplot_theme(plot)->faint);
    free(title);
    free(note);
}

static void put_heatmap_plot(const struct tmk_survey *g, struct tmk_gnuplot *plot)
{
    FILE *out = tmk_gnuplot_script(plot);
    const struct tmk_theme *theme = tmk_gnuplot_theme(plot);
    struct heatmap_layout l = lay_out_heatmap(g);
    struct tmk_plot_unit unit = tmk_plot_size_unit((double)g->most);
    uint32_t n = l.n_fields < MOST_FIELDS ? l.n_fields : MOST_FIELDS;
    if (n < l.n_fields)
        tmk_say("the heat map has the first %u of %u combinations", n, l.n_fields);
    fprintf(
        out,
        "set multiplot\nunset key\nunset grid\nset border 0\nset style fill solid 1 noborder\n"
        "set palette defined (%s)\nset cbrange [0:%.7g]\n"
        "set xrange [-0.5:%u.5]\nset yrange [-0.5:%u.5]\nset cbtics scale 0 textcolor rgb '%s'\n"
        "set colorbox user origin screen 0.925, screen 0.15 size screen 0.012, screen 0.6 "
        "noborder\n",
        theme->ramp, (double)g->most / unit.size, l.n_x - 1, l.n_y - 1, theme->faint);
    for (uint32_t i = 0; i < n; i++) {
        place_field(out, &l, i, heatmap_height(g));
        put_field(g, out, theme, &l, i, unit);
        if (i == 0)
            put_heatmap_heading(g, plot, unit);
        place_field(out, &l, i, heatmap_height(g));
        put_axes_names(g, out, theme, &l, i, n);
        fprintf(out,
                "plot $f%u using 1:2:($1-0.47):($1+0.47):($2-0.45):($2+0.45):3 with boxxyerror "
                "fillcolor palette\nunset colorbox\n",
                i);
    }
    fputs("unset multiplot\n", out);
}

const struct tmk_survey_picture tmk_survey_heatmap = {heatmap_height, put_heatmap_plot};
