/* SPDX-License-Identifier: MIT */
/* record/core/seal.c - see seal.h. */
#include "record/core/seal.h"

#include "base/clock.h"
#include "base/futex.h"
#include "record/core/recorder.h"

enum { OPEN = 0, CLOSING, CLOSED, REFUSED };

/* A thread inside one of our calls needs microseconds. It may also have jumped out of it
 * (siglongjmp) and never leave. */
static const uint64_t calls_limit_ns = 200000000u;

_Atomic uint32_t tmk_seal_state;

bool tmk_seal_has_closed(void)
{
    return atomic_load(&tmk_seal_state) >= CLOSED;
}

/* ---- our calls on threads of the program ---- */

bool tmk_seal_enter(void)
{
    atomic_fetch_add(&tmk_recorder.control->n_calls, 1);
    if (!tmk_seal_is_closed())
        return true;
    tmk_seal_leave();
    return false;
}

void tmk_seal_leave(void)
{
    atomic_fetch_sub(&tmk_recorder.control->n_calls, 1);
}

/* ---- closing ---- */

bool tmk_seal_begin_closing(void)
{
    uint32_t open = OPEN;
    return atomic_compare_exchange_strong(&tmk_seal_state, &open, CLOSING);
}

void tmk_seal_wait_until_closed(uint64_t limit_ns)
{
    tmk_futex_wait_while(&tmk_seal_state, CLOSING, limit_ns);
}

void tmk_seal_wait_for_calls(void)
{
    uint64_t end = tmk_clock_monotonic_ns() + calls_limit_ns;
    _Atomic uint32_t *n_calls = &tmk_recorder.control->n_calls;
    for (uint32_t n; (n = atomic_load(n_calls)) > 0 && tmk_clock_monotonic_ns() < end;)
        tmk_futex_wait_while(n_calls, n, 1000000);
}

void tmk_seal_end_closing(void)
{
    tmk_futex_set(&tmk_seal_state, CLOSED);
}

void tmk_seal_refuse(bool is_refused)
{
    uint32_t before = is_refused ? OPEN : REFUSED;
    atomic_compare_exchange_strong(&tmk_seal_state, &before, is_refused ? REFUSED : OPEN);
}
