/* SPDX-License-Identifier: MIT */
/* Cohorts that survive as a leak's do, and cohorts that only seem to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/leak/cohorts.h"
#include "passes/leak/survival.h"

#define assert_near(a, b) assert_true((a) > (b)-1e-9 && (a) < (b) + 1e-9)

static struct tmk_cohorts cohorts;
static uint64_t kept_bytes[TMK_MAX_LOOKS], kept_blocks[TMK_MAX_LOOKS];

/* A block that is made before look `begin` and is dead at look `end`; 0: it lives to the end. */
static void made(uint32_t begin, uint32_t end, uint64_t bytes)
{
    assert_int_equal(tmk_cohorts_add(&cohorts, begin, end ? end : TMK_MAX_LOOKS, bytes), 0);
}

static int forget_all(void **state)
{
    (void)state;
    tmk_cohorts_fini(&cohorts);
    return 0;
}

/* Judge what was made of `n` looks, and forget it. */
static struct tmk_survival judge(uint32_t n)
{
    uint64_t levels[TMK_MAX_LOOKS] = {0}, blocks[TMK_MAX_LOOKS] = {0}, n_before[TMK_MAX_LOOKS];
    uint64_t earlier[TMK_MAX_LOOKS] = {0};
    struct tmk_survivors s = {
        .bytes = kept_bytes, .blocks = kept_blocks, .n_before = n_before, .has_steps = true};
    struct tmk_survival r;
    for (uint32_t i = 0; i < n; i++)
        n_before[i] = i + 1;
    memset(kept_bytes, 0, sizeof kept_bytes);
    memset(kept_blocks, 0, sizeof kept_blocks);
    tmk_cohorts_merge(&cohorts);
    tmk_cohorts_levels(&cohorts, n, levels, blocks);
    s.at = tmk_last_moment(levels, n);
    s.usual_age = tmk_cohorts_usual_age(&cohorts, s.at);
    tmk_cohorts_kept(&cohorts, s.at, s.usual_age, kept_bytes, kept_blocks);
    tmk_cohorts_kept(&cohorts, s.at * 3 / 5, s.usual_age, earlier, NULL);
    for (uint32_t i = 0; i <= s.at; i++) {
        s.n_earlier += earlier[i] > 0;
        s.n_earlier_kept += earlier[i] > 0 && kept_bytes[i] >= earlier[i] / 2;
    }
    tmk_survival_judge(&s, &r);
    tmk_cohorts_fini(&cohorts);
    return r;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void every_step(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 30; i++)
        made(i, 0, 100);
    struct tmk_survival r = judge(30);
    assert_int_equal(r.kind, TMK_SURVIVAL_LEAK);
    assert_int_equal(r.n, 30);
    assert_int_equal(r.first, 0);
    assert_int_equal(r.last, 29);
    assert_int_equal(r.every, 1);
    assert_int_equal(r.bytes, 3000);
    assert_int_equal(r.blocks, 30);
    assert_int_equal(r.pace, TMK_PACE_EVEN);
    assert_near(r.per_step, 100);
    assert_near(r.blocks_per_step, 1);
    assert_near(r.confidence, 30.0 / 31);
}

/* However seldom: the rate is exact, and the confidence that of fewer chances. */
static void every_third_step(void **state)
{
    (void)state;
    for (uint32_t i = 2; i < 60; i += 3)
        made(i, 0, 300);
    struct tmk_survival r = judge(60);
    assert_int_equal(r.kind, TMK_SURVIVAL_LEAK);
    assert_int_equal(r.every, 3);
    assert_near(r.per_step, 100);
    assert_near(r.confidence, 20.0 / 21);
}

/* What was there before the first step ended is no part of the rate. */
static void after_a_warm_up(void **state)
{
    (void)state;
    made(0, 0, 50000);
    for (uint32_t i = 0; i < 100; i++)
        made(i, 0, 10);
    struct tmk_survival r = judge(100);
    assert_int_equal(r.kind, TMK_SURVIVAL_LEAK);
    assert_int_equal(r.bytes, 990);
    assert_int_equal(r.first, 1);
    assert_near(r.per_step, 10);
}

