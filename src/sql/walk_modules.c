/* SPDX-License-Identifier: MIT */
/* sql/walk_modules.c - begins a chunk with its open modules seen; see walk_modules.h. */
#include "sql/walk_modules.h"

#include "trace/state.h"

/* The first chunk that may contain the opening of a module that is open now. Only modules in a
 * stage count: they end with it, while a range around the whole training would lead back to its
 * start. */
static uint32_t first_chunk_to_see(const struct tmk_walk *w, uint32_t i)
{
    uint64_t earliest_ns = UINT64_MAX;
    for (uint64_t t = 0; t < w->n_threads; t++) {
        for (uint64_t k = 0; k < w->threads[t].n; k++) {
            const struct tmk_walk_range *r = &w->threads[t].ranges[k];
            if (r->kind == TIDEMARK_MODULE && r->stage != TMK_STAGE_NONE &&
                r->start_ns < earliest_ns)
                earliest_ns = r->start_ns;
        }
    }
    while (i > 0 && w->source->chunks[i - 1].header->end_ns >= earliest_ns)
        i--;
    return i;
}

static void ignore_row(void *arg, const struct tmk_walk *w, const struct tmk_walk_range *range,
                       bool is_post)
{
    (void)arg, (void)w, (void)range, (void)is_post;
}

static int pass_over_chunk(struct tmk_walk *w, struct tmk_source *source, uint32_t i,
                           struct tmk_error *err)
{
    int rc = tmk_walk_begin(w, source, i, err);
    if (rc == 0)
        rc = tmk_walk_modules(w, ignore_row, NULL);
    return rc == TMK_EDAMAGED ? 0 : rc;
}

int tmk_walk_begin_seen(struct tmk_walk *w, struct tmk_source *source, uint32_t i,
                        struct tmk_error *err)
{
    bool is_next = tmk_walk_is_next(w, source, i);
    int rc = tmk_walk_begin(w, source, i, err);
    if (rc < 0 || is_next)
        return rc;
    uint32_t from = first_chunk_to_see(w, i);
    if (from == i)
        return 0;
    for (; rc == 0 && from < i; from++)
        rc = pass_over_chunk(w, source, from, err);
    return rc < 0 ? rc : tmk_walk_begin(w, source, i, err);
}
