/* SPDX-License-Identifier: MIT */
/* forks.c - programs with many processes that report a little each, as data loaders do, or a lot.
 *
 *   forks workers N END             N workers in turn, which end by END (_exit, kill, exit);
 *                                   prints the most of /dev/shm in use
 *   forks crowd N                   N workers at once
 *   forks hogs N EVENTS FILE MB END N children, 16 at once, that report a lot and end by END, then
 *                                   a checkpoint of MB in FILE
 *   forks locked N                  N workers at once that have locked all their memory, now and
 *                                   later; prints the most of /dev/shm and of one's memory
 *   forks refused N WAY             N children that cannot be recorded: "user" (they become another
 *                                   one), "size" (files may not grow), "threads" (nor may those)
 *   forks numbers FILE N            keeps FILE open as descriptors 700 to 703, again and again,
 *                                   while it reports; prints what is in it
 *   forks large                     one block of 1 TiB
 *   forks pipes N                   closes N pipes while a child lives; prints how many readers saw
 *                                   the end late
 *   forks filler MB FILE            reports a lot while it fills the disk; prints how much it wrote
 *   forks cost                      prints a small child's memory, shared and private
 *   forks counts PARENT             page faults and waits of a small child; PARENT=1: its parent
 *                                   has reported blocks, too
 *   forks few N                     N blocks
 *   forks hoard N                   N blocks with every descriptor in use
 *   forks slow N                    N children while the disk hangs; prints the ms that the middle
 *                                   fork() took
 *   forks wait N                    N blocks, then waits for a line
 *   forks closer CLOSE              2,000 blocks; CLOSE=1: closes all descriptors in the middle
 *   forks orphan                    three blocks and a child that outlives it
 *   forks parent N [OTHERS]         N children that are killed; prints how many rings are left
 *   forks dropper                   a child that drops its user ID; prints how many rings are left
 *   forks holders N BURST ROUNDS MS N threads report a block each and stay; then the first thread
 *                                   reports BURST at once, and 60 in each round of so many ms
 *   forks handler N                 reports while a signal handler forks N times, and returns in
 *                                   each child; prints how many of them crash
 *   forks churn N FILE US           2,000 blocks stay, N come and go, and after each 4,000 is a
 *                                   pause; makes FILE after a quarter
 *   forks moved A B EVENTS          renames A to B, then reports a lot */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tidemark/tidemark.h"

enum { MIB = 1 << 20, FEW = 3, MOST_FORKS = 100 };

static void report(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        tidemark_alloc(TIDEMARK_HOST, (void *)(uintptr_t)(0x100000 + i * 64), 64);
}

static uint64_t used_of(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0 ? (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize : 0;
}

/* Where rings are. */
static const char *memory_folder(void)
{
    const char *folder = getenv("TIDEMARK_RING_DIR");
    return folder && *folder ? folder : "/dev/shm";
}

static void wait_for(pid_t pid, int want)
{
    int status = -1;
    if (waitpid(pid, &status, 0) != pid || status != want) {
        fprintf(stderr, "child %d: status %x\n", (int)pid, (unsigned)status);
        exit(1);
    }
}

/* ---- many ---- */

static void end_by(const char *way)
{
    if (strcmp(way, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(way, "exit") == 0)
        exit(0);
    _exit(0);
}

static void do_workers(char **v)
{
    uint64_t most = 0;
    int n = atoi(v[2]);
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            report(FEW);
            end_by(v[3]);
        }
        wait_for(pid, strcmp(v[3], "kill") == 0 ? SIGKILL : 0);
        uint64_t used = used_of(memory_folder());
        most = used > most ? used : most;
    }
    if (strcmp(v[3], "kill") == 0) /* whoever cares for the dead looks once a second or so */
        sleep(2);
    printf("done %llu\n", (unsigned long long)most);
}

static void do_crowd(char **v)
{
    int n = atoi(v[2]), ready[2], go[2];
    char byte = 0;
    if (pipe(ready) < 0 || pipe(go) < 0)
        exit(1);
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            report(FEW);
            close(go[1]);
            (void)!write(ready[1], &byte, 1);
            (void)!read(go[0], &byte, 1);
            _exit(0);
        }
    for (int i = 0; i < n; i++)
        (void)!read(ready[0], &byte, 1);
    printf("%llu\n", (unsigned long long)used_of(memory_folder()));
    close(go[1]);
    while (wait(NULL) > 0)
        ;
}

