/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_chart.c - the page's small charts: the peak against each parameter, with the fit.
 *
 * SVG inside the page takes its colours from the page's style, so one drawing serves light and dark
 * themes; a canvas (draw/canvas.h) has fixed colours. A point is a configuration. Points with the
 * other values as in the largest configuration are full, others are faint; hollow points are
 * estimated. Crosses ran out of memory and are at their estimated height. A point too far above has
 * an arrow at the top with its size. The line and the band around it are the fit for those
 * values. */
#include <math.h>
#include <stdlib.h>

#include "cli/output/html.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_answer.h"
#include "kit/amount.h"
#include "sweep/advice.h"
#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"

enum {
    WIDTH = 380,
    HEIGHT = 230,
    LEFT = 52,
    RIGHT = 12,
    TOP = 26,
    BOTTOM = 40,
    PAD = 14,
    N_LINE = 48
};

struct sweep_chart {
    const struct tmk_sweep_answer *v;
    const struct tmk_influence *i;
    double from, to, most; /* ranges of the axes; `most` is in bytes */
    double *numbers;       /* of the largest configuration, except the parameter drawn */
    bool has_arrow;
};

static double chart_x(const struct sweep_chart *c, double value)
{
    double span = c->to > c->from ? c->to - c->from : 1;
    return LEFT + PAD + (value - c->from) / span * (WIDTH - LEFT - RIGHT - 2 * PAD);
}

static double y_of(const struct sweep_chart *c, double bytes)
{
    return HEIGHT - BOTTOM - bytes / c->most * (HEIGHT - TOP - BOTTOM);
}

