/* SPDX-License-Identifier: MIT */
/* When it runs out: series by hand, whose answer is known. How good it is with noise is
 * bench/forecast_score's to say. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "forecast/oom_forecast.h"

enum { MOST = 5000 };
#define GB 1073741824.0

static struct tmk_oom_forecast_point points[MOST];

typedef double curve(double x);

static struct tmk_oom_forecast look(curve *f, unsigned n, double every, double capacity)
{
    for (unsigned i = 0; i < n; i++)
        points[i] = (struct tmk_oom_forecast_point){i * every, f(i * every)};
    return tmk_oom_forecast_make(
        points, n,
        &(struct tmk_oom_forecast_terms){.capacity_bytes = capacity,
                                         .least_span = TMK_OOM_FORECAST_LEAST_STEPS,
                                         .soon = TMK_OOM_FORECAST_SOON_STEPS});
}

static void assert_near(double is, double should, double part)
{
    assert_true(is >= should - part * (should < 0 ? -should : should));
    assert_true(is <= should + part * (should < 0 ? -should : should));
}

/* ---- what runs out ---- */

static double line(double x)
{
    return 10 * GB + x * GB / 16;
}

/* 40 steps to 12.4375 GB, and 67.5625 GB to go at 1/16 GB a step. */
static void test_line_is_exact(void **state)
{
    (void)state;
    struct tmk_oom_forecast o = look(line, 40, 1, 80 * GB);
    assert_true(o.has_time);
    assert_near(o.to_oom, 67.5625 * 16, 1e-6);
    assert_near(o.slope, GB / 16, 1e-9);
    assert_int_equal(o.shape, TMK_SHAPE_STEADY);
    assert_int_equal(o.risk, TMK_RISK_MEDIUM); /* sure, but most of the way is ahead: see below */
    assert_true(o.is_sure);
    assert_true(o.low < o.to_oom && o.to_oom < o.high);
    assert_near(o.highest, 12.4375 * GB, 1e-12);
}

/* Points that are drawn together end where the last of each was: nothing is lost of a line. */
static void test_long_line_is_exact(void **state)
{
    (void)state;
    for (unsigned n = 100; n <= 1100; n += 97) {
        struct tmk_oom_forecast o = look(line, n, 1, 80 * GB);
        assert_true(o.has_time);
        assert_near(o.to_oom, (80 - 10) * 16 - (n - 1.0), 1e-6);
    }
}

/* The same in another unit of time: 0.25 s each, in ns. */
static void test_unit_does_not_matter(void **state)
{
    (void)state;
    struct tmk_oom_forecast steps = look(line, 40, 1, 80 * GB);
    for (unsigned i = 0; i < 40; i++)
        points[i].x *= 250e6;
    struct tmk_oom_forecast ns = tmk_oom_forecast_make(
        points, 40,
        &(struct tmk_oom_forecast_terms){
            .capacity_bytes = 80 * GB, .least_span = 24 * 250e6, .soon = 5 * 250e6});
    assert_near(ns.to_oom, steps.to_oom * 250e6, 1e-6);
    assert_near(ns.high, steps.high * 250e6, 1e-6);
    assert_near(ns.confidence, steps.confidence, 1e-9);
    assert_int_equal(ns.risk, steps.risk);
}

static void test_soon_is_critical(void **state)
{
    (void)state;
    struct tmk_oom_forecast o = look(line, 1118, 1, 80 * GB); /* two steps and it is there */
    assert_near(o.to_oom, 3, 1e-3);
    assert_int_equal(o.risk, TMK_RISK_CRITICAL);
}

static double square(double x)
{
    return 10 * GB + x * x * GB / 1024;
}

/* 64 * 64 / 1024 = 4 GB of 36: at x = 192, that is 128 from 64. */
static void test_curve_is_exact(void **state)
{
    (void)state;
    struct tmk_oom_forecast o = look(square, 65, 1, 46 * GB);
    assert_true(o.has_time);
    assert_near(o.to_oom, 128, 0.01);
    assert_int_equal(o.shape, TMK_SHAPE_ACCELERATING);
}

/* ---- curves, each looked at half way ---- */

static double doubling(double x)
{
    return 5 * GB * exp(x / 200 * M_LN2);
}

