/* SPDX-License-Identifier: MIT */
/* The model of torch's allocator, by sequences whose outcome was worked out by hand from its rules,
 * and its ordered sets against a plain sorted array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "model/alloc_conf.h"
#include "model/caching_allocator.h"
#include "model/free_set.h"

static const uint64_t mib = 1ull << 20;

/* ---- asking ---- */

static struct tmk_caching_allocator *open_model(const char *conf, uint64_t limit_bytes)
{
    struct tmk_caching_setup setup = {.limit_bytes =
                                          limit_bytes ? limit_bytes : TMK_ALLOC_NO_BOUND};
    struct tmk_caching_allocator *a = NULL;
    assert_int_equal(tmk_alloc_conf_parse(conf, &setup.conf, NULL), 0);
    assert_int_equal(tmk_caching_open(&setup, &a), 0);
    return a;
}

static uint32_t take_on(struct tmk_caching_allocator *a, uint64_t bytes, uint32_t stream)
{
    uint32_t block = 0;
    assert_int_equal(tmk_caching_malloc(a, bytes, stream, &block), 1);
    assert_true(tmk_caching_is_valid(a));
    return block;
}

static uint32_t take(struct tmk_caching_allocator *a, uint64_t bytes)
{
    return take_on(a, bytes, 0);
}

static void give(struct tmk_caching_allocator *a, uint32_t block)
{
    assert_int_equal(tmk_caching_free(a, block), 0);
    assert_true(tmk_caching_is_valid(a));
}

static void check(const struct tmk_caching_allocator *a, uint64_t allocated, uint64_t reserved,
                  uint64_t n_segments)
{
    const struct tmk_caching_stats *s = tmk_caching_stats(a);
    assert_int_equal(s->allocated_bytes, allocated);
    assert_int_equal(s->reserved_bytes, reserved);
    assert_int_equal(s->n_segments, n_segments);
    assert_true(tmk_caching_is_valid(a));
}

/* ---- pools, cutting, merging ---- */

static void test_small_pool(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("", 0);
    uint32_t x = take(a, 1), y = take(a, mib);
    check(a, 512 + mib, 2 * mib, 1);
    uint32_t z = take(a, mib); /* of 2 MiB are 1 MiB - 512 left */
    check(a, 512 + 2 * mib, 4 * mib, 2);
    give(a, x);
    give(a, y);
    check(a, mib, 4 * mib, 2);
    take(a, 2 * mib - 512); /* large: another pool */
    check(a, 3 * mib - 512, 24 * mib, 3);
    give(a, z);
    tmk_caching_close(a);
}

static void test_cut_and_merge(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("", 0);
    uint32_t x = take(a, 5 * mib), y = take(a, 5 * mib), z = take(a, 9 * mib);
    check(a, 20 * mib, 20 * mib, 1); /* 1 MiB is left: not cut off */
    give(a, x);
    give(a, z);
    give(a, y); /* all three are one again */
    check(a, 0, 20 * mib, 1);
    uint32_t all = take(a, 19 * mib);
    check(a, 20 * mib, 20 * mib, 1);
    give(a, all);
    take(a, 30 * mib + 1); /* a segment of its own, of a multiple of 2 MiB; 1 MiB and more is cut */
    check(a, 30 * mib + 512, 52 * mib, 2);
    take(a, mib + 512); /* best fit: the rest of it, 2 MiB - 512, which is not cut */
    check(a, 32 * mib, 52 * mib, 2);
    tmk_caching_close(a);
}

static void test_streams(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("", 0);
    uint32_t x = take_on(a, 12 * mib, 3);
    give(a, x);
    take_on(a, 12 * mib, 0); /* what another stream left is not for us */
    check(a, 12 * mib, 24 * mib, 2);
    take_on(a, 12 * mib, 3);
    check(a, 24 * mib, 24 * mib, 2);
    tmk_caching_close(a);
}

