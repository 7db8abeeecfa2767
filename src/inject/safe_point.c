/* SPDX-License-Identifier: MIT */
/* inject/safe_point.c - see safe_point.h. */
#include "inject/safe_point.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "inject/arch.h"

enum {
    NEAR_BYTES = 8192,     /* of stack, more than malloc's deepest call (which counts processors) */
    LOCK_BYTES = 256,      /* waiting for a lock: the caller is near */
    WAIT_BYTES = 1024,     /* the same in a stranger's allocator */
    HANDLER_BYTES = 65536, /* of stack searched for handlers */
    MAX_HANDLERS = 4,
    MAX_ALLOCATOR_BYTES =
        256 * 1024, /* of malloc.o; if there are more, the symbols mean something else */
};

/* ---- calls ---- */

/* Calls in which malloc, the loader and thread functions never wait. */
static const long plain_waits[] = {
    SYS_nanosleep, SYS_clock_nanosleep, SYS_ppoll,
    SYS_pselect6,  SYS_epoll_pwait,     SYS_recvfrom,
    SYS_recvmsg,   SYS_accept,          SYS_accept4,
    SYS_wait4,     SYS_waitid,          SYS_rt_sigsuspend,
    SYS_semop,     SYS_rt_sigtimedwait, SYS_semtimedop,
    SYS_sendto,    SYS_sendmsg,         SYS_connect,
    SYS_ioctl,     SYS_flock,           SYS_recvmmsg,
    SYS_msgrcv,    SYS_io_getevents,    441, /* epoll_pwait2 */
    426,                                     /* io_uring_enter */
#ifdef SYS_poll
    SYS_poll,      SYS_select,          SYS_epoll_wait,
    SYS_pause,
#endif
};

/* Calls in which the program does not notice a stop, because the kernel or tmk_general_rewind()
 * restarts them. */
static const long restarted[] = {
    SYS_futex,
    SYS_read,
    SYS_readv,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_ppoll,
    SYS_pselect6,
    SYS_wait4,
    SYS_waitid,
    SYS_rt_sigsuspend,
    SYS_flock,
#ifdef __x86_64__
    SYS_poll,
    SYS_select,
    SYS_pause,
    SYS_epoll_wait,
    SYS_epoll_pwait,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_accept,
    SYS_accept4,
    SYS_semop,
    SYS_semtimedop,
    SYS_rt_sigtimedwait,
    441,
#endif
};

static bool is_among_calls(const long *calls, size_t n, long call)
{
    for (size_t i = 0; i < n; i++)
        if (calls[i] == call)
            return true;
    return false;
}

bool tmk_call_restarts(long call)
{
    return is_among_calls(restarted, TMK_N(restarted), call);
}

/* Whether the thread reads or writes a pipe or a terminal: malloc and the loader only read
 * files. */
static bool is_stream_call(const struct tmk_safety *s, const struct tmk_thread_place *m)
{
    char path[64];
    struct stat st;
    if (m->call != SYS_read && m->call != SYS_readv && m->call != SYS_write &&
        m->call != SYS_writev)
        return false;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)s->image->pid, (int)m->argument);
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

bool tmk_thread_place_read(pid_t pid, pid_t tid, struct tmk_thread_place *ret)
{
    char path[64], text[256], *at = text;
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    if (n <= 0 || strncmp(text, "running", 7) == 0)
        return false;
    struct tmk_thread_place m = {.call = strtol(at, &at, 10)};
    for (int i = 0; i < 6 && m.call >= 0; i++) {
        uint64_t argument = strtoull(at, &at, 16);
        m.argument = i == 0 ? argument : m.argument;
    }
    m.sp = strtoull(at, &at, 16);
    m.pc = strtoull(at, &at, 16);
    *ret = m;
    return m.pc != 0;
}

/* ---- where the thread is ---- */

static bool is_in_ranges(const struct tmk_range *ranges, unsigned n, uint64_t address)
{
    for (unsigned i = 0; i < n; i++)
        if (address >= ranges[i].start && address < ranges[i].end)
            return true;
    return false;
}