/* ---- disk ---- */

/* Addresses and sizes that no dictionary makes small. */
static void report_much(uint32_t seed, long n)
{
    for (long i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345;
        uintptr_t address = 0x1000000 + (uintptr_t)(seed % 1000003) * 64 * 17;
        tidemark_alloc(TIDEMARK_HOST, (void *)address, (seed >> 3) % 1000000 + 1);
        if (i % 4 == 0)
            tidemark_free(TIDEMARK_HOST, (void *)address);
        if (i % 4000 == 0)
            usleep(2000);
    }
}

/* Whether the run's list of refused processes has this one. */
static bool is_refused(const char *run)
{
    char path[4096], line[256];
    int pid = 0;
    snprintf(path, sizeof path, "%s/refused", run);
    FILE *file = fopen(path, "re");
    while (file && pid != getpid() && fgets(line, sizeof line, file))
        pid = atoi(line);
    if (file)
        fclose(file);
    return pid == getpid();
}

static bool has_trace(const char *run)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.%d.*.trace", run, (int)getpid());
    bool has = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return has;
}

/* Wait until it is decided whether this process, which has reported, is recorded: one that is
 * killed before, on a busy machine after seconds, leaves neither a trace nor a reason. */
static void wait_until_decided(void)
{
    const char *run = getenv("TIDEMARK_RUN");
    for (int ms = 0; run && ms < 20000 && !has_trace(run) && !is_refused(run); ms++)
        usleep(1000);
}

static void do_hogs(char **v)
{
    static char block[MIB];
    for (int i = 0; i < atoi(v[2]); i++) {
        if (i >= 16)
            wait(NULL);
        if (fork() == 0) {
            report_much((uint32_t)i * 7919 + 1, 4);
            if (strcmp(v[6], "kill") == 0)
                wait_until_decided();
            report_much((uint32_t)i * 7919 + 2, atol(v[3]) - 4);
            end_by(v[6]);
        }
    }
    while (wait(NULL) > 0)
        ;
    int fd = open(v[4], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (int i = 0; i < atoi(v[5]); i++)
        if (write(fd, block, sizeof block) != sizeof block) {
            printf("failed after %d MiB\n", i);
            exit(1);
        }
    printf("saved\n");
}

static void do_filler(char **v)
{
    static char block[MIB];
    uint64_t written = 0;
    int fd = open(v[3], O_CREAT | O_TRUNC | O_WRONLY, 0600);
    for (int i = 0; i < atoi(v[2]); i++) {
        report_much((uint32_t)i * 7919 + 1, 20000);
        ssize_t put = write(fd, block, sizeof block);
        written += put > 0 ? (uint64_t)put : 0;
    }
    printf("%llu\n", (unsigned long long)written);
}

static void lock_and_report(int go, int done)
{
    char byte = 0;
    struct rusage usage;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
        _exit(2);
    report(FEW);
    getrusage(RUSAGE_SELF, &usage);
    (void)!write(done, &usage.ru_maxrss, sizeof usage.ru_maxrss);
    (void)!read(go, &byte, 1);
    exit(0);
}

static void do_locked(char **v)
{
    int n = atoi(v[2]), go[2], done[2];
    long kib, most_kib = 0;
    if (pipe(go) < 0 || pipe(done) < 0)
        exit(1);
    for (int i = 0; i < n; i++)
        if (fork() == 0)
            lock_and_report(go[0], done[1]);
    for (int i = 0; i < n; i++)
        if (read(done[0], &kib, sizeof kib) == sizeof kib && kib > most_kib)
            most_kib = kib;
    printf("%llu %ld\n", (unsigned long long)used_of(memory_folder()), most_kib * 1024);
    for (int i = 0; i < n; i++)
        (void)!write(go[1], "", 1);
    for (int status; wait(&status) > 0;)
        if (status)
            exit(1);
}

static void do_refused(char **v)
{
    const struct rlimit none = {0, 0};
    report(FEW);
    for (int i = 0; i < atoi(v[2]); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (strcmp(v[3], "size") == 0)
                setrlimit(RLIMIT_FSIZE, &none);
            if (strcmp(v[3], "threads") == 0)
                setrlimit(RLIMIT_NPROC, &none);
            if (strcmp(v[3], "size") != 0 && setuid(65534) < 0)
                _exit(2);
            report(FEW);
            exit(0);
        }
        wait_for(pid, 0);
    }
}

