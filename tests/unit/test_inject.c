/* SPDX-License-Identifier: MIT */
/* inject: why not to attach, symbols in a process's memory (our own), and safe points. What stops
 * and changes a real process is tested in tests/attach. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "inject/arch.h"
#include "inject/image.h"
#include "inject/return_path.h"
#include "inject/safe_point.h"
#include "inject/subject.h"

/* ---- refusals ---- */

static struct tmk_subject ordinary(void)
{
    return (struct tmk_subject){
        .pid = 100,
        .process = 100,
        .inner_pid = 100,
        .uid = 1000,
        .state = 'S',
        .is_elf64 = true,
        .machine = tmk_arch_machine,
    };
}

static const struct tmk_asker somebody = {.pid = 5, .uid = 1000};
static const struct tmk_asker root = {.pid = 5, .may_trace = true};

static void refuses(const struct tmk_subject *s, const struct tmk_asker *us, const char *wanted)
{
    struct tmk_error err = {0};
    assert_int_equal(tmk_subject_check(s, us, &err), TMK_EINVAL);
    assert_string_equal(err.text, wanted);
}

static void test_ordinary_is_fine(void **state)
{
    struct tmk_subject s = ordinary();
    (void)state;
    assert_int_equal(tmk_subject_check(&s, &somebody, NULL), 0);
    assert_int_equal(tmk_subject_check(&s, &root, NULL), 0);
}

static void test_refuses_kinds(void **state)
{
    (void)state;
    struct tmk_subject s = ordinary();
    s.process = 99;
    refuses(&s, &root, "100 is a thread of process 99; try: tidemark attach 99");
    s = ordinary();
    s.is_kernel = true;
    refuses(&s, &root, "process 100 is part of the kernel, not a program");
    s = ordinary();
    s.machine = 3;
    s.is_elf64 = false;
#if defined(__x86_64__)
    refuses(&s, &root,
            "process 100 runs a program for 32-bit x86, this tidemark is for x86-64; use the "
            "tidemark built for that");
#endif
    s = ordinary();
    s.state = 'T';
    refuses(&s, &root, "process 100 is stopped and cannot load anything; first: kill -CONT 100");
}

static void test_refuses_owners(void **state)
{
    struct tmk_subject s = ordinary();
    const struct tmk_asker weak_root = {.pid = 5};
    (void)state;
    s.uid = 7;
    refuses(&s, &somebody,
            "process 100 belongs to another user (7, you are 1000); run tidemark as that user, or "
            "with sudo");
    refuses(
        &s, &weak_root,
        "process 100 belongs to user 7 and root lacks CAP_SYS_PTRACE here; in a container start "
        "that with --cap-add=SYS_PTRACE");
    s = ordinary();
    s.mixed_uid = true; /* set-user-ID */
    assert_int_equal(tmk_subject_check(&s, &somebody, NULL), TMK_EINVAL);
    assert_int_equal(tmk_subject_check(&s, &root, NULL), 0);
}

static void test_refuses_yama(void **state)
{
    struct tmk_subject s = ordinary();
    struct tmk_asker us = somebody, strong = root;
    struct tmk_error err = {0};
    (void)state;
    us.ptrace_scope = strong.ptrace_scope = 3;
    const char *never = "this machine forbids attaching until it is started again "
                        "(kernel.yama.ptrace_scope is 3); start the program with: tidemark run";
    refuses(&s, &us, never);
    refuses(&s, &strong, never);
    us.ptrace_scope = strong.ptrace_scope = 2;
    refuses(&s, &us,
            "this machine lets only root attach (kernel.yama.ptrace_scope is 2); try: sudo "
            "tidemark attach 100");
    assert_int_equal(tmk_subject_check(&s, &strong, NULL), 0);
    us.ptrace_scope = 1; /* it may have allowed us: only the kernel knows */
    assert_int_equal(tmk_subject_check(&s, &us, NULL), 0);
    assert_int_equal(tmk_subject_explain(&s, &us, EPERM, &err), TMK_EINVAL);
    assert_string_equal(err.text, "this machine lets a process be attached to by its parents only "
                                  "(kernel.yama.ptrace_scope is 1); try: sudo tidemark attach 100, "
                                  "or: sudo sysctl kernel.yama.ptrace_scope=0");
}

