/* SPDX-License-Identifier: MIT */
/* draw/palette.h - the colours of pictures: one for each category, component and stage, the
 * same in every picture; and a theme, light or dark, for everything that is not data.
 *
 * Categories have the hues of PyTorch's own memory timeline: parameters green, gradients blue,
 * activations red, optimizer state gold. Components are shown beside categories, so they have
 * deeper and paler tones, different from every category's. A stage has the colour of the category
 * that it makes (backward: gradients). All colours are 0xaarrggbb, opaque, and can be told
 * apart on either background; those of categories also by people who do not see red or green. */
#ifndef TMK_DRAW_PALETTE_H
#define TMK_DRAW_PALETTE_H

#include <stdbool.h>
#include <stdint.h>

enum { TMK_RAMP_COLOURS = 5 };

struct tmk_theme {
    uint32_t background;
    uint32_t text;  /* titles, names */
    uint32_t faint; /* texts at axes and beside lines */
    uint32_t axis;
    uint32_t grid;
    uint32_t band;                   /* behind data: the stages of a timeline */
    uint32_t warning;                /* cells that ran out of memory or failed */
    uint32_t reserved;               /* line: memory the allocator has reserved */
    uint32_t device;                 /* line: memory in use on the device */
    uint32_t capacity;               /* line: capacity */
    uint32_t ramp[TMK_RAMP_COLOURS]; /* of heat maps, from little to much */
};

const struct tmk_theme *tmk_palette_theme(bool dark);

/* The colour of a share, 0 to 1, of the most in a heat map. */
uint32_t tmk_palette_ramp(const struct tmk_theme *theme, double share);

/* The colour of the i-th of several similar things. */
uint32_t tmk_palette_colour(unsigned i);

/* The colour of a category, component or stage by its name, NULL: unknown. Any other name gets a
 * colour that is computed from its letters, so that the next picture has the same. */
uint32_t tmk_palette_of(const char *name);
/* The same for the pieces of one picture, where other names (modules) must not look alike: they get
 * one colour after the other. *n_others begins at 0. */
uint32_t tmk_palette_next(const char *name, unsigned *n_others);
/* The position of a name in a stack of layers, from below: long-lived memory first, then by the
 * table; other names last. */
unsigned tmk_palette_rank(const char *name);

#endif
