/* SPDX-License-Identifier: MIT */
/* sweep/cell_json.c - see cell_json.h. */
#include "sweep/cell_json.h"

void tmk_cell_json_bytes(struct tmk_json *j, const char *key, uint64_t bytes)
{
    if (bytes == TMK_BYTES_UNKNOWN)
        tmk_json_null(j, key);
    else
        tmk_json_u64(j, key, bytes);
}

void tmk_cell_json_number(struct tmk_json *j, const char *key, int64_t number)
{
    if (number < 0)
        tmk_json_null(j, key);
    else
        tmk_json_i64(j, key, number);
}

void tmk_cell_json_shares(struct tmk_json *j, const char *key, const struct tmk_shares *s)
{
    tmk_json_object(j, key);
    for (uint32_t i = 0; i < s->n; i++)
        tmk_json_u64(j, s->rows[i].key, s->rows[i].bytes);
    tmk_json_end(j);
}

void tmk_cell_json_peaks(struct tmk_json *j, const struct tmk_cell *c)
{
    tmk_cell_json_bytes(j, "peak_allocated", c->peak_allocated);
    tmk_cell_json_bytes(j, "peak_reserved", c->peak_reserved);
    tmk_cell_json_bytes(j, "peak_device", c->peak_device);
}

void tmk_cell_json_stages(struct tmk_json *j, const struct tmk_cell *c, bool in_seconds)
{
    tmk_json_array(j, "stages");
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const struct tmk_cell_stage *s = &c->stages[i];
        tmk_json_object(j, NULL);
        tmk_json_text(j, "name", s->name);
        tmk_json_u64(j, "peak", s->peak);
        tmk_json_u64(j, "end", s->end);
        tmk_json_u64(j, "allocated", s->allocated);
        tmk_json_u64(j, "times", s->n_times);
        if (in_seconds)
            tmk_json_double(j, "seconds", (double)s->ns / 1e9);
        else
            tmk_json_u64(j, "ns", s->ns);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

void tmk_cell_json_ranks(struct tmk_json *j, const struct tmk_cell *c)
{
    tmk_json_array(j, "ranks");
    for (uint32_t i = 0; i < c->n_ranks; i++) {
        const struct tmk_cell_rank *k = &c->ranks[i];
        tmk_json_object(j, NULL);
        tmk_cell_json_number(j, "rank", k->rank);
        tmk_json_u64(j, "pid", k->pid);
        tmk_json_text(j, "device", k->device);
        tmk_cell_json_bytes(j, "peak_allocated", k->peak_allocated);
        tmk_cell_json_bytes(j, "peak_reserved", k->peak_reserved);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}
