/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_bars.c - see plot_bars.h. */
#include "cli/plot/plot_bars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "kit/grow.h"

enum { /* points */ SIZE = 12, NAME = 300, BESIDE = 7, SIZE_TIC = 80 };

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

/* ---- keys ---- */

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
        const char *key = b->keys[order[k]];
        uint32_t colour = tmk_palette_next(key, &n_others);
        if (!is_invisible(b, order[k]))
            items[n++] = (struct tmk_legend_item){.text = key, .colour = colour};
    }
    free(order);
    *ret_n = n;
    return items;
}

/* ---- measures ---- */

double tmk_bars_names_width(const struct tmk_bars *b)
{
    double longest = 30;
    for (uint32_t i = 0; i < b->n_bars; i++)
        longest = fmax(longest, tmk_text_width(b->bars[i].name, SIZE, false));
    return fmin(longest, NAME) + BESIDE;
}

static const char *bar_note(const struct tmk_bars *b, const struct tmk_bar *bar, char *buffer)
{
    return bar->note ? bar->note : tmk_size_text(bar_end(b, bar), buffer);
}

/* The bytes that the width stands for, such that each bar has room for its note behind it. */
static double axis_bytes(const struct tmk_bars *b, const struct tmk_bars_place *place)
{
    double most = (double)(place->limit ? place->limit : 1);
    for (uint32_t i = 0; i < b->n_bars; i++) {
        char size[TMK_AMOUNT_BYTES];
        double note = tmk_text_width(bar_note(b, &b->bars[i], size), SIZE, false) + 2 * BESIDE;
        double part = 1 - note / place->width;
        most = fmax(most, (double)bar_end(b, &b->bars[i]) / fmax(part, 0.3));
    }
    return most;
}

/* ---- drawing bars ---- */

struct bars_drawing {
    const struct tmk_bars *b;
    const struct tmk_picture *p;
    const struct tmk_bars_place *place;
    double most; /* bytes at the right edge */
    double row;  /* height of one */
    uint32_t *order;
};

static double bar_x(const struct bars_drawing *d, uint64_t bytes)
{
    return d->place->left + (double)bytes / d->most * d->place->width;
}

static double bar_middle(const struct bars_drawing *d, uint32_t i)
{
    return d->place->top + (i + 0.5) * d->row;
}

static void draw_bars_sizes(const struct bars_drawing *d)
{
    const struct tmk_bars_place *place = d->place;
    const struct tmk_theme *theme = d->p->theme;
    struct tmk_plot_unit unit = tmk_plot_size_unit(d->most);
    double tic = tmk_plot_tic(d->most / unit.size, (unsigned)(place->width / SIZE_TIC) + 1);
    double bottom = place->top + place->height;
    for (unsigned i = 0; i * tic * unit.size <= d->most; i++) {
        char text[32];
        double x = place->left + i * tic * unit.size / d->most * place->width;
        snprintf(text, sizeof text, "%.9g", i * tic);
        tmk_canvas_line(d->p->canvas, x, place->top, x, bottom,
                        &(struct tmk_paint){.stroke = i ? theme->grid : theme->axis});
        tmk_canvas_text(
            d->p->canvas, x, bottom + 17, text,
            &(struct tmk_text_style){.colour = theme->faint, .anchor = TMK_ANCHOR_MIDDLE});
    }
    char *label =
        place->label ? tmk_xformat("%s, %s", place->label, unit.name) : tmk_xstrdup(unit.name);
    tmk_canvas_text(d->p->canvas, place->left + place->width / 2, bottom + 37, label,
                    &(struct tmk_text_style){
                        .colour = theme->faint, .anchor = TMK_ANCHOR_MIDDLE, .most = place->width});
    free(label);
}

/* Draw a piece of a bar. */
static void draw_piece(const struct bars_drawing *d, const struct tmk_bar *bar, uint32_t key,
                       double top, double height, uint64_t from, uint32_t colour)
{
    char size[TMK_AMOUNT_BYTES];
    uint64_t bytes = bar->bytes[key];
    char *title = tmk_xformat("%s, %s: %s", bar->name, d->b->keys[key], tmk_size_text(bytes, size));
    tmk_canvas_group(d->p->canvas, title);
    tmk_canvas_rect(d->p->canvas, bar_x(d, from), top, bar_x(d, from + bytes) - bar_x(d, from),
                    height, &(struct tmk_paint){.fill = colour});
    tmk_canvas_ungroup(d->p->canvas);
    free(title);
}

static void draw_pieces(const struct bars_drawing *d, uint32_t i)
{
    const struct tmk_bars *b = d->b;
    const struct tmk_bar *bar = &b->bars[i];
    double high = d->row * 0.76, top = bar_middle(d, i) - high / 2;
    unsigned n_others = 0;
    uint64_t from = 0;
    for (uint32_t k = 0; k < b->n_keys; k++) {
        uint32_t key = d->order[k], colour = tmk_palette_next(b->keys[key], &n_others);
        if (bar->bytes[key] && b->is_beside)
            draw_piece(d, bar, key, top + high * k / b->n_keys, high / b->n_keys, 0, colour);
        else if (bar->bytes[key])
            draw_piece(d, bar, key, top, high, from, colour);
        from += bar->bytes[key];
    }
}

/* Draw the mark across a bar, its outline, name and note. */
static void draw_bar_texts(const struct bars_drawing *d, uint32_t i)
{
    char size[TMK_AMOUNT_BYTES];
    const struct tmk_bar *bar = &d->b->bars[i];
    const struct tmk_theme *theme = d->p->theme;
    double y = bar_middle(d, i), half = d->row * 0.38, x = bar_x(d, bar->mark);
    if (bar->mark)
        tmk_canvas_line(d->p->canvas, x, y - half - 2, x, y + half + 2,
                        &(struct tmk_paint){.stroke = theme->text, .width = 3});
    if (bar->outline)
        tmk_canvas_rect(d->p->canvas, d->place->left, y - half,
                        bar_x(d, bar->outline) - d->place->left, 2 * half,
                        &(struct tmk_paint){.stroke = theme->faint});
    tmk_canvas_text(
        d->p->canvas, bar_x(d, bar_end(d->b, bar)) + BESIDE, y + 4, bar_note(d->b, bar, size),
        &(struct tmk_text_style){.colour = bar->is_warning ? theme->warning : theme->text});
    if (!d->place->no_names)
        tmk_canvas_text(d->p->canvas, d->place->left - BESIDE, y + 4, bar->name,
                        &(struct tmk_text_style){
                            .colour = theme->text, .anchor = TMK_ANCHOR_END, .most = NAME});
}

void tmk_bars_draw(const struct tmk_bars *b, const struct tmk_picture *p,
                   const struct tmk_bars_place *place)
{
    struct bars_drawing d = {.b = b,
                             .p = p,
                             .place = place,
                             .most = axis_bytes(b, place),
                             .row = place->height / (b->n_bars ? b->n_bars : 1),
                             .order = tmk_xcalloc((size_t)b->n_keys + 1, sizeof *d.order)};
    order_keys(b, d.order);
    draw_bars_sizes(&d);
    for (uint32_t i = 0; i < b->n_bars; i++)
        draw_pieces(&d, i);
    if (place->limit)
        tmk_canvas_line(
            p->canvas, bar_x(&d, place->limit), place->top, bar_x(&d, place->limit),
            place->top + place->height,
            &(struct tmk_paint){.stroke = p->theme->capacity, .width = 1.5, .dash = TMK_DASH_LONG});
    for (uint32_t i = 0; i < b->n_bars; i++)
        draw_bar_texts(&d, i);
    free(d.order);
}
