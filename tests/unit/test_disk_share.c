/* SPDX-License-Identifier: MIT */
/* test_disk_share.c - the tenth of the disk that the processes of a run have together. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/file_lock.h"
#include "trace/disk_share.h"
#include "trace_kit.h"

enum { MIB = 1 << 20 };

static char run[256];

static int make_run(void **unused)
{
    (void)unused;
    snprintf(run, sizeof run, "%s", kit_folder_make());
    return 0;
}

static int remove_run(void **unused)
{
    (void)unused;
    kit_folder_remove(run);
    return 0;
}

static struct tmk_disk_share open_one(uint32_t n_nodes)
{
    struct tmk_disk_share s = {.fd = -1};
    assert_int_equal(tmk_disk_share_open(&s, run, n_nodes, NULL), 0);
    return s;
}

static void test_shared(void **unused)
{
    (void)unused;
    struct tmk_disk_share one = open_one(1), two = open_one(1);
    uint64_t left = tmk_disk_share_left(&one);
    assert_true(left > 10 * MIB);
    assert_false(tmk_disk_share_take(&one, left * 2));
    assert_int_equal(tmk_disk_share_used(&two), 0);
    assert_true(tmk_disk_share_take(&one, MIB));
    assert_int_equal(tmk_disk_share_used(&two), MIB);
    assert_in_range(tmk_disk_share_left(&two), left - 3 * MIB, left);
    tmk_disk_share_put(&two, 3);
    tmk_disk_share_give(&two, MIB);
    assert_int_equal(tmk_disk_share_used(&one), 3);
    tmk_disk_share_give(&two, MIB); /* never below nothing */
    assert_int_equal(tmk_disk_share_used(&one), 0);
    tmk_disk_share_close(&one);
    assert_false(tmk_disk_share_take(&one, 1)); /* not open */
    tmk_disk_share_close(&two);
    tmk_disk_share_close(&two);
}

static void test_nodes(void **unused)
{
    (void)unused;
    struct tmk_disk_share one = open_one(1);
    uint64_t left = tmk_disk_share_left(&one);
    struct tmk_disk_share four = open_one(4), told = open_one(0);
    assert_in_range(tmk_disk_share_left(&four), left / 4 - MIB, left / 4 + MIB);
    assert_true(tmk_disk_share_take(&four, MIB)); /* now the file says four */
    assert_in_range(tmk_disk_share_left(&told), left / 4 - 3 * MIB, left / 4);
    tmk_disk_share_close(&one);
    tmk_disk_share_close(&four);
    tmk_disk_share_close(&told);
}

/* What the run has on the disk already counts. */
static void test_from_before(void **unused)
{
    (void)unused;
    char path[300];
    static const char bytes[100000];
    snprintf(path, sizeof path, "%s/a.trace", run);
    kit_file_write(path, bytes, sizeof bytes);
    struct tmk_disk_share s = open_one(1);
    assert_in_range(tmk_disk_share_used(&s), sizeof bytes, 4 * sizeof bytes);
    tmk_disk_share_close(&s);
}

/* A killed process leaves what it was granted and did not use: the count begins anew from the files
 * before somebody is refused. */
static void test_recount(void **unused)
{
    (void)unused;
    struct tmk_disk_share s = open_one(1);
    uint64_t left = tmk_disk_share_left(&s);
    tmk_disk_share_put(&s, left * 2);
    usleep(1100000);
    assert_true(tmk_disk_share_take(&s, MIB));
    assert_in_range(tmk_disk_share_used(&s), MIB, MIB + 16384);
    tmk_disk_share_put(&s, left * 2); /* not again within a second */
    assert_false(tmk_disk_share_take(&s, left / 2));
    tmk_disk_share_close(&s);
}

/* As if the last look at the files were long ago. */
static void allow_recount(const struct tmk_disk_share *s)
{
    enum { RECOUNTED_OFFSET = 16 };
    int fd = open(s->path, O_WRONLY);
    assert_int_equal(pwrite(fd, &(uint64_t){0}, 8, RECOUNTED_OFFSET), 8);
    close(fd);
}

