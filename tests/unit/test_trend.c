/* SPDX-License-Identifier: MIT */
/* Series that rise as a leak does, and series that only look like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/leak/trend.h"

#define assert_near(a, b) assert_true((a) > (b)-1e-9 && (a) < (b) + 1e-9)

static uint64_t levels[TMK_TREND_MAX_LEVELS], steps[TMK_TREND_MAX_LEVELS];

static struct tmk_trend judge(uint32_t n)
{
    struct tmk_trend r;
    for (uint32_t i = 0; i < n; i++)
        steps[i] = i + 1;
    tmk_trend_judge(levels, steps, n, &r);
    return r;
}

static void every_step(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 30; i++)
        levels[i] = 1000 + 100 * i;
    struct tmk_trend r = judge(30);
    assert_int_equal(r.kind, TMK_TREND_LEAK);
    assert_int_equal(r.n_rises, 29);
    assert_int_equal(r.first, 1);
    assert_int_equal(r.last, 29);
    assert_int_equal(r.bytes, 2900);
    assert_near(r.per_step, 100);
    assert_near(r.confidence, 29.0 / 30);
}

/* However seldom: the rate is exact, and the confidence that of fewer chances. */
static void every_third_step(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 60; i++)
        levels[i] = i / 3 * 300;
    struct tmk_trend r = judge(60);
    assert_int_equal(r.kind, TMK_TREND_LEAK);
    assert_int_equal(r.n_rises, 19);
    assert_near(r.per_step, 100);
    assert_near(r.confidence, 19.0 / 20);
}

static void with_a_swing(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 60; i++)
        levels[i] = 20 * i + i % 4 * 50;
    struct tmk_trend r = judge(60);
    assert_int_equal(r.kind, TMK_TREND_LEAK);
    assert_near(r.per_step, 20);
}

static void after_a_warm_up(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        levels[i] = 10 * i + (i < 8 ? 500 * i : 4000);
    struct tmk_trend r = judge(100);
    assert_near(r.per_step, 10);
}

static void begun_late(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 62; i++)
        levels[i] = 7000 + (i < 50 ? 0 : 10 * (i - 49));
    struct tmk_trend r = judge(62);
    assert_int_equal(r.kind, TMK_TREND_LEAK);
    assert_int_equal(r.first, 50);
    assert_int_equal(r.bytes, 120);
    for (uint32_t i = 0; i < 56; i++) /* only seven times by now */
        levels[i] = 7000 + (i < 50 ? 0 : 10 * (i - 49));
    assert_int_equal(judge(56).kind, TMK_TREND_FEW);
}

static void no_leaks(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 60; i++)
        levels[i] = 500;
    assert_int_equal(judge(60).kind, TMK_TREND_NONE);
    assert_int_equal(judge(60).n_rises, 0);
    for (uint32_t i = 0; i < 60; i++) /* a cache that is full */
        levels[i] = i < 40 ? 10 * i : 400;
    assert_int_equal(judge(60).kind, TMK_TREND_NONE);
    for (uint32_t i = 0; i < 60; i++) /* state of the first steps */
        levels[i] = i < 3 ? 1000 * i : 3000;
    assert_int_equal(judge(60).kind, TMK_TREND_NONE);
    for (uint32_t i = 0; i < 60; i++) /* one step up half way */
        levels[i] = i < 30 ? 1000 : 9000;
    assert_int_equal(judge(60).kind, TMK_TREND_NONE);
    for (uint32_t i = 0; i < 60; i++) /* it shrinks */
        levels[i] = 10000 - 10 * i;
    assert_int_equal(judge(60).kind, TMK_TREND_NONE);
    assert_int_equal(judge(0).kind, TMK_TREND_NONE);
    assert_int_equal(judge(1).kind, TMK_TREND_NONE);
}

/* A sawtooth whose last tooth is under way and as high as the others were. */
static void sawtooth(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 59; i++)
        levels[i] = i % 12 * 100;
    struct tmk_trend r = judge(59);
    assert_int_equal(r.kind, TMK_TREND_NONE);
    assert_int_equal(r.n_bursts, 4);
    assert_int_equal(r.burst_bytes, 1100);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Batches of all lengths: whatever their order, none of a thousand runs leaks. With a leak that is
 * small beside them it is found once it has grown past them, and its rate is right. */
static void at_random(void **state)
{
    (void)state;
    uint32_t seed = 5;
    for (int turn = 0; turn < 1000; turn++) {
        uint32_t n = 10 + next_random(&seed) % 400;
        for (uint32_t i = 0; i < n; i++)
            levels[i] = next_random(&seed) % 1000;
        assert_int_not_equal(judge(n).kind, TMK_TREND_LEAK);
    }
    for (int turn = 0; turn < 100; turn++) {
        for (uint32_t i = 0; i < 500; i++)
            levels[i] = 20 * i + next_random(&seed) % 1000;
        struct tmk_trend r = judge(500);
        assert_int_equal(r.kind, TMK_TREND_LEAK);
        assert_true(r.per_step > 19.0 && r.per_step < 21.0);
    }
}

/* Caches of 40 that are filled by chance: never a leak. What leaks by chance at an even rate is
 * one, but for few. */
static void filling(void **state)
{
    (void)state;
    uint32_t seed = 7, n_leaks = 0;
    for (int turn = 0; turn < 200; turn++) {
        bool has[40] = {false};
        uint64_t level = 0;
        for (uint32_t i = 0; i < 150; i++) {
            uint32_t key = next_random(&seed) % 40;
            level += has[key] ? 0 : 1000;
            has[key] = true;
            levels[i] = level;
        }
        assert_int_not_equal(judge(150).kind, TMK_TREND_LEAK);
    }
    for (int turn = 0; turn < 200; turn++) {
        uint64_t level = 0;
        for (uint32_t i = 0; i < 150; i++)
            levels[i] = level += next_random(&seed) % 4 == 0 ? 1000 : 0;
        n_leaks += judge(150).kind == TMK_TREND_LEAK;
    }
    assert_in_range(n_leaks, 190, 200);
    uint64_t level = 0, more = 100000;
    for (uint32_t i = 0; i < 100; i++, more = more * 98 / 100) /* each step adds less */
        levels[i] = level += more;
    assert_int_equal(judge(100).kind, TMK_TREND_SLOWING);
}

static void few(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 120; i++) /* what three of four evaluations leave behind */
        levels[i] = (i + 29) / 30 * 1000;
    struct tmk_trend r = judge(120);
    assert_int_equal(r.n_rises, 4);
    for (uint32_t i = 0; i < 119; i++)
        levels[i] = i / 30 * 1000;
    r = judge(119);
    assert_int_equal(r.kind, TMK_TREND_FEW);
    assert_int_equal(r.n_rises, 3);
    assert_int_equal(r.bytes, 3000);
}

static void together(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        levels[i] = i / 2;
    struct tmk_trend even = judge(40);
    for (uint32_t i = 0; i < 40; i++)
        levels[i] = (i + 1) / 2;
    struct tmk_trend odd = judge(40);
    assert_near(tmk_trend_together(&even, &even), 1);
    assert_near(tmk_trend_together(&even, &odd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step),   cmocka_unit_test(every_third_step),
        cmocka_unit_test(with_a_swing), cmocka_unit_test(after_a_warm_up),
        cmocka_unit_test(begun_late),   cmocka_unit_test(no_leaks),
        cmocka_unit_test(sawtooth),     cmocka_unit_test(together),
        cmocka_unit_test(at_random),    cmocka_unit_test(filling),
        cmocka_unit_test(few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
