/* SPDX-License-Identifier: MIT */
/* record/recorder.c - see recorder.h. */
#include "record/recorder.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/region.h"
#include "record/copies.h"
#include "record/helper.h"
#include "record/hot.h"
#include "record/native.h"
#include "record/patch.h"
#include "record/refusal.h"
#include "record/room.h"
#include "record/sandbox.h"
#include "record/seal.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { STACK_BYTES = 512 * 1024 };
/* A disk that hangs holds the first event and the program's end no longer than this. */
static const uint64_t arm_limit_ns = 1000000000u;
static const uint64_t finish_limit_ns = 1000000000u;
static const uint64_t note_limit_ns = 100000000u;
static const uint64_t detach_limit_ns = 30000000000u;
static const uint64_t least_addresses = 1ull << 30; /* bytes that the program may have */

/* Until the page is there (or when there is none): off. */
static struct tmk_control no_control = {.phase = TMK_PHASE_OFF};
union tmk_control_page tmk_control_page __attribute__((aligned(TMK_CONTROL_BYTES)));
struct tmk_recorder tmk_recorder TMK_HOT_LAST = {.control = &no_control};

/* ---- starting ---- */

/* For kernels without MADV_WIPEONFORK (before 4.14): the C library's forks at least. */
static void wipe_control(void)
{
    memset((void *)tmk_recorder.control, 0, sizeof *tmk_recorder.control);
}

static struct tmk_control *make_control(void)
{
    union tmk_control_page *page = &tmk_control_page;
    if (madvise(page, sizeof *page, MADV_WIPEONFORK) != 0 &&
        pthread_atfork(NULL, NULL, wipe_control) != 0)
        return NULL;
    return &page->control;
}

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

static void copy_setting(char *to, size_t size, const char *name)
{
    const char *value = getenv(name);
    if (value && strlen(value) < size)
        strcpy(to, value);
}

bool tmk_recorder_begin(const struct tmk_settings *settings)
{
    struct tmk_control *c = tmk_recorder.control;
    uint32_t phase = atomic_load(&c->phase);
    bool over = phase == TMK_PHASE_OFF && (c == &no_control || !atomic_load(&c->running));
    if (!over || tmk_seal_is_closed())
        return false;
    tmk_recorder.settings = *settings;
    if (!tmk_sandbox_allows() || (c == &no_control && !(c = make_control())))
        return false; /* before the first, nothing was called that could kill */
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

/* They find something when we are loaded late: `import torch, tidemark`. */
static void patch_late(void)
{
    tmk_patch_in();
    tmk_patch_calls();
}

/* The environment is read here, before the program has threads that might change it. */
__attribute__((constructor)) static void start(void)
{
    tmk_sandbox_prepare();
    tmk_region_use_small_pages();
    copy_setting(tmk_recorder.ring_folders[0], sizeof tmk_recorder.ring_folders[0],
                 "TIDEMARK_RING_DIR");
    copy_setting(tmk_recorder.runtime_folder, sizeof tmk_recorder.runtime_folder,
                 "XDG_RUNTIME_DIR");
    strcpy(tmk_recorder.ring_folders[1], tmk_recorder.runtime_folder);
    copy_setting(tmk_recorder.rank_list, sizeof tmk_recorder.rank_list, "TIDEMARK_RANKS");
    const char *folder = getenv("TIDEMARK_RUN");
    struct tmk_settings settings = {
        .max_size_bytes = tmk_settings_number(getenv("TIDEMARK_MAX_SIZE")),
        .cpu_tensors = tmk_settings_number(getenv("TIDEMARK_CPU_TENSORS")) != 0,
        .native = tmk_settings_number(getenv("TIDEMARK_NATIVE")) != 0,
        .no_stacks = tmk_settings_number(getenv("TIDEMARK_NO_STACKS")) != 0,
        .no_modules = tmk_settings_number(getenv("TIDEMARK_NO_MODULES")) != 0,
        .no_categories = tmk_settings_number(getenv("TIDEMARK_NO_CATEGORIES")) != 0,
    };
    if (!folder || folder[0] != '/' || strlen(folder) >= sizeof settings.run_folder)
        return;
    strcpy(settings.run_folder, folder);
    if (tmk_copies_is_first() && tmk_recorder_begin(&settings))
        patch_late();
}

/* ---- arming ---- */

/* Let go of the recording before. A child does not have its parent's mapping; after a detach the
 * memory has been given back, and the addresses stay (room.h). */
static void forget_ring(void)
{
    if (tmk_recorder.pid != getpid()) {
        tmk_recorder.ring = (struct tmk_ring){0};
        tmk_room_reset();
    }
    tmk_recorder.pid = getpid();
}

void tmk_recorder_set_armed(bool ok)
{
    struct tmk_control *c = tmk_recorder.control;
    if (ok) {
        uint32_t next = tmk_recorder.generation + 1;
        tmk_recorder.generation = next == 0 || next >= TMK_NO_GENERATION ? 1 : next;
        atomic_store(&c->generation, tmk_recorder.generation);
    }
    tmk_futex_set(&c->phase, ok ? TMK_PHASE_ARMED : TMK_PHASE_OFF);
}

void tmk_recorder_disarm(void)
{
    atomic_store(&tmk_recorder.control->generation, 0);
    atomic_store(&tmk_short.generation, 0); /* after it: see look_whether_usual() */
    atomic_store(&tmk_recorder.control->phase, TMK_PHASE_OFF);
}

/* The time runs from when arming began, for whoever comes. */
static bool wait_for_arming(struct tmk_control *c)
{
    uint64_t until = atomic_load(&c->arm_until_ns), now = tmk_clock_monotonic_ns();
    uint64_t left = until == 0 ? arm_limit_ns : until > now ? until - now : 0;
    return tmk_futex_wait_while(&c->phase, TMK_PHASE_ARMING, left);
}

/* Tables and rings reserve 80 MiB of addresses, the C library 64 for our thread: a program that may
 * have little (ulimit -v) needs them itself. */
static bool has_addresses(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur >= least_addresses;
}

/* Why there is no packer thread; NONE: there is one, or it is not wanted here. */
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

/* Behind a closed seal there is no thread because of that, which is said there. */
static void note_not_started(enum tmk_stop reason, int os_error)
{
    if (reason == TMK_STOP_NONE || !tmk_seal_enter())
        return;
    tmk_refusal_note(reason, os_error);
    tmk_seal_leave();
}

bool tmk_recorder_arm(void)
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
    /* Every thread that comes meanwhile waits these few milliseconds: no event is lost. Where they
     * become seconds (a disk that hangs), nobody waits any more, and events count as dropped until
     * it is there. */
    if (!atomic_load(&c->slow_arming) && !wait_for_arming(c))
        atomic_store(&c->slow_arming, 1);
    return atomic_load(&c->phase) == TMK_PHASE_ARMED;
}

