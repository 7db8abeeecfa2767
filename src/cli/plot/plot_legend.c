/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_legend.c - see plot_legend.h. */
#include "cli/plot/plot_legend.h"

#include "cli/plot/gnuplot.h"
#include "kit/utf8.h"

#define MARK 0.014 /* share of the picture's width: a mark and the space beside it */
#define GAP 0.016  /* between items */

static double legend_item_width(const struct tmk_legend_item *item)
{
    size_t columns = tmk_utf8_width(item->text);
    columns = columns > TMK_LEGEND_LONGEST ? TMK_LEGEND_LONGEST : columns;
    return (item->colour ? MARK : 0) + TMK_LETTER * (double)columns;
}

/* Place the next item after the one that ended at *x of *row. */
static void place_legend_item(const struct tmk_legend *l, uint32_t i, double *x, unsigned *row)
{
    bool has_room = *x + legend_item_width(&l->items[i]) <= l->left + l->width;
    if (i > 0 && !has_room) {
        *x = l->left;
        ++*row;
    }
}

unsigned tmk_legend_rows(const struct tmk_legend *l)
{
    double x = l->left;
    unsigned row = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        place_legend_item(l, i, &x, &row);
        x += legend_item_width(&l->items[i]) + GAP;
    }
    return l->n ? row + 1 : 0;
}

static void put_item(const struct tmk_legend *l, FILE *out, const struct tmk_theme *theme,
                     const struct tmk_legend_item *item, double x, double y)
{
    if (item->colour)
        fprintf(out,
                "set label '' at screen %.4f, screen %.4f point pointtype %d pointsize %s "
                "linecolor rgb '%s'\n",
                x + 0.0045, y, l->is_disc ? 7 : 5, l->is_disc ? "1.3" : "1.6", item->colour);
    fputs("set label ", out);
    tmk_gnuplot_short_text(out, item->text, TMK_LEGEND_LONGEST);
    fprintf(out, " at screen %.4f, screen %.4f left textcolor rgb '%s'\n",
            x + (item->colour ? MARK : 0), y, item->colour ? theme->text : theme->faint);
}

void tmk_legend_put(const struct tmk_legend *l, FILE *out, const struct tmk_theme *theme,
                    double bottom, unsigned height)
{
    double x = l->left;
    unsigned row = 0, n_rows = tmk_legend_rows(l);
    for (uint32_t i = 0; i < l->n; i++) {
        place_legend_item(l, i, &x, &row);
        double y = bottom + (n_rows - 1.0 - row) * TMK_LEGEND_ROW;
        put_item(l, out, theme, &l->items[i], x, y / height);
        x += legend_item_width(&l->items[i]) + GAP;
    }
}
