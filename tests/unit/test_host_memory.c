/* SPDX-License-Identifier: MIT */
/* What the recorder says of the host's memory, from a made-up /proc and /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/identity/host_memory.h"
#include "tree_kit.h"

static void assert_memory(const struct tree *t, uint64_t total, uint64_t available)
{
    struct tmk_host_memory m;
    assert_true(tmk_host_memory_read_at(t->proc, t->sys, &m));
    assert_int_equal(m.total_bytes, total);
    assert_int_equal(m.available_bytes, available);
}

static void test_host_alone(void **state)
{
    const struct tree *t = *state;
    struct tmk_host_memory m;
    assert_false(tmk_host_memory_read_at(t->proc, t->sys, &m));
    tree_file(t, "MemTotal:       9000 kB\nMemFree:  1 kB\nMemAvailable:  4000 kB\n",
              "proc/meminfo");
    assert_memory(t, 9000 * 1024, 4000 * 1024);
}

static void test_second_generation(void **state)
{
    const struct tree *t = *state;
    tree_file(t, "MemTotal: 9000 kB\nMemAvailable: 4000 kB\n", "proc/meminfo");
    tree_file(t, "0::/a.slice/job\n", "proc/self/cgroup");
    tree_file(t, "max\n", "sys/fs/cgroup/a.slice/job/memory.max");
    assert_memory(t, 9000 * 1024, 4000 * 1024);
    tree_file(t, "6000\n", "sys/fs/cgroup/a.slice/memory.max");
    tree_file(t, "4000\n", "sys/fs/cgroup/a.slice/memory.current");
    tree_file(t, "anon 1\ninactive_file 1500\n", "sys/fs/cgroup/a.slice/memory.stat");
    assert_memory(t, 6000, 3500);
    tree_file(t, "5000\n", "sys/fs/cgroup/a.slice/job/memory.max"); /* with more room: both hold */
    tree_file(t, "100\n", "sys/fs/cgroup/a.slice/job/memory.current");
    assert_memory(t, 5000, 3500);
    tree_file(t, "2000\n", "sys/fs/cgroup/memory.max"); /* it does not tell what is used */
    assert_memory(t, 2000, 2000);
}

static void test_first_generation(void **state)
{
    const struct tree *t = *state;
    tree_file(t, "MemTotal: 9000 kB\nMemAvailable: 4000 kB\n", "proc/meminfo");
    tree_file(t, "9:name=systemd:/\n4:memory:/docker/c0ffee\n0::/x\n", "proc/self/cgroup");
    tree_file(t, "7\n", "sys/fs/cgroup/x/memory.max");
    tree_file(t, "9223372036854771712\n", "sys/fs/cgroup/memory/memory.limit_in_bytes");
    assert_memory(t, 9000 * 1024, 4000 * 1024);
    tree_file(t, "8000\n", "sys/fs/cgroup/memory/docker/c0ffee/memory.limit_in_bytes");
    tree_file(t, "9000\n", "sys/fs/cgroup/memory/docker/c0ffee/memory.usage_in_bytes");
    assert_memory(t, 8000, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_host_alone, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_second_generation, tree_setup, tree_teardown),
        cmocka_unit_test_setup_teardown(test_first_generation, tree_setup, tree_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
