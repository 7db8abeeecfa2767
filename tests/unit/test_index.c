/* SPDX-License-Identifier: MIT */
/* test_index.c - the index finds what an array has, whatever was added, removed and renumbered; and
 * arrays grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "kit/grow.h"

enum { N_SLOTS = 64, N_KEYS = 300, N_ROUNDS = 20000 };

/* Items that the index is about: a key each, of which few have a hash of their own. */
struct items {
    struct tmk_index index;
    uint64_t slots[N_SLOTS];
    uint64_t keys[N_KEYS];
    uint32_t n;
    uint32_t n_hashes; /* different ones; 0: as many as there are keys */
};

static uint64_t hash_of(const struct items *t, uint64_t key)
{
    return tmk_hash_u64(t->n_hashes ? key % t->n_hashes : key);
}

static uint32_t find(const struct items *t, uint64_t key)
{
    struct tmk_probe probe = tmk_index_probe(&t->index, hash_of(t, key));
    uint32_t i;
    while ((i = tmk_probe_next(&probe)) && t->keys[i - 1] != key)
        continue;
    return i;
}

static void add(struct items *t, uint64_t key)
{
    t->keys[t->n++] = key;
    tmk_index_add(&t->index, hash_of(t, key), t->n);
}

/* The last item takes the place of the one that goes. */
static void take_out(struct items *t, uint32_t number)
{
    uint64_t last = t->keys[t->n - 1];
    tmk_index_remove(&t->index, hash_of(t, t->keys[number - 1]), number);
    if (number < t->n)
        tmk_index_renumber(&t->index, hash_of(t, last), t->n, number);
    t->keys[number - 1] = last;
    t->n--;
}

static void use_own_slots(struct items *t, uint32_t n_hashes)
{
    memset(t, 0, sizeof *t);
    t->index = tmk_index_of(t->slots, N_SLOTS);
    t->n_hashes = n_hashes;
}

static void test_empty(void **state)
{
    (void)state;
    struct items t = {0};
    assert_int_equal(find(&t, 1), 0);
    assert_false(tmk_index_has_room(&t.index));
    assert_true(tmk_index_is_valid(&t.index));
    assert_int_equal(tmk_index_slots_for(0, 64), 64);
    assert_int_equal(tmk_index_slots_for(32, 64), 64);
    assert_int_equal(tmk_index_slots_for(33, 64), 128);
    assert_int_equal(tmk_index_slots_for(UINT32_MAX, 64), 1u << 31);
}

static void test_insert_and_find(void **state)
{
    (void)state;
    struct items t;
    use_own_slots(&t, 0);
    for (uint64_t key = 100; tmk_index_has_room(&t.index); key++)
        add(&t, key);
    assert_int_equal(t.n, N_SLOTS / 2); /* full: no more than half */
    assert_true(tmk_index_is_valid(&t.index));
    for (uint32_t i = 0; i < t.n; i++)
        assert_int_equal(find(&t, 100 + i), i + 1);
    assert_int_equal(find(&t, 99), 0);
    assert_int_equal(find(&t, 100 + t.n), 0);
    tmk_index_reset(&t.index, N_SLOTS / 2);
    assert_int_equal(t.index.n, 0);
    assert_int_equal(find(&t, 100), 0);
    for (uint32_t i = 0; i < N_SLOTS; i++)
        assert_int_equal(t.slots[i], 0);
}

/* All have the same hash, so each is found behind the ones before; and a hash may be 0. */
static void test_collisions(void **state)
{
    (void)state;
    struct items t;
    use_own_slots(&t, 1);
    assert_int_equal(hash_of(&t, 5), 0);
    for (uint64_t key = 1; tmk_index_has_room(&t.index); key++)
        add(&t, key);
    for (uint32_t i = 1; i <= t.n; i++)
        assert_int_equal(find(&t, i), i);
    assert_int_equal(find(&t, t.n + 1), 0);
    while (t.n > 0) {
        take_out(&t, 1 + t.n / 2);
        assert_true(tmk_index_is_valid(&t.index));
        for (uint32_t i = 0; i < t.n; i++)
            assert_int_equal(find(&t, t.keys[i]), i + 1);
    }
}

