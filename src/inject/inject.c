/* SPDX-License-Identifier: MIT */
/* inject/inject.c - see inject.h. The steps, in order:
 *
 *   look       the target's libraries and the addresses of the functions needed (image.h)
 *   find       a thread at a safe point: those that wait are judged from outside, and only the one
 *              chosen is stopped, and judged again
 *   map        with system calls of the borrowed thread: a region of code, data and stack
 *   start      the borrowed thread runs the stub, which makes the helper thread; then it is
 *              restored and let go
 *   wait       for a word in the helper's memory
 *
 * Only one tidemark at a time injects into a process: it locks the process's /proc/PID/mem, and the
 * kernel drops the lock when its holder ends. */
#include "inject/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "inject/arch.h"
#include "inject/borrow.h"
#include "inject/image.h"
#include "inject/return_path.h"
#include "inject/safe_point.h"
#include "kit/language.h"

/* The region: [code][data][vector registers][stack], each a multiple of any page size. The data is
 * the block, then the texts. */
enum {
    PART_BYTES = TMK_STUB_VECTORS_AT,
    REGION_BYTES = 4 * PART_BYTES,
    SYMBOL_AT = 1024,
    PATH_AT = 2048,
    MESSAGE_AT = PATH_AT + PATH_MAX,
    OPTIONS_AT = MESSAGE_AT + TMK_MESSAGE_BYTES,
    OPTIONS_BYTES = PART_BYTES - OPTIONS_AT,
};

enum {
    MAX_THREADS = 4096,
    PATIENCE_NS = 100000000, /* for pthread_create, before we check what it waits for */
    PAUSE_NS = 1000000,      /* between two searches for a thread */
    BACK_OFF_NS = 100000000, /* after a thread that was waiting for itself */
};

struct inject_job {
    const struct tmk_injection *in;
    struct tmk_injected out;
    struct tmk_image image;
    struct tmk_safety safety;
    struct tmk_borrowed borrowed;
    struct tmk_stub_block block;
    struct tmk_return_places places;
    uint64_t region; /* 0: none */
    uint64_t deadline_ns;
    uint64_t patient_until_ns; /* until then threads with special registers are skipped */
    int os_error;              /* errno for the last thread that could not be stopped */
};

/* ---- look ---- */

static bool is_libc(const char *name)
{
    return strncmp(name, "libc.so.6", 9) == 0 || strncmp(name, "libc-2.", 7) == 0;
}

static bool is_musl(const char *name)
{
    return strncmp(name, "ld-musl-", 8) == 0 || strncmp(name, "libc.musl-", 10) == 0;
}

static bool is_loader(const char *name)
{
    return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-2.", 5) == 0 ||
           strncmp(name, "ld.so", 5) == 0;
}

static bool is_threads(const char *name)
{
    return strncmp(name, "libpthread.so.0", 15) == 0 || strncmp(name, "libpthread-2.", 13) == 0;
}

static bool is_dl(const char *name)
{
    return strncmp(name, "libdl.so.2", 10) == 0 || strncmp(name, "libdl-2.", 8) == 0;
}

static bool is_tidemark_library(const char *name)
{
    return strncmp(name, "libtidemark.so", 14) == 0 || strncmp(name, "memfd:libtidemark", 17) == 0;
}

static bool is_python(const char *name)
{
    return strncmp(name, "libpython", 9) == 0 || strncmp(name, "python", 6) == 0;
}

static bool is_torch_library(const char *name)
{
    return strncmp(name, "libc10.so", 9) == 0 || strncmp(name, "libtorch", 8) == 0;
}

static int no_libc(const struct inject_job *j, struct tmk_error *err)
{
    int pid = (int)j->image.pid;
    if (tmk_image_find(&j->image, is_musl))
        return tmk_fail(err, TMK_EINVAL,
                        "process %d uses musl as its C library (Alpine), libtidemark.so needs "
                        "glibc; run the program in an image with glibc",
                        pid);
    return tmk_fail(err, TMK_EINVAL,
                    "process %d is linked statically (it has no C library to load anything with); "
                    "link it dynamically",
                    pid);
}

static bool find_function_in(const struct inject_job *j, const struct tmk_image_module *m,
                             const char *name, uint64_t *ret)
{
    struct tmk_range range;
    if (!m || !tmk_module_symbol(&j->image, m, name, &range))
        return false;
    *ret = range.start;
    return true;
}

