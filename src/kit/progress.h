/* SPDX-License-Identifier: MIT */
/* kit/progress.h - a line that says how far something long has come.
 *
 * Silent for the first two seconds. Then, on a terminal, one line that is written over and wiped at
 * the end; elsewhere a plain line every ten seconds. */
#ifndef TMK_KIT_PROGRESS_H
#define TMK_KIT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tmk_progress {
    FILE *out;
    const char *what; /* "reading a.trace"; borrowed */
    bool is_terminal;
    bool shown;
    uint64_t start_ns, last_ns;
};

/* Starts the clock. */
void tmk_progress_init(struct tmk_progress *p, FILE *out, const char *what);
/* `done` of `total`, or with a total of 0 just that it goes on; cheap, call as often as you like.
 * `arg` is the progress, so that this fits a visitor. */
void tmk_progress_tell(void *arg, uint32_t done, uint32_t total);
/* Wipe the line. */
void tmk_progress_fini(struct tmk_progress *p);

#endif
