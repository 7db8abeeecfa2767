/* SPDX-License-Identifier: MIT */
/* draw/canvas.c - see canvas.h. */
#include "draw/canvas.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "draw/display_list.h"
#include "kit/grow.h"
#include "kit/utf8.h"

#define TEXT_SIZE 12.0

int tmk_canvas_open(double width, double height, uint32_t background, struct tmk_canvas **ret)
{
    struct tmk_canvas *c = calloc(1, sizeof *c);
    if (!c)
        return TMK_ENOMEM;
    c->width = width;
    c->height = height;
    c->background = background;
    *ret = c;
    return 0;
}

struct tmk_canvas *tmk_canvas_close(struct tmk_canvas *c)
{
    if (!c)
        return NULL;
    free(c->marks);
    free(c->points);
    free(c->texts);
    free(c);
    return NULL;
}

int tmk_canvas_error(const struct tmk_canvas *c)
{
    return c->rc;
}

/* ---- appending ---- */

/* Append a mark. Without memory it is lost, and the canvas says so. */
static void add_mark(struct tmk_canvas *c, const struct tmk_canvas_mark *mark)
{
    if (c->rc < 0 || (c->rc = TMK_GROW(c->marks, c->n_marks + 1, c->mark_room)) < 0)
        return;
    c->marks[c->n_marks] = *mark;
    if (c->marks[c->n_marks].paint.width <= 0)
        c->marks[c->n_marks].paint.width = 1;
    c->n_marks++;
}

void tmk_canvas_rect(struct tmk_canvas *c, double x, double y, double width, double height,
                     const struct tmk_paint *paint)
{
    add_mark(c, &(struct tmk_canvas_mark){.kind = TMK_MARK_RECT,
                                          .x = width < 0 ? x + width : x,
                                          .y = height < 0 ? y + height : y,
                                          .width = fabs(width),
                                          .height = fabs(height),
                                          .paint = *paint});
}

void tmk_canvas_disc(struct tmk_canvas *c, double x, double y, double radius,
                     const struct tmk_paint *paint)
{
    add_mark(c, &(struct tmk_canvas_mark){
                    .kind = TMK_MARK_DISC, .x = x, .y = y, .width = radius, .paint = *paint});
}

void tmk_canvas_line(struct tmk_canvas *c, double x1, double y1, double x2, double y2,
                     const struct tmk_paint *paint)
{
    const struct tmk_point ends[] = {{x1, y1}, {x2, y2}};
    tmk_canvas_path(c, ends, 2, false, paint);
}

/* ---- paths ---- */

static double tenth(double value)
{
    return isfinite(value) ? round(value * 10) / 10 : 0;
}

/* Whether b lies on the straight way from a to c. */
static bool is_between(const struct tmk_point *a, const struct tmk_point *b,
                       const struct tmk_point *c)
{
    double x1 = b->x - a->x, y1 = b->y - a->y, x2 = c->x - b->x, y2 = c->y - b->y;
    return fabs(x1 * y2 - x2 * y1) < 1e-6 && x1 * x2 + y1 * y2 >= 0;
}

/* Add a point to the path that begins at point number `first`. */
static void add_point(struct tmk_canvas *c, uint64_t first, struct tmk_point p)
{
    uint64_t n = c->n_points - first;
    struct tmk_point *last = c->points + c->n_points;
    if (n >= 2 && is_between(&last[-2], &last[-1], &p))
        last[-1] = p;
    else if (n == 0 || last[-1].x != p.x || last[-1].y != p.y)
        c->points[c->n_points++] = p;
}

void tmk_canvas_path(struct tmk_canvas *c, const struct tmk_point *points, size_t n, bool is_closed,
                     const struct tmk_paint *paint)
{
    uint64_t first = c->n_points;
    if (n == 0 || c->rc < 0 || (c->rc = TMK_GROW(c->points, first + n, c->point_room)) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        add_point(c, first, (struct tmk_point){tenth(points[i].x), tenth(points[i].y)});
    add_mark(c, &(struct tmk_canvas_mark){.kind = TMK_MARK_PATH,
                                          .is_closed = is_closed,
                                          .paint = *paint,
                                          .first_point = first,
                                          .n_points = c->n_points - first});
}

/* ---- texts ---- */

/* Append one character as UTF-8, without the two code points that XML forbids. */
static void add_letter(struct tmk_canvas *c, uint32_t letter)
{
    letter = letter == 0xfffe || letter == 0xffff ? TMK_UTF8_BAD : letter;
    unsigned n = letter < 0x80 ? 1 : letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
    if (c->rc < 0 || (c->rc = TMK_GROW(c->texts, c->n_texts + n + 1, c->text_room)) < 0)
        return;
    char *to = c->texts + c->n_texts;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = n; i-- > 1; letter >>= 6)
        to[i] = (char)(0x80 | (letter & 0x3f));
    to[0] = (char)(leads[n] | letter);
    c->n_texts += n;
}

