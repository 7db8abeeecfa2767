/* SPDX-License-Identifier: MIT */
/* draw/cairo_writer.c - see cairo_writer.h.
 *
 * The few functions that we call are declared here as pointers, from the documented C interface of
 * cairo 1.10 and Pango 1.16, so no headers are needed to build. Pango lays out the texts, because
 * it takes letters that a font lacks (Chinese) from another; cairo's own texts do not. The
 * libraries are never unloaded: GLib, below them, does not survive it. */
#include "draw/cairo_writer.h"

#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "draw/canvas.h"
#include "draw/display_list.h"

struct cairo;
struct cairo_surface;
struct pango_layout;
struct pango_line;
struct pango_font;
typedef int cairo_write(void *arg, const unsigned char *bytes, unsigned n);

/* Constants of theirs. */
enum {
    CAIRO_FORMAT_RGB24 = 1,
    CAIRO_STATUS_SUCCESS = 0,
    CAIRO_STATUS_WRITE_ERROR = 11,
    CAIRO_LINE_JOIN_ROUND = 1,
    PANGO_WEIGHT_BOLD = 700,
    PANGO_UNITS = 1024, /* of a length */
};

/* Library, result, name, parameters. */
#define FUNCTIONS(X)                                                                               \
    X(CAIRO, struct cairo_surface *, cairo_image_surface_create, (int format, int w, int h))       \
    X(CAIRO, struct cairo_surface *, cairo_pdf_surface_create_for_stream,                          \
      (cairo_write * write, void *arg, double w, double h))                                        \
    X(CAIRO, int, cairo_surface_write_to_png_stream,                                               \
      (struct cairo_surface * surface, cairo_write * write, void *arg))                            \
    X(CAIRO, void, cairo_surface_finish, (struct cairo_surface * surface))                         \
    X(CAIRO, int, cairo_surface_status, (struct cairo_surface * surface))                          \
    X(CAIRO, void, cairo_surface_destroy, (struct cairo_surface * surface))                        \
    X(CAIRO, const char *, cairo_status_to_string, (int status))                                   \
    X(CAIRO, struct cairo *, cairo_create, (struct cairo_surface * surface))                       \
    X(CAIRO, int, cairo_status, (struct cairo * cr))                                               \
    X(CAIRO, void, cairo_destroy, (struct cairo * cr))                                             \
    X(CAIRO, void, cairo_save, (struct cairo * cr))                                                \
    X(CAIRO, void, cairo_restore, (struct cairo * cr))                                             \
    X(CAIRO, void, cairo_scale, (struct cairo * cr, double x, double y))                           \
    X(CAIRO, void, cairo_translate, (struct cairo * cr, double x, double y))                       \
    X(CAIRO, void, cairo_rotate, (struct cairo * cr, double angle))                                \
    X(CAIRO, void, cairo_set_source_rgba,                                                          \
      (struct cairo * cr, double r, double g, double b, double a))                                 \
    X(CAIRO, void, cairo_set_line_width, (struct cairo * cr, double width))                        \
    X(CAIRO, void, cairo_set_line_join, (struct cairo * cr, int join))                             \
    X(CAIRO, void, cairo_set_dash,                                                                 \
      (struct cairo * cr, const double *lengths, int n, double offset))                            \
    X(CAIRO, void, cairo_new_path, (struct cairo * cr))                                            \
    X(CAIRO, void, cairo_move_to, (struct cairo * cr, double x, double y))                         \
    X(CAIRO, void, cairo_line_to, (struct cairo * cr, double x, double y))                         \
    X(CAIRO, void, cairo_rectangle, (struct cairo * cr, double x, double y, double w, double h))   \
    X(CAIRO, void, cairo_arc,                                                                      \
      (struct cairo * cr, double x, double y, double r, double from, double to))                   \
    X(CAIRO, void, cairo_close_path, (struct cairo * cr))                                          \
    X(CAIRO, void, cairo_fill_preserve, (struct cairo * cr))                                       \
    X(CAIRO, void, cairo_stroke, (struct cairo * cr))                                              \
    X(CAIRO, void, cairo_clip, (struct cairo * cr))                                                \
    X(CAIRO, void, cairo_paint, (struct cairo * cr))                                               \
    X(PANGOCAIRO, struct pango_layout *, pango_cairo_create_layout, (struct cairo * cr))           \
    X(PANGOCAIRO, void, pango_cairo_show_layout_line,                                              \
      (struct cairo * cr, struct pango_line * line))                                               \
    X(PANGOCAIRO, void, pango_cairo_layout_line_path,                                              \
      (struct cairo * cr, struct pango_line * line))                                               \
    X(PANGO, void, pango_layout_set_text, (struct pango_layout * layout, const char *text, int n)) \
    X(PANGO, void, pango_layout_set_single_paragraph_mode,                                         \
      (struct pango_layout * layout, int is_single))                                               \
    X(PANGO, void, pango_layout_set_font_description,                                              \
      (struct pango_layout * layout, const struct pango_font *font))                               \
    X(PANGO, void, pango_layout_get_size, (struct pango_layout * layout, int *w, int *h))          \
    X(PANGO, struct pango_line *, pango_layout_get_line_readonly,                                  \
      (struct pango_layout * layout, int line))                                                    \
    X(PANGO, struct pango_font *, pango_font_description_from_string, (const char *text))          \
    X(PANGO, void, pango_font_description_set_absolute_size,                                       \
      (struct pango_font * font, double size))                                                     \
    X(PANGO, void, pango_font_description_set_weight, (struct pango_font * font, int weight))      \
    X(PANGO, void, pango_font_description_free, (struct pango_font * font))                        \
    X(GOBJECT, void, g_object_unref, (void *object))

