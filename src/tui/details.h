/* SPDX-License-Identifier: MIT */
/* tui/details.h - one watched process in full: what it holds now and what it held at its peak, by
 * category, by module and by the line that asked for it; and the account of its card.
 *
 * Needs a sweep of the whole trace, so it is read on a thread of its own and, the longer that
 * takes, the more seldom. Until the first reading has come there is a progress to show. */
#ifndef TMK_TUI_DETAILS_H
#define TMK_TUI_DETAILS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "passes/forecast.h"

enum tmk_details_list {
    TMK_DETAILS_CATEGORIES,
    TMK_DETAILS_MODULES,
    TMK_DETAILS_LINES,
    TMK_DETAILS_N_LISTS,
};

enum { TMK_DETAILS_ROWS = 40, TMK_DETAILS_KEY_BYTES = 256 };

struct tmk_details_row {
    char key[TMK_DETAILS_KEY_BYTES]; /* "": not known */
    uint64_t now_bytes, peak_bytes;
};

struct tmk_details {
    uint32_t pid;
    struct tmk_error problem; /* text: why there is nothing else */
    bool has_memory;
    bool is_over;    /* the process has ended */
    uint16_t device; /* where most was: all figures are about it */
    uint64_t now_bytes, peak_bytes, peak_ns;
    int64_t peak_step;
    uint64_t reserved_bytes; /* UINT64_MAX: not known */
    bool has_peak;  /* the rows know of the peak; else its detail was given up (--max-size) */
    char card[192]; /* who has what of the device, in a line; "": not known */
    uint64_t n_steps, step_ns;
    double bytes_per_step; /* what stays after each step grows by; 0: it does not */
    struct tmk_forecast forecast;
    uint32_t n_rows[TMK_DETAILS_N_LISTS];
    uint32_t n_more[TMK_DETAILS_N_LISTS];                               /* not listed */
    struct tmk_details_row rows[TMK_DETAILS_N_LISTS][TMK_DETAILS_ROWS]; /* largest first */
};

struct tmk_details_reader;

/* NULL without memory. */
struct tmk_details_reader *tmk_details_open(void);
struct tmk_details_reader *tmk_details_close(struct tmk_details_reader *r); /* takes NULL */

/* Ask for a process; again and again, each time the screen is drawn. True when there is news. */
bool tmk_details_look(struct tmk_details_reader *r, uint32_t pid);
/* The last reading of that process, or NULL and how far the first one is, 0 to 100. Borrowed until
 * look. */
const struct tmk_details *tmk_details_get(const struct tmk_details_reader *r, uint32_t pid,
                                          unsigned *ret_percent);
bool tmk_details_is_busy(const struct tmk_details_reader *r);

#endif
