/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_infer.c - infers what was not recorded from what was; see
 * whatif_internal.h. */
#include "kit/amount.h"
#include "passes/whatif/whatif.h"
#include "passes/whatif/whatif_internal.h"

/* An allocator with an OOM had reserved as much as it could: with that as the limit, the replay
 * does the same. Expandable segments are an exception: a request may need less of them than
 * counts against the limit. */
static uint64_t limit_of_oom(const struct tmk_whatif *w)
{
    const struct tmk_whatif_recorded *f = &w->recorded;
    bool is_expandable = w->conf.expandable_segments || (f->is_conf_inferred && !f->is_async);
    uint64_t most = w->least_need ? w->least_need - 1 : 0;
    bool is_usable = f->peak_reserved_bytes != TMK_BYTES_UNKNOWN && most > f->peak_reserved_bytes;
    return is_expandable && is_usable ? most : f->peak_reserved_bytes;
}

void tmk_whatif_infer_conf(struct tmk_whatif *w)
{
    struct tmk_whatif_recorded *f = &w->recorded;
    if (f->alloc_conf || w->n_places || !(w->n_pages || w->n_pools))
        return;
    f->is_conf_inferred = true;
    f->is_async = !w->n_pages;
    f->alloc_conf = f->is_async ? "backend:cudaMallocAsync" : "expandable_segments:True";
}

/* Find a limit that nothing tells, but that was met. Garbage collection also gives memory back. */
static void suspect_limit(struct tmk_whatif *w)
{
    struct tmk_whatif_recorded *f = &w->recorded;
    if (f->n_ooms || f->is_async || w->conf.gc_threshold > 0 ||
        f->peak_reserved_bytes == TMK_BYTES_UNKNOWN || w->least_need <= f->peak_reserved_bytes)
        return;
    f->n_returns = w->n_needs;
    f->limit_below_bytes = w->least_need;
}

void tmk_whatif_infer_limit(struct tmk_whatif *w)
{
    struct tmk_whatif_recorded *f = &w->recorded;
    if (f->n_ooms && f->limit_bytes == TMK_BYTES_UNKNOWN)
        f->limit_bytes = limit_of_oom(w);
    suspect_limit(w);
}