static void test_explains(void **state)
{
    struct tmk_subject s = ordinary();
    struct tmk_error err = {0};
    (void)state;
    tmk_subject_explain(&s, &somebody, ESRCH, &err);
    assert_string_equal(err.text, "process 100 has ended meanwhile");
    tmk_subject_explain(&s, &somebody, ENOSYS, &err);
    assert_string_equal(err.text,
                        "ptrace() is forbidden here, by a seccomp filter around this tidemark; run "
                        "it outside of the container (docker: --cap-add=SYS_PTRACE)");
    tmk_subject_explain(&s, &root, EPERM, &err);
    assert_string_equal(err.text,
                        "the kernel forbids attaching to process 100, even to root: a security "
                        "module, a seccomp filter or another user namespace; see dmesg");
    assert_int_equal(tmk_subject_explain(&s, &root, EIO, &err), TMK_EIO);
    assert_string_equal(err.text, "cannot attach to process 100: input/output error");
}

static void test_reads_itself(void **state)
{
    struct tmk_subject s;
    (void)state;
    assert_int_equal(tmk_subject_read(getpid(), &s, NULL), 0);
    assert_int_equal(s.process, getpid());
    assert_int_equal(s.uid, getuid());
    assert_int_equal(s.machine, tmk_arch_machine);
    assert_true(s.is_elf64 && s.same_root && !s.is_kernel && !s.mixed_uid && s.tracer == 0);
    assert_string_equal(s.name, "test_inject");
    assert_int_equal(tmk_subject_read(-1, &s, NULL), TMK_ENOENT);
}

/* ---- memory ---- */

static bool is_libc(const char *name)
{
    return strncmp(name, "libc.so.6", 9) == 0;
}

static bool is_loader(const char *name)
{
    return strncmp(name, "ld-linux", 8) == 0;
}

struct fixture {
    struct tmk_image image;
    struct tmk_image_module libc;
    struct tmk_safety safety;
};

static int open_ourselves(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (!f || tmk_image_open(getpid(), &f->image, NULL) < 0)
        return -1;
    const struct tmk_mapping *head = tmk_image_find(&f->image, is_libc);
    if (!head || tmk_module_init(&f->image, head, &f->libc) < 0)
        return -1;
    return tmk_safety_init(&f->safety, &f->image, &f->libc, &f->libc,
                           tmk_image_find(&f->image, is_loader), NULL);
}

static int close_ourselves(void **state)
{
    struct fixture *f = *state;
    tmk_image_close(&f->image);
    free(f);
    return 0;
}

static void test_symbols(void **state)
{
    struct fixture *f = *state;
    struct tmk_range range, wide;
    assert_true(tmk_module_symbol(&f->image, &f->libc, "getppid", &range));
    assert_int_equal(range.start, (uintptr_t)getppid);
    assert_true(range.end > range.start && range.end < range.start + 256);
    assert_false(tmk_module_symbol(&f->image, &f->libc, "no_such_function", &range));
    assert_false(tmk_module_symbol(&f->image, &f->libc, "environ", &range)); /* not a function */
    assert_true(tmk_module_symbol(&f->image, &f->libc, "getppid", &range));
    wide = range;
    assert_int_equal(tmk_module_widen(&f->image, &f->libc, &wide), 0);
    assert_true(wide.start <= range.start && wide.end >= range.end);
    assert_true(wide.end - wide.start < 4096);
}

static void test_mapping_at(void **state)
{
    struct fixture *f = *state;
    const struct tmk_mapping *m = tmk_image_at(&f->image, (uintptr_t)getppid);
    assert_non_null(m);
    assert_true(m->is_code && strstr(m->path, "libc.so.6"));
    assert_null(tmk_image_at(&f->image, 1));
    assert_null(tmk_image_at(&f->image, UINT64_MAX));
}

/* ---- safe points ---- */

/* A stack of zeros but for a word or two; as long as the farthest look. */
static uint64_t stack[65536 / 8];

static bool is_safe(const struct fixture *f, uint64_t pc, long call)
{
    struct tmk_thread_place m = {.pc = pc, .sp = (uintptr_t)stack, .call = call};
    return tmk_safety_of(&f->safety, &m);
}

/* The address behind the first call in a function of the C library. */
static uint64_t return_into(const struct fixture *f, const char *name)
{
    struct tmk_range range;
    uint8_t before[TMK_CALL_BYTES];
    assert_true(tmk_module_symbol(&f->image, &f->libc, name, &range));
    for (uint64_t at = range.start + 8; at < range.end; at++)
        if (tmk_image_read(&f->image, at - 8, before, 8) && tmk_code_ends_in_call(before + 8))
            return at;
    fail_msg("%s calls nothing", name);
    return 0;
}

