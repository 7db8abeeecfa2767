/* SPDX-License-Identifier: MIT */
/* tui/choice.h - what the user of `top` has chosen, and how keys change it.
 *
 * It needs no terminal and no clock: a key is a value, and the hits that the last picture left give
 * a click its meaning. */
#ifndef TMK_TUI_CHOICE_H
#define TMK_TUI_CHOICE_H

#include "tui/top_model.h"

enum tmk_sort {
    TMK_SORT_PID,
    TMK_SORT_USER,
    TMK_SORT_DEVICES,
    TMK_SORT_RANK,
    TMK_SORT_USED,
    TMK_SORT_HOST,
    TMK_SORT_ALLOCATED,
    TMK_SORT_RESERVED,
    TMK_SORT_PEAK,
    TMK_SORT_STEP,
    TMK_SORT_FORECAST,
    TMK_SORT_COMMAND,
    TMK_SORT_N,
};

enum tmk_shown { TMK_SHOWN_LIST, TMK_SHOWN_DETAILS, TMK_SHOWN_HELP };

enum { TMK_FILTER_BYTES = 64 };

struct tmk_choice {
    enum tmk_shown shown, before_help;
    uint32_t pid;    /* the selected process; 0 or one that has ended: the first */
    unsigned top;    /* first row of the table that is shown */
    unsigned scroll; /* scroll position of the details */
    unsigned graph;  /* the first device that has a graph */
    enum tmk_sort sort;
    bool is_reversed;
    bool is_typing; /* the user is typing the filter */
    bool is_paused;
    bool ends;
    bool ascii;
    char filter[TMK_FILTER_BYTES];
};

/* The choices at the start: sorted by used memory, the most first. `filter` may be NULL. */
struct tmk_choice tmk_choice_start(bool ascii, const char *filter);

/* The positions of things on a picture. */
struct tmk_hits {
    unsigned table_y, n_rows; /* rows of the table that are shown, from this line on */
    unsigned top;             /* the first of them */
    unsigned head_y, n_heads;
    struct {
        unsigned x, width;
        enum tmk_sort sort;
    } heads[TMK_SORT_N];
    unsigned scroll_most;
    unsigned graph_most;
};

enum tmk_key_kind {
    TMK_KEY_NONE,
    TMK_KEY_CHARACTER,
    TMK_KEY_UP,
    TMK_KEY_DOWN,
    TMK_KEY_LEFT,
    TMK_KEY_RIGHT,
    TMK_KEY_PAGE_UP,
    TMK_KEY_PAGE_DOWN,
    TMK_KEY_HOME,
    TMK_KEY_END,
    TMK_KEY_ENTER,
    TMK_KEY_ESCAPE,
    TMK_KEY_BACKSPACE,
    TMK_KEY_CLICK,
    TMK_KEY_RESIZE,
};

struct tmk_key {
    enum tmk_key_kind kind;
    uint32_t c;    /* the character */
    unsigned x, y; /* the position of a click */
};

void tmk_choice_key(struct tmk_choice *v, const struct tmk_key *key, const struct tmk_top_model *m,
                    const struct tmk_hits *hits);

/* List the processes that the filter leaves, in order: their indices in the model. `ret` has room
 * for all. Returns how many. */
uint32_t tmk_choice_order(const struct tmk_choice *v, const struct tmk_top_model *m, uint32_t *ret);
/* The selected process's index in that order. */
uint32_t tmk_choice_selected(const struct tmk_choice *v, const struct tmk_top_model *m,
                             const uint32_t *order, uint32_t n);

/* The keys, for help and manual; ends in NULL. */
struct tmk_key_help {
    const char *keys, *text;
};
extern const struct tmk_key_help tmk_key_helps[];

#endif
