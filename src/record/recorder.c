/* SPDX-License-Identifier: MIT */
/* record/recorder.c - see recorder.h. */
#include "record/recorder.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "record/helper.h"
#include "record/hot.h"
#include "record/native.h"
#include "record/patch.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { STACK_BYTES = 512 * 1024 };
static const uint64_t arm_limit_ns = 5000000000u;
static const uint64_t finish_limit_ns = 30000000000u;

/* Until the page is there (or when there is none): off. */
static struct tmk_control no_control = {.phase = TMK_PHASE_OFF};
union tmk_control_page tmk_control_page __attribute__((aligned(TMK_CONTROL_BYTES)));
struct tmk_recorder tmk_recorder TMK_HOT_LAST = {.control = &no_control, .ring.fd = -1};

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
    if (!over || (c == &no_control && !(c = make_control())))
        return false;
    tmk_recorder.settings = *settings;
    tmk_recorder.counter = tmk_clock_has_counter();
    tmk_ranks_read(&tmk_recorder.ranks);
    if (tmk_native_open(false) < 0)
        tmk_recorder.settings.native = false; /* without memory: stacks are shorter */
    atomic_store(&c->stop, 0);
    atomic_store(&c->finished, 0);
    atomic_store(&c->slow_arming, 0);
    atomic_store(&c->phase, TMK_PHASE_IDLE);
    tmk_recorder.control = c;
    return true;
}

/* The environment is read here, before the program has threads that might change it. */
__attribute__((constructor)) static void start(void)
{
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
    if (tmk_recorder_begin(&settings))
        tmk_patch_in(); /* finds something when we are loaded late: `import torch, tidemark` */
}

/* ---- arming ---- */

/* Let go of the recording before. A child's is its parent's: the files are not touched. After a
 * detach it is our own, and a thread that was about to write may still do so, however late: the
 * memory goes back, the addresses stay. */
static void forget_ring(void)
{
    struct tmk_ring *ring = &tmk_recorder.ring;
    struct stat st;
    if (ring->header && tmk_recorder.pid != getpid()) {
        munmap(ring->header, ring->size_bytes);
        *ring = (struct tmk_ring){.fd = -1};
    } else if (ring->header) {
        madvise(ring->header, ring->size_bytes, MADV_REMOVE);
        if (fstat(ring->fd, &st) == 0 && st.st_nlink == 0 && (size_t)st.st_size == ring->size_bytes)
            close(ring->fd); /* still ours: the program may have closed it and used the number */
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

bool tmk_recorder_arm(void)
{
    struct tmk_control *c = tmk_recorder.control;
    uint32_t idle = TMK_PHASE_IDLE;
    if (!tmk_recorder.settings.run_folder[0] && atomic_load(&c->phase) == TMK_PHASE_IDLE)
        return false; /* forked from a process that was detached from */
    if (atomic_compare_exchange_strong(&c->phase, &idle, TMK_PHASE_ARMING)) {
        forget_ring();
        if (tmk_recorder.ranks.rank < 0) /* a spawned rank may have been told after its start */
            tmk_ranks_read(&tmk_recorder.ranks);
        atomic_store(&c->running, 1);
        if (!tmk_ranks_include(tmk_recorder.rank_list, tmk_recorder.ranks.rank) ||
            !tmk_helper_start(tmk_packer_thread_main, NULL, STACK_BYTES)) {
            atomic_store(&c->running, 0);
            tmk_futex_set(&c->phase, TMK_PHASE_OFF);
        }
    }
    /* Every thread that comes meanwhile waits these few milliseconds: no event is lost. Where they
     * become seconds (a disk that hangs), nobody waits any more, and events count as dropped until
     * it is there. */
    if (!atomic_load(&c->slow_arming) &&
        !tmk_futex_wait_while(&c->phase, TMK_PHASE_ARMING, arm_limit_ns))
        atomic_store(&c->slow_arming, 1);
    return atomic_load(&c->phase) == TMK_PHASE_ARMED;
}

/* ---- ending ---- */

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
    atomic_store(&c->hurry, 1);
    atomic_store(&tmk_short.slept, UINT64_MAX);
    syscall(SYS_futex, &c->stop, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool tmk_recorder_end(void)
{
    struct tmk_control *c = tmk_recorder.control;
    uint32_t idle = TMK_PHASE_IDLE;
    if (atomic_compare_exchange_strong(&c->phase, &idle, TMK_PHASE_OFF))
        return true;
    tmk_futex_wait_while(&c->phase, TMK_PHASE_ARMING, arm_limit_ns);
    if (atomic_load(&c->phase) != TMK_PHASE_ARMED)
        return true;
    tmk_futex_set(&c->stop, 1);
    bool ended = tmk_futex_wait_while(&c->finished, 0, finish_limit_ns);
    tmk_recorder.settings.run_folder[0] = '\0'; /* a child that is forked now records nothing */
    return ended;
}

/* exit() and return from main. A process that ends in another way leaves its ring to be merged. */
__attribute__((destructor)) static void finish(void)
{
    tmk_recorder_end();
}
