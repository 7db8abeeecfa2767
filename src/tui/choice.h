/* SPDX-License-Identifier: MIT */
/* tui/choice.h - what the user of `top` has chosen, and how keys change it.
 *
 * It needs no terminal and no clock: a key is a value, and the hits that the last picture left give
 * a click its meaning. */
#ifndef TMK_TUI_CHOICE_H
#define TMK_TUI_CHOICE_H

#include "tui/jobs.h"
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
    TMK_SORT_GROWTH,
    TMK_SORT_STEP,
    TMK_SORT_STEP_TIME,
    TMK_SORT_FORECAST,
    TMK_SORT_COMMAND,
    TMK_SORT_N,
};

enum tmk_shown { TMK_SHOWN_LIST, TMK_SHOWN_DETAILS, TMK_SHOWN_HELP };

/* What the user is asked for at the moment. */
enum tmk_asking { TMK_ASKS_NOTHING, TMK_ASKS_FILTER, TMK_ASKS_SIGNAL, TMK_ASKS_YES };

/* What the user wants done that takes more than a picture; live.c does it. */
enum tmk_wish_kind { TMK_WISH_NONE, TMK_WISH_SIGNAL, TMK_WISH_COMMAND };
struct tmk_wish {
    enum tmk_wish_kind kind;
    uint32_t pid;
    uint64_t start_ticks; /* SIGNAL: when the process started that was asked about */
    int signal;
    const char *command;             /* COMMAND: "report", "leak" or "explain" */
    char target[TMK_JOB_TEXT_BYTES]; /* a PID or the folder of a run */
};

enum {
    TMK_FILTER_BYTES = 64,
    TMK_MESSAGE_BYTES = 256,
    TMK_FOLDED_MOST = 64,
    TMK_GRAPH_OF_SELECTED = UINT16_MAX,
};

struct tmk_choice {
    enum tmk_shown shown, before_help;
    uint32_t pid;    /* the selected process; 0 or one that has ended: the first */
    uint64_t run;    /* not 0: the line of this run is selected (tmk_choice_run_key) */
    unsigned top;    /* first row of the table that is shown */
    unsigned scroll; /* scroll position of the details */
    unsigned graph;  /* the first device that has a graph; TMK_GRAPH_OF_SELECTED: the selected
                        process's */
    enum tmk_sort sort;
    bool is_reversed;
    bool is_flat;                     /* processes of a run are not listed below its line */
    uint64_t folded[TMK_FOLDED_MOST]; /* runs whose processes are hidden */
    unsigned n_folded;
    enum tmk_asking asks;
    unsigned signal; /* in the list of signals */
    struct tmk_wish wish;
    char asked_command[48];          /* of the process that would get the signal */
    char message[TMK_MESSAGE_BYTES]; /* until the next key */
    double interval_s;
    bool is_paused;
    bool ends;
    bool ascii;
    char filter[TMK_FILTER_BYTES];
};

/* The choices at the start: sorted by used memory, the most first. `filter` may be NULL. */
struct tmk_choice tmk_choice_start(bool ascii, const char *filter);

/* One line of the table: a process, or a run with several processes. */
struct tmk_top_row {
    uint32_t process; /* its index in the model; of a run: of its first one */
    uint32_t n;       /* how many processes the run has that are not filtered out; 0: a process */
    bool is_folded;   /* a run */
    bool is_member;   /* a process below the line of its run */
    bool is_last;     /* of these */
};

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
    unsigned graph_most, graph_first;
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
    TMK_KEY_TAB,
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
/* List the lines of the table: the same, with a line before each run that has several of these.
 * `ret` has room for twice as many lines as there are processes. Returns how many. */
uint32_t tmk_choice_rows(const struct tmk_choice *v, const struct tmk_top_model *m,
                         struct tmk_top_row *ret);
/* The index of the selected line. */
uint32_t tmk_choice_selected(const struct tmk_choice *v, const struct tmk_top_model *m,
                             const struct tmk_top_row *rows, uint32_t n);
/* Whether the filter leaves a process. */
bool tmk_choice_is_shown(const struct tmk_choice *v, const struct tmk_top_process *p);
/* What stands for the run of a watched process; never 0. */
uint64_t tmk_choice_run_key(const struct tmk_top_process *p);

/* The signals that can be sent; ends in NULL. */
struct tmk_signal_name {
    const char *name, *text;
    int number;
};
extern const struct tmk_signal_name tmk_signal_names[];

/* The intervals that + and - choose from, in seconds, and how many there are. */
extern const double tmk_top_intervals[];
extern const unsigned tmk_top_n_intervals;

/* The keys, for help and manual; ends in NULL. */
struct tmk_key_help {
    const char *keys, *text;
};
extern const struct tmk_key_help tmk_key_helps[];

#endif
