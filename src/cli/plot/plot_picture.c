/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_picture.c - see picture.h. */
#include "cli/plot/plot_picture.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/output/output_file.h"
#include "cli/output/say.h"
#include "draw/cairo_writer.h"
#include "draw/canvas.h"
#include "draw/svg_writer.h"

enum { TITLE_SIZE = 16, TITLE_Y = 30, LINE = 19, BELOW_TITLE = 18 };

/* ---- formats ---- */

enum picture_format { PNG, PDF, SVG, UNKNOWN };

static enum picture_format format_of(const char *path)
{
    static const char *const suffixes[] = {".png", ".pdf", ".svg"};
    size_t n = strlen(path);
    if (strcmp(path, "-") == 0)
        return SVG;
    for (size_t i = 0; i < TMK_N(suffixes); i++)
        if (n > 4 && strcasecmp(path + n - 4, suffixes[i]) == 0)
            return (enum picture_format)i;
    return UNKNOWN;
}

/* The library has to be told which file is missing; people, which package. */
static int check_cairo(void)
{
    struct tmk_error err = {0};
    if (tmk_cairo_load(&err) == 0)
        return 0;
    tmk_say("PNG and PDF are drawn with cairo and Pango, which are not there (%s): apt-get "
            "install " TMK_CAIRO_PACKAGE ". An SVG needs neither: -o FILE.svg",
            err.text);
    return TMK_EXIT_FINDING;
}

bool tmk_picture_has_png(void)
{
    return tmk_cairo_load(NULL) == 0;
}

int tmk_picture_check(const char *path)
{
    enum picture_format format = format_of(path);
    if (format == UNKNOWN) {
        tmk_say("'%s' is not the name of a picture: it should end in .png, .svg or .pdf", path);
        return TMK_EXIT_USAGE;
    }
    if (strcmp(path, "-") == 0) {
        if (!isatty(STDOUT_FILENO))
            return 0;
        tmk_say("-o - writes an SVG to stdout, which is a terminal: name a file, or add | or >");
        return TMK_EXIT_USAGE;
    }
    int status = format == SVG ? 0 : check_cairo();
    return status ? status : tmk_output_file_check(path);
}

/* ---- drawing ---- */

void tmk_picture_open(struct tmk_picture *p, const char *path, const struct tmk_plot_style *style,
                      double width, double height)
{
    *p = (struct tmk_picture){.path = path,
                              .title = style->title,
                              .theme = tmk_palette_theme(style->dark),
                              .width = width,
                              .height = height};
    if (tmk_canvas_open(width, height, p->theme->background, &p->canvas) < 0)
        tmk_die("out of memory");
}

double tmk_picture_top(const char *note, const char *warning)
{
    return TITLE_Y + (note ? LINE : 0) + (warning ? LINE : 0) + BELOW_TITLE;
}

double tmk_picture_title(const struct tmk_picture *p, const char *text, const char *note,
                         const char *warning)
{
    double y = TITLE_Y, most = p->width - 2 * TMK_PICTURE_SIDE;
    tmk_canvas_text(
        p->canvas, TMK_PICTURE_SIDE, y, p->title ? p->title : text,
        &(struct tmk_text_style){
            .size = TITLE_SIZE, .colour = p->theme->text, .is_bold = true, .most = most});
    if (note)
        tmk_canvas_text(p->canvas, TMK_PICTURE_SIDE, y += LINE, note,
                        &(struct tmk_text_style){.colour = p->theme->faint, .most = most});
    if (warning)
        tmk_canvas_text(
            p->canvas, TMK_PICTURE_SIDE, y + LINE, warning,
            &(struct tmk_text_style){.colour = p->theme->warning, .is_bold = true, .most = most});
    return tmk_picture_top(note, warning);
}

/* ---- saving ---- */

static int write_picture(const struct tmk_picture *p, FILE *out, struct tmk_error *err)
{
    switch (format_of(p->path)) {
    case PNG:
        return tmk_cairo_write_png(p->canvas, out, err);
    case PDF:
        return tmk_cairo_write_pdf(p->canvas, out, err);
    default:
        tmk_svg_write(p->canvas, out);
        return 0;
    }
}

/* Write to a stream on a descriptor that somebody else closes. 0, or -1 after a message. */
static int write_all(const struct tmk_picture *p, int fd)
{
    struct tmk_error err = {0};
    int own = dup(fd);
    FILE *out = own < 0 ? NULL : fdopen(own, "w");
    if (!out) {
        tmk_say("%s could not be written: %s", p->path, strerror(errno));
        if (own >= 0)
            close(own);
        return -1;
    }
    errno = 0;
    int rc = write_picture(p, out, &err);
    int os_error = ferror(out) ? (errno ? errno : EIO) : 0;
    if (fclose(out) != 0 && !os_error)
        os_error = errno;
    if (rc == 0 && !os_error)
        return 0;
    tmk_say("%s could not be written: %s", p->path, os_error ? strerror(os_error) : err.text);
    return -1;
}

static int save(const struct tmk_picture *p)
{
    struct tmk_output_file o;
    if (strcmp(p->path, "-") == 0)
        return write_all(p, STDOUT_FILENO) == 0 ? 0 : TMK_EXIT_FINDING;
    int status = tmk_output_file_open(&o, p->path);
    if (status != 0)
        return status;
    bool good = write_all(p, o.fd) == 0;
    status = tmk_output_file_close(&o, good);
    return good ? status : TMK_EXIT_FINDING;
}

int tmk_picture_save(struct tmk_picture *p)
{
    if (tmk_canvas_error(p->canvas) < 0)
        tmk_die("out of memory");
    int status = save(p);
    p->canvas = tmk_canvas_close(p->canvas);
    return status;
}
