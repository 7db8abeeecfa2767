/* SPDX-License-Identifier: MIT */
/* What devices are called, and which of them a list of names means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "device/device.h"
#include "monitor/selection.h"
#include "tree_kit.h"

struct fixture {
    struct tree tree;
    struct tmk_devices *devices;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    tree_init(&f->tree);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tmk_devices_close(f->devices);
    tree_fini(&f->tree);
    free(f);
    return 0;
}

/* Two of NVIDIA's, the first in two parts, then one of AMD's, then the host. */
static void open_many(struct fixture *f)
{
    tree_cards(&f->tree, "device 8000 A\nmigmode 1\nmig 4000 A1\nmig 4000 A2\ndevice 9000 B\n");
    tree_file(&f->tree, "7000\n", "sys/class/drm/card3/device/mem_info_vram_total");
    assert_int_equal(tmk_devices_open(&f->tree.roots, &f->devices, NULL), 0);
    assert_int_equal(tmk_devices_count(f->devices), 6);
}

/* The labels of what `names` (NULL-ended) mean, with blanks between. */
static const char *meant(const struct fixture *f, const char *const *names, char *text)
{
    struct tmk_selection s;
    unsigned n = 0;
    while (names[n])
        n++;
    text[0] = '\0';
    assert_int_equal(tmk_selection_parse(f->devices, names, n, &s, NULL), 0);
    for (unsigned i = 0; i < s.n; i++) {
        strcat(text, i ? " " : "");
        strcat(text, s.labels[i]);
    }
    return text;
}

#define MEANT(f, ...) meant(f, (const char *const[]){__VA_ARGS__, NULL}, text)

static void test_names(void **state)
{
    struct fixture *f = *state;
    char text[256];
    open_many(f);
    assert_string_equal(meant(f, (const char *const[]){NULL}, text), "0 1 2");
    assert_string_equal(MEANT(f, "all"), "0 1 2");
    assert_string_equal(MEANT(f, "1", "0"), "0 1");
    assert_string_equal(MEANT(f, "0,1", "1"), "0 1");
    assert_string_equal(MEANT(f, "0:1", "host"), "0:1 host");
    assert_string_equal(MEANT(f, "GPU-1"), "1");
    assert_string_equal(MEANT(f, "all", "host"), "0 1 2 host");
}

static void test_absent(void **state)
{
    struct fixture *f = *state;
    struct tmk_selection s = {.n = 77};
    struct tmk_error err = {0};
    open_many(f);
    static const char *const wrong[] = {"0", "1,7"};
    assert_int_equal(tmk_selection_parse(f->devices, wrong, 2, &s, &err), TMK_ENOENT);
    assert_string_equal(err.text, "there is no device '7'; there is: 0, 0:0, 0:1, 1, 2, host");
    assert_int_equal(s.n, 77);
    static const char *const empty[] = {""};
    assert_int_equal(tmk_selection_parse(f->devices, empty, 1, &s, NULL), TMK_EINVAL);
}

/* Of several, those that are there; but what is no name is no slip of a number. */
static void test_present(void **state)
{
    struct fixture *f = *state;
    struct tmk_selection s;
    struct tmk_error err = {0};
    open_many(f);
    static const char *const some[] = {"1", "7,GPU-8,0:9", "visible:3"};
    assert_int_equal(tmk_selection_parse_present(f->devices, some, 2, &s, &err), 0);
    assert_string_equal(err.text, "there is no device '7', 'GPU-8', '0:9'; there is: 0, 0:0, 0:1, "
                                  "1, 2, host");
    assert_int_equal(s.n, 1);
    assert_string_equal(s.labels[0], "1");
    assert_int_equal(tmk_selection_parse_present(f->devices, some + 1, 2, &s, &err), TMK_ENOENT);
    static const char *const word[] = {"1", "7", "gpu1"};
    assert_int_equal(tmk_selection_parse_present(f->devices, word, 3, &s, &err), TMK_EINVAL);
    assert_string_equal(
        err.text, "'gpu1' is no device's name: 0, 0:1, cuda:0, host, all, visible or an id are");
    struct tmk_error none = {0};
    assert_int_equal(tmk_selection_parse_present(f->devices, word, 1, &s, &none), 0);
    assert_string_equal(none.text, "");
}

/* The driver's numbers of what is visible, in its order; what CUDA does is what torch says of it in
 * torch/cuda/__init__.py. */
static void check_visible(const struct fixture *f, const char *variable, const char *value,
                          const char *expected)
{
    char text[256] = "", label[TMK_LABEL_BYTES];
    static const char *const names[] = {"visible"};
    struct tmk_selection s;
    if (value)
        setenv(variable, value, 1);
    assert_int_equal(tmk_selection_parse(f->devices, names, 1, &s, NULL), 0);
    unsetenv(variable);
    for (unsigned i = 0; i < s.n; i++) {
        snprintf(label, sizeof label, "%u", i);
        assert_string_equal(s.labels[i], label);
        strcat(text, i ? " " : "");
        strcat(text, tmk_device_label(f->devices, s.items[i], label));
    }
    assert_string_equal(text, expected);
}