static void test_unsafe_code(void **state)
{
    struct fixture *f = *state;
    struct tmk_range range;
    static const char *const names[] = {"malloc", "free", "calloc", "pthread_create", "fork"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(tmk_module_symbol(&f->image, &f->libc, names[i], &range));
        assert_false(is_safe(f, range.start, -1));
        assert_false(is_safe(f, range.end - 1, -1));
    }
    const struct tmk_mapping *loader = tmk_image_find(&f->image, is_loader);
    while (!loader->is_code)
        loader++;
    assert_false(is_safe(f, loader->start, -1));
    assert_true(is_safe(f, (uintptr_t)test_unsafe_code, -1));
    assert_true(is_safe(f, (uintptr_t)getppid, -1));
}

static void test_unsafe_callers(void **state)
{
    struct fixture *f = *state;
    uint64_t libc = (uintptr_t)getppid, ours = (uintptr_t)test_unsafe_callers;
    stack[200] = return_into(f, "malloc");
    assert_false(is_safe(f, libc, -1)); /* memcpy, say, called by malloc */
    /* malloc does not call us, unless somebody (a sanitizer) has replaced it */
    assert_int_equal(is_safe(f, ours, -1), !f->safety.own_allocator);
    assert_true(is_safe(f, libc, SYS_nanosleep)); /* nor does it sleep */
    assert_true(is_safe(f, libc, SYS_futex));     /* too far away for who waits for the lock */
    stack[10] = stack[200];
    assert_false(is_safe(f, libc, SYS_futex));
    stack[10] = 0;
    stack[200] = (uintptr_t)malloc; /* a pointer to a function is not a return address */
    assert_true(is_safe(f, libc, -1));
    stack[200] = 0;
    assert_true(is_safe(f, libc, -1));
}

#if defined(__x86_64__)
/* A signal handler of ours, which has interrupted malloc, and one that has not. */
static void test_handlers(void **state)
{
    struct fixture *f = *state;
    struct tmk_range range;
    uint64_t ours = (uintptr_t)test_handlers;
    enum { FRAME = 20, RSP = FRAME + 1 + 5 + 15, RIP = FRAME + 1 + 5 + 16 };
    assert_true(f->safety.sigreturn != 0);
    assert_true(tmk_module_symbol(&f->image, &f->libc, "malloc", &range));
    stack[FRAME] = f->safety.sigreturn;
    stack[RSP] = (uintptr_t)&stack[500];
    stack[RIP] = range.start + 1;
    assert_false(is_safe(f, ours, -1));
    stack[RIP] = ours;
    assert_true(is_safe(f, ours, -1));
    memset(stack, 0, sizeof stack);
}

static void test_call_instructions(void **state)
{
    (void)state;
    assert_true(tmk_code_ends_in_call((const uint8_t *)"\x90\x90\x90\xe8\x01\x02\x03\x04" + 8));
    assert_true(tmk_code_ends_in_call((const uint8_t *)"\x90\x90\x90\x90\x90\x90\xff\xd0" + 8));
    assert_true(tmk_code_ends_in_call((const uint8_t *)"\x90\x90\xff\x15\x00\x00\x00\x00" + 8));
    assert_false(tmk_code_ends_in_call((const uint8_t *)"\x90\x90\x90\x90\x90\x90\x90\x90" + 8));
    assert_false(
        tmk_code_ends_in_call((const uint8_t *)"\x90\x90\x90\x90\x90\x90\xff\xe0" + 8)); /* jmp */
}

static void test_rewind(void **state)
{
    struct user_regs_struct g = {.rip = 0x1002, .rax = (unsigned long long)-EINTR};
    (void)state;
    g.orig_rax = SYS_epoll_wait;
    tmk_general_rewind(&g);
    assert_int_equal(g.rip, 0x1002);
    assert_int_equal(g.rax, (unsigned long long)-514); /* restarted unless a handler runs */
    assert_int_equal(g.orig_rax, SYS_epoll_wait);
    g = (struct user_regs_struct){.rip = 0x1002, .rax = (unsigned long long)-516};
    g.orig_rax = SYS_nanosleep; /* the kernel's business */
    tmk_general_rewind(&g);
    assert_int_equal(g.rax, (unsigned long long)-516);
    g.rax = (unsigned long long)-EINTR;
    g.orig_rax = SYS_connect; /* begun: may not be begun twice */
    tmk_general_rewind(&g);
    assert_int_equal(g.rax, (unsigned long long)-EINTR);
}

/* ---- the return path, taken by ourselves ---- */