/* Find the loader's functions: since glibc 2.34 in libc, before that in libdl, or libc's internal
 * pair. */
static bool find_loader_functions(struct inject_job *j, const struct tmk_image_module *libc)
{
    struct tmk_stub_block *b = &j->block;
    const struct tmk_mapping *head = tmk_image_find(&j->image, is_dl);
    struct tmk_image_module dl;
    bool has_dl = head && tmk_module_init(&j->image, head, &dl) == 0;
    b->dlopen_flags = RTLD_NOW | RTLD_GLOBAL; /* libraries loaded later find our hooks by name */
    for (int i = 0; i < 2; i++) {
        const struct tmk_image_module *m = i == 0 ? libc : has_dl ? &dl : NULL;
        if (!find_function_in(j, m, "dlopen", &b->dlopen) ||
            !find_function_in(j, m, "dlsym", &b->dlsym))
            continue;
        (void)find_function_in(j, m, "dlerror", &b->dlerror);
        return true;
    }
    b->dlopen_flags |= 0x80000000u; /* __RTLD_DLOPEN, which dlopen() adds itself */
    return find_function_in(j, libc, "__libc_dlopen_mode", &b->dlopen) &&
           find_function_in(j, libc, "__libc_dlsym", &b->dlsym);
}

static bool find_stub_functions(struct inject_job *j, const struct tmk_image_module *libc,
                                const struct tmk_image_module *threads)
{
    struct tmk_stub_block *b = &j->block;
    return find_function_in(j, libc, "__errno_location", &b->errno_location) &&
           find_function_in(j, libc, "poll", &b->poll) &&
           find_function_in(j, libc, "close", &b->close) &&
           find_function_in(j, libc, "munmap", &b->munmap) &&
           (find_function_in(j, threads, "pthread_self", &b->pthread_self) ||
            find_function_in(j, libc, "pthread_self", &b->pthread_self)) &&
           find_function_in(j, threads, "pthread_detach", &b->pthread_detach) &&
           find_function_in(j, threads, "pthread_create", &b->pthread_create) &&
           find_loader_functions(j, libc);
}

/* The mapping where the program itself begins, or the kernel's code in it; NULL: not known. */
static const struct tmk_mapping *find_program(const struct inject_job *j, bool is_kernels)
{
    char path[64];
    struct stat st = {0};
    snprintf(path, sizeof path, "/proc/%d/exe", (int)j->image.pid);
    if (!is_kernels && stat(path, &st) < 0)
        return NULL;
    for (uint64_t i = 0; i < j->image.n; i++) {
        const struct tmk_mapping *m = &j->image.mappings[i];
        if (is_kernels ? strcmp(m->path, "[vdso]") == 0
                       : m->path[0] == '/' && m->inode == st.st_ino && m->file_offset == 0)
            return m;
    }
    return NULL;
}

/* Find places for return paths, behind code that is never unloaded. */
static int find_return_places(struct inject_job *j, const struct tmk_image_module *libc,
                              const struct tmk_image_module *threads, struct tmk_error *err)
{
    const struct tmk_mapping *const heads[] = {
        libc->head,
        tmk_image_find(&j->image, is_loader),
        threads->head == libc->head ? NULL : threads->head,
        find_program(j, false),
        find_program(j, true),
    };
    int rc = tmk_return_places_find(&j->image, heads, TMK_N(heads), &j->places);
    if (rc < 0)
        return tmk_fail(err, rc,
                        "the libraries of process %d have no room for the code that lets a thread "
                        "be borrowed safely; start the program with: tidemark run",
                        (int)j->image.pid);
    return 0;
}

/* The library may be loaded already. Then nothing is loaded, and the function of that library is
 * called. */
static void find_loaded_tidemark(struct inject_job *j)
{
    const struct tmk_mapping *head = tmk_image_find(&j->image, is_tidemark_library);
    struct tmk_image_module ours;
    uint64_t function;
    j->out.was_loaded = head && tmk_module_init(&j->image, head, &ours) == 0 &&
                        find_function_in(j, &ours, j->in->symbol, &function);
}