static void test_visible(void **state)
{
    static const char *const cases[][2] = {
        {NULL, "0 1 2"},
        {"2,0", "2 0"},
        {"1", "1"},
        {" 2, 1", "2 1"},
        {"0,9,1", "0"},
        {"1,-1,0", "1"},
        {"-1", "host"},
        {"", "host"},
        {"1gpu2,2ampere", "1 2"},
        {"0,0", "host"},
        {"GPU-b", "1"},
        {"GPU-c,GPU-aa", "2 0"},
        {"GPU-a", "0"},
        {"GPU-", "host"},
        {"GPU-b,1", "1"},
        {"GPU-b,GPU-x,GPU-c", "1"},
        {"1,GPU-c", "1"},
        {"none", "host"},
        {"GPU-b,GPU-b", "host"},
    };
    struct fixture *f = *state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("HIP_VISIBLE_DEVICES");
    tree_cards(&f->tree, "device 8000 A\nuuid GPU-aaa\ndevice 8000 B\nuuid GPU-bbb\n"
                         "device 8000 C\nuuid GPU-ccc\n");
    assert_int_equal(tmk_devices_open(&f->tree.roots, &f->devices, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_visible(f, "CUDA_VISIBLE_DEVICES", cases[i][0], cases[i][1]);
}

/* Which of several cards an id means, CUDA does not guess. A divided card is its first part. */
static void test_visible_parts(void **state)
{
    struct fixture *f = *state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("HIP_VISIBLE_DEVICES");
    open_many(f);
    check_visible(f, "CUDA_VISIBLE_DEVICES", NULL, "0:0 1");
    check_visible(f, "CUDA_VISIBLE_DEVICES", "1,0", "1 0:0");
    check_visible(f, "CUDA_VISIBLE_DEVICES", "MIG-0-1", "0:1");
    check_visible(f, "CUDA_VISIBLE_DEVICES", "MIG-0-1,MIG-0-0", "0:1 0:0");
    check_visible(f, "CUDA_VISIBLE_DEVICES", "MIG-0", "host");
    check_visible(f, "CUDA_VISIBLE_DEVICES", "2", "host"); /* AMD's is not CUDA's */
}

static void test_visible_of_amd(void **state)
{
    struct fixture *f = *state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    tree_file(&f->tree, "7000\n", "sys/class/drm/card0/device/mem_info_vram_total");
    tree_file(&f->tree, "7000\n", "sys/class/drm/card1/device/mem_info_vram_total");
    assert_int_equal(tmk_devices_open(&f->tree.roots, &f->devices, NULL), 0);
    check_visible(f, "HIP_VISIBLE_DEVICES", "1", "1");
    check_visible(f, "CUDA_VISIBLE_DEVICES", "1,0", "1 0");
    check_visible(f, "HIP_VISIBLE_DEVICES", NULL, "0 1");
}

static void test_visible_with_others(void **state)
{
    struct fixture *f = *state;
    struct tmk_selection s;
    struct tmk_error err = {0};
    char text[256];
    open_many(f);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    assert_string_equal(MEANT(f, "visible", "host"), "0 host");
    assert_string_equal(MEANT(f, "visible:0"), "0");
    assert_string_equal(MEANT(f, "cuda:0"), "0");
    assert_int_equal(tmk_selection_parse(f->devices, (const char *const[]){"cuda:0"}, 1, &s, &err),
                     0);
    assert_int_equal(s.items[0], tmk_devices_count(f->devices) - 3); /* the driver's card 1 */
    static const char *const both[] = {"visible", "0"};
    assert_int_equal(tmk_selection_parse(f->devices, both, 2, &s, &err), TMK_EINVAL);
    assert_string_equal(err.text,
                        "visible devices are numbered as CUDA does, 0 as the driver does: "
                        "ask for one or the other");
    static const char *const absent[] = {"visible:1"};
    assert_int_equal(tmk_selection_parse(f->devices, absent, 1, &s, &err), TMK_ENOENT);
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    assert_string_equal(MEANT(f, "visible:0", "host"), "0"); /* the host in its place, once */
    static const char *const cuda[] = {"cuda:0"};
    assert_int_equal(tmk_selection_parse(f->devices, cuda, 1, &s, &err), TMK_ENOENT);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void test_host_alone_is_device_0(void **state)
{
    struct fixture *f = *state;
    char text[256];
    assert_int_equal(tmk_devices_open(&f->tree.roots, &f->devices, NULL), 0);
    assert_string_equal(MEANT(f, "all"), "0");
    assert_string_equal(MEANT(f, "0"), "0");
    assert_string_equal(MEANT(f, "host"), "0");
    assert_string_equal(MEANT(f, "visible"), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_present, setup, teardown),
        cmocka_unit_test_setup_teardown(test_visible, setup, teardown),
        cmocka_unit_test_setup_teardown(test_visible_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_visible_of_amd, setup, teardown),
        cmocka_unit_test_setup_teardown(test_visible_with_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_host_alone_is_device_0, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
