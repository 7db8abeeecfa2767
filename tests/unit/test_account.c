/* SPDX-License-Identifier: MIT */
/* test_account.c - what the processes of a run may take together, and locks of open files, with and
 * without the kernel's help: F_OFD_SETLK can be made to fail as gVisor has it, and a mapping to be
 * of another open file, as on an overlay. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "trace/account.h"
#include "trace/layout.h"
#include "trace/ring.h"
#include "trace/ring_file.h"
#include "trace_kit.h"

static bool has_no_file_locks;

int fcntl(int fd, int command, ...);

int fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (has_no_file_locks && (command == F_OFD_SETLK || command == F_OFD_GETLK)) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

static bool is_overlay;

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    char link[64];
    int other = -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (is_overlay && fd >= 0 && (flags & MAP_SHARED))
        other = open(link, O_RDWR);
    long base = syscall(SYS_mmap, at, n, protection, flags, other < 0 ? fd : other, offset);
    if (other >= 0)
        close(other);
    return (void *)base;
}

static char run[256];

static struct tmk_account open_one(void)
{
    struct tmk_account a = {0};
    const char *folders[] = {NULL, "", "/dev/shm"};
    assert_int_equal(tmk_account_open(&a, folders, 3, run, NULL), 0);
    return a;
}

static bool exists(const struct tmk_account *a)
{
    char path[4000];
    snprintf(path, sizeof path, "%s/%s", a->folder, a->name);
    return access(path, F_OK) == 0;
}

static int make_run(void **unused)
{
    (void)unused;
    has_no_file_locks = is_overlay = false;
    snprintf(run, sizeof run, "%s", kit_folder_make());
    return 0;
}

static int remove_run(void **unused)
{
    (void)unused;
    kit_folder_remove(run);
    return 0;
}

/* ---- the file ---- */

static void check_shared(void)
{
    struct tmk_account one = open_one(), two = open_one();
    assert_true(tmk_account_is_name(one.name));
    assert_string_equal(one.name, two.name);
    assert_ptr_not_equal(one.page, two.page);
    assert_true(tmk_account_take_memory(&one, 0, 1000));
    assert_int_equal(two.page->memory_used, 1000); /* one page, mapped twice */
    assert_int_equal(two.page->n_rings, 1);
    tmk_account_close(&one);
    assert_true(exists(&two));
    tmk_account_close(&two);
    assert_false(exists(&two)); /* the last one removes it */
    tmk_account_close(&two);
}

static void test_shared(void **unused)
{
    (void)unused;
    check_shared();
    has_no_file_locks = true;
    check_shared();
}

