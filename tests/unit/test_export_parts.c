/* SPDX-License-Identifier: MIT */
/* tests/unit/test_export_parts.c - what the exports are made of: bytes that are changed after they
 * were written, pickled numbers and texts, segments around blocks, counters that are thinned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "interop/out/out.h"
#include "interop/out/perfetto_counter.h"
#include "interop/out/perfetto_packets.h"
#include "interop/out/pickle_out.h"
#include "interop/torch/torch_segments.h"
#include "trace_kit.h"

/* What is in the file; malloc. */
static uint8_t *content_of(FILE *file, size_t *ret_n)
{
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t n = (size_t)ftell(file);
    uint8_t *bytes = malloc(n + 1);
    assert_non_null(bytes);
    rewind(file);
    assert_int_equal(fread(bytes, 1, n, file), n);
    *ret_n = n;
    return bytes;
}

/* ---- bytes ---- */

/* Three buffers' worth; changes in the file, at the edge, and in the buffer. */
static void test_changed_bytes(void **state)
{
    (void)state;
    enum { N = 3 * TMK_OUT_BUFFER_BYTES + 5 };
    FILE *file = tmpfile();
    struct tmk_out out;
    assert_int_equal(tmk_out_init(&out, fileno(file)), 0);
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(tmk_out_place(&out), i);
        tmk_out_byte(&out, (uint8_t)(i % 251));
    }
    static const uint64_t places[] = {
        0, 1, TMK_OUT_BUFFER_BYTES - 1, TMK_OUT_BUFFER_BYTES, 2 * TMK_OUT_BUFFER_BYTES, N - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        tmk_out_change(&out, places[i], 255);
    assert_int_equal(tmk_out_finish(&out, NULL), 0);
    tmk_out_fini(&out);
    size_t n, n_changed = 0;
    uint8_t *bytes = content_of(file, &n);
    assert_int_equal(n, N);
    for (uint64_t i = 0; i < N; i++) {
        n_changed += bytes[i] == 255;
        if (bytes[i] != 255 && bytes[i] != i % 251)
            fail();
    }
    assert_int_equal(n_changed, sizeof places / sizeof places[0]);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        assert_int_equal(bytes[places[i]], 255);
    free(bytes);
    fclose(file);
}

static void test_a_full_disk_is_said(void **state)
{
    (void)state;
    FILE *file = fopen("/dev/full", "w");
    struct tmk_out out;
    struct tmk_error err = {0};
    assert_int_equal(tmk_out_init(&out, fileno(file)), 0);
    tmk_out_bytes(&out, "abc", 3);
    assert_int_equal(tmk_out_finish(&out, &err), TMK_EIO);
    assert_non_null(strstr(err.text, "cannot write: no space left"));
    tmk_out_fini(&out);
    fclose(file);
}

/* ---- pickles ---- */

static void expect_pickled(int64_t value, const char *hex)
{
    FILE *file = tmpfile();
    struct tmk_out out;
    struct tmk_pickler p;
    char found[64] = "";
    assert_int_equal(tmk_out_init(&out, fileno(file)), 0);
    tmk_pickler_begin(&p, &out);
    tmk_pickler_int(&p, value);
    tmk_pickler_end(&p);
    assert_int_equal(tmk_out_finish(&out, NULL), 0);
    tmk_out_fini(&out);
    size_t n;
    uint8_t *bytes = content_of(file, &n);
    for (size_t i = 2; i + 1 < n; i++)
        sprintf(found + 2 * (i - 2), "%02x", bytes[i]);
    assert_string_equal(found, hex);
    free(bytes);
    fclose(file);
}

/* As Python's own pickler writes them. */
static void test_pickled_numbers(void **state)
{
    (void)state;
    expect_pickled(0, "4b00");
    expect_pickled(255, "4bff");
    expect_pickled(256, "4d0001");
    expect_pickled(65535, "4dffff");
    expect_pickled(65536, "4a00000100");
    expect_pickled(INT32_MAX, "4affffff7f");
    expect_pickled(-1, "4affffffff");
    expect_pickled(INT32_MIN, "4a00000080");
    expect_pickled(INT64_C(1) << 31, "8a050000008000");
    expect_pickled(-(INT64_C(1) << 31) - 1, "8a05ffffff7fff");
    expect_pickled(INT64_C(1794755482324813), "8a074d8ffb12526006");
    expect_pickled(INT64_MAX, "8a08ffffffffffffff7f");
    expect_pickled(INT64_MIN, "8a080000000000000080");
}

/* ---- segments ---- */

enum { MIB = 1 << 20 };

struct told {
    uint64_t begun, ended; /* bytes */
    unsigned n;
};

static void on_tell(void *arg, const struct tmk_torch_segment *s, bool begins)
{
    struct told *t = arg;
    t->n++;
    if (begins)
        t->begun += s->size_bytes;
    else
        t->ended += s->size_bytes;
}

