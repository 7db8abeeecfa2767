/* SPDX-License-Identifier: MIT */
/* sql/walk_modules.h - walks a chunk at full speed, stopping only where modules open and close.
 *
 * It is made for ten million rows: sections are decoded whole (skim.h), then one loop sums blocks
 * and follows ranges, and the caller's row function is compiled into it. Hence inline functions. */
#ifndef TMK_SQL_WALK_MODULES_H
#define TMK_SQL_WALK_MODULES_H

#include "base/error.h"
#include "sql/skim.h"
#include "sql/source.h"
#include "sql/walk.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"

/* Open a range; `value` comes from the event's section. Returns 0 or TMK_ENOMEM. */
TMK_WALK_INLINE int tmk_walk_push(struct tmk_walk *w, uint32_t value,
                                  void (*row)(void *arg, const struct tmk_walk *w,
                                              const struct tmk_walk_range *range, bool is_post),
                                  void *arg)
{
    struct tmk_walk_thread *t = w->thread;
    bool is_module = (value & 3) == TIDEMARK_MODULE;
    w->n_step_module_events += is_module;
    if (tmk_walk_open(w, t, value & 3, value >> 2, w->event.time_ns, true) && is_module)
        row(arg, w, &t->ranges[t->n - 1], false);
    return w->failed ? TMK_ENOMEM : 0;
}

/* Close a range. */
TMK_WALK_INLINE void tmk_walk_pop(struct tmk_walk *w, uint32_t value,
                                  void (*row)(void *arg, const struct tmk_walk *w,
                                              const struct tmk_walk_range *range, bool is_post),
                                  void *arg)
{
    w->n_closed = 0;
    tmk_walk_close(w, w->thread, value & 3);
    if ((value & 3) == TIDEMARK_MODULE && w->n_closed)
        row(arg, w, w->closed, true);
}

/* Walk the chunk that was begun. `row` is called where a module opens (is_post false) or closes;
 * it should be a static function, which the compiler then inlines here. Returns 0; TMK_EDAMAGED
 * after the part that could be read; or TMK_ENOMEM. */
TMK_WALK_INLINE int tmk_walk_modules(struct tmk_walk *w,
                                     void (*row)(void *arg, const struct tmk_walk *w,
                                                 const struct tmk_walk_range *range, bool is_post),
                                     void *arg)
{
    int rc = tmk_walk_skim(w);
    struct tmk_walk_device *d = &w->devices[w->main_device];
    struct tmk_skim_blocks blocks = tmk_skim_blocks_of(&w->skim, &w->cursor, w->device);
    const struct tmk_skim_numbers *pushes = &w->skim.data[TMK_KIND_PUSH];
    const struct tmk_skim_numbers *pops = &w->skim.data[TMK_KIND_POP];
    const uint32_t *push = pushes->values, *push_end = push + (rc == 0 ? pushes->n : 0);
    const uint32_t *pop = pops->values, *pop_end = pop + (rc == 0 ? pops->n : 0);
    uint64_t i = 0, n = rc == 0 ? w->skim.n_events : 0;
    const uint8_t *kinds = w->skim.kinds;
    const bool want_bytes = w->want_bytes, want_times = w->want_times;
    blocks.allocated_bytes = d->allocated_bytes;
    blocks.max_bytes = d->max_bytes;
    for (; rc == 0 && i < n; i++) {
        uint8_t kind = kinds[i];
        if (kind == TMK_KIND_ALLOC) {
            if (want_bytes && !tmk_skim_alloc(&blocks))
                break;
        } else if (kind == TMK_KIND_FREE) {
            if (want_bytes && !tmk_skim_free(&blocks))
                break;
        } else if (kind == TMK_KIND_PUSH || kind == TMK_KIND_POP) {
            if (kind == TMK_KIND_PUSH ? push == push_end : pop == pop_end)
                break;
            if (i >= w->run_end && (rc = tmk_walk_find_thread(w, i)) < 0)
                break;
            d->allocated_bytes = blocks.allocated_bytes;
            d->max_bytes = blocks.max_bytes;
            if (want_times)
                w->event.time_ns = w->skim.times[i];
            if (kind == TMK_KIND_PUSH)
                rc = tmk_walk_push(w, *push++, row, arg);
            else
                tmk_walk_pop(w, *pop++, row, arg);
        } else if (kind == TMK_KIND_STEP) {
            if (want_times)
                w->event.time_ns = w->skim.times[i];
            rc = tmk_walk_skim_step(w);
        } else if (kind == TMK_KIND_OTHER) {
            if (w->want_reserved && (rc = tmk_walk_skim_other(w)) < 0)
                break;
        } else if (kind == TMK_KIND_NONE) {
            break;
        }
    }
    if (rc == 0 && i < w->cursor.n_left)
        rc = TMK_EDAMAGED;
    if (rc < 0)
        w->next_chunk = TMK_WALK_NO_CHUNK;
    return rc;
}

/* tmk_walk_begin() with every open module of a stage seen, if it can be had: reads the earlier
 * chunks in which they were opened. */
int tmk_walk_begin_seen(struct tmk_walk *w, struct tmk_source *source, uint32_t i,
                        struct tmk_error *err);

#endif
