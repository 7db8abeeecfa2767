/* SPDX-License-Identifier: MIT */
/* sweep/nnls.c - see nnls.h.
 *
 * Columns are made orthonormal one by one (Gram-Schmidt, twice, which is as good as Householder's
 * method for independent columns). So the normal equations, which square the condition number, are
 * never formed. All columns at once are tried first: if no coefficient is negative, that is the
 * answer, and it usually is. */
#include "sweep/nnls.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define DEPENDENT 1e-7 /* share of its length that must be left of a column */
#define FLAT 1e-11     /* a slope below this is none */

struct nnls_problem {
    const double *a, *b;
    uint32_t m, n;
};

double tmk_dot(const double *a, const double *b, uint32_t m)
{
    double sum = 0;
    for (uint32_t i = 0; i < m; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Add column j behind the used ones. False: it depends on them. */
static bool push_column(struct tmk_nnls *s, const struct nnls_problem *p, uint32_t j)
{
    const double *column = p->a + (size_t)j * p->m;
    double *q = s->q + (size_t)s->n_used * p->m;
    uint32_t k = s->n_used;
    double whole = sqrt(tmk_dot(column, column, p->m));
    if (k == p->m || !(whole > 0) || !isfinite(whole))
        return false;
    memcpy(q, column, p->m * sizeof *q);
    for (uint32_t i = 0; i < k; i++)
        s->r[i][k] = 0;
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < k; i++) {
            const double *other = s->q + (size_t)i * p->m;
            double part = tmk_dot(other, q, p->m);
            s->r[i][k] += part;
            for (uint32_t row = 0; row < p->m; row++)
                q[row] -= part * other[row];
        }
    double left = sqrt(tmk_dot(q, q, p->m));
    if (!(left > DEPENDENT * whole))
        return false;
    for (uint32_t row = 0; row < p->m; row++)
        q[row] /= left;
    s->r[k][k] = left;
    s->used[s->n_used++] = j;
    return true;
}

/* Solve for the coefficients of the used columns, with any sign. */
static void solve_used(const struct tmk_nnls *s, const struct nnls_problem *p, double *z)
{
    for (uint32_t i = s->n_used; i-- > 0;) {
        z[i] = tmk_dot(s->q + (size_t)i * p->m, p->b, p->m);
        for (uint32_t j = i + 1; j < s->n_used; j++)
            z[i] -= s->r[i][j] * z[j];
        z[i] /= s->r[i][i];
    }
}

static bool all_above(const double *z, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(z[i] > 0))
            return false;
    return true;
}

static void keep_solution(struct tmk_nnls *s, const double *z)
{
    memset(s->x, 0, sizeof s->x);
    for (uint32_t i = 0; i < s->n_used; i++)
        s->x[s->used[i]] = z[i];
}

static bool is_column_used(const struct tmk_nnls *s, uint32_t j)
{
    for (uint32_t i = 0; i < s->n_used; i++)
        if (s->used[i] == j)
            return true;
    return false;
}

/* Find the column along which the residual falls most, or n. */
static uint32_t steepest(const struct tmk_nnls *s, const struct nnls_problem *p,
                         const bool *refused)
{
    uint32_t best = p->n;
    double most = FLAT * sqrt(tmk_dot(p->b, p->b, p->m));
    for (uint32_t j = 0; j < p->n; j++) {
        const double *column = p->a + (size_t)j * p->m;
        double length = sqrt(tmk_dot(column, column, p->m)), slope = tmk_dot(column, p->b, p->m);
        if (refused[j] || is_column_used(s, j) || !(length > 0))
            continue;
        for (uint32_t i = 0; i < s->n_used; i++) {
            const double *q = s->q + (size_t)i * p->m;
            slope -= tmk_dot(q, column, p->m) * tmk_dot(q, p->b, p->m);
        }
        if (slope / length > most) {
            most = slope / length;
            best = j;
        }
    }
    return best;
}

