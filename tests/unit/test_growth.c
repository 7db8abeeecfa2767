/* SPDX-License-Identifier: MIT */
/* What counts as growing: curves that leak, and curves that only look like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "monitor/growth.h"
#include "monitor/history.h"

#define MIB (1ull << 20)
#define TENTH_NS 100000000ull

enum { MINUTE = 600 }; /* samples */

typedef uint64_t curve(uint64_t i);

/* Judge `n` samples of a curve, kept in as few entries as a process has or as many as a device. */
static struct tmk_growth judge(curve *f, uint64_t n, uint64_t room)
{
    struct tmk_history h;
    tmk_history_init(&h, room);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(tmk_history_add(&h, i * TENTH_NS, f(i)), 0);
    struct tmk_growth g = tmk_growth_judge(&h, 0, 0);
    tmk_history_fini(&h);
    return g;
}

static void assert_leaks(curve *f, bool leaks, uint64_t threshold)
{
    static const uint64_t rooms[] = {64, 32768};
    for (unsigned i = 0; i < 2; i++) {
        struct tmk_growth g = judge(f, MINUTE, rooms[i]);
        assert_true(g.is_known);
        assert_int_equal(tmk_growth_is_leak(&g, threshold), leaks);
    }
}

static uint64_t noise(uint64_t i)
{
    return (i * 2654435761u >> 7) % (8 * MIB);
}

/* ---- what leaks ---- */

static uint64_t line(uint64_t i)
{
    return 4096 * MIB + i * MIB;
}

static uint64_t noisy_line(uint64_t i)
{
    return line(i) + noise(i);
}

static uint64_t line_under_steps(uint64_t i) /* a training step of 2 s with 1 GiB of activations */
{
    return line(i) + i % 20 * 51 * MIB;
}

static uint64_t stairs(uint64_t i) /* 40 MiB every 4 s */
{
    return 1024 * MIB + i / 40 * 40 * MIB;
}

static uint64_t doubling(uint64_t i) /* every 10 s */
{
    return (30 * MIB << i / 100) + (30 * MIB << i / 100) / 100 * (i % 100);
}

static uint64_t cubic(uint64_t i)
{
    return 1024 * MIB + i * i * i * 8;
}

static void test_faster(void **state)
{
    (void)state;
    assert_leaks(doubling, true, 100 * MIB);
    assert_leaks(cubic, true, 100 * MIB);
    assert_true(judge(doubling, MINUTE, 64).is_faster);
    assert_true(judge(cubic, MINUTE, 64).is_faster);
    assert_false(judge(line, MINUTE, 64).is_faster);
}

static void test_leaks(void **state)
{
    (void)state;
    assert_leaks(line, true, 100 * MIB);
    assert_leaks(noisy_line, true, 100 * MIB);
    assert_leaks(line_under_steps, true, 100 * MIB);
    assert_leaks(stairs, true, 100 * MIB);
    assert_leaks(line, false, 600 * MIB); /* less than the threshold */
}

/* ---- what does not ---- */

static uint64_t steady(uint64_t i)
{
    return 4096 * MIB + noise(i);
}

static uint64_t sawtooth(uint64_t i) /* 2 s */
{
    return 1024 * MIB + i % 20 * 200 * MIB;
}

static uint64_t slow_sawtooth(uint64_t i) /* 17 s, ends high */
{
    return 1024 * MIB + i % 170 * 20 * MIB;
}

static uint64_t
late_sawtooth(uint64_t i) /* falls once, early, and has not come back to its height */
{
    return 1024 * MIB + (i + 400) % 600 * 10 * MIB;
}

static uint64_t one_step(uint64_t i)
{
    return i < 250 ? 100 * MIB : 5000 * MIB;
}

static uint64_t loading(uint64_t i) /* half a minute up, then steady */
{
    return (i < 300 ? i : 300) * 20 * MIB;
}

static uint64_t starting(uint64_t i) /* steady, then up */
{
    return (i < 420 ? 0 : i - 420) * 20 * MIB + 50 * MIB;
}