static void begun_late(void **state)
{
    (void)state;
    for (uint32_t n = 57; n <= 58; n++) {
        for (uint32_t i = 50; i < n; i++)
            made(i, 0, 10);
        struct tmk_survival r = judge(n);
        assert_int_equal(r.first, 50);
        assert_int_equal(r.kind, n == 57 ? TMK_SURVIVAL_FEW : TMK_SURVIVAL_LEAK);
    }
}

/* A list that a function had, which is long over. */
static void let_go(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        made(i, 40, 10);
    for (uint32_t i = 40; i < 90; i++)
        made(i, i + 1, 10);
    struct tmk_survival r = judge(90);
    assert_int_equal(r.kind, TMK_SURVIVAL_LEAK);
    assert_int_equal(r.last, 39);
}

static void full_cache(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        made(i, 0, 10);
    assert_int_equal(judge(60).kind, TMK_SURVIVAL_NONE);
    for (uint32_t i = 0; i < 3; i++) /* state of the first steps */
        made(i, 0, 1000);
    assert_int_equal(judge(60).kind, TMK_SURVIVAL_NONE);
    made(30, 0, 8000); /* one step up half way */
    assert_int_equal(judge(60).kind, TMK_SURVIVAL_NONE);
    assert_int_equal(judge(60).kind, TMK_SURVIVAL_NONE); /* nothing at all */
}

/* Buffers of a bound that is reached, up to a third of the time; and one that is not reached. */
static void bounded_buffer(void **state)
{
    (void)state;
    for (uint32_t bound = 1; bound <= 60; bound++) {
        for (uint32_t i = 0; i < 100; i++)
            made(i, i + bound < 100 ? i + bound : 0, 1000);
        assert_int_equal(judge(100).kind, TMK_SURVIVAL_NONE);
    }
    for (uint32_t i = 0; i < 100; i++)
        made(i, 0, 1000);
    assert_int_equal(judge(100).kind, TMK_SURVIVAL_LEAK);
}

/* Batches of an epoch are dropped at its end, the last epoch is under way. */
static void epochs(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 119; i++)
        made(i, i / 12 * 12 + 12, 100);
    assert_int_equal(judge(119).kind, TMK_SURVIVAL_NONE);
    for (uint32_t i = 0; i < 119; i++) /* but the first of each stays */
        made(i, i % 12 == 0 ? 0 : i / 12 * 12 + 12, 100);
    struct tmk_survival r = judge(119);
    assert_int_equal(r.kind, TMK_SURVIVAL_LEAK);
    assert_int_equal(r.every, 12);
    assert_near(r.per_step, 100.0 / 12);
}

/* Blocks of random lifetimes of up to a fifth of the time: none of a thousand runs leaks. With a
 * leak of one in twenty blocks all do, and the mean rate is right. */
static void at_random(void **state)
{
    (void)state;
    uint32_t seed = 5;
    double sum = 0;
    for (int turn = 0; turn < 1000; turn++) {
        uint32_t n = 20 + next_random(&seed) % 400;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t end = i + 1 + next_random(&seed) % (n / 5);
            made(i, end < n ? end : 0, 1 + next_random(&seed) % 1000);
        }
        assert_int_not_equal(judge(n).kind, TMK_SURVIVAL_LEAK);
    }
    for (int turn = 0; turn < 100; turn++) {
        for (uint32_t i = 0; i < 500; i++) {
            uint32_t end = i + 1 + next_random(&seed) % 20;
            made(i, end < 500 && next_random(&seed) % 20 ? end : 0, 1000);
        }
        struct tmk_survival r = judge(500);
        assert_int_equal(r.kind, TMK_SURVIVAL_LEAK);
        sum += r.per_step;
    }
    assert_true(sum > 95 * 50.0 && sum < 105 * 50.0);
}

/* Caches of 40 that are filled by chance: no leak, but for a few in a hundred. What leaks by chance
 * at an even rate is one, but for a few in a hundred. */
