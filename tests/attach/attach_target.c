/* SPDX-License-Identifier: MIT */
/* Programs to attach to: attach_target MODE [ARGUMENT...]. Each says "ready" on stdout, works until
 * SIGTERM (or until its wait is over), then says what it has seen; the tests compare that exactly.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;

static void on_term(int signal)
{
    (void)signal;
    is_over = 1;
}

static void say_ready(void)
{
    puts("ready");
    fflush(stdout);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- loops that call nothing ---- */

__attribute__((noinline)) static uint64_t churn(uint64_t x, unsigned n)
{
    __asm__ volatile("" : "+r"(n)); /* not to be taken for a constant */
    for (unsigned i = 0; i < n; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* No system call and no function of the C library; errno, signal mask and SIGTRAP's being ignored
 * must survive. */
static int run_loop(void)
{
    enum { ROUND = 1000000 };
    uint64_t wanted = churn(1, ROUND), n_wrong = 0, n_rounds = 0;
    sigset_t before, after;
    struct sigaction trap;
    signal(SIGTRAP, SIG_IGN);
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    sigprocmask(SIG_BLOCK, &before, NULL);
    sigprocmask(SIG_SETMASK, NULL, &before);
    say_ready();
    errno = 77;
    while (!is_over) {
        n_wrong += churn(1, ROUND) != wanted;
        n_rounds++;
    }
    int kept = errno;
    sigprocmask(SIG_SETMASK, NULL, &after);
    sigaction(SIGTRAP, NULL, &trap);
    printf("rounds %d wrong %" PRIu64 " errno %d mask %d trap %d\n", n_rounds > 0, n_wrong, kept,
           memcmp(&before, &after, 8) == 0, trap.sa_handler == SIG_IGN);
    return 0;
}

typedef double lanes __attribute__((vector_size(32)));

#if defined(__x86_64__)
#define WIDE target("avx2")
#else
#define WIDE unused
#endif

/* Eight vectors in registers for some milliseconds at a time. */
__attribute__((noinline, WIDE)) static double wave(unsigned n)
{
    __asm__ volatile("" : "+r"(n));
    const lanes m = {1.0000001, 0.9999999, 1.0000003, 0.9999997};
    lanes a = {1, 2, 3, 4}, b = {2, 3, 4, 5}, c = {3, 4, 5, 6}, d = {4, 5, 6, 7};
    lanes e = {5, 6, 7, 8}, f = {6, 7, 8, 9}, g = {7, 8, 9, 1}, h = {8, 9, 1, 2};
    for (unsigned i = 0; i < n; i++) {
        a *= m, b *= m, c *= m, d *= m;
        e *= m, f *= m, g *= m, h *= m;
    }
    lanes sum = a + b + c + d + e + f + g + h;
    return sum[0] + sum[1] + sum[2] + sum[3];
}

static int run_vector(void)
{
    enum { ROUND = 2000000 };
    double wanted = wave(ROUND);
    uint64_t n_wrong = 0;
    say_ready();
    while (!is_over)
        n_wrong += wave(ROUND) != wanted;
    printf("wrong %" PRIu64 "\n", n_wrong);
    return 0;
}

/* ---- waits ---- */

static int wait_sleep(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return nanosleep(&t, NULL);
}

static int wait_poll(int ms)
{
    return poll(NULL, 0, ms);
}

static int wait_select(int ms)
{
    struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000L};
    return select(0, NULL, NULL, NULL, &t);
}

static int wait_epoll(int ms)
{
    struct epoll_event event;
    return epoll_wait(epoll_create1(0), &event, 1, ms);
}

static int wait_sigtimedwait(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    return sigtimedwait(&set, NULL, &t);
}

static int wait_condition(int ms)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms % 1000 * 1000000L;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    return pthread_cond_timedwait(&condition, &mutex, &t);
}

/* A relative time, of which the kernel itself remembers what is left. */
static int wait_futex(int ms)
{
    static uint32_t word;
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return (int)syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t, NULL, 0);
}

static int wait_read(int ms)
{
    char buffer[8192];
    (void)ms;
    return (int)read(0, buffer, sizeof buffer);
}

static int wait_child(int ms)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        usleep((unsigned)ms * 1000);
        _exit(7);
    }
    pid_t got = waitpid(child, &status, 0);
    return got == child ? WEXITSTATUS(status) : -1;
}

static const struct {
    const char *name;
    int (*wait)(int ms);
} waits[] = {
    {"sleep", wait_sleep},         {"poll", wait_poll},   {"select", wait_select},
    {"epoll", wait_epoll},         {"read", wait_read},   {"sigtimedwait", wait_sigtimedwait},
    {"condition", wait_condition}, {"child", wait_child}, {"futex", wait_futex},
};

static int run_wait(const char *name, int ms)
{
    struct sigaction restarts = {.sa_handler = on_term, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &restarts, NULL);
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        if (strcmp(waits[i].name, name) != 0)
            continue;
        say_ready();
        uint64_t start = now_ms();
        errno = 0;
        int result = waits[i].wait(ms);
        int error = errno;
        printf("result %d errno %d after %" PRIu64 "\n", result, error, now_ms() - start);
        return 0;
    }
    return 2;
}

/* ---- threads that are always inside of malloc or the loader ---- */

static _Atomic uint64_t n_loops, n_errors;

static void use_memory(uint64_t *x)
{
    unsigned char *blocks[16];
    for (int i = 0; i < 16; i++) {
        *x = churn(*x, 1);
        size_t size = (*x >> 33) % 5000 + 1;
        blocks[i] = malloc(size);
        memset(blocks[i], (int)(size & 255), size);
        if (blocks[i][size - 1] != (size & 255))
            n_errors++;
    }
    for (int i = 0; i < 16; i++)
        free(blocks[i]);
}

