/* SPDX-License-Identifier: MIT */
/* tests/fault/journal.c - a program that reports events and keeps a journal of them, and that can
 * end, fork and misbehave in many ways. See journal.h; the scripts beside it run it, journal_check
 * reads what is left.
 *
 *     journal MODE JOURNAL [LANES [EVENTS [PACE_NS]]]
 *
 * It sees the public header only, as any program would. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "journal.h"
#include "tidemark/tidemark.h"

static uint64_t *counts; /* by lane, in the journal file */
static uint32_t n_lanes = 1;
static uint64_t n_events = 1000;
static uint64_t pace_ns = 2000;
static int is_plain;
static char **arguments;

static void journal_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, JOURNAL_LANES * sizeof *counts) < 0) {
        perror(path);
        exit(2);
    }
    counts = mmap(NULL, JOURNAL_LANES * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void pause_until(uint64_t ns)
{
    while (pace_ns && now_ns() < ns)
        ;
}

/* Report event i of a lane; then, and only then, count it. */
static void report(uint32_t lane, uint64_t i)
{
    struct journal_event ev = journal_event(lane, i, is_plain);
    void *address = (void *)(uintptr_t)ev.address; /* NOLINT: never followed */
    char text[64];
    switch (ev.kind) {
    case JOURNAL_ALLOC:
        tidemark_alloc(TIDEMARK_HOST, address, i);
        break;
    case JOURNAL_TAG:
        snprintf(text, sizeof text, "block of lane %u", lane);
        tidemark_tag(TIDEMARK_HOST, address, (enum tidemark_category)(i % 10), text);
        break;
    case JOURNAL_PUSH:
        snprintf(text, sizeof text, "lane %u", lane);
        tidemark_push(TIDEMARK_MODULE, text);
        break;
    case JOURNAL_POP:
        tidemark_pop(TIDEMARK_MODULE);
        break;
    case JOURNAL_FREE:
        tidemark_free(TIDEMARK_HOST, address);
        break;
    default:
        snprintf(text, sizeof text, "%u %llu", lane, (unsigned long long)i);
        tidemark_mark("journal", text);
        break;
    }
    __atomic_store_n(&counts[lane], i, __ATOMIC_RELEASE);
}

static void report_many(uint32_t lane, uint64_t n)
{
    for (uint64_t end = counts[lane] + n, at = now_ns(); counts[lane] < end; at += pace_ns) {
        pause_until(at);
        report(lane, counts[lane] + 1);
    }
}

/* ---- modes ---- */

static void *lane_main(void *arg)
{
    report_many((uint32_t)(uintptr_t)arg, n_events);
    return NULL;
}

static void run_lanes(uint32_t first, uint32_t n)
{
    pthread_t threads[JOURNAL_LANES];
    for (uint32_t i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, lane_main, (void *)(uintptr_t)(first + i)) != 0)
            exit(2);
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void do_steady(void)
{
    if (n_lanes == 1)
        report_many(0, n_events);
    else
        run_lanes(0, n_lanes);
}

/* As fast as it can: more than the ring holds. */
static void do_burst(void)
{
    is_plain = 1;
    pace_ns = 0;
    do_steady();
}

/* Threads that live for a few events only, some at once. */
static void do_storm(void)
{
    enum { AT_ONCE = 8 };
    for (uint32_t first = 0; first < n_lanes; first += AT_ONCE)
        run_lanes(first, n_lanes - first < AT_ONCE ? n_lanes - first : AT_ONCE);
}

/* All threads alive at once, each with a page of the ring; more than there are pages. */
static pthread_barrier_t barrier;

static void *crowd_main(void *arg)
{
    pthread_barrier_wait(&barrier);
    report_many((uint32_t)(uintptr_t)arg, n_events);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void do_crowd(void)
{
    pthread_t threads[JOURNAL_LANES];
    pthread_attr_t small;
    is_plain = 1;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&barrier, NULL, n_lanes);
    for (uint32_t i = 0; i < n_lanes; i++)
        if (pthread_create(&threads[i], &small, crowd_main, (void *)(uintptr_t)i) != 0)
            exit(2);
    for (uint32_t i = 0; i < n_lanes; i++)
        pthread_join(threads[i], NULL);
}

static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
    (void)number;
    int saved = errno;
    report(1, counts[1] + 1);
    ticks++;
    errno = saved;
}

