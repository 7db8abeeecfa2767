/* SPDX-License-Identifier: MIT */
/* What is allocated right now, said by torch or counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "record/torch/address_table.h"
#include "record/torch/runtime_calls.h"
#include "record/torch/tally.h"
#include "record/torch/torch_hook.h"
#include "record/torch/torch_slots.h"
#include "tidemark/tidemark.h"

enum { BITS = 8, N_THREADS = 4, N_ROUNDS = 20000 };

static void test_table(void **state)
{
    (void)state;
    struct tmk_address_slot slots[1 << BITS] = {{0}};
    struct tmk_address_table table = {slots, BITS, 1};
    assert_int_equal(tmk_address_table_take(&table, 64), 0);
    for (uintptr_t i = 1; i <= 100; i++)
        assert_true(tmk_address_table_put(&table, i * 64, i));
    for (uintptr_t i = 2; i <= 100; i += 2)
        assert_int_equal(tmk_address_table_take(&table, i * 64), i);
    for (uintptr_t i = 2; i <= 100; i += 2)
        assert_int_equal(tmk_address_table_take(&table, i * 64), 0);
    for (uintptr_t i = 1; i <= 100; i += 2)
        assert_int_equal(tmk_address_table_take(&table, i * 64), i);
}

static void test_full_table(void **state)
{
    (void)state;
    struct tmk_address_slot slots[1 << BITS] = {{0}};
    struct tmk_address_table table = {slots, BITS, 1};
    unsigned n_put = 0, n_taken = 0;
    for (uintptr_t i = 1; i <= 300; i++)
        n_put += tmk_address_table_put(&table, i * 64, 1);
    assert_in_range(n_put, 200, 1 << BITS);
    for (uintptr_t i = 1; i <= 300; i++)
        n_taken += (unsigned)tmk_address_table_take(&table, i * 64);
    assert_int_equal(n_taken, n_put);
    for (uintptr_t i = 1000; i < 1100; i++) /* what was used is used again */
        assert_true(tmk_address_table_put(&table, i * 64, 1));
}

/* More than the first level holds: each is found again, on whichever level it is, also when there
 * is room on one before meanwhile. */
static void test_levels(void **state)
{
    (void)state;
    struct tmk_address_slot *slots = calloc(21 << BITS, sizeof *slots);
    struct tmk_address_table table = {slots, BITS, 3};
    enum { N = 14 << BITS };
    assert_int_equal(tmk_address_slots_before(&table, 3), 21 << BITS);
    for (uintptr_t i = 1; i <= N; i++)
        assert_true(tmk_address_table_put(&table, i * 64, i));
    for (uintptr_t i = 1; i <= N; i += 2)
        assert_int_equal(tmk_address_table_take(&table, i * 64), i);
    for (uintptr_t i = N + 1; i <= N + 100; i++)
        assert_true(tmk_address_table_put(&table, i * 64, i));
    for (uintptr_t i = 2; i <= N; i += 2)
        assert_int_equal(tmk_address_table_take(&table, i * 64), i);
    for (uintptr_t i = N + 1; i <= N + 100; i++)
        assert_int_equal(tmk_address_table_take(&table, i * 64), i);
    for (uintptr_t i = 1; i <= N; i++)
        assert_int_equal(tmk_address_table_take(&table, i * 64), 0);
    free(slots);
}

static void *allocate(void *argument)
{
    uintptr_t first = (uintptr_t)argument;
    for (uintptr_t i = 0; i < N_ROUNDS; i++) {
        tmk_tally_host_alloc((void *)(first + i % 16 * 64), 10 + i % 16);
        tmk_tally_host_free((void *)(first + i % 16 * 64));
    }
    tmk_tally_host_alloc((void *)first, 1000);
    return NULL;
}

static void test_host(void **state)
{
    (void)state;
    struct tmk_tally now;
    tmk_tally_host_alloc((void *)64, 5); /* nobody counts yet */
    assert_false(tmk_tally_read(TIDEMARK_HOST, &now));
    assert_true(tmk_tally_want());
    assert_true(tmk_tally_want());
    tmk_tally_host_free((void *)64); /* not seen to come */
    assert_true(tmk_tally_read(TIDEMARK_HOST, &now));
    assert_int_equal(now.allocated_bytes, 0);

    pthread_t threads[N_THREADS];
    for (uintptr_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate, (void *)((i + 1) << 20)), 0);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(tmk_tally_read(TIDEMARK_HOST, &now));
    assert_int_equal(now.allocated_bytes, N_THREADS * 1000);
    assert_int_equal(now.reserved_bytes, N_THREADS * 1000);
    assert_int_equal(now.peak_allocated_bytes, N_THREADS * 1000);

    tmk_tally_host_free((void *)((uintptr_t)1 << 20));
    assert_true(tmk_tally_read(TIDEMARK_HOST, &now));
    assert_int_equal(now.allocated_bytes, (N_THREADS - 1) * 1000);
    assert_int_equal(now.peak_allocated_bytes, N_THREADS * 1000);
}