/* Keep only the used columns with x above 0. */
static void drop_zeros(struct tmk_nnls *s, const struct nnls_problem *p)
{
    uint32_t old[TMK_NNLS_MOST], n = s->n_used;
    memcpy(old, s->used, sizeof old);
    s->n_used = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->x[old[i]] > 0)
            (void)push_column(s, p, old[i]);
}

/* Go from x towards z as far as no coefficient becomes negative; the one that stops it becomes
 * 0. */
static void step_towards(struct tmk_nnls *s, const double *z)
{
    double part = 1;
    uint32_t stop = s->n_used;
    for (uint32_t i = 0; i < s->n_used; i++) {
        double x = s->x[s->used[i]];
        if (!(z[i] > 0) && x / (x - z[i]) <= part) {
            part = x / (x - z[i]);
            stop = i;
        }
    }
    for (uint32_t i = 0; i < s->n_used; i++) {
        double *x = &s->x[s->used[i]];
        *x = i == stop ? 0 : fmax(*x + part * (z[i] - *x), 0);
    }
}

/* Take in column j. False: it does not improve the fit. */
static bool take_in(struct tmk_nnls *s, const struct nnls_problem *p, uint32_t j)
{
    double z[TMK_NNLS_MOST] = {0};
    uint32_t own = s->n_used;
    if (!push_column(s, p, j))
        return false;
    solve_used(s, p, z);
    if (!(z[own] > 0)) { /* due to rounding: by its slope it should be above 0 */
        s->n_used = own;
        return false;
    }
    while (s->n_used > 0 && !all_above(z, s->n_used)) {
        step_towards(s, z);
        drop_zeros(s, p);
        solve_used(s, p, z);
    }
    keep_solution(s, z);
    return true;
}

void tmk_nnls_solve(struct tmk_nnls *s, const double *a, uint32_t m, uint32_t n, const double *b)
{
    const struct nnls_problem p = {.a = a, .b = b, .m = m, .n = n};
    double z[TMK_NNLS_MOST];
    bool refused[TMK_NNLS_MOST] = {false};
    uint32_t j = 0;
    s->n_used = 0;
    while (j < n && push_column(s, &p, j))
        j++;
    solve_used(s, &p, z);
    keep_solution(s, z);
    if (j == n && all_above(z, n))
        return;
    s->n_used = 0;
    memset(s->x, 0, sizeof s->x);
    for (uint32_t round = 0; round < 4 * n + 8; round++) {
        j = steepest(s, &p, refused);
        if (j == n)
            break;
        if (take_in(s, &p, j))
            memset(refused, 0, sizeof refused);
        else
            refused[j] = true;
    }
}

double tmk_nnls_leverage(const struct tmk_nnls *s, uint32_t m, uint32_t i)
{
    double sum = 0;
    for (uint32_t j = 0; j < s->n_used; j++)
        sum += s->q[(size_t)j * m + i] * s->q[(size_t)j * m + i];
    return sum;
}

void tmk_nnls_weights(const struct tmk_nnls *s, uint32_t m, const double *row, double *ret)
{
    double v[TMK_NNLS_MOST]; /* solves r' v = row */
    memset(ret, 0, m * sizeof *ret);
    for (uint32_t i = 0; i < s->n_used; i++) {
        v[i] = row[s->used[i]];
        for (uint32_t j = 0; j < i; j++)
            v[i] -= s->r[j][i] * v[j];
        v[i] /= s->r[i][i];
        for (uint32_t k = 0; k < m; k++)
            ret[k] += v[i] * s->q[(size_t)i * m + k];
    }
}

double tmk_nnls_spread(const struct tmk_nnls *s, uint32_t i)
{
    double v[TMK_NNLS_MOST] = {0}, sum = 0; /* solves r' v = e_i */
    for (uint32_t k = i; k < s->n_used; k++) {
        v[k] = k == i ? 1 : 0;
        for (uint32_t j = i; j < k; j++)
            v[k] -= s->r[j][k] * v[j];
        v[k] /= s->r[k][k];
        sum += v[k] * v[k];
    }
    return sum;
}
