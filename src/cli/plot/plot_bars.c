/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_bars.c - see plot_bars.h. */
#include "cli/plot/plot_bars.h"

#include <stdlib.h>
#include <string.h>

#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/utf8.h"

enum { NAME = 40, BAR_HEIGHT = 30, LEAST_HEIGHT = 300, MOST_HEIGHT = 1600 };

/* ---- making bars ---- */

static uint32_t bar_key(struct tmk_bars *b, const char *key)
{
    for (uint32_t k = 0; k < b->n_keys; k++)
        if (strcmp(b->keys[k], key) == 0)
            return k;
    if (TMK_GROW(b->keys, b->n_keys + 1ull, b->key_room) < 0)
        tmk_die("out of memory");
    b->keys[b->n_keys++] = tmk_xstrdup(key);
    for (uint32_t i = 0; i < b->n_bars; i++) {
        uint64_t *bytes = tmk_xcalloc(b->n_keys, sizeof *bytes);
        if (b->n_keys > 1)
            memcpy(bytes, b->bars[i].bytes, (b->n_keys - 1) * sizeof *bytes);
        free(b->bars[i].bytes);
        b->bars[i].bytes = bytes;
    }
    return b->n_keys - 1;
}

struct tmk_bar *tmk_bars_get(struct tmk_bars *b, const char *name)
{
    for (uint32_t i = 0; i < b->n_bars; i++)
        if (strcmp(b->bars[i].name, name) == 0)
            return &b->bars[i];
    if (TMK_GROW(b->bars, b->n_bars + 1ull, b->bar_room) < 0)
        tmk_die("out of memory");
    b->bars[b->n_bars] = (struct tmk_bar){.name = tmk_xstrdup(name)};
    b->bars[b->n_bars].bytes = tmk_xcalloc((size_t)b->n_keys + 1, sizeof(uint64_t));
    return &b->bars[b->n_bars++];
}

void tmk_bars_add(struct tmk_bars *b, const char *name, const char *key, uint64_t bytes)
{
    uint32_t k = bar_key(b, key);
    struct tmk_bar *bar = tmk_bars_get(b, name);
    bar->bytes[k] += bytes;
    bar->total += bytes;
}

static int by_total(const void *va, const void *vb)
{
    const struct tmk_bar *a = va, *b = vb;
    return a->total != b->total ? (a->total > b->total ? -1 : 1) : strcmp(a->name, b->name);
}

static void free_bar(struct tmk_bar *bar)
{
    free(bar->name);
    free(bar->bytes);
    free(bar->note);
}

void tmk_bars_tidy(struct tmk_bars *b, uint32_t most)
{
    if (b->n_bars > 1)
        qsort(b->bars, b->n_bars, sizeof *b->bars, by_total);
    if (b->n_bars <= most)
        return;
    struct tmk_bar *rest = &b->bars[most - 1];
    free(rest->name);
    rest->name = tmk_xformat("(%u more)", b->n_bars - most + 1);
    for (uint32_t i = most; i < b->n_bars; i++) {
        for (uint32_t k = 0; k < b->n_keys; k++)
            rest->bytes[k] += b->bars[i].bytes[k];
        rest->total += b->bars[i].total;
        free_bar(&b->bars[i]);
    }
    b->n_bars = most;
}

/* The end of a bar, where its note is. */
static uint64_t bar_end(const struct tmk_bars *b, const struct tmk_bar *bar)
{
    uint64_t end = b->is_beside ? 0 : bar->total;
    for (uint32_t k = 0; b->is_beside && k < b->n_keys; k++)
        end = bar->bytes[k] > end ? bar->bytes[k] : end;
    return bar->outline > end ? bar->outline : end;
}

uint64_t tmk_bars_most(const struct tmk_bars *b)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < b->n_bars; i++) {
        const struct tmk_bar *bar = &b->bars[i];
        uint64_t bytes = bar_end(b, bar);
        most = bytes > most ? bytes : most;
    }
    return most;
}

void tmk_bars_fini(struct tmk_bars *b)
{
    for (uint32_t i = 0; i < b->n_bars; i++)
        free_bar(&b->bars[i]);
    for (uint32_t k = 0; k < b->n_keys; k++)
        free(b->keys[k]);
    free(b->bars);
    free(b->keys);
    *b = (struct tmk_bars){0};
}

/* ---- drawing bars ---- */