/* A window has its own peak; that of the process goes on. */
static void test_window(void **state)
{
    (void)state;
    struct tmk_tally now;
    uint64_t window;
    void *block = (void *)((uintptr_t)1 << 30);
    assert_true(tmk_tally_read(TIDEMARK_HOST, &now));
    uint64_t before = now.allocated_bytes, peak = now.peak_allocated_bytes;
    tmk_tally_begin_window(TIDEMARK_HOST);
    assert_true(tmk_tally_read_window(TIDEMARK_HOST, &window));
    assert_int_equal(window, before);
    tmk_tally_host_alloc(block, 10);
    tmk_tally_host_free(block);
    assert_true(tmk_tally_read_window(TIDEMARK_HOST, &window));
    assert_int_equal(window, before + 10);
    assert_true(tmk_tally_read(TIDEMARK_HOST, &now));
    assert_int_equal(now.peak_allocated_bytes, peak);
    assert_int_equal(now.peak_reserved_bytes, peak);
    tmk_tally_host_alloc(block, 1 << 20);
    tmk_tally_host_free(block);
    tmk_tally_begin_window(TIDEMARK_HOST);
    assert_true(tmk_tally_read(TIDEMARK_HOST, &now));
    assert_int_equal(now.peak_allocated_bytes, before + (1 << 20));
}