static void do_numbers(char **v)
{
    int fd = open(v[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct stat st;
    if (write(fd, "mine\n", 5) != 5)
        exit(1);
    for (int i = 0; i < atoi(v[3]); i++) {
        for (int number = 700; number < 704; number++)
            dup2(fd, number);
        report(2000);
        usleep(1000);
        for (int number = 700; number < 704; number++)
            close(number);
        report(2000);
    }
    printf("%lld\n", fstat(fd, &st) == 0 ? (long long)st.st_size : -1);
}

static void do_large(char **v)
{
    (void)v;
    tidemark_alloc(TIDEMARK_HOST, (void *)(uintptr_t)4096, (uint64_t)1 << 40);
}

/* A reader that does not wait sees the end at once when nobody else has the other side. */
static void do_pipes(char **v)
{
    int late = 0;
    report(FEW);
    pid_t child = fork();
    if (child == 0) {
        report(FEW);
        for (;;)
            pause();
    }
    for (int i = 0; i < atoi(v[2]); i++) {
        int ends[2];
        char byte;
        if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
            exit(1);
        usleep(1000);
        close(ends[1]);
        late += read(ends[0], &byte, 1) != 0;
        close(ends[0]);
    }
    kill(child, SIGKILL);
    printf("%d\n", late);
}

/* ---- one ---- */

/* Bytes of the lines of smaps_rollup that begin so. */
static long rollup(const char *name)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib += strtol(line + strlen(name), NULL, 10);
    if (file)
        fclose(file);
    return kib * 1024;
}

static void do_cost(char **v)
{
    (void)v;
    pid_t pid = fork();
    if (pid == 0) {
        long before = rollup("Private_Dirty:");
        uint64_t shared = used_of(memory_folder());
        report(FEW);
        printf("%lld ", (long long)(used_of(memory_folder()) - shared));
        printf("%ld\n", rollup("Private_Dirty:") - before);
        exit(0);
    }
    wait_for(pid, 0);
}

/* What the kernel counts of a child from its first moment to its last. */
static void do_counts(char **v)
{
    struct rusage used;
    report(v[2][0] == '1' ? FEW : 0);
    pid_t pid = fork();
    if (pid == 0) {
        report(FEW);
        exit(0);
    }
    if (wait4(pid, NULL, 0, &used) == pid)
        printf("%ld %ld\n", used.ru_minflt, used.ru_nvcsw);
}

static void do_few(char **v)
{
    report((uint64_t)atoi(v[2]));
}

static void do_hoard(char **v)
{
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    report((uint64_t)atoi(v[2]));
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Its first event waits as long as events do; then there is no trace yet. */
static void do_slow(char **v)
{
    double took[MOST_FORKS];
    int n = atoi(v[2]) < MOST_FORKS ? atoi(v[2]) : MOST_FORKS;
    report(FEW);
    for (int i = 0; i < n; i++) {
        double start = now_s();
        pid_t pid = fork();
        if (pid == 0)
            syscall(SYS_exit_group, 0);
        took[i] = now_s() - start;
        wait_for(pid, 0);
    }
    qsort(took, (size_t)n, sizeof *took, compare_times);
    printf("%.0f\n", took[n / 2] * 1e3);
}

static void say_ready_and_wait(void)
{
    char byte;
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    (void)!read(STDIN_FILENO, &byte, 1);
}

static void do_wait(char **v)
{
    report((uint64_t)atoi(v[2]));
    say_ready_and_wait();
}

static void do_closer(char **v)
{
    report(1000);
    if (atoi(v[2]))
        syscall(SYS_close_range, 3u, ~0u, 0u);
    say_ready_and_wait();
    report(1000);
}

static void do_orphan(char **v)
{
    (void)v;
    report(FEW);
    pid_t pid = fork();
    if (pid > 0)
        dprintf(STDOUT_FILENO, "%d\n", (int)pid);
    for (;;)
        pause();
}

static int count_rings(void)
{
    int n = 0;
    DIR *folder = opendir(memory_folder());
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        n += strstr(entry->d_name, ".ring") != NULL;
    if (folder)
        closedir(folder);
    return n;
}

static void do_parent(char **v)
{
    report(FEW);
    for (int i = 0; i < atoi(v[2]); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            report(FEW);
            kill(getpid(), SIGKILL);
        }
        wait_for(pid, SIGKILL);
    }
    int others = v[3] ? atoi(v[3]) : 0; /* rings that stay, besides its own */
    for (int i = 0; i < 100 && count_rings() > 1 + others; i++)
        usleep(100000);
    printf("%d\n", count_rings());
}

/* A child that may not even look at the run folder. */
static void do_dropper(char **v)
{
    (void)v;
    report(FEW);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(9);
        report(FEW);
        exit(0);
    }
    wait_for(pid, 0);
    printf("%d\n", count_rings());
}

