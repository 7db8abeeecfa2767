/* SPDX-License-Identifier: MIT */
/* cli/plot/palette.h - the colours of pictures: one for each category, component and stage, the
 * same in every picture; and a theme, light or dark, for all that is not data.
 *
 * Categories have the hues that PyTorch's own memory timeline made known: parameters green,
 * gradients blue, activations red, optimizer state gold. Components have deeper and paler tones,
 * none of which is a category's: they stand side by side. A stage has the colour of the category
 * that it makes (backward that of gradients). All colours are "#rrggbb" and can be told apart on
 * either background. */
#ifndef TMK_CLI_PLOT_PALETTE_H
#define TMK_CLI_PLOT_PALETTE_H

#include <stdbool.h>

struct tmk_theme {
    const char *background;
    const char *text;  /* titles, names */
    const char *faint; /* what stands at axes and beside lines */
    const char *axis;
    const char *grid;
    const char *band;     /* behind data: the stages of a timeline */
    const char *warning;  /* what ran out or failed */
    const char *reserved; /* lines: what the allocator holds, */
    const char *device;   /* what of the device is in use, */
    const char *capacity; /* and what there is */
    const char *ramp;     /* of heat maps: gnuplot's palette, from little to much */
};

const struct tmk_theme *tmk_palette_theme(bool dark);

/* The i-th of several things that are alike. */
const char *tmk_palette_colour(unsigned i);

/* Of a category, component or stage by its name, NULL: unknown. A name that is none of ours gets a
 * colour that follows from its letters, so that it is the same in the next picture too. */
const char *tmk_palette_of(const char *name);
/* The same for the pieces of one picture, where names that are none of ours (modules) must not look
 * alike: they get one colour after the other. *n_others begins at 0. */
const char *tmk_palette_next(const char *name, unsigned *n_others);
/* Where it stands in a pile, from below: what stays longest first, then by the table; names of
 * others last. */
unsigned tmk_palette_rank(const char *name);

#endif
