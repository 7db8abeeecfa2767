/* SPDX-License-Identifier: MIT */
/* cli/output/palette.h - the colours of pictures: one for each category, component and stage, the
 * same in every picture; and a theme, light or dark, for everything that is not data.
 *
 * Categories have the hues of PyTorch's own memory timeline: parameters green, gradients blue,
 * activations red, optimizer state gold. Components are shown beside categories, so they have
 * deeper and paler tones, different from every category's. A stage has the colour of the category
 * that it makes (backward: gradients). All colours are "#rrggbb" and can be told apart on either
 * background. */
#ifndef TMK_CLI_OUTPUT_PALETTE_H
#define TMK_CLI_OUTPUT_PALETTE_H

#include <stdbool.h>

struct tmk_theme {
    const char *background;
    const char *text;  /* titles, names */
    const char *faint; /* texts at axes and beside lines */
    const char *axis;
    const char *grid;
    const char *band;     /* behind data: the stages of a timeline */
    const char *warning;  /* cells that ran out of memory or failed */
    const char *reserved; /* line: memory the allocator has reserved */
    const char *device;   /* line: memory in use on the device */
    const char *capacity; /* line: capacity */
    const char *ramp;     /* gnuplot's palette for heat maps, from little to much */
};

const struct tmk_theme *tmk_palette_theme(bool dark);

/* The colour of the i-th of several similar things. */
const char *tmk_palette_colour(unsigned i);

/* The colour of a category, component or stage by its name, NULL: unknown. Any other name gets a
 * colour that is computed from its letters, so that the next picture has the same. */
const char *tmk_palette_of(const char *name);
/* The same for the pieces of one picture, where other names (modules) must not look alike: they get
 * one colour after the other. *n_others begins at 0. */
const char *tmk_palette_next(const char *name, unsigned *n_others);
/* The position of a name in a stack of layers, from below: long-lived memory first, then by the
 * table; other names last. */
unsigned tmk_palette_rank(const char *name);

#endif