double tmk_bars_names_width(const struct tmk_bars *b)
{
    size_t longest = 4;
    for (uint32_t i = 0; i < b->n_bars; i++) {
        size_t width = tmk_utf8_width(b->bars[i].name);
        longest = width > longest ? width : longest;
    }
    return 0.02 + 0.0074 * (double)(longest > NAME ? NAME : longest);
}

unsigned tmk_bars_height(uint32_t n_bars)
{
    unsigned height = 150 + BAR_HEIGHT * n_bars;
    return height < LEAST_HEIGHT ? LEAST_HEIGHT : height > MOST_HEIGHT ? MOST_HEIGHT : height;
}

/* Order keys by their place in the stack. */
static void order_keys(const struct tmk_bars *b, uint32_t *order)
{
    for (uint32_t k = 0; k < b->n_keys; k++)
        order[k] = k;
    for (uint32_t i = 1; i < b->n_keys; i++)
        for (uint32_t k = i; k > 0; k--) {
            unsigned x = tmk_palette_rank(b->keys[order[k - 1]]);
            unsigned y = tmk_palette_rank(b->keys[order[k]]);
            if (x <= y)
                break;
            uint32_t swap = order[k];
            order[k] = order[k - 1];
            order[k - 1] = swap;
        }
}

static double bar_row(const struct tmk_bars *b, uint32_t i)
{
    return b->n_bars - 1 - i;
}

/* Find the lower and upper edge of the k-th piece, from the row's middle. */
static void find_edges(const struct tmk_bars *b, uint32_t k, double *ret_low, double *ret_high)
{
    *ret_high = b->is_beside ? 0.4 - 0.8 * k / b->n_keys : 0.36;
    *ret_low = b->is_beside ? 0.4 - 0.8 * (k + 1.0) / b->n_keys : -0.36;
}

/* Write a data block for each key, $k0 ...: left, right, lower, upper edge. */
static void put_bar_data(const struct tmk_bars *b, FILE *out, const uint32_t *order, double unit)
{
    uint64_t *left = tmk_xcalloc((size_t)b->n_bars + 1, sizeof *left);
    for (uint32_t k = 0; k < b->n_keys; k++) {
        double low, high;
        find_edges(b, k, &low, &high);
        fprintf(out, "$k%u << EOD\nNaN NaN NaN NaN\n", k);
        for (uint32_t i = 0; i < b->n_bars; i++) {
            uint64_t bytes = b->bars[i].bytes[order[k]];
            if (bytes)
                fprintf(out, "%.7g %.7g %.4f %.4f\n", (double)left[i] / unit,
                        (double)(left[i] + bytes) / unit, bar_row(b, i) + low,
                        bar_row(b, i) + high);
            left[i] += b->is_beside ? 0 : bytes;
        }
        fputs("EOD\n", out);
    }
    free(left);
}

static void put_bar_names(const struct tmk_bars *b, FILE *out, bool no_names)
{
    if (no_names) {
        fputs("unset ytics\n", out);
        return;
    }
    fputs("set ytics scale 0 (", out);
    for (uint32_t i = 0; i < b->n_bars; i++) {
        fputs(i ? ", " : "", out);
        tmk_gnuplot_tail_tic(out, b->bars[i].name, NAME);
        fprintf(out, " %.1f", bar_row(b, i));
    }
    fputs(")\n", out);
}

static void put_notes(const struct tmk_bars *b, FILE *out, const struct tmk_theme *theme,
                      double unit)
{
    for (uint32_t i = 0; i < b->n_bars; i++) {
        const struct tmk_bar *bar = &b->bars[i];
        char size[TMK_AMOUNT_BYTES];
        uint64_t end = bar_end(b, bar);
        fputs("set label ", out);
        tmk_gnuplot_text(out, bar->note ? bar->note : tmk_size_text(end, size));
        fprintf(out, " at first %.7g, first %.1f left front offset 0.6,0 textcolor rgb '%s'\n",
                (double)end / unit, bar_row(b, i), bar->is_warning ? theme->warning : theme->text);
        if (bar->mark)
            fprintf(out,
                    "set arrow from first %.7g, first %.2f to first %.7g, first %.2f nohead front "
                    "linewidth 3 linecolor rgb '%s'\n",
                    (double)bar->mark / unit, bar_row(b, i) - 0.42, (double)bar->mark / unit,
                    bar_row(b, i) + 0.42, theme->text);
        if (bar->outline)
            fprintf(out,
                    "set object rectangle from first 0, first %.2f to first %.7g, first %.2f front "
                    "fillstyle empty border linecolor rgb '%s' linewidth 1\n",
                    bar_row(b, i) - 0.36, (double)bar->outline / unit, bar_row(b, i) + 0.36,
                    theme->faint);
    }
}