/* What the living have taken and not written yet is in no file: a new count keeps it. */
static void test_recount_beside_writers(void **unused)
{
    (void)unused;
    struct tmk_disk_share one = open_one(1), two = open_one(1), third = open_one(1);
    uint64_t left = tmk_disk_share_left(&one);
    assert_true(tmk_disk_share_take(&one, left / 2));
    assert_true(tmk_disk_share_take(&two, left / 4));
    allow_recount(&third);
    assert_false(tmk_disk_share_take(&third, left / 2));
    assert_in_range(tmk_disk_share_used(&third), left / 2 + left / 4, left / 2 + left / 4 + 16384);
    tmk_disk_share_give(&two, left / 4);
    allow_recount(&third);
    assert_false(tmk_disk_share_take(&third, left));
    assert_in_range(tmk_disk_share_used(&third), left / 2, left / 2 + 16384);
    assert_true(tmk_disk_share_take(&one, MIB)); /* says that the first half is written */
    allow_recount(&third);
    assert_false(tmk_disk_share_take(&third, left));
    assert_in_range(tmk_disk_share_used(&third), MIB, MIB + 16384);
    tmk_disk_share_close(&one); /* as a killed process does: it leaves its MiB in the count */
    allow_recount(&third);
    assert_true(tmk_disk_share_take(&third, left - MIB));
    tmk_disk_share_close(&two);
    tmk_disk_share_close(&third);
}

/* More processes than the file has room for: the last ones are counted as well as can be. */
static void test_more_writers_than_slots(void **unused)
{
    (void)unused;
    enum { N = 600, EACH = 4096 };
    static struct tmk_disk_share shares[N];
    for (int i = 0; i < N; i++) {
        shares[i] = open_one(1);
        assert_true(tmk_disk_share_take(&shares[i], EACH));
    }
    assert_int_equal(tmk_disk_share_used(&shares[0]), N * EACH);
    allow_recount(&shares[0]);
    assert_false(tmk_disk_share_take(&shares[0], 1ull << 60));
    assert_in_range(tmk_disk_share_used(&shares[1]), 500 * EACH, N * EACH);
    for (int i = 0; i < N; i++)
        tmk_disk_share_close(&shares[i]);
}

/* Somebody has the lock and is stopped, or the descriptor is gone: what was left then counts. */
static void test_alone(void **unused)
{
    (void)unused;
    struct tmk_disk_share s = open_one(1);
    uint64_t left = tmk_disk_share_left(&s);
    int other = open(s.path, O_RDWR);
    assert_int_equal(tmk_file_lock(other, TMK_LOCK_EXCLUSIVE, 0), 0);
    assert_true(tmk_disk_share_take(&s, left - MIB));
    assert_false(tmk_disk_share_take(&s, 2 * MIB));
    tmk_disk_share_give(&s, left - MIB);
    assert_true(tmk_disk_share_take(&s, 2 * MIB));
    close(other);
    assert_int_equal(tmk_disk_share_used(&s), 0);
    close(s.fd); /* as a program does that closes what it does not know */
    assert_true(tmk_disk_share_take(&s, MIB));
    assert_int_equal(tmk_disk_share_used(&s), MIB);
    close(s.fd);
    unlink(s.path);
    assert_false(tmk_disk_share_take(&s, left * 2));
    assert_true(tmk_disk_share_take(&s, MIB));
    tmk_disk_share_close(&s);
}

static void test_not_ours(void **unused)
{
    (void)unused;
    struct tmk_disk_share s = open_one(1);
    struct tmk_error err = {0};
    char path[sizeof s.path];
    strcpy(path, s.path);
    tmk_disk_share_close(&s);
    tmk_disk_share_remove(run);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(tmk_disk_share_open(&s, run, 1, &err), TMK_EIO);
    tmk_disk_share_remove(run);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    assert_int_equal(tmk_disk_share_open(&s, "/proc/no/such", 1, &err), TMK_EIO);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_run, remove_run)
    const struct CMUnitTest tests[] = {
        TEST(test_shared),
        TEST(test_nodes),
        TEST(test_from_before),
        TEST(test_recount),
        TEST(test_recount_beside_writers),
        TEST(test_more_writers_than_slots),
        TEST(test_alone),
        TEST(test_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