static int look_at_libraries(struct inject_job *j, struct tmk_error *err)
{
    const struct tmk_mapping *head = tmk_image_find(&j->image, is_libc);
    struct tmk_image_module libc, threads;
    if (!head || tmk_module_init(&j->image, head, &libc) < 0)
        return no_libc(j, err);
    threads = libc;
    if (!find_function_in(j, &libc, "pthread_create", &j->block.pthread_create)) {
        const struct tmk_mapping *old = tmk_image_find(&j->image, is_threads);
        if (!old || tmk_module_init(&j->image, old, &threads) < 0)
            return tmk_fail(err, TMK_EINVAL,
                            "process %d has no libpthread (a glibc before 2.34), so no thread can "
                            "be started in it; start it with: tidemark run",
                            (int)j->image.pid);
    }
    if (!find_stub_functions(j, &libc, &threads))
        return tmk_fail(err, TMK_EINVAL,
                        "the C library of process %d (%s) lacks a function that is needed; start "
                        "the program with: tidemark run",
                        (int)j->image.pid, head->path);
    find_loaded_tidemark(j);
    int rc = find_return_places(j, &libc, &threads, err);
    if (rc < 0)
        return rc;
    return tmk_safety_init(&j->safety, &j->image, &libc, &threads,
                           tmk_image_find(&j->image, is_loader), err);
}

static int open_image(const struct tmk_subject *s, const struct tmk_asker *us,
                      struct tmk_image *ret, struct tmk_error *err)
{
    struct tmk_error reason = {0};
    int rc = tmk_image_open(s->pid, ret, &reason);
    if (rc == 0)
        return 0;
    if (reason.os_error)
        return tmk_subject_explain(s, us, reason.os_error, err);
    return tmk_fail(err, rc, "%s", reason.text);
}

/* ---- map ---- */

static int run_remote_syscall(struct inject_job *j, long number, const uint64_t arguments[6],
                              int64_t *ret)
{
    return tmk_borrow_syscall(&j->borrowed, number, arguments, ret, j->deadline_ns);
}

/* Report a system call that the kernel refused because of the target's seccomp filter or limits. */
static int report_refused_call(const struct inject_job *j, const char *what, int64_t result,
                               struct tmk_error *err)
{
    return tmk_fail_os(
        err, TMK_EINVAL, (int)-result, "process %d may not %s%s", (int)j->image.pid, _(what),
        j->in->subject->has_seccomp ? _(" (it has a seccomp filter; start it with: tidemark run)")
                                    : "");
}

/* Each part is executable or writable, never both, because hardened systems forbid that. */
static int map_region(struct inject_job *j, struct tmk_error *err)
{
    int64_t got = 0;
    int rc = run_remote_syscall(j, SYS_mmap,
                                (uint64_t[6]){0, REGION_BYTES, PROT_READ | PROT_EXEC,
                                              MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0},
                                &got);
    if (rc == 0 && got < 0 && got > -4096)
        return report_refused_call(j, "map executable memory", got, err);
    if (rc == 0) {
        j->region = (uint64_t)got;
        rc = run_remote_syscall(j, SYS_mprotect,
                                (uint64_t[6]){j->region + PART_BYTES, REGION_BYTES - PART_BYTES,
                                              PROT_READ | PROT_WRITE},
                                &got);
    }
    if (rc == 0 && got < 0)
        return report_refused_call(j, "make memory writable", got, err);
    if (rc < 0)
        return tmk_fail(err, rc, "the borrowed thread did not make its system call");
    return 0;
}

/* Clean up after a failure: the borrowed thread unmaps and closes what it made for us. */
static void clean_up_target(struct inject_job *j)
{
    int64_t got;
    if (j->region)
        (void)run_remote_syscall(j, SYS_munmap, (uint64_t[6]){j->region, REGION_BYTES}, &got);
    if (j->out.by_memory && j->block.fd >= 0)
        (void)run_remote_syscall(j, SYS_close, (uint64_t[6]){(uint64_t)j->block.fd}, &got);
    j->region = 0;
    j->out.by_memory = false;
}

static bool put_target_bytes(struct inject_job *j, uint64_t address, const void *from, size_t n)
{
    return tmk_borrow_write(&j->borrowed, &j->image, address, from, n) == 0;
}

static bool put_target_text(struct inject_job *j, uint64_t at, const char *text)
{
    return put_target_bytes(j, j->region + PART_BYTES + at, text, strlen(text) + 1);
}

