/* SPDX-License-Identifier: MIT */
/* passes/sites.h - the lines of code that allocate most, over the whole run.
 *
 * The sweep counts by stack, finish by line: stacks that end in the same line are one site. */
#ifndef TMK_PASSES_SITES_H
#define TMK_PASSES_SITES_H

#include "model/run.h"
#include "trace/defs.h"
#include "trace/replay.h"

struct tmk_site_total {
    bool is_known; /* else the allocations that came without a stack */
    struct tmk_frame site;
    uint64_t n_allocs;
    uint64_t bytes;
    uint64_t live_blocks; /* of these allocations, at the end */
    uint64_t live_bytes;
};

struct tmk_sites;

/* Returns 0 or TMK_ENOMEM. Visit, finish with the replay, then ask. */
int tmk_sites_open(const struct tmk_process *p, struct tmk_sites **ret_sites);
struct tmk_sites *tmk_sites_close(struct tmk_sites *s);
struct tmk_visitor tmk_sites_visitor(struct tmk_sites *s);
int tmk_sites_finish(struct tmk_sites *s, const struct tmk_replay *rp, struct tmk_error *err);

/* Sites come with most bytes first. Texts are borrowed from the process's reader. */
uint64_t tmk_sites_n(const struct tmk_sites *s);
const struct tmk_site_total *tmk_sites_get(const struct tmk_sites *s, uint64_t i);

/* Write the numbers of at most `n` sites that have most bytes alive at the end, most first, and
 * leave out sites with none. Returns how many were written to `ret`. */
uint64_t tmk_sites_top_live(const struct tmk_sites *s, uint64_t n, uint64_t *ret);

#endif
