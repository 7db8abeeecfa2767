/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_kept.h - modules and lines that an earlier detailed_memory_results.json has.
 *
 * They come from traces. Where a trace is gone (deleted, or the folder came from another machine
 * without it), what was read from it before is kept when the file is written anew. */
#ifndef TMK_CLI_SWEEP_SWEEP_KEPT_H
#define TMK_CLI_SWEEP_SWEEP_KEPT_H

#include "kit/arena.h"
#include "kit/tree.h"

struct tmk_sweep_kept {
    struct tmk_arena arena;      /* of texts */
    struct tmk_kept_cell *cells; /* those with which nothing is wrong */
    uint64_t n, room;
};

/* `path` is the file of before. */
void tmk_sweep_kept_read(struct tmk_sweep_kept *k, const char *path);
/* Write the list of `key` ("modules" or "lines") as it was for cell `number` (from 1) with that
 * peak; as unknown where it is not there, or the peak is not known and so may be another. */
void tmk_sweep_kept_put(const struct tmk_sweep_kept *k, struct tmk_tree *t, const char *key,
                        uint32_t number, uint64_t peak);
void tmk_sweep_kept_fini(struct tmk_sweep_kept *k);

#endif