static bool copy_file(const char *from_path, const char *to_path)
{
    int from = open(from_path, O_RDONLY | O_CLOEXEC);
    int to = open(to_path, O_RDWR | O_CLOEXEC);
    char buffer[16384];
    ssize_t n = -1;
    while (from >= 0 && to >= 0 && (n = read(from, buffer, sizeof buffer)) > 0)
        if (write(to, buffer, (size_t)n) != n)
            break;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return n == 0;
}

/* The target cannot see the library's file, so copy it into memory that has a descriptor in the
 * target. */
static int put_library(struct inject_job *j, char *ret_path, size_t size, struct tmk_error *err)
{
    char theirs[64];
    int64_t fd = -1;
    if (!put_target_text(j, PATH_AT, "libtidemark.so"))
        return tmk_fail(err, TMK_EIO, "cannot write to the memory of the process");
    int rc = run_remote_syscall(j, SYS_memfd_create,
                                (uint64_t[6]){j->region + PART_BYTES + PATH_AT, MFD_CLOEXEC}, &fd);
    if (rc < 0)
        return tmk_fail(err, rc, "the borrowed thread did not make its system call");
    if (fd < 0)
        return report_refused_call(j, "make a file in memory (memfd)", fd, err);
    j->block.fd = fd;
    j->out.by_memory = true;
    snprintf(theirs, sizeof theirs, "/proc/%d/fd/%d", (int)j->image.pid, (int)fd);
    snprintf(ret_path, size, "/proc/self/fd/%d", (int)fd);
    if (!copy_file(j->in->library, theirs))
        return tmk_fail(err, TMK_EIO, "cannot copy %s into the process", j->in->library);
    return 0;
}

/* Tell the stub what it needs to end without us. */
static void prepare_return(struct inject_job *j)
{
    const struct tmk_borrowed *from = &j->borrowed;
    struct tmk_stub_block *b = &j->block;
    b->back = from->path.at + tmk_return_back;
    b->flags = tmk_general_flags(&from->saved.general);
    b->has_xsave = from->saved.extended[0].n_bytes > 0;
    b->is_created = 0;
    b->create_result = 0;
}

static int fill_region(struct inject_job *j, struct tmk_error *err)
{
    struct tmk_stub_block *b = &j->block;
    uint64_t data = j->region + PART_BYTES;
    char path[PATH_MAX];
    b->fd = -1;
    b->symbol = data + SYMBOL_AT;
    b->path = data + PATH_AT;
    b->message = data + MESSAGE_AT;
    b->message_bytes = TMK_MESSAGE_BYTES;
    b->options = data + OPTIONS_AT;
    b->region = j->region;
    b->region_bytes = REGION_BYTES;
    prepare_return(j);
    snprintf(path, sizeof path, "%s", j->in->library);
    if (!j->out.was_loaded && !tmk_subject_sees(j->in->subject, j->in->library)) {
        int rc = put_library(j, path, sizeof path, err);
        if (rc < 0)
            return rc;
    }
    if (put_target_text(j, SYMBOL_AT, j->in->symbol) && put_target_text(j, PATH_AT, path) &&
        put_target_text(j, OPTIONS_AT, j->in->options) && put_target_bytes(j, data, b, sizeof *b) &&
        put_target_bytes(j, j->region, tmk_stub, tmk_stub_bytes))
        return 0;
    return tmk_fail(err, TMK_EIO, "cannot write to the memory of the process");
}

/* ---- start ---- */

static uint64_t stub_word_at(const struct inject_job *j, size_t offset)
{
    return j->region + PART_BYTES + offset;
}

/* Whether pthread_create does not return because the thread waits for a lock that it holds itself.
 * Then nothing has happened yet, and another thread is tried. */
static bool waits_for_lock(struct inject_job *j)
{
    struct tmk_thread_place m = {.call = -1};
    if (tmk_borrow_interrupt(&j->borrowed, j->deadline_ns) < 0)
        return false;
    return tmk_thread_place_read(j->borrowed.pid, j->borrowed.tid, &m) && m.call == SYS_futex;
}