static void *stir(void *argument)
{
    uint64_t x = (uint64_t)(uintptr_t)argument;
    for (int i = 0; !is_over; i++) {
        use_memory(&x);
        if (i % 8 == 0) {
            void *handle = dlopen("libm.so.6", RTLD_NOW);
            double (*function)(double) = handle ? (double (*)(double))dlsym(handle, "cos") : NULL;
            if (!function || function(0.0) != 1.0)
                n_errors++;
            if (handle)
                dlclose(handle);
        }
        n_loops++;
    }
    return NULL;
}

static int run_threads(int n)
{
    pthread_t threads[256];
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, stir, (void *)(uintptr_t)(i + 1));
    say_ready();
    stir((void *)(uintptr_t)1000); /* the first thread too: none is ever idle */
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("loops %d errors %" PRIu64 "\n", n_loops > 0, (uint64_t)n_errors);
    return 0;
}

/* Always inside of malloc, and alone. */
static int run_malloc(void)
{
    uint64_t x = 1, n = 0;
    say_ready();
    for (; !is_over; n++)
        use_memory(&x);
    printf("loops %d errors %" PRIu64 "\n", n > 0, (uint64_t)n_errors);
    return 0;
}

/* ---- signals ---- */

static volatile uint64_t n_signals, n_disorder, n_ticks;

static void on_queued(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    n_disorder += (uint64_t)info->si_value.sival_int != n_signals;
    n_signals++;
}

static void on_tick(int signal)
{
    (void)signal;
    n_ticks++;
}

/* Sends a thousand queued signals a second, at least n of them and until SIGTERM. */
static void send_signals(pid_t to, int n, volatile uint64_t *n_sent)
{
    for (int i = 0; i < n || !is_over; i++) {
        union sigval value = {.sival_int = i};
        while (sigqueue(to, SIGRTMIN, value) < 0 && errno == EAGAIN)
            usleep(100);
        *n_sent = (uint64_t)i + 1;
        usleep(1000);
    }
}

/* A thousand queued signals a second, which the kernel neither merges nor reorders, and an interval
 * timer on top, into a thread that allocates. */
static int run_signals(int n)
{
    struct sigaction queued = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerspec every = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
    volatile uint64_t *n_sent =
        mmap(NULL, sizeof *n_sent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    timer_t timer;
    uint64_t x = 1;
    sigaction(SIGRTMIN, &queued, NULL);
    sigaction(SIGALRM, &tick, NULL);
    timer_create(CLOCK_MONOTONIC, NULL, &timer);
    timer_settime(timer, 0, &every, NULL);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        send_signals(parent, n, n_sent);
        _exit(0);
    }
    say_ready();
    while (!is_over)
        use_memory(&x);
    kill(child, SIGTERM);
    waitpid(child, NULL, 0);
    for (uint64_t limit = now_ms() + 30000; n_signals < *n_sent && now_ms() < limit;)
        use_memory(&x);
    printf("signals %d lost %" PRIu64 " disorder %" PRIu64 " ticks %d errors %" PRIu64 "\n",
           n_signals >= (uint64_t)n, *n_sent - n_signals, n_disorder, n_ticks > 0,
           (uint64_t)n_errors);
    return 0;
}

/* ---- those that refuse ---- */

static void wait_for_term(void)
{
    say_ready();
    while (!is_over)
        usleep(20000);
    puts("ended");
}

/* No executable memory from now on. */
static int run_seccomp(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return 2;
    wait_for_term();
    return 0;
}

/* A child that has ended, or that is being traced: its number, then wait. */
static int run_child(bool traced)
{
    pid_t child = fork();
    if (child == 0) {
        if (!traced)
            _exit(0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    if (traced && ptrace(PTRACE_SEIZE, child, NULL, NULL) < 0)
        return 2;
    usleep(20000);
    printf("%d\n", (int)child);
    wait_for_term();
    kill(child, SIGKILL);
    return 0;
}

/* A file mapped, as a library would be. */
static int run_mapped(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0 || mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        return 2;
    wait_for_term();
    return 0;
}

static int run_idle(bool undumpable)
{
    if (undumpable)
        prctl(PR_SET_DUMPABLE, 0);
    wait_for_term();
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? (int)strtol(argv[argc - 1], NULL, 10) : 0;
    struct sigaction term = {.sa_handler = on_term};
    sigaction(SIGTERM, &term, NULL);
    if (strcmp(mode, "loop") == 0)
        return run_loop();
    if (strcmp(mode, "vector") == 0)
        return run_vector();
    if (strcmp(mode, "wait") == 0 && argc > 3)
        return run_wait(argv[2], number);
    if (strcmp(mode, "threads") == 0)
        return run_threads(number);
    if (strcmp(mode, "malloc") == 0)
        return run_malloc();
    if (strcmp(mode, "signals") == 0)
        return run_signals(number);
    if (strcmp(mode, "seccomp") == 0)
        return run_seccomp();
    if (strcmp(mode, "zombie") == 0 || strcmp(mode, "traced") == 0)
        return run_child(mode[0] == 't');
    if (strcmp(mode, "mapped") == 0 && argc > 2)
        return run_mapped(argv[2]);
    if (strcmp(mode, "idle") == 0 || strcmp(mode, "undumpable") == 0)
        return run_idle(mode[0] == 'u');
    return 2;
}
