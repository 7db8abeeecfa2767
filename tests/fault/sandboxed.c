/* SPDX-License-Identifier: MIT */
/* tests/fault/sandboxed.c - a program that reports events and restricts its own system calls.
 *
 *     sandboxed WHEN HOW FILTER     report, install a filter, report, say "done"
 *     sandboxed launch FILTER -- PROGRAM [ARGUMENT...]     become a program under a filter
 *
 * WHEN: "early" (no event before the filter), "late" (100 events before it), "twice" (a second
 * filter after the first), "again" (after one that kills getpid), "fork" (the filter in a forked
 * child), "vfork" (in one that shares its parent's memory), "vforkexec" (that becomes another
 * program, and the parent ends by _exit()), "slow" (events over four seconds), "wait" (for a line
 * first), "probe" (calls that only ask whether there is seccomp), "threads" (others report
 * meanwhile). HOW: "prctl", "prctl_call" (the same by syscall()), "seccomp" (this thread), "tsync"
 * (all). FILTER: "kill:NAME" (one system call kills; a number will do), "errno:NAME" (it fails, as
 * if the kernel did not have it), "allow" (all but a few kill), "writing" (opening a file for
 * writing, or making one, kills), "plain" (so does opening one in any way but the loader's),
 * "output" (so does writing to anything but 1 and 2), "limits" (so does asking for a limit that the
 * loader does not ask for), "strict" (SECCOMP_MODE_STRICT, in a thread of its own), "none". */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tidemark/tidemark.h"

enum { ROUNDS = 5, EVENTS = 2000, MOST_RULES = 64 };

static const struct {
    const char *name;
    int number;
} calls[] = {
    {"fdatasync", SYS_fdatasync},
    {"pwritev", SYS_pwritev},
    {"pread64", SYS_pread64},
    {"futex", SYS_futex},
    {"madvise", SYS_madvise},
    {"munmap", SYS_munmap},
    {"mmap", SYS_mmap},
    {"mprotect", SYS_mprotect},
    {"clone", SYS_clone},
#ifdef SYS_clone3
    {"clone3", SYS_clone3},
#endif
    {"exit", SYS_exit},
    {"openat", SYS_openat},
    {"close", SYS_close},
    {"close_range", SYS_close_range},
    {"unshare", SYS_unshare},
    {"read", SYS_read},
    {"fcntl", SYS_fcntl},
    {"fstat", SYS_fstat},
    {"newfstatat", SYS_newfstatat},
    {"fallocate", SYS_fallocate},
    {"ftruncate", SYS_ftruncate},
    {"unlinkat", SYS_unlinkat},
#ifdef SYS_unlink
    {"unlink", SYS_unlink},
    {"mkdir", SYS_mkdir},
    {"readlink", SYS_readlink},
    {"poll", SYS_poll},
#endif
    {"ppoll", SYS_ppoll},
    {"mkdirat", SYS_mkdirat},
    {"prctl", SYS_prctl},
    {"gettid", SYS_gettid},
    {"getpid", SYS_getpid},
    {"getuid", SYS_getuid},
    {"geteuid", SYS_geteuid},
    {"getppid", SYS_getppid},
    {"getrandom", SYS_getrandom},
    {"uname", SYS_uname},
    {"statfs", SYS_statfs},
    {"socket", SYS_socket},
    {"bind", SYS_bind},
    {"listen", SYS_listen},
    {"accept4", SYS_accept4},
    {"shutdown", SYS_shutdown},
    {"fchmod", SYS_fchmod},
    {"set_robust_list", SYS_set_robust_list},
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"sigaltstack", SYS_sigaltstack},
    {"tgkill", SYS_tgkill},
    {"sched_yield", SYS_sched_yield},
    {"process_vm_readv", SYS_process_vm_readv},
};

