/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_sweep_heatmap.c - the peak of every configuration: the two parameters that matter
 * most as axes, a field for each combination of the others.
 *
 * Each cell shows its figure. Cells that were not measured look different: an estimate is pale and
 * has "≈", and a cell that ran out of memory, failed, or was not tried says so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_frame.h"
#include "cli/plot/plot_picture.h"
#include "cli/plot/plot_survey.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"

enum { /* points, except the second */
       LONGEST_TIC = 100,
       MOST_FIELDS = 24,
       LEFT = 112,  /* names of the values of y */
       RIGHT = 112, /* the scale of colours */
       BOTTOM = 60,
       FIELD_NAME = 26, /* above a field */
       FIELD_SIDE = 18,
       SCALE = 14,
       TEXT = 12,
};

struct heatmap_layout {
    uint32_t x, y; /* parameters; UINT32_MAX: none */
    uint32_t n_x, n_y;
    uint32_t n_fields; /* combinations of the other parameters' values; n_shown have room */
    uint32_t n_shown, n_columns, n_rows;
    double cell_width, cell_height; /* points */
    double top;                     /* of the first field's name */
    struct tmk_plot_unit unit;
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
    l.n_shown = l.n_fields < MOST_FIELDS ? l.n_fields : MOST_FIELDS;
    uint32_t most = 14 / (l.n_x > 14 ? 14 : l.n_x); /* columns of fields that fit */
    most = most < 1 ? 1 : most > 4 ? 4 : most;
    l.n_columns = l.n_shown < most ? l.n_shown : most;
    if (g->n_order > 2 && n_param_values(g, g->order[2]) <= most)
        l.n_columns = n_param_values(g, g->order[2]);
    l.n_rows = (l.n_shown + l.n_columns - 1) / l.n_columns;
    l.cell_width = ((double)(TMK_PICTURE_WIDE - LEFT - RIGHT) / l.n_columns - FIELD_SIDE) / l.n_x;
    l.cell_height = l.n_rows == 1 ? 60 : l.n_rows <= 3 ? 44 : 34;
    l.unit = tmk_plot_size_unit((double)g->most);
    return l;
}

static double field_height(const struct heatmap_layout *l)
{
    return l->n_y * l->cell_height;
}

static double field_left(const struct heatmap_layout *l, uint32_t field)
{
    return LEFT + field % l->n_columns * (l->n_x * l->cell_width + FIELD_SIDE);
}

