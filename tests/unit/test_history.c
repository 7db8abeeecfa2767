/* SPDX-License-Identifier: MIT */
/* A history of any length in bounded memory: what merging keeps, and what it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/device.h"
#include "monitor/alarm.h"
#include "monitor/history.h"
#include "monitor/sampler.h"

#define TENTH_NS 100000000ull

static void add_line(struct tmk_history *h, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(tmk_history_add(h, i * TENTH_NS, 1000 + i), 0);
}

static uint64_t count(const struct tmk_history *h)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < h->n; i++)
        n += h->entries[i].n_samples;
    return n;
}

static void test_each_sample_is_an_entry(void **state)
{
    (void)state;
    struct tmk_history h;
    tmk_history_init(&h, 8);
    add_line(&h, 8);
    assert_int_equal(h.n, 8);
    assert_int_equal(h.entries[3].start_ns, 3 * TENTH_NS);
    assert_int_equal(h.entries[3].last_bytes, 1003);
    tmk_history_fini(&h);
}

static void test_neighbours_are_merged(void **state)
{
    (void)state;
    struct tmk_history h;
    tmk_history_init(&h, 8);
    add_line(&h, 9);
    assert_int_equal(h.n, 5); /* four pairs, and the ninth */
    assert_int_equal(h.width, 2);
    const struct tmk_history_entry *e = &h.entries[1];
    assert_int_equal(e->start_ns, 2 * TENTH_NS);
    assert_int_equal(e->end_ns, 3 * TENTH_NS);
    assert_int_equal(e->min_bytes, 1002);
    assert_int_equal(e->max_bytes, 1003);
    assert_int_equal(e->last_bytes, 1003);
    assert_int_equal(e->n_samples, 2);
    assert_int_equal(tmk_history_add(&h, 9 * TENTH_NS, 7), 0); /* joins the ninth */
    assert_int_equal(h.n, 5);
    assert_int_equal(h.entries[4].min_bytes, 7);
    assert_int_equal(h.entries[4].max_bytes, 1008);
    tmk_history_fini(&h);
}

static void test_a_gap_stays(void **state)
{
    (void)state;
    struct tmk_history h;
    tmk_history_init(&h, 8);
    tmk_history_gap(&h); /* before the first sample there is nothing to part */
    add_line(&h, 3);
    tmk_history_gap(&h);
    tmk_history_gap(&h);
    for (uint64_t i = 5; i < 11; i++)
        assert_int_equal(tmk_history_add(&h, i * TENTH_NS, i), 0);
    assert_int_equal(count(&h), 9);
    unsigned n_gaps = 0;
    for (uint64_t i = 0; i < h.n; i++) {
        n_gaps += h.entries[i].after_gap;
        assert_false(h.entries[i].start_ns < 3 * TENTH_NS && h.entries[i].end_ns > 3 * TENTH_NS);
        if (h.entries[i].after_gap)
            assert_int_equal(h.entries[i].start_ns, 5 * TENTH_NS);
    }
    assert_int_equal(n_gaps, 1);
    tmk_history_fini(&h);
}

static void test_gaps_cannot_fill_it(void **state)
{
    (void)state;
    struct tmk_history h;
    tmk_history_init(&h, 64);
    for (uint64_t i = 0; i < 100000; i++) {
        assert_int_equal(tmk_history_add(&h, i * TENTH_NS, i), 0);
        tmk_history_gap(&h);
        assert_true(h.n <= 64);
    }
    assert_int_equal(count(&h), 100000);
    tmk_history_fini(&h);
}

/* Seven days at ten samples a second, of a device and of as many processes as there can be. */
static void test_a_week_fits(void **state)
{
    (void)state;
    enum { WEEK = 7 * 86400 * 10 };
    struct tmk_history h, p;
    tmk_history_init(&h, TMK_HISTORY_DEVICE);
    tmk_history_init(&p, TMK_HISTORY_PROCESS);
    for (uint64_t i = 0; i < WEEK; i++) {
        uint64_t used = i == 1234567 ? 99999 : 1000 + i % 600;
        assert_int_equal(tmk_history_add(&h, i * TENTH_NS, used), 0);
        assert_int_equal(tmk_history_add(&p, i * TENTH_NS, used), 0);
    }
    size_t all =
        h.room * sizeof h.entries[0] +
        TMK_DEVICE_PROCESSES_MOST * (p.room * sizeof p.entries[0] + sizeof(struct tmk_process_use));
    assert_true(all <= 5000000);
    assert_int_equal(count(&h), WEEK);
    assert_true(h.n > TMK_HISTORY_DEVICE / 2); /* as fine as there is room for */
    uint64_t peak = 0;
    for (uint64_t i = 0; i < h.n; i++) {
        const struct tmk_history_entry *e = &h.entries[i];
        assert_true(i == 0 || e->start_ns == h.entries[i - 1].end_ns + TENTH_NS);
        peak = e->max_bytes > peak ? e->max_bytes : peak;
    }
    assert_int_equal(peak, 99999);
    assert_int_equal(h.entries[h.n - 1].end_ns, (WEEK - 1) * TENTH_NS);
    tmk_history_fini(&h);
    tmk_history_fini(&p);
}

static void test_alarm_rings_once(void **state)
{
    (void)state;
    struct tmk_alarm a = {.threshold_percent = 85};
    static const double shares[] = {84.9, 85, 86, 84, 85.5, 83, 84.9, 85, 99};
    static const bool rings[] = {false, true, false, false, false, false, false, true, false};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        assert_int_equal(tmk_alarm_look(&a, shares[i]), rings[i]);
    assert_int_equal(a.n_passed, 2);
    assert_true(a.is_over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_sample_is_an_entry),
        cmocka_unit_test(test_neighbours_are_merged),
        cmocka_unit_test(test_a_gap_stays),
        cmocka_unit_test(test_gaps_cannot_fill_it),
        cmocka_unit_test(test_a_week_fits),
        cmocka_unit_test(test_alarm_rings_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
