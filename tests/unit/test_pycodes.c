/* SPDX-License-Identifier: MIT */
/* Code objects that are watched: when known stacks are forgotten, given up, and known again. Python
 * and the frames are stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "record/python/pycodes.h"
#include "record/python/pyknown.h"
#include "record/python/python.h"

enum { MADE, GOES, AT_ONCE = 8 };
static const uint64_t second_ns = 1000000000u;

static struct tmk_python python;
static bool is_running = true, can_be_watched, is_watched, is_full;
static unsigned n_forgotten, n_watchers, n_asked, n_cleared;
static int (*pending)(void *), (*watcher)(int event, const void *code);
static void (*at_exit)(void);
static char codes[64][16] __attribute__((aligned(16)));

const struct tmk_python *tmk_python_find(const char **ret_reason)
{
    *ret_reason = "";
    return is_running ? &python : NULL;
}

bool tmk_pyknown_can_be_watched(void)
{
    return can_be_watched;
}

void tmk_pyknown_set_watched(bool is)
{
    is_watched = is;
}

void tmk_pyknown_forget(void)
{
    n_forgotten++;
}

static int add_pending(int (*function)(void *), void *arg)
{
    (void)arg;
    n_asked++;
    pending = is_full ? NULL : function;
    return is_full ? -1 : 0;
}

static int add_watcher(int (*function)(int, const void *))
{
    watcher = function;
    return n_watchers < AT_ONCE ? (int)n_watchers++ : -1;
}

static int add_at_exit(void (*function)(void))
{
    at_exit = function;
    return 0;
}

static void clear_error(void)
{
    n_cleared++;
}

/* The main thread comes to it. */
static void run_pending(void)
{
    assert_non_null(pending);
    assert_int_equal(pending(NULL), 0);
    pending = NULL;
}

static void go_away(const void *code)
{
    assert_int_equal(watcher(GOES, code), 0);
}

/* From the first look on. */
static void begin(void)
{
    can_be_watched = true;
    tmk_pycodes_look(0);
    run_pending();
    assert_true(is_watched);
    n_forgotten = 0;
}

static int setup(void **state)
{
    (void)state;
    if (at_exit)
        at_exit();
    python.PyCode_AddWatcher = add_watcher;
    python.Py_AtExit = add_at_exit;
    python.Py_AddPendingCall = add_pending;
    python.PyErr_Clear = clear_error;
    is_running = true;
    can_be_watched = is_watched = is_full = false;
    n_forgotten = n_watchers = n_asked = n_cleared = 0;
    return 0;
}

static void test_when_it_matters(void **state)
{
    (void)state;
    tmk_pycodes_look(0);
    assert_int_equal(n_asked, 0);
    can_be_watched = true;
    is_running = false;
    tmk_pycodes_look(0);
    assert_int_equal(n_asked, 0);
    is_running = true;
    is_full = true; /* Python's list of calls that wait */
    tmk_pycodes_look(0);
    is_full = false;
    tmk_pycodes_look(0);
    tmk_pycodes_look(0); /* it waits */
    assert_int_equal(n_asked, 2);
    assert_false(is_watched);
    run_pending();
    assert_true(is_watched);
    tmk_pycodes_look(0);
    assert_int_equal(n_asked, 2);
    assert_int_equal(n_watchers, 1);
}

static void test_who_was_noted(void **state)
{
    (void)state;
    tmk_pycodes_note(codes[0]); /* before it is watched: nobody needs that */
    begin();
    go_away(codes[0]);
    tmk_pycodes_note(codes[1]);
    assert_int_equal(watcher(MADE, codes[1]), 0);
    go_away(codes[2]);
    assert_int_equal(n_forgotten, 0);
    go_away(codes[1]);
    go_away(codes[1]); /* noted anew it would have to be */
    assert_int_equal(n_forgotten, 1);
    assert_true(is_watched);
}

static uint64_t give_up(void)
{
    for (unsigned i = 0; i <= AT_ONCE; i++) {
        assert_true(is_watched);
        tmk_pycodes_note(codes[i]);
        go_away(codes[i]);
    }
    assert_false(is_watched);
    return tmk_clock_monotonic_ns();
}

static void test_too_often(void **state)
{
    (void)state;
    begin();
    uint64_t now = give_up();
    n_forgotten = 0;
    tmk_pycodes_note(codes[20]);
    go_away(codes[20]);
    assert_int_equal(n_forgotten, 0);
    tmk_pycodes_look(now + 9 * second_ns);
    assert_null(pending);
    tmk_pycodes_look(now + 11 * second_ns);
    run_pending();
    assert_true(is_watched);
    assert_int_equal(n_watchers, 1); /* the same one */
    now = give_up();
    tmk_pycodes_look(now + 19 * second_ns); /* twice as long now */
    assert_null(pending);
    tmk_pycodes_look(now + 21 * second_ns);
    run_pending();
    assert_true(is_watched);
}

static void test_others_have_all(void **state)
{
    (void)state;
    n_watchers = AT_ONCE;
    can_be_watched = true;
    tmk_pycodes_look(0);
    run_pending();
    assert_false(is_watched);
    assert_int_equal(n_cleared, 1);
    tmk_pycodes_look(100 * second_ns);
    assert_int_equal(n_asked, 1);
}

static void test_python_ends(void **state)
{
    (void)state;
    begin();
    at_exit();
    assert_false(is_watched);
    begin(); /* with the next one, which has none of ours */
    assert_int_equal(n_watchers, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_when_it_matters, setup),
        cmocka_unit_test_setup(test_who_was_noted, setup),
        cmocka_unit_test_setup(test_too_often, setup),
        cmocka_unit_test_setup(test_others_have_all, setup),
        cmocka_unit_test_setup(test_python_ends, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
