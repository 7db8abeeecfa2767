/* SPDX-License-Identifier: MIT */
/* Fragmentation: gaps between blocks that are laid out by hand, and at random against a map. */
#include "kit/amount.h"
#include "maker.h"
#include "model/run.h"
#include "passes/frag/frag_moment.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/replay.h"
#include "trace/segments.h"

#include "passes/frag/fragmentation.h"

enum { CUDA0 = 0x100, CUDA1 = 0x101 };
#define MIB ((uint64_t)1 << 20)

static void make_segment(struct maker *m, unsigned device, unsigned kind, uint64_t address,
                         uint64_t size)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_SEGMENT,
                                    .device = (uint16_t)device,
                                    .stream = (uint16_t)kind,
                                    .a = address,
                                    .b = size});
}

static void end_segment(struct maker *m, unsigned device, unsigned kind, uint64_t address)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_SEGMENT_END,
                                    .device = (uint16_t)device,
                                    .stream = (uint16_t)kind,
                                    .a = address});
}

static void make_block(struct maker *m, uint64_t address, uint64_t size, uint16_t stream)
{
    maker_add(
        m, (struct tmk_input){
               .kind = TMK_KIND_ALLOC, .device = CUDA0, .a = address, .b = size, .stream = stream});
}

static struct tmk_fragmentation *ask(struct tmk_run *run, struct tmk_frag_moment moment)
{
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_fragmentation *f = NULL;
    struct tmk_replay rp;
    assert_int_equal(tmk_fragmentation_open(p, &moment, &f), 0);
    struct tmk_visitor visitor = tmk_fragmentation_visitor(f);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, &rp, NULL), 0);
    assert_int_equal(tmk_fragmentation_finish(f, &rp, NULL), 0);
    tmk_replay_fini(&rp);
    return f;
}

static const struct tmk_frag_moment worst = {.kind = TMK_FRAG_WORST};

static void expect_sum(const struct tmk_frag_sum *sum, uint64_t reserved, uint64_t free,
                       uint64_t largest, uint64_t allocatable, uint64_t n_free)
{
    assert_int_equal(sum->reserved_bytes, reserved);
    assert_int_equal(sum->allocated_bytes, reserved - free);
    assert_int_equal(sum->free_bytes, free);
    assert_int_equal(sum->largest_bytes, largest);
    assert_int_equal(sum->allocatable_bytes, allocatable);
    assert_int_equal(sum->n_free, n_free);
}

/* A small segment, two large ones side by side, of which one is empty, and another stream's. */
static void test_layout(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 2 * MIB, 2 * MIB);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 100 * MIB, 20 * MIB);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 120 * MIB, 20 * MIB);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 300 * MIB, 30 * MIB);
    make_segment(&m, CUDA0, TMK_SEGMENT_POOL, 77, 64 * MIB); /* nothing lies in it */
    make_segment(&m, CUDA1, TMK_SEGMENT_DEVICE, 500 * MIB, 20 * MIB);
    maker_sample(&m, CUDA0, 500 * MIB, 160 * MIB, UINT64_MAX, UINT64_MAX);
    make_block(&m, 2 * MIB, 512, 0);
    make_block(&m, 102 * MIB, 3 * MIB, 0);
    make_block(&m, 115 * MIB, 5 * MIB, 0);
    make_block(&m, 310 * MIB, 20 * MIB, 3);
    make_block(&m, 900 * MIB, 7, 0); /* in no segment */
    maker_reserved(&m, CUDA0, 72 * MIB);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_fragmentation *f = ask(run, worst);
    assert_int_equal(tmk_fragmentation_n(f), 1); /* on the other one nothing was ever allocated */
    const struct tmk_frag_device *d = tmk_fragmentation_get(f, 0);
    assert_int_equal(d->device, CUDA0);
    assert_true(d->has_segments);
    expect_sum(&d->sum, 72 * MIB, 44 * MIB - 512, 20 * MIB, 20 * MIB, 5);
    assert_int_equal(d->sum.whole_bytes, 20 * MIB);
    assert_int_equal(d->sum.n_segments, 4);
    assert_int_equal(d->sum.n_blocks, 4);
    assert_int_equal(d->outside_bytes, 7);
    assert_int_equal(d->capacity_bytes, 500 * MIB);
    assert_int_equal(d->allocatable_new_bytes, 360 * MIB);
    assert_int_equal(d->n_pools, 4);
    expect_sum(&d->pools[0].sum, 2 * MIB, 2 * MIB - 512, 2 * MIB - 512, MIB, 1);
    assert_int_equal(d->pools[0].pool, TMK_FRAG_SMALL);
    expect_sum(&d->pools[1].sum, 20 * MIB, 12 * MIB, 10 * MIB, 10 * MIB, 2);
    expect_sum(&d->pools[2].sum, 30 * MIB, 10 * MIB, 10 * MIB, 10 * MIB, 1);
    assert_int_equal(d->pools[2].stream, 3);
    expect_sum(&d->pools[3].sum, 20 * MIB, 20 * MIB, 20 * MIB, 20 * MIB, 1);
    assert_false(d->pools[3].has_stream); /* empty, and there are two streams */
    const struct tmk_frag_segment *pinned[2];
    assert_int_equal(tmk_fragmentation_pinned(f, 0, pinned, 2), 2);
    assert_int_equal(pinned[0]->address, 100 * MIB);
    assert_int_equal(pinned[0]->free_bytes, 12 * MIB);
    assert_int_equal(pinned[0]->n_blocks, 2);
    assert_int_equal(tmk_fragmentation_block(f, 0, pinned[0]->first_block + 1)->size_bytes,
                     5 * MIB);
    assert_int_equal(pinned[1]->address, 2 * MIB);
    tmk_fragmentation_close(f);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Mappings of an expandable segment: joined; its whole free pages can go back. */