/* Killed with the account open: whoever comes next begins a new count. */
static void check_abandoned(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct tmk_account a = open_one();
        _exit(tmk_account_take_memory(&a, 0, 5000) && exists(&a) ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    struct tmk_account a = open_one();
    assert_int_equal(a.page->memory_used, 0);
    int folder = open(a.folder, O_PATH | O_DIRECTORY);
    assert_false(tmk_account_is_idle(folder, a.name));
    assert_false(tmk_account_remove_idle(folder, a.name));
    assert_true(exists(&a));
    munmap(a.page, sizeof *a.page); /* as a SIGKILL would */
    assert_true(tmk_account_is_idle(folder, a.name));
    assert_true(tmk_account_remove_idle(folder, a.name));
    assert_false(exists(&a));
    close(folder);
}

static void test_abandoned(void **unused)
{
    (void)unused;
    check_abandoned();
    has_no_file_locks = true;
    check_abandoned();
}

/* No tmpfs is named: it lies in the run folder, and there is no memory for rings. */
static void test_without_tmpfs(void **unused)
{
    (void)unused;
    struct tmk_account a = {0};
    const char *folders[] = {"/proc", NULL};
    assert_int_equal(tmk_account_open(&a, folders, 2, run, NULL), 0);
    assert_false(a.on_tmpfs);
    assert_string_equal(a.folder, run);
    tmk_account_close(&a);
    assert_false(exists(&a));
    struct tmk_error err = {0};
    assert_int_equal(tmk_account_open(&a, folders, 2, "/proc/no/such", &err), TMK_EIO);
}

/* ---- mappings that keep no lock ---- */

static bool is_idle(const struct tmk_account *a)
{
    int folder = open(a->folder, O_PATH | O_DIRECTORY);
    bool idle = tmk_account_is_idle(folder, a->name);
    close(folder);
    return idle;
}

static void test_account_on_overlay(void **unused)
{
    (void)unused;
    struct tmk_account a = {0};
    is_overlay = true;
    for (int leaves = 0; leaves < 2; leaves++) {
        assert_int_equal(tmk_account_open(&a, NULL, 0, run, NULL), 0);
        assert_false(is_idle(&a));
        if (leaves)
            tmk_account_leave_unlocked(&a);
        assert_int_equal(is_idle(&a), leaves);
        assert_true(tmk_account_count_refusal(&a, TMK_STOP_BUDGET));
        tmk_account_close(&a);
        assert_false(exists(&a));
    }
}

static void check_ring_on_overlay(void)
{
    static const uint8_t id[16] = "overlay overlay";
    struct tmk_ring ring;
    char path[300];
    snprintf(path, sizeof path, "%s/a.ring", run);
    for (int way = 0; way < 3; way++) {
        is_overlay = way > 0;
        assert_int_equal(tmk_ring_create(&ring, path, 2, 2, id, "/the/trace", NULL), 0);
        assert_int_equal(ring.has_lock_fd, is_overlay);
        assert_int_equal(tmk_ring_file_is_held_at(path), 1);
        assert_int_equal(tmk_ring_file_is_held_at(path), 1);
        if (way == 2)
            assert_true(tmk_ring_abandon(&ring));
        else
            tmk_ring_close(&ring);
        assert_int_equal(tmk_ring_file_is_held_at(path), 0);
        unlink(path);
    }
}

static void test_ring_on_overlay(void **unused)
{
    (void)unused;
    check_ring_on_overlay();
    has_no_file_locks = true;
    check_ring_on_overlay();
}

/* ---- counting ---- */

static void test_memory(void **unused)
{
    (void)unused;
    struct tmk_account a = open_one();
    assert_true(a.page->memory_limit > 0 && a.page->memory_limit <= 256u << 20);
    a.page->memory_limit = 1000;
    assert_true(tmk_account_take_memory(&a, 0, 500));
    assert_false(tmk_account_take_memory(&a, 500, 1)); /* no ring has more than half */
    assert_true(tmk_account_take_memory(&a, 0, 400));
    assert_false(tmk_account_take_memory(&a, 0, 101));
    assert_true(tmk_account_take_memory(&a, 400, 100));
    assert_int_equal(a.page->memory_used, 1000);
    tmk_account_give_memory(&a, 700);
    assert_int_equal(a.page->memory_used, 300);
    tmk_account_give_memory(&a, 700); /* never below nothing */
    assert_int_equal(a.page->memory_used, 0);
    tmk_account_close(&a);
    assert_false(tmk_account_take_memory(&a, 0, 1)); /* not open */
}

static void test_sweeps(void **unused)
{
    (void)unused;
    struct tmk_account one = open_one(), two = open_one();
    assert_true(tmk_account_may_sweep(&one, 1000000000));
    assert_false(tmk_account_may_sweep(&one, 1000000000)); /* once a second, */
    assert_false(tmk_account_may_sweep(&two, 1000000000)); /* whoever it is */
    assert_true(tmk_account_may_sweep(&two, 0));
    tmk_account_close(&one);
    tmk_account_close(&two);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_run, remove_run)
    const struct CMUnitTest tests[] = {
        TEST(test_shared),          TEST(test_abandoned),
        TEST(test_without_tmpfs),   TEST(test_account_on_overlay),
        TEST(test_ring_on_overlay), TEST(test_memory),
        TEST(test_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