/* 80 GB are 16 times 5: four doublings of 200 steps. */
static void test_doubling(void **state)
{
    (void)state;
    struct tmk_oom_forecast o = look(doubling, 401, 1, 80 * GB);
    assert_true(o.has_time);
    assert_near(o.to_oom, 400, 0.02);
    assert_int_equal(o.shape, TMK_SHAPE_ACCELERATING);
    assert_near(o.slope, 20 * GB * M_LN2 / 200, 0.02); /* today's rate */
    assert_true(look(doubling, 780, 1, 80 * GB).risk >= TMK_RISK_HIGH);
}

static double root(double x)
{
    return 10 * GB + 70 * GB * sqrt(x / 900);
}

static double logarithm(double x)
{
    return 10 * GB + 70 * GB * log(1 + x / 60) / log(16);
}

static double bound_above(double x)
{
    return 10 * GB + 80 * GB * (1 - exp(-x * log(8) / 900));
}

static void test_slowing_runs_out(void **state)
{
    (void)state;
    static curve *const curves[] = {root, logarithm, bound_above};
    for (unsigned i = 0; i < sizeof curves / sizeof *curves; i++) {
        struct tmk_oom_forecast o = look(curves[i], 451, 1, 80 * GB);
        assert_true(o.has_time);
        assert_near(o.to_oom, 450, 0.06);
        assert_int_equal(o.shape, TMK_SHAPE_SLOWING);
        assert_true(look(curves[i], 880, 1, 80 * GB).risk >= TMK_RISK_HIGH);
    }
}

static double bound_below(double x)
{
    return 10 * GB + 60 * GB * (1 - exp(-x / 100));
}

/* A cache that fills slower and slower never gets there. */
static void test_bound_below_is_quiet(void **state)
{
    (void)state;
    for (unsigned n = 8; n <= 1000; n += 9)
        assert_true(look(bound_below, n, 1, 80 * GB).risk < TMK_RISK_HIGH);
    assert_false(look(bound_below, 150, 1, 80 * GB).has_time);
}

static double warm_line(double x)
{
    return x < 6 ? 2 * GB * x : line(x);
}

static void test_warm_up_is_left_out(void **state)
{
    (void)state;
    struct tmk_oom_forecast o = look(warm_line, 100, 1, 80 * GB);
    assert_true(o.has_time);
    assert_near(o.to_oom, 70 * 16 - 99, 0.01);
}

static double late_line(double x)
{
    return x < 100 ? 10 * GB : 10 * GB + (x - 100) * GB / 4;
}

static void test_late_leak(void **state)
{
    (void)state;
    struct tmk_oom_forecast o = look(late_line, 201, 1, 80 * GB);
    assert_true(o.has_time);
    assert_near(o.to_oom, 45 * 4, 0.02);
    assert_int_equal(o.risk, TMK_RISK_MEDIUM);
    o = look(late_line, 355, 1, 80 * GB); /* 26 steps ahead, and seen for 254 */
    assert_near(o.to_oom, 26, 0.02);
    assert_int_equal(o.risk, TMK_RISK_HIGH);
}

static double stairs(double x)
{
    return 10 * GB + (double)((unsigned)x / 10) * GB;
}

static void test_stairs(void **state)
{
    (void)state;
    struct tmk_oom_forecast o = look(stairs, 120, 1, 30 * GB);
    assert_true(o.has_time);
    assert_near(o.to_oom, 81, 0.1);
    assert_int_equal(o.shape, TMK_SHAPE_STAIRS);
    assert_int_equal(o.risk, TMK_RISK_MEDIUM);
    assert_int_equal(look(stairs, 185, 1, 30 * GB).risk, TMK_RISK_HIGH);
}

/* ---- what does not ---- */

static double flat(double x)
{
    (void)x;
    return 40 * GB;
}

static double plateau(double x)
{
    return x < 10 ? x * 5 * GB : 50 * GB;
}

static double one_step_up(double x)
{
    return x < 50 ? 20 * GB : 50 * GB;
}

static double sawtooth(double x)
{
    return 20 * GB + (double)((unsigned)x % 12) * 3 * GB;
}

static double evaluation(double x)
{
    return (unsigned)x % 25 == 24 ? 70 * GB : 30 * GB;
}

