/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_picture.h - a picture in a file: PNG, SVG or PDF by the file's suffix, or SVG on
 * stdout. Layout code draws on its canvas (draw/canvas.h).
 *
 *     struct tmk_picture p;
 *     if ((status = tmk_picture_check(path)) != 0)
 *         return status;
 *     tmk_picture_open(&p, path, &style, TMK_PICTURE_WIDTH, TMK_PICTURE_HEIGHT);
 *     double top = tmk_picture_title(&p, "what it shows", NULL, NULL);
 *     ... tmk_canvas_rect(p.canvas, ...) ...
 *     status = tmk_picture_save(&p);
 *
 * Without memory the program ends. */
#ifndef TMK_CLI_PLOT_PLOT_PICTURE_H
#define TMK_CLI_PLOT_PLOT_PICTURE_H

#include "cli/plot/plot_style.h"
#include "draw/palette.h"

enum { /* points */
       TMK_PICTURE_WIDTH = 1000,
       TMK_PICTURE_WIDE = 1280, /* of pictures with several graphs side by side */
       TMK_PICTURE_HEIGHT = 480,
       TMK_PICTURE_SIDE = 20, /* left empty at each side */
};

struct tmk_picture {
    const char *path;  /* borrowed */
    const char *title; /* the user's, NULL: none */
    const struct tmk_theme *theme;
    struct tmk_canvas *canvas;
    double width, height;
};

/* Check that a picture could be made at `path`. 0, or an exit status after a message with what to
 * do. It is for commands that work for long before they draw. */
int tmk_picture_check(const char *path);
/* Whether a PNG can be made on this machine. */
bool tmk_picture_has_png(void);

void tmk_picture_open(struct tmk_picture *p, const char *path, const struct tmk_plot_style *style,
                      double width, double height);
/* Draw the title, or the user's title instead; below it a line of explanation and a line of
 * warning; NULL: none. Returns where the rest of the picture begins. */
double tmk_picture_title(const struct tmk_picture *p, const char *text, const char *note,
                         const char *warning);
/* The same place without drawing, to choose the height. */
double tmk_picture_top(const char *note, const char *warning);
/* Write the file and close. 0, or an exit status after a message; an earlier file is kept then, and
 * also when a signal ends us. */
int tmk_picture_save(struct tmk_picture *p);

#endif
