/* SPDX-License-Identifier: MIT */
/* Layers of a timeline: what was alive at each part's highest moment, by category, against what the
 * peak pass says of those moments; and what each stage needed. */
#include "maker.h"

#include "model/run.h"
#include "passes/group.h"
#include "passes/layers.h"
#include "passes/peak.h"
#include "passes/stages.h"
#include "passes/timeline.h"
#include "tidemark/tidemark.h"
#include "trace/replay.h"

enum { CUDA0 = 0x100, CUDA1 = 0x101 };

struct asked {
    struct tmk_run *run;
    struct tmk_timeline *timeline;
    struct tmk_labels labels;
    struct tmk_layers *block_layers;
    const struct tmk_timeline_part *parts;
};

static void sweep(struct tmk_process *p, struct tmk_visitor visitor, struct tmk_replay *rp)
{
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, rp, NULL), 0);
}

static struct asked ask(struct tmk_run *run, const uint64_t *times, uint32_t n, uint32_t device)
{
    struct asked a = {.run = run};
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_replay rp;
    assert_int_equal(tmk_timeline_open_at(times, n, &a.timeline), 0);
    sweep(p, tmk_timeline_visitor(a.timeline), &rp);
    assert_int_equal(tmk_timeline_finish(a.timeline), 0);
    assert_int_equal(tmk_labels_init(&a.labels, p, &rp.state), 0);
    tmk_replay_fini(&rp);
    a.parts = tmk_timeline_parts(a.timeline, device);
    assert_int_equal(
        tmk_layers_open(&a.labels, TMK_BY_CATEGORY, a.timeline, device, &a.block_layers), 0);
    sweep(p, tmk_layers_visitor(a.block_layers), &rp);
    assert_int_equal(tmk_layers_finish(a.block_layers, &rp, NULL), 0);
    tmk_replay_fini(&rp);
    return a;
}

static void end(struct asked *a)
{
    tmk_layers_close(a->block_layers);
    tmk_labels_fini(&a->labels);
    tmk_timeline_close(a->timeline);
    tmk_run_close(a->run);
}

static uint64_t bytes_of(const struct asked *a, const char *key, uint32_t part)
{
    for (uint32_t k = 0; k < tmk_layers_n(a->block_layers); k++) {
        const char *name = tmk_layers_key(a->block_layers, k);
        if (name && key ? strcmp(name, key) == 0 : name == key)
            return tmk_layers_bytes(a->block_layers, k)[part];
    }
    return 0;
}

static uint64_t sum_of(const struct asked *a, uint32_t part)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < tmk_layers_n(a->block_layers); k++)
        sum += tmk_layers_bytes(a->block_layers, k)[part];
    return sum;
}

/* Parts of unequal length; a tag that comes late, a block that lives in one part only, one that
 * another replaces, one on another device, and blocks that go with their device. */