static double long_batch(double x)
{
    return x == 83 ? 79 * GB : 30 * GB;
}

static double falling(double x)
{
    return 60 * GB - x * GB / 100;
}

static double settling(double x)
{
    return 20 * GB + 50 * GB * x / (20 + x);
}

static void test_quiet(void **state)
{
    (void)state;
    static curve *const curves[] = {flat,       plateau,    one_step_up, sawtooth,
                                    evaluation, long_batch, falling};
    for (unsigned i = 0; i < sizeof curves / sizeof *curves; i++) {
        for (unsigned n = 8; n <= 1000; n++) {
            struct tmk_oom_forecast o = look(curves[i], n, 1, 80 * GB);
            assert_true(o.risk == TMK_RISK_LOW || o.risk == TMK_RISK_MEDIUM);
        }
        struct tmk_oom_forecast o = look(curves[i], 1000, 1, 80 * GB);
        assert_false(o.has_time);
        assert_int_equal(o.risk, curves[i] == long_batch ? TMK_RISK_MEDIUM : TMK_RISK_LOW);
    }
}

static void test_settling_is_quiet(void **state)
{
    (void)state;
    for (unsigned n = 8; n <= 1000; n++) {
        struct tmk_oom_forecast o = look(settling, n, 1, 80 * GB);
        assert_true(o.risk < TMK_RISK_HIGH);
    }
}

static double full(double x)
{
    (void)x;
    return 75 * GB;
}

static void test_nearly_full_is_medium(void **state)
{
    (void)state;
    struct tmk_oom_forecast o = look(full, 100, 1, 80 * GB);
    assert_int_equal(o.risk, TMK_RISK_MEDIUM);
    assert_false(o.has_time);
}

/* ---- what cannot be said ---- */

static void test_too_little(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 8; n++)
        assert_int_equal(look(line, n, 1, 80 * GB).risk, TMK_RISK_UNKNOWN);
    assert_int_equal(look(line, 100, 1, 0).risk, TMK_RISK_UNKNOWN);
    assert_int_equal(look(line, 100, 0, 80 * GB).risk, TMK_RISK_UNKNOWN); /* all at one time */
    assert_null(tmk_risk_text(TMK_RISK_UNKNOWN));
    assert_string_equal(tmk_risk_text(TMK_RISK_CRITICAL), "critical");
}

/* A time is told early, an alarm raised only when it can no longer be warm-up. */
static void test_short_raises_no_alarm(void **state)
{
    (void)state;
    struct tmk_oom_forecast_terms terms = {
        .capacity_bytes = 16.7 * GB, .least_span = 200, .soon = 5};
    look(line, 100, 1, 40 * GB); /* the points: 8 steps from the capacity */
    struct tmk_oom_forecast o = tmk_oom_forecast_make(points, 100, &terms);
    assert_true(o.has_time && o.is_sure);
    assert_int_equal(o.risk, TMK_RISK_MEDIUM);
    terms.least_span = 90;
    assert_int_equal(tmk_oom_forecast_make(points, 100, &terms).risk, TMK_RISK_HIGH);
}

static double buffer(double x)
{
    return 10 * GB + fmin(x, 300) * GB / 6;
}

/* A buffer of 50 GB fills like a leak. An alarm waits until hardly any of the way is left, and this
 * never comes so far. */
static void test_buffer_is_quiet(void **state)
{
    (void)state;
    for (unsigned n = 8; n <= 600; n += 7)
        assert_true(look(buffer, n, 1, 80 * GB).risk < TMK_RISK_HIGH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_is_exact),
        cmocka_unit_test(test_long_line_is_exact),
        cmocka_unit_test(test_unit_does_not_matter),
        cmocka_unit_test(test_soon_is_critical),
        cmocka_unit_test(test_curve_is_exact),
        cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_slowing_runs_out),
        cmocka_unit_test(test_bound_below_is_quiet),
        cmocka_unit_test(test_buffer_is_quiet),
        cmocka_unit_test(test_warm_up_is_left_out),
        cmocka_unit_test(test_late_leak),
        cmocka_unit_test(test_stairs),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_settling_is_quiet),
        cmocka_unit_test(test_nearly_full_is_medium),
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_short_raises_no_alarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
