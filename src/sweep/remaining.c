/* SPDX-License-Identifier: MIT */
/* sweep/remaining.c - see remaining.h. */
#include "sweep/remaining.h"

#include "sweep/order.h"

enum { MAX_NEAR = 256 }; /* cells that are averaged, so that a large grid stays cheap */

static double seconds_like(const struct tmk_results *r, const struct tmk_cell *c,
                           const uint32_t *known, uint32_t n)
{
    double sum = 0, weights = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct tmk_cell *k = &r->cells[known[i]];
        double d = tmk_order_distance(r, c, k), weight = 1 / (0.01 + d * d);
        sum += weight * k->seconds;
        weights += weight;
    }
    return sum / weights;
}

double tmk_remaining_seconds(const struct tmk_results *r, const uint32_t *order, uint32_t n,
                             unsigned n_at_once)
{
    uint32_t known[MAX_NEAR], n_known = 0;
    for (uint32_t i = 0; i < n && n_known < MAX_NEAR; i++)
        if (tmk_cell_was_run(&r->cells[order[i]]))
            known[n_known++] = order[i];
    if (n_known == 0)
        return -1;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (r->cells[order[i]].outcome == TMK_CELL_PENDING)
            sum += seconds_like(r, &r->cells[order[i]], known, n_known);
    return sum / (n_at_once > 0 ? n_at_once : 1);
}
