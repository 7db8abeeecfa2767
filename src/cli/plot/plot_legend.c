/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_legend.c - see plot_legend.h. */
#include "cli/plot/plot_legend.h"

#include "draw/canvas.h"

enum { SIZE = 12, MARK = 18 /* a mark and the space beside it */, GAP = 18, LINE = 14 };

static double item_width(const struct tmk_legend_item *item, double most)
{
    double width = tmk_text_width(item->text, SIZE, false);
    return (item->colour ? MARK : 0) + (width < most ? width : most);
}

/* Place the next item after the one that ended at *x of *row. */
static void place_legend_item(const struct tmk_legend *l, uint32_t i, double *x, unsigned *row)
{
    if (i > 0 && *x + item_width(&l->items[i], TMK_LEGEND_LONGEST) > l->left + l->width) {
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
        x += item_width(&l->items[i], TMK_LEGEND_LONGEST) + GAP;
    }
    return l->n ? row + 1 : 0;
}

/* Draw the sign of an item that stands on y. */
static void draw_mark(const struct tmk_picture *p, const struct tmk_legend_item *item, double x,
                      double y)
{
    static const enum tmk_dash dashes[] = {
        [TMK_LEGEND_DASHED] = TMK_DASH_LONG, [TMK_LEGEND_DOTTED] = TMK_DASH_DOTS};
    if (!item->colour)
        return;
    if (item->mark == TMK_LEGEND_SQUARE)
        tmk_canvas_rect(p->canvas, x, y - 10, 11, 11, &(struct tmk_paint){.fill = item->colour});
    else if (item->mark == TMK_LEGEND_DISC)
        tmk_canvas_disc(p->canvas, x + 6, y - 4, 4.5, &(struct tmk_paint){.fill = item->colour});
    else
        tmk_canvas_line(
            p->canvas, x - 1, y - 4, x + LINE - 1, y - 4,
            &(struct tmk_paint){.stroke = item->colour, .width = 2, .dash = dashes[item->mark]});
}

static void draw_item(const struct tmk_picture *p, const struct tmk_legend_item *item, double x,
                      double y, double most)
{
    draw_mark(p, item, x, y);
    tmk_canvas_text(p->canvas, x + (item->colour ? MARK : 0), y, item->text,
                    &(struct tmk_text_style){
                        .colour = item->colour ? p->theme->text : p->theme->faint, .most = most});
}

void tmk_legend_draw(const struct tmk_legend *l, const struct tmk_picture *p, double top)
{
    double x = l->left;
    unsigned row = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        place_legend_item(l, i, &x, &row);
        draw_item(p, &l->items[i], x, top + row * TMK_LEGEND_ROW + SIZE, TMK_LEGEND_LONGEST);
        x += item_width(&l->items[i], TMK_LEGEND_LONGEST) + GAP;
    }
}

/* ---- a column ---- */

static double size_width(const struct tmk_legend_item *item)
{
    return item->size ? tmk_text_width(item->size, SIZE, false) + GAP : 0;
}

double tmk_legend_column_width(const struct tmk_legend_item *items, uint32_t n, double most)
{
    double names = 0, sizes = 0;
    for (uint32_t i = 0; i < n; i++) {
        double name = items[i].text ? item_width(&items[i], TMK_LEGEND_LONGEST) : 0;
        names = name > names ? name : names;
        sizes = size_width(&items[i]) > sizes ? size_width(&items[i]) : sizes;
    }
    return names + sizes < most ? names + sizes : most;
}

void tmk_legend_column(const struct tmk_legend *l, const struct tmk_picture *p, double top)
{
    double y = top + SIZE;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct tmk_legend_item *item = &l->items[i];
        if (!item->text) {
            y += TMK_LEGEND_ROW / 2.0;
            continue;
        }
        draw_item(p, item, l->left, y, l->width - MARK - size_width(item));
        if (item->size)
            tmk_canvas_text(
                p->canvas, l->left + l->width, y, item->size,
                &(struct tmk_text_style){.colour = p->theme->faint, .anchor = TMK_ANCHOR_END});
        y += TMK_LEGEND_ROW;
    }
}