/* Given up on one stream while another uses it: not handed out before that is done. */
static void test_pending(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("", 30 * mib);
    uint32_t x = take(a, 12 * mib);
    assert_int_equal(tmk_caching_free_requested(a, x), 0);
    check(a, 0, 12 * mib, 1);
    uint32_t y = take(a, 12 * mib);
    check(a, 12 * mib, 24 * mib, 2);
    assert_int_equal(tmk_caching_free_completed(a, x), 0);
    give(a, y);
    x = take(a, 12 * mib);
    check(a, 12 * mib, 24 * mib, 2);
    assert_int_equal(tmk_caching_free_requested(a, x), 0);
    take(a, 24 * mib); /* over the limit: waits for all, gives all back */
    check(a, 24 * mib, 24 * mib, 1);
    assert_int_equal(tmk_caching_stats(a)->n_retries, 1);
    assert_int_equal(tmk_caching_stats(a)->n_syncs, 1);
    tmk_caching_close(a);
}

/* A segment that was there, with two blocks and free memory before, between and behind them. */
static void test_seed(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("", 0);
    const struct tmk_caching_seed segment = {1ull << 40, 40 * mib};
    const struct tmk_caching_seed blocks[] = {{(1ull << 40) + 4 * mib, 5 * mib},
                                              {(1ull << 40) + 12 * mib, 8 * mib}};
    uint32_t numbers[2];
    assert_int_equal(tmk_caching_seed(a, &segment, 0, blocks, 2, numbers), 0);
    check(a, 13 * mib, 40 * mib, 1);
    take(a, 3 * mib); /* the 3 MiB between fit best */
    take(a, 4 * mib); /* then the 4 before */
    check(a, 20 * mib, 40 * mib, 1);
    give(a, numbers[1]);
    take(a, 28 * mib); /* with the 20 behind it, one block */
    check(a, 40 * mib, 40 * mib, 1);
    tmk_caching_close(a);
}

/* ---- limits ---- */

static void test_retry_and_oom(void **state)
{
    (void)state;
    uint32_t block;
    struct tmk_caching_allocator *a = open_model("", 50 * mib);
    uint32_t x = take(a, 20 * mib), y = take(a, 20 * mib);
    give(a, x);
    take(a, 24 * mib); /* 64 MiB would be over: the first goes back */
    check(a, 44 * mib, 44 * mib, 2);
    assert_int_equal(tmk_caching_stats(a)->n_retries, 1);
    assert_int_equal(tmk_caching_malloc(a, 12 * mib, 0, &block), 0);
    assert_int_equal(tmk_caching_stats(a)->n_retries, 2);
    assert_int_equal(tmk_caching_stats(a)->n_ooms, 1);
    check(a, 44 * mib, 44 * mib, 2);
    give(a, y);
    take(a, 6 * mib);
    check(a, 30 * mib, 44 * mib, 2);
    assert_int_equal(tmk_caching_stats(a)->peak_reserved_bytes, 44 * mib);
    tmk_caching_close(a);
}

static void test_absurd(void **state)
{
    (void)state;
    uint32_t block;
    struct tmk_caching_allocator *a = open_model("", 0);
    assert_int_equal(tmk_caching_malloc(a, UINT64_MAX, 0, &block), 0);
    assert_int_equal(tmk_caching_malloc(a, 1ull << 60, 0, &block), 0);
    assert_int_equal(tmk_caching_malloc(a, 512, 1u << 20, &block), TMK_EINVAL);
    check(a, 0, 0, 0);
    tmk_caching_close(a);
    a = open_model("expandable_segments:True", 0); /* more than the address space of a segment */
    uint32_t x = take(a, 30 * mib);
    assert_int_equal(tmk_caching_malloc(a, 1ull << 60, 0, &block), 0);
    assert_int_equal(tmk_caching_malloc(a, 1ull << 52, 0, &block), 0);
    check(a, 30 * mib, 40 * mib, 0);
    give(a, x);
    tmk_caching_close(a);
}

/* ---- max_split_size_mb ---- */

static void test_oversize(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("max_split_size_mb:32", 0);
    uint32_t x = take(a, 100 * mib);
    give(a, x);
    take(a, 30 * mib); /* an oversize block is not for smaller requests */
    check(a, 30 * mib, 130 * mib, 2);
    take(a, 80 * mib); /* nor for one that would leave 20 MiB of it */
    check(a, 110 * mib, 210 * mib, 3);
    take(a, 80 * mib + 2048); /* less than that is well: it is not cut */
    check(a, 210 * mib, 210 * mib, 3);
    tmk_caching_close(a);
}

