/* SPDX-License-Identifier: MIT */
/* cli/leftovers.h - rings in memory that belong to nobody any more.
 *
 * A ring whose process was killed is merged into its trace by the next reader. When the trace was
 * removed first, nobody ever reads it, and it takes 16 MiB of memory until the next boot. */
#ifndef TMK_CLI_LEFTOVERS_H
#define TMK_CLI_LEFTOVERS_H

#include <stddef.h>
#include <stdint.h>

struct tmk_leftovers {
    unsigned n_rings;
    uint64_t bytes;
    char command[256]; /* removes them, or the first few */
};

/* Those of this user, in the folders that rings are made in. */
void tmk_leftovers_find(struct tmk_leftovers *ret);

#endif
