/* SPDX-License-Identifier: MIT */
/* record/control/session.c - see session.h. */
#include "record/control/session.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/futex.h"
#include "record/control/packer_thread.h"
#include "record/control/sandbox.h"
#include "record/core/helper.h"
#include "record/core/refusal.h"
#include "record/core/ring_space.h"
#include "record/core/seal.h"
#include "record/identity/identity.h"
#include "record/native/native.h"
#include "record/training/torch_calls.h"
#include "trace/layout.h"
#include "trace/ring.h"

enum { STACK_BYTES = 512 * 1024 };
/* A disk that hangs delays the first event and the program's end no longer than this. */
static const uint64_t arm_limit_ns = 1000000000u;
static const uint64_t finish_limit_ns = 1000000000u;
static const uint64_t note_limit_ns = 100000000u;
static const uint64_t detach_limit_ns = 30000000000u;
static const uint64_t least_addresses =
    1ull << 30; /* bytes of address space that the program must be able to map */

/* ---- beginning ---- */

uint64_t tmk_settings_number(const char *text)
{
    uint64_t value = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    static const char units[] = "KMGT";
    int letter = text ? *text & ~0x20 : 0;
    const char *unit = letter ? strchr(units, letter) : NULL;
    return unit ? value << 10 * (unit - units + 1) : value;
}

bool tmk_session_begin(const struct tmk_settings *settings)
{
    struct tmk_control *c = tmk_recorder.control;
    uint32_t phase = atomic_load(&c->phase);
    bool over = phase == TMK_PHASE_OFF && (!tmk_recorder_has_page() || !atomic_load(&c->running));
    if (!over || tmk_seal_is_closed())
        return false;
    tmk_recorder.settings = *settings;
    if (!tmk_sandbox_allows())
        return false; /* no system call that could kill has been made yet */
    if (!tmk_recorder_has_page() && !(c = tmk_recorder_make_page()))
        return false;
    tmk_recorder.counter = tmk_clock_has_counter();
    tmk_ranks_read(&tmk_recorder.ranks);
    if (tmk_native_open(false) < 0)
        tmk_recorder.settings.native = false; /* without memory: stacks are shorter */
    atomic_store(&c->owner, getpid());
    atomic_store(&c->stop, 0);
    atomic_store(&c->stop_reason, TMK_STOP_NONE);
    atomic_store(&c->finished, 0);
    atomic_store(&c->slow_arming, 0);
    atomic_store(&c->arm_until_ns, 0);
    atomic_store(&c->phase, TMK_PHASE_IDLE);
    tmk_recorder.control = c;
    return true;
}

/* ---- arming ---- */

/* Let go of the previous recording. A child does not have its parent's mapping. After a detach the
 * memory has been given back, and the addresses stay (ring_space.h). */
static void forget_ring(void)
{
    if (tmk_recorder.pid != getpid()) {
        tmk_recorder.ring = (struct tmk_ring){0};
        tmk_ring_space_reset();
    }
    tmk_recorder.pid = getpid();
}

/* Wait until the recorder is armed. The time counts from when arming began, for every caller. */
static bool wait_for_arming(struct tmk_control *c)
{
    uint64_t until = atomic_load(&c->arm_until_ns), now = tmk_clock_monotonic_ns();
    uint64_t left = until == 0 ? arm_limit_ns : until > now ? until - now : 0;
    return tmk_futex_wait_while(&c->phase, TMK_PHASE_ARMING, left);
}

/* Tables and rings reserve 80 MiB of addresses, and the C library 64 for our thread. A program with
 * a low limit (ulimit -v) needs them itself. */
static bool has_addresses(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur >= least_addresses;
}

/* Start the packer thread. Returns why there is none; TMK_STOP_NONE: there is one, or it is not
 * wanted here. */
static enum tmk_stop start_packer(bool *ret_started)
{
    *ret_started = false;
    if (!tmk_ranks_include(tmk_recorder.rank_list, tmk_recorder.ranks.rank))
        return TMK_STOP_NONE;
    if (!has_addresses())
        return TMK_STOP_ADDRESSES;
    *ret_started = tmk_helper_start(tmk_packer_thread_main, NULL, STACK_BYTES);
    return *ret_started ? TMK_STOP_NONE : TMK_STOP_THREAD;
}

/* Report why nothing is recorded. Behind a closed seal the reason is the seal, which reports
 * itself. */
static void note_not_started(enum tmk_stop reason, int os_error)
{
    if (reason == TMK_STOP_NONE || !tmk_seal_enter())
        return;
    tmk_refusal_note(reason, os_error);
    tmk_seal_leave();
}

