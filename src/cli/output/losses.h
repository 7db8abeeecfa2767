/* SPDX-License-Identifier: MIT */
/* cli/output/losses.h - the sum of what processes of a run have lost, for output that is about
 * another process. */
#ifndef TMK_CLI_OUTPUT_LOSSES_H
#define TMK_CLI_OUTPUT_LOSSES_H

#include <stdint.h>

#include "passes/quality.h"

struct tmk_losses {
    uint64_t n_processes; /* that have lost anything */
    uint64_t n_dropped, n_given_up, n_not_followed;
    uint64_t n_stopped, n_unfinished, n_damaged; /* processes */
};

void tmk_losses_add(struct tmk_losses *sum, const struct tmk_quality *q);

/* "in 4 other processes: 12 events dropped, 1 trace not closed (tidemark check says in which)". */
enum { TMK_LOSSES_TEXT_BYTES = 500 };
const char *tmk_losses_text(const struct tmk_losses *sum, char text[TMK_LOSSES_TEXT_BYTES]);

#endif
