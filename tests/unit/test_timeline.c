/* SPDX-License-Identifier: MIT */
/* Timelines: most, least and last of each part against a model that looks at every moment. */
#include "maker.h"
#include "model/run.h"
#include "trace/layout.h"
#include "trace/replay.h"

#include "passes/timeline.h"

enum { CUDA0 = 0x100 };

static struct tmk_timeline *ask(struct tmk_run *run, uint64_t start_ns, uint64_t end_ns, uint32_t n)
{
    struct tmk_timeline *t = NULL;
    assert_int_equal(tmk_timeline_open(start_ns, end_ns, n, &t), 0);
    struct tmk_visitor visitor = tmk_timeline_visitor(t);
    assert_int_equal(tmk_process_sweep(tmk_run_process(run, 0), &visitor, 1, NULL, NULL), 0);
    assert_int_equal(tmk_timeline_finish(t), 0);
    return t;
}

static void check_part(const struct tmk_timeline *t, uint32_t i, uint64_t start_ns, uint64_t end_ns,
                       uint64_t most, uint64_t least, uint64_t last, int64_t step)
{
    const struct tmk_timeline_part *part = &tmk_timeline_parts(t, 0)[i];
    assert_int_equal(part->start_ns, start_ns);
    assert_int_equal(part->end_ns, end_ns);
    assert_int_equal(part->max_bytes, most);
    assert_int_equal(part->min_bytes, least);
    assert_int_equal(part->last_bytes, last);
    assert_int_equal(part->step, step);
}

static void make_by_hand(struct maker *m)
{
    m->ns = 10;
    maker_alloc(m, CUDA0, 0x10, 100, 0);
    m->ns = 25;
    maker_step(m, 1);
    maker_alloc(m, CUDA0, 0x20, 50, 0);
    m->ns = 28;
    maker_free(m, CUDA0, 0x10);
    m->ns = 90;
    maker_alloc(m, CUDA0, 0x30, 1, 0);
    m->ns = 100;
    maker_free(m, CUDA0, 0x20);
}

