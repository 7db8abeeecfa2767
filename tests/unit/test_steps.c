/* SPDX-License-Identifier: MIT */
/* The history of steps: its exact peak, whether memory grows, which steps are shown; and what is
 * added up over a run: lines of code, marks. */
#include "maker.h"

#include "model/run.h"
#include "passes/marks.h"
#include "passes/sites.h"
#include "passes/steps.h"
#include "trace/replay.h"
#include "trace/state.h"

/* `n` steps; after step i, `left(i)` bytes stay alive. Within a step there is a spike. */
static struct tmk_run *make_steps(struct maker *m, int n, uint64_t (*left)(int step))
{
    uint64_t alive = 0;
    maker_open(m, 0);
    for (int i = 0; i < n; i++) {
        m->ns += 1000;
        maker_step(m, i);
        m->ns += 10;
        maker_alloc(m, 0, 0x10, i == n / 2 ? 9000000 : 5000000, 0);
        m->ns += 10;
        maker_free(m, 0, 0x10);
        if (alive)
            maker_free(m, 0, 0x1000);
        alive = left(i);
        if (alive)
            maker_alloc(m, 0, 0x1000, alive, 0);
    }
    m->ns += 1000;
    maker_step(m, n); /* so that the last one is finished */
    return maker_finish(m);
}

static uint64_t left_steady(int step)
{
    return step == 0 ? 10 : 1000000;
}

static uint64_t left_growing(int step)
{
    return 1000000 + 64 * (uint64_t)step;
}

static uint64_t left_growing_rarely(int step)
{
    return 1000000 + 4096 * (uint64_t)(step / 5);
}

static uint64_t left_shrinking(int step)
{
    return 1000000 - 3000 * (uint64_t)step;
}

static uint64_t left_varying(int step)
{
    static const uint64_t sizes[] = {100000, 900000, 400000, 800000, 100, 700000, 300000};
    return sizes[(step / 3) % 7];
}

static uint64_t left_noisy(int step) /* its least values rise, within the noise */
{
    return 1000000 + (uint64_t)(step % 5) * 200000 + (uint64_t)step * 100;
}

static uint64_t left_late_spike(int step)
{
    return step == 35 ? 5000000 : 1000000;
}

static void check_trend(int n, uint64_t (*left)(int), enum tmk_steps_trend trend,
                        double bytes_per_step)
{
    struct maker m;
    struct tmk_run *run = make_steps(&m, n, left);
    struct tmk_steps *s = NULL;
    assert_int_equal(tmk_steps_open(tmk_run_process(run, 0), 0, &s), 0);
    assert_int_equal(tmk_steps_n(s), n + 1);
    struct tmk_steps_digest d = tmk_steps_digest(s);
    assert_int_equal(d.n_steps, n + 1);
    assert_int_equal(d.mean_ns, 1020);
    assert_int_equal(d.trend, trend);
    double error = d.bytes_per_step - bytes_per_step, room = bytes_per_step / 10;
    assert_true(error * error <= room * room);
    tmk_steps_close(s);
    tmk_run_close(run);
    maker_remove(&m);
}

static void test_trend(void **state)
{
    (void)state;
    check_trend(9, left_growing, TMK_STEPS_TREND_TOO_SHORT, 0);
    check_trend(10, left_growing, TMK_STEPS_TREND_GROWING, 64);
    check_trend(200, left_growing, TMK_STEPS_TREND_GROWING, 64);
    check_trend(10, left_steady, TMK_STEPS_TREND_STEADY, 0);
    check_trend(40, left_steady, TMK_STEPS_TREND_STEADY, 0);
    check_trend(40, left_late_spike, TMK_STEPS_TREND_STEADY, 0);
    check_trend(101, left_growing_rarely, TMK_STEPS_TREND_GROWING, 4096.0 / 5);
    check_trend(40, left_shrinking, TMK_STEPS_TREND_SHRINKING, -3000);
    check_trend(40, left_varying, TMK_STEPS_TREND_VARYING, 0);
    check_trend(40, left_noisy, TMK_STEPS_TREND_VARYING, 0);
}

static void test_peak_of_history(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_run *run = make_steps(&m, 20, left_steady);
    const struct tmk_process *p = tmk_run_process(run, 0);
    const struct tmk_step_row *row = tmk_steps_peak(p, true, 0);
    assert_non_null(row);
    assert_int_equal(row->step, 10);
    assert_int_equal(row->peak_bytes, 10000000);
    assert_ptr_equal(tmk_steps_peak(p, false, 0), row);
    assert_null(tmk_steps_peak(p, false, 0x100));
    tmk_run_close(run);
    maker_remove(&m);
}

