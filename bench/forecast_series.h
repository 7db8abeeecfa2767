/* SPDX-License-Identifier: MIT */
/* forecast_series.h - series to score forecasts by: the highest use of each step of jobs that run
 * out of memory, and of jobs that do not. All numbers come of the seed: the same everywhere.
 *
 * There are three sets without a seed or a function in common: what the weights of the confidence
 * were fitted to, what is checked, and what is judged: shapes that someone else found hard, with
 * other parameters than while the forecast was made to handle them. */
#ifndef FORECAST_SERIES_H
#define FORECAST_SERIES_H

#include <stdbool.h>
#include <stdint.h>

enum { SERIES_MOST = 4000, SERIES_NAME_BYTES = 64 };

struct series {
    const char *name;
    bool runs_out; /* by what it is: the job would, if it went on */
    bool is_slow;  /* a slow leak: to be seen early */
    bool is_recorded;
    double capacity;
    uint32_t n;   /* steps, up to the one that runs out */
    uint32_t oom; /* the step that reaches the capacity; n: none does */
    double bytes[SERIES_MOST];
};

enum series_set { SERIES_FIT, SERIES_CHECK, SERIES_JUDGE };

/* Kinds of series of a set. */
unsigned series_n_kinds(enum series_set set);
/* One of a kind. */
void series_make(enum series_set set, unsigned kind, uint64_t seed, struct series *ret);

/* One that was recorded: "# NAME runs_out|quiet CAPACITY", then a number of bytes a line. 0, or -1
 * when it cannot be read. `name` is the caller's, of SERIES_NAME_BYTES. */
int series_read(const char *path, char *name, struct series *ret);

#endif