static double field_top(const struct heatmap_layout *l, uint32_t field)
{
    return l->top + field / l->n_columns * (field_height(l) + FIELD_NAME) + FIELD_NAME;
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

static uint32_t text_colour(const struct tmk_survey *g, const struct tmk_theme *theme,
                            const struct shown_config *s)
{
    bool is_dark = theme == tmk_palette_theme(true);
    if (s->style == REFUSED)
        return theme->warning;
    if (s->style == ESTIMATED && g->capacity && s->bytes > (double)g->capacity)
        return theme->warning;
    if (s->style == EMPTY || s->style == ESTIMATED)
        return theme->faint;
    return s->bytes > 0.55 * (double)g->most ? (is_dark ? 0xff101318 : 0xffffffff) : theme->text;
}

/* ---- a field ---- */

struct fields_drawing {
    const struct tmk_survey *g;
    const struct tmk_picture *p;
    const struct heatmap_layout *l;
};

static bool is_too_wide(const struct heatmap_layout *l, const char *text)
{
    return tmk_text_width(text, TEXT, false) > l->cell_width - 8;
}

/* Shorten a cell's texts until they fit: a measured cell loses the number of repeats; another first
 * loses its estimate, then its reason becomes a sign. */
static void make_text_fit(struct shown_config *s, const struct heatmap_layout *l)
{
    if (s->is_mixed && is_too_wide(l, s->why))
        s->why[0] = '\0';
    if (s->why[0] && (is_too_wide(l, s->text) || is_too_wide(l, s->why)))
        s->text[0] = '\0';
    if (is_too_wide(l, s->why))
        snprintf(s->why, sizeof s->why, "%s", s->style == REFUSED ? "×" : "?");
    if (is_too_wide(l, s->text))
        s->text[0] = '\0';
}

static void draw_cell(const struct fields_drawing *d, const struct shown_config *s,
                      const char *name, double x, double y)
{
    const struct tmk_theme *theme = d->p->theme;
    struct tmk_canvas *c = d->p->canvas;
    bool is_bad = s->style == REFUSED || s->is_mixed;
    double middle = x + d->l->cell_width / 2, base = y + d->l->cell_height / 2 + 4;
    const struct tmk_text_style style = {.colour = text_colour(d->g, theme, s),
                                         .anchor = TMK_ANCHOR_MIDDLE};
    const struct tmk_paint paint = {
        .fill = s->style == MEASURED ? tmk_palette_ramp(theme, s->bytes / (double)d->g->most) : 0,
        .stroke = is_bad                  ? theme->warning
                  : s->style == ESTIMATED ? theme->axis
                                          : 0,
        .width = s->is_mixed ? 2.5 : 1,
        .dash = is_bad ? TMK_DASH_NONE : TMK_DASH_LONG};
    tmk_canvas_group(c, name);
    tmk_canvas_rect(c, x + 1.5, y + 1.5, d->l->cell_width - 3, d->l->cell_height - 3, &paint);
    tmk_canvas_ungroup(c);
    tmk_canvas_text(c, middle, base - (s->text[0] ? 8 : 0), s->why, &style);
    tmk_canvas_text(c, middle, base + (s->why[0] ? 8 : 0), s->text, &style);
}

static void draw_field_name(const struct fields_drawing *d, const uint32_t *choice, double x,
                            double y)
{
    char *text = NULL;
    size_t n = 0;
    FILE *name = tmk_xmemstream(&text, &n);
    for (uint32_t i = 2; i < d->g->n_order; i++) {
        const struct tmk_sweep_param *p = &d->g->r->params[d->g->order[i]];
        fprintf(name, "%s%s=%s", i > 2 ? " " : "", p->name, p->values[choice[d->g->order[i]]]);
    }
    fclose(name);
    tmk_canvas_text(d->p->canvas, x, y - 7, text,
                    &(struct tmk_text_style){.colour = d->p->theme->text,
                                             .most = d->l->n_x * d->l->cell_width});
    free(text);
}

static void draw_field(const struct fields_drawing *d, uint32_t field)
{
    const struct heatmap_layout *l = d->l;
    uint32_t *choice = tmk_xcalloc((size_t)d->g->r->n_params + 1, sizeof *choice);
    double left = field_left(l, field), top = field_top(l, field);
    choose_field(d->g, field, choice);
    for (uint32_t i = 0; i < l->n_x * l->n_y; i++) {
        uint32_t x = i % l->n_x, y = i / l->n_x;
        if (l->x != UINT32_MAX)
            choice[l->x] = x;
        if (l->y != UINT32_MAX)
            choice[l->y] = y;
        const struct tmk_survey_config *config = tmk_survey_at(d->g, choice);
        struct shown_config s = show_config(d->g, config, l->unit);
        make_text_fit(&s, l);
        draw_cell(d, &s, config->name, left + x * l->cell_width,
                  top + (l->n_y - 1 - y) * l->cell_height);
    }
    if (d->g->n_order > 2)
        draw_field_name(d, choice, left, top);
    free(choice);
}

/* ---- axes ---- */

/* Every n-th value of x has its name, so that the names fit. */
static unsigned tic_distance(const struct tmk_survey *g, const struct heatmap_layout *l)
{
    double longest = 1;
    for (uint32_t v = 0; l->x != UINT32_MAX && v < l->n_x; v++)
        longest = fmax(longest, tmk_text_width(g->r->params[l->x].values[v], TEXT, false));
    return (unsigned)ceil((fmin(longest, LONGEST_TIC) + 8) / l->cell_width);
}

static void draw_x_names(const struct fields_drawing *d, uint32_t field)
{
    const struct heatmap_layout *l = d->l;
    const struct tmk_sweep_param *p = &d->g->r->params[l->x];
    unsigned every = tic_distance(d->g, l);
    double left = field_left(l, field), y = field_top(l, field) + field_height(l);
    for (uint32_t v = 0; v < p->n_values; v += every)
        tmk_canvas_text(d->p->canvas, left + (v + 0.5) * l->cell_width, y + 17, p->values[v],
                        &(struct tmk_text_style){.colour = d->p->theme->text,
                                                 .anchor = TMK_ANCHOR_MIDDLE,
                                                 .most = every * l->cell_width - 8});
    tmk_canvas_text(d->p->canvas, left + l->n_x * l->cell_width / 2, y + 37, p->name,
                    &(struct tmk_text_style){.colour = d->p->theme->faint,
                                             .anchor = TMK_ANCHOR_MIDDLE,
                                             .most = l->n_x * l->cell_width});
}

static void draw_y_names(const struct fields_drawing *d, uint32_t field)
{
    const struct heatmap_layout *l = d->l;
    const struct tmk_sweep_param *p = &d->g->r->params[l->y];
    double x = field_left(l, field) - 7;
    for (uint32_t v = 0; v < p->n_values; v++)
        tmk_canvas_text(d->p->canvas, x,
                        field_top(l, field) + (l->n_y - 0.5 - v) * l->cell_height + 4, p->values[v],
                        &(struct tmk_text_style){.colour = d->p->theme->text,
                                                 .anchor = TMK_ANCHOR_END,
                                                 .most = LEFT - TMK_PICTURE_SIDE - 16});
    if (field == 0) /* only once, because it may be longer than a field is high */
        tmk_canvas_text(d->p->canvas, TMK_PICTURE_SIDE + 4,
                        (field_top(l, 0) + field_top(l, l->n_shown - 1) + field_height(l)) / 2,
                        p->name,
                        &(struct tmk_text_style){.colour = d->p->theme->faint,
                                                 .anchor = TMK_ANCHOR_MIDDLE,
                                                 .angle = 90,
                                                 .most = d->p->height - l->top});
}

/* ---- the picture ---- */

/* Explain the signs that the picture uses; NULL: none. The caller's. */
static char *make_heatmap_note(const struct tmk_survey *g)
{
    char size[TMK_AMOUNT_BYTES], *note = NULL;
    bool has_estimated = false, has_excluded = false;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        struct shown_config s = show_config(g, &g->configs[i], tmk_plot_size_unit((double)g->most));
        has_estimated |= s.style != MEASURED && s.text[0];
        has_excluded |= s.is_excluded;
    }
    char *capacity =
        g->capacity ? tmk_xformat("capacity %s", tmk_size_text(g->capacity, size)) : NULL;
    tmk_survey_note(&note, has_estimated ? "≈ estimated, not measured" : NULL);
    tmk_survey_note(&note, has_excluded ? "– excluded" : NULL);
    tmk_survey_note(&note, capacity);
    tmk_survey_note(&note, g->repeats_note);
    free(capacity);
    return note;
}