/* Lane 0 reports in a tight loop; a handler on the same thread reports lane 1, 1,000 times a
 * second, from before the first event on. */
static void do_signals(int number, __itimer_which_t timer)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    is_plain = 1;
    sigaction(number, &action, NULL);
    setitimer(timer, &every, NULL);
    while (ticks < (sig_atomic_t)n_events)
        report(0, counts[0] + 1);
    setitimer(timer, &never, NULL);
}

static void do_sigalrm(void)
{
    do_signals(SIGALRM, ITIMER_REAL);
}

static void do_sigprof(void)
{
    do_signals(SIGPROF, ITIMER_PROF);
}

/* ---- handlers on another stack ---- */

enum { ALT_BYTES = 65536, SS_DISARMS = (int)(1u << 31) /* SS_AUTODISARM */ };

static void set_stepping(int on)
{
#ifdef __x86_64__
    __asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\torq %0, (%%rsp)\n\tpopfq"
                     :
                     : "r"(on ? 0x100ul : 0ul)
                     : "memory", "cc");
#else
    (void)on;
#endif
}

/* Lane 0 reports a few events and a handler lane 1, after every single instruction of it, on an
 * alternate stack. */
static void step_events(void *stack, int flags)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_ONSTACK};
    stack_t alternate = {.ss_sp = stack, .ss_size = ALT_BYTES, .ss_flags = flags};
    is_plain = 1;
    report(0, counts[0] + 1); /* arms, opens the lane, names the site */
    on_tick(0);
    if (sigaltstack(&alternate, NULL) < 0)
        exit(4);
    sigaction(SIGTRAP, &action, NULL);
    for (uint64_t i = 0; i < n_events; i++) {
        set_stepping(1);
        report(0, counts[0] + 1);
        set_stepping(0);
    }
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, NULL);
}

/* Threads' stacks and their neighbours are all mapped downwards: the first is the highest. */
static void *step_main(void *stack)
{
    char here;
    if ((char *)stack < &here)
        exit(5);
    step_events(stack, (int)n_lanes == 2 ? SS_DISARMS : 0);
    return NULL;
}

static void do_alt_above(void)
{
    pthread_t thread;
    pthread_attr_t own;
    char *all = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&own);
    if (all == MAP_FAILED || pthread_attr_setstack(&own, all, 1 << 19) != 0 ||
        pthread_create(&thread, &own, step_main, all + (1 << 19)) != 0)
        exit(2);
    pthread_join(thread, NULL);
}

static void do_alt_below(void)
{
    static char stack[ALT_BYTES];
    step_events(stack, 0);
}

/* In the middle of the thread's own, above what reports. */
static void do_alt_within(void)
{
    char stack[ALT_BYTES];
    step_events(stack, 0);
}

static void wait_for(pid_t pid)
{
    int status = -1;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        exit(3);
}

/* Parent lane 0 before and after; child lane 1, grandchild lane 2. */
static void do_fork(void)
{
    report_many(0, n_events);
    pid_t pid = fork();
    if (pid == 0) {
        report_many(1, n_events);
        pid = fork();
        if (pid == 0) {
            report_many(2, n_events);
            exit(0);
        }
        wait_for(pid);
        report_many(1, n_events);
        exit(0);
    }
    report_many(0, n_events);
    wait_for(pid);
}

static void do_fork_quiet(void)
{
    report_many(0, n_events);
    pid_t pid = fork();
    if (pid == 0)
        exit(0);
    wait_for(pid);
    report_many(0, n_events);
}

/* A child that starts before the parent has had any event. */
static void do_fork_first(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        report_many(1, n_events);
        exit(0);
    }
    wait_for(pid);
    report_many(0, n_events);
}