static int run_stub(struct inject_job *j, struct tmk_error *err)
{
    const struct tmk_stub_run run = {
        .code = j->region,
        .block = j->region + PART_BYTES,
        .region = j->region,
        .region_bytes = REGION_BYTES,
        .done = stub_word_at(j, offsetof(struct tmk_stub_block, is_created)),
    };
    int rc;
    do {
        uint64_t patience = tmk_clock_monotonic_ns() + PATIENCE_NS;
        rc = tmk_borrow_run(&j->borrowed, &j->image, &run, patience);
        if (rc != TMK_EBUSY)
            break;
        if (waits_for_lock(j))
            return tmk_fail(err, TMK_EBUSY, "its threads are not at a point where one can start");
        rc = tmk_borrow_go_on(&j->borrowed);
    } while (rc == 0 && tmk_clock_monotonic_ns() < j->deadline_ns);
    if (rc == TMK_ENOENT)
        return tmk_fail(err, rc, "process %d has ended meanwhile", (int)j->image.pid);
    if (rc < 0)
        return tmk_fail(err, rc, "process %d did not start our thread", (int)j->image.pid);
    tmk_image_read(&j->image, j->region + PART_BYTES, &j->block, sizeof j->block);
    if (j->block.create_result != 0)
        return tmk_fail_os(err, TMK_EINVAL, j->block.create_result,
                           "process %d cannot start a thread (see ulimit -u and its memory limit)",
                           (int)j->image.pid);
    return 0;
}

/* Use a thread that is stopped at a safe point: map the region, fill it, run the stub. */
static int use_thread(struct inject_job *j, struct tmk_error *err)
{
    bool is_patient = tmk_clock_monotonic_ns() < j->patient_until_ns;
    int rc = tmk_borrow_save(&j->borrowed, &j->image, &j->places, is_patient);
    if (rc < 0)
        return tmk_fail(err, rc == TMK_EFULL ? TMK_EBUSY : rc,
                        "cannot save the registers of thread %d", (int)j->borrowed.tid);
    rc = map_region(j, err);
    if (rc == 0)
        rc = fill_region(j, err);
    if (rc == 0)
        rc = run_stub(j, err);
    if (rc < 0 && rc != TMK_ENOENT &&
        tmk_borrow_recall(&j->borrowed, &j->image, tmk_clock_monotonic_ns() + PATIENCE_NS) == 0)
        clean_up_target(j);
    j->region = rc < 0 ? 0 : j->region;
    j->out.borrowed = j->borrowed.tid;
    return rc;
}

/* ---- find ---- */

/* A thread that the C library made has a record with its own number in it. */
static bool is_library_thread(const struct inject_job *j, pid_t tid)
{
    struct user_regs_struct g;
    pid_t inner;
    char state;
    uint64_t start, end;
    int32_t words[1024];
    if (!tmk_subject_read_thread(tid, &state, &inner) || tmk_general_get(tid, &g) < 0 ||
        !tmk_general_thread_record(tid, &g, &start, &end) || end - start > sizeof words ||
        !tmk_image_read(&j->image, start, words, end - start))
        return false;
    for (size_t i = 0; i < (end - start) / sizeof words[0]; i++)
        if (words[i] == inner)
            return true;
    return false;
}

static uint64_t thread_of_place(const struct inject_job *j, unsigned i)
{
    struct tmk_return_head head = {0};
    (void)tmk_image_read(&j->image, j->places.at[i], &head, sizeof head);
    return head.thread;
}

/* Whether this thread was left alone by an attach that was killed and is still in its return path.
 * It must not be borrowed meanwhile: it would need a return path to the return path. */
static bool is_returning(const struct inject_job *j, const struct user_regs_struct *g)
{
    pid_t inner;
    char state;
    if (!tmk_subject_read_thread(j->borrowed.tid, &state, &inner))
        return true;
    for (unsigned i = 0; i < j->places.n; i++)
        if (j->places.is_taken[i] && thread_of_place(j, i) == (uint64_t)inner &&
            tmk_return_is_needed(&j->image, j->places.at[i], g))
            return true;
    return false;
}

