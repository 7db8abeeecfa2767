/* SPDX-License-Identifier: MIT */
/* record/python/pycodes.c - see pycodes.h.
 *
 * The watcher is called with Python's lock, as is all that changes the state to ON or from it;
 * stacks are walked without. A code object on a walking thread's stack lives: it was noted before
 * its stack became known, and goes only after that. So who goes and was noted is seen here before
 * its address is anybody else's. Notes are two bits each, by a hash of the address: seldom one goes
 * that was never in a stack and is taken for one. */
#include "record/python/pycodes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "record/python/pyknown.h"
#include "record/python/python.h"

enum { N_WORDS = 1024, WORD_BITS = 64, GOES = 1 /* PY_CODE_EVENT_DESTROY */ };
enum { OFF, ASKED, ON, RESTING, NEVER };

static const uint64_t second_ns = 1000000000u;
/* Known stacks are forgotten so often, on the average, and so many times more than that at once:
 * what that costs is a part of what watching saves. */
static const uint64_t forget_seconds = 16, n_at_once = 8;
static const uint64_t first_rest_seconds = 10;

static struct {
    _Atomic uint64_t seen[N_WORDS];
    _Atomic int state;
    _Atomic uint64_t rest_until_ns;
    const struct tmk_python *py; /* from the first time on; with Python's lock, as what follows */
    bool has_watcher;
    uint64_t paid_ns; /* until when what was forgotten is made up for */
    uint64_t rest_ns; /* the next one */
} watched_codes;

struct note_bits {
    _Atomic uint64_t *words[2];
    uint64_t masks[2];
};

static inline struct note_bits bits_of(const void *code)
{
    uint64_t hash = ((uintptr_t)code >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t first = hash >> 48, second = hash >> 32 & 0xffff;
    return (struct note_bits){
        {&watched_codes.seen[first / WORD_BITS], &watched_codes.seen[second / WORD_BITS]},
        {UINT64_C(1) << first % WORD_BITS, UINT64_C(1) << second % WORD_BITS}};
}
_Static_assert(N_WORDS *WORD_BITS == 1 << 16, "sixteen bits of a hash say which");

void tmk_pycodes_note(const void *code)
{
    if (atomic_load_explicit(&watched_codes.state, memory_order_acquire) != ON)
        return;
    struct note_bits bits = bits_of(code);
    for (int i = 0; i < 2; i++)
        if (!(atomic_load(bits.words[i]) & bits.masks[i]))
            atomic_fetch_or(bits.words[i], bits.masks[i]);
}

static bool was_noted(const void *code)
{
    struct note_bits bits = bits_of(code);
    return atomic_load(bits.words[0]) & bits.masks[0] && atomic_load(bits.words[1]) & bits.masks[1];
}

static void forget_notes(void)
{
    for (int i = 0; i < N_WORDS; i++)
        atomic_store_explicit(&watched_codes.seen[i], 0, memory_order_relaxed);
}

/* True: it happens too often. */
static bool pay_for_forgetting(uint64_t now)
{
    uint64_t each = forget_seconds * second_ns;
    watched_codes.paid_ns = (watched_codes.paid_ns > now ? watched_codes.paid_ns : now) + each;
    return watched_codes.paid_ns - now > n_at_once * each;
}

static void stop_watching(uint64_t now)
{
    tmk_pyknown_set_watched(false);
    watched_codes.rest_ns =
        watched_codes.rest_ns ? 2 * watched_codes.rest_ns : first_rest_seconds * second_ns;
    atomic_store(&watched_codes.rest_until_ns, now + watched_codes.rest_ns);
    atomic_store(&watched_codes.state, RESTING);
}

static int on_code_event(int event, const void *code)
{
    if (event != GOES || atomic_load(&watched_codes.state) != ON || !was_noted(code))
        return 0;
    uint64_t now = tmk_clock_monotonic_ns();
    forget_notes();
    tmk_pyknown_forget();
    if (pay_for_forgetting(now))
        stop_watching(now);
    return 0;
}

/* The interpreter ends: one that comes after it has no watcher of ours yet. */
static void on_interpreter_end(void)
{
    tmk_pyknown_set_watched(false);
    watched_codes.has_watcher = false;
    atomic_store(&watched_codes.state, OFF);
}

/* The watcher stays for good: while nothing is noted it does nothing. */
static bool add_watcher(const struct tmk_python *py)
{
    if (py->Py_AtExit(on_interpreter_end) < 0)
        return false;
    if (py->PyCode_AddWatcher(on_code_event) >= 0)
        return true;
    py->PyErr_Clear(); /* there are eight of them for all */
    return false;
}

/* On the main thread, of the main interpreter, whose frames are the ones that are read. Notes are
 * taken before the first stack becomes known that needs them. */
static int add_on_main_thread(void *unused)
{
    (void)unused;
    if (!watched_codes.has_watcher)
        watched_codes.has_watcher = add_watcher(watched_codes.py);
    if (!watched_codes.has_watcher) {
        atomic_store(&watched_codes.state, NEVER);
        return 0;
    }
    watched_codes.paid_ns = 0;
    forget_notes();
    atomic_store(&watched_codes.state, ON);
    tmk_pyknown_set_watched(true);
    return 0;
}

static void ask_for_watcher(int from)
{
    const char *reason;
    const struct tmk_python *py = tmk_python_find(&reason);
    if (!py || !py->PyCode_AddWatcher || !py->Py_AtExit)
        return;
    watched_codes.py = py; /* there is one only */
    atomic_store(&watched_codes.state, ASKED);
    if (py->Py_AddPendingCall(add_on_main_thread, NULL) < 0)
        atomic_store(&watched_codes.state, from); /* there are too many of them just now */
}

void tmk_pycodes_look(uint64_t now_ns)
{
    int state = atomic_load(&watched_codes.state);
    if (state == OFF ? tmk_pyknown_can_be_watched()
                     : state == RESTING && now_ns >= atomic_load(&watched_codes.rest_until_ns))
        ask_for_watcher(state);
}
