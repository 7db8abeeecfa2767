/* SPDX-License-Identifier: MIT */
/* When a process runs out, from its trace: against which capacity, when, and why. */
#include "forecast/oom_forecast.h"
#include "maker.h"
#include "model/run.h"
#include "passes/forecast_samples.h"
#include "trace/replay.h"
#include "trace/state.h"

#include "passes/forecast.h"

#define GB ((uint64_t)1 << 30)
#define MB ((uint64_t)1 << 20)
#define STEP_NS 500000000ull

enum { CUDA = 1 << 8, CPU = 0, N = 60 };

/* What a step needs and what stays after step i; what the driver says at its end. */
struct plan {
    uint64_t (*left)(int step), (*peak)(int step), (*reserved)(int step), (*others)(int step);
    unsigned device;
    bool has_samples;
    uint64_t oom_capacity; /* 0: no OOM at the end */
    bool dies;             /* of that */
};

static uint64_t steady(int step)
{
    (void)step;
    return 10 * GB;
}

static uint64_t growing(int step)
{
    return 10 * GB + (uint64_t)step * 64 * MB;
}

static uint64_t none(int step)
{
    (void)step;
    return 0;
}

static uint64_t other_growing(int step)
{
    return (uint64_t)step * GB;
}

static void put_step(struct maker *m, const struct plan *plan, int i)
{
    maker_step(m, i);
    m->ns += STEP_NS / 2;
    if (i > 0)
        maker_free(m, plan->device, 0x1000);
    if (plan->reserved)
        maker_reserved(m, plan->device, plan->reserved(i));
    maker_alloc(m, plan->device, 0x10, plan->peak(i), 0);
    maker_free(m, plan->device, 0x10);
    maker_alloc(m, plan->device, 0x1000, plan->left(i), 0);
    m->ns += STEP_NS / 2;
    if (!plan->has_samples)
        return;
    uint64_t own = (plan->reserved ? plan->reserved(i) : plan->left(i)) + GB;
    maker_sample(m, plan->device, 80 * GB, own + plan->others(i), own, plan->others(i));
}

static struct tmk_run *make(struct maker *m, const struct plan *plan)
{
    maker_open(m, 0);
    for (int i = 0; i < N; i++)
        put_step(m, plan, i);
    if (!plan->dies && plan->oom_capacity)
        maker_oom(m, plan->device, GB, plan->oom_capacity, 0);
    m->ns += 1000;
    maker_step(m, N); /* so that the last one is finished */
    m->ns += STEP_NS;
    if (plan->dies)
        maker_oom(m, plan->device, GB, plan->oom_capacity, 0);
    return maker_finish(m);
}

