/* SPDX-License-Identifier: MIT */
/* What devices are called, and which of them a list of names means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    char label[TMK_LABEL_BYTES];
    struct tmk_selection s;
    unsigned n = 0;
    while (names[n])
        n++;
    text[0] = '\0';
    assert_int_equal(tmk_selection_parse(f->devices, names, n, &s, NULL), 0);
    for (unsigned i = 0; i < s.n; i++) {
        strcat(text, i ? " " : "");
        strcat(text, tmk_device_label(f->devices, s.items[i], label));
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
    assert_int_equal(tmk_selection_parse(f->devices, empty, 1, &s, NULL), TMK_ENOENT);
}

static void test_host_alone_is_device_0(void **state)
{
    struct fixture *f = *state;
    char text[256];
    assert_int_equal(tmk_devices_open(&f->tree.roots, &f->devices, NULL), 0);
    assert_string_equal(MEANT(f, "all"), "0");
    assert_string_equal(MEANT(f, "0"), "0");
    assert_string_equal(MEANT(f, "host"), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_host_alone_is_device_0, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