/* take_path(entry) comes back once the path has jumped to path_landed, with what was in the
 * registers then in path_found, in the order of struct user_regs_struct's first 15, and rsp and
 * flags. */
void take_path(uint64_t entry);
extern const uint8_t path_landed[];
uint64_t path_found[17], path_kept[7];
__asm__(".pushsection .text\n"
        ".globl take_path, path_landed\n"
        "take_path:\n"
        "    mov %rbx, path_kept(%rip)\n"
        "    mov %rbp, path_kept+8(%rip)\n"
        "    mov %r12, path_kept+16(%rip)\n"
        "    mov %r13, path_kept+24(%rip)\n"
        "    mov %r14, path_kept+32(%rip)\n"
        "    mov %r15, path_kept+40(%rip)\n"
        "    mov %rsp, path_kept+48(%rip)\n"
        "    xor %eax, %eax\n" /* zero flag set, carry clear */
        "    jmp *%rdi\n"
        "    nop\n"
        "    nop\n"
        "path_landed:\n"
        "    mov %r15, path_found(%rip)\n"
        "    mov %r14, path_found+8(%rip)\n"
        "    mov %r13, path_found+16(%rip)\n"
        "    mov %r12, path_found+24(%rip)\n"
        "    mov %rbp, path_found+32(%rip)\n"
        "    mov %rbx, path_found+40(%rip)\n"
        "    mov %r11, path_found+48(%rip)\n"
        "    mov %r10, path_found+56(%rip)\n"
        "    mov %r9, path_found+64(%rip)\n"
        "    mov %r8, path_found+72(%rip)\n"
        "    mov %rax, path_found+80(%rip)\n"
        "    mov %rcx, path_found+88(%rip)\n"
        "    mov %rdx, path_found+96(%rip)\n"
        "    mov %rsi, path_found+104(%rip)\n"
        "    mov %rdi, path_found+112(%rip)\n"
        "    mov %rsp, path_found+120(%rip)\n"
        "    mov path_kept+48(%rip), %rsp\n"
        "    pushfq\n"
        "    pop path_found+128(%rip)\n"
        "    mov path_kept(%rip), %rbx\n"
        "    mov path_kept+8(%rip), %rbp\n"
        "    mov path_kept+16(%rip), %r12\n"
        "    mov path_kept+24(%rip), %r13\n"
        "    mov path_kept+32(%rip), %r14\n"
        "    mov path_kept+40(%rip), %r15\n"
        "    ret\n"
        ".popsection\n");

static int n_handled;

static void on_signal(int number)
{
    (void)number;
    n_handled++;
}

/* A path for registers with the numbers 1001, 1002, ... in them, and `result` in rax, so many bytes
 * `behind` path_landed, on a stack of its own. */
static uint8_t *new_path(struct user_regs_struct *g, int64_t result, long call, unsigned behind)
{
    static uint8_t own_stack[65536];
    static uint64_t scratch[4];
    struct tmk_return_head head = {0};
    uint8_t *path = mmap(NULL, TMK_RETURN_MAX_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(path, MAP_FAILED);
    for (unsigned long long i = 0; i < 15; i++)
        ((unsigned long long *)g)[i] = 1001 + i;
    g->rax = (unsigned long long)result;
    g->orig_rax = (unsigned long long)call;
    g->rip = (uintptr_t)path_landed + behind;
    g->rsp = (uintptr_t)(own_stack + sizeof own_stack - 64);
    memcpy(path, tmk_return, tmk_return_bytes);
    memcpy(path, &head, sizeof head);
    assert_true(tmk_return_fill(path, (uintptr_t)path, (uintptr_t)scratch, g));
    return path;
}

static void assert_landed(const struct user_regs_struct *g, uint64_t rax)
{
    for (int i = 0; i < 15; i++)
        assert_int_equal(path_found[i], i == 10 ? rax : ((const unsigned long long *)g)[i]);
    assert_int_equal(path_found[15], g->rsp);
}

static void test_return_path(void **state)
{
    struct user_regs_struct g = {0};
    (void)state;
    assert_true(tmk_return_bytes <= TMK_RETURN_MAX_BYTES && tmk_return_bytes % 8 == 0);
    uint8_t *path = new_path(&g, 1011, -1, 0);
    take_path((uintptr_t)path + tmk_return_back);
    assert_landed(&g, 1011);
    assert_int_equal(path_found[16] & 0x41, 0x40); /* flags as they were */
    tmk_general_for_return(&g, (uintptr_t)path);
    assert_int_equal(g.rip, (uintptr_t)path + tmk_return_back);
    munmap(path, TMK_RETURN_MAX_BYTES);
}

/* With signals blocked, and one of them there or not: does pause(), broken off, end? */
static void check_call(int64_t result, int number, int flags, uint64_t wanted)
{
    struct user_regs_struct g = {0};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags}, old;
    sigset_t all, before;
    unsigned instruction = wanted == (uint64_t)-EINTR ? 0 : 2; /* a restart goes back to it */
    uint8_t *path = new_path(&g, result, SYS_pause, instruction);
    int n_before = n_handled;
    sigfillset(&all);
    sigaction(SIGUSR1, &action, &old);
    sigprocmask(SIG_SETMASK, &all, &before);
    if (number)
        raise(number);
    take_path((uintptr_t)path + tmk_return_back);
    sigprocmask(SIG_SETMASK, &before, &all);
    sigaction(SIGUSR1, &old, NULL);
    assert_landed(&g, wanted);
    assert_int_equal(n_handled - n_before, number == SIGUSR1);
    assert_false(sigismember(&all, SIGUSR2)); /* the mask is the one of the path */
    struct user_regs_struct at_stop = g;
    tmk_general_for_return(&at_stop, (uintptr_t)path);
    assert_int_equal(at_stop.rip - 2, (uintptr_t)path + sizeof(struct tmk_return_head) + 160);
    assert_int_equal(at_stop.rax, (uint64_t)result);
    munmap(path, TMK_RETURN_MAX_BYTES);
}