#ifndef __SANITIZE_THREAD__ /* with it one thread would take ten seconds, to no end */
/* As if anywhere: one after the other they would spread too evenly. */
static void *any_address(uint64_t n)
{
    n = (n ^ n >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return (void *)(uintptr_t)((n ^ n >> 31) << 6);
}

/* Two millions are counted; from the first that there is no room for nothing is known, and nothing
 * wrong is said. */
static void test_millions(void **state)
{
    (void)state;
    struct tmk_tally before, now;
    uint64_t n = 0, peak;
    assert_true(tmk_tally_read(TIDEMARK_HOST, &before));
    do {
        for (unsigned i = 0; i < 1000; i++)
            tmk_tally_host_alloc(any_address(++n), 64);
        if (!tmk_tally_read(TIDEMARK_HOST, &now))
            break;
        assert_int_equal(now.allocated_bytes - before.allocated_bytes, n * 64);
    } while (n < 4000000);
    assert_in_range(n, 2000000, 4000000 - 1);
    for (uint64_t i = 1; i <= 1000; i++)
        tmk_tally_host_free(any_address(i));
    assert_false(tmk_tally_read(TIDEMARK_HOST, &now)); /* what goes may not have been counted */
    assert_false(tmk_tally_read_window(TIDEMARK_HOST, &peak));
}
#endif

/* Where the driver's calls are not seen, torch's cache may shrink unheard. */
static void test_card_without_driver(void **state)
{
    (void)state;
    struct tmk_tally now;
    uint64_t window;
    uint16_t card = 1 << 8;
    assert_false(tmk_tally_read(card, &now));
    assert_false(tmk_tally_read_window(card, &window));
    tmk_tally_say(card, 512, 2 << 20);
    assert_false(tmk_tally_read(card, &now));
    tmk_tally_begin_window(card);
    tmk_tally_say(card, 1024, 2 << 20);
    tmk_tally_say(card, 512, 2 << 20);
    assert_false(tmk_tally_read(card, &now));
    assert_true(tmk_tally_read_window(card, &window)); /* torch says what is allocated */
    assert_int_equal(window, 1024);
    tmk_torch_slots_set_heard(false);
    assert_false(tmk_tally_read_window(card, &window));
    tmk_torch_slots_set_heard(true);
}

static int free_nothing(void *address)
{
    (void)address;
    return 0;
}

/* Read: allocated, reserved and the peaks of both; false where it is not known. */
static bool is_card(uint16_t card, uint64_t allocated, uint64_t reserved, uint64_t peak_allocated,
                    uint64_t peak_reserved)
{
    struct tmk_tally now;
    if (!tmk_tally_read(card, &now))
        return false;
    assert_int_equal(now.allocated_bytes, allocated);
    assert_int_equal(now.reserved_bytes, reserved);
    assert_int_equal(now.peak_allocated_bytes, peak_allocated);
    assert_int_equal(now.peak_reserved_bytes, peak_reserved);
    return true;
}

enum { MIB = 1 << 20 };

/* Known, while all that is reserved was given by cudaMalloc() and no call has come since. */
static void test_card_with_runtime(void **state)
{
    (void)state;
    uint16_t card = (1 << 8) + 3, other = (1 << 8) + 4;
    atomic_store(&tmk_hooks[TMK_HOOK_FREE].real, (uintptr_t)free_nothing);
    tmk_torch_slots_set_runtime_seen(true);
    assert_true(tmk_runtime_calls_see()); /* as in a forked child: nothing is known of before */
    assert_false(tmk_runtime_calls_see());
    tmk_runtime_calls_note(card, 4 * MIB, 2 * MIB);
    tmk_tally_say(card, 512, 2 * MIB);
    assert_true(is_card(card, 512, 2 * MIB, 512, 2 * MIB));
    tmk_tally_say(other, 512, 2 * MIB); /* of which nothing was given */
    assert_false(is_card(other, 512, 2 * MIB, 512, 2 * MIB));
    tmk_runtime_calls_note(card, 8 * MIB, 20 * MIB);
    tmk_runtime_calls_note(card, 8 * MIB, 20 * MIB); /* told twice is once */
    tmk_tally_say(card, 1024, 22 * MIB);
    assert_true(is_card(card, 1024, 22 * MIB, 1024, 22 * MIB));
    assert_int_equal(tmk_runtime_calls_free(NULL), 0);
    assert_true(is_card(card, 1024, 22 * MIB, 1024, 22 * MIB));
    assert_int_equal(tmk_runtime_calls_free((void *)(uintptr_t)(8 * MIB)), 0);
    assert_false(is_card(card, 1024, 22 * MIB, 1024, 22 * MIB));
    tmk_tally_say(card, 512, 2 * MIB);
    assert_true(is_card(card, 512, 2 * MIB, 1024, 22 * MIB));
    tmk_tally_say(card, 512, 4 * MIB); /* 2 MiB come from elsewhere, and may go unseen */
    assert_false(is_card(card, 512, 4 * MIB, 1024, 22 * MIB));
    tmk_torch_slots_set_runtime_seen(false);
    tmk_tally_say(card, 512, 2 * MIB);
    assert_false(is_card(card, 512, 2 * MIB, 1024, 22 * MIB));
}

/* What torch answers is good until a block or a call comes, or came since the question. */
static void test_told(void **state)
{
    (void)state;
    uint16_t card = (1 << 8) + 5;
    struct tmk_tally empty = {512, 2 * MIB, 4096, 30 * MIB};
    tmk_torch_slots_set_runtime_seen(true);
    tmk_runtime_calls_note(card, 64 * MIB, 2 * MIB);
    tmk_tally_tell(card, tmk_tally_ask(card), &empty); /* torch's allocator was not heard yet */
    assert_false(is_card(card, 512, 2 * MIB, 4096, 30 * MIB));
    tmk_tally_say(card, 1024, 2 * MIB);
    assert_true(is_card(card, 1024, 2 * MIB, 4096, 30 * MIB));
    uint64_t before = tmk_tally_ask(card);
    tmk_runtime_calls_free((void *)(uintptr_t)(256 * MIB));
    tmk_tally_tell(card, before, &empty);
    assert_false(is_card(card, 512, 2 * MIB, 4096, 30 * MIB));
    tmk_tally_tell(card, tmk_tally_ask(card), &(struct tmk_tally){512, 4 * MIB, 512, 4 * MIB});
    assert_false(is_card(card, 512, 4 * MIB, 4096, 30 * MIB)); /* not all of it was given */
    tmk_tally_tell(card, tmk_tally_ask(card), &empty);
    assert_true(is_card(card, 512, 2 * MIB, 4096, 30 * MIB));
    tmk_torch_slots_set_heard(false);
    assert_false(is_card(card, 512, 2 * MIB, 4096, 30 * MIB));
    tmk_torch_slots_set_heard(true);
    assert_false(is_card(card, 512, 2 * MIB, 4096, 30 * MIB));
    tmk_tally_say(card, 2048, 2 * MIB);
    assert_true(is_card(card, 2048, 2 * MIB, 4096, 30 * MIB));
    tmk_torch_slots_set_runtime_seen(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_full_table),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_window),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(test_millions), /* the last of the host's: then nothing is known of it */
#endif
        cmocka_unit_test(test_card_without_driver),
        cmocka_unit_test(test_card_with_runtime),
        cmocka_unit_test(test_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
