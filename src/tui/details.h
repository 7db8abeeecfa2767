/* SPDX-License-Identifier: MIT */
/* tui/details.h - one watched process in full: its allocated memory now and at its peak, by
 * category, by module and by allocation site; and the account of its GPU.
 *
 * This needs a sweep of the whole trace, so a thread of its own reads it, the more seldom the
 * longer that takes. Until the first reading is done, there is a progress to show. */
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
    struct tmk_error problem; /* its text says why nothing else is known */
    bool has_memory;
    bool is_over;    /* the process has ended */
    uint16_t device; /* the device with the highest peak: all figures are about it */
    uint64_t now_bytes, peak_bytes, peak_ns;
    int64_t peak_step;
    uint64_t reserved_bytes; /* UINT64_MAX: not known */
    bool has_peak;  /* the rows have peak bytes; else the trace no longer has them (--max-size) */
    char card[192]; /* who uses how much of the device, in a line; "": not known */
    uint64_t n_steps, step_ns;
    double bytes_per_step; /* growth of the memory kept after a step; 0: no growth */
    struct tmk_forecast forecast;
    uint32_t n_rows[TMK_DETAILS_N_LISTS];
    uint32_t n_more[TMK_DETAILS_N_LISTS];                               /* not listed */
    struct tmk_details_row rows[TMK_DETAILS_N_LISTS][TMK_DETAILS_ROWS]; /* largest first */
};

struct tmk_details_reader;

/* Open a reader; NULL: no memory. */
struct tmk_details_reader *tmk_details_open(void);
struct tmk_details_reader *tmk_details_close(struct tmk_details_reader *r); /* takes NULL */

/* Ask for a process, each time the screen is drawn. True: there is news. */
bool tmk_details_look(struct tmk_details_reader *r, uint32_t pid);
/* The last reading of that process, or NULL and the progress of the first one, 0 to 100. Borrowed
 * until look. */
const struct tmk_details *tmk_details_get(const struct tmk_details_reader *r, uint32_t pid,
                                          unsigned *ret_percent);
bool tmk_details_is_busy(const struct tmk_details_reader *r);

#endif