/* What the program itself needs after that. */
static const int allowed[] = {
    SYS_write,           SYS_exit,      SYS_exit_group, SYS_rt_sigreturn, SYS_brk,
    SYS_clock_nanosleep, SYS_nanosleep, SYS_fstat,      SYS_newfstatat,
};

static const char *how = "tsync";

static void fail(const char *what)
{
    perror(what);
    _exit(3);
}

static void report(uint64_t from, uint64_t n)
{
    for (uint64_t i = from; i < from + n; i++) {
        tidemark_alloc(TIDEMARK_HOST, (void *)(uintptr_t)(0x100000 + i * 64), 64);
        tidemark_free(TIDEMARK_HOST, (void *)(uintptr_t)(0x100000 + i * 64));
    }
}

/* Long enough for a recorder's thread to pack, and an event that makes it sync. */
static void report_on(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        report(0, EVENTS);
        tidemark_oom(TIDEMARK_HOST, 1 << 20, 1 << 20);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

/* ---- filters ---- */

static int number_of(const char *name)
{
    if (*name >= '0' && *name <= '9')
        return atoi(name);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    fprintf(stderr, "no such call: %s\n", name);
    _exit(4);
}

/* Filters that look at an argument: what is wrong with its low word. */
static const struct {
    const char *name;
    int call, argument;
    unsigned mask;      /* of the word; then it must be one of */
    unsigned allows[2]; /* these */
} argument_rules[] = {
    {"writing", SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT, {0, 0}},
    {"plain", SYS_openat, 2, ~0u, {O_RDONLY, O_RDONLY | O_CLOEXEC}},
    {"output", SYS_write, 0, ~0u, {1, 2}},
    {"limits", SYS_prlimit64, 1, ~0u, {RLIMIT_STACK, RLIMIT_NOFILE}},
};

/* Its length; 0: it is another kind. */
static unsigned make_argument_filter(const char *what, struct sock_filter *f)
{
    size_t i = 0, n_rules = sizeof argument_rules / sizeof argument_rules[0];
    while (i < n_rules && strcmp(argument_rules[i].name, what) != 0)
        i++;
    if (i == n_rules)
        return 0;
    unsigned at = (unsigned)offsetof(struct seccomp_data, args[argument_rules[i].argument]);
    const unsigned *allows = argument_rules[i].allows;
    const struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)argument_rules[i].call, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, argument_rules[i].mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allows[0], 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allows[1], 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    memcpy(f, rules, sizeof rules);
    return sizeof rules / sizeof rules[0];
}

static unsigned make_filter(const char *what, struct sock_filter *f)
{
    unsigned n = make_argument_filter(what, f);
    if (n > 0)
        return n;
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    if (strcmp(what, "allow") == 0) {
        for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
            f[n++] =
                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
            f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
        return n;
    }
    const char *name = strchr(what, ':');
    unsigned answer =
        strncmp(what, "errno", 5) == 0 ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_KILL_PROCESS;
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                          (unsigned)number_of(name ? name + 1 : ""), 0, 1);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return n;
}

static void install(const char *what)
{
    struct sock_filter filter[MOST_RULES];
    struct sock_fprog program = {.len = (unsigned short)make_filter(what, filter),
                                 .filter = filter};
    long rc;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail("no_new_privs");
    if (strcmp(how, "prctl") == 0)
        rc = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    else if (strcmp(how, "prctl_call") == 0)
        rc = syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    else
        rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                     strcmp(how, "tsync") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program);
    if (rc != 0)
        fail("seccomp");
}

/* ---- ways ---- */

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(5);
}

static atomic_int strict_is_done;

static void *strict_main(void *unused)
{
    (void)unused;
    report(0, 10);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) < 0)
        fail("strict");
    report(0, 3000);
    tidemark_oom(TIDEMARK_HOST, 1 << 20, 1 << 20);
    say("strict\n");
    atomic_store(&strict_is_done, 1);
    syscall(SYS_exit, 0);
    return NULL;
}