bool tmk_session_arm(void)
{
    struct tmk_control *c = tmk_recorder.control;
    uint32_t idle = TMK_PHASE_IDLE;
    if (!tmk_recorder.settings.run_folder[0] && atomic_load(&c->phase) == TMK_PHASE_IDLE)
        return false; /* forked from a process that was detached from */
    if (atomic_compare_exchange_strong(&c->phase, &idle, TMK_PHASE_ARMING)) {
        atomic_store(&c->arm_until_ns, tmk_clock_monotonic_ns() + arm_limit_ns);
        forget_ring();
        if (tmk_recorder.ranks.rank < 0) /* a spawned rank may have been told after its start */
            tmk_ranks_read(&tmk_recorder.ranks);
        atomic_store(&c->running, 1);
        tmk_fd_make_room();
        bool is_started;
        enum tmk_stop reason = start_packer(&is_started);
        if (!is_started) {
            note_not_started(reason, reason == TMK_STOP_THREAD ? errno : 0);
            tmk_recorder_set_finished();
            tmk_futex_set(&c->phase, TMK_PHASE_OFF);
        }
    }
    /* Threads with an event wait for the few milliseconds that arming takes, and no event is lost.
     * If it takes seconds (a disk that hangs), nobody waits any more, and events count as dropped
     * until the recorder is armed. */
    if (!atomic_load(&c->slow_arming) && !wait_for_arming(c))
        atomic_store(&c->slow_arming, 1);
    return atomic_load(&c->phase) == TMK_PHASE_ARMED;
}

/* ---- ending ---- */

bool tmk_session_wait_armed(uint64_t limit_ns)
{
    tmk_futex_wait_while(&tmk_recorder.control->phase, TMK_PHASE_ARMING, limit_ns);
    return atomic_load(&tmk_recorder.control->phase) == TMK_PHASE_ARMED;
}

/* Once arming was too slow to wait for, nobody waits for it again. */
bool tmk_session_end_within(uint64_t limit_ns, enum tmk_stop reason)
{
    struct tmk_control *c = tmk_recorder.control;
    uint32_t idle = TMK_PHASE_IDLE;
    if (atomic_compare_exchange_strong(&c->phase, &idle, TMK_PHASE_OFF))
        return true;
    if (atomic_load(&c->phase) == TMK_PHASE_OFF) /* it may be closing the trace at this moment */
        return !atomic_load(&c->running) || tmk_futex_wait_while(&c->finished, 0, limit_ns);
    uint64_t end = tmk_clock_monotonic_ns() + limit_ns;
    atomic_store(&c->stop_reason, reason);
    tmk_futex_set(&c->stop, 1);
    if (!atomic_load(&c->slow_arming))
        tmk_futex_wait_while(&c->phase, TMK_PHASE_ARMING, limit_ns);
    uint64_t now = tmk_clock_monotonic_ns();
    bool ended = atomic_load(&c->phase) != TMK_PHASE_ARMING &&
                 tmk_futex_wait_while(&c->finished, 0, end > now ? end - now : 0);
    tmk_recorder.settings.run_folder[0] = '\0'; /* a child that is forked now records nothing */
    return ended;
}

bool tmk_session_end(void)
{
    return tmk_session_end_within(detach_limit_ns, TMK_STOP_NONE);
}

static _Atomic uint32_t is_noted;

static void *note_slow_disk(void *unused)
{
    tmk_refusal_note(TMK_STOP_SLOW, 0);
    tmk_futex_set(&is_noted, 1);
    return unused;
}

/* Report the reason outside of the trace, which does not exist. A thread does it, because the disk
 * may still hang. */
static void say_slow_disk(void)
{
    if (tmk_helper_start(note_slow_disk, NULL, STACK_BYTES))
        tmk_futex_wait_while(&is_noted, 0, note_limit_ns);
}

/* A process that is killed leaves its ring to be merged, and so does one on a disk that hangs. */
void tmk_session_finish(bool may_start_thread)
{
    struct tmk_control *c = tmk_recorder.control;
    bool is_arming = atomic_load(&c->phase) == TMK_PHASE_ARMING;
    if (tmk_seal_is_closed())
        return;
    if (may_start_thread && is_arming && atomic_load(&c->slow_arming))
        say_slow_disk();
    tmk_torch_calls_end_process();
    atomic_store(&tmk_recorder.is_ending, true);
    tmk_session_end_within(finish_limit_ns, TMK_STOP_NONE);
}