static bool is_safe_stopped(const struct inject_job *j, const struct tmk_thread_place *before)
{
    struct user_regs_struct g;
    struct tmk_thread_place m = {.call = -1};
    pid_t tid = j->borrowed.tid;
    if (tmk_general_get(tid, &g) < 0)
        return false;
    (void)tmk_thread_place_read(j->borrowed.pid, tid, &m);
    m.pc = tmk_general_pc(&g);
    m.sp = tmk_general_sp(&g);
    if (m.call < 0 && before->call >= 0 && before->pc - m.pc <= 4) {
        m.call = before->call; /* for processors that forget it at the stop */
        m.argument = before->argument;
    }
    return tmk_safety_of(&j->safety, &m) && is_library_thread(j, tid) && !is_returning(j, &g);
}

static void pause_ns(uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    nanosleep(&t, NULL);
}

/* End the borrow. A place is not used again if its thread was left in it. */
static uint64_t end_borrow(struct inject_job *j)
{
    uint64_t held_ns = tmk_borrow_end(&j->borrowed, &j->image);
    for (unsigned i = 0; i < j->places.n && !j->borrowed.is_restored; i++)
        j->places.is_taken[i] |= j->places.at[i] == j->borrowed.path.at;
    return held_ns;
}

/* Stop a thread and use it if it is still safe. 1: done, 0: not this one, <0: failed. */
static int try_thread(struct inject_job *j, pid_t tid, const struct tmk_thread_place *before,
                      struct tmk_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old); /* a ^C now would leave the thread borrowed */
    int rc = tmk_borrow_stop(&j->borrowed, j->image.pid, tid, j->deadline_ns);
    if (rc == TMK_EIO)
        j->os_error = j->borrowed.os_error;
    if (rc == 0) {
        bool safe = is_safe_stopped(j, before);
        rc = safe ? use_thread(j, err) : 0;
        uint64_t held_ns = end_borrow(j);
        j->out.n_held++;
        j->out.held_ns += held_ns;
        if (held_ns > j->out.longest_held_ns)
            j->out.longest_held_ns = held_ns;
        rc = rc == 0 ? safe : rc;
    } else {
        rc = 0;
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (rc == TMK_EBUSY)
        pause_ns(BACK_OFF_NS);
    return rc == TMK_EBUSY ? 0 : rc;
}

enum { RANK_IDLE, RANK_RUNNING, RANK_DISTURBED, RANK_NOT_NOW };

/* Rank a thread by what a stop costs it. A thread waiting in a call that restarts loses nothing. A
 * running one must be stopped to be judged. One waiting in another call sees it end early. */
static unsigned thread_rank_of(const struct inject_job *j, pid_t tid, struct tmk_thread_place *ret)
{
    pid_t inner;
    char state;
    *ret = (struct tmk_thread_place){.call = -1};
    if (!tmk_subject_read_thread(tid, &state, &inner) || strchr("DZX", state))
        return RANK_NOT_NOW;
    if (!tmk_thread_place_read(j->image.pid, tid, ret))
        return RANK_RUNNING;
    if (!tmk_safety_of(&j->safety, ret))
        return RANK_NOT_NOW;
    return ret->call < 0 || tmk_call_restarts(ret->call) ? RANK_IDLE : RANK_DISTURBED;
}

/* ---- places that earlier attaches left taken ---- */