/* What is used of the device: not known before the first look, then as it was last seen. */
static void test_used(void **state)
{
    (void)state;
    static const uint64_t most[] = {0, 900, 900, 300, 300};
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    maker_alloc(&m, CUDA0, 0x10, 100, 0);
    maker_sample(&m, CUDA0 + 1, 1000, 5, 5, 5); /* nothing was ever made there */
    m.ns = 30;
    maker_sample(&m, CUDA0, 1000, 200, UINT64_MAX, UINT64_MAX);
    maker_sample(&m, CUDA0, 1000, 900, 800, 100);
    maker_sample(&m, CUDA0, 1000, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    m.ns = 45;
    maker_sample(&m, CUDA0, 1000, 300, 200, 100);
    m.ns = 100;
    maker_free(&m, CUDA0, 0x10);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_timeline *t = ask(run, 0, 100, 5);
    assert_int_equal(tmk_timeline_n_devices(t), 1);
    for (uint32_t i = 0; i < 5; i++) {
        const struct tmk_timeline_part *part = &tmk_timeline_parts(t, 0)[i];
        assert_int_equal(part->has_used, i > 0);
        assert_int_equal(part->max_used_bytes, most[i]);
    }
    tmk_timeline_close(t);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Reserved bytes: not known before they are first said, then held. */
static void test_reserved(void **state)
{
    (void)state;
    static const uint64_t most[] = {0, 900, 900, 300, 300};
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    maker_alloc(&m, CUDA0, 0x10, 100, 0);
    m.ns = 30;
    maker_reserved(&m, CUDA0, 200);
    maker_reserved(&m, CUDA0, 900);
    m.ns = 45;
    maker_reserved(&m, CUDA0, 300);
    m.ns = 100;
    maker_device_end(&m, CUDA0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_timeline *t = ask(run, 0, 100, 5);
    const struct tmk_timeline_part *parts = tmk_timeline_parts(t, 0);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(parts[i].has_reserved, i > 0);
        assert_int_equal(parts[i].max_reserved_bytes, most[i]);
    }
    assert_int_equal(parts[4].max_bytes, 100);
    assert_int_equal(parts[4].last_bytes, 0); /* the device ended */
    tmk_timeline_close(t);
    tmk_run_close(run);
    maker_remove(&m);
}

static void test_parts(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_by_hand(&m);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_timeline *t = ask(run, 0, 100, 5);
    assert_int_equal(tmk_timeline_n_devices(t), 1);
    assert_int_equal(tmk_timeline_device(t, 0), CUDA0);
    assert_int_equal(tmk_timeline_known_ns(t), 0);
    check_part(t, 0, 0, 20, 100, 0, 100, TMK_NO_STEP);
    check_part(t, 1, 20, 40, 150, 50, 50, 1);
    check_part(t, 2, 40, 60, 50, 50, 50, 1); /* nothing happens, memory is held */
    check_part(t, 3, 60, 80, 50, 50, 50, 1);
    check_part(t, 4, 80, 100, 51, 1, 1, 1); /* the end itself belongs to the last part */
    tmk_timeline_close(t);
    tmk_run_close(run);
    maker_remove(&m);
}

/* A span inside the trace: what was before counts as the value at its start, what is after not. */
static void test_span(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_by_hand(&m);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_timeline *t = ask(run, 26, 36, 2);
    check_part(t, 0, 26, 31, 150, 50, 50, 1);
    check_part(t, 1, 31, 36, 50, 50, 50, 1);
    tmk_timeline_close(t);
    t = ask(run, 1000, 2000, 1); /* after everything */
    check_part(t, 0, 1000, 2000, 1, 1, 1, 1);
    tmk_timeline_close(t);
    tmk_run_close(run);
    maker_remove(&m);
}

static void test_no_span(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 7;
    maker_alloc(&m, 0, 0x10, 100, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_timeline *t = ask(run, 7, 7, 3);
    assert_int_equal(tmk_timeline_n_parts(t), 3);
    check_part(t, 2, 7, 7, 100, 0, 100, TMK_NO_STEP);
    tmk_timeline_close(t);
    t = ask(run, 9, 3, 1); /* the wrong way round is no span either */
    check_part(t, 0, 9, 9, 100, 100, 100, TMK_NO_STEP);
    tmk_timeline_close(t);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- against the model ---- */

enum { END_NS = 4000, N_EVENTS = 900, N_DEVICES = 2 };

/* Values after each nanosecond, the most and least during it. */
struct model {
    uint64_t after[N_DEVICES][END_NS + 1];
    uint64_t most[N_DEVICES][END_NS + 1];
    uint64_t least[N_DEVICES][END_NS + 1];
};

static void note(struct model *model, int d, uint64_t from_ns, uint64_t bytes)
{
    if (bytes > model->most[d][from_ns])
        model->most[d][from_ns] = bytes;
    if (bytes < model->least[d][from_ns])
        model->least[d][from_ns] = bytes;
    for (uint64_t ns = from_ns; ns <= END_NS; ns++) {
        model->after[d][ns] = bytes;
        if (ns > from_ns)
            model->most[d][ns] = model->least[d][ns] = bytes;
    }
}

static void make_random(struct maker *m, struct model *model)
{
    uint64_t random = 11, now[N_DEVICES] = {0};
    uint64_t sizes[N_DEVICES][64] = {{0}};
    for (int i = 0; i < N_EVENTS; i++) {
        m->ns += plain_random(&random) % 9;
        int d = i < 300 ? 0 : (int)(plain_random(&random) % N_DEVICES);
        uint32_t slot = plain_random(&random) % 64;
        uint64_t size = 1 + plain_random(&random) % 1000;
        if (sizes[d][slot]) {
            maker_free(m, CUDA0 + (unsigned)d, 64 * (slot + 1));
            now[d] -= sizes[d][slot];
            sizes[d][slot] = 0;
        } else {
            maker_alloc(m, CUDA0 + (unsigned)d, 64 * (slot + 1), size, 0);
            now[d] += size;
            sizes[d][slot] = size;
        }
        note(model, d, m->ns, now[d]);
    }
    assert_true(m->ns < END_NS);
}

/* A part holds the value before it and all changes in [start, end), the last part its end too. */
static void check_random(const struct tmk_timeline *t, const struct model *model)
{
    uint32_t n = tmk_timeline_n_parts(t);
    for (int d = 0; d < N_DEVICES; d++) {
        for (uint32_t i = 0; i < n; i++) {
            const struct tmk_timeline_part *part = &tmk_timeline_parts(t, (uint32_t)d)[i];
            uint64_t end = i + 1 == n ? part->end_ns + 1 : part->end_ns;
            uint64_t most = part->start_ns ? model->after[d][part->start_ns - 1] : 0;
            uint64_t least = most;
            for (uint64_t ns = part->start_ns; ns < end; ns++) {
                most = model->most[d][ns] > most ? model->most[d][ns] : most;
                least = model->least[d][ns] < least ? model->least[d][ns] : least;
            }
            assert_int_equal(part->max_bytes, most);
            assert_int_equal(part->min_bytes, least);
            assert_int_equal(part->last_bytes, model->after[d][end - 1]);
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    struct maker m;
    struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    maker_open(&m, 0);
    make_random(&m, model);
    struct tmk_run *run = maker_finish(&m);
    static const uint32_t counts[] = {1, 2, 3, 7, 64, 1000, END_NS};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct tmk_timeline *t = ask(run, 0, END_NS, counts[i]);
        assert_int_equal(tmk_timeline_n_devices(t), N_DEVICES);
        check_random(t, model);
        tmk_timeline_close(t);
    }
    tmk_run_close(run);
    maker_remove(&m);
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserved), cmocka_unit_test(test_used),
        cmocka_unit_test(test_parts),    cmocka_unit_test(test_span),
        cmocka_unit_test(test_no_span),  cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
