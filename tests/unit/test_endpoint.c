/* SPDX-License-Identifier: MIT */
/* test_endpoint.c - what is taken for a process of another machine, and what is refused. */
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

#include "base/array.h"
#include "base/error.h"
#include "cli/remote/endpoint.h"

static void test_good(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        uint32_t pid;
    } cases[] = {
        {"node7:4242", "node7", 4242},
        {"ada@node7.example.org:1", "ada@node7.example.org", 1},
        {"gpu_box-2:4194304", "gpu_box-2", 4194304},
        {"10.0.0.7:12", "10.0.0.7", 12},
        {"[::1]:4242", "::1", 4242},
        {"ada@[fe80::1%eth0]:7", "ada@fe80::1%eth0", 7},
        {"\xe6\x9c\xba\xe5\x99\xa8:5", "\xe6\x9c\xba\xe5\x99\xa8", 5},
    };
    for (size_t i = 0; i < TMK_N(cases); i++) {
        struct tmk_endpoint found;
        struct tmk_error err = {0};
        assert_int_equal(tmk_endpoint_parse(cases[i].text, &found, &err), 1);
        assert_string_equal(found.host, cases[i].host);
        assert_int_equal(found.pid, cases[i].pid);
    }
}

static void test_something_else(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",      "4242",          "a.tmk",           "a.tmk:",    "node7:a.tmk", "node7:12x",
        "./n:1", "/tmp/node7:12", "runs/node7:4242", "node7:-12", "step:+3",     "node7: 12",
    };
    for (size_t i = 0; i < TMK_N(cases); i++)
        assert_int_equal(tmk_endpoint_parse(cases[i], &(struct tmk_endpoint){0}, NULL), 0);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"-oProxyCommand=id:12", "'-oProxyCommand=id' is not the name of a machine"},
        {"-v:12", "'-v' is not the name of a machine"},
        {"ada@-oProxyCommand:12", "'-oProxyCommand' is not the name of a machine"},
        {"-l@node7:12", "'-l' is not the name of a machine"},
        {"$(id):12", "'$(id)' is not the name of a machine"},
        {"a;id:12", "'a;id' is not the name of a machine"},
        {"a b:12", "'a b' is not the name of a machine"},
        {"a\nb:12", "is not the name of a machine"},
        {"`id`@node7:12", "'`id`' is not the name of a machine"},
        {":12", "'' is not the name of a machine"},
        {"ada@:12", "'' is not the name of a machine"},
        {"@node7:12", "'' is not the name of a machine"},
        {"[]:12", "'[]' is not the name of a machine"},
        {"[node7]:12", "'node7' is not the name of a machine"},
        {"node7:22:4242", "a port belongs into ~/.ssh/config"},
        {"::1:4242", "an IPv6 address stands in brackets before a PID: [::1]:4242"},
        {"node7:0", "'0' is not the PID of a process"},
        {"node7:99999999999", "'99999999999' is not the PID of a process"},
    };
    for (size_t i = 0; i < TMK_N(cases); i++) {
        struct tmk_endpoint found = {.pid = 7};
        struct tmk_error err = {0};
        assert_int_equal(tmk_endpoint_parse(cases[i].text, &found, &err), TMK_EINVAL);
        assert_non_null(strstr(err.text, cases[i].why));
        assert_int_equal(found.pid, 7);
    }
}

/* A file of that name comes first, whatever it is: a file, a folder, a link to nothing. */
static void test_file_first(void **state)
{
    (void)state;
    char folder[] = "/tmp/tidemark-endpoint.XXXXXX", before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("node7:1", 0700), 0);
    assert_int_equal(symlink("nowhere", "node7:2"), 0);
    assert_int_equal(tmk_endpoint_parse("node7:1", &(struct tmk_endpoint){0}, NULL), 0);
    assert_int_equal(tmk_endpoint_parse("node7:2", &(struct tmk_endpoint){0}, NULL), 0);
    assert_int_equal(tmk_endpoint_parse("node7:3", &(struct tmk_endpoint){0}, NULL), 1);
    rmdir("node7:1");
    unlink("node7:2");
    assert_int_equal(chdir(before), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void test_hosts(void **state)
{
    (void)state;
    char host[TMK_HOST_BYTES], longest[TMK_HOST_BYTES + 1];
    assert_int_equal(tmk_endpoint_host("ada@node7", host, NULL), 0);
    assert_string_equal(host, "ada@node7");
    assert_int_equal(tmk_endpoint_host("::1", host, NULL), 0);
    assert_string_equal(host, "::1");
    assert_int_equal(tmk_endpoint_host("ada@[::1]", host, NULL), 0);
    assert_string_equal(host, "ada@::1");
    assert_int_equal(tmk_endpoint_host("-oProxyCommand=id", host, NULL), TMK_EINVAL);
    assert_int_equal(tmk_endpoint_host("node7:22", host, NULL), TMK_EINVAL);
    assert_string_equal(host, "ada@::1");
    memset(longest, 'a', TMK_HOST_BYTES);
    longest[TMK_HOST_BYTES] = '\0';
    assert_int_equal(tmk_endpoint_host(longest, host, NULL), TMK_EINVAL);
    longest[TMK_HOST_BYTES - 1] = '\0';
    assert_int_equal(tmk_endpoint_host(longest, host, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_something_else),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_file_first),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