/* Stop the thread that was left in some of the places; free those that it cannot enter any more. */
static void free_places_of(struct inject_job *j, pid_t tid, uint64_t inner)
{
    struct user_regs_struct g;
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    bool is_known = tmk_borrow_stop(&j->borrowed, j->image.pid, tid, j->deadline_ns) == 0;
    bool has_registers = is_known && tmk_general_get(tid, &g) == 0;
    for (unsigned i = 0; i < j->places.n && has_registers; i++)
        if (thread_of_place(j, i) == inner)
            j->places.is_taken[i] = tmk_return_is_needed(&j->image, j->places.at[i], &g);
    if (is_known)
        (void)tmk_borrow_end(&j->borrowed, &j->image);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

/* The thread that has number `wanted` in its own namespace; 0: it has ended. */
static pid_t find_thread(const struct inject_job *j, uint64_t wanted)
{
    pid_t tids[MAX_THREADS], inner;
    char state;
    size_t n = tmk_subject_threads(j->image.pid, tids, MAX_THREADS);
    for (size_t i = 0; i < n; i++)
        if (tmk_subject_read_thread(tids[i], &state, &inner) && (uint64_t)inner == wanted)
            return tids[i];
    return 0;
}

/* All places are taken: free those that no thread needs any more. */
static void free_places(struct inject_job *j)
{
    for (unsigned i = 0; i < j->places.n; i++)
        if (!j->places.is_taken[i])
            return;
    for (unsigned i = 0; i < j->places.n; i++) {
        uint64_t inner = thread_of_place(j, i);
        bool is_done = !j->places.is_taken[i];
        for (unsigned k = 0; k < i && !is_done; k++)
            is_done = thread_of_place(j, k) == inner;
        pid_t tid = is_done ? 0 : find_thread(j, inner);
        if (tid)
            free_places_of(j, tid, inner);
        else if (!is_done)
            j->places.is_taken[i] = false;
    }
}

/* One round over all threads, idle ones first. */
static int try_all_threads(struct inject_job *j, struct tmk_error *err)
{
    pid_t tids[MAX_THREADS];
    struct tmk_thread_place moment;
    size_t n = tmk_subject_threads(j->image.pid, tids, MAX_THREADS);
    for (unsigned wanted = RANK_IDLE; wanted < RANK_NOT_NOW; wanted++) {
        for (size_t i = 0; i < n; i++) {
            if (thread_rank_of(j, tids[i], &moment) != wanted)
                continue;
            int rc = try_thread(j, tids[i], &moment, err);
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

static bool has_process_ended(pid_t pid)
{
    char state;
    pid_t inner;
    return !tmk_subject_read_thread(pid, &state, &inner) || strchr("ZX", state);
}

static int start_helper(struct inject_job *j, struct tmk_error *err)
{
    for (;;) {
        free_places(j);
        int rc = try_all_threads(j, err);
        if (rc == 0 && has_process_ended(j->image.pid))
            return tmk_fail(err, TMK_ENOENT, "process %d has ended meanwhile", (int)j->image.pid);
        if (rc != 0)
            return rc < 0 ? rc : 0;
        if (j->out.n_held == 0 && j->os_error)
            return tmk_subject_explain(j->in->subject, j->in->asker, j->os_error, err);
        if (tmk_clock_monotonic_ns() >= j->deadline_ns)
            return tmk_fail(err, TMK_EBUSY,
                            "no thread of process %d came to a point where one can be started "
                            "(all are in malloc, the loader or uninterruptible); try again, or "
                            "with a longer --timeout",
                            (int)j->image.pid);
        pause_ns(PAUSE_NS);
    }
}

/* ---- wait ---- */

static bool put_stub_word(const struct inject_job *j, size_t offset, uint32_t value)
{
    return tmk_image_write(&j->image, stub_word_at(j, offset), &value, sizeof value);
}

static int report_not_loaded(struct inject_job *j, struct tmk_error *err)
{
    char reason[160] = "the loader gave no reason";
    if (j->block.error_text)
        tmk_image_read_text(&j->image, j->block.error_text, reason, sizeof reason);
    return tmk_fail(err, TMK_EINVAL, "process %d could not load the library: %s", (int)j->image.pid,
                    reason);
}

static int report_timeout(struct inject_job *j, struct tmk_error *err)
{
    put_stub_word(j, offsetof(struct tmk_stub_block, is_given_up), 1);
    put_stub_word(j, offsetof(struct tmk_stub_block, is_read), 1);
    bool calling = j->block.state == TMK_STUB_CALLING;
    return tmk_fail(err, TMK_EBUSY,
                    calling ? "libtidemark.so is loaded into process %d but has not started yet; "
                              "it may still do so. Look again, or give a longer --timeout"
                            : "process %d is still busy loading (another thread of it may be in a "
                              "long import); it is left alone. Try again, with a longer --timeout",
                    (int)j->image.pid);
}

static int wait_for_helper(struct inject_job *j, struct tmk_error *err)
{
    if (j->borrowed.is_restored)
        put_stub_word(j, offsetof(struct tmk_stub_block, is_returned), 1);
    do {
        if (!tmk_image_read(&j->image, j->region + PART_BYTES, &j->block, sizeof j->block))
            return tmk_fail(err, TMK_ENOENT, "process %d has ended meanwhile", (int)j->image.pid);
        if (j->block.state >= TMK_STUB_DONE)
            break;
        pause_ns(PAUSE_NS / 4);
    } while (tmk_clock_monotonic_ns() < j->deadline_ns);
    int rc = 0;
    if (j->block.state < TMK_STUB_DONE)
        return report_timeout(j, err);
    if (j->block.state == TMK_STUB_NOT_LOADED)
        rc = report_not_loaded(j, err);
    j->out.result = j->block.result;
    tmk_image_read_text(&j->image, j->block.message, j->out.message, sizeof j->out.message);
    put_stub_word(j, offsetof(struct tmk_stub_block, is_read), 1);
    return rc;
}

/* Be the only tidemark that works on this process until *ret_fd is closed. Where the file system
 * has no locks, do without. */
static int lock_target(const struct inject_job *j, int *ret_fd, struct tmk_error *err)
{
    char path[64];
    int pid = (int)j->in->subject->pid;
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    while (*ret_fd >= 0 && flock(*ret_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        if (tmk_clock_monotonic_ns() >= j->deadline_ns)
            return tmk_fail(err, TMK_EBUSY,
                            "another tidemark is attaching to process %d; try again later", pid);
        pause_ns(PAUSE_NS);
    }
    return 0;
}

/* Do all steps; the result is in j->out. */
static int inject_library(struct inject_job *j, struct tmk_error *err)
{
    int rc = open_image(j->in->subject, j->in->asker, &j->image, err);
    if (rc < 0)
        return rc;
    rc = look_at_libraries(j, err);
    if (rc == 0)
        rc = start_helper(j, err);
    if (rc == 0)
        rc = wait_for_helper(j, err);
    tmk_image_close(&j->image);
    return rc;
}

int tmk_inject(const struct tmk_injection *in, struct tmk_injected *ret, struct tmk_error *err)
{
    uint64_t start_ns = tmk_clock_monotonic_ns();
    if (strlen(in->library) >= PATH_MAX || strlen(in->options) >= OPTIONS_BYTES)
        return tmk_fail(err, TMK_EINVAL, "the path of the library or the options are too long");
    struct inject_job *j = calloc(1, sizeof *j);
    if (!j)
        return tmk_fail(err, TMK_ENOMEM, "%s", tmk_result_text(TMK_ENOMEM));
    j->in = in;
    j->deadline_ns = start_ns + in->timeout_ns;
    j->patient_until_ns = start_ns + in->timeout_ns / 4;
    int lock_fd = -1;
    int rc = lock_target(j, &lock_fd, err);
    if (rc == 0)
        rc = inject_library(j, err);
    if (rc == 0) {
        j->out.total_ns = tmk_clock_monotonic_ns() - start_ns;
        *ret = j->out;
    }
    if (lock_fd >= 0)
        close(lock_fd);
    free(j);
    return rc;
}

/* ---- presence ---- */

static void copy_path(char *to, size_t size, const struct tmk_mapping *m)
{
    snprintf(to, size, "%s", m ? m->path : "");
    char *deleted = strstr(to, " (deleted)");
    if (deleted)
        *deleted = '\0';
}

/* Find the process's own ring, named tidemark.USER.PID.*.ring: a child has its parent's ring mapped
 * too, but records into its own. A deleted ring belongs to a recording that has ended. */
static const struct tmk_mapping *find_ring(const struct tmk_image *image, pid_t inner_pid)
{
    for (uint64_t i = 0; i < image->n; i++) {
        const char *name = tmk_path_name(image->mappings[i].path);
        size_t n = strlen(name);
        if (strncmp(name, "tidemark.", 9) != 0 || strcmp(name + n - 5, ".ring") != 0)
            continue;
        const char *dot = strchr(name + 9, '.');
        if (dot && strtol(dot + 1, NULL, 10) == inner_pid)
            return &image->mappings[i];
    }
    return NULL;
}

int tmk_presence_read(const struct tmk_subject *subject, const struct tmk_asker *asker,
                      struct tmk_presence *ret, struct tmk_error *err)
{
    struct tmk_image image;
    int rc = open_image(subject, asker, &image, err);
    if (rc < 0)
        return rc;
    copy_path(ret->library, sizeof ret->library, tmk_image_find(&image, is_tidemark_library));
    copy_path(ret->ring, sizeof ret->ring, find_ring(&image, subject->inner_pid));
    ret->has_python = tmk_image_find(&image, is_python) != NULL;
    ret->has_torch = tmk_image_find(&image, is_torch_library) != NULL;
    tmk_image_close(&image);
    return 0;
}
