/* SPDX-License-Identifier: MIT */
/* The host's memory, from a made-up /proc and /sys, and from the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "device/device.h"
#include "device/host.h"
#include "kit/amount.h"
#include "tree_kit.h"

static void assert_limit(const struct tree *t, uint64_t limit, uint64_t used)
{
    struct tmk_host_limit l;
    assert_int_equal(tmk_host_limit_read(&t->roots, &l, NULL), 0);
    assert_int_equal(l.limit_bytes, limit);
    assert_int_equal(l.used_bytes, used);
}

/* ---- limits ---- */

static void test_second_generation(void **state)
{
    const struct tree *t = *state;
    tree_file(t, "0::/a.slice/job\n", "proc/self/cgroup");
    tree_file(t, "max\n", "sys/fs/cgroup/a.slice/job/memory.max");
    assert_limit(t, TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN);
    tree_file(t, "5000\n", "sys/fs/cgroup/a.slice/memory.max");
    tree_file(t, "4000\n", "sys/fs/cgroup/a.slice/memory.current");
    tree_file(t, "anon 1\ninactive_file 1500\nslab_reclaimable 3\n",
              "sys/fs/cgroup/a.slice/memory.stat");
    assert_limit(t, 5000, 2500);
    tree_file(t, "3000\n", "sys/fs/cgroup/a.slice/job/memory.max"); /* the tightest counts */
    assert_limit(t, 3000, TMK_BYTES_UNKNOWN);
    tree_file(t, "70\n", "sys/fs/cgroup/a.slice/job/memory.current");
    assert_limit(t, 3000, 70);
}

/* Both generations are mounted, and memory is with the first. */
static void test_first_generation(void **state)
{
    const struct tree *t = *state;
    tree_file(t, "9:name=systemd:/\n4:memory:/docker/c0ffee\n0::/x\n", "proc/self/cgroup");
    tree_file(t, "7\n", "sys/fs/cgroup/x/memory.max");
    tree_file(t, "9223372036854771712\n",
              "sys/fs/cgroup/memory/docker/c0ffee/memory.limit_in_bytes");
    assert_limit(t, TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN);
    tree_file(t, "9000\n", "sys/fs/cgroup/memory/docker/c0ffee/memory.limit_in_bytes");
    tree_file(t, "600\n", "sys/fs/cgroup/memory/docker/c0ffee/memory.usage_in_bytes");
    tree_file(t, "cache 1\ninactive_file 1\ntotal_inactive_file 100\n",
              "sys/fs/cgroup/memory/docker/c0ffee/memory.stat");
    assert_limit(t, 9000, 500);
}

/* The path is the host's, while the container sees its own group as the root. */
static void test_group_of_a_container(void **state)
{
    const struct tree *t = *state;
    tree_file(t, "4:memory:/docker/c0ffee\n", "proc/self/cgroup");
    tree_file(t, "800\n", "sys/fs/cgroup/memory/memory.limit_in_bytes");
    tree_file(t, "50\n", "sys/fs/cgroup/memory/memory.usage_in_bytes");
    assert_limit(t, 800, 50);
}

static void test_no_groups(void **state)
{
    const struct tree *t = *state;
    struct tmk_host_limit l = {1, 2};
    struct tmk_error err;
    assert_int_equal(tmk_host_limit_read(&t->roots, &l, &err), TMK_ENOENT);
    assert_non_null(strstr(err.text, "/proc/self/cgroup names no control group for memory"));
    assert_int_equal(l.limit_bytes, 1);
}

/* ---- pressure ---- */

static void test_pressure(void **state)
{
    const struct tree *t = *state;
    unsigned some = 1;
    assert_int_equal(tmk_host_pressure_read(&t->roots, &some, NULL), TMK_ENOENT);
    assert_int_equal(some, 1);
    tree_file(t,
              "some avg10=12.07 avg60=1.00 avg300=0.00 total=5\n"
              "full avg10=3.00 avg60=0.00 avg300=0.00 total=4\n",
              "proc/pressure/memory");
    assert_int_equal(tmk_host_pressure_read(&t->roots, &some, NULL), 0);
    assert_int_equal(some, 1207);
}

