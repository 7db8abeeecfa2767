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
    struct tmk_device_forecast_terms terms = {.warm_up_ns = warm_up_ns, .threshold_percent = 96};
    struct tmk_device_forecast p = tmk_watched_device_forecast(&u, &terms);
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
        assert_null(tmk_device_forecast_advice(&p, 0));
    }
    struct tmk_device_forecast p = predict(full, 1000, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
    assert_int_equal(p.risk_level, TMK_RISK_MEDIUM);
    assert_int_equal(p.cause, TMK_GROWTH_NEARLY_FULL);
    assert_non_null(tmk_device_forecast_advice(&p, 0));
}

/* ---- shapes of filling, of a device of 16 GiB sampled ten times a second ---- */

typedef double shape(double s); /* GiB in use after s seconds */

struct filling {
    double critical_s, full_s; /* when it was said first, when the device was full; -1: never */
    enum tmk_risk highest;
    bool has_false_time; /* a time beside a low risk, or advice for one */
};

static struct filling fill_device(shape *used, double seconds)
{
    struct tmk_device device = {.kind = TMK_DEVICE_NVIDIA};
    struct tmk_watched_device u = {.device = &device, .has_now = true, .label = "0"};
    struct tmk_device_forecast_terms terms = {.warm_up_ns = TMK_DEVICE_FORECAST_WARM_UP_NS,
                                              .threshold_percent = 85};
    struct filling f = {.critical_s = -1, .full_s = -1};
    tmk_history_init(&u.history, TMK_HISTORY_DEVICE);
    for (uint64_t i = 0; (double)i / 10 < seconds; i++) {
        double now_s = (double)i / 10, bytes = used(now_s) * (double)GB;
        bytes = bytes < 16 * (double)GB ? bytes : 16 * (double)GB;
        u.now = (struct tmk_device_memory){16 * GB, (uint64_t)bytes, 0};
        assert_int_equal(tmk_history_add(&u.history, i * TENTH_NS, u.now.used_bytes), 0);
        struct tmk_device_forecast p = tmk_watched_device_forecast(&u, &terms);
        if (p.risk_level == TMK_RISK_CRITICAL && f.critical_s < 0)
            f.critical_s = now_s;
        if (u.now.used_bytes == 16 * GB && f.full_s < 0)
            f.full_s = now_s;
        f.highest = p.risk_level > f.highest ? p.risk_level : f.highest;
        f.has_false_time |= p.risk_level == TMK_RISK_LOW &&
                            (p.has_time || tmk_device_forecast_advice(&p, 0) != NULL);
    }
    tmk_history_fini(&u.history);
    return f;
}

static double fast_line(double s)
{
    return 11 + 0.2 * s;
}

static double slow_line(double s)
{
    return 8 + 0.02 * s;
}

static double faster_and_faster(double s)
{
    return 4 + 0.01 * s * s;
}

static double one_jump(double s)
{
    return s < 20 ? 4 : 16;
}

static double rising_sawtooth(double s) /* steps of 2 s with 1 GiB of activations */
{
    double in_step = s / 2 - (double)(uint64_t)(s / 2);
    return 9 + 0.1 * s + in_step;
}

static double full_and_steady(double s)
{
    (void)s;
    return 15.9;
}

/* What runs out is critical before it is full, some seconds before where it comes slowly; in the
 * warm-up of a minute too. */
static void test_critical_in_time(void **state)
{
    (void)state;
    struct filling f = fill_device(fast_line, 30);
    assert_true(f.full_s > 24.9 && f.full_s < 25.2);
    assert_true(f.critical_s > 0 && f.full_s - f.critical_s >= 11);
    f = fill_device(slow_line, 420);
    assert_true(f.full_s - f.critical_s >= 29); /* by its trend, before the threshold */
    f = fill_device(faster_and_faster, 60);
    assert_true(f.full_s > 34 && f.full_s - f.critical_s >= 5);
    f = fill_device(rising_sawtooth, 80);
    assert_true(f.full_s - f.critical_s >= 8);
    f = fill_device(one_jump, 30);
    assert_true(f.critical_s >= 20 && f.critical_s < 20.05); /* with the sample that shows it */
    f = fill_device(full_and_steady, 3);
    assert_true(f.critical_s == 0); /* with the first sample: no trend is needed */
}

/* ---- after a long time ---- */

static uint64_t idle_tenths; /* how long the next shape is idle */

static uint64_t
idle_then_filled(uint64_t i) /* of 80 GiB: steps with 4 GiB of swing, then 1 GiB/s */
{
    uint64_t swing = i % 20 * GB / 5;
    return i < idle_tenths ? 40 * GB + swing : 44 * GB + (i - idle_tenths) * GB / 10;
}