static double place_width(const struct tmk_bars_place *place)
{
    return place->right > place->left ? place->right - place->left : 0.8;
}

/* The width of the axis, with room for the notes behind the longest bar. */
static double axis_width(const struct tmk_bars *b, const struct tmk_bars_place *place, double most)
{
    size_t longest = 10;
    for (uint32_t i = 0; i < b->n_bars; i++)
        if (b->bars[i].note && strlen(b->bars[i].note) > longest)
            longest = strlen(b->bars[i].note);
    double notes = 0.0085 * (double)(longest > 60 ? 60 : longest) / place_width(place);
    return most / (1 - (notes < 0.6 ? notes : 0.6));
}

static void put_frame(const struct tmk_bars *b, FILE *out, const struct tmk_theme *theme,
                      const struct tmk_bars_place *place, struct tmk_plot_unit unit, double width)
{
    if (place->right > place->left)
        fprintf(out, "set lmargin at screen %.4f\nset rmargin at screen %.4f\n", place->left,
                place->right);
    fprintf(
        out,
        "unset grid\nset grid x linetype 1 linewidth 1 linecolor rgb '%s'\nset border 0\n"
        "set xtics scale 0 autofreq %.7g\nset xlabel '%s%s%s'\nset style fill solid 1 noborder\n"
        "set xrange [0:%.7g]\nset yrange [-0.6:%.1f]\n",
        theme->grid, tmk_plot_tic(width / unit.size, (unsigned)(16 * place_width(place))),
        place->label ? place->label : "", place->label ? ", " : "", unit.name, width / unit.size,
        b->n_bars - 0.4);
    if (place->limit)
        fprintf(out,
                "set arrow from first %.7g, graph 0 to first %.7g, graph 1 nohead front "
                "dashtype 2 linewidth 1.5 linecolor rgb '%s'\n",
                (double)place->limit / unit.size, (double)place->limit / unit.size,
                theme->capacity);
}

/* Whether a key has so little that its colour could not be seen. */
static bool is_invisible(const struct tmk_bars *b, uint32_t key)
{
    double most = 0, longest = (double)tmk_bars_most(b);
    for (uint32_t i = 0; i < b->n_bars; i++)
        most = (double)b->bars[i].bytes[key] > most ? (double)b->bars[i].bytes[key] : most;
    return most < longest / 1000;
}

struct tmk_legend_item *tmk_bars_legend(const struct tmk_bars *b, uint32_t *ret_n)
{
    struct tmk_legend_item *items = tmk_xcalloc((size_t)b->n_keys + 1, sizeof *items);
    uint32_t *order = tmk_xcalloc((size_t)b->n_keys + 1, sizeof *order), n = 0;
    unsigned n_others = 0;
    order_keys(b, order);
    for (uint32_t k = 0; k < b->n_keys; k++) {
        const char *key = b->keys[order[k]], *colour = tmk_palette_next(key, &n_others);
        if (!is_invisible(b, order[k]))
            items[n++] = (struct tmk_legend_item){key, colour};
    }
    free(order);
    *ret_n = n;
    return items;
}

void tmk_bars_put(const struct tmk_bars *b, FILE *out, const struct tmk_theme *theme,
                  const struct tmk_bars_place *place)
{
    uint64_t most = tmk_bars_most(b);
    most = place->limit > most ? place->limit : most ? most : 1;
    struct tmk_plot_unit unit = tmk_plot_size_unit((double)most);
    uint32_t *order = tmk_xcalloc((size_t)b->n_keys + 1, sizeof *order);
    order_keys(b, order);
    put_bar_data(b, out, order, unit.size);
    put_frame(b, out, theme, place, unit, axis_width(b, place, (double)most));
    put_bar_names(b, out, place->no_names);
    put_notes(b, out, theme, unit.size);
    unsigned n_others = 0;
    fputs("plot ", out);
    for (uint32_t k = 0; k < b->n_keys; k++) {
        fprintf(out,
                "%s$k%u using (($1+$2)/2):(($3+$4)/2):1:2:3:4 with boxxyerror linecolor rgb '%s' ",
                k ? ", " : "", k, tmk_palette_next(b->keys[order[k]], &n_others));
        bool has_title = !place->no_key && !is_invisible(b, order[k]);
        fputs(has_title ? "title " : "notitle", out);
        if (has_title)
            tmk_gnuplot_short_text(out, b->keys[order[k]], NAME);
    }
    fputc('\n', out);
    free(order);
}