static void test_oversize_release(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("max_split_size_mb:32", 150 * mib);
    uint32_t x = take(a, 40 * mib), y = take(a, 60 * mib), small = take(a, 12 * mib);
    give(a, x);
    give(a, y);
    give(a, small);
    take(a, 100 * mib); /* none is large enough: 60 and 40 go, no retry is needed */
    check(a, 100 * mib, 112 * mib, 2);
    assert_int_equal(tmk_caching_stats(a)->n_retries, 0);
    tmk_caching_close(a);
    a = open_model("max_split_size_mb:32", 150 * mib);
    x = take(a, 40 * mib), y = take(a, 60 * mib);
    take(a, 20 * mib);
    give(a, x);
    give(a, y);
    take(a, 31 * mib); /* the smallest oversize one goes; 80 and a segment of 32, not cut */
    check(a, 52 * mib, 112 * mib, 3);
    tmk_caching_close(a);
}

/* ---- garbage collection ---- */

/* Ages count searches of the large pool since a block became free. Over 50 MiB (half of the limit)
 * those go that are at least as old as the average. */
static void test_garbage(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("garbage_collection_threshold:0.5", 100 * mib);
    uint32_t x = take(a, 20 * mib), y = take(a, 22 * mib), z = take(a, 24 * mib);
    give(a, x);
    give(a, y); /* as old */
    give(a, z);
    z = take(a, 24 * mib); /* found: no collection; x and y have age 1 */
    give(a, z);            /* age 0 */
    check(a, 0, 66 * mib, 3);
    take(a, 30 * mib); /* 66 > 50: ages 2, 2, 1, average 5/3: x and y go, 42 >= 16 is enough */
    check(a, 30 * mib, 54 * mib, 2);
    assert_int_equal(tmk_caching_stats(a)->n_retries, 0);
    tmk_caching_close(a);
    a = open_model("garbage_collection_threshold:0.5", 0); /* torch: not without a limit */
    x = take(a, 20 * mib);
    give(a, x);
    take(a, 500 * mib);
    check(a, 500 * mib, 520 * mib, 2);
    tmk_caching_close(a);
}

/* ---- expandable segments ---- */

static void test_expandable(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("expandable_segments:True", 0);
    uint32_t x = take(a, 15 * mib);
    check(a, 15 * mib, 20 * mib, 0); /* a page of 20 MiB; 5 MiB of it are free */
    take(a, 6 * mib);                /* the free end and another page */
    check(a, 21 * mib, 40 * mib, 0);
    take(a, 1); /* the small pool's pages have 2 MiB */
    check(a, 21 * mib + 512, 42 * mib, 0);
    uint32_t y = take(a, 19 * mib - 512); /* cut to 512 bytes */
    check(a, 40 * mib, 42 * mib, 0);
    give(a, x);
    give(a, y);
    assert_int_equal(tmk_caching_empty_cache(a), 0);
    /* Whole free pages alone: 15 MiB of the first page lie beside a block, as does the second. */
    check(a, 6 * mib + 512, 42 * mib, 0);
    tmk_caching_close(a);
}

static void test_expandable_unmap(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("expandable_segments:True", 0);
    uint32_t x = take(a, 50 * mib), y = take(a, 5 * mib), z = take(a, 65 * mib);
    check(a, 120 * mib, 120 * mib, 0);
    give(a, x);
    give(a, z);
    assert_int_equal(tmk_caching_empty_cache(a), 0);
    /* x is 0-50: pages 0-40 go. z is 55-120: 60-120 go. */
    check(a, 5 * mib, 20 * mib, 0);
    x = take(a, 30 * mib); /* lowest room: maps the two pages before the 10 MiB that are free */
    check(a, 35 * mib, 60 * mib, 0);
    give(a, y);
    give(a, x);
    assert_int_equal(tmk_caching_empty_cache(a), 0);
    check(a, 0, 0, 0);
    take(a, 25 * mib); /* the segment was given up: a new one */
    check(a, 25 * mib, 40 * mib, 0);
    tmk_caching_close(a);
}