/* However long a device was watched, a fill of half a minute is forecast before it is full. */
static void test_filled_after_a_long_time(void **state)
{
    (void)state;
    static const uint64_t hours[] = {1, 10};
    for (unsigned k = 0; k < 2; k++) {
        idle_tenths = hours[k] * 36000;
        struct tmk_device_forecast p =
            predict(idle_then_filled, idle_tenths + 260, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
        assert_true(p.has_time);
        assert_int_equal(p.risk_level, TMK_RISK_CRITICAL);
        assert_int_equal(p.cause, TMK_GROWTH_STEADY);
        assert_true(p.predicted_low < 10.1 && p.predicted_high > 10.1);
        p = predict(idle_then_filled, idle_tenths, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
        assert_int_equal(p.risk_level, TMK_RISK_LOW);
        assert_false(p.has_time);
    }
}

static uint64_t swinging(uint64_t i) /* up to 72 of 80 GiB and down again, every 40 s */
{
    return 40 * GB + i % 400 * 80 * MB;
}

static uint64_t uneven_swing(uint64_t i) /* likewise, each time up to 56 to 72 GiB */
{
    uint64_t highest = 56 + i / 400 * 2654435761u % 65536 / 4096;
    return 40 * GB + i % 400 * (highest - 40) * GB / 400;
}

/* A swing that was seen before is no growth, nor is one that goes a little higher. */
static void test_swing_that_is_known(void **state)
{
    (void)state;
    for (uint64_t n = 20000; n < 24000; n += 37) {
        struct tmk_device_forecast p = predict(swinging, n, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
        assert_false(tmk_device_forecast_is_alarm(&p));
        p = predict(uneven_swing, n, 0, TMK_DEVICE_FORECAST_WARM_UP_NS);
        assert_false(tmk_device_forecast_is_alarm(&p));
    }
}

/* After ten hours a forecast is due every minute, but at once for use that is higher than ever. */
static void test_pace(void **state)
{
    (void)state;
    const uint64_t second_ns = 1000000000, ten_hours_ns = 36000 * second_ns;
    struct tmk_forecast_pace pace = {0};
    assert_true(tmk_forecast_pace_is_due(&pace, 0, 50));
    tmk_forecast_pace_note(&pace, 0, 50);
    assert_false(tmk_forecast_pace_is_due(&pace, second_ns - 1, 90));
    assert_true(tmk_forecast_pace_is_due(&pace, second_ns, 50));
    tmk_forecast_pace_note(&pace, ten_hours_ns, 70);
    tmk_forecast_pace_note(&pace, ten_hours_ns, 40);
    assert_false(tmk_forecast_pace_is_due(&pace, ten_hours_ns + 60 * second_ns - 1, 70.9));
    assert_true(tmk_forecast_pace_is_due(&pace, ten_hours_ns + 60 * second_ns, 40));
    assert_true(tmk_forecast_pace_is_due(&pace, ten_hours_ns + second_ns, 71));
    assert_false(tmk_forecast_pace_is_due(&pace, ten_hours_ns + second_ns - 1, 71));
}

static double level(double s)
{
    (void)s;
    return 4;
}

static double even_sawtooth(double s)
{
    return 6 + 5 * (s / 2 - (double)(uint64_t)(s / 2));
}

static double starting(double s) /* ever faster to 5 %, as a program is loaded: 0.8 GiB in 15 s */
{
    return 0.2 + 0.6 * (s < 15 ? s * s / 225 : 1);
}

static double loading(double s) /* a model of 6 GiB in 20 s, then training */
{
    return 1 + 0.3 * (s < 20 ? s : 20) + (s < 20 ? 0 : even_sawtooth(s) / 5);
}

/* A quiet device stays low, and of low nothing is forecast. */
static void test_quiet_shapes(void **state)
{
    (void)state;
    struct filling f = fill_device(level, 70);
    assert_int_equal(f.highest, TMK_RISK_LOW);
    assert_false(f.has_false_time);
    f = fill_device(even_sawtooth, 70);
    assert_int_equal(f.highest, TMK_RISK_LOW);
    assert_false(f.has_false_time);
    f = fill_device(starting, 70);
    assert_int_equal(f.highest, TMK_RISK_LOW);
    assert_false(f.has_false_time);
    f = fill_device(loading, 70);
    assert_true(f.highest <= TMK_RISK_MEDIUM);
    assert_false(f.has_false_time);
}

static struct tmk_device_forecast state_of(double percent, bool had_oom)
{
    struct tmk_device_series series = {
        .label = "0", .has_usage = true, .usage_percent = percent, .capacity_bytes = 1e9};
    return tmk_device_forecast_make(
        &series, &(struct tmk_device_forecast_terms){.warm_up_ns = TMK_DEVICE_FORECAST_WARM_UP_NS,
                                                     .threshold_percent = 85,
                                                     .had_oom = had_oom});
}

/* Each state has its own cause and advice, in both languages. */
static void test_states(void **state)
{
    (void)state;
    static const struct {
        double percent;
        bool had_oom;
        enum tmk_risk risk;
        enum tmk_growth_cause cause;
    } cases[] = {
        {84.9, false, TMK_RISK_UNKNOWN, TMK_GROWTH_NONE},
        {85, false, TMK_RISK_CRITICAL, TMK_GROWTH_NEARLY_FULL},
        {99, false, TMK_RISK_CRITICAL, TMK_GROWTH_FULL},
        {10, true, TMK_RISK_CRITICAL, TMK_GROWTH_RAN_OUT},
        {99, true, TMK_RISK_CRITICAL, TMK_GROWTH_RAN_OUT},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_device_forecast p = state_of(cases[i].percent, cases[i].had_oom);
        bool has_advice = cases[i].cause != TMK_GROWTH_NONE;
        assert_int_equal(p.risk_level, cases[i].risk);
        assert_int_equal(p.cause, cases[i].cause);
        assert_false(p.has_time || p.has_trend);
        assert_int_equal(tmk_device_forecast_advice(&p, 0) != NULL, has_advice);
        assert_int_equal(tmk_device_forecast_advice_zh(&p, 0) != NULL, has_advice);
        assert_null(tmk_device_forecast_advice(&p, 3));
        assert_null(tmk_device_forecast_advice_zh(&p, 3));
    }
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
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_reserved_counts),
        cmocka_unit_test(test_warm_up),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_critical_in_time),
        cmocka_unit_test(test_quiet_shapes),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_filled_after_a_long_time),
        cmocka_unit_test(test_swing_that_is_known),
        cmocka_unit_test(test_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