/* ---- ending ---- */

bool tmk_recorder_wait_armed(uint64_t limit_ns)
{
    tmk_futex_wait_while(&tmk_recorder.control->phase, TMK_PHASE_ARMING, limit_ns);
    return atomic_load(&tmk_recorder.control->phase) == TMK_PHASE_ARMED;
}

void tmk_recorder_sleep(long ns)
{
    struct timespec timeout = {.tv_nsec = ns};
    syscall(SYS_futex, &tmk_recorder.control->stop, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
}

void tmk_recorder_set_finished(void)
{
    atomic_store(&tmk_recorder.control->running, 0);
    tmk_futex_set(&tmk_recorder.control->finished, 1);
}

void tmk_recorder_hold(uint64_t until_ns)
{
    atomic_store(&tmk_recorder.control->hold_until_ns, until_ns);
}

bool tmk_recorder_is_held(void)
{
    uint64_t until = atomic_load(&tmk_recorder.control->hold_until_ns);
    return until != 0 && tmk_clock_monotonic_ns() < until;
}

void tmk_recorder_hurry(void)
{
    struct tmk_control *c = tmk_recorder.control;
    if (tmk_recorder_is_off() || !tmk_seal_enter())
        return;
    atomic_store(&c->hurry, 1);
    atomic_store(&c->sample, 1);
    atomic_store(&tmk_short.slept, UINT64_MAX);
    syscall(SYS_futex, &c->stop, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    tmk_seal_leave();
}

/* Arming that was too slow to wait for once is not waited for again. */
bool tmk_recorder_end_within(uint64_t limit_ns, enum tmk_stop reason)
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

bool tmk_recorder_end(void)
{
    return tmk_recorder_end_within(detach_limit_ns, TMK_STOP_NONE);
}

static _Atomic uint32_t is_noted;

static void *note_slow_disk(void *unused)
{
    tmk_refusal_note(TMK_STOP_SLOW, 0);
    tmk_futex_set(&is_noted, 1);
    return unused;
}

/* There is no trace to say it in. On a thread of its own, because the disk may still hang. */
static void say_slow_disk(void)
{
    if (tmk_helper_start(note_slow_disk, NULL, STACK_BYTES))
        tmk_futex_wait_while(&is_noted, 0, note_limit_ns);
}

/* A process that ends in another way leaves its ring to be merged, and so does a process on a disk
 * that hangs. */
void tmk_recorder_finish(bool may_start_thread)
{
    struct tmk_control *c = tmk_recorder.control;
    bool is_arming = atomic_load(&c->phase) == TMK_PHASE_ARMING;
    if (tmk_seal_is_closed())
        return;
    if (may_start_thread && is_arming && atomic_load(&c->slow_arming))
        say_slow_disk();
    atomic_store(&tmk_recorder.is_ending, true);
    tmk_recorder_end_within(finish_limit_ns, TMK_STOP_NONE);
}

/* exit() and return from main. */
__attribute__((destructor)) static void finish_at_exit(void)
{
    tmk_recorder_finish(true);
}