/* ---- loading ---- */

enum library { CAIRO, PANGO, PANGOCAIRO, GOBJECT };

static struct {
    void *libraries[4];
    bool is_loaded;
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration cannot have them */
#define MEMBER(library, result, name, parameters) result(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
} f;

static const struct {
    enum library library;
    const char *name;
    size_t offset; /* of the pointer in f */
} functions[] = {
#define ROW(library, result, name, parameters) {library, #name, offsetof(__typeof__(f), name)},
    FUNCTIONS(ROW)
#undef ROW
};

int tmk_cairo_load(struct tmk_error *err)
{
    static const char *const names[] = {"libcairo.so.2", "libpango-1.0.so.0",
                                        "libpangocairo-1.0.so.0", "libgobject-2.0.so.0"};
    if (f.is_loaded)
        return 0;
    for (size_t i = 0; i < TMK_N(names); i++) {
        f.libraries[i] = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!f.libraries[i])
            return tmk_fail(err, TMK_ENOENT, "%s", dlerror());
    }
    for (size_t i = 0; i < TMK_N(functions); i++) {
        void *function = dlsym(f.libraries[functions[i].library], functions[i].name);
        if (!function)
            return tmk_fail(err, TMK_ENOENT, "%s has no %s", names[functions[i].library],
                            functions[i].name);
        memcpy((char *)&f + functions[i].offset, &function, sizeof function);
    }
    f.is_loaded = true;
    return 0;
}

/* ---- drawing ---- */

static void set_colour(struct cairo *cr, uint32_t colour)
{
    f.cairo_set_source_rgba(cr, (colour >> 16 & 255) / 255.0, (colour >> 8 & 255) / 255.0,
                            (colour & 255) / 255.0, (colour >> 24) / 255.0);
}

/* Fill and stroke the current path, and end it. */
static void paint_path(struct cairo *cr, const struct tmk_paint *paint)
{
    if (paint->fill) {
        set_colour(cr, paint->fill);
        f.cairo_fill_preserve(cr);
    }
    if (paint->stroke) {
        set_colour(cr, paint->stroke);
        f.cairo_set_line_width(cr, paint->width);
        f.cairo_set_dash(cr, tmk_dash_lengths(paint->dash), paint->dash ? 2 : 0, 0);
        f.cairo_stroke(cr);
    }
    f.cairo_new_path(cr);
}

static void add_path(const struct tmk_canvas *c, struct cairo *cr, const struct tmk_canvas_mark *m)
{
    const struct tmk_point *p = c->points + m->first_point;
    f.cairo_move_to(cr, p[0].x, p[0].y);
    for (uint64_t i = 1; i < m->n_points; i++)
        f.cairo_line_to(cr, p[i].x, p[i].y);
    if (m->is_closed)
        f.cairo_close_path(cr);
}

static struct pango_layout *lay_out_text(struct cairo *cr, const struct tmk_text_style *s,
                                         const char *text)
{
    struct pango_layout *layout = f.pango_cairo_create_layout(cr);
    struct pango_font *font = f.pango_font_description_from_string(TMK_FONTS);
    f.pango_font_description_set_absolute_size(font, s->size * PANGO_UNITS);
    if (s->is_bold)
        f.pango_font_description_set_weight(font, PANGO_WEIGHT_BOLD);
    f.pango_layout_set_font_description(layout, font);
    f.pango_font_description_free(font);
    f.pango_layout_set_single_paragraph_mode(layout, 1);
    f.pango_layout_set_text(layout, text, -1);
    return layout;
}

