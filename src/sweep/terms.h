/* SPDX-License-Identifier: MIT */
/* sweep/terms.h - the terms of memory growth: "1", "seq", "batch*seq^2", "min(batch,physical)".
 *
 * A term is a product of at most four factors, one of them perhaps squared. A factor is a
 * parameter, the smaller one of two parameters (a physical batch is never larger than the batch),
 * or one over a parameter (for memory that is divided among ranks). The values of a sweep decide
 * which terms can be fitted: a parameter that does not vary has no term, a square needs three
 * values, and the smaller of two parameters is a factor only if cells on both sides show that the
 * larger one changes nothing. */
#ifndef TMK_SWEEP_TERMS_H
#define TMK_SWEEP_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "kit/arena.h"

enum { TMK_TERM_FACTORS = 4, TMK_TERMS_MOST = 128, TMK_TERMS_PARAMS = 16 };

struct tmk_factor {
    uint8_t a, b; /* parameters; equal: that one, else the smaller of both */
    bool is_inverse;
};

struct tmk_term {
    struct tmk_factor factors[TMK_TERM_FACTORS];
    uint8_t n; /* 0: the constant */
};

struct tmk_terms {
    struct tmk_term items[TMK_TERMS_MOST];
    uint32_t n;
    bool varies[TMK_TERMS_PARAMS];
};

/* Hints from the figures themselves. */
struct tmk_terms_hints {
    bool falls[TMK_TERMS_PARAMS];                  /* a figure falls as this parameter grows */
    bool caps[TMK_TERMS_PARAMS][TMK_TERMS_PARAMS]; /* of these two, the larger one has no effect */
};

/* Find the terms that can be fitted from `n` cells with `n_params` numbers each (x, by cells). */
void tmk_terms_find(const double *x, uint32_t n, uint32_t n_params,
                    const struct tmk_terms_hints *hints, struct tmk_terms *ret);

double tmk_term_value(const struct tmk_term *t, const double *numbers);
/* The cost of a term: a higher one must explain more to be chosen. */
double tmk_term_cost(const struct tmk_term *t);
/* Whether parameter p is in the term; *ret_power, which may be NULL, is its power: -1, 1, 2. */
bool tmk_term_has(const struct tmk_term *t, uint32_t p, int *ret_power);
/* Write a term as "batch*seq^2"; NULL: no memory. */
const char *tmk_term_text(const struct tmk_term *t, const char *const *names, struct tmk_arena *a);

#endif
