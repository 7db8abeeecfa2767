/* SPDX-License-Identifier: MIT */
/* Least squares without negative coefficients: what is known, and what must hold of any answer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sweep/nnls.h"

enum { MOST_ROWS = 40 };

static double q[MOST_ROWS * TMK_NNLS_MOST];

static void assert_near(double is, double should, double error)
{
    if (!(fabs(is - should) <= error))
        fail_msg("%.17g, not %.17g", is, should);
}

static void exact_coefficients_come_back(void **state)
{
    /* Columns of very different scale: 1, s, s^2. */
    double a[15], b[5];
    struct tmk_nnls s = {.q = q};
    (void)state;
    for (int i = 0; i < 5; i++) {
        double seq = 128 * (i + 1);
        a[i] = 1;
        a[5 + i] = seq;
        a[10 + i] = seq * seq;
        b[i] = 1e9 + 5000 * seq + 12 * seq * seq;
    }
    tmk_nnls_solve(&s, a, 5, 3, b);
    assert_near(s.x[0], 1e9, 1);
    assert_near(s.x[1], 5000, 0.01);
    assert_near(s.x[2], 12, 1e-5);
    assert_int_equal(s.n_used, 3);
}

static void what_would_be_negative_is_zero(void **state)
{
    /* Falls: the best line without a negative slope is the mean. */
    double a[] = {1, 1, 1, 0, 1, 2}, b[] = {3, 2, 1};
    struct tmk_nnls s = {.q = q};
    (void)state;
    tmk_nnls_solve(&s, a, 3, 2, b);
    assert_near(s.x[0], 2, 1e-12);
    assert_true(s.x[1] == 0);
    assert_int_equal(s.n_used, 1);
}

static void of_columns_alike_one_counts(void **state)
{
    double a[] = {1, 2, 3, 2, 4, 6, 1, 2, 3}, b[] = {2, 4, 6};
    struct tmk_nnls s = {.q = q};
    (void)state;
    tmk_nnls_solve(&s, a, 3, 3, b);
    assert_int_equal(s.n_used, 1);
    assert_near(s.x[0] + 2 * s.x[1] + s.x[2], 2, 1e-12);
}

static void nothing_stays_nothing(void **state)
{
    double a[] = {1, 1, 0, 0}, b[] = {0, 0}, against[] = {-1, -2};
    struct tmk_nnls s = {.q = q};
    (void)state;
    tmk_nnls_solve(&s, a, 2, 2, b);
    assert_true(s.x[0] == 0 && s.x[1] == 0 && s.n_used == 0);
    tmk_nnls_solve(&s, a, 2, 2, against);
    assert_true(s.x[0] == 0 && s.x[1] == 0 && s.n_used == 0);
}

static void more_columns_than_rows(void **state)
{
    double a[] = {1, 1, 1, 2, 1, 4, 1, 8}, b[] = {3, 5};
    struct tmk_nnls s = {.q = q};
    (void)state;
    tmk_nnls_solve(&s, a, 2, 4, b);
    double first = 0, second = 0;
    for (int j = 0; j < 4; j++) {
        assert_true(s.x[j] >= 0);
        first += a[2 * j] * s.x[j];
        second += a[2 * j + 1] * s.x[j];
    }
    assert_near(first, 3, 1e-9);
    assert_near(second, 5, 1e-9);
}

static uint64_t random_state;

static double random_number(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(random_state >> 11) / (double)(UINT64_C(1) << 53);
}

/* Kuhn and Tucker's conditions: none negative, no slope upwards, none where it is used. */
static void assert_optimal(const struct tmk_nnls *s, const double *a, uint32_t m, uint32_t n,
                           const double *b)
{
    for (uint32_t j = 0; j < n; j++) {
        double slope = 0, length = 0;
        for (uint32_t i = 0; i < m; i++) {
            double rest = b[i];
            for (uint32_t k = 0; k < n; k++)
                rest -= a[k * m + i] * s->x[k];
            slope += a[j * m + i] * rest;
            length += a[j * m + i] * a[j * m + i];
        }
        slope /= sqrt(length);
        assert_true(s->x[j] >= 0);
        assert_true(slope <= 1e-8);
        if (s->x[j] > 0)
            assert_near(slope, 0, 1e-8);
    }
}

static void any_answer_is_the_best(void **state)
{
    double a[MOST_ROWS * TMK_NNLS_MOST], b[MOST_ROWS];
    struct tmk_nnls s = {.q = q};
    (void)state;
    random_state = 7;
    for (int round = 0; round < 300; round++) {
        uint32_t m = 2 + (uint32_t)(random_number() * (MOST_ROWS - 2));
        uint32_t n = 1 + (uint32_t)(random_number() * (TMK_NNLS_MOST - 1));
        for (uint32_t i = 0; i < m * n; i++)
            a[i] = random_number() - (round % 2 ? 0.5 : 0);
        for (uint32_t i = 0; i < m; i++)
            b[i] = random_number() - 0.3;
        tmk_nnls_solve(&s, a, m, n, b);
        assert_optimal(&s, a, m, n, b);
    }
}

/* A row left out by its leverage is a row left out. */
static void leverage_is_leaving_out(void **state)
{
    double a[20], b[10], left[18], rest[9];
    struct tmk_nnls s = {.q = q};
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        a[i] = 1;
        a[10 + i] = i * i;
        b[i] = 3 + 2.0 * i * i + sin(i);
    }
    for (uint32_t out = 0; out < 10; out++) {
        tmk_nnls_solve(&s, a, 10, 2, b);
        double error =
            (b[out] - s.x[0] - s.x[1] * a[10 + out]) / (1 - tmk_nnls_leverage(&s, 10, out));
        for (uint32_t i = 0, at = 0; i < 10; i++)
            if (i != out) {
                left[at] = 1;
                left[9 + at] = a[10 + i];
                rest[at++] = b[i];
            }
        tmk_nnls_solve(&s, left, 9, 2, rest);
        assert_near(error, b[out] - s.x[0] - s.x[1] * a[10 + out], 1e-9);
    }
}

/* Weights give the estimate back; the spread of y = a + b x is known. */
static void weights_and_spread(void **state)
{
    double a[8], b[4], weights[4], row[] = {1, 10}, sum = 0;
    struct tmk_nnls s = {.q = q};
    (void)state;
    for (int i = 0; i < 4; i++) {
        a[i] = 1;
        a[4 + i] = i;
        b[i] = 5 + 2 * i + (i % 2 ? 0.5 : -0.5);
    }
    tmk_nnls_solve(&s, a, 4, 2, b);
    tmk_nnls_weights(&s, 4, row, weights);
    for (int i = 0; i < 4; i++)
        sum += weights[i] * b[i];
    assert_near(sum, s.x[0] + 10 * s.x[1], 1e-9);
    assert_near(tmk_nnls_spread(&s, 1), 1.0 / 5, 1e-12); /* 1 / sum (x - mean)^2 */
    assert_near(tmk_nnls_spread(&s, 0), 1.0 / 4 + 1.5 * 1.5 / 5, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_coefficients_come_back),
        cmocka_unit_test(what_would_be_negative_is_zero),
        cmocka_unit_test(of_columns_alike_one_counts),
        cmocka_unit_test(nothing_stays_nothing),
        cmocka_unit_test(more_columns_than_rows),
        cmocka_unit_test(any_answer_is_the_best),
        cmocka_unit_test(leverage_is_leaving_out),
        cmocka_unit_test(weights_and_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