static void test_expandable(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    for (uint64_t i = 0; i < 4; i++) {
        make_segment(&m, CUDA0, TMK_SEGMENT_PHYSICAL, i + 1, 20 * MIB);
        make_segment(&m, CUDA0, TMK_SEGMENT_MAPPING, (1000 + 20 * i) * MIB, 20 * MIB);
    }
    make_segment(&m, CUDA0, TMK_SEGMENT_MAPPING, 1200 * MIB, 20 * MIB); /* behind a hole */
    make_block(&m, 1000 * MIB, 10 * MIB, 0);
    make_block(&m, 1070 * MIB, 10 * MIB, 0);
    make_block(&m, 1200 * MIB, MIB, 0);
    maker_reserved(&m, CUDA0, 100 * MIB);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_fragmentation *f = ask(run, worst);
    const struct tmk_frag_device *d = tmk_fragmentation_get(f, 0);
    assert_int_equal(d->sum.n_segments, 2);
    expect_sum(&d->sum, 100 * MIB, 79 * MIB, 60 * MIB, 60 * MIB, 2);
    assert_int_equal(d->sum.whole_bytes, 40 * MIB); /* pages 2 and 3 of the first */
    assert_true(d->segments[0].is_expandable);
    assert_int_equal(d->segments[0].size_bytes, 80 * MIB);
    assert_int_equal(d->allocatable_new_bytes, TMK_BYTES_UNKNOWN);
    tmk_fragmentation_close(f);
    tmk_run_close(run);
    maker_remove(&m);
}

