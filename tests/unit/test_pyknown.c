/* SPDX-License-Identifier: MIT */
/* Hashes of Python stacks: the same whichever way the frames were looked at, and different where
 * the stacks are. Frames are stand-ins, of the layouts whose code objects are watched; CI's torch
 * runs on an older Python (tests/torch/test_anchors.py). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/core/lane.h"
#include "record/core/thread_slot.h"
#include "record/python/pyframe_hot.h"
#include "record/python/pyknown.h"
#include "record/python/pylayout.h"
#include "record/python/pyread.h"

enum { FRAME_BYTES = 128, MOST = 400, GENERATION = 7, FUNCTION = 0, ENTRY = 3 };

/* Functions' frames lie one above the other, entries from C above them all, the inner ones lower.
 */
static uint8_t stack[2 * MOST][FRAME_BYTES], thread[256], cframe[64];
static const void *chain[MOST]; /* outermost first */
static unsigned n_frames, n_functions;
static const struct tmk_pylayout *l;
static pthread_key_t key;

static void *this_thread(void)
{
    return pthread_getspecific(key);
}

static void put(void *at, uint16_t offset, const void *value)
{
    memcpy((uint8_t *)at + offset, &value, sizeof value);
}

static void look_from(const void *frame)
{
    put(l->indirect ? cframe : thread, l->indirect ? l->cframe_frame : l->thread_frame, frame);
}

static void push(unsigned owner, uintptr_t place)
{
    uint8_t *frame = owner == ENTRY ? stack[2 * MOST - 1 - n_frames] : stack[n_functions++];
    memset(frame, 0, FRAME_BYTES);
    put(frame, l->frame_back, n_frames ? chain[n_frames - 1] : NULL);
    put(frame, l->frame_instruction, (const void *)place);
    frame[l->frame_owner] = (uint8_t)owner;
    chain[n_frames++] = frame;
    look_from(frame);
}

static void pop_to(unsigned n)
{
    for (; n_frames > n; n_frames--)
        n_functions -= ((const uint8_t *)chain[n_frames - 1])[l->frame_owner] != ENTRY;
    look_from(n_frames ? chain[n_frames - 1] : NULL);
}

static struct tmk_lane lane = {.generation = GENERATION};

static struct tmk_pyknown find(const struct tmk_pyanchor *anchor)
{
    return tmk_pyframe_hot.find[anchor != NULL](&lane, anchor);
}

static struct tmk_pyknown find_in(uint32_t generation)
{
    struct tmk_lane other = {.generation = generation};
    return tmk_pyframe_hot.find[0](&other, NULL);
}

static void use(const struct tmk_pylayout *layout)
{
    l = layout;
    n_frames = n_functions = 0;
    memset(thread, 0, sizeof thread);
    put(thread, l->thread_interpreter, &key);
    if (l->indirect)
        put(thread, l->thread_frame, cframe);
    look_from(NULL);
    tmk_pyframe_runtime.layout = *layout;
    tmk_pyframe_hot.main_interpreter = &key;
    tmk_pyframe_runtime.this_thread = this_thread;
    pthread_setspecific(key, thread);
    tmk_pyknown_set_watched(true);
}

/* What the hash is said to be, one frame at a time. */
static uint64_t expected(void)
{
    uint64_t hash = (GENERATION + tmk_pyframe_hot.epoch) * 0x9e3779b97f4a7c15u;
    unsigned n = n_frames;
    if (n && ((const uint8_t *)chain[n - 1])[l->frame_owner] == ENTRY)
        n--;
    while (n-- > 0) {
        uint64_t place;
        memcpy(&place, (const uint8_t *)chain[n] + l->frame_instruction, sizeof place);
        hash = (hash + place) * 0x9e3779b97f4a7c15u;
    }
    return hash;
}

static uint32_t chance(void)
{
    static uint32_t state = 1;
    return (state = state * 1664525 + 1013904223) >> 8;
}

static void push_some(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        push(chance() % 4 == 0 ? ENTRY : FUNCTION, 2 * (1 + chance() % 5000));
    if (((const uint8_t *)chain[n_frames - 1])[l->frame_owner] == ENTRY)
        push(FUNCTION, 2);
}