static void test_return_path_restarts(void **state)
{
    (void)state;
    check_call(-514, 0, 0, SYS_pause);
    check_call(-514, SIGCHLD, 0, SYS_pause); /* no handler */
    check_call(-514, SIGUSR1, SA_RESTART, (uint64_t)-EINTR);
    check_call(-516, 0, 0, SYS_restart_syscall);
    check_call(-516, SIGUSR1, 0, (uint64_t)-EINTR);
    check_call(-512, SIGUSR1, SA_RESTART, SYS_pause);
    check_call(-512, SIGUSR1, 0, (uint64_t)-EINTR);
}
#endif

static void test_return_places(void **state)
{
    struct fixture *f = *state;
    struct tmk_return_places places;
    struct tmk_range code, data;
    assert_true(tmk_module_tail(&f->image, f->libc.head, &code));
    assert_true(tmk_module_data_tail(&f->image, f->libc.head, &data));
    assert_true(code.end % 4096 == 0 && code.end - code.start < 65536);
    assert_true(data.end % 4096 == 0 && data.end - data.start < 4096);
    assert_true(tmk_image_at(&f->image, code.start)->is_code);
    assert_int_equal(
        tmk_return_places_find(&f->image, (const struct tmk_mapping *[]){NULL}, 0, &places),
        TMK_EINVAL);
    if (code.end - code.start < TMK_RETURN_MAX_BYTES + 16)
        return; /* this C library has no room; others have */
    assert_int_equal(tmk_return_places_find(&f->image, &f->libc.head, 1, &places), 0);
    assert_int_equal(places.n, (code.end - ((code.start + 15) & ~15ull)) / TMK_RETURN_MAX_BYTES);
    assert_false(places.is_taken[0]);
    assert_true(places.at[0] >= code.start && places.at[0] % 16 == 0);
    assert_true(places.scratch == 0 || (places.scratch > data.start && places.scratch < data.end));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_is_fine),
        cmocka_unit_test(test_refuses_kinds),
        cmocka_unit_test(test_refuses_owners),
        cmocka_unit_test(test_refuses_yama),
        cmocka_unit_test(test_explains),
        cmocka_unit_test(test_reads_itself),
        cmocka_unit_test_setup_teardown(test_symbols, open_ourselves, close_ourselves),
        cmocka_unit_test_setup_teardown(test_mapping_at, open_ourselves, close_ourselves),
        cmocka_unit_test_setup_teardown(test_unsafe_code, open_ourselves, close_ourselves),
        cmocka_unit_test_setup_teardown(test_unsafe_callers, open_ourselves, close_ourselves),
#if defined(__x86_64__)
        cmocka_unit_test_setup_teardown(test_handlers, open_ourselves, close_ourselves),
        cmocka_unit_test(test_call_instructions),
        cmocka_unit_test(test_rewind),
        cmocka_unit_test(test_return_path),
        cmocka_unit_test(test_return_path_restarts),
#endif
        cmocka_unit_test_setup_teardown(test_return_places, open_ourselves, close_ourselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