static struct tmk_forecast forecast(const struct plan *plan, bool with_samples)
{
    struct maker m;
    struct tmk_run *run = make(&m, plan);
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_forecast list[TMK_MAX_DEVICES], one;
    struct tmk_forecast_samples *samples = NULL;
    uint32_t n = 0;
    assert_int_equal(tmk_forecast_samples_open(&samples), 0);
    struct tmk_visitor visitor = tmk_forecast_samples_visitor(samples);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, NULL, NULL), 0);
    const struct tmk_forecast_samples *given = with_samples ? samples : NULL;
    assert_int_equal(tmk_forecast_list(p, given, list, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(tmk_forecast_of(p, (uint16_t)plan->device, given, &one), 0);
    assert_memory_equal(&one.risk, &list[0].risk, sizeof one.risk);
    assert_true(one.seconds_to_oom == list[0].seconds_to_oom && one.cause == list[0].cause);
    tmk_forecast_samples_close(samples);
    tmk_run_close(run);
    maker_remove(&m);
    return list[0];
}

static void assert_near(double is, double should)
{
    assert_true(is > should * 0.999 && is < should * 1.001);
}

/* 64 MB a step; the last peak is 13.6875 GB of what the card leaves: 80 less 1 for the context. */
static void test_leak(void **state)
{
    (void)state;
    struct plan plan = {growing, growing, growing, none, CUDA, .has_samples = true};
    for (int with = 0; with < 2; with++) {
        struct tmk_forecast f = forecast(&plan, with);
        assert_int_equal(f.capacity_bytes, 79 * GB);
        assert_int_equal(f.risk, TMK_RISK_MEDIUM); /* most of the way is ahead */
        assert_int_equal(f.cause, TMK_GROWTH_LEAK);
        assert_true(f.by_step && f.has_time && f.has_confidence);
        assert_near(f.slope, 64.0 * (double)MB);
        assert_near(f.steps_to_oom, (79 - 13.6875) * 16);
        assert_near(f.seconds_to_oom, (79 - 13.6875) * 16 * 0.5);
        assert_true(f.seconds_low < f.seconds_to_oom && f.seconds_to_oom < f.seconds_high);
    }
}

static uint64_t growing_little(int step)
{
    return 20 * MB + (uint64_t)step * MB / 4;
}

/* A leak of no consequence on so large a card: no risk, but it is named. */
static void test_far_leak(void **state)
{
    (void)state;
    struct plan plan = {growing_little, growing_little, NULL, none, CUDA, .has_samples = true};
    struct tmk_forecast f = forecast(&plan, false);
    assert_int_equal(f.risk, TMK_RISK_LOW);
    assert_int_equal(f.cause, TMK_GROWTH_LEAK);
    assert_false(f.has_time || f.has_confidence);
    assert_near(f.slope, (double)MB / 4);
    plan.left = none;
    assert_int_equal(forecast(&plan, false).cause, TMK_GROWTH_NONE);
}

/* The same peaks, but nothing stays. */
static void test_growing_batch(void **state)
{
    (void)state;
    struct plan plan = {none, growing, NULL, none, CUDA, .has_samples = true};
    struct tmk_forecast f = forecast(&plan, false);
    assert_int_equal(f.risk, TMK_RISK_MEDIUM);
    assert_int_equal(f.cause, TMK_GROWTH_BATCH);
}

/* Whatever the card has, an OOM told of less. */
static void test_limit_of_an_oom(void **state)
{
    (void)state;
    struct plan plan = {
        growing, growing, growing, none, CUDA, .has_samples = true, .oom_capacity = 20 * GB};
    struct tmk_forecast f = forecast(&plan, false);
    assert_int_equal(f.capacity_bytes, 20 * GB);
    assert_near(f.steps_to_oom, (20 - 13.6875) * 16);
    plan.has_samples = false;
    assert_int_equal(forecast(&plan, false).capacity_bytes, 20 * GB);
}

/* What has happened is no forecast: it died in the step after the last that finished. */
static void test_out_of_memory(void **state)
{
    (void)state;
    struct plan plan = {
        growing, growing, growing, none, CUDA, .has_samples = true, .oom_capacity = 14 * GB};
    struct tmk_forecast f = forecast(&plan, false);
    assert_true(f.has_oom && !f.has_run_out); /* caught, and the step went on */
    assert_int_equal(f.oom_step, N - 1);
    assert_int_equal(f.cause, TMK_GROWTH_LEAK);
    plan.dies = true;
    for (int with = 0; with < 2; with++) {
        char text[TMK_FORECAST_TEXT_BYTES];
        f = forecast(&plan, with);
        assert_true(f.has_oom && f.has_run_out);
        assert_int_equal(f.oom_step, N);
        assert_int_equal(f.oom_ns, (N + 1) * STEP_NS + 1000);
        assert_int_equal(f.risk, TMK_RISK_CRITICAL);
        assert_int_equal(f.cause, TMK_GROWTH_RAN_OUT);
        assert_true(f.has_time && f.by_step && !f.has_confidence);
        assert_true(f.steps_to_oom == 0 && f.seconds_to_oom == 0 && f.seconds_high == 0);
        assert_string_equal(tmk_forecast_text(&f, true, text), "out of memory");
    }
}

static void test_reserved_grows(void **state)
{
    (void)state;
    struct plan plan = {steady, steady, growing, none, CUDA, .has_samples = true};
    struct tmk_forecast f = forecast(&plan, false);
    assert_int_equal(f.risk, TMK_RISK_MEDIUM);
    assert_int_equal(f.cause, TMK_GROWTH_FRAGMENTATION);
    assert_true(f.has_time && !f.has_confidence);
}

/* Seen in samples alone: half a minute of it is an alarm only because it is full in 5 s. */
static void test_others_grow(void **state)
{
    (void)state;
    struct plan plan = {steady, steady, steady, other_growing, CUDA, .has_samples = true};
    assert_int_equal(forecast(&plan, false).risk, TMK_RISK_LOW);
    struct tmk_forecast f = forecast(&plan, true);
    assert_int_equal(f.risk, TMK_RISK_CRITICAL);
    assert_int_equal(f.cause, TMK_GROWTH_OTHER_PROCESS);
    assert_near(f.seconds_to_oom, 10 * 0.5); /* 59 of 80 GB, 10 + 1 of them ours */
    assert_false(f.by_step);
}

static void test_quiet(void **state)
{
    (void)state;
    struct plan plan = {steady, steady, steady, none, CUDA, .has_samples = true};
    struct tmk_forecast f = forecast(&plan, true);
    char text[TMK_FORECAST_TEXT_BYTES];
    assert_int_equal(f.risk, TMK_RISK_LOW);
    assert_int_equal(f.cause, TMK_GROWTH_NONE);
    assert_false(f.has_time);
    assert_string_equal(tmk_forecast_text(&f, false, text), "low");
}

/* Nobody said how much there is: nothing is forecast. */
static void test_capacity_unknown(void **state)
{
    (void)state;
    struct plan plan = {growing, growing, NULL, none, CPU, .has_samples = false};
    struct tmk_forecast f = forecast(&plan, true);
    char text[TMK_FORECAST_TEXT_BYTES];
    assert_int_equal(f.risk, TMK_RISK_UNKNOWN);
    assert_int_equal(f.capacity_bytes, 0);
    assert_int_equal(f.highest_bytes, growing(N - 1));
    assert_string_equal(tmk_forecast_text(&f, true, text), "-");
}

/* However many there are: the room is bounded, nothing high is lost, and time goes on. */
static void test_samples_are_bounded(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_forecast_samples *samples = NULL;
    maker_open(&m, 0);
    for (uint64_t i = 0; i < 5000; i++) {
        m.ns += 1000;
        maker_sample(&m, CUDA, 80 * GB, i == 1234 ? 70 * GB : 10 * GB + i, 1, UINT64_MAX);
    }
    struct tmk_run *run = maker_finish(&m);
    assert_int_equal(tmk_forecast_samples_open(&samples), 0);
    struct tmk_visitor visitor = tmk_forecast_samples_visitor(samples);
    assert_int_equal(tmk_process_sweep(tmk_run_process(run, 0), &visitor, 1, NULL, NULL), 0);
    const struct tmk_device_samples *d = tmk_forecast_samples_get(samples, CUDA);
    assert_non_null(d);
    assert_null(tmk_forecast_samples_get(samples, CPU));
    assert_int_equal(d->n, 5000 / 8); /* merged three times, two by two */
    assert_int_equal(d->total_bytes, 80 * GB);
    for (uint32_t i = 0; i < d->n; i++) {
        uint64_t last = 8 * (uint64_t)i + 7;
        assert_int_equal(d->items[i].time_ns, (last + 1) * 1000);
        assert_int_equal(d->items[i].used_bytes, i == 1234 / 8 ? 70 * GB : 10 * GB + last);
        assert_true(d->items[i].others_bytes == UINT64_MAX);
    }
    tmk_forecast_samples_close(samples);
    tmk_run_close(run);
    maker_remove(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leak),
        cmocka_unit_test(test_far_leak),
        cmocka_unit_test(test_growing_batch),
        cmocka_unit_test(test_limit_of_an_oom),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_reserved_grows),
        cmocka_unit_test(test_others_grow),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_capacity_unknown),
        cmocka_unit_test(test_samples_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
