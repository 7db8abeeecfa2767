/* SPDX-License-Identifier: MIT */
/* cli/sweep_chart.c - the page's small charts: the peak against each parameter, with the fit.
 *
 * SVG inside the page takes its colours from the page's style, so that one drawing is light and
 * dark; that is why it is not gnuplot's. Points of the same other values as the largest cell are
 * full, others faint; the line and the band around it are the fit's for those values. */
#include <math.h>
#include <string.h>

#include "cli/html.h"
#include "cli/sweep_story.h"
#include "kit/amount.h"

enum { WIDTH = 380, HEIGHT = 230, LEFT = 52, RIGHT = 12, TOP = 26, BOTTOM = 40, N_LINE = 48 };

struct chart {
    const struct tmk_sweep_story *v;
    const struct tmk_influence *i;
    double from, to, most; /* of the axes, in bytes upwards */
};

static double x_of(const struct chart *c, double value)
{
    double span = c->to > c->from ? c->to - c->from : 1;
    return LEFT + (value - c->from) / span * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct chart *c, double bytes)
{
    return HEIGHT - BOTTOM - bytes / c->most * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, about four of which make `most`. */
static double step_of(double most)
{
    double power = pow(10, floor(log10(most / 4)));
    double part = most / 4 / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static void draw_axes(FILE *out, const struct chart *c)
{
    bool is_small = c->most < TMK_GB;
    double unit = is_small ? TMK_MB : TMK_GB, step = step_of(c->most / unit);
    const struct tmk_sweep_param *p = &c->v->r->params[c->i->param];
    for (unsigned k = 0; k * step * unit <= c->most; k++)
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%g</text>\n",
                LEFT, WIDTH - RIGHT, y_of(c, k * step * unit), y_of(c, k * step * unit), LEFT - 6,
                y_of(c, k * step * unit) + 4, k * step);
    fprintf(out, "<text class=\"tick\" x=\"4\" y=\"14\">%s</text>\n", is_small ? "MiB" : "GiB");
    double last = -1000;
    for (uint32_t k = 0; k < p->n_values && p->n_values <= 64; k++) {
        double x = x_of(c, p->numbers[k]);
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

static struct tmk_estimate estimate_at(const struct chart *c, double value)
{
    const struct tmk_results *r = c->v->r;
    const uint32_t *choice = r->cells[c->v->advice.largest].choice;
    double numbers[64] = {0};
    for (uint32_t p = 0; p < r->n_params && p < 64; p++)
        numbers[p] = r->params[p].numbers ? r->params[p].numbers[choice[p]] : 0;
    numbers[c->i->param] = value;
    return tmk_fit_at(c->v->allocated, numbers, choice);
}

static double place(const struct chart *c, unsigned k)
{
    return c->from + (c->to - c->from) * k / N_LINE;
}

static void draw_fit(FILE *out, const struct chart *c)
{
    if (!estimate_at(c, c->from).known || c->v->r->n_params > 64)
        return;
    fputs("<polygon class=\"band\" points=\"", out);
    for (unsigned k = 0; k <= N_LINE; k++)
        fprintf(out, "%.1f,%.1f ", x_of(c, place(c, k)),
                y_of(c, fmin(estimate_at(c, place(c, k)).high, c->most)));
    for (unsigned k = N_LINE + 1; k-- > 0;)
        fprintf(out, "%.1f,%.1f ", x_of(c, place(c, k)),
                y_of(c, fmin(estimate_at(c, place(c, k)).low, c->most)));
    fputs("\"/>\n<polyline class=\"fit\" points=\"", out);
    for (unsigned k = 0; k <= N_LINE; k++)
        fprintf(out, "%.1f,%.1f ", x_of(c, place(c, k)),
                y_of(c, fmin(estimate_at(c, place(c, k)).bytes, c->most)));
    fputs("\"/>\n", out);
}

static bool is_on_line(const struct chart *c, const struct tmk_cell *cell)
{
    const uint32_t *choice = c->v->r->cells[c->v->advice.largest].choice;
    for (uint32_t p = 0; p < c->v->r->n_params; p++)
        if (p != c->i->param && cell->choice[p] != choice[p] &&
            tmk_advice_matters(c->v->r, &c->v->advice, p))
            return false;
    return true;
}

static void draw_points(FILE *out, const struct chart *c)
{
    for (int strong = 0; strong < 2; strong++)
        for (uint32_t k = 0; k < c->v->r->n_cells; k++) {
            const struct tmk_cell *cell = &c->v->r->cells[k];
            char name[512], size[TMK_AMOUNT_BYTES];
            if (cell->outcome != TMK_CELL_DONE || cell->peak_allocated == TMK_UNKNOWN_BYTES ||
                is_on_line(c, cell) != (strong == 1))
                continue;
            fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>",
                    strong ? "point" : "faint",
                    x_of(c, c->v->r->params[c->i->param].numbers[cell->choice[c->i->param]]),
                    y_of(c, (double)cell->peak_allocated), strong ? "4" : "2.5");
            tmk_html_text(out, tmk_cell_text(c->v->r, cell, name, sizeof name));
            fprintf(out, ": %s</title></circle>\n", tmk_size_text(cell->peak_allocated, size));
        }
}

void tmk_sweep_write_chart(FILE *out, const struct tmk_sweep_story *v,
                           const struct tmk_influence *i)
{
    struct chart c = {.v = v, .i = i, .from = i->effect.from, .to = i->effect.to};
    for (uint32_t k = 0; k < v->r->n_cells; k++)
        if (v->r->cells[k].outcome == TMK_CELL_DONE &&
            v->r->cells[k].peak_allocated != TMK_UNKNOWN_BYTES)
            c.most = fmax(c.most, (double)v->r->cells[k].peak_allocated);
    c.most *= 1.08;
    fprintf(out,
            "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"peak against ",
            WIDTH, HEIGHT);
    tmk_html_text(out, v->r->params[i->param].name);
    fputs("\">\n", out);
    draw_axes(out, &c);
    draw_fit(out, &c);
    draw_points(out, &c);
    fputs("</svg>\n", out);
}
