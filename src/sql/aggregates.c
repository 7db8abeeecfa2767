/* SPDX-License-Identifier: MIT */
/* sql/aggregates.c - see aggregates.h.
 *
 * The deviation is summed in batches: mean and squares of 32 values are taken in two passes over
 * them, then merged into the whole. As exact as updating mean and squares value by value, without a
 * division for each. Percentiles keep all values and select, which is linear, instead of sorting.
 */
#include "sql/aggregates.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "kit/grow.h"

/* ---- stddev ---- */

enum { BATCH = 32 };

struct deviation {
    double n, mean, squares; /* of the batches merged; squares: sum of (x - mean)^2 */
    uint32_t n_batch;
    double batch[BATCH];
};

static void merge_batch(struct deviation *d)
{
    if (d->n_batch == 0)
        return;
    double n = d->n_batch, sum = 0, squares = 0;
    for (uint32_t i = 0; i < d->n_batch; i++)
        sum += d->batch[i];
    double mean = sum / n;
    for (uint32_t i = 0; i < d->n_batch; i++)
        squares += (d->batch[i] - mean) * (d->batch[i] - mean);
    double apart = mean - d->mean, all = d->n + n;
    d->squares += squares + apart * apart * (d->n * n / all);
    d->mean += apart * (n / all);
    d->n = all;
    d->n_batch = 0;
}

static void deviation_step(sqlite3_context *context, int n_args, sqlite3_value **args)
{
    (void)n_args;
    struct deviation *d = sqlite3_aggregate_context(context, sizeof *d);
    if (!d) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (sqlite3_value_type(args[0]) == SQLITE_NULL)
        return;
    d->batch[d->n_batch++] = sqlite3_value_double(args[0]);
    if (d->n_batch == BATCH)
        merge_batch(d);
}

static void deviation_end(sqlite3_context *context)
{
    struct deviation *d = sqlite3_aggregate_context(context, 0);
    if (!d)
        return;
    merge_batch(d);
    if (d->n >= 2)
        sqlite3_result_double(context, sqrt(d->squares / (d->n - 1)));
}

/* ---- percentile ---- */

struct sample {
    double *values;
    uint64_t n, room;
    double percent;
    const char *error; /* the rows that follow do not matter */
};

static void sample_fail(sqlite3_context *context, struct sample *s, const char *text)
{
    s->error = text;
    sqlite3_result_error(context, text, -1);
}

static void sample_add(sqlite3_context *context, sqlite3_value *value, double percent)
{
    struct sample *s = sqlite3_aggregate_context(context, sizeof *s);
    if (!s) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (s->error || sqlite3_value_type(value) == SQLITE_NULL)
        return;
    if (!(percent >= 0 && percent <= 100)) {
        sample_fail(context, s, "percentile(x, p): p must be a number from 0 to 100");
        return;
    }
    if (s->n > 0 && percent != s->percent) {
        sample_fail(context, s, "percentile(x, p): p must be the same for all rows");
        return;
    }
    if (TMK_GROW(s->values, s->n + 1, s->room) < 0) {
        sample_fail(context, s, "out of memory");
        return;
    }
    s->percent = percent;
    s->values[s->n++] = sqlite3_value_double(value);
}

static void median_step(sqlite3_context *context, int n_args, sqlite3_value **args)
{
    (void)n_args;
    sample_add(context, args[0], 50);
}

static void percentile_step(sqlite3_context *context, int n_args, sqlite3_value **args)
{
    (void)n_args;
    int type = sqlite3_value_numeric_type(args[1]);
    bool is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
    sample_add(context, args[0], is_number ? sqlite3_value_double(args[1]) : -1);
}

static void swap(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

static double middle_of(double a, double b, double c)
{
    if (a > b)
        swap(&a, &b);
    return c < a ? a : c > b ? b : c;
}

/* Put the value that belongs at `k` there, smaller ones before and larger ones after it. */
static void select_value(double *v, uint64_t n, uint64_t k)
{
    uint64_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = middle_of(v[low], v[low + (high - low) / 2], v[high]);
        uint64_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i > j)
                break;
            swap(&v[i++], &v[j]);
            if (j-- == 0)
                break;
        }
        if (j != UINT64_MAX && k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            return;
    }
}

static double percentile_of(struct sample *s)
{
    double at = s->percent * (double)(s->n - 1) / 100;
    uint64_t k = (uint64_t)at;
    select_value(s->values, s->n, k);
    double value = s->values[k], part = at - (double)k;
    if (part == 0 || k + 1 == s->n)
        return value;
    double next = s->values[k + 1];
    for (uint64_t i = k + 2; i < s->n; i++)
        next = s->values[i] < next ? s->values[i] : next;
    return value + (next - value) * part;
}

static void sample_end(sqlite3_context *context)
{
    struct sample *s = sqlite3_aggregate_context(context, 0);
    if (!s)
        return;
    if (s->error)
        sqlite3_result_error(context, s->error, -1);
    else if (s->n > 0)
        sqlite3_result_double(context, percentile_of(s));
    free(s->values);
    *s = (struct sample){0};
}

/* ---- registering ---- */

static const struct {
    const char *name;
    int n_args;
    void (*step)(sqlite3_context *context, int n_args, sqlite3_value **args);
    void (*end)(sqlite3_context *context);
} aggregates[] = {
    {"stddev", 1, deviation_step, deviation_end},
    {"median", 1, median_step, sample_end},
    {"percentile", 2, percentile_step, sample_end},
};

int tmk_aggregates_register(sqlite3 *db)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof aggregates / sizeof aggregates[0]; i++)
        rc = sqlite3_create_function(db, aggregates[i].name, aggregates[i].n_args,
                                     SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                     NULL, aggregates[i].step, aggregates[i].end);
    return rc;
}
