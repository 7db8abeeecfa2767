/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_progress_text.h - a sweep's progress lines (stderr), and its table at the end
 * (stdout).
 *
 * There is a line for each configuration that has ended. A terminal has one more line below,
 * updated once a second, with the running configurations and the time left. */
#ifndef TMK_CLI_SWEEP_SWEEP_PROGRESS_TEXT_H
#define TMK_CLI_SWEEP_SWEEP_PROGRESS_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "sweep/survey.h"

struct tmk_sweep_progress {
    const struct tmk_results *r;
    const uint32_t *order;
    uint32_t n; /* number of cells in the order */
    unsigned n_at_once;
    bool is_terminal;
    bool shown; /* the lower line is shown */
    const char
        *said; /* the text of the last configuration that ended well; common facts are said once */
    size_t widest;  /* width of a configuration's text */
    bool is_short;  /* texts have only values: with names they would be too wide */
    bool has_named; /* the names have been printed */
};

void tmk_sweep_progress_init(struct tmk_sweep_progress *v, const struct tmk_results *r,
                             const uint32_t *order, uint32_t n, unsigned n_at_once);
/* Print the line of a configuration that has ended. `log` is its last output, shown if it failed;
 * NULL: none. */
void tmk_sweep_progress_cell(struct tmk_sweep_progress *v, const struct tmk_cell *c,
                             const char *log);
/* Update the lower line: `n_running` configurations run; the oldest is `c`, running for `ns`. */
void tmk_sweep_progress_running(struct tmk_sweep_progress *v, unsigned n_running,
                                const struct tmk_cell *c, uint64_t ns);
/* Remove the lower line. */
void tmk_sweep_progress_clear(struct tmk_sweep_progress *v);

/* Print all configurations with outcome and peak, the largest, and the failed ones. */
void tmk_sweep_progress_table(const struct tmk_survey *g);

#endif
