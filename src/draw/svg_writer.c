/* SPDX-License-Identifier: MIT */
/* draw/svg_writer.c - see svg_writer.h.
 *
 * Lengths have at most one decimal. A path is printed with relative moves, "h1.1v-3", counted in
 * tenths from the rounded points, so that no error adds up. Colours that are not opaque become a
 * colour and an opacity, which all viewers know. */
#include "draw/svg_writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/canvas.h"
#include "draw/display_list.h"

/* ---- numbers and texts ---- */

static long tenths(double value)
{
    return lround(value * 10);
}

static void put_tenths(FILE *out, long n)
{
    fprintf(out, "%s%ld", n < 0 ? "-" : "", labs(n) / 10);
    if (n % 10)
        fprintf(out, ".%ld", labs(n) % 10);
}

static void put_length(FILE *out, const char *name, double value)
{
    fprintf(out, " %s=\"", name);
    put_tenths(out, tenths(value));
    fputc('"', out);
}

/* Texts of a canvas have no control characters, so that only these three need care. */
static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else
            fputc(*text, out);
}

static void put_title(FILE *out, const char *text)
{
    fputs("<title>", out);
    put_escaped(out, text);
    fputs("</title>", out);
}

/* Print an attribute for a colour, and its opacity if it has one. */
static void put_colour(FILE *out, const char *name, uint32_t colour)
{
    if (!colour) {
        fprintf(out, " %s=\"none\"", name);
        return;
    }
    fprintf(out, " %s=\"#%06x\"", name, colour & 0xffffff);
    if (colour >> 24 != 0xff)
        fprintf(out, " %s-opacity=\"%.2f\"", name, (colour >> 24) / 255.0);
}

static void put_paint(FILE *out, const struct tmk_paint *paint)
{
    put_colour(out, "fill", paint->fill);
    if (!paint->stroke)
        return;
    put_colour(out, "stroke", paint->stroke);
    if (paint->width != 1)
        fprintf(out, " stroke-width=\"%g\"", paint->width);
    const double *dash = tmk_dash_lengths(paint->dash);
    if (paint->dash)
        fprintf(out, " stroke-dasharray=\"%g %g\"", dash[0], dash[1]);
}

/* ---- marks ---- */

static void put_rect(FILE *out, const struct tmk_canvas_mark *m)
{
    put_length(out, "x", m->x);
    put_length(out, "y", m->y);
    /* The right and lower edges are rounded, not the width, so that neighbours touch. */
    put_length(out, "width", (double)(tenths(m->x + m->width) - tenths(m->x)) / 10);
    put_length(out, "height", (double)(tenths(m->y + m->height) - tenths(m->y)) / 10);
}

/* Print a move; the first is absolute, the others are relative. */
static void put_move(FILE *out, bool is_first, long x, long y)
{
    if (!is_first && (x == 0 || y == 0)) {
        fputc(y == 0 ? 'h' : 'v', out);
        put_tenths(out, y == 0 ? x : y);
        return;
    }
    fputc(is_first ? 'M' : 'l', out);
    put_tenths(out, x);
    fputs(y < 0 ? "" : " ", out);
    put_tenths(out, y);
}

static void put_path(const struct tmk_canvas *c, FILE *out, const struct tmk_canvas_mark *m)
{
    const struct tmk_point *p = c->points + m->first_point;
    long last_x = 0, last_y = 0;
    fputs(" d=\"", out);
    for (uint64_t i = 0; i < m->n_points; i++) {
        long x = tenths(p[i].x), y = tenths(p[i].y);
        put_move(out, i == 0, x - last_x, y - last_y);
        last_x = x;
        last_y = y;
    }
    fputs(m->is_closed ? "z\"" : "\"", out);
}

static bool has_outer_blanks(const char *text)
{
    return text[0] == ' ' || text[strlen(text) - 1] == ' ' || strstr(text, "  ");
}

static void put_text(const struct tmk_canvas *c, FILE *out, const struct tmk_canvas_mark *m)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    const struct tmk_text_style *s = &m->style;
    const char *text = c->texts + m->text;
    fputs("<text", out);
    put_length(out, "x", m->x);
    put_length(out, "y", m->y);
    fputs(anchors[s->anchor], out);
    if (s->size != 12)
        fprintf(out, " font-size=\"%g\"", s->size);
    if (s->is_bold)
        fputs(" font-weight=\"bold\"", out);
    if (s->angle != 0)
        fprintf(out, " transform=\"rotate(%g %g %g)\"", -s->angle, (double)tenths(m->x) / 10,
                (double)tenths(m->y) / 10);
    put_colour(out, "fill", s->colour);
    if (s->halo) {
        put_colour(out, "stroke", s->halo);
        fprintf(out, " stroke-width=\"%g\" stroke-linejoin=\"round\" paint-order=\"stroke\"",
                TMK_HALO_WIDTH);
    }
    fputs(has_outer_blanks(text) ? " xml:space=\"preserve\">" : ">", out);
    if (m->full != m->text)
        put_title(out, c->texts + m->full);
    put_escaped(out, text);
    fputs("</text>\n", out);
}

static void put_shape(const struct tmk_canvas *c, FILE *out, const struct tmk_canvas_mark *m)
{
    fputs(m->kind == TMK_MARK_RECT ? "<rect" : m->kind == TMK_MARK_DISC ? "<circle" : "<path", out);
    if (m->kind == TMK_MARK_RECT) {
        put_rect(out, m);
    } else if (m->kind == TMK_MARK_DISC) {
        put_length(out, "cx", m->x);
        put_length(out, "cy", m->y);
        put_length(out, "r", m->width);
    } else {
        put_path(c, out, m);
    }
    put_paint(out, &m->paint);
    fputs("/>\n", out);
}

static void put_clip(FILE *out, const struct tmk_canvas_mark *m, unsigned number)
{
    fprintf(out, "<clipPath id=\"c%u\"><rect", number);
    put_rect(out, m);
    fprintf(out, "/></clipPath>\n<g clip-path=\"url(#c%u)\">\n", number);
}

static void put_mark(const struct tmk_canvas *c, FILE *out, const struct tmk_canvas_mark *m,
                     unsigned *n_clips)
{
    switch (m->kind) {
    case TMK_MARK_RECT:
    case TMK_MARK_DISC:
    case TMK_MARK_PATH:
        put_shape(c, out, m);
        break;
    case TMK_MARK_TEXT:
        put_text(c, out, m);
        break;
    case TMK_MARK_CLIP:
        put_clip(out, m, ++*n_clips);
        break;
    case TMK_MARK_GROUP:
        fputs("<g>", out);
        put_title(out, c->texts + m->text);
        fputc('\n', out);
        break;
    case TMK_MARK_UNGROUP:
        fputs("</g>\n", out);
        break;
    }
}

void tmk_svg_write(const struct tmk_canvas *c, FILE *out)
{
    unsigned n_clips = 0;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
            "viewBox=\"0 0 %g %g\" font-family=\"" TMK_FONTS "\" font-size=\"12\">\n",
            c->width, c->height, c->width, c->height);
    fprintf(out, "<rect width=\"%g\" height=\"%g\"", c->width, c->height);
    put_colour(out, "fill", c->background);
    fputs("/>\n", out);
    for (uint64_t i = 0; i < c->n_marks; i++)
        put_mark(c, out, &c->marks[i], &n_clips);
    fputs("</svg>\n", out);
}