/* Append a text as a screen would show it; returns the place of its first byte. */
static uint64_t add_shown(struct tmk_canvas *c, const char *text)
{
    uint64_t first = c->n_texts;
    size_t columns;
    for (uint32_t letter; (letter = tmk_utf8_shown(&text, &columns)) != 0;)
        add_letter(c, letter);
    add_letter(c, 0);
    return first;
}

static double letter_width(uint32_t letter, size_t columns)
{
    /* DejaVu Sans from ' ' to '~', thousandths of the size. */
    static const uint16_t widths[] = {
        318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
        636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
        1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
        603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
        500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
        635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};
    if (letter >= ' ' && letter <= '~')
        return widths[letter - ' '] / 1000.0;
    if (letter == 0xb7) /* middle dot */
        return 0.318;
    if (letter == 0x2013) /* en dash */
        return 0.5;
    if (letter == 0x2026) /* ellipsis */
        return 1;
    return columns == 0 ? 0 : columns > 1 ? 1 : 0.84;
}

static double letters_width(const char *text, const char *end)
{
    double width = 0;
    size_t columns;
    for (uint32_t letter; text < end && (letter = tmk_utf8_shown(&text, &columns)) != 0;)
        width += letter_width(letter, columns);
    return width;
}

/* Bold letters are up to a sixth wider, most of them less. */
static double bold_factor(bool is_bold)
{
    return is_bold ? 1.16 : 1;
}

double tmk_text_width(const char *text, double size, bool is_bold)
{
    return letters_width(text, text + strlen(text)) * size * bold_factor(is_bold);
}

/* Append the text with "…" in its middle, such that it takes at most `most` times its size. The
 * beginning and the end get the same room; no letter is parted from its accents. */
static uint64_t add_shortened(struct tmk_canvas *c, const char *text, double most)
{
    uint64_t first = c->n_texts;
    const char *end = text + strlen(text), *at = text, *tail = text;
    double room = most - letter_width(0x2026, 1), left = 0;
    size_t columns = 1;
    for (const char *next = text; at < end; at = next) {
        uint32_t letter = tmk_utf8_shown(&next, &columns);
        if (left + letter_width(letter, columns) > room / 2)
            break;
        left += letter_width(letter, columns);
        add_letter(c, letter);
    }
    add_letter(c, 0x2026);
    for (tail = at; tail < end && letters_width(tail, end) > room - left;)
        tmk_utf8_shown(&tail, &columns);
    for (const char *next = tail; next < end; tail = next) { /* no accent without its letter */
        tmk_utf8_shown(&next, &columns);
        if (columns > 0)
            break;
    }
    add_shown(c, tail);
    return first;
}

void tmk_canvas_text(struct tmk_canvas *c, double x, double y, const char *text,
                     const struct tmk_text_style *style)
{
    struct tmk_canvas_mark mark = {.kind = TMK_MARK_TEXT, .x = x, .y = y, .style = *style};
    mark.style.size = style->size > 0 ? style->size : TEXT_SIZE;
    double most = style->most / mark.style.size / bold_factor(style->is_bold);
    if (!text[0] || !style->colour)
        return;
    mark.full = mark.text = add_shown(c, text);
    if (style->most > 0 && letters_width(text, text + strlen(text)) > most + 1e-6)
        mark.text = add_shortened(c, text, most);
    add_mark(c, &mark);
}

/* ---- groups ---- */

void tmk_canvas_clip(struct tmk_canvas *c, double x, double y, double width, double height)
{
    add_mark(c, &(struct tmk_canvas_mark){
                    .kind = TMK_MARK_CLIP, .x = x, .y = y, .width = width, .height = height});
}

void tmk_canvas_group(struct tmk_canvas *c, const char *title)
{
    add_mark(c, &(struct tmk_canvas_mark){.kind = TMK_MARK_GROUP, .text = add_shown(c, title)});
}

void tmk_canvas_ungroup(struct tmk_canvas *c)
{
    add_mark(c, &(struct tmk_canvas_mark){.kind = TMK_MARK_UNGROUP});
}
