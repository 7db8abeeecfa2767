/* SPDX-License-Identifier: MIT */
/* Tests of monitor/watched_forecast.h and forecast/device_forecast.h on histories made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"
#include "forecast/device_forecast.h"
#include "forecast/oom_forecast.h"
#include "monitor/history.h"
#include "monitor/sampler.h"
#include "monitor/watched_forecast.h"

#define GB ((uint64_t)1 << 30)
#define MB ((uint64_t)1 << 20)
#define TENTH_NS 100000000ull

static struct tmk_device_forecast predict(uint64_t (*used)(uint64_t i), uint64_t n,
                                          uint64_t reserved, uint64_t warm_up_ns)
{
    struct tmk_device device = {.kind = TMK_DEVICE_NVIDIA};
    struct tmk_watched_device u = {.device = &device, .has_now = n > 0};
    strcpy(u.label, "0");
    u.now = (struct tmk_device_memory){80 * GB, n ? used(n - 1) : 0, reserved};
    tmk_history_init(&u.history, TMK_HISTORY_DEVICE);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(tmk_history_add(&u.history, i * TENTH_NS, used(i)), 0);
    struct tmk_device_forecast p = tmk_watched_device_forecast(&u, warm_up_ns);
    p.device_id = NULL;
    tmk_history_fini(&u.history);
    return p;
}

static void assert_near(double is, double should)
{
    assert_true(is > should * 0.995 && is < should * 1.005);
}

static uint64_t growing(uint64_t i) /* 10 MB a tenth: 100 MB a second */
{
    return 10 * GB + i * 10 * MB;
}

static uint64_t steady(uint64_t i)
{
    return 40 * GB + i % 7 * GB;
}

static uint64_t full(uint64_t i)
{
    return 76 * GB + i % 3 * MB;
}

static void test_growing(void **state)
{
    (void)state;
    static const uint64_t counts[] = {700, 1201, 5000};
    for (unsigned k = 0; k < 3; k++) {
        uint64_t n = counts[k];
        struct tmk_device_forecast p = predict(growing, n, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
        assert_true(tmk_device_forecast_is_alarm(&p));
        assert_true(p.has_time && p.has_usage);
        assert_near(p.trend_slope, 100.0 * (double)MB);
        assert_near(p.predicted_oom_time, (double)(80 * GB - growing(n - 1)) / 100 / (double)MB);
        assert_true(p.predicted_low < p.predicted_oom_time);
        assert_true(p.predicted_high > p.predicted_oom_time);
        assert_int_equal(p.cause, TMK_GROWTH_STEADY);
        assert_near(p.current_usage, (double)growing(n - 1) / (double)(80 * GB) * 100);
    }
}

/* What the driver keeps for itself nobody can have. */
static void test_reserved_counts(void **state)
{
    (void)state;
    struct tmk_device_forecast p = predict(growing, 1000, 2 * GB, TMK_DEVICE_FORECAST_WARM_UP_NS);
    assert_near(p.predicted_oom_time, (double)(78 * GB - growing(999)) / 100 / (double)MB);
}

static void test_warm_up(void **state)
{
    (void)state;
    struct tmk_device_forecast p = predict(growing, 300, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
    assert_false(tmk_device_forecast_is_alarm(&p));
    p = predict(growing, 300, 0, 10000000000ull);
    assert_true(tmk_device_forecast_is_alarm(&p));
}

static void test_quiet(void **state)
{
    (void)state;
    for (uint64_t n = 45; n < 3000; n += 37) {
        struct tmk_device_forecast p = predict(steady, n, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
        assert_int_equal(p.risk_level, TMK_RISK_LOW);
        assert_false(p.has_time);
        assert_int_equal(p.cause, TMK_GROWTH_NONE);
        assert_null(tmk_growth_cause_advice(p.cause, 0));
    }
    struct tmk_device_forecast p = predict(full, 1000, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
    assert_int_equal(p.risk_level, TMK_RISK_MEDIUM);
    assert_int_equal(p.cause, TMK_GROWTH_NEARLY_FULL);
    assert_non_null(tmk_growth_cause_advice(p.cause, 0));
}

static void test_unknown(void **state)
{
    (void)state;
    struct tmk_device_forecast p = predict(steady, 0, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
    assert_int_equal(p.risk_level, TMK_RISK_UNKNOWN);
    assert_false(p.has_usage);
    p = predict(steady, 5, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
    assert_int_equal(p.risk_level, TMK_RISK_UNKNOWN);
    assert_true(p.has_usage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growing), cmocka_unit_test(test_reserved_counts),
        cmocka_unit_test(test_warm_up), cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
