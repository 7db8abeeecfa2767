/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_csv.c - memory_profile_summary.csv: a row for each cell. Columns are the same in
 * every row: all categories, components and ranks that any cell has. docs/sweep-files.md describes
 * them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_answer.h"
#include "kit/amount.h"
#include "kit/textmap.h"
#include "kit/tree.h"
#include "sweep/fit.h"
#include "sweep/results.h"

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

/* ---- a cell ---- */

/* Write shares: 0 if the cell was measured and has none of a key, unknown if it was not
 * measured. */
static void put_shares(struct tmk_tree *t, const char *before, const struct tmk_textmap *keys,
                       const struct tmk_shares *s)
{
    for (uint32_t k = 0; k < keys->n; k++) {
        uint64_t bytes = s->n > 0 ? 0 : TMK_BYTES_UNKNOWN;
        for (uint32_t i = 0; i < s->n; i++) {
            uint32_t number;
            if (tmk_textmap_find(keys, s->rows[i].key, &number) && number == k)
                bytes = s->rows[i].bytes;
        }
        char *key = tmk_xformat("%s%s", before, keys->texts[k]);
        tmk_tree_bytes(t, key, bytes);
        free(key);
    }
}

/* The larger of a rank's figures on several devices. */
static uint64_t larger_known_bytes(uint64_t a, uint64_t b)
{
    return a == TMK_BYTES_UNKNOWN || (b != TMK_BYTES_UNKNOWN && b > a) ? b : a;
}

static void put_ranks(struct tmk_tree *t, const struct tmk_cell *c, uint32_t n)
{
    char key[48];
    for (uint32_t rank = 0; rank < n; rank++) {
        uint64_t allocated = TMK_BYTES_UNKNOWN, reserved = TMK_BYTES_UNKNOWN;
        for (uint32_t i = 0; i < c->n_ranks; i++)
            if (cell_rank_of(c, i) == rank) {
                allocated = larger_known_bytes(allocated, c->ranks[i].peak_allocated);
                reserved = larger_known_bytes(reserved, c->ranks[i].peak_reserved);
            }
        snprintf(key, sizeof key, "rank%u_peak_allocated", rank);
        tmk_tree_bytes(t, key, allocated);
        snprintf(key, sizeof key, "rank%u_peak_reserved", rank);
        tmk_tree_bytes(t, key, reserved);
    }
}

/* `keys`: of the estimate, its low and its high bound. */
static void put_csv_estimate(struct tmk_tree *t, const char *const keys[3], const struct tmk_fit *f,
                             uint32_t c)
{
    struct tmk_estimate e = f ? tmk_fit_cell(f, c) : (struct tmk_estimate){.known = false};
    const double values[] = {e.bytes, e.low, e.high};
    for (int i = 0; i < 3; i++)
        tmk_tree_bytes(t, keys[i], e.known ? tmk_size_whole(values[i]) : TMK_BYTES_UNKNOWN);
}

static void put_outcome(struct tmk_tree *t, const struct tmk_cell *c)
{
    bool was_run = tmk_cell_was_run(c);
    tmk_tree_u64(t, "repeat", c->repeat + 1);
    tmk_tree_text(t, "outcome", tmk_cell_outcome_name(c->outcome));
    tmk_tree_i64_if(t, "exit_status", was_run, c->exit_status);
    tmk_tree_fixed(t, "seconds", was_run ? c->seconds : NAN, 3);
    tmk_tree_text(t, "device", c->device);
    tmk_tree_bytes(t, "capacity", c->capacity);
}

static void put_csv_cell(struct tmk_tree *t, const struct tmk_sweep_answer *v, uint32_t number,
                         const struct csv_columns *k)
{
    static const char *const allocated[] = {"estimate", "estimate_low", "estimate_high"};
    static const char *const reserved[] = {"estimate_reserved", "estimate_reserved_low",
                                           "estimate_reserved_high"};
    const struct tmk_cell *c = &v->r->cells[number];
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "number", number + 1);
    for (uint32_t p = 0; p < v->r->n_params; p++)
        tmk_tree_text(t, v->r->params[p].name, v->r->params[p].values[c->choice[p]]);
    put_outcome(t, c);
    tmk_sweep_put_peaks(t, c);
    put_shares(t, "category_", &k->categories, &c->categories);
    put_shares(t, "component_", &k->components, &c->components);
    put_ranks(t, c, k->n_ranks);
    put_csv_estimate(t, allocated, v->g->fit, number);
    put_csv_estimate(t, reserved, v->reserved, number);
    tmk_tree_text(t, "run", c->run);
    tmk_tree_text(t, "message", c->message);
    tmk_tree_end(t);
}

void tmk_sweep_write_csv(FILE *out, const struct tmk_sweep_answer *v)
{
    struct csv_columns k = {.n_ranks = 0};
    struct tmk_tree t;
    find_columns(v->r, &k);
    tmk_tree_init_rows(&t, out, false);
    put_csv_cell(&t, v, 0, &k); /* the titles: a sweep has a cell, whatever becomes of it */
    for (uint32_t i = 0; i < v->r->n_cells; i++)
        put_csv_cell(&t, v, i, &k);
    tmk_textmap_fini(&k.categories);
    tmk_textmap_fini(&k.components);
}