static bool is_return_to_unsafe(const struct tmk_safety *s, uint64_t word)
{
    uint8_t before[TMK_CALL_BYTES];
    return is_in_ranges(s->unsafe, s->n_unsafe, word) &&
           tmk_image_read(s->image, word - sizeof before, before, sizeof before) &&
           tmk_code_ends_in_call(before + sizeof before);
}

static bool stack_is_clean(const struct tmk_safety *s, uint64_t sp, size_t n)
{
    uint64_t words[NEAR_BYTES / 8];
    size_t got = tmk_image_read_some(s->image, sp & ~(uint64_t)7, words, n);
    for (size_t i = 0; i < got / 8; i++)
        if (is_return_to_unsafe(s, words[i]))
            return false;
    return got > 0;
}

/* How much of the stack to look at if the thread is in watched code. */
static size_t bytes_to_look_at(const struct tmk_safety *s, const struct tmk_thread_place *m)
{
    if (is_among_calls(plain_waits, TMK_N(plain_waits), m->call) || is_stream_call(s, m))
        return s->own_allocator ? WAIT_BYTES : 0;
    if (m->call == SYS_futex)
        return s->own_allocator ? WAIT_BYTES : LOCK_BYTES;
    return NEAR_BYTES;
}

static bool code_is_safe(const struct tmk_safety *s, const struct tmk_thread_place *m)
{
    if (is_in_ranges(s->unsafe, s->n_unsafe, m->pc))
        return false;
    if (!is_in_ranges(s->watched, s->n_watched, m->pc))
        return true;
    size_t n = bytes_to_look_at(s, m);
    return n == 0 || stack_is_clean(s, m->sp, n);
}

/* Whether the code that the signal handlers on this stack interrupted is safe. */
static bool handlers_are_safe(const struct tmk_safety *s, uint64_t sp)
{
    static uint8_t
        stack[HANDLER_BYTES]; /* only one of our threads looks, at one thread at a time */
    uint64_t start = sp & ~(uint64_t)7, word;
    size_t got = s->sigreturn ? tmk_image_read_some(s->image, start, stack, sizeof stack) : 0;
    int n_found = 0;
    for (size_t i = 0; i + 8 <= got; i += 8) {
        struct tmk_thread_place m = {.call = -1};
        memcpy(&word, stack + i, sizeof word);
        if (word != s->sigreturn)
            continue;
        if (++n_found > MAX_HANDLERS || !tmk_sigframe_interrupted(stack + i, got - i, &m.pc, &m.sp))
            return false;
        if (m.sp > start + i && !code_is_safe(s, &m))
            return false;
    }
    return true;
}

bool tmk_safety_of(const struct tmk_safety *s, const struct tmk_thread_place *m)
{
    return code_is_safe(s, m) && handlers_are_safe(s, m->sp);
}

/* ---- learning ---- */

static void add_code_range(struct tmk_range *ranges, unsigned *n, unsigned max,
                           struct tmk_range range)
{
    if (*n < max)
        ranges[(*n)++] = range;
}

static void add_unsafe(struct tmk_safety *s, struct tmk_range range)
{
    add_code_range(s->unsafe, &s->n_unsafe, TMK_MAX_UNSAFE, range);
}

/* Add the code of a file, as unsafe or as watched. */
static void add_file(struct tmk_safety *s, const struct tmk_mapping *file, bool is_unsafe)
{
    for (uint64_t i = 0; i < s->image->n; i++) {
        const struct tmk_mapping *m = &s->image->mappings[i];
        struct tmk_range range = {m->start, m->end};
        if (!m->is_code || !tmk_mapping_same_file(m, file))
            continue;
        if (is_unsafe)
            add_unsafe(s, range);
        else
            add_code_range(s->watched, &s->n_watched, TMK_MAX_WATCHED, range);
    }
}

static const char *const allocator_names[] = {
    "malloc",
    "calloc",
    "free",
    "realloc",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "malloc_trim",
    "malloc_usable_size",
    "malloc_info",
    "__default_morecore",
};

static void add_symbols(struct tmk_safety *s, const struct tmk_image_module *m,
                        const char *const *names, size_t n)
{
    struct tmk_range range;
    for (size_t i = 0; i < n; i++)
        if (tmk_module_symbol(s->image, m, names[i], &range))
            add_unsafe(s, range);
}

