/* SPDX-License-Identifier: MIT */
/* What one process has of the host's memory: first, last and most of it, gaps, and growth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/device.h"
#include "device/host.h"
#include "monitor/growth.h"
#include "monitor/resident.h"
#include "tree_kit.h"

enum { PID = 4242, SECOND_NS = 1000000000 };

static void put_pages(const struct tree *t, unsigned pages)
{
    char text[64];
    snprintf(text, sizeof text, "900000 %u 0 0 0 0 0\n", pages);
    tree_file(t, text, "proc/%d/statm", PID);
}

static uint64_t bytes_of(uint64_t pages)
{
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void look(struct tmk_resident *r, const struct tree *t, unsigned second)
{
    assert_int_equal(tmk_resident_look(r, &t->roots, (uint64_t)second * SECOND_NS), 0);
}

static void test_first_last_most(void **state)
{
    const struct tree *t = *state;
    struct tmk_resident r;
    tmk_resident_init(&r, PID);
    look(&r, t, 0); /* it is not there */
    assert_int_equal(r.n_looks, 0);
    static const unsigned pages[] = {100, 300, 200};
    for (unsigned i = 0; i < 3; i++) {
        put_pages(t, pages[i]);
        look(&r, t, 1 + i);
    }
    assert_int_equal(r.n_looks, 3);
    assert_int_equal(r.first_bytes, bytes_of(100));
    assert_int_equal(r.now_bytes, bytes_of(200));
    assert_int_equal(r.max_bytes, bytes_of(300));
    put_pages(t, 0); /* has ended: what was known last stays */
    look(&r, t, 4);
    assert_int_equal(r.n_looks, 3);
    assert_int_equal(r.now_bytes, bytes_of(200));
    tmk_resident_fini(&r);
}

/* Judged as devices are; also when it was looked at more often than there is room for. */
static void test_growth(void **state)
{
    const struct tree *t = *state;
    for (unsigned rate = 0; rate <= 1000; rate += 1000) {
        struct tmk_resident r;
        tmk_resident_init(&r, PID);
        for (unsigned i = 0; i < 1100; i++) {
            put_pages(t, 5000 + rate * i + 100 * (i % 5));
            look(&r, t, i);
        }
        struct tmk_growth growth = tmk_growth_judge(&r.history, 0, 0);
        assert_true(growth.is_known);
        assert_int_equal(tmk_growth_is_leak(&growth, 100 << 20), rate > 0);
        assert_int_equal(r.first_bytes, bytes_of(5000));
        tmk_resident_fini(&r);
    }
}

static void test_real_process(void **state)
{
    (void)state;
    struct tmk_device_roots roots = tmk_device_roots_get();
    assert_true(tmk_host_resident_bytes(&roots, getpid()) > bytes_of(10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_last_most, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_growth, tree_setup, tree_teardown),
        cmocka_unit_test(test_real_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
