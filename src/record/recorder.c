/* SPDX-License-Identifier: MIT */
/* record/recorder.c - see recorder.h. */
#include "record/recorder.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/native.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { STACK_BYTES = 512 * 1024 };
static const uint64_t arm_limit_ns = 5000000000u;
static const uint64_t finish_limit_ns = 30000000000u;

/* Until the page is there (or when there is none): off. */
static struct tmk_control no_control = {.phase = TMK_PHASE_OFF};
struct tmk_recorder tmk_recorder = {.control = &no_control, .ring.fd = -1};

/* ---- starting ---- */

/* For kernels without MADV_WIPEONFORK (before 4.14): the C library's forks at least. */
static void wipe_control(void)
{
    memset((void *)tmk_recorder.control, 0, sizeof *tmk_recorder.control);
}

static struct tmk_control *make_control(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0 &&
        pthread_atfork(NULL, NULL, wipe_control) != 0) {
        munmap(page, 4096);
        return NULL;
    }
    return page;
}

static uint64_t number_of(const char *text)
{
    uint64_t value = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

static void copy_folder(char *to, size_t size, const char *name)
{
    const char *folder = getenv(name);
    if (folder && strlen(folder) < size)
        strcpy(to, folder);
}

/* The environment is read here, before the program has threads that might change it. */
__attribute__((constructor)) static void start(void)
{
    const char *folder = getenv("TIDEMARK_RUN");
    if (!folder || folder[0] != '/' || strlen(folder) >= sizeof tmk_recorder.run_folder)
        return;
    strcpy(tmk_recorder.run_folder, folder);
    tmk_recorder.max_size_bytes = number_of(getenv("TIDEMARK_MAX_SIZE"));
    tmk_recorder.counter = tmk_clock_has_counter();
    struct tmk_control *control = make_control();
    if (!control)
        return;
    copy_folder(tmk_recorder.ring_folders[0], sizeof tmk_recorder.ring_folders[0],
                "TIDEMARK_RING_DIR");
    copy_folder(tmk_recorder.ring_folders[1], sizeof tmk_recorder.ring_folders[1],
                "XDG_RUNTIME_DIR");
    tmk_ranks_read(&tmk_recorder.ranks);
    if (number_of(getenv("TIDEMARK_NATIVE")) != 0)
        (void)tmk_native_open(false); /* without memory: stacks are shorter */
    tmk_recorder.control = control;
}

/* ---- arming ---- */

/* Sleeping, not looking again and again: a thousand threads may wait here for the one that arms. */
static bool wait_while(_Atomic uint32_t *word, uint32_t value, uint64_t limit_ns)
{
    uint64_t end = tmk_clock_monotonic_ns() + limit_ns;
    while (atomic_load(word) == value) {
        uint64_t now = tmk_clock_monotonic_ns();
        if (now >= end)
            return false;
        struct timespec left = {.tv_sec = (time_t)((end - now) / 1000000000u),
                                .tv_nsec = (long)((end - now) % 1000000000u)};
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &left, NULL, 0);
    }
    return true;
}

/* Change a word that others may wait_while() on. */
static void set_and_wake(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* What a child inherits of its parent's recording: let go of it, without touching the files. */
static void forget_parent(void)
{
    struct tmk_ring *ring = &tmk_recorder.ring;
    if (ring->header)
        munmap(ring->header, ring->size_bytes);
    *ring = (struct tmk_ring){.fd = -1};
}

static bool start_packer(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &attributes, tmk_packer_thread_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc == 0;
}

void tmk_recorder_set_armed(bool ok)
{
    struct tmk_control *c = tmk_recorder.control;
    if (ok) {
        uint32_t next = tmk_recorder.generation + 1;
        tmk_recorder.generation = next == 0 || next == UINT32_MAX ? 1 : next;
        atomic_store(&c->generation, tmk_recorder.generation);
    }
    set_and_wake(&c->phase, ok ? TMK_PHASE_ARMED : TMK_PHASE_OFF);
}

void tmk_recorder_disarm(void)
{
    atomic_store(&tmk_recorder.control->generation, 0);
    atomic_store(&tmk_recorder.control->phase, TMK_PHASE_OFF);
}

bool tmk_recorder_arm(void)
{
    struct tmk_control *c = tmk_recorder.control;
    uint32_t idle = TMK_PHASE_IDLE;
    if (atomic_compare_exchange_strong(&c->phase, &idle, TMK_PHASE_ARMING)) {
        forget_parent();
        if (tmk_recorder.ranks.rank < 0) /* a spawned rank may have been told after its start */
            tmk_ranks_read(&tmk_recorder.ranks);
        if (!start_packer())
            set_and_wake(&c->phase, TMK_PHASE_OFF);
    }
    /* Every thread that comes meanwhile waits these few milliseconds: no event is lost. Where they
     * become seconds (a disk that hangs), nobody waits any more, and events count as dropped until
     * it is there. */
    if (!atomic_load(&c->slow_arming) && !wait_while(&c->phase, TMK_PHASE_ARMING, arm_limit_ns))
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
    set_and_wake(&tmk_recorder.control->finished, 1);
}

/* exit() and return from main. A process that ends in another way leaves its ring to be merged. */
__attribute__((destructor)) static void finish(void)
{
    struct tmk_control *c = tmk_recorder.control;
    if (atomic_load(&c->phase) != TMK_PHASE_ARMED)
        return;
    set_and_wake(&c->stop, 1);
    wait_while(&c->finished, 0, finish_limit_ns);
}