/* Goes to and fro; at every place the hash is the same with hints, with an anchor, and by hand. */
static void wander(unsigned depth, const struct tmk_pyanchor *before)
{
    unsigned n_before = n_frames;
    struct tmk_pyanchor anchor;
    for (unsigned i = 0; i < 3; i++) {
        push_some(1 + chance() % 6);
        const struct tmk_pyanchor *now = tmk_pyknown_enter(&anchor, before);
        assert_ptr_equal(now, &anchor);
        push(ENTRY, 2);
        push_some(1 + chance() % 9);
        assert_int_equal(find(now).hash, expected());
        assert_int_equal(find(NULL).hash, expected());
        if (depth > 0)
            wander(depth - 1, now);
        assert_int_equal(find(now).hash, expected());
        assert_ptr_equal(tmk_pyknown_leave(&anchor, before), before);
        assert_int_equal(find(&anchor).hash, find(NULL).hash); /* it holds nothing any more */
        pop_to(n_before);
    }
}

static void test_every_way(void **state)
{
    const struct tmk_pylayout *layouts[] = {&tmk_pylayout_known[TMK_PYLAYOUT_3_12],
                                            &tmk_pylayout_usual_3_13};
    (void)state;
    for (unsigned with_slot = 0; with_slot < 2; with_slot++)
        for (unsigned i = 0; i < 2; i++) {
            use(layouts[i]);
            memset(&tmk_pyframe_hot.slot, 0, sizeof tmk_pyframe_hot.slot);
            if (with_slot)
                assert_true(tmk_thread_slot_find(this_thread, &tmk_pyframe_hot.slot));
            assert_int_equal(find(NULL).hash, 0); /* no frames */
            push(ENTRY, 2);
            assert_int_equal(find(NULL).hash, 0); /* no function */
            wander(4, NULL);
        }
}

/* What is not recorded of a deep stack is not part of the hash; and what is, is found again. */
static void test_deep(void **state)
{
    (void)state;
    use(&tmk_pylayout_known[TMK_PYLAYOUT_3_12]);
    for (unsigned n = 1; n < 300; n++) {
        push(FUNCTION, 2 * n);
        uint64_t hash = find(NULL).hash;
        assert_int_equal(find(NULL).hash, hash);
        assert_true(n > 258 || hash == expected());
    }
    pop_to(20);
    assert_int_equal(find(NULL).hash, expected());
}

static void test_remembered(void **state)
{
    (void)state;
    use(&tmk_pylayout_known[TMK_PYLAYOUT_3_12]);
    push_some(9);
    struct tmk_pyknown found = find(NULL);
    assert_int_equal(found.stack, 0);
    assert_int_equal(tmk_pyknown_stack(found.hash), 0);
    tmk_pyknown_remember(found.hash, 42);
    assert_int_equal(find(NULL).stack, 42);
    assert_int_equal(find_in(GENERATION + 1).stack, 0);
    for (uintptr_t i = 1; i < 100; i++) { /* nor is it that of a neighbour in another recording */
        uint64_t place;
        memcpy(&place, (const uint8_t *)chain[n_frames - 1] + l->frame_instruction, sizeof place);
        pop_to(n_frames - 1);
        push(FUNCTION, place - 1);
        assert_int_equal(find_in(GENERATION + (uint32_t)i).stack, 0);
    }
    pop_to(0);
    push_some(9);
    tmk_pyknown_remember(find(NULL).hash, 42);
    tmk_pyknown_forget();
    assert_int_equal(find(NULL).stack, 0);
}

/* As many as a training has: each is known at once, or not far behind, and then at once. */
static void test_places(void **state)
{
    (void)state;
    use(&tmk_pylayout_known[TMK_PYLAYOUT_3_12]);
    uint64_t hashes[600];
    unsigned n = 0;
    for (unsigned i = 0; i < 600; i++) {
        pop_to(0);
        push(FUNCTION, 2 * i + 2);
        hashes[n++] = find(NULL).hash;
        tmk_pyknown_remember(hashes[i], i + 1);
    }
    unsigned n_at_once = 0;
    for (unsigned i = 0; i < n; i++) {
        pop_to(0);
        push(FUNCTION, 2 * i + 2);
        uint32_t id = (uint32_t)find(NULL).stack;
        n_at_once += id != 0;
        assert_int_equal(id ? id : tmk_pyknown_stack(hashes[i]), i + 1);
    }
    assert_true(n_at_once > n / 2); /* 600 in 1,024 places: three quarters of them, by chance */
    uint64_t first = hashes[0];
    tmk_pyknown_remember(first, 1);
    pop_to(0);
    push(FUNCTION, 2);
    assert_int_equal(find(NULL).stack, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_remembered),
        cmocka_unit_test(test_places),
    };
    pthread_key_create(&key, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
