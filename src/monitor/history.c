/* SPDX-License-Identifier: MIT */
/* monitor/history.c - see history.h. */
#include "monitor/history.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"

void tmk_history_init(struct tmk_history *h, uint64_t most)
{
    *h = (struct tmk_history){.most = most, .width = 1};
}

void tmk_history_fini(struct tmk_history *h)
{
    free(h->entries);
    h->entries = NULL;
    h->n = h->room = 0;
}

/* ---- merging ---- */

static void merge_entries(struct tmk_history_entry *a, const struct tmk_history_entry *b)
{
    a->end_ns = b->end_ns;
    a->last_bytes = b->last_bytes;
    a->min_bytes = b->min_bytes < a->min_bytes ? b->min_bytes : a->min_bytes;
    a->max_bytes = b->max_bytes > a->max_bytes ? b->max_bytes : a->max_bytes;
    a->n_samples += b->n_samples;
}

/* Merge neighbours in pairs; over a gap only with `force`. */
static void merge_entry_pairs(struct tmk_history *h, bool force)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < h->n; i++) {
        struct tmk_history_entry e = h->entries[i];
        const struct tmk_history_entry *next = &h->entries[i + 1];
        if (i + 1 < h->n && (force || !next->after_gap)) {
            merge_entries(&e, next);
            i++;
        }
        h->entries[n++] = e;
    }
    h->n = n;
}

static void make_history_room(struct tmk_history *h)
{
    if (h->width <= UINT32_MAX / 4)
        h->width *= 2;
    merge_entry_pairs(h, false);
    if (h->n > h->most / 4 * 3)
        merge_entry_pairs(h, true);
}

/* ---- adding ---- */

static int append_entry(struct tmk_history *h, const struct tmk_history_entry *e)
{
    if (h->entries && h->n == h->most)
        make_history_room(h);
    if (TMK_GROW(h->entries, h->n + 1, h->room) < 0)
        return TMK_ENOMEM;
    h->entries[h->n++] = *e;
    return 0;
}

int tmk_history_add(struct tmk_history *h, uint64_t time_ns, uint64_t bytes)
{
    const struct tmk_history_entry e = {.start_ns = time_ns,
                                        .end_ns = time_ns,
                                        .min_bytes = bytes,
                                        .max_bytes = bytes,
                                        .last_bytes = bytes,
                                        .n_samples = 1,
                                        .after_gap = h->in_gap};
    struct tmk_history_entry *last = h->n ? &h->entries[h->n - 1] : NULL;
    h->in_gap = false;
    if (last && !e.after_gap && last->n_samples < h->width) {
        merge_entries(last, &e);
        return 0;
    }
    return append_entry(h, &e);
}

void tmk_history_gap(struct tmk_history *h)
{
    h->in_gap = h->n > 0;
}
