/* SPDX-License-Identifier: MIT */
/* test_valid_model.c - the invariants of the caching allocator's model, its sets and its addresses:
 * each of them, broken, is found. */
#include "breaking.h"

#include "model/alloc_conf.h"
#include "model/caching_allocator.h"
#include "model/caching_internal.h"
#include "model/driver_space.h"
#include "model/free_set.h"

static const uint64_t mib = 1ull << 20;

/* ---- sets of free blocks ---- */

static void free_set(void **unused)
{
    (void)unused;
    struct tmk_free_set s = {0};
    for (uint32_t i = 1; i <= 100; i++)
        assert_int_equal(tmk_free_set_add(&s, 512, i * 512, i), 0);
    struct tmk_free_leaf *first = s.leaves[0], *second = s.leaves[1];
    BREAK(s, s.n_made = 1, tmk_free_set_is_valid(&s));
    BREAK(s, s.room = 1, tmk_free_set_is_valid(&s));
    BREAK(s, s.n++, tmk_free_set_is_valid(&s));
    BREAK(*first, first->n = 0, tmk_free_set_is_valid(&s));
    BREAK(*first, first->n = TMK_FREE_SET_LEAF + 1, tmk_free_set_is_valid(&s));
    BREAK(*first, first->n--, tmk_free_set_is_valid(&s));
    BREAK(*first, first->keys[1] = first->keys[0], tmk_free_set_is_valid(&s));
    BREAK(*first, first->keys[first->n - 1].size_bytes++, tmk_free_set_is_valid(&s));
    BREAK(s.firsts[1], s.firsts[1].place++, tmk_free_set_is_valid(&s));
    BREAK(*second, second->keys[0].size_bytes = 0, tmk_free_set_is_valid(&s));
    tmk_free_set_fini(&s);
    must_have_failed("src/model/free_set_valid.c");
}

/* ---- addresses ---- */

static void driver_space(void **unused)
{
    (void)unused;
    struct tmk_driver_space s = {0};
    uint64_t high = tmk_driver_space_alloc(&s, 30 * mib),
             low = tmk_driver_space_alloc(&s, 40 * mib);
    assert_true(low < high);
    assert_int_equal(tmk_driver_space_alloc(&s, 2 * mib), low + 40 * mib);
    struct tmk_space_piece *range = s.ranges.pieces, *segment = s.segments.pieces;
    BREAK(s, s.ranges.room = 1, tmk_driver_space_is_valid(&s));
    BREAK(s, s.segments.n++, tmk_driver_space_is_valid(&s));
    BREAK(range[0], range[0].address = high + 1, tmk_driver_space_is_valid(&s));
    BREAK(range[0], range[0].size_bytes += 1, tmk_driver_space_is_valid(&s));
    BREAK(range[0], range[0].size_bytes = 40 * mib, tmk_driver_space_is_valid(&s));
    BREAK(segment[0], segment[0].address = low + 41 * mib, tmk_driver_space_is_valid(&s));
    BREAK(segment[0], segment[0].address = low - 1, tmk_driver_space_is_valid(&s));
    BREAK(segment[2], segment[2].address = high + 32 * mib, tmk_driver_space_is_valid(&s));
    BREAK(segment[0], segment[0].size_bytes++, tmk_driver_space_is_apart(&s));
    tmk_driver_space_fini(&s);
    must_have_failed("src/model/driver_space_valid.c");
}

/* ---- the allocator ---- */

static struct tmk_caching_allocator *open_model(const char *conf)
{
    struct tmk_caching_setup setup = {.limit_bytes = TMK_ALLOC_NO_BOUND, .card_bytes = 64 * mib};
    struct tmk_caching_allocator *a = NULL;
    assert_int_equal(tmk_alloc_conf_parse(conf, &setup.conf, NULL), 0);
    assert_int_equal(tmk_caching_open(&setup, &a), 0);
    return a;
}

static struct caching_block *take(struct tmk_caching_allocator *a, uint64_t bytes,
                                  uint32_t *ret_number)
{
    assert_int_equal(tmk_caching_malloc(a, bytes, 0, ret_number), 1);
    return caching_block_at(a, *ret_number);
}

/* A segment of 20 MiB: allocated, free, pending, allocated, free. Another one was given back. */
struct scene {
    struct tmk_caching_allocator *a;
    uint32_t first, hole, pending, second, dead;
};