/* Its run is moved while it records a lot. */
static void do_moved(char **v)
{
    report(FEW);
    if (rename(v[2], v[3]) != 0)
        exit(9);
    report_much(7, atol(v[4]));
}

static _Atomic int n_holding;

/* Its page of the ring stays in use. */
static void *hold(void *unused)
{
    report(1);
    n_holding++;
    for (;;)
        pause();
    return unused;
}

static void do_holders(char **v)
{
    int n = atoi(v[2]);
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, hold, NULL) != 0)
            exit(9);
        while (n_holding <= i)
            usleep(100);
        if (i % 4 == 3) { /* so that the packer never finds the ring crowded */
            tidemark_oom(TIDEMARK_HOST, 1 << 20, 1 << 20);
            usleep(60000);
        }
    }
    report((uint64_t)atoi(v[3]));
    for (int i = 0; i < atoi(v[4]); i++) {
        report(60);
        usleep((unsigned)atoi(v[5]) * 1000);
    }
}

static volatile sig_atomic_t n_forked, n_to_fork, is_child;

static void fork_and_return(int unused)
{
    (void)unused;
    if (n_forked < n_to_fork && !is_child && fork() == 0)
        is_child = 1;
    n_forked++;
}

/* Most of these signals come while an event is recorded. */
static void do_handler(char **v)
{
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    int n_crashed = 0;
    n_to_fork = atoi(v[2]);
    report(1);
    signal(SIGALRM, fork_and_return);
    setitimer(ITIMER_REAL, &often, NULL);
    while (n_forked < n_to_fork && !is_child)
        report(1);
    if (is_child) {
        report(FEW);
        exit(0);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    for (int status; wait(&status) > 0;)
        n_crashed += status != 0;
    printf("%d\n", n_crashed);
}

/* 2,000 blocks stay; the rest comes and goes, and in the middle of it a file is made. */
static void do_churn(char **v)
{
    long n = atol(v[2]);
    report(2000);
    for (int part = 0; part < 4; part++) {
        if (part == 1)
            close(open(v[3], O_CREAT | O_WRONLY, 0600));
        for (long i = 0; i < n / 4; i++) {
            uintptr_t address = 0x80000000u + (uintptr_t)(i * 7919 % 1000003) * 1088;
            tidemark_alloc(TIDEMARK_HOST, (void *)address, (size_t)(i * 31 % 1000000) + 1);
            tidemark_free(TIDEMARK_HOST, (void *)address);
            if (i % 4000 == 0)
                usleep((unsigned)atoi(v[4]));
        }
    }
}

int main(int n, char **v)
{
    static const struct {
        const char *name;
        int n_arguments;
        void (*run)(char **v);
    } modes[] = {
        {"workers", 2, do_workers}, {"crowd", 1, do_crowd},     {"hogs", 5, do_hogs},
        {"filler", 2, do_filler},   {"cost", 0, do_cost},       {"few", 1, do_few},
        {"wait", 1, do_wait},       {"closer", 1, do_closer},   {"orphan", 0, do_orphan},
        {"parent", 1, do_parent},   {"dropper", 0, do_dropper}, {"churn", 3, do_churn},
        {"moved", 3, do_moved},     {"large", 0, do_large},     {"pipes", 1, do_pipes},
        {"locked", 1, do_locked},   {"refused", 2, do_refused}, {"numbers", 2, do_numbers},
        {"hoard", 1, do_hoard},     {"slow", 1, do_slow},       {"counts", 1, do_counts},
        {"holders", 4, do_holders}, {"handler", 1, do_handler},
    };
    for (size_t i = 0; n > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(v[1], modes[i].name) == 0 && n - 2 >= modes[i].n_arguments) {
            modes[i].run(v);
            return 0;
        }
    fprintf(stderr, "usage: forks MODE ...; see forks.c\n");
    return 2;
}
