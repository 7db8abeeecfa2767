/* SPDX-License-Identifier: MIT */
/* test_filters.c - under which seccomp filters a process is recorded; lines that say why not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/filters.h"
#include "base/text.h"
#include "trace/layout.h"
#include "trace/refusals.h"

static void test_status(void **unused)
{
    (void)unused;
    struct tmk_filters f = {.n = 77};
    assert_true(tmk_filters_parse("Name:\tx\nPid:\t12\nNoNewPrivs:\t1\nSeccomp:\t2\n"
                                  "Seccomp_filters:\t3\n",
                                  true, &f));
    assert_int_equal(f.n, 3);
    assert_true(f.no_new_privileges);
    assert_int_equal(f.pid, 12);
    assert_true(tmk_filters_parse("NoNewPrivs:\t0\nSeccomp:\t2\n", true, &f)); /* before 5.9 */
    assert_int_equal(f.n, 1);
    assert_false(f.no_new_privileges);
    assert_true(tmk_filters_parse("Seccomp:\t0\nSeccomp_filters:\t0\n", false, &f));
    assert_int_equal(f.n, 0);
    assert_true(tmk_filters_parse("Seccomp:\t1\nSeccomp_filters:\t0\n", false, &f)); /* strict */
    assert_int_equal(f.n, 1);
    assert_true(tmk_filters_parse("Name:\tx\n", true, &f)); /* a kernel without seccomp */
    assert_int_equal(f.n, 0);
    assert_false(tmk_filters_parse("Name:\tx\n", false, &f));
    assert_true(tmk_filters_parse("Name:\tSeccomp:\t2\nSeccomp:\t0\n", true, &f)); /* a name */
    assert_int_equal(f.n, 0);
    assert_false(tmk_filters_read("/proc/self/no/such", &f));
}

