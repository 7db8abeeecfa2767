/* SPDX-License-Identifier: MIT */
/* sweep/cell_json.c - see cell_json.h. */
#include "sweep/cell_json.h"

void tmk_cell_json_shares(struct tmk_tree *t, const char *key, const struct tmk_shares *s)
{
    tmk_tree_object(t, key);
    for (uint32_t i = 0; i < s->n; i++)
        tmk_tree_u64(t, s->rows[i].key, s->rows[i].bytes);
    tmk_tree_end(t);
}

void tmk_cell_json_peaks(struct tmk_tree *t, const struct tmk_cell *c)
{
    tmk_tree_bytes(t, "peak_allocated", c->peak_allocated);
    tmk_tree_bytes(t, "peak_reserved", c->peak_reserved);
    tmk_tree_bytes(t, "peak_device", c->peak_device);
}

void tmk_cell_json_stages(struct tmk_tree *t, const struct tmk_cell *c, bool in_seconds)
{
    tmk_tree_list(t, "stages");
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const struct tmk_cell_stage *s = &c->stages[i];
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "name", s->name);
        tmk_tree_u64(t, "peak", s->peak);
        tmk_tree_u64(t, "end", s->end);
        tmk_tree_u64(t, "allocated", s->allocated);
        tmk_tree_u64(t, "times", s->n_times);
        if (in_seconds)
            tmk_tree_double(t, "seconds", (double)s->ns / 1e9);
        else
            tmk_tree_u64(t, "ns", s->ns);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

void tmk_cell_json_ranks(struct tmk_tree *t, const struct tmk_cell *c)
{
    tmk_tree_list(t, "ranks");
    for (uint32_t i = 0; i < c->n_ranks; i++) {
        const struct tmk_cell_rank *k = &c->ranks[i];
        tmk_tree_object(t, NULL);
        tmk_tree_number(t, "rank", k->rank);
        tmk_tree_u64(t, "pid", k->pid);
        tmk_tree_text(t, "device", k->device);
        tmk_tree_bytes(t, "peak_allocated", k->peak_allocated);
        tmk_tree_bytes(t, "peak_reserved", k->peak_reserved);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}