static uint64_t shrinking(uint64_t i)
{
    return 4096 * MIB - i * MIB;
}

static void test_does_not_leak(void **state)
{
    (void)state;
    static curve *const curves[] = {steady,   sawtooth, slow_sawtooth, late_sawtooth,
                                    one_step, loading,  starting,      shrinking};
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
        assert_leaks(curves[i], false, MIB);
}

/* ---- figures ---- */

static void test_figures(void **state)
{
    (void)state;
    struct tmk_growth g = judge(line, MINUTE, 32768);
    assert_int_equal(g.bytes, 580 * MIB); /* from the first part's floor to the last's */
    assert_int_equal(g.span_ns, 599 * TENTH_NS);
    assert_true(g.rank == 1.0);
    g = judge(shrinking, MINUTE, 32768);
    assert_int_equal(g.bytes, -580 * (int64_t)MIB);
    assert_true(g.rank == -1.0);
    g = judge(one_step, MINUTE, 32768);
    assert_true(g.rank > 0 && g.rank < 0.6);
    assert_false(g.falls); /* one that only rose does not swing */
    assert_false(judge(loading, MINUTE, 64).falls);
    assert_true(judge(slow_sawtooth, MINUTE, 64).falls);
    assert_true(judge(late_sawtooth, MINUTE, 64).falls);
}

static void test_too_short(void **state)
{
    (void)state;
    struct tmk_growth g = judge(line, TMK_GROWTH_LEAST_SAMPLES - 1, 64);
    assert_false(g.is_known || g.is_steady);
    g = judge(line, TMK_GROWTH_LEAST_SAMPLES, 64);
    assert_true(g.is_known && g.is_steady);
    assert_int_equal(g.bytes, 11 * MIB);
    struct tmk_history none;
    tmk_history_init(&none, 64);
    assert_false(tmk_growth_judge(&none, 0, 0).is_known);
}

/* A program that starts: 20 s up, as it would be seen in a short look. */
static void test_least_time(void **state)
{
    (void)state;
    struct tmk_history h;
    tmk_history_init(&h, 64);
    for (uint64_t i = 0; i <= 300; i++)
        assert_int_equal(tmk_history_add(&h, i * TENTH_NS, line(i)), 0);
    assert_false(tmk_growth_judge(&h, 0, 301 * TENTH_NS).is_known);
    assert_true(tmk_growth_judge(&h, 0, 300 * TENTH_NS).is_known);
    struct tmk_growth end = tmk_growth_judge(&h, 200 * TENTH_NS, 0);
    assert_true(end.is_known && end.span_ns <= 100 * TENTH_NS && end.span_ns > 90 * TENTH_NS);
    assert_false(tmk_growth_judge(&h, 200 * TENTH_NS, 200 * TENTH_NS).is_known);
    assert_false(tmk_growth_judge(&h, 400 * TENTH_NS, 0).is_known);
    tmk_history_fini(&h);
}

/* As tests/torch/test_status_report.py has it of the rule in Python. */
static void test_series(void **state)
{
    (void)state;
    static const struct {
        int64_t rise;
        unsigned n;
        int64_t values[8];
    } cases[] = {
        {500, 7, {0, 100, 200, 300, 400, 500, 600}},      {0, 3, {0, 100, 200}},
        {0, 7, {700, 600, 500, 400, 300, 200, 100}},      {0, 7, {0, 0, 0, 900, 900, 900, 900}},
        {0, 7, {0, 300, 600, 900, 900, 900, 900}},        {0, 8, {0, 900, 0, 900, 0, 900, 0, 900}},
        {300, 8, {0, 200, 100, 300, 200, 400, 300, 500}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tmk_growth_of_series(cases[i].values, cases[i].n), cases[i].rise);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaks),     cmocka_unit_test(test_does_not_leak),
        cmocka_unit_test(test_faster),    cmocka_unit_test(test_figures),
        cmocka_unit_test(test_too_short), cmocka_unit_test(test_least_time),
        cmocka_unit_test(test_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