/* The moment: a refusal before all else, then the most reserved; a time; a step. */
static void test_moments(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 100 * MIB, 20 * MIB);
    m.ns = 10;
    make_block(&m, 100 * MIB, 5 * MIB, 0);
    maker_reserved(&m, CUDA0, 20 * MIB);
    m.ns = 20;
    maker_step(&m, 1);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 200 * MIB, 30 * MIB);
    make_block(&m, 200 * MIB, 30 * MIB, 0);
    maker_reserved(&m, CUDA0, 50 * MIB);
    m.ns = 30;
    maker_step(&m, 2);
    make_block(&m, 105 * MIB, 10 * MIB, 0);
    m.ns = 40;
    maker_free(&m, CUDA0, 105 * MIB);
    maker_free(&m, CUDA0, 200 * MIB);
    end_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 200 * MIB);
    maker_reserved(&m, CUDA0, 20 * MIB);
    m.ns = 50;
    maker_flush(&m);
    maker_oom(&m, CUDA0, 40 * MIB, 0, 0);
    m.ns = 60;
    maker_free(&m, CUDA0, 100 * MIB);
    struct tmk_run *run = maker_finish(&m);
    struct {
        struct tmk_frag_moment moment;
        uint64_t ns, reserved, free, largest;
        bool is_oom;
    } cases[] = {
        {worst, 50, 20 * MIB, 15 * MIB, 15 * MIB, true},
        {{.kind = TMK_FRAG_TIME, .time_ns = 25}, 20, 50 * MIB, 15 * MIB, 15 * MIB, false},
        {{.kind = TMK_FRAG_TIME, .time_ns = 35}, 30, 50 * MIB, 5 * MIB, 5 * MIB, false},
        {{.kind = TMK_FRAG_TIME, .time_ns = 99}, 60, 20 * MIB, 20 * MIB, 20 * MIB, false},
        {{.kind = TMK_FRAG_STEP, .step = 1}, 20, 50 * MIB, 15 * MIB, 15 * MIB, false},
        {{.kind = TMK_FRAG_STEP, .step = 2}, 30, 50 * MIB, 5 * MIB, 5 * MIB, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_fragmentation *f = ask(run, cases[i].moment);
        assert_int_equal(tmk_fragmentation_n(f), 1);
        const struct tmk_frag_device *d = tmk_fragmentation_get(f, 0);
        assert_int_equal(d->time_ns, cases[i].ns);
        assert_int_equal(d->sum.reserved_bytes, cases[i].reserved);
        assert_int_equal(d->sum.free_bytes, cases[i].free);
        assert_int_equal(d->sum.largest_bytes, cases[i].largest);
        assert_int_equal(d->is_oom, cases[i].is_oom);
        assert_int_equal(d->request_bytes, cases[i].is_oom ? 40 * MIB : 0);
        tmk_fragmentation_close(f);
    }
    struct tmk_fragmentation *f =
        ask(run, (struct tmk_frag_moment){.kind = TMK_FRAG_STEP, .step = 7});
    assert_int_equal(tmk_fragmentation_n(f), 0);
    tmk_fragmentation_close(f);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Only totals are told; and of the host nothing is. */
static void test_unknown(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_block(&m, 100 * MIB, 5 * MIB, 0);
    maker_reserved(&m, CUDA0, 20 * MIB);
    maker_alloc(&m, TIDEMARK_HOST, 0x100, 99, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_fragmentation *f = ask(run, worst);
    assert_int_equal(tmk_fragmentation_n(f), 1);
    const struct tmk_frag_device *d = tmk_fragmentation_get(f, 0);
    assert_false(d->has_segments);
    assert_int_equal(d->sum.reserved_bytes, 20 * MIB);
    assert_int_equal(d->sum.free_bytes, 15 * MIB);
    assert_int_equal(d->sum.largest_bytes, TMK_BYTES_UNKNOWN);
    assert_int_equal(d->sum.allocatable_bytes, TMK_BYTES_UNKNOWN);
    assert_int_equal(d->sum.whole_bytes, TMK_BYTES_UNKNOWN);
    tmk_fragmentation_close(f);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- at random ---- */

enum { N_PLACES = 16, N_SLOTS = 20, N_TURNS = 4000, EVERY = 173 };

struct map {
    bool has_segment[N_PLACES];
    uint8_t owner[N_PLACES][N_SLOTS]; /* slot + 1 that a block begins at */
};

static struct map maps[N_TURNS];

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static uint64_t address_of(unsigned place, unsigned slot)
{
    return (uint64_t)(place + 1) * 1000 * MIB + slot * MIB;
}

static bool is_empty(const struct map *map, unsigned place)
{
    for (unsigned i = 0; i < N_SLOTS; i++)
        if (map->owner[place][i])
            return false;
    return true;
}

/* Blocks of one to six slots; segments come when needed and go when empty, now and then. */
static void take_turn(struct maker *m, struct map *map, uint32_t *seed)
{
    unsigned place = next_random(seed) % N_PLACES, slot = next_random(seed) % N_SLOTS;
    unsigned n = 1 + next_random(seed) % 6;
    if (!map->has_segment[place]) {
        make_segment(m, CUDA0, TMK_SEGMENT_DEVICE, address_of(place, 0), N_SLOTS * MIB);
        map->has_segment[place] = true;
    } else if (is_empty(map, place) && n < 3) {
        end_segment(m, CUDA0, TMK_SEGMENT_DEVICE, address_of(place, 0));
        map->has_segment[place] = false;
        return;
    }
    if (map->owner[place][slot]) {
        unsigned first = map->owner[place][slot] - 1u;
        maker_free(m, CUDA0, address_of(place, first));
        for (unsigned i = 0; i < N_SLOTS; i++)
            if (map->owner[place][i] == first + 1)
                map->owner[place][i] = 0;
        return;
    }
    unsigned room = 0;
    while (room < n && slot + room < N_SLOTS && !map->owner[place][slot + room])
        room++;
    make_block(m, address_of(place, slot), room * MIB, 0);
    for (unsigned i = 0; i < room; i++)
        map->owner[place][slot + i] = (uint8_t)(slot + 1);
}

static void check_map(struct tmk_run *run, const struct map *map, uint64_t ns)
{
    uint64_t reserved = 0, free = 0, largest = 0, n_free = 0;
    for (unsigned place = 0; place < N_PLACES; place++) {
        uint64_t run_length = 0;
        for (unsigned i = 0; map->has_segment[place] && i < N_SLOTS; i++) {
            bool is_free = !map->owner[place][i];
            reserved += MIB;
            free += is_free ? MIB : 0;
            n_free += is_free && run_length == 0;
            run_length = is_free ? run_length + MIB : 0;
            largest = run_length > largest ? run_length : largest;
        }
    }
    struct tmk_fragmentation *f =
        ask(run, (struct tmk_frag_moment){.kind = TMK_FRAG_TIME, .time_ns = ns});
    assert_int_equal(tmk_fragmentation_n(f), 1);
    expect_sum(&tmk_fragmentation_get(f, 0)->sum, reserved, free, largest,
               largest > MIB ? largest : 0, n_free);
    tmk_fragmentation_close(f);
}

static void test_random(void **state)
{
    (void)state;
    struct maker m;
    uint32_t seed = 11;
    static struct map map;
    maker_open(&m, 0);
    for (uint64_t i = 0; i < N_TURNS; i++) {
        m.ns = 100 * i;
        take_turn(&m, &map, &seed);
        maps[i] = map;
    }
    struct tmk_run *run = maker_finish(&m);
    for (uint64_t i = EVERY; i < N_TURNS; i += EVERY)
        check_map(run, &maps[i], 100 * i + 50);
    tmk_run_close(run);
    maker_remove(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),  cmocka_unit_test(test_expandable),
        cmocka_unit_test(test_moments), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