static void test_known(void **unused)
{
    (void)unused;
    static const struct {
        struct tmk_filters own;
        int n_first; /* -1: not known */
        const char *said;
        bool is_launched, is_known;
    } cases[] = {
        {{.n = 0}, -1, NULL, true, true},
        {{.n = 1}, 0, NULL, true, false},  /* a sandbox on a plain machine */
        {{.n = 1}, -1, NULL, true, false}, /* the first process is hidden */
        {{.n = 1}, 1, NULL, true, true},   /* Docker */
        {{.n = 2}, 1, NULL, true, false},  /* a sandbox in Docker */
        {{.n = 1}, 2, NULL, true, false},
        {{.n = 2}, 2, NULL, true, false},
        {{.n = 1, .no_new_privileges = true}, 1, NULL, true, false}, /* a namespace of its own */
        {{.n = 1, .no_new_privileges = true}, 1, NULL, false, true}, /* `import tidemark` */
        {{.n = 1, .no_new_privileges = true}, 1, "1", true, true},   /* run has tried it */
        {{.n = 2, .no_new_privileges = true}, 1, "1", true, false},
        {{.n = 2}, 0, "2", true, true},
        {{.n = 3}, 0, "2", true, false},
        {{.n = 1}, 1, "refuse", true, false}, /* run has tried it, and was killed */
        {{.n = 0}, 1, "refuse", true, true},
        {{.n = 9}, 0, "trust", true, true},
        {{.n = 1}, 0, "", true, false},
        {{.n = 1}, 0, "trustworthy", true, false},
        {{.n = 1}, 0, "-1", true, false},
        {{.n = 1}, 0, "99999999999999999999", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_filters first = {.n = (uint64_t)cases[i].n_first};
        bool is_known = tmk_filters_are_known(&cases[i].own, cases[i].n_first < 0 ? NULL : &first,
                                              cases[i].said, cases[i].is_launched);
        assert_int_equal(is_known * 100 + (int)i, cases[i].is_known * 100 + (int)i);
    }
}

static void test_refusals(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/tidemark-refusals.XXXXXX", inside[64], beside[64];
    struct tmk_refusal got[8];
    assert_non_null(mkdtemp(folder));
    rmdir(folder);
    struct tmk_text text;
    tmk_text_init(&text, inside, sizeof inside);
    tmk_refusals_path(folder, true, &text);
    tmk_text_init(&text, beside, sizeof beside);
    tmk_refusals_path(folder, false, &text);
    assert_int_equal(tmk_refusals_read(folder, got, 8), 0);
    struct tmk_refusal one = {.pid = 12, .reason = TMK_STOP_SANDBOX, .os_error = 2};
    assert_int_equal(tmk_refusals_append(folder, &one), 0); /* there is no folder: beside it */
    assert_int_equal(access(beside, F_OK), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    one = (struct tmk_refusal){.pid = 13, .reason = TMK_STOP_THREAD};
    assert_int_equal(tmk_refusals_append(folder, &one), 0);
    assert_int_equal(tmk_refusals_read(folder, got, 8), 2);
    assert_int_equal(got[0].pid, 13);
    assert_int_equal(got[0].reason, TMK_STOP_THREAD);
    assert_int_equal(got[1].pid, 12);
    assert_int_equal(got[1].os_error, 2);
    assert_int_equal(tmk_refusals_read(folder, got, 1), 1);
    struct stat st;
    for (int i = 0; i < 2000; i++)
        (void)tmk_refusals_append(folder, &one);
    assert_int_equal(stat(inside, &st), 0);
    assert_true(st.st_size <= TMK_REFUSALS_MAX_BYTES && st.st_size > TMK_REFUSALS_MAX_BYTES - 200);
    assert_int_equal(st.st_mode & 0777, 0600);
    unlink(inside);
    assert_int_equal(symlink("/dev/null", inside), 0);
    assert_true(tmk_refusals_append(folder, &one) < 0);
    assert_int_equal(tmk_refusals_read(folder, got, 8), 1);
    unlink(inside);
    assert_int_equal(mkfifo(inside, 0600), 0); /* nobody waits at it */
    assert_int_equal(tmk_refusals_read(folder, got, 8), 1);
    unlink(inside);
    unlink(beside);
    rmdir(folder);
}

static void check_own(const char *text, bool is_own)
{
    char folder[] = "/tmp/tidemark-refusals.XXXXXX", path[64], link_path[64];
    struct tmk_refusal got, one = {.pid = 12, .reason = TMK_STOP_SANDBOX};
    assert_non_null(mkdtemp(folder));
    rmdir(folder);
    snprintf(path, sizeof path, "%s.refused", folder);
    snprintf(link_path, sizeof link_path, "%s.link", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(tmk_refusals_are_own(folder, false), is_own && *text);
    if (is_own) {
        assert_int_equal(link(path, link_path), 0);
        assert_false(tmk_refusals_are_own(folder, false));
        assert_true(tmk_refusals_append(folder, &one) < 0);
        unlink(link_path);
        assert_int_equal(tmk_refusals_append(folder, &one), 0);
        assert_true(tmk_refusals_are_own(folder, false));
    } else {
        struct stat st;
        assert_true(tmk_refusals_append(folder, &one) < 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, strlen(text)); /* as it was */
        assert_int_equal(tmk_refusals_read(folder, &got, 1), 0);
    }
    unlink(path);
}

/* A file beside the run may be the user's. */
static void test_files_of_others(void **unused)
{
    (void)unused;
    check_own("", true);
    check_own("12 3 0 a text\n", true);
    check_own("12 3 0 a text\n0 99 2147483647 \n", true);
    check_own("12 3 0 a text\n12 3", true); /* the disk was full */
    check_own("12 3 0 a text\n12 3 0 a te", true);
    check_own("my notes\n", false);
    check_own("12 3 0 a text\nmy notes\n", false);
    check_own("12 3 0 a text\nmy notes", false);
    check_own("12 3 0 a text\n\n", false);
    check_own("12 3 0\n", false);
    check_own("12  3 0 a\n", false);
    check_own(" 12 3 0 a\n", false);
    check_own("12 3 0 a\tb\n", false);
    check_own("12345678901 3 0 a\n", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_files_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
