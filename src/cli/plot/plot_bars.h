/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_bars.h - horizontal bars, each made of pieces that have keys: the memory of a
 * component, a stage or a configuration. Names are at the left, where horizontal bars leave them
 * enough room.
 *
 *     struct tmk_bars b = {0};
 *     tmk_bars_add(&b, "attention", "activation", 5 << 20);
 *     tmk_bars_add(&b, "attention", "parameter", 1 << 20);
 *     tmk_bars_tidy(&b, most_bars);
 *     tmk_bars_draw(&b, &picture, &(struct tmk_bars_place){...});
 *     tmk_bars_fini(&b);
 *
 * Without memory the program ends. */
#ifndef TMK_CLI_PLOT_PLOT_BARS_H
#define TMK_CLI_PLOT_PLOT_BARS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_picture.h"

struct tmk_bar {
    char *name;
    uint64_t *bytes; /* by key */
    uint64_t total;
    uint64_t mark;    /* a line across the bar; 0: none */
    uint64_t outline; /* reserved bytes, drawn as an outline; 0: none */
    char *note;       /* text behind the bar; NULL: the total */
    bool is_warning;  /* the note is about something that went wrong */
};

struct tmk_bars {
    char **keys;
    uint32_t n_keys;
    uint64_t key_room;
    struct tmk_bar *bars;
    uint32_t n_bars;
    uint64_t bar_room;
    bool is_beside; /* pieces do not add up: they are thin, one below the other */
};

/* Find the bar of that name, or add it; valid until the next add. */
struct tmk_bar *tmk_bars_get(struct tmk_bars *b, const char *name);
void tmk_bars_add(struct tmk_bars *b, const char *name, const char *key, uint64_t bytes);
/* Sort bars, the largest first; if there are more than `most`, the last ones are merged. */
void tmk_bars_tidy(struct tmk_bars *b, uint32_t most);
/* The length of the longest bar, its outline included. */
uint64_t tmk_bars_most(const struct tmk_bars *b);
void tmk_bars_fini(struct tmk_bars *b); /* takes a zeroed one */

/* Where the bars are, in points. */
struct tmk_bars_place {
    double left, top, width, height; /* of the bars, without names and sizes below */
    bool no_names;
    const char *label; /* what the sizes below are */
    uint64_t limit;    /* a line at that many bytes; 0: none */
};

enum { TMK_BAR_ROW = 28, TMK_BARS_BELOW = 52 /* points that the sizes below take */ };

/* The points that the names at the left take. */
double tmk_bars_names_width(const struct tmk_bars *b);
/* List the visible keys for a legend, in stacking order, with their colours. Texts are borrowed,
 * the array is the caller's. */
struct tmk_legend_item *tmk_bars_legend(const struct tmk_bars *b, uint32_t *ret_n);
void tmk_bars_draw(const struct tmk_bars *b, const struct tmk_picture *p,
                   const struct tmk_bars_place *place);

#endif