static uint64_t check_apart(const struct tmk_torch_segments *t)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < t->n; i++) {
        bytes += t->items[i].size_bytes;
        assert_true(t->items[i].size_bytes > 0);
        if (i > 0)
            assert_true(t->items[i - 1].address + t->items[i - 1].size_bytes <=
                        t->items[i].address);
    }
    return bytes;
}

static void test_made_up_segments(void **state)
{
    (void)state;
    struct told told = {0};
    struct tmk_torch_segments t = {.tell = on_tell, .arg = &told};
    tmk_torch_segments_hold(&t, 5 * MIB, 512, 0);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.items[0].address, 4 * MIB);
    assert_int_equal(t.items[0].size_bytes, 2 * MIB);
    tmk_torch_segments_hold(&t, 5 * MIB + 512, 2 * MIB, 0); /* over its end: it grows */
    assert_int_equal(t.n, 1);
    assert_int_equal(t.items[0].size_bytes, 4 * MIB);
    assert_int_equal(t.items[0].n_blocks, 2);
    assert_int_equal(told.begun, 4 * MIB);

    /* A real one takes the middle; what is left on both sides stays. */
    struct tmk_torch_segment real = {.address = 5 * MIB, .size_bytes = MIB};
    tmk_torch_segments_begin(&t, &real);
    assert_int_equal(t.n, 3);
    assert_int_equal(check_apart(&t), 4 * MIB);
    assert_int_equal(told.ended, MIB);
    assert_int_equal(tmk_torch_segments_find(&t, 5 * MIB)->kind, TMK_TORCH_ALLOCATED);
    tmk_torch_segments_hold(&t, 5 * MIB, 512, 77);
    assert_int_equal(tmk_torch_segments_find(&t, 5 * MIB)->stream, 77);
    assert_true(tmk_torch_segments_end(&t, 5 * MIB)); /* with a block in it */
    assert_null(tmk_torch_segments_find(&t, 5 * MIB));
    assert_false(tmk_torch_segments_end(&t, 5 * MIB));
    assert_false(tmk_torch_segments_end(&t, 4 * MIB)); /* made-up ones are not the driver's */
    tmk_torch_segments_fini(&t);
}

/* Whatever comes: segments stay apart, each block begins in one, and what was told adds up. */
static void test_random_segments(void **state)
{
    (void)state;
    struct told told = {0};
    struct kit_random random = {.state = 5};
    struct tmk_torch_segments t = {.tell = on_tell, .arg = &told};
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t address = kit_random_below(&random, 4000) * (MIB / 8);
        uint64_t size = 1 + kit_random_below(&random, 5 * MIB);
        struct tmk_torch_segment s = {.address = address, .size_bytes = size};
        s.kind = kit_random_below(&random, 2) ? TMK_TORCH_MAPPED : TMK_TORCH_ALLOCATED;
        switch (kit_random_below(&random, 4)) {
        case 0:
            tmk_torch_segments_begin(&t, &s);
            break;
        case 1:
            (void)tmk_torch_segments_end(&t, t.n ? t.items[kit_random_below(&random, t.n)].address
                                                 : address);
            break;
        case 2:
            tmk_torch_segments_hold(&t, address, size, 0);
            assert_non_null(tmk_torch_segments_find(&t, address));
            assert_non_null(tmk_torch_segments_find(&t, address + size - 1));
            break;
        default:
            tmk_torch_segments_release(&t, address);
            break;
        }
        assert_int_equal(check_apart(&t), told.begun - told.ended);
    }
    assert_false(t.failed);
    tmk_torch_segments_hold(&t, UINT64_MAX - 4, 100, 0); /* a hostile trace */
    assert_non_null(tmk_torch_segments_find(&t, UINT64_MAX - 4));
    tmk_torch_segments_fini(&t);
}

/* ---- counters ---- */

static unsigned count_values(uint64_t part_ns)
{
    FILE *file = tmpfile();
    struct tmk_out out;
    assert_int_equal(tmk_out_init(&out, fileno(file)), 0);
    struct tmk_packets packets = {.out = &out, .sequence = 1};
    struct tmk_counter c = {.track = 9, .part_ns = part_ns};
    tmk_counter_set(&c, &packets, 0, 0);
    for (uint64_t i = 1; i <= 1000; i++)
        tmk_counter_set(&c, &packets, i, i == 500 ? 100 : i % 10);
    tmk_counter_flush(&c, &packets);
    assert_int_equal(c.written, 0);
    tmk_out_fini(&out);
    fclose(file);
    return (unsigned)packets.n_events;
}

static void test_thinned_counters(void **state)
{
    (void)state;
    assert_int_equal(count_values(0), 1001); /* every change */
    assert_int_equal(count_values(100), 20); /* the first, ten times most and last, but for one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_bytes),   cmocka_unit_test(test_a_full_disk_is_said),
        cmocka_unit_test(test_pickled_numbers), cmocka_unit_test(test_made_up_segments),
        cmocka_unit_test(test_random_segments), cmocka_unit_test(test_thinned_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