static void test_by_hand(void **state)
{
    (void)state;
    static const uint64_t times[] = {0, 10, 100, 200, 1000};
    static const struct {
        uint64_t ns, parameter, gradient, unknown;
    } expected[] = {{5, 100, 0, 0}, {30, 100, 0, 57}, {150, 100, 0, 50}, {300, 100, 3, 50}};
    struct maker m;
    maker_open(&m, 0);
    m.ns = 5;
    maker_alloc(&m, CUDA0, 0x10, 100, 0);
    maker_alloc(&m, CUDA1, 0x10, 9999, 0);
    m.ns = 20;
    maker_alloc(&m, CUDA0, 0x20, 50, 0);
    m.ns = 30;
    maker_alloc(&m, CUDA0, 0x30, 7, 0);
    m.ns = 40;
    maker_free(&m, CUDA0, 0x30);
    m.ns = 150;
    maker_alloc(&m, CUDA0, 0x20, 50, 0); /* the free was lost */
    maker_tag(&m, CUDA0, 0x10, TIDEMARK_PARAMETER, 0);
    m.ns = 300;
    maker_alloc(&m, CUDA0, 0x40, 3, 0);
    maker_tag(&m, CUDA0, 0x40, TIDEMARK_GRADIENT, 0);
    m.ns = 400;
    maker_device_end(&m, CUDA0);
    struct asked a = ask(maker_finish(&m), times, 4, 0);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(a.parts[i].max_bytes,
                         expected[i].parameter + expected[i].gradient + expected[i].unknown);
        assert_int_equal(sum_of(&a, i), a.parts[i].max_bytes);
        assert_int_equal(bytes_of(&a, "parameter", i), expected[i].parameter);
        assert_int_equal(bytes_of(&a, "gradient", i), expected[i].gradient);
        assert_int_equal(bytes_of(&a, "unknown", i), expected[i].unknown);
    }
    assert_int_equal(a.parts[0].max_ns, 5);
    assert_int_equal(a.parts[1].max_ns, 30);
    assert_int_equal(a.parts[3].max_ns, 300);
    end(&a);
    maker_remove(&m);
}

/* ---- at random ---- */

static void make_at_random(struct maker *m, uint32_t n_events)
{
    enum { SLOTS = 400 };
    static bool live[SLOTS];
    uint64_t seed = 12345;
    memset(live, 0, sizeof live);
    for (uint32_t i = 0; i < n_events; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t slot = (uint32_t)(seed >> 33) % SLOTS;
        m->ns += 10;
        if (live[slot])
            maker_free(m, CUDA0, 0x1000 + slot);
        else
            maker_alloc(m, CUDA0, 0x1000 + slot, 1 + (seed >> 20) % 100000, 0);
        live[slot] = !live[slot];
        if (live[slot] && seed >> 60 < 12)
            maker_tag(m, CUDA0, 0x1000 + slot, (unsigned)(seed >> 60) % 9 + 1, 0);
    }
}

static void check_part(const struct asked *a, uint32_t i)
{
    struct tmk_moment moment = {
        .kind = TMK_MOMENT_TIME, .time_ns = a->parts[i].max_ns, .device = CUDA0};
    struct tmk_peak *k = maker_peak(a->run, moment);
    const struct tmk_peak_row *rows;
    uint64_t n, sum = 0;
    assert_int_equal(tmk_peak_bytes(k), a->parts[i].max_bytes);
    assert_int_equal(tmk_peak_group(k, TMK_BY_CATEGORY, &rows, &n, NULL), 0);
    for (uint64_t r = 0; r < n; r++) {
        assert_int_equal(bytes_of(a, rows[r].key, i), rows[r].bytes);
        sum += rows[r].bytes;
    }
    assert_int_equal(sum_of(a, i), sum);
    tmk_peak_close(k);
}

static void test_at_random(void **state)
{
    (void)state;
    enum { PARTS = 37 };
    uint64_t times[PARTS + 1];
    struct maker m;
    maker_open(&m, 0);
    make_at_random(&m, 20000);
    for (uint32_t i = 0; i <= PARTS; i++)
        times[i] = m.ns * i * i / (PARTS * PARTS);
    struct asked a = ask(maker_finish(&m), times, PARTS, 0);
    for (uint32_t i = 0; i < PARTS; i++)
        check_part(&a, i);
    end(&a);
    maker_remove(&m);
}

/* What was given up is not known, and is said to be: the layers still are what was allocated. */
static void test_with_a_gap(void **state)
{
    (void)state;
    enum { PARTS = 50 };
    uint64_t times[PARTS + 1];
    struct maker m;
    maker_open(&m, 1 << 20);
    make_at_random(&m, 600000);
    for (uint32_t i = 0; i <= PARTS; i++)
        times[i] = m.ns * i / PARTS;
    struct asked a = ask(maker_finish(&m), times, PARTS, 0);
    uint64_t known_ns = tmk_timeline_known_ns(a.timeline);
    assert_true(known_ns > 0);
    for (uint32_t i = 0; i < PARTS; i++) {
        assert_int_equal(sum_of(&a, i), a.parts[i].max_bytes);
        assert_int_equal(a.parts[i].max_bytes == 0, a.parts[i].end_ns <= known_ns);
    }
    end(&a);
    maker_remove(&m);
}

