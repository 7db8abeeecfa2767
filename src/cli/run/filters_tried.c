/* SPDX-License-Identifier: MIT */
/* cli/run/filters_tried.c - see filters_tried.h.
 *
 * A child process makes the system calls that a recorder and `tidemark run` make. If it survives,
 * so do they. Calls that fail with an error are fine. That none is missing here is tested with a
 * filter for each (tests/fault/test_seccomp.py). */
#include "cli/run/filters_tried.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/filters.h"
#include "cli/output/xalloc.h"

enum { TRY_S = 3 };

static void *thread_main(void *unused)
{
    prctl(PR_SET_NAME, "tidemark", 0, 0, 0);
    syscall(SYS_gettid);
    sched_yield();
    return unused;
}

static void try_filter_threads(void)
{
    pthread_t thread;
    sigset_t all, before;
    uint32_t word = 0;
    char name[17];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, thread_main, NULL) == 0)
        pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    prctl(PR_GET_NAME, name, 0, 0, 0);
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    syscall(SYS_tgkill, getpid(), getpid(), 0);
    sigaltstack(NULL, &(stack_t){0});
    nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
}

/* Try the calls for files, on a file without a name in a folder that every system has. Calls may
 * fail there. */
static void try_files(void)
{
    static const char byte = 0;
    struct iovec part = {.iov_base = (void *)(uintptr_t)&byte, .iov_len = 1};
    struct statfs fs;
    struct statvfs vfs;
    struct stat st;
    char text[64];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 700);
    (void)!pwritev(fd, &part, 1, 0);
    (void)!pread(fd, text, 1, 0);
    (void)!write(fd, "", 1);
    (void)!ftruncate(fd, 4096);
    (void)!fallocate(fd, 0, 0, 4096);
    fdatasync(fd);
    fchmod(fd, 0600);
    syscall(SYS_fstat, fd, &st);
    syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    madvise(page, 4096, MADV_REMOVE);
    munmap(page, 4096);
    syscall(SYS_fcntl, fd, F_OFD_GETLK, &(struct flock){.l_type = F_RDLCK});
    fstatfs(fd, &fs);
    statfs("/", &fs);
    statvfs("/", &vfs);
    access("/", W_OK);
    (void)!readlink("/proc/self/exe", text, sizeof text);
    mkdir("/", 0700); /* there already, as these are not */
    unlink("/proc/self/tidemark-is-not-here");
    unlinkat(AT_FDCWD, "/proc/self/tidemark-is-not-here", 0);
    (void)!linkat(AT_FDCWD, "/", AT_FDCWD, "/proc/self/tidemark-is-not-here", AT_SYMLINK_FOLLOW);
    renameat(fd, "tidemark-is-not-here", fd, "nor-here");
    syscall(SYS_getdents64, fd, text, sizeof text);
    syscall(SYS_close_range, 1000000u, ~0u, 0u);
    close(high);
    close(fd);
}

static void try_sockets(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/proc/self/no/such"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    (void)!bind(fd, (const struct sockaddr *)&address, sizeof address);
    connect(fd, (const struct sockaddr *)&address, sizeof address);
    listen(fd, 1);
    poll(&wait, 1, 0);
    accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    shutdown(fd, SHUT_RDWR);
    close(fd);
}

static void try_memory_and_names(void)
{
    static char page[8192];
    struct utsname name;
    struct rlimit limit;
    char bytes[16], host[64];
    madvise((void *)(((uintptr_t)page + 4095) & ~(uintptr_t)4095), 4096, MADV_WIPEONFORK);
    void *more = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munlock(more, 4096);
    mprotect(more, 4096, PROT_READ);
    madvise(more, 1 << 20, MADV_NOHUGEPAGE);
    madvise(more, 1 << 20, MADV_DONTNEED);
    munmap(more, 1 << 20);
    struct iovec mine = {.iov_base = bytes, .iov_len = 1},
                 theirs = {.iov_base = host, .iov_len = 1};
    process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0);
    (void)!getrandom(bytes, sizeof bytes, GRND_NONBLOCK);
    uname(&name);
    gethostname(host, sizeof host);
    getrlimit(RLIMIT_FSIZE, &limit);
    getppid();
    (void)!(getuid() + geteuid());
}

/* Try the further calls of `tidemark run`, which waits for a program and hands it its signals. */
static void try_waiting(void)
{
    const struct itimerval none = {0};
    const struct timespec now = {0};
    struct itimerval before;
    sigset_t pending;
    int ends[2] = {-1, -1};
    setitimer(ITIMER_VIRTUAL, &none, &before);
    int events = inotify_init1(IN_CLOEXEC);
    inotify_add_watch(events, "/proc/self/tidemark-is-not-here", IN_OPEN);
    close(events);
    setpgid(0, getpgrp());
    sigpending(&pending);
    sigemptyset(&pending);
    sigtimedwait(&pending, NULL, &now);
    close(signalfd(-1, &pending, SFD_CLOEXEC));
    (void)!pipe2(ends, O_CLOEXEC);
    flock(ends[0], LOCK_UN);
    close(ends[0]);
    close(ends[1]);
    kill(getpid(), 0);
    rmdir("/proc/self/tidemark-is-not-here");
}

/* Try all calls. An alarm ends the process when a call does not return, which is no better than a
 * filter that kills. */
_Noreturn static void try_all_calls(void)
{
    static const int quiet[] = {SIGALRM, SIGSYS, SIGXFSZ};
    sigset_t none;
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
        signal(quiet[i], SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(TRY_S);
    try_files();
    try_sockets();
    try_memory_and_names();
    try_filter_threads();
    try_waiting();
    _exit(0);
}

static bool do_they_let_live(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        try_all_calls();
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns whether the calls are survived. Filters are never removed, and we add none, so one try
 * holds for good, in our children too. */
static bool are_survived(void)
{
    static enum { UNTRIED, SURVIVED, DEADLY } found;
    if (found == UNTRIED)
        found = do_they_let_live() ? SURVIVED : DEADLY;
    return found == SURVIVED;
}

char *tmk_filters_said(void)
{
    const char *said = getenv(TMK_FILTERS_VARIABLE);
    struct tmk_filters own;
    if (said && strcmp(said, TMK_FILTERS_TRUST) == 0)
        return tmk_xstrdup(said);
    if (!tmk_filters_read("/proc/self/status", &own) || own.n == 0)
        return NULL;
    return are_survived() ? tmk_xformat("%" PRIu64, own.n) : tmk_xstrdup(TMK_FILTERS_REFUSE);
}

bool tmk_filters_refuse(void)
{
    char *said = tmk_filters_said();
    bool refuse = said && strcmp(said, TMK_FILTERS_REFUSE) == 0;
    free(said);
    return refuse;
}
