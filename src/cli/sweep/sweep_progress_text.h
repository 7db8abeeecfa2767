/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_progress_text.h - what a sweep says while it works (stderr), and its table at the
 * end (stdout).
 *
 * A line for each configuration that has ended. On a terminal there is one more below, written over
 * once a second: what runs, and how much time is left. */
#ifndef TMK_CLI_SWEEP_SWEEP_PROGRESS_TEXT_H
#define TMK_CLI_SWEEP_SWEEP_PROGRESS_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "sweep/survey.h"

struct tmk_sweep_view {
    const struct tmk_results *r;
    const uint32_t *order;
    uint32_t n; /* cells of the order */
    unsigned n_at_once;
    bool is_terminal;
    bool shown;       /* the lower line is there */
    const char *said; /* of the last that ended well: what is true of all is said once */
    size_t widest;    /* of a configuration's text */
    bool is_short;    /* which has values alone: with names it would be too wide */
    bool has_named;   /* the names have been said */
};

void tmk_sweep_view_init(struct tmk_sweep_view *v, const struct tmk_results *r,
                         const uint32_t *order, uint32_t n, unsigned n_at_once);
/* A configuration has ended: its line. `log` is what it printed last, to be shown when it has
 * failed; NULL: nothing. */
void tmk_sweep_view_cell(struct tmk_sweep_view *v, const struct tmk_cell *c, const char *log);
/* The lower line: `n_running` of which the oldest is `c` and has run so long. */
void tmk_sweep_view_running(struct tmk_sweep_view *v, unsigned n_running, const struct tmk_cell *c,
                            uint64_t ns);
/* Take the lower line away. */
void tmk_sweep_view_clear(struct tmk_sweep_view *v);

/* All configurations with outcome and peak, the largest, and what failed. */
void tmk_sweep_view_table(const struct tmk_survey *g);

#endif
