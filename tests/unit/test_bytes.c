/* SPDX-License-Identifier: MIT */
/* test_bytes.c - varints, zigzags and the bounded views and sinks they go through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "trace_kit.h"

static uint64_t read_one(const uint8_t *bytes, size_t n, size_t *ret_used, bool *ret_bad)
{
    struct tmk_view v = tmk_view_of(bytes, n);
    uint64_t value = tmk_view_varint(&v);
    *ret_used = (size_t)(v.at - bytes);
    *ret_bad = v.bad;
    return value;
}

/* Every length, at its ends, with and without eight more bytes behind it (two code paths). */
static void test_lengths(void **unused)
{
    (void)unused;
    for (unsigned length = 1; length <= 10; length++) {
        uint64_t least = length == 1 ? 0 : 1ull << (7 * (length - 1));
        uint64_t most = length == 10 ? UINT64_MAX : (1ull << (7 * length)) - 1;
        const uint64_t values[] = {least, least + 1, most - 1, most};
        for (size_t i = 0; i < 4; i++) {
            uint8_t buffer[32];
            memset(buffer, 0xff, sizeof buffer);
            struct tmk_sink s = tmk_sink_of(buffer, sizeof buffer);
            tmk_sink_varint(&s, values[i]);
            assert_int_equal(tmk_sink_length(&s), length);
            assert_int_equal(tmk_varint_bytes(values[i]), length);
            const size_t rooms[] = {length, length + 1, sizeof buffer};
            for (size_t k = 0; k < 3; k++) {
                size_t used;
                bool bad;
                assert_true(read_one(buffer, rooms[k], &used, &bad) == values[i]);
                assert_int_equal(used, length);
                assert_false(bad);
            }
        }
    }
}

static void test_known_bytes(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t value;
        const char *bytes;
        size_t n;
    } known[] = {
        {0, "\x00", 1},
        {127, "\x7f", 1},
        {128, "\x80\x01", 2},
        {300, "\xac\x02", 2},
        {624485, "\xe5\x8e\x26", 3},
        {UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint8_t buffer[16];
        struct tmk_sink s = tmk_sink_of(buffer, sizeof buffer);
        tmk_sink_varint(&s, known[i].value);
        assert_int_equal(tmk_sink_length(&s), known[i].n);
        assert_memory_equal(buffer, known[i].bytes, known[i].n);
    }
}

/* Longer than need be is allowed, as long as it fits 64 bits and ten bytes. */
static void test_not_shortest(void **unused)
{
    (void)unused;
    static const struct {
        const char *bytes;
        size_t n;
        uint64_t value;
        bool bad;
    } cases[] = {
        {"\x80\x00", 2, 0, false},
        {"\x81\x80\x80\x00", 4, 1, false},
        {"\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, 5, false},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10, 0, true}, /* bit 64 */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, 0, true},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, 0, true}, /* eleven bytes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t more = 0; more <= 16; more += 16) {
            uint8_t buffer[32] = {0};
            size_t used;
            bool bad;
            memcpy(buffer, cases[i].bytes, cases[i].n);
            uint64_t value = read_one(buffer, cases[i].n + more, &used, &bad);
            assert_int_equal(bad, cases[i].bad);
            assert_true(value == cases[i].value);
            assert_int_equal(used, bad ? cases[i].n + more : cases[i].n);
        }
    }
}

/* Cut anywhere: bad, 0, and the view stands at its end for good. */
static void test_cut(void **unused)
{
    (void)unused;
    for (size_t n = 0; n < 10; n++) {
        uint8_t buffer[10];
        memset(buffer, 0x80, sizeof buffer);
        struct tmk_view v = tmk_view_of(buffer, n);
        assert_true(tmk_view_varint(&v) == 0);
        assert_true(v.bad);
        assert_int_equal(tmk_view_left(&v), 0);
        assert_true(tmk_view_varint(&v) == 0);
        assert_true(v.bad);
    }
}

static void test_take(void **unused)
{
    (void)unused;
    uint8_t buffer[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    struct tmk_view v = tmk_view_of(buffer, sizeof buffer);
    struct tmk_view part = tmk_view_take(&v, 4);
    assert_int_equal(tmk_view_left(&part), 4);
    assert_ptr_equal(part.at, buffer);
    assert_int_equal(tmk_view_left(&v), 6);
    part = tmk_view_take(&v, 0);
    assert_int_equal(tmk_view_left(&part), 0);
    assert_false(part.bad || v.bad);
    part = tmk_view_take(&v, UINT64_MAX);
    assert_true(part.bad && v.bad);
    assert_int_equal(tmk_view_left(&part) + tmk_view_left(&v), 0);
}

/* A sink that has no room for the longest varint takes none, and writes nothing. */
static void test_sink_full(void **unused)
{
    (void)unused;
    for (size_t room = 0; room < 24; room++) {
        uint8_t buffer[32];
        memset(buffer, 0xaa, sizeof buffer);
        struct tmk_sink s = tmk_sink_of(buffer, room);
        tmk_sink_varint(&s, UINT64_MAX);
        assert_int_equal(s.full, room < TMK_VARINT_MAX_BYTES);
        assert_int_equal(tmk_sink_length(&s), s.full ? 0 : 10);
        assert_int_equal(buffer[room], 0xaa);
        s = tmk_sink_of(buffer, room);
        tmk_sink_bytes(&s, "0123456789", 10);
        assert_int_equal(s.full, room < 10);
        assert_int_equal(buffer[room], 0xaa);
        tmk_sink_bytes(&s, NULL, 0);
        assert_int_equal(s.full, room < 10);
    }
}

static void test_zigzag(void **unused)
{
    (void)unused;
    static const struct {
        int64_t value;
        uint64_t z;
    } known[] = {
        {0, 0}, {-1, 1}, {1, 2}, {-2, 3}, {INT64_MAX, UINT64_MAX - 1}, {INT64_MIN, UINT64_MAX}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_true(tmk_zigzag(known[i].value) == known[i].z);
        assert_true(tmk_unzigzag(known[i].z) == known[i].value);
    }
}

/* Random numbers of all lengths, one after the other, through both paths. */
static void test_stream(void **unused)
{
    (void)unused;
    enum { N = 20000 };
    static uint64_t values[N];
    static uint8_t buffer[N * 10 + 16];
    struct kit_random random = {1};
    struct tmk_sink s = tmk_sink_of(buffer, sizeof buffer);
    for (size_t i = 0; i < N; i++) {
        values[i] = kit_random_next(&random) >> kit_random_below(&random, 64);
        if (i % 2)
            tmk_sink_varint(&s, values[i]);
        else
            tmk_sink_zigzag(&s, (int64_t)values[i]);
    }
    assert_false(s.full);
    struct tmk_view v = tmk_view_of(buffer, tmk_sink_length(&s));
    for (size_t i = 0; i < N; i++)
        assert_true((i % 2 ? tmk_view_varint(&v) : (uint64_t)tmk_view_zigzag(&v)) == values[i]);
    assert_false(v.bad);
    assert_int_equal(tmk_view_left(&v), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),      cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_not_shortest), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_take),         cmocka_unit_test(test_sink_full),
        cmocka_unit_test(test_zigzag),       cmocka_unit_test(test_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
