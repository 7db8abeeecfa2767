/* SPDX-License-Identifier: MIT */
/* record/pycodes.c - see pycodes.h.
 *
 * The watcher is called with Python's lock; stacks are walked without. A code object on a walking
 * thread's stack lives: it was noted before its stack became known, and goes only after that. So
 * who goes and was noted is seen here before its address is anybody else's. Notes are bits by a
 * hash of the address: now and then one goes that was never in a stack and is taken for one. */
#include "record/pycodes.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "record/pyframe.h"
#include "record/python.h"

enum { N_WORDS = 1024, WORD_BITS = 64, GOES = 1 /* PY_CODE_EVENT_DESTROY */ };
enum { MOST_TIMES = 64 }; /* that known stacks are forgotten within a second */
static const uint64_t second_ns = 1000000000u;

typedef int watcher_function(int event, const void *code);

static struct {
    _Atomic uint64_t seen[N_WORDS];
    uint64_t since_ns; /* with Python's lock, as the next */
    uint32_t n_times;  /* since then */
    _Atomic bool is_wanted;
    int (*add_watcher)(watcher_function *watcher); /* Python's, as the next */
    int (*at_exit)(void (*function)(void));
    void (*clear_error)(void);
} codes;

static inline uint64_t place_of(const void *code)
{
    return ((uintptr_t)code >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48;
}

void tmk_pycodes_note(const void *code)
{
    uint64_t place = place_of(code);
    atomic_fetch_or(&codes.seen[place / WORD_BITS], UINT64_C(1) << place % WORD_BITS);
}

static bool was_noted(const void *code)
{
    uint64_t place = place_of(code);
    return atomic_load(&codes.seen[place / WORD_BITS]) >> place % WORD_BITS & 1;
}

/* True: it happens too often. */
static bool count_time(void)
{
    uint64_t now = tmk_clock_monotonic_ns();
    if (now - codes.since_ns > second_ns) {
        codes.since_ns = now;
        codes.n_times = 0;
    }
    return ++codes.n_times > MOST_TIMES;
}

static int on_event(int event, const void *code)
{
    if (event != GOES || !was_noted(code))
        return 0;
    for (int i = 0; i < N_WORDS; i++)
        atomic_store_explicit(&codes.seen[i], 0, memory_order_relaxed);
    tmk_pyframe_forget();
    if (count_time())
        tmk_pyframe_set_watched(false);
    return 0;
}

/* The interpreter ends: one that comes after it has no watcher of ours yet. */
static void on_end(void)
{
    tmk_pyframe_set_watched(false);
    atomic_store(&codes.is_wanted, false);
}

/* On the main thread, of the main interpreter, whose frames are the ones that are read. The watcher
 * stays for good: it costs next to nothing where no stacks are known. */
static int on_pending(void *unused)
{
    (void)unused;
    if (codes.at_exit(on_end) < 0)
        return 0;
    if (codes.add_watcher(on_event) >= 0)
        tmk_pyframe_set_watched(true);
    else
        codes.clear_error(); /* there are eight of them for all */
    return 0;
}

void tmk_pycodes_want(void)
{
    const char *reason;
    void *handle;
    if (atomic_exchange(&codes.is_wanted, true))
        return;
    const struct tmk_python *py = tmk_python_find(&reason);
    if (!py || !tmk_python_handle(&handle))
        return;
    codes.clear_error = py->PyErr_Clear;
    *(void **)&codes.add_watcher = dlsym(handle, "PyCode_AddWatcher"); /* from 3.12 on */
    *(void **)&codes.at_exit = dlsym(handle, "Py_AtExit");
    if (codes.add_watcher && codes.at_exit)
        py->Py_AddPendingCall(on_pending, NULL);
}