/* The distance of tics: 1, 2 or 5 times a power of ten, for about four tics up to `most`. */
static double step_of(double most)
{
    double power = pow(10, floor(log10(most / 4)));
    double part = most / 4 / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

/* The unit of the vertical axis. */
static double unit_of(const struct sweep_chart *c)
{
    return c->most < TMK_GB ? TMK_MB : TMK_GB;
}

static void draw_axes(FILE *out, const struct sweep_chart *c)
{
    double unit = unit_of(c), step = step_of(c->most / unit);
    const struct tmk_sweep_param *p = &c->v->r->params[c->i->param];
    for (unsigned k = 0; k * step * unit <= c->most; k++)
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%g</text>\n",
                LEFT, WIDTH - RIGHT, y_of(c, k * step * unit), y_of(c, k * step * unit), LEFT - 6,
                y_of(c, k * step * unit) + 4, k * step);
    fprintf(out, "<text class=\"tick\" x=\"4\" y=\"14\">%s</text>\n",
            unit < TMK_GB ? "MiB" : "GiB");
    double last = -1000;
    for (uint32_t k = 0; k < p->n_values && p->n_values <= 64; k++) {
        double x = chart_x(c, p->numbers[k]);
        if (p->numbers[k] < c->from || p->numbers[k] > c->to || fabs(x - last) < 26)
            continue;
        fprintf(out, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%g</text>\n",
                x, HEIGHT - BOTTOM + 16, p->numbers[k]);
        last = x;
    }
    fprintf(out, "<text class=\"name\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
    tmk_html_text(out, p->name);
    fputs("</text>\n", out);
}

static struct tmk_estimate estimate_at(const struct sweep_chart *c, double value)
{
    const uint32_t *choice = c->v->g->largest->cell->choice;
    c->numbers[c->i->param] = value;
    return tmk_fit_at(c->v->g->fit, c->numbers, choice);
}

static double chart_place(const struct sweep_chart *c, unsigned k)
{
    return c->from + (c->to - c->from) * k / N_LINE;
}

static void draw_fit(FILE *out, const struct sweep_chart *c)
{
    if (!estimate_at(c, c->from).known)
        return;
    /* A nested svg clips everything above the axis. */
    fprintf(out, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"%d %d %d %d\">\n",
            LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, LEFT, TOP, WIDTH - LEFT - RIGHT,
            HEIGHT - TOP - BOTTOM);
    fputs("<polygon class=\"band\" points=\"", out);
    for (unsigned k = 0; k <= N_LINE; k++)
        fprintf(out, "%.1f,%.1f ", chart_x(c, chart_place(c, k)),
                y_of(c, estimate_at(c, chart_place(c, k)).high));
    for (unsigned k = N_LINE + 1; k-- > 0;)
        fprintf(out, "%.1f,%.1f ", chart_x(c, chart_place(c, k)),
                y_of(c, estimate_at(c, chart_place(c, k)).low));
    fputs("\"/>\n<polyline class=\"fit\" points=\"", out);
    for (unsigned k = 0; k <= N_LINE; k++)
        fprintf(out, "%.1f,%.1f ", chart_x(c, chart_place(c, k)),
                y_of(c, estimate_at(c, chart_place(c, k)).bytes));
    fputs("\"/>\n</svg>\n", out);
}

static bool is_on_chart_line(const struct sweep_chart *c, const struct tmk_cell *cell)
{
    const uint32_t *choice = c->v->g->largest->cell->choice;
    for (uint32_t p = 0; p < c->v->r->n_params; p++)
        if (p != c->i->param && cell->choice[p] != choice[p] &&
            tmk_advice_matters(c->v->r, &c->v->advice, p))
            return false;
    return true;
}

static double chart_value(const struct sweep_chart *c, const struct tmk_cell *cell)
{
    return c->v->r->params[c->i->param].numbers[cell->choice[c->i->param]];
}

/* The peak of a configuration, measured or estimated; 0: not known. */
static double peak_of(const struct sweep_chart *c, const struct tmk_survey_config *config,
                      bool *ret_is_estimated)
{
    struct tmk_estimate e;
    *ret_is_estimated = tmk_survey_is_estimated(c->v->g, config, &e);
    if (*ret_is_estimated)
        return e.bytes;
    return config->has_peak ? (double)config->cell->peak_allocated : 0;
}

/* Begin a text "× ↑47.3" at the top; cells that are not on the line have only the arrow. */
static void begin_above(FILE *out, double x, double size, bool is_strong, bool is_refused)
{
    fprintf(out, "<g class=\"above%s%s\"><text text-anchor=\"%s\" x=\"%.1f\" y=\"%d\">",
            is_refused ? " refused" : "", is_strong ? "" : " faint",
            x > WIDTH - RIGHT - 2 * PAD ? "end" : "middle", x > WIDTH - RIGHT - 2 * PAD ? x + 8 : x,
            TOP - 4);
    if (is_strong)
        fprintf(out, "%s↑%.*f</text><title>", is_refused ? "× " : "", size < 10 ? 2 : 1, size);
    else
        fputs("↑</text><title>", out);
}

static void draw_point(FILE *out, struct sweep_chart *c, const struct tmk_survey_config *config,
                       bool is_strong)
{
    const struct tmk_cell *cell = config->cell;
    char name[512], size[TMK_AMOUNT_BYTES];
    bool is_estimated, is_refused = cell->outcome == TMK_CELL_OOM;
    double peak = peak_of(c, config, &is_estimated), x = chart_x(c, chart_value(c, cell));
    double y = y_of(c, peak);
    if (peak == 0 || is_on_chart_line(c, cell) != is_strong)
        return;
    c->has_arrow |= peak > c->most;
    if (peak > c->most)
        begin_above(out, x, peak / unit_of(c), is_strong, is_refused);
    else if (is_refused)
        fprintf(out, "<g class=\"oom%s\"><path d=\"M%.1f %.1fl8 8m0 -8l-8 8\"/><title>",
                is_strong ? "" : " faint", x - 4, y - 4);
    else
        fprintf(out, "<g class=\"%s%s\"><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/><title>",
                is_strong ? "point" : "faint", is_estimated ? " guess" : "", x, y,
                is_strong ? "4" : "2.5");
    tmk_html_text(out, tmk_cell_text(c->v->r, cell, name, sizeof name));
    fprintf(out, ": %s%s%s", is_estimated ? "about " : "",
            tmk_size_text(tmk_size_whole(peak), size), is_refused ? ", ran out of memory" : "");
    if (config->repeats)
        fprintf(out, ", %s repeats ended well", config->repeats);
    fputs("</title></g>\n", out);
}

static void draw_points(FILE *out, struct sweep_chart *c)
{
    for (int strong = 0; strong < 2; strong++)
        for (uint32_t k = 0; k < c->v->g->n_configs; k++)
            draw_point(out, c, &c->v->g->configs[k], strong == 1);
}

/* Mark the memory of the device, where the chart reaches it. */
static void draw_capacity(FILE *out, const struct sweep_chart *c)
{
    double capacity = (double)c->v->g->largest->cell->capacity;
    char size[TMK_AMOUNT_BYTES];
    if (c->v->g->largest->cell->capacity == TMK_BYTES_UNKNOWN || capacity > c->most)
        return;
    fprintf(out, "<line class=\"cap\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
            WIDTH - RIGHT, y_of(c, capacity), y_of(c, capacity));
    fprintf(out, "<text class=\"cap\" x=\"%d\" y=\"%.1f\">%s of the device</text>\n", LEFT + 4,
            y_of(c, capacity) - 4, tmk_size_text(tmk_size_whole(capacity), size));
}

/* Make room for every peak, but for estimates only up to twice the largest measured peak. */
static void find_chart_room(struct sweep_chart *c)
{
    double guessed = 0;
    for (uint32_t k = 0; k < c->v->g->n_configs; k++) {
        const struct tmk_survey_config *config = &c->v->g->configs[k];
        bool is_estimated;
        double peak = peak_of(c, config, &is_estimated), value = chart_value(c, config->cell);
        if (peak == 0)
            continue;
        if (is_estimated)
            guessed = fmax(guessed, peak);
        else
            c->most = fmax(c->most, peak);
        c->from = fmin(c->from, value);
        c->to = fmax(c->to, value);
    }
    c->most = 1.08 * fmax(c->most, fmin(guessed, 2 * c->most));
    uint64_t capacity = c->v->g->largest->cell->capacity;
    if (capacity != TMK_BYTES_UNKNOWN && (double)capacity < 1.5 * c->most)
        c->most = fmax(c->most, 1.08 * (double)capacity);
}

bool tmk_sweep_write_chart(FILE *out, const struct tmk_sweep_answer *v,
                           const struct tmk_influence *i)
{
    struct sweep_chart c = {.v = v, .i = i, .from = i->effect.from, .to = i->effect.to};
    const struct tmk_cell *largest = v->g->largest->cell;
    c.numbers = tmk_xcalloc(v->r->n_params, sizeof *c.numbers);
    for (uint32_t p = 0; p < v->r->n_params; p++)
        c.numbers[p] = v->r->params[p].numbers ? v->r->params[p].numbers[largest->choice[p]] : 0;
    find_chart_room(&c);
    fprintf(out,
            "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"peak against ",
            WIDTH, HEIGHT);
    tmk_html_text(out, v->r->params[i->param].name);
    fputs("\">\n", out);
    draw_axes(out, &c);
    draw_fit(out, &c);
    draw_points(out, &c);
    draw_capacity(out, &c);
    fputs("</svg>\n", out);
    free(c.numbers);
    return c.has_arrow;
}