/* Against a list of what is there, with many chains and such that go round the end. */
static void test_add_and_remove(void **state)
{
    (void)state;
    static const uint32_t hashes[] = {0, 2, 7, 40};
    for (size_t h = 0; h < sizeof hashes / sizeof hashes[0]; h++) {
        struct items t;
        bool is_there[N_KEYS] = {false};
        uint64_t random = 1;
        use_own_slots(&t, hashes[h]);
        for (uint32_t round = 0; round < N_ROUNDS; round++) {
            random = tmk_hash_u64(random + 1);
            uint64_t key = random % N_KEYS;
            uint32_t number = find(&t, key);
            assert_int_equal(number != 0, is_there[key]);
            if (number)
                take_out(&t, number);
            else if (tmk_index_has_room(&t.index))
                add(&t, key);
            else
                continue;
            is_there[key] = !is_there[key];
            assert_true(tmk_index_is_valid(&t.index));
        }
    }
}

static void test_grow_index(void **state)
{
    (void)state;
    struct tmk_index x = {0};
    enum { N = 100000 };
    for (uint32_t i = 1; i <= N; i++) {
        assert_int_equal(tmk_grow_index(&x), 0);
        tmk_index_add(&x, tmk_hash_u64(i), i);
    }
    assert_true(tmk_index_is_valid(&x));
    assert_int_equal(x.n, N);
    for (uint32_t i = 1; i <= N; i++) {
        struct tmk_probe probe = tmk_index_probe(&x, tmk_hash_u64(i));
        uint32_t found;
        while ((found = tmk_probe_next(&probe)) && found != i)
            continue;
        assert_int_equal(found, i);
    }
    free(x.slots);
}

/* Slots that are wrong in each of the ways are seen. */
static void test_is_valid(void **state)
{
    (void)state;
    struct items t;
    use_own_slots(&t, 1);
    add(&t, 1);
    add(&t, 2);
    add(&t, 3);
    assert_true(tmk_index_is_valid(&t.index));
    t.index.n = 4;
    assert_false(tmk_index_is_valid(&t.index));
    t.index.n = 2;
    t.slots[1] = 0; /* a hole in the chain */
    assert_false(tmk_index_is_valid(&t.index));
    t.index.n = 3;
    t.slots[1] = UINT64_C(1) << 32; /* number 0 */
    assert_false(tmk_index_is_valid(&t.index));
}

static void test_grow(void **state)
{
    (void)state;
    struct {
        uint16_t *items;
        uint64_t n, room;
    } t = {0};
    assert_int_equal(TMK_GROW(t.items, 0, t.room), 0);
    assert_non_null(t.items);
    assert_int_equal(t.room, 16);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(TMK_GROW(t.items, t.n + 1, t.room), 0);
        t.items[t.n++] = (uint16_t)i;
    }
    assert_int_equal(t.room, 1024);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(t.items[i], i);
    uint16_t *before = t.items;
    assert_int_equal(TMK_GROW(t.items, UINT64_MAX, t.room), TMK_ENOMEM);
    assert_ptr_equal(t.items, before);
    assert_int_equal(t.room, 1024);
    free(t.items);

    uint64_t *arrays[2] = {NULL, NULL}, room = 0;
    int n_calls = 0;
    assert_int_equal(TMK_GROW(arrays[n_calls++], 1, room), 0);
    assert_int_equal(n_calls, 1);
    free(arrays[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),      cmocka_unit_test(test_insert_and_find),
        cmocka_unit_test(test_collisions), cmocka_unit_test(test_add_and_remove),
        cmocka_unit_test(test_grow_index), cmocka_unit_test(test_is_valid),
        cmocka_unit_test(test_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