static void draw_fields(const struct fields_drawing *d)
{
    const struct heatmap_layout *l = d->l;
    for (uint32_t i = 0; i < l->n_shown; i++) {
        draw_field(d, i);
        if (i + l->n_columns >= l->n_shown && l->x != UINT32_MAX)
            draw_x_names(d, i);
        if (i % l->n_columns == 0 && l->y != UINT32_MAX)
            draw_y_names(d, i);
    }
    struct tmk_plot_frame scale = {.picture = d->p,
                                   .left = TMK_PICTURE_WIDE - TMK_PICTURE_SIDE - SCALE,
                                   .top = field_top(l, 0),
                                   .width = SCALE,
                                   .most = (double)d->g->most};
    scale.height = fmin(field_top(l, l->n_shown - 1) + field_height(l) - scale.top, 360);
    tmk_plot_frame_scale(&scale);
}

static void draw_heatmap_picture(const struct tmk_survey *g, const char *path,
                                 const struct tmk_plot_style *style, struct tmk_picture *p)
{
    struct heatmap_layout l = lay_out_heatmap(g);
    char *title = tmk_survey_title(g, "Peak of each configuration"), *note = make_heatmap_note(g);
    if (l.n_shown < l.n_fields)
        tmk_say("the heat map has the first %u of %u combinations", l.n_shown, l.n_fields);
    l.top = tmk_picture_top(note, NULL) - (g->n_order > 2 ? 6 : 14);
    double bottom = field_top(&l, l.n_shown - 1) + field_height(&l);
    tmk_picture_open(p, path, style, TMK_PICTURE_WIDE, bottom + BOTTOM);
    tmk_picture_title(p, title, note, NULL);
    draw_fields(&(struct fields_drawing){.g = g, .p = p, .l = &l});
    free(title);
    free(note);
}

const struct tmk_survey_picture tmk_survey_heatmap = {draw_heatmap_picture};
