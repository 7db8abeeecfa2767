/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_csv.c - memory_profile_summary.csv: a row for each cell. Columns are the same in
 * every row: all categories, components and ranks that any cell has. docs/sweep-files.md describes
 * them. */
#include <stdlib.h>

#include "base/array.h"
#include "cli/front/command.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_answer.h"
#include "kit/amount.h"
#include "kit/csv.h"
#include "kit/textmap.h"

enum { MOST_RANKS = 1024 }; /* ranks with their own columns */

struct csv_columns {
    struct tmk_textmap categories, components;
    uint32_t n_ranks;
};

static void add_keys(struct tmk_textmap *keys, const struct tmk_shares *s)
{
    uint32_t number;
    for (uint32_t i = 0; i < s->n; i++)
        if (tmk_textmap_put(keys, s->rows[i].key, &number) != 0)
            tmk_die("out of memory");
}

/* The rank of a process; processes without a rank are numbered from 0. */
static uint32_t cell_rank_of(const struct tmk_cell *c, uint32_t i)
{
    int64_t rank = c->ranks[i].rank;
    return rank < 0 ? i : rank < MOST_RANKS ? (uint32_t)rank : UINT32_MAX;
}

static void find_columns(const struct tmk_results *r, struct csv_columns *ret)
{
    for (uint32_t i = 0; i < r->n_cells; i++) {
        const struct tmk_cell *c = &r->cells[i];
        add_keys(&ret->categories, &c->categories);
        add_keys(&ret->components, &c->components);
        for (uint32_t k = 0; k < c->n_ranks; k++) {
            uint32_t rank = cell_rank_of(c, k);
            if (rank < MOST_RANKS && rank >= ret->n_ranks)
                ret->n_ranks = rank + 1;
        }
    }
}

/* ---- the first line ---- */

static void put_column_name(struct tmk_csv *csv, const char *before, const char *name)
{
    char *text = tmk_xformat("%s%s", before, name);
    tmk_csv_text(csv, text);
    free(text);
}

static void put_column_names(struct tmk_csv *csv, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tmk_csv_text(csv, names[i]);
}

static const char *const before_peaks[] = {"repeat",  "outcome", "exit_status",
                                           "seconds", "device",  "capacity"};
static const char *const peaks[] = {
    "peak_allocated",   "peak_reserved",  "peak_device", "peak_allocated_gb",
    "peak_reserved_gb", "peak_device_gb", "peak_step",   "steps"};
static const char *const estimates[] = {
    "estimate",          "estimate_low",          "estimate_high",
    "estimate_reserved", "estimate_reserved_low", "estimate_reserved_high"};
static const char *const at_end[] = {"run", "message"};

static void put_titles(struct tmk_csv *csv, const struct tmk_results *r,
                       const struct csv_columns *k)
{
    tmk_csv_text(csv, "number");
    for (uint32_t p = 0; p < r->n_params; p++)
        tmk_csv_text(csv, r->params[p].name);
    put_column_names(csv, before_peaks, TMK_N(before_peaks));
    put_column_names(csv, peaks, TMK_N(peaks));
    for (uint32_t i = 0; i < k->categories.n; i++)
        put_column_name(csv, "category_", k->categories.texts[i]);
    for (uint32_t i = 0; i < k->components.n; i++)
        put_column_name(csv, "component_", k->components.texts[i]);
    for (uint32_t i = 0; i < k->n_ranks; i++) {
        char *allocated = tmk_xformat("rank%u_peak_allocated", i);
        char *reserved = tmk_xformat("rank%u_peak_reserved", i);
        tmk_csv_text(csv, allocated);
        tmk_csv_text(csv, reserved);
        free(allocated);
        free(reserved);
    }
    put_column_names(csv, estimates, TMK_N(estimates));
    put_column_names(csv, at_end, TMK_N(at_end));
    tmk_csv_end_row(csv);
}

/* ---- a cell ---- */

static void put_csv_bytes(struct tmk_csv *csv, uint64_t bytes)
{
    if (bytes == TMK_UNKNOWN_BYTES)
        tmk_csv_text(csv, NULL);
    else
        tmk_csv_u64(csv, bytes);
}

static void put_fixed(struct tmk_csv *csv, bool is_known, double value, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*f", digits, value);
    tmk_csv_text(csv, is_known ? text : NULL);
}

static void put_csv_gb(struct tmk_csv *csv, uint64_t bytes)
{
    put_fixed(csv, bytes != TMK_UNKNOWN_BYTES, (double)bytes / TMK_GB, 6);
}

/* Write shares: 0 if the cell was measured and has none of a key, unknown if it was not
 * measured. */