static void filling(void **state)
{
    (void)state;
    uint32_t seed = 7, n_leaks = 0;
    for (int turn = 0; turn < 200; turn++) {
        bool has[40] = {false};
        for (uint32_t i = 0; i < 150; i++) {
            uint32_t key = next_random(&seed) % 40;
            if (!has[key])
                made(i, 0, 1000);
            has[key] = true;
        }
        n_leaks += judge(150).kind == TMK_SURVIVAL_LEAK;
    }
    assert_int_equal(n_leaks, 0);
    for (int turn = 0; turn < 200; turn++) {
        for (uint32_t i = 0; i < 150; i++)
            if (next_random(&seed) % 4 == 0)
                made(i, 0, 1000);
        n_leaks += judge(150).kind == TMK_SURVIVAL_LEAK;
    }
    assert_in_range(n_leaks, 190, 200);
    uint64_t more = 100000;
    for (uint32_t i = 0; i < 100; i++, more = more * 98 / 100) /* each step adds less */
        made(i, 0, more);
    assert_int_equal(judge(100).kind, TMK_SURVIVAL_SLOWING);
}

/* Least recently used entries go: caches of 16 among 60 keys. */
static void recently_used(void **state)
{
    (void)state;
    uint32_t seed = 9;
    for (int turn = 0; turn < 300; turn++) {
        uint32_t born[60] = {0}, used[60] = {0}, n = 0;
        for (uint32_t i = 1; i <= 200; i++) {
            uint32_t key = next_random(&seed) % 60, oldest = 60;
            if (!used[key]) {
                born[key] = i;
                n++;
            }
            used[key] = i;
            for (uint32_t k = 0; k < 60; k++)
                if (used[k] && (oldest == 60 || used[k] < used[oldest]))
                    oldest = k;
            if (n > 16) {
                made(born[oldest], i, 1000);
                used[oldest] = 0;
                n--;
            }
        }
        for (uint32_t k = 0; k < 60; k++)
            if (used[k])
                made(born[k], 0, 1000);
        assert_int_not_equal(judge(200).kind, TMK_SURVIVAL_LEAK);
    }
}

static void few(void **state)
{
    (void)state;
    for (uint32_t i = 29; i < 119; i += 30) /* what three evaluations leave behind */
        made(i, 0, 1000);
    struct tmk_survival r = judge(119);
    assert_int_equal(r.kind, TMK_SURVIVAL_FEW);
    assert_int_equal(r.n, 3);
    assert_int_equal(r.bytes, 3000);
    for (uint32_t i = 29; i < 120; i += 30)
        made(i, 0, 1000);
    assert_int_equal(judge(120).kind, TMK_SURVIVAL_LEAK);
}

/* Growth of any power is found, and its rate is that of the last quarter. */
static void faster(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 60; i++)
        made(i, 0, 100 * (uint64_t)i * i + 100);
    struct tmk_survival r = judge(60);
    assert_int_equal(r.kind, TMK_SURVIVAL_LEAK);
    assert_int_equal(r.pace, TMK_PACE_FASTER);
    assert_int_equal(r.from, 45);
    for (uint32_t i = 7; i < 88; i += 8) /* doubled every eight steps */
        made(i, 0, UINT64_C(65536) << i / 8);
    r = judge(88);
    assert_int_equal(r.kind, TMK_SURVIVAL_LEAK);
    assert_int_equal(r.pace, TMK_PACE_FASTER);
    assert_near(r.per_step, (double)(UINT64_C(65536) * (256 + 512 + 1024)) / 24);
}