/* ---- a process ---- */

static void test_process(void **state)
{
    const struct tree *t = *state;
    struct tmk_host_process p;
    struct tmk_error err;
    assert_int_equal(tmk_host_process_read(&t->roots, 8, &p, &err), TMK_ENOENT);
    assert_string_equal(err.text, "there is no process 8; see: ps -e");
    tree_file(t, "Name:\tx\nVmLck:\t  16 kB\nVmPin:\t   4 kB\nVmRSS:\t 100 kB\n", "proc/8/status");
    assert_int_equal(tmk_host_process_read(&t->roots, 8, &p, NULL), 0);
    assert_int_equal(p.rss_bytes, 100 * 1024);
    assert_int_equal(p.pss_bytes, TMK_BYTES_UNKNOWN);
    assert_int_equal(p.locked_bytes, 16 * 1024);
    assert_int_equal(p.pinned_bytes, 4 * 1024);
    tree_file(t, "0-1 ---p 0 00:00 0 [rollup]\nRss:  108 kB\nPss:  50 kB\nPss_Anon:  5 kB\n",
              "proc/8/smaps_rollup");
    assert_int_equal(tmk_host_process_read(&t->roots, 8, &p, NULL), 0);
    assert_int_equal(p.rss_bytes, 108 * 1024);
    assert_int_equal(p.pss_bytes, 50 * 1024);
}

/* The kernel's files are as we think: ourselves, with a block that was written to. */
/* The larger ones are listed as users of the host; kernel threads and small ones are not. */
static void test_processes(void **state)
{
    const struct tree *t = *state;
    struct tmk_devices *devices = NULL;
    struct tmk_device_processes list;
    char statm[64];
    long pages = (long)(TMK_HOST_PROCESS_LEAST / (uint64_t)sysconf(_SC_PAGESIZE));
    snprintf(statm, sizeof statm, "9999999 %ld 3 4 0 5 0\n", pages);
    tree_file(t, statm, "proc/50/statm");
    tree_file(t, "Name:\ttrain\nNSpid:\t50\n", "proc/50/status");
    snprintf(statm, sizeof statm, "9999999 %ld 3 4 0 5 0\n", pages - 1);
    tree_file(t, statm, "proc/51/statm");
    tree_file(t, "0 0 0 0 0 0 0\n", "proc/2/statm");
    tree_file(t, statm, "proc/self/statm");
    assert_int_equal(tmk_devices_open(&t->roots, &devices, NULL), 0);
    assert_int_equal(tmk_devices_processes(devices, 0, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.items[0].pid, 50);
    assert_int_equal(list.items[0].used_bytes, TMK_HOST_PROCESS_LEAST);
    assert_string_equal(list.items[0].name, "train");
    tmk_devices_close(devices);
}

static void test_real(void **state)
{
    (void)state;
    const struct tmk_device_roots roots = tmk_device_roots_get();
    struct tmk_host_process before, after;
    const size_t n = 32u << 20;
    assert_int_equal(tmk_host_process_read(&roots, getpid(), &before, NULL), 0);
    unsigned char *block = malloc(n);
    assert_non_null(block);
    for (size_t i = 0; i < n; i += 4096)
        ((volatile unsigned char *)block)[i] = 1;
    assert_int_equal(tmk_host_process_read(&roots, getpid(), &after, NULL), 0);
    assert_true(after.rss_bytes >= before.rss_bytes + n);
    assert_true(after.rss_bytes < before.rss_bytes + n + n / 4);
    assert_true(after.pss_bytes <= after.rss_bytes && after.pss_bytes >= n);
    free(block);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_second_generation), CASE(test_first_generation), CASE(test_group_of_a_container),
        CASE(test_no_groups),         CASE(test_pressure),         CASE(test_process),
        CASE(test_processes),         cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