static struct scene make_scene(void)
{
    struct scene s = {.a = open_model("")};
    take(s.a, 3 * mib, &s.first);
    take(s.a, 2 * mib, &s.hole);
    take(s.a, 4 * mib, &s.pending);
    take(s.a, 5 * mib, &s.second);
    take(s.a, 40 * mib, &s.dead);
    assert_int_equal(tmk_caching_free(s.a, s.dead), 0);
    assert_int_equal(tmk_caching_empty_cache(s.a), 0);
    assert_int_equal(tmk_caching_free(s.a, s.hole), 0);
    assert_int_equal(tmk_caching_free_requested(s.a, s.pending), 0);
    return s;
}

#define BREAK_MODEL(object, change) BREAK(object, change, tmk_caching_is_valid(a))

static void blocks(void **unused)
{
    (void)unused;
    struct scene s = make_scene();
    struct tmk_caching_allocator *a = s.a;
    struct caching_block *first = caching_block_at(a, s.first), *hole = caching_block_at(a, s.hole);
    struct caching_block *pending = caching_block_at(a, s.pending),
                         *second = caching_block_at(a, s.second);
    BREAK_MODEL(*a, a->block_room = 2);
    BREAK_MODEL(a->blocks[0], a->blocks[0].size_bytes = 512);
    BREAK_MODEL(*first, first->address += 1);
    BREAK_MODEL(*first, first->size_bytes += 1);
    BREAK_MODEL(*first, first->address += TMK_FREE_SET_ADDRESS_END);
    BREAK_MODEL(*first, first->lane = 2);
    BREAK_MODEL(*first, first->is_mapped = false);
    BREAK_MODEL(*first, first->is_pending = true);
    BREAK_MODEL(*first, first->segment_start = 512);
    BREAK_MODEL(*first, first->next = 999);
    BREAK_MODEL(*first, first->next = 0);
    BREAK_MODEL(*first, first->next = s.pending);
    BREAK_MODEL(*hole, hole->prev = 0);
    BREAK_MODEL(*hole, hole->address += 512);
    BREAK_MODEL(*hole, hole->lane = 1);
    BREAK_MODEL(*first, first->size_bytes -= 512);
    BREAK_MODEL(*first, first->is_allocated = false);   /* beside the hole */
    BREAK_MODEL(*pending, pending->is_pending = false); /* the same */
    BREAK_MODEL(*second, second->is_allocated = false); /* beside what is left */
    BREAK_MODEL(*hole, hole->is_allocated = true);      /* in a set */
    tmk_caching_close(a);
}

static void dead_blocks(void **unused)
{
    (void)unused;
    struct scene s = make_scene();
    struct tmk_caching_allocator *a = s.a;
    uint32_t dead = a->dead;
    BREAK_MODEL(*a, a->dead = 0);
    BREAK_MODEL(*a, a->dead = s.first);
    BREAK_MODEL(*a, a->dead = 999);
    BREAK_MODEL(a->blocks[dead], a->blocks[dead].next = dead);
    tmk_caching_close(a);
}

static void sets_and_sums(void **unused)
{
    (void)unused;
    struct scene s = make_scene();
    struct tmk_caching_allocator *a = s.a;
    struct caching_lane *lane = &a->lanes[0];
    BREAK_MODEL(*a, a->lane_room = 1);
    BREAK_MODEL(*lane, lane->is_small = true);
    BREAK_MODEL(*lane, lane->blocks.n++);
    BREAK_MODEL(a->lanes[1].unmapped, a->lanes[1].unmapped.n++);
    tmk_free_set_remove(&lane->blocks, 2 * mib, caching_block_at(a, s.hole)->address, s.hole);
    assert_false(tmk_caching_is_valid(a));
    assert_int_equal(
        tmk_free_set_add(&lane->blocks, 2 * mib, caching_block_at(a, s.hole)->address, s.first),
        0); /* under another's number */
    assert_false(tmk_caching_is_valid(a));
    tmk_free_set_remove(&lane->blocks, 2 * mib, caching_block_at(a, s.hole)->address, s.first);
    assert_int_equal(tmk_caching_insert(a, s.hole), 0);
    assert_int_equal(tmk_free_set_add(&lane->blocks, 4 * mib, 1ull << 40, s.first), 0);
    assert_false(tmk_caching_is_valid(a)); /* a set has one too many */
    note_failed();
    tmk_free_set_remove(&lane->blocks, 4 * mib, 1ull << 40, s.first);
    BREAK_MODEL(*a, a->n_pending = 0);
    BREAK_MODEL(*a, a->pending_room = 0);
    BREAK_MODEL(a->pending[0], a->pending[0] = s.first);
    struct tmk_caching_stats *stats = &a->stats;
    BREAK_MODEL(*stats, stats->allocated_bytes++);
    BREAK_MODEL(*stats, stats->reserved_bytes++);
    BREAK_MODEL(*a, a->total_bytes++);
    BREAK_MODEL(*stats, stats->n_segments++);
    BREAK_MODEL(*stats, stats->peak_segments = 0);
    BREAK_MODEL(*stats, stats->peak_allocated_bytes = 0);
    BREAK_MODEL(*stats, stats->peak_reserved_bytes = 0);
    BREAK_MODEL(*a, a->n_placed = 1);
    struct tmk_space_piece *piece = a->space.segments.pieces;
    BREAK_MODEL(a->space, a->space.segments.n = 0);
    BREAK_MODEL(*piece, piece->is_others = true);
    BREAK_MODEL(*piece, piece->size_bytes++);
    BREAK_MODEL(a->space, a->space.ranges.n = 0);
    tmk_caching_close(a);
}

