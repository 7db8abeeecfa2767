/* SPDX-License-Identifier: MIT */
/* test_driver_table.c - what the process holds of the driver: handles with owners and mappings,
 * pools that grow and shrink, contexts that take all of theirs with them. Nothing is recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/driver/driver_changes.h"
#include "record/driver/driver_table.h"
#include "trace/segments.h"

enum {
    HANDLE = 0x1000,
    POOL = 0x2000,
    CONTEXT = 0x3000,
    DEVICE = 3,
    N_ROUNDS = 20000,
    N_KEYS = 40
};

static void begin(unsigned kind, uint64_t address, uint64_t size_bytes, uint64_t owner)
{
    struct tmk_driver_segment item = {.address = address,
                                      .size_bytes = size_bytes,
                                      .owner = owner,
                                      .n_refs = kind == TMK_SEGMENT_PHYSICAL,
                                      .device = DEVICE,
                                      .kind = (uint8_t)kind};
    if (kind == TMK_SEGMENT_MAPPING)
        tmk_driver_table_map(&item);
    else
        tmk_driver_table_begin(&item);
    assert_true(tmk_driver_table_is_valid());
}

/* A handle's memory goes with the last of its owners and mappings. */
static void test_handles(void **unused)
{
    (void)unused;
    begin(TMK_SEGMENT_PHYSICAL, HANDLE, 4096, 0);
    tmk_driver_table_retain(HANDLE);
    begin(TMK_SEGMENT_MAPPING, 64, 4096, HANDLE);
    begin(TMK_SEGMENT_MAPPING, 64 + 4096, 4096, HANDLE);
    tmk_driver_table_release(HANDLE);
    tmk_driver_table_release(HANDLE);
    assert_true(tmk_driver_table_is_valid());
    assert_int_equal(tmk_driver_table_device(TMK_SEGMENT_PHYSICAL, HANDLE), DEVICE);
    tmk_driver_table_unmap(64, 4096);
    assert_true(tmk_driver_table_is_valid());
    assert_int_equal(tmk_driver_table_device(TMK_SEGMENT_PHYSICAL, HANDLE), DEVICE);
    tmk_driver_table_unmap(0, 1 << 20); /* with holes before and behind */
    assert_true(tmk_driver_table_is_valid());
    assert_int_equal(tmk_driver_table_device(TMK_SEGMENT_PHYSICAL, HANDLE), -1);
}

static void test_pools(void **unused)
{
    (void)unused;
    tmk_driver_table_pool(POOL, DEVICE, 4096);
    assert_true(tmk_driver_table_is_valid());
    tmk_driver_table_pool(POOL, DEVICE, 8192);
    assert_true(tmk_driver_table_is_valid());
    begin(TMK_SEGMENT_ASYNC, 128, 512, POOL);
    tmk_driver_table_end_pool(POOL);
    assert_true(tmk_driver_table_is_valid());
    assert_int_equal(tmk_driver_table_device(TMK_SEGMENT_POOL, POOL), -1);
    struct tmk_driver_segment gone;
    assert_true(tmk_driver_table_end_pointer(128, &gone));
    assert_int_equal(gone.owner, 0);
}

/* What goes with a context; a device's primary one takes its pools too. */
static void test_contexts(void **unused)
{
    (void)unused;
    uint64_t n_before, n_after;
    begin(TMK_SEGMENT_DEVICE, 256, 512, CONTEXT);
    begin(TMK_SEGMENT_DEVICE, 1024, 512, CONTEXT + 1);
    tmk_driver_table_pool(POOL, DEVICE, 4096);
    assert_int_equal(tmk_driver_changes_devices(&n_before), 1 << DEVICE);
    tmk_driver_table_end_context(CONTEXT);
    assert_true(tmk_driver_table_is_valid());
    assert_int_equal(tmk_driver_table_device(TMK_SEGMENT_DEVICE, 256), -1);
    assert_int_equal(tmk_driver_table_device(TMK_SEGMENT_DEVICE, 1024), DEVICE);
    tmk_driver_table_end_device(DEVICE, CONTEXT + 1);
    assert_true(tmk_driver_table_is_valid());
    assert_int_equal(tmk_driver_table_device(TMK_SEGMENT_POOL, POOL), -1);
    assert_int_equal(tmk_driver_changes_devices(&n_after), 0);
    assert_int_equal(n_after, n_before + 3);
}

static uint64_t random_below(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

/* Whatever comes in whatever order, refused or not. */
static void test_any_order(void **unused)
{
    (void)unused;
    uint64_t state = 1;
    for (int i = 0; i < N_ROUNDS; i++) {
        uint64_t key = 1 + random_below(&state, N_KEYS), other = 1 + random_below(&state, N_KEYS);
        struct tmk_driver_segment gone;
        switch (random_below(&state, 9)) {
        case 0:
            begin(TMK_SEGMENT_DEVICE, key, 512 * key, CONTEXT + other % 3);
            break;
        case 1:
            if (tmk_driver_table_device(TMK_SEGMENT_PHYSICAL, HANDLE + key) < 0)
                begin(TMK_SEGMENT_PHYSICAL, HANDLE + key, 4096, 0);
            break;
        case 2:
            if (tmk_driver_table_device(TMK_SEGMENT_MAPPING, key << 12) < 0)
                begin(TMK_SEGMENT_MAPPING, key << 12, 4096, HANDLE + other);
            break;
        case 3:
            tmk_driver_table_unmap(key << 12, other << 12);
            break;
        case 4:
            tmk_driver_table_release(HANDLE + key);
            break;
        case 5:
            tmk_driver_table_retain(HANDLE + key);
            break;
        case 6:
            tmk_driver_table_pool(POOL + key % 4, (uint16_t)(key % 4), 4096 * (other % 3));
            break;
        case 7:
            if (tmk_driver_table_end_pointer(key, &gone) && other % 2)
                tmk_driver_table_begin(&gone); /* the driver refuses: it is brought back */
            break;
        default:
            if (i % 50 == 0)
                tmk_driver_table_end_context(CONTEXT + other % 3);
        }
        assert_true(tmk_driver_table_is_valid());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
