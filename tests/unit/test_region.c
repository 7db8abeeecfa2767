/* SPDX-License-Identifier: MIT */
/* test_region.c - regions cut from one mapping, and their memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/region.h"

enum { N = 20, BYTES = 300000, ROOM = 4 << 20 };

static bool is_zero(const struct tmk_region *r)
{
    const uint8_t *bytes = r->base;
    for (size_t i = 0; i < r->size_bytes; i++)
        if (bytes[i])
            return false;
    return true;
}

/* The last ones find no room in the pool: they are as good. */
static void test_pool(void **unused)
{
    (void)unused;
    struct tmk_region all[N];
    tmk_region_pool_begin(ROOM);
    for (int i = 0; i < N; i++) {
        assert_int_equal(tmk_region_init(&all[i], BYTES + (size_t)i), 0);
        assert_int_equal(all[i].size_bytes, BYTES + i);
        assert_true(is_zero(&all[i]));
        memset(all[i].base, i + 1, all[i].size_bytes);
    }
    tmk_region_pool_end();
    tmk_region_clear(&all[3]);
    assert_true(is_zero(&all[3]));
    for (int i = 0; i < N; i++) {
        const uint8_t *bytes = all[i].base;
        uint8_t want = (uint8_t)(i == 3 ? 0 : i + 1);
        assert_int_equal(bytes[0], want);
        assert_int_equal(bytes[all[i].size_bytes - 1], want);
        tmk_region_fini(&all[i]); /* leaves its neighbours */
        assert_null(all[i].base);
    }
}

static bool is_mapped(const void *address)
{
    unsigned char in_core;
    return mincore((void *)(uintptr_t)address, 1, &in_core) == 0;
}

static void test_forked_child_has_none(void **unused)
{
    (void)unused;
    struct tmk_region other, first, last; /* in the pool, and where that has no room left */
    int status = -1;
    assert_int_equal(tmk_region_init(&other, BYTES), 0);
    tmk_region_pool_begin(ROOM);
    assert_int_equal(tmk_region_init(&first, BYTES), 0);
    assert_int_equal(tmk_region_init(&last, ROOM), 0);
    tmk_region_pool_end();
    pid_t pid = fork();
    if (pid == 0)
        _exit(is_mapped(other.base) && !is_mapped(first.base) && !is_mapped(last.base) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    tmk_region_fini(&other);
    tmk_region_fini(&first);
    tmk_region_fini(&last);
}

/* What was not used is given back: the next region of that size lies elsewhere or there. */
static void test_pool_twice(void **unused)
{
    (void)unused;
    struct tmk_region a, b;
    tmk_region_pool_begin(ROOM);
    assert_int_equal(tmk_region_init(&a, 1), 0);
    tmk_region_pool_begin(ROOM);
    assert_int_equal(tmk_region_init(&b, ROOM), 0);
    tmk_region_pool_end();
    tmk_region_pool_end();
    memset(b.base, 7, ROOM);
    assert_int_equal(*(const uint8_t *)a.base, 0);
    tmk_region_fini(&a);
    assert_int_equal(((const uint8_t *)b.base)[ROOM - 1], 7);
    tmk_region_fini(&b);
}

/* VmFlags of the mapping that has the address. */
static void read_flags(const void *address, char *to, size_t size)
{
    char line[512];
    uintptr_t first, last;
    bool is_it = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    assert_non_null(file);
    *to = '\0';
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
            is_it = first <= (uintptr_t)address && (uintptr_t)address < last;
        else if (is_it && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(to, size, "%s", line);
    }
    fclose(file);
}

static void test_small_pages(void **unused)
{
    (void)unused;
    struct tmk_region before, after;
    char flags[512];
    assert_int_equal(tmk_region_init(&before, 8 << 20), 0);
    tmk_region_use_small_pages();
    assert_int_equal(tmk_region_init(&after, 8 << 20), 0);
    read_flags(after.base, flags, sizeof flags);
    bool has_huge_pages = access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0;
    assert_int_equal(strstr(flags, " nh") != NULL, has_huge_pages);
    read_flags(before.base, flags, sizeof flags);
    assert_null(strstr(flags, " nh"));
    tmk_region_fini(&before);
    tmk_region_fini(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_pool_twice),
        cmocka_unit_test(test_forked_child_has_none),
        cmocka_unit_test(test_small_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
