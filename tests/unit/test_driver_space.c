/* SPDX-License-Identifier: MIT */
/* Where the driver puts segments: the sequence that a program without libraries saw on an H200, and
 * what is learned of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/driver_space.h"

static const uint64_t mib = 1ull << 20;
static const uint64_t top = 0x7ff408000000ull; /* of ranges, in that recording */

static uint64_t put_at(struct tmk_driver_space *s, uint64_t size_mib)
{
    return tmk_driver_space_alloc(s, size_mib * mib);
}

/* Sizes and addresses as recorded, once the context's own ranges were full. */
static void test_as_recorded(void **state)
{
    (void)state;
    static const struct {
        uint64_t size_mib, address;
    } seen[] = {
        {102, 0x7ff400000000}, {2, 0x7ff406600000},  {148, 0x7ff3f6000000}, {48, 0x7ff3f2000000},
        {134, 0x7ff3e8000000}, {12, 0x7ff3f0600000}, {2, 0x7ff3f1200000},   {20, 0x7ff406800000},
        {20, 0x7ff3e6000000},  {84, 0x7ff3e0000000}, {20, 0x7ff3de000000},  {2, 0x7ff3df400000},
        {12, 0x7ff3e5400000},  {2, 0x7ff3df600000},  {2, 0x7ff3df800000},   {20, 0x7ff3dc000000},
    };
    struct tmk_driver_space s = {.top = top};
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++)
        assert_int_equal(put_at(&s, seen[i].size_mib), seen[i].address);
    tmk_driver_space_fini(&s);
}

/* A range goes with its last segment; a new one needs 32 MiB more than it has, at the top. */
static void test_gaps(void **state)
{
    (void)state;
    struct tmk_driver_space s = {.top = top};
    uint64_t a = put_at(&s, 30), b = put_at(&s, 30), c = put_at(&s, 60), d = put_at(&s, 30);
    assert_int_equal(a, top - 32 * mib);
    assert_int_equal(b, top - 64 * mib);
    assert_int_equal(c, top - 128 * mib);
    assert_int_equal(d, top - 160 * mib);
    uint64_t in_b = put_at(&s, 2); /* the lowest room is behind d */
    assert_int_equal(in_b, d + 30 * mib);
    tmk_driver_space_free(&s, b); /* a gap of exactly 32 MiB */
    assert_int_equal(put_at(&s, 32), top - 192 * mib);
    tmk_driver_space_free(&s, c); /* now 96 MiB, from which 32 are taken at the top */
    assert_int_equal(put_at(&s, 32), top - 64 * mib);
    tmk_driver_space_fini(&s);
}

static void test_learn(void **state)
{
    (void)state;
    const uint64_t room = top + 100 * mib;
    const struct tmk_space_event events[] = {
        {room, 20 * mib, 0},                     /* not where ranges begin: room of the context's */
        {top - 32 * mib, 20 * mib, 3},           /* the first range */
        {top - 32 * mib + 22 * mib, 2 * mib, 5}, /* 20-22 is taken by someone */
        {room + 20 * mib, 2 * mib, 7},           /* the same room goes on */
        {top - 128 * mib, 32 * mib, 9},          /* 64 MiB between are taken */
        {top - 128 * mib, 0, 11},
    };
    struct tmk_space_hints hints = {0};
    assert_int_equal(tmk_driver_space_learn(events, sizeof events / sizeof events[0], &hints), 0);
    assert_int_equal(hints.top, top);
    const struct tmk_space_hint *h = hints.items;
    assert_true(h[0].is_room);
    assert_int_equal(h[0].address, room);
    assert_int_equal(h[0].size_bytes, 22 * mib);
    assert_int_equal(h[0].at, 0);
    assert_false(h[1].is_room);
    assert_int_equal(h[1].address, top - 12 * mib);
    assert_int_equal(h[1].size_bytes, 2 * mib);
    assert_int_equal(h[1].at, 5);
    /* Told the same, another run of the same requests gets the same addresses. */
    struct tmk_driver_space s = {.top = hints.top};
    uint64_t heeded = 0;
    for (uint64_t i = 0; i + 1 < sizeof events / sizeof events[0]; i++) {
        while (heeded < hints.n && hints.items[heeded].at <= events[i].at)
            assert_int_equal(tmk_driver_space_heed(&s, &hints.items[heeded++]), 0);
        assert_int_equal(tmk_driver_space_alloc(&s, events[i].size_bytes), events[i].address);
    }
    tmk_driver_space_fini(&s);
    tmk_space_hints_fini(&hints);
}

/* Addresses of a damaged trace teach nothing, and break nothing. */
static void test_nonsense(void **state)
{
    (void)state;
    const struct tmk_space_event events[] = {
        {UINT64_MAX, 20 * mib, 0}, {1, 2, 3},          {0, 0, 0},   {top, UINT64_MAX, 4},
        {top, 20 * mib, 5},        {top, 40 * mib, 6}, {top, 0, 7}, {top, 0, 8},
    };
    struct tmk_space_hints hints = {0};
    assert_int_equal(tmk_driver_space_learn(events, sizeof events / sizeof events[0], &hints), 0);
    tmk_space_hints_fini(&hints);
    struct tmk_driver_space s = {0};
    assert_int_equal(tmk_driver_space_alloc(&s, UINT64_MAX), 0);
    assert_int_equal(tmk_driver_space_alloc(&s, 1ull << 46), 0);
    tmk_driver_space_free(&s, 12345);
    tmk_driver_space_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_recorded),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_learn),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