static void put_shares(struct tmk_csv *csv, const struct tmk_textmap *keys,
                       const struct tmk_shares *s)
{
    for (uint32_t k = 0; k < keys->n; k++) {
        uint64_t bytes = s->n > 0 ? 0 : TMK_UNKNOWN_BYTES;
        for (uint32_t i = 0; i < s->n; i++) {
            uint32_t number;
            if (tmk_textmap_find(keys, s->rows[i].key, &number) && number == k)
                bytes = s->rows[i].bytes;
        }
        put_csv_bytes(csv, bytes);
    }
}

/* The larger of a rank's figures on several devices. */
static uint64_t larger_known_bytes(uint64_t a, uint64_t b)
{
    return a == TMK_UNKNOWN_BYTES || (b != TMK_UNKNOWN_BYTES && b > a) ? b : a;
}

static void put_ranks(struct tmk_csv *csv, const struct tmk_cell *c, uint32_t n)
{
    for (uint32_t rank = 0; rank < n; rank++) {
        uint64_t allocated = TMK_UNKNOWN_BYTES, reserved = TMK_UNKNOWN_BYTES;
        for (uint32_t i = 0; i < c->n_ranks; i++)
            if (cell_rank_of(c, i) == rank) {
                allocated = larger_known_bytes(allocated, c->ranks[i].peak_allocated);
                reserved = larger_known_bytes(reserved, c->ranks[i].peak_reserved);
            }
        put_csv_bytes(csv, allocated);
        put_csv_bytes(csv, reserved);
    }
}

static void put_csv_estimate(struct tmk_csv *csv, const struct tmk_fit *f, uint32_t c)
{
    struct tmk_estimate e = f ? tmk_fit_cell(f, c) : (struct tmk_estimate){.known = false};
    put_csv_bytes(csv, e.known ? tmk_size_whole(e.bytes) : TMK_UNKNOWN_BYTES);
    put_csv_bytes(csv, e.known ? tmk_size_whole(e.low) : TMK_UNKNOWN_BYTES);
    put_csv_bytes(csv, e.known ? tmk_size_whole(e.high) : TMK_UNKNOWN_BYTES);
}

static void put_outcome(struct tmk_csv *csv, const struct tmk_cell *c)
{
    bool was_run = tmk_cell_was_run(c);
    tmk_csv_u64(csv, c->repeat + 1);
    tmk_csv_text(csv, tmk_cell_outcome_name(c->outcome));
    if (was_run)
        tmk_csv_i64(csv, c->exit_status);
    else
        tmk_csv_text(csv, NULL);
    put_fixed(csv, was_run, c->seconds, 3);
    tmk_csv_text(csv, c->device);
    put_csv_bytes(csv, c->capacity);
}

static void put_csv_peaks(struct tmk_csv *csv, const struct tmk_cell *c)
{
    const uint64_t bytes[] = {c->peak_allocated, c->peak_reserved, c->peak_device};
    for (size_t i = 0; i < TMK_N(bytes); i++)
        put_csv_bytes(csv, bytes[i]);
    for (size_t i = 0; i < TMK_N(bytes); i++)
        put_csv_gb(csv, bytes[i]);
    if (c->peak_step < 0)
        tmk_csv_text(csv, NULL);
    else
        tmk_csv_i64(csv, c->peak_step);
    tmk_csv_u64(csv, c->n_steps);
}

void tmk_sweep_write_csv(FILE *out, const struct tmk_sweep_answer *v)
{
    struct csv_columns k = {.n_ranks = 0};
    struct tmk_csv csv;
    find_columns(v->r, &k);
    tmk_csv_init(&csv, out, false);
    put_titles(&csv, v->r, &k);
    for (uint32_t i = 0; i < v->r->n_cells; i++) {
        const struct tmk_cell *c = &v->r->cells[i];
        tmk_csv_u64(&csv, i + 1);
        for (uint32_t p = 0; p < v->r->n_params; p++)
            tmk_csv_text(&csv, v->r->params[p].values[c->choice[p]]);
        put_outcome(&csv, c);
        put_csv_peaks(&csv, c);
        put_shares(&csv, &k.categories, &c->categories);
        put_shares(&csv, &k.components, &c->components);
        put_ranks(&csv, c, k.n_ranks);
        put_csv_estimate(&csv, v->g->fit, i);
        put_csv_estimate(&csv, v->reserved, i);
        tmk_csv_text(&csv, c->run);
        tmk_csv_text(&csv, c->message);
        tmk_csv_end_row(&csv);
    }
    tmk_textmap_fini(&k.categories);
    tmk_textmap_fini(&k.components);
}