static void check_pick(uint64_t (*left)(int), uint64_t n, const uint64_t *expected)
{
    struct maker m;
    struct tmk_run *run = make_steps(&m, 20, left);
    struct tmk_steps *s = NULL;
    uint64_t picked[30];
    picked[n] = 77;
    assert_int_equal(tmk_steps_open(tmk_run_process(run, 0), 0, &s), 0);
    assert_int_equal(tmk_steps_pick(s, n, picked), n);
    assert_memory_equal(picked, expected, n * sizeof *picked);
    assert_int_equal(picked[n], 77);
    assert_int_equal(tmk_steps_pick(s, 30, picked), 21); /* all of them */
    assert_int_equal(picked[20], 20);
    tmk_steps_close(s);
    tmk_run_close(run);
    maker_remove(&m);
}

/* The first three, the last three and the largest between them; of equals the earlier. */
static void test_pick(void **state)
{
    (void)state;
    check_pick(left_growing, 10, (uint64_t[]){0, 1, 2, 10, 15, 16, 17, 18, 19, 20});
    check_pick(left_shrinking, 10, (uint64_t[]){0, 1, 2, 3, 4, 5, 10, 18, 19, 20});
    check_pick(left_steady, 9, (uint64_t[]){0, 1, 2, 3, 4, 10, 18, 19, 20});
}

/* ---- lines and marks ---- */

static void make_sites(struct maker *m)
{
    maker_open(m, 0);
    maker_string(m, 1, "a.c");
    maker_string(m, 2, "f");
    maker_string(m, 3, "epoch");
    maker_frame(m, 1, 1, 2, 10);
    maker_frame(m, 2, 1, 2, 20);
    maker_stack(m, 1, (uint32_t[]){1}, 1);
    maker_stack(m, 2, (uint32_t[]){1, 2}, 2); /* the same line, called from another */
    maker_stack(m, 3, (uint32_t[]){2}, 1);
    m->ns = 10;
    maker_alloc(m, 0, 0x10, 100, 1);
    maker_alloc(m, 0, 0x20, 200, 2);
    maker_alloc(m, 0, 0x30, 40, 3);
    maker_alloc(m, 0, 0x40, 7, 0);
    maker_alloc(m, 0, 0x50, 8, 77); /* a stack that is not defined */
    maker_free(m, 0, 0x10);
    maker_free(m, 0, 0x30);
    m->ns = 20;
    maker_step(m, 3);
    maker_mark(m, 3, "pass 1 is done");
    maker_mark(m, 0, "");
}

static void test_sites(void **state)
{
    (void)state;
    struct maker m;
    make_sites(&m);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_sites *s = NULL;
    struct tmk_replay rp;
    assert_int_equal(tmk_sites_open(p, &s), 0);
    struct tmk_visitor visitor = tmk_sites_visitor(s);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, &rp, NULL), 0);
    assert_int_equal(tmk_sites_finish(s, &rp, NULL), 0);
    tmk_replay_fini(&rp);
    assert_int_equal(tmk_sites_n(s), 3);
    const struct tmk_site_total *first = tmk_sites_get(s, 0), *last = tmk_sites_get(s, 2);
    assert_int_equal(first->site.line, 10);
    assert_int_equal(first->n_allocs, 2);
    assert_int_equal(first->bytes, 300);
    assert_int_equal(first->live_blocks, 1);
    assert_int_equal(first->live_bytes, 200);
    assert_int_equal(tmk_sites_get(s, 1)->site.line, 20);
    assert_int_equal(tmk_sites_get(s, 1)->live_blocks, 0);
    assert_false(last->is_known);
    assert_int_equal(last->n_allocs, 2);
    assert_int_equal(last->bytes, 15);
    uint64_t top[5];
    assert_int_equal(tmk_sites_top_live(s, 5, top), 2);
    assert_int_equal(top[0], 0);
    assert_int_equal(top[1], 2);
    tmk_sites_close(s);
    tmk_run_close(run);
    maker_remove(&m);
}

static void test_marks(void **state)
{
    (void)state;
    struct maker m;
    make_sites(&m);
    for (int i = 0; i < 1200; i++)
        maker_mark(&m, 3, "again");
    struct tmk_run *run = maker_finish(&m);
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_marks *marks = NULL;
    assert_int_equal(tmk_marks_open(p, &marks), 0);
    struct tmk_visitor visitor = tmk_marks_visitor(marks);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, NULL, NULL), 0);
    assert_int_equal(tmk_marks_finish(marks, NULL), 0);
    assert_int_equal(tmk_marks_n(marks), 1202);
    assert_int_equal(tmk_marks_n_kept(marks), 1000);
    assert_string_equal(tmk_marks_get(marks, 0)->name, "epoch");
    assert_string_equal(tmk_marks_get(marks, 0)->text, "pass 1 is done");
    assert_int_equal(tmk_marks_get(marks, 0)->step, 3);
    assert_int_equal(tmk_marks_get(marks, 0)->time_ns, 20);
    assert_null(tmk_marks_get(marks, 1)->name);
    assert_string_equal(tmk_marks_get(marks, 1)->text, "");
    tmk_marks_close(marks);
    tmk_run_close(run);
    maker_remove(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trend), cmocka_unit_test(test_peak_of_history),
        cmocka_unit_test(test_pick),  cmocka_unit_test(test_sites),
        cmocka_unit_test(test_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