static void one_block(void **state)
{
    (void)state;
    struct tmk_larger r;
    for (uint32_t i = 0; i < 40; i++)
        made(i, i + 1, 1000 * (i + 1));
    assert_true(tmk_cohorts_larger(&cohorts, 39, &r));
    assert_int_equal(r.n, 40);
    assert_int_equal(r.first_bytes, 1000);
    assert_int_equal(r.last_bytes, 40000);
    assert_int_equal(judge(40).kind, TMK_SURVIVAL_NONE);
    for (uint32_t i = 0; i < 40; i++) /* begun anew every ten steps */
        made(i, i + 1, 1000 * (i % 10 + 1));
    assert_false(tmk_cohorts_larger(&cohorts, 39, &r));
    forget_all(NULL);
    for (uint32_t i = 0; i < 40; i++) /* as many more */
        for (uint32_t k = 0; k <= i; k++)
            made(i, i + 1, 1000);
    tmk_cohorts_merge(&cohorts);
    assert_false(tmk_cohorts_larger(&cohorts, 39, &r));
}

/* Many blocks of few different lives take little room, and lose nothing when looks are given up. */
static void merged(void **state)
{
    (void)state;
    uint64_t bytes[TMK_MAX_LOOKS] = {0}, blocks[TMK_MAX_LOOKS] = {0};
    uint16_t number[TMK_MAX_LOOKS + 1];
    for (uint32_t end = 1; end <= 100; end++)
        for (uint32_t k = 0; k < 5000; k++)
            made(end - 1 - (end > 50 ? k % 40 : 0), end, 8);
    assert_true(cohorts.room <= 16384);
    tmk_cohorts_merge(&cohorts);
    assert_int_equal(cohorts.n, 50 + 50 * 40);
    tmk_cohorts_levels(&cohorts, 100, bytes, blocks);
    for (uint32_t i = 0; i <= TMK_MAX_LOOKS; i++) /* keep looks 1, 3, 5 ... */
        number[i] = (uint16_t)(i / 2);
    tmk_cohorts_renumber(&cohorts, number);
    uint64_t kept[TMK_MAX_LOOKS] = {0}, kept_n[TMK_MAX_LOOKS] = {0};
    tmk_cohorts_levels(&cohorts, 50, kept, kept_n);
    for (uint32_t i = 0; i < 50; i++) {
        assert_int_equal(kept[i], bytes[2 * i + 1]);
        assert_int_equal(kept_n[i], blocks[2 * i + 1]);
    }
}

static void bursts_and_floors(void **state)
{
    (void)state;
    uint64_t levels[60];
    for (uint32_t i = 0; i < 59; i++)
        levels[i] = i % 12 * 100;
    struct tmk_bursts r = tmk_bursts_of(levels, 59);
    assert_int_equal(r.n, 4);
    assert_int_equal(r.bytes, 1100);
    struct tmk_floor floor = tmk_floor_of(levels, 59); /* of the tooth under way */
    assert_int_equal(floor.n_rises, 10);
    assert_int_equal(floor.bytes, 1000);
    assert_int_equal(floor.last, 58); /* 950 of 1000 at least */
    for (uint32_t i = 0; i < 60; i++)
        levels[i] = 7000 + (i < 42 ? i : 42) / 3 * 50;
    floor = tmk_floor_of(levels, 60);
    assert_int_equal(floor.n_rises, 14);
    assert_int_equal(floor.bytes, 14 * 50);
    assert_int_equal(floor.last, 42);
    assert_int_equal(tmk_floor_of(levels, 0).n_rises, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_step, forget_all),
        cmocka_unit_test_teardown(every_third_step, forget_all),
        cmocka_unit_test_teardown(after_a_warm_up, forget_all),
        cmocka_unit_test_teardown(begun_late, forget_all),
        cmocka_unit_test_teardown(let_go, forget_all),
        cmocka_unit_test_teardown(full_cache, forget_all),
        cmocka_unit_test_teardown(bounded_buffer, forget_all),
        cmocka_unit_test_teardown(epochs, forget_all),
        cmocka_unit_test_teardown(at_random, forget_all),
        cmocka_unit_test_teardown(filling, forget_all),
        cmocka_unit_test_teardown(recently_used, forget_all),
        cmocka_unit_test_teardown(few, forget_all),
        cmocka_unit_test_teardown(faster, forget_all),
        cmocka_unit_test_teardown(one_block, forget_all),
        cmocka_unit_test_teardown(merged, forget_all),
        cmocka_unit_test(bursts_and_floors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
