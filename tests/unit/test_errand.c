/* SPDX-License-Identifier: MIT */
/* Work on another thread: whose the data is, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "kit/errand.h"

struct sum {
    uint64_t n, total;
    pthread_t by;
};

static void add_up(void *arg)
{
    struct sum *s = arg;
    s->total = 0;
    for (uint64_t i = 1; i <= s->n; i++)
        s->total += i;
    s->by = pthread_self();
}

static void wait_for(struct tmk_errand *e)
{
    for (int i = 0; i < 10000; i++) {
        if (tmk_errand_take(e))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("it never came back");
}

static void test_again_and_again(void **state)
{
    (void)state;
    struct tmk_errand e = {0};
    struct sum s = {0};
    assert_true(tmk_errand_is_idle(&e));
    assert_false(tmk_errand_take(&e));
    for (uint64_t i = 1; i <= 100; i++) {
        s.n = i;
        tmk_errand_begin(&e, add_up, &s);
        assert_false(tmk_errand_is_idle(&e));
        wait_for(&e);
        assert_true(tmk_errand_is_idle(&e));
        assert_false(tmk_errand_take(&e)); /* once only */
        assert_int_equal(s.total, i * (i + 1) / 2);
        assert_false(pthread_equal(s.by, pthread_self()));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_again_and_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
