/* SPDX-License-Identifier: MIT */
/* sweep/order.c - see order.h.
 *
 * The values of a parameter lie on a line from 0 to 1, by rank. A value's level is how often the
 * line must be halved to reach it: 0 for the ends, 1 for the middle, 2 for the quarters. A
 * configuration's level is that of its highest value; its size is the sum of its values' places. */
#include "sweep/order.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "sweep/params.h"

struct order_key {
    uint32_t number;
    uint32_t repeat;
    unsigned phase; /* 0: the first; 1: corners; 2 and more: between; UINT_MAX: the last */
    double size;
};

/* How many of the parameter's values are smaller. */
static uint32_t value_rank_of(const struct tmk_sweep_param *p, uint32_t value)
{
    uint32_t rank = 0;
    if (!p->numbers)
        return value;
    for (uint32_t i = 0; i < p->n_values; i++)
        rank +=
            p->numbers[i] < p->numbers[value] || (i < value && p->numbers[i] == p->numbers[value]);
    return rank;
}

static double rank_place(uint32_t rank, uint32_t n)
{
    return n > 1 ? (double)rank / (n - 1) : 0;
}

static unsigned level_of(uint32_t rank, uint32_t n)
{
    unsigned level = 0;
    for (uint32_t parts = 1; parts < n; parts *= 2, level++)
        for (uint32_t i = 0; i <= parts; i++)
            if ((uint32_t)lround((double)i * (n - 1) / parts) == rank)
                return level;
    return level;
}

struct order_table { /* figures of one parameter, by value */
    double place[TMK_SWEEP_MAX_VALUES];
    unsigned level[TMK_SWEEP_MAX_VALUES];
};

static void fill_table(struct order_table *t, const struct tmk_sweep_param *p)
{
    for (uint32_t i = 0; i < p->n_values; i++) {
        uint32_t rank = value_rank_of(p, i);
        t->place[i] = rank_place(rank, p->n_values);
        t->level[i] = level_of(rank, p->n_values);
    }
}

static void add_param(struct order_key *keys, uint32_t n, const struct tmk_results *r,
                      uint32_t param, struct order_table *t)
{
    fill_table(t, &r->params[param]);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t value = r->cells[keys[i].number].choice[param];
        keys[i].size += t->place[value];
        if (keys[i].phase < t->level[value] + 1)
            keys[i].phase = t->level[value] + 1;
    }
}

static int by_number_size(const void *a, const void *b)
{
    const struct order_key *x = a, *y = b;
    if (x->repeat != y->repeat)
        return x->repeat < y->repeat ? -1 : 1;
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Mark all repeats of the smallest and the largest configuration that the constraints leave. */
static void mark_ends(struct order_key *keys, uint32_t n, uint32_t n_repeats)
{
    uint32_t least = 0, most = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (keys[i].size < keys[least].size)
            least = i;
        if (keys[i].size > keys[most].size)
            most = i;
    }
    for (uint32_t i = 0; i < n_repeats && n > 0; i++) {
        keys[most + i].phase = UINT_MAX;
        keys[least + i].phase = 0; /* there is one configuration, which is both */
    }
}

int tmk_order_cells(const struct tmk_results *r, uint32_t *ret, uint32_t *ret_n)
{
    struct order_key *keys = calloc(r->n_cells ? r->n_cells : 1, sizeof *keys);
    struct order_table *table = calloc(1, sizeof *table);
    uint32_t n = 0;
    for (uint32_t i = 0; keys && i < r->n_cells; i++)
        if (r->cells[i].outcome != TMK_CELL_EXCLUDED)
            keys[n++] = (struct order_key){.number = i, .repeat = r->cells[i].repeat, .phase = 1};
    if (keys && table) {
        for (uint32_t i = 0; i < r->n_params; i++)
            add_param(keys, n, r, i, table);
        mark_ends(keys, n, r->n_repeats);
        qsort(keys, n, sizeof *keys, by_number_size);
        for (uint32_t i = 0; i < n; i++)
            ret[i] = keys[i].number;
        *ret_n = n;
    }
    bool good = keys && table;
    free(keys);
    free(table);
    return good ? 0 : TMK_ENOMEM;
}

double tmk_order_distance(const struct tmk_results *r, const struct tmk_cell *a,
                          const struct tmk_cell *b)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n_params; i++) {
        double n = r->params[i].n_values > 1 ? r->params[i].n_values - 1 : 1;
        sum += fabs((double)a->choice[i] - (double)b->choice[i]) / n;
    }
    return sum;
}
