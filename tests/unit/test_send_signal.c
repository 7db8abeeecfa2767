/* SPDX-License-Identifier: MIT */
/* A signal reaches the process that was meant, and no other that has its number now. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "kit/kernel_files.h"
#include "tui/send_signal.h"

/* A child that waits for ever. */
static pid_t start_child(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    while (pid == 0)
        pause();
    return pid;
}

static int end_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void test_signal_arrives(void **state)
{
    (void)state;
    int status = 0;
    pid_t pid = start_child();
    uint64_t started = tmk_process_start_ticks("/proc", pid);
    assert_int_equal(tmk_send_signal((uint32_t)pid, started, SIGSTOP, NULL), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(tmk_send_signal((uint32_t)pid, started, SIGCONT, NULL), 0);
    assert_int_equal(tmk_send_signal((uint32_t)pid, started, SIGTERM, NULL), 0);
    assert_int_equal(end_of(pid), SIGTERM);
}

/* The number is the same, the process is not. */
static void test_other_process(void **state)
{
    (void)state;
    struct tmk_error err = {0};
    char wanted[100];
    pid_t pid = start_child();
    uint64_t started = tmk_process_start_ticks("/proc", pid);
    assert_int_equal(tmk_send_signal((uint32_t)pid, started - 1, SIGKILL, &err), TMK_EPROCESS);
    snprintf(wanted, sizeof wanted, "process %d has ended; another one has its number now",
             (int)pid);
    assert_string_equal(err.text, wanted);
    kill(pid, SIGTERM); /* what it dies of shows that the other one did not come */
    assert_int_equal(end_of(pid), SIGTERM);
}

static void test_ended_process(void **state)
{
    (void)state;
    struct tmk_error err = {0};
    char wanted[100];
    pid_t pid = start_child();
    uint64_t started = tmk_process_start_ticks("/proc", pid);
    kill(pid, SIGKILL);
    assert_int_equal(end_of(pid), SIGKILL);
    assert_int_equal(tmk_send_signal((uint32_t)pid, started, SIGTERM, &err), TMK_EPROCESS);
    snprintf(wanted, sizeof wanted, "process %d has ended", (int)pid);
    assert_string_equal(err.text, wanted);
}

/* 0 and negative numbers would be groups of processes. */
static void test_no_groups(void **state)
{
    (void)state;
    assert_int_equal(tmk_send_signal(0, 0, SIGTERM, NULL), TMK_EPROCESS);
    assert_int_equal(tmk_send_signal(UINT32_MAX, 0, SIGTERM, NULL), TMK_EPROCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_arrives),
        cmocka_unit_test(test_other_process),
        cmocka_unit_test(test_ended_process),
        cmocka_unit_test(test_no_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
