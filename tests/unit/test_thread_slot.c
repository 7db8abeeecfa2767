/* SPDX-License-Identifier: MIT */
/* A pthread key's value, read from where glibc keeps it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/time.h>

#include "record/core/thread_slot.h"

static pthread_key_t key;
static char mine, theirs;

static void *get(void)
{
    return pthread_getspecific(key);
}

static void *get_something(void)
{
    return &mine;
}

static void *get_nothing(void)
{
    return NULL;
}

static void *in_thread(void *arg)
{
    const struct tmk_thread_slot *slot = arg;
    void *before = &mine, *after = NULL;
    bool is_read = tmk_thread_slot_read(slot, &before);
    pthread_setspecific(key, &theirs);
    is_read = is_read && tmk_thread_slot_read(slot, &after);
    return is_read && before == NULL ? after : NULL;
}

/* Two keys have the same value; the one that get() reads is found, and the other left as it was. */
static void test_found(void **state)
{
    (void)state;
    struct tmk_thread_slot slot;
    pthread_key_t other;
    pthread_t thread;
    void *value;
    assert_int_equal(pthread_key_create(&other, NULL), 0);
    assert_int_equal(pthread_key_create(&key, NULL), 0);
    pthread_setspecific(other, &mine);
    pthread_setspecific(key, &mine);
    assert_true(tmk_thread_slot_find(get, &slot));
    assert_ptr_equal(pthread_getspecific(other), &mine);
    assert_ptr_equal(get(), &mine);
    assert_true(tmk_thread_slot_read(&slot, &value));
    assert_ptr_equal(value, &mine);
    pthread_setspecific(other, &theirs);
    assert_true(tmk_thread_slot_read(&slot, &value));
    assert_ptr_equal(value, &mine);
    pthread_setspecific(key, NULL);
    assert_true(tmk_thread_slot_read(&slot, &value));
    assert_null(value);
    pthread_setspecific(key, &mine);
    assert_int_equal(pthread_create(&thread, NULL, in_thread, &slot), 0);
    pthread_join(thread, &value);
    assert_ptr_equal(value, &theirs);
    assert_true(tmk_thread_slot_read(&slot, &value));
    assert_ptr_equal(value, &mine);

    /* The next key may be in the same place: it is not taken for this one. */
    pthread_key_delete(key);
    assert_false(tmk_thread_slot_read(&slot, &value));
    assert_int_equal(pthread_key_create(&key, NULL), 0);
    pthread_setspecific(key, &mine);
    assert_false(tmk_thread_slot_read(&slot, &value));
    assert_true(tmk_thread_slot_find(get, &slot));
    pthread_key_delete(key);
    pthread_key_delete(other);
}

static volatile sig_atomic_t n_signals, n_wrong;

static void look(int number)
{
    (void)number;
    n_signals++;
    n_wrong += get() != &mine;
}

/* A handler that looks at the value meanwhile, as those of profilers do, finds what is there. */
static void test_signals(void **state)
{
    (void)state;
    enum { WANTED = 2000 };
    struct sigaction before, action = {.sa_handler = look, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
    struct tmk_thread_slot slot;
    assert_int_equal(pthread_key_create(&key, NULL), 0);
    pthread_setspecific(key, &mine);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    while (n_signals < WANTED)
        assert_true(tmk_thread_slot_find(get, &slot));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(n_wrong, 0);
    pthread_key_delete(key);
}

/* As in a process that uses CUDA: there are more keys than a descriptor has room for, and the next
 * one is not in it. */
static void test_crowded(void **state)
{
    (void)state;
    enum { N_OTHERS = 40 };
    struct tmk_thread_slot slot;
    pthread_key_t others[N_OTHERS];
    void *value;
    assert_int_equal(pthread_key_create(&key, NULL), 0);
    for (unsigned i = 0; i < N_OTHERS; i++)
        assert_int_equal(pthread_key_create(&others[i], NULL), 0);
    pthread_setspecific(key, &mine);
    assert_true(tmk_thread_slot_find(get, &slot));
    assert_true(tmk_thread_slot_read(&slot, &value));
    assert_ptr_equal(value, &mine);
    pthread_key_delete(key);

    key = others[N_OTHERS - 1]; /* such a one cannot be read */
    pthread_setspecific(key, &mine);
    assert_false(tmk_thread_slot_find(get, &slot));
    assert_ptr_equal(get(), &mine);
    for (unsigned i = 0; i < N_OTHERS; i++)
        pthread_key_delete(others[i]);
}

static void test_none(void **state)
{
    (void)state;
    struct tmk_thread_slot slot;
    pthread_key_t other;
    void *value;
    assert_int_equal(pthread_key_create(&other, NULL), 0);
    pthread_setspecific(other, &mine);
    assert_false(tmk_thread_slot_find(get_something, &slot)); /* by no key */
    assert_false(tmk_thread_slot_read(&slot, &value));
    assert_ptr_equal(pthread_getspecific(other), &mine);
    assert_false(tmk_thread_slot_find(get_nothing, &slot));
    pthread_key_delete(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_crowded),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