/* ---- stages ---- */

static void check_stage(const struct tmk_stages *s, uint32_t i, struct tmk_stage_row expected)
{
    const struct tmk_stage_row *row = tmk_stages_get(s, i);
    assert_string_equal(row->name, expected.name);
    assert_int_equal(row->peak_bytes, expected.peak_bytes);
    assert_int_equal(row->end_bytes, expected.end_bytes);
    assert_int_equal(row->allocated_bytes, expected.allocated_bytes);
    assert_int_equal(row->n_allocs, expected.n_allocs);
    assert_int_equal(row->n_times, expected.n_times);
    assert_int_equal(row->ns, expected.ns);
}

/* One inside another, one that two threads have open, one that does not end. */
static void make_stages(struct maker *m)
{
    enum { LOOP = 1, FORWARD, BACKWARD };
    maker_string(m, LOOP, "loop");
    maker_string(m, FORWARD, "forward");
    maker_string(m, BACKWARD, "backward");
    m->ns = 10;
    maker_alloc(m, CUDA0, 0x10, 100, 0);
    m->ns = 20;
    maker_push(m, TIDEMARK_STAGE, LOOP);
    m->ns = 30;
    maker_push(m, TIDEMARK_STAGE, FORWARD);
    maker_alloc(m, CUDA0, 0x20, 40, 0);
    maker_alloc(m, CUDA1, 0x20, 7777, 0);
    m->ns = 50;
    maker_pop(m, TIDEMARK_STAGE);
    m->ns = 60;
    maker_push(m, TIDEMARK_STAGE, BACKWARD);
    m->thread = 2;
    m->ns = 65;
    maker_push(m, TIDEMARK_STAGE, BACKWARD);
    maker_alloc(m, CUDA0, 0x30, 5, 0);
    maker_free(m, CUDA0, 0x20);
    m->ns = 70;
    maker_pop(m, TIDEMARK_STAGE);
    m->thread = 1;
    maker_alloc(m, CUDA0, 0x40, 1, 0);
    m->ns = 90;
    maker_pop(m, TIDEMARK_STAGE);
    m->ns = 95;
    maker_push(m, TIDEMARK_STAGE, FORWARD);
    maker_free(m, CUDA0, 0x30);
    m->ns = 100;
    maker_free(m, CUDA0, 0x40);
}

static void test_stages(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_stages *s = NULL;
    struct tmk_replay rp;
    maker_open(&m, 0);
    make_stages(&m);
    struct tmk_run *run = maker_finish(&m);
    assert_int_equal(tmk_stages_open(tmk_run_process(run, 0), CUDA0, &s), 0);
    sweep(tmk_run_process(run, 0), tmk_stages_visitor(s), &rp);
    assert_int_equal(tmk_stages_finish(s, &rp, NULL), 0);
    tmk_replay_fini(&rp);
    assert_int_equal(tmk_stages_n(s), 4);
    check_stage(s, 0, (struct tmk_stage_row){"other", 100, 100, 100, 1, 0, 0});
    check_stage(s, 1, (struct tmk_stage_row){"loop", 145, 100, 0, 0, 1, 80});
    check_stage(s, 2, (struct tmk_stage_row){"forward", 140, 100, 40, 1, 2, 25});
    check_stage(s, 3, (struct tmk_stage_row){"backward", 145, 106, 6, 2, 1, 30});
    tmk_stages_close(s);
    tmk_run_close(run);
    maker_remove(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_at_random),
        cmocka_unit_test(test_with_a_gap),
        cmocka_unit_test(test_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