static void draw_text(const struct tmk_canvas *c, struct cairo *cr, const struct tmk_canvas_mark *m)
{
    static const double shares[] = {0, 0.5, 1}; /* of the width, left of x */
    const struct tmk_text_style *s = &m->style;
    struct pango_layout *layout = lay_out_text(cr, s, c->texts + m->text);
    struct pango_line *line = f.pango_layout_get_line_readonly(layout, 0);
    int width = 0;
    f.pango_layout_get_size(layout, &width, NULL);
    f.cairo_save(cr);
    f.cairo_translate(cr, m->x, m->y);
    f.cairo_rotate(cr, -s->angle * M_PI / 180);
    f.cairo_move_to(cr, -shares[s->anchor] * width / PANGO_UNITS, 0);
    if (s->halo) {
        f.pango_cairo_layout_line_path(cr, line);
        paint_path(cr, &(struct tmk_paint){.stroke = s->halo, .width = TMK_HALO_WIDTH});
        f.cairo_move_to(cr, -shares[s->anchor] * width / PANGO_UNITS, 0);
    }
    set_colour(cr, s->colour);
    f.pango_cairo_show_layout_line(cr, line);
    f.cairo_new_path(cr);
    f.cairo_restore(cr);
    f.g_object_unref(layout);
}

static void draw_mark(const struct tmk_canvas *c, struct cairo *cr, const struct tmk_canvas_mark *m)
{
    switch (m->kind) {
    case TMK_MARK_RECT:
        f.cairo_rectangle(cr, m->x, m->y, m->width, m->height);
        paint_path(cr, &m->paint);
        break;
    case TMK_MARK_DISC:
        f.cairo_arc(cr, m->x, m->y, m->width, 0, 2 * M_PI);
        paint_path(cr, &m->paint);
        break;
    case TMK_MARK_PATH:
        add_path(c, cr, m);
        paint_path(cr, &m->paint);
        break;
    case TMK_MARK_TEXT:
        draw_text(c, cr, m);
        break;
    case TMK_MARK_CLIP:
        f.cairo_save(cr);
        f.cairo_rectangle(cr, m->x, m->y, m->width, m->height);
        f.cairo_clip(cr);
        break;
    case TMK_MARK_GROUP:
        f.cairo_save(cr);
        break;
    case TMK_MARK_UNGROUP:
        f.cairo_restore(cr);
        break;
    }
}

/* Draw the canvas on a surface, each point of it `scale` units wide. Returns cairo's status. */
static int draw_canvas(const struct tmk_canvas *c, struct cairo_surface *surface, double scale)
{
    struct cairo *cr = f.cairo_create(surface);
    f.cairo_scale(cr, scale, scale);
    f.cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
    set_colour(cr, c->background);
    f.cairo_paint(cr);
    for (uint64_t i = 0; i < c->n_marks; i++)
        draw_mark(c, cr, &c->marks[i]);
    int status = f.cairo_status(cr);
    f.cairo_destroy(cr);
    return status;
}

/* ---- files ---- */

static int write_bytes(void *arg, const unsigned char *bytes, unsigned n)
{
    return fwrite(bytes, 1, n, arg) == n ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static int cairo_result(int status, struct tmk_error *err)
{
    if (status == CAIRO_STATUS_SUCCESS)
        return 0;
    return tmk_fail(err, TMK_EIO, "%s", f.cairo_status_to_string(status));
}

int tmk_cairo_write_png(const struct tmk_canvas *c, FILE *out, struct tmk_error *err)
{
    int rc = tmk_cairo_load(err);
    if (rc < 0)
        return rc;
    struct cairo_surface *surface =
        f.cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)lround(c->width * TMK_PNG_PIXELS),
                                     (int)lround(c->height * TMK_PNG_PIXELS));
    int status = draw_canvas(c, surface, TMK_PNG_PIXELS);
    if (status == CAIRO_STATUS_SUCCESS)
        status = f.cairo_surface_write_to_png_stream(surface, write_bytes, out);
    f.cairo_surface_destroy(surface);
    return cairo_result(status, err);
}

int tmk_cairo_write_pdf(const struct tmk_canvas *c, FILE *out, struct tmk_error *err)
{
    const double page = 720; /* wide: ten inches */
    int rc = tmk_cairo_load(err);
    if (rc < 0)
        return rc;
    struct cairo_surface *surface =
        f.cairo_pdf_surface_create_for_stream(write_bytes, out, page, page * c->height / c->width);
    int status = draw_canvas(c, surface, page / c->width);
    f.cairo_surface_finish(surface);
    status = status == CAIRO_STATUS_SUCCESS ? f.cairo_surface_status(surface) : status;
    f.cairo_surface_destroy(surface);
    return cairo_result(status, err);
}
