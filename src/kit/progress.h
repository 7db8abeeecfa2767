/* SPDX-License-Identifier: MIT */
/* kit/progress.h - a line that shows the progress of a long operation.
 *
 * It is silent for the first two seconds. Then a terminal gets one line that is written over and
 * wiped at the end; elsewhere a plain line appears every ten seconds. */
#ifndef TMK_KIT_PROGRESS_H
#define TMK_KIT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tmk_progress {
    FILE *out;
    const char *what; /* "reading the trace", translated here; borrowed */
    bool is_terminal;
    bool shown;
    uint64_t start_ns, last_ns;
};

/* Starts the clock. */
void tmk_progress_init(struct tmk_progress *p, FILE *out, const char *what);
/* Shows `done` of `total`; with a total of 0, only that the operation goes on. It is cheap: call it
 * as often as you like. `arg` is the progress, so that this fits a visitor. */
void tmk_progress_tell(void *arg, uint32_t done, uint32_t total);
/* Wipe the line. */
void tmk_progress_fini(struct tmk_progress *p);

#endif
