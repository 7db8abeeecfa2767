/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_kept.h - keep the modules and lines of an earlier detailed_memory_results.json.
 *
 * They come from traces. If a trace is gone (deleted, or the folder came from another machine
 * without it), the rows that were read from it earlier are kept when the file is written again. */
#ifndef TMK_CLI_SWEEP_SWEEP_KEPT_H
#define TMK_CLI_SWEEP_SWEEP_KEPT_H

#include "kit/arena.h"
#include "kit/tree.h"

struct tmk_sweep_kept {
    struct tmk_arena arena;      /* owns the texts */
    struct tmk_kept_cell *cells; /* the cells without errors */
    uint64_t n, room;
};

/* Read the earlier file at `path`. */
void tmk_sweep_kept_read(struct tmk_sweep_kept *k, const char *path);
/* Write the earlier list of `key` ("modules" or "lines") for cell `number` (from 1) with that peak;
 * as unknown if there is none, or if the peak is not known and so may be another. */
void tmk_sweep_kept_put(const struct tmk_sweep_kept *k, struct tmk_tree *t, const char *key,
                        uint32_t number, uint64_t peak);
void tmk_sweep_kept_fini(struct tmk_sweep_kept *k);

#endif