static void do_vfork(void)
{
    report_many(0, n_events);
    for (int k = 0; k < 20; k++) {
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        wait_for(pid);
        report_many(0, n_events);
    }
}

/* This image lane 0, the next one lane 1. */
static void do_exec(void)
{
    report_many(0, n_events);
    arguments[1] = "after_exec";
    execv("/proc/self/exe", arguments);
    exit(9);
}

static void do_after_exec(void)
{
    report_many(1, n_events);
}

/* Without a word to anybody, libraries included. */
static void do_exit_now(void)
{
    report_many(0, n_events);
    fflush(stdout);
    syscall(SYS_exit_group, 7);
}

/* As workers of multiprocessing do. */
static void do_worker_exit(void)
{
    report_many(0, n_events);
    fflush(stdout);
    _exit(7);
}

static void do_quick_exit(void)
{
    report_many(0, n_events);
    quick_exit(7);
}

static void do_abort(void)
{
    report_many(0, n_events);
    abort();
}

/* The main thread ends first. */
static void do_thread_exit(void)
{
    pthread_t thread;
    report_many(0, n_events);
    if (pthread_create(&thread, NULL, lane_main, (void *)(uintptr_t)1) != 0)
        exit(2);
    pthread_exit(NULL);
}

/* Close every descriptor, known or not, then use the numbers for files of our own. */
static void do_close_all(void)
{
    enum { N_FILES = 900 };
    char path[4200], line[64];
    report_many(0, n_events);
    if (syscall(SYS_close_range, 3u, ~0u, 0u) < 0)
        for (int fd = 3; fd < 4096; fd++)
            close(fd);
    int first = open("/dev/null", O_RDONLY);
    printf("first descriptor %d\n", first);
    for (int i = 0; i < N_FILES; i++) {
        snprintf(path, sizeof path, "%s.%d", arguments[2], i);
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        int n = snprintf(line, sizeof line, "file %d\n", i);
        if (fd < 0 || write(fd, line, (size_t)n) != n)
            exit(4);
    }
    report_many(0, 200 * n_events);
}

/* A descriptor opened while recording has the number it would have without. */
static void do_descriptors(void)
{
    report_many(0, n_events);
    close(0);
    int zero = open("/dev/null", O_RDONLY), next = open("/dev/null", O_RDONLY);
    printf("descriptors %d %d\n", zero, next);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"steady", do_steady},
    {"burst", do_burst},
    {"storm", do_storm},
    {"crowd", do_crowd},
    {"sigalrm", do_sigalrm},
    {"sigprof", do_sigprof},
    {"alt_above", do_alt_above},
    {"alt_below", do_alt_below},
    {"alt_within", do_alt_within},
    {"fork", do_fork},
    {"fork_quiet", do_fork_quiet},
    {"fork_first", do_fork_first},
    {"vfork", do_vfork},
    {"exec", do_exec},
    {"after_exec", do_after_exec},
    {"exit_now", do_exit_now},
    {"worker_exit", do_worker_exit},
    {"quick_exit", do_quick_exit},
    {"abort", do_abort},
    {"thread_exit", do_thread_exit},
    {"close_all", do_close_all},
    {"descriptors", do_descriptors},
};

int main(int n_arguments, char **all)
{
    arguments = all;
    if (n_arguments < 3) {
        fprintf(stderr, "usage: journal MODE JOURNAL [LANES [EVENTS [PACE_NS]]]\n");
        return 2;
    }
    if (n_arguments > 3)
        n_lanes = (uint32_t)strtoul(all[3], NULL, 10);
    if (n_arguments > 4)
        n_events = strtoull(all[4], NULL, 10);
    if (n_arguments > 5)
        pace_ns = strtoull(all[5], NULL, 10);
    journal_open(all[2]);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, all[1]) == 0) {
            modes[i].run();
            printf("done\n");
            return 0;
        }
    }
    fprintf(stderr, "journal: no mode %s\n", all[1]);
    return 2;
}