/* A free block at the end counts as large as it could grow: one between blocks is taken first. */
static void test_expandable_best_fit(void **state)
{
    (void)state;
    struct tmk_caching_allocator *a = open_model("expandable_segments:True", 0);
    uint32_t x = take(a, 12 * mib);
    take(a, 2 * mib);
    give(a, x); /* free: 12 MiB at the start, 6 MiB at the end */
    take(a, 5 * mib);
    take(a, 7 * mib); /* 5 + 7 fill the start */
    check(a, 14 * mib, 20 * mib, 0);
    take(a, 6 * mib); /* so the end is still whole */
    check(a, 20 * mib, 20 * mib, 0);
    tmk_caching_close(a);
}

/* The limit is looked at before pages are mapped, by what a segment would have taken. */
static void test_expandable_limit(void **state)
{
    (void)state;
    uint32_t block;
    struct tmk_caching_allocator *a = open_model("expandable_segments:True", 45 * mib);
    take(a, 12 * mib);              /* 12 <= 45; 20 mapped */
    uint32_t x = take(a, 24 * mib); /* 20 + 24 <= 45; another page, after the 8 MiB free: 40 */
    check(a, 36 * mib, 40 * mib, 0);
    assert_int_equal(tmk_caching_malloc(a, 5 * mib, 0, &block), 0); /* 40 + 20 > 45 */
    assert_int_equal(tmk_caching_stats(a)->n_retries, 1);
    give(a, x);
    take(a, 14 * mib);
    check(a, 26 * mib, 40 * mib, 0);
    tmk_caching_close(a);
}

/* ---- sets ---- */

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

enum { N_KEYS = 700, N_ROUNDS = 40000 };

struct plain_key {
    uint64_t size, address;
    uint32_t block;
    bool is_in;
};

static const struct plain_key *plain_find(const struct plain_key *keys, uint64_t size)
{
    const struct plain_key *best = NULL;
    for (int i = 0; i < N_KEYS; i++)
        if (keys[i].is_in && keys[i].size >= size &&
            (!best || keys[i].size < best->size ||
             (keys[i].size == best->size && keys[i].address < best->address)))
            best = &keys[i];
    return best;
}

static void test_free_set(void **state)
{
    (void)state;
    static struct plain_key keys[N_KEYS];
    struct tmk_free_set set = {0};
    uint64_t seed = 1, n = 0;
    for (uint32_t i = 0; i < N_KEYS; i++)
        keys[i] = (struct plain_key){(1 + next_random(&seed) % 60) * 512, i * 512ull, i, false};
    for (int round = 0; round < N_ROUNDS; round++) {
        struct plain_key *k = &keys[next_random(&seed) % N_KEYS];
        if (k->is_in)
            tmk_free_set_remove(&set, k->size, k->address, k->block);
        else
            assert_int_equal(tmk_free_set_add(&set, k->size, k->address, k->block), 0);
        n += k->is_in ? (uint64_t)-1 : 1;
        k->is_in = !k->is_in;
        assert_int_equal(set.n, n);
        assert_true(tmk_free_set_is_valid(&set));
        uint64_t size = next_random(&seed) % 70 * 512;
        const struct plain_key *best = plain_find(keys, size);
        struct tmk_free_cursor c = tmk_free_set_find(&set, size, 0);
        assert_int_equal(tmk_free_set_is_end(&set, c), !best);
        if (best)
            assert_int_equal(tmk_free_set_block(&set, c), best->block);
    }
    uint64_t n_walked = 0;
    struct tmk_free_cursor c = tmk_free_set_begin();
    for (; !tmk_free_set_is_end(&set, c); tmk_free_set_next(&set, &c))
        n_walked++;
    assert_int_equal(n_walked, n);
    while (tmk_free_set_back(&set, &c))
        n_walked--;
    assert_int_equal(n_walked, 0);
    tmk_free_set_fini(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_pool),
        cmocka_unit_test(test_cut_and_merge),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_retry_and_oom),
        cmocka_unit_test(test_absurd),
        cmocka_unit_test(test_oversize),
        cmocka_unit_test(test_oversize_release),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_expandable),
        cmocka_unit_test(test_expandable_unmap),
        cmocka_unit_test(test_expandable_best_fit),
        cmocka_unit_test(test_expandable_limit),
        cmocka_unit_test(test_free_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
