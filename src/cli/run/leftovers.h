/* SPDX-License-Identifier: MIT */
/* cli/run/leftovers.h - files whose processes are gone: rings, accounts of runs, control
 * sockets.
 *
 * A ring whose process was killed is merged into its trace by the next reader. Until one comes it
 * takes memory, and when the trace was removed first, none ever does. */
#ifndef TMK_CLI_RUN_LEFTOVERS_H
#define TMK_CLI_RUN_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/ring_file.h"

/* Rings that should have been cleaned and are still there: the disk is full or read-only, the trace
 * is damaged, or it belongs to somebody else. */
struct tmk_kept_rings {
    unsigned n;
    uint64_t bytes;
    int rc; /* of the first one: TMK_E*, why, and the trace that it belongs to */
    struct tmk_error why;
    char trace_path[TMK_RING_PATH_BYTES];
};

struct tmk_leftovers {
    unsigned n_dead;         /* rings of dead processes that have a trace to go into */
    unsigned n_orphans;      /* rings without one */
    unsigned n_full_orphans; /* those of them that hold events, which no trace has */
    unsigned n_accounts;     /* that no process has */
    unsigned n_sockets;      /* at which no process listens */
    uint64_t bytes;          /* of all these in memory */
    struct tmk_kept_rings kept;
};

enum tmk_leftovers_way {
    TMK_LEFTOVERS_COUNT,
    TMK_LEFTOVERS_CLEAN,  /* merge rings that have a trace, remove the rest */
    TMK_LEFTOVERS_REMOVE, /* only what goes without a loss: no ring with events */
};

/* Look for files of this user in the folders where rings and sockets are made. The counts say what
 * was found, or what was cleaned. */
void tmk_leftovers_find(struct tmk_leftovers *ret, enum tmk_leftovers_way way);

/* Clean up after the dead processes of the run in `folder`: merge each ring, or remove it if it
 * holds no events. */
void tmk_leftovers_settle(const char *folder);

#endif