static void *fresh_main(void *unused) /* its lane is opened in strict mode */
{
    (void)unused;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) < 0)
        fail("strict");
    report(0, 3000);
    say("strict\n");
    atomic_store(&strict_is_done, 1);
    syscall(SYS_exit, 0);
    return NULL;
}

static void run_strict(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, strcmp(how, "prctl") == 0 ? strict_main : fresh_main, NULL))
        fail("thread");
    while (!atomic_load(&strict_is_done))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    report_on();
}

static atomic_int goes_on = 1;

static void *reporter_main(void *arg)
{
    while (atomic_load(&goes_on))
        report((uint64_t)(uintptr_t)arg * 1000, 10);
    return NULL;
}

static void *opener_main(void *unused) /* a lane is opened again and again */
{
    (void)unused;
    report(9000, 1);
    return NULL;
}

static void run_threads(const char *filter)
{
    pthread_t threads[4], opener;
    for (uintptr_t i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, reporter_main, (void *)i))
            fail("thread");
    for (int i = 0; i < 50; i++) {
        if (pthread_create(&opener, NULL, opener_main, NULL) || pthread_join(opener, NULL))
            fail("thread");
    }
    install(filter);
    report_on();
    atomic_store(&goes_on, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static int wait_for(pid_t child)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail("child");
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void run_fork(const char *filter)
{
    report(0, 100);
    pid_t child = fork();
    if (child == 0) {
        report(0, 100);
        install(filter);
        report_on();
        _exit(0);
    }
    printf("child %d\n", wait_for(child));
    report(0, 100);
}

static void run_vfork(const char *filter, bool execs)
{
    struct sock_filter rules[MOST_RULES];
    struct sock_fprog program = {.len = (unsigned short)make_filter(filter, rules),
                                 .filter = rules};
    report(0, 100);
    pid_t child = vfork();
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        int failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0;
        if (execs)
            execl("/bin/true", "true", NULL);
        _exit(failed);
    }
    printf("child %d\n", wait_for(child));
    report(0, 100);
    if (execs)
        _exit(0);
}

/* As libseccomp, systemd and OpenSSH ask. */
static void run_probe(void)
{
    report(0, 100);
    printf("probe %d %d %d %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0),
           (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL),
           (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL),
           prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
    report(100, 100);
}

static void launch(char **argv)
{
    if (strcmp(argv[2], "none") != 0)
        install(argv[2]);
    execv(argv[4], argv + 4);
    fail(argv[4]);
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "launch") == 0)
        launch(argv);
    if (argc != 4)
        return 2;
    const char *when = argv[1], *filter = argv[3];
    how = argv[2];
    bool is_strict = strcmp(filter, "strict") == 0, is_none = strcmp(filter, "none") == 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (strcmp(when, "late") == 0 || strcmp(when, "twice") == 0 || strcmp(when, "again") == 0)
        report(0, 100);
    if (strcmp(when, "wait") == 0) {
        char line[8];
        say("ready\n");
        if (read(STDIN_FILENO, line, sizeof line) < 0)
            return 6;
    }
    for (int i = 0; i < 8 && strcmp(when, "slow") == 0; i++) {
        report(0, 100);
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    }
    if (strcmp(when, "fork") == 0) {
        run_fork(filter);
    } else if (strcmp(when, "vfork") == 0 || strcmp(when, "vforkexec") == 0) {
        run_vfork(filter, strcmp(when, "vforkexec") == 0);
    } else if (strcmp(when, "probe") == 0) {
        run_probe();
    } else if (strcmp(when, "threads") == 0) {
        run_threads(filter);
    } else if (is_strict) {
        run_strict();
    } else {
        if (strcmp(when, "twice") == 0)
            install("kill:fdatasync");
        if (strcmp(when, "again") == 0)
            install("kill:getpid");
        if (!is_none)
            install(filter);
        report_on();
    }
    say("done\n");
    return 0;
}