/* A free block that is a whole segment. */
static void whole_segment(void **unused)
{
    (void)unused;
    struct tmk_caching_allocator *a = open_model("");
    uint32_t b;
    take(a, 20 * mib, &b);
    assert_int_equal(tmk_caching_free(a, b), 0);
    BREAK_MODEL(*caching_block_at(a, b), caching_block_at(a, b)->segment_start = 512);
    BREAK_MODEL(*caching_block_at(a, b), caching_block_at(a, b)->is_mapped = false);
    tmk_caching_close(a);
}

/* One that is on the list of pending ones twice. */
static void pending_twice(void **unused)
{
    (void)unused;
    struct scene s = make_scene();
    struct tmk_caching_allocator *a = s.a;
    assert_int_equal(tmk_caching_free_requested(a, s.second), 0);
    assert_int_equal(a->n_pending, 2);
    BREAK_MODEL(a->pending[1], a->pending[1] = s.pending);
    tmk_caching_close(a);
}

static void expandable(void **unused)
{
    (void)unused;
    struct tmk_caching_allocator *a = open_model("expandable_segments:True");
    uint32_t b;
    take(a, 12 * mib, &b);
    struct caching_block *block = caching_block_at(a, b);
    struct caching_block *rest = caching_block_at(a, block->next),
                         *unmapped = caching_block_at(a, rest->next);
    assert_false(unmapped->is_mapped);
    assert_int_equal(unmapped->next, 0);
    BREAK_MODEL(*block, block->segment_end = 0);
    BREAK_MODEL(*block, block->segment_start += 512);
    BREAK_MODEL(*block, block->address -= 512; block->size_bytes += 512);
    BREAK_MODEL(*unmapped, unmapped->size_bytes -= 512);
    BREAK_MODEL(*unmapped, unmapped->size_bytes += 512);
    BREAK_MODEL(*a, a->next_address = block->segment_end - 1);
    BREAK_MODEL(*a, a->setup.conf.large_segment_bytes = 16 * mib); /* no whole pages */
    /* All of the segment's blocks together are wrong about where it is. */
    struct caching_block was[3] = {*block, *rest, *unmapped};
    uint64_t page = 20 * mib;
    block->segment_start -= page, rest->segment_start -= page, unmapped->segment_start -= page;
    assert_false(tmk_caching_is_valid(a));
    note_failed();
    *block = was[0], *rest = was[1], *unmapped = was[2];
    block->segment_end += 512, rest->segment_end += 512, unmapped->segment_end += 512;
    assert_false(tmk_caching_is_valid(a));
    note_failed();
    *block = was[0], *rest = was[1], *unmapped = was[2];
    block->segment_start += 512, rest->segment_start += 512, unmapped->segment_start += 512;
    assert_false(tmk_caching_is_valid(a));
    note_failed();
    *block = was[0], *rest = was[1], *unmapped = was[2];
    assert_true(tmk_caching_is_valid(a));
    tmk_caching_close(a);
    must_have_failed("src/model/caching_valid.c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_set),      cmocka_unit_test(driver_space),
        cmocka_unit_test(blocks),        cmocka_unit_test(dead_blocks),
        cmocka_unit_test(sets_and_sums), cmocka_unit_test(pending_twice),
        cmocka_unit_test(whole_segment), cmocka_unit_test(expandable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