/* Add malloc.o of the C library: from its first exported function to its last, with the functions
 * before and between them that are not exported. */
static int add_libc_allocator(struct tmk_safety *s, const struct tmk_image_module *libc,
                              struct tmk_error *err)
{
    struct tmk_range all = {UINT64_MAX, 0}, range;
    for (size_t i = 0; i < TMK_N(allocator_names); i++) {
        if (!tmk_module_symbol(s->image, libc, allocator_names[i], &range))
            continue;
        all.start = range.start < all.start ? range.start : all.start;
        all.end = range.end > all.end ? range.end : all.end;
    }
    if (all.end == 0 || all.end - all.start > MAX_ALLOCATOR_BYTES ||
        tmk_module_widen(s->image, libc, &all) < 0)
        return tmk_fail(err, TMK_EFORMAT,
                        "cannot tell where malloc is in the C library %s; start the program with: "
                        "tidemark run",
                        libc->head->path);
    add_unsafe(s, all);
    return 0;
}

/* Add other allocators, such as jemalloc. A library that defines malloc is unsafe as a whole; in a
 * program that defines it, the allocator's functions are. */
static void add_other_allocators(struct tmk_safety *s, const struct tmk_image_module *libc)
{
    const struct tmk_mapping *program = NULL;
    for (uint64_t i = 0; i < s->image->n; i++) {
        const struct tmk_mapping *m = &s->image->mappings[i];
        struct tmk_image_module module;
        struct tmk_range range;
        if (m->path[0] != '/' || m->file_offset != 0 || tmk_mapping_same_file(m, libc->head))
            continue;
        program = program ? program
                          : m; /* usually the lowest; a library taken for it costs one more look */
        if (tmk_module_init(s->image, m, &module) < 0 ||
            !tmk_module_symbol(s->image, &module, "malloc", &range))
            continue;
        if (tmk_mapping_same_file(m, program))
            add_symbols(s, &module, allocator_names, TMK_N(allocator_names));
        else
            add_file(s, m, true);
        add_file(s, program, false);
        s->own_allocator = true;
    }
}

/* Find the instructions to which a signal handler returns. */
static void find_sigreturn(struct tmk_safety *s, const struct tmk_mapping *libc)
{
    for (uint64_t i = 0; i < s->image->n && !s->sigreturn; i++) {
        const struct tmk_mapping *m = &s->image->mappings[i];
        bool is_wanted =
            tmk_sigreturn_in_libc ? tmk_mapping_same_file(m, libc) : strcmp(m->path, "[vdso]") == 0;
        if (!m->is_code || !is_wanted)
            continue;
        uint8_t *code = malloc(m->end - m->start);
        size_t got = code ? tmk_image_read_some(s->image, m->start, code, m->end - m->start) : 0;
        ssize_t at = code ? tmk_code_find_sigreturn(code, got) : -1;
        s->sigreturn = at >= 0 ? m->start + (uint64_t)at : 0;
        free(code);
    }
}

static bool is_unwinder(const char *name)
{
    return strncmp(name, "libgcc_s", 8) == 0;
}

int tmk_safety_init(struct tmk_safety *ret, const struct tmk_image *image,
                    const struct tmk_image_module *libc, const struct tmk_image_module *threads,
                    const struct tmk_mapping *loader, struct tmk_error *err)
{
    static const char *const thread_names[] = {"pthread_create"};
    static const char *const fork_names[] = {"fork", "_Fork", "vfork", "posix_spawn"};
    struct tmk_safety s = {.image = image};
    int rc = add_libc_allocator(&s, libc, err);
    if (rc < 0)
        return rc;
    add_symbols(&s, threads, thread_names, 1);
    add_symbols(&s, libc, fork_names, 4);
    if (loader)
        add_file(&s, loader, true);
    add_file(&s, libc->head, false);
    if (threads->head != libc->head)
        add_file(&s, threads->head, false);
    const struct tmk_mapping *unwinder = tmk_image_find(image, is_unwinder);
    if (unwinder)
        add_file(&s, unwinder, false);
    add_other_allocators(&s, libc);
    find_sigreturn(&s, libc->head);
    *ret = s;
    return 0;
}
