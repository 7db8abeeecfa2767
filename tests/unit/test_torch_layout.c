/* SPDX-License-Identifier: MIT */
/* How large blocks of a torch snapshot really are: cut, not cut, merged; segments that grow and
 * shrink; events that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "interop/torch/torch_layout.h"
#include "model/alloc_conf.h"

#define MIB (UINT64_C(1) << 20)
#define AT (UINT64_C(1) << 40)

static struct tmk_import_layout *open_layout(void)
{
    struct tmk_alloc_conf conf;
    struct tmk_import_layout *l = NULL;
    tmk_alloc_conf_init(&conf);
    assert_int_equal(tmk_import_layout_open(&conf, NULL, &l), 0);
    return l;
}

static uint64_t alloc(struct tmk_import_layout *l, uint64_t address, uint64_t requested)
{
    uint64_t size = 0;
    assert_int_equal(tmk_import_layout_alloc(l, address, requested, 0, &size), 0);
    assert_true(tmk_import_layout_is_valid(l));
    return size;
}

static void release(struct tmk_import_layout *l, uint64_t address)
{
    assert_true(tmk_import_layout_free(l, address));
    assert_true(tmk_import_layout_is_valid(l));
}

static void cuts(void **state)
{
    (void)state;
    struct tmk_import_layout *l = open_layout();
    assert_int_equal(tmk_import_layout_map(l, AT, 20 * MIB, false), 0);
    assert_int_equal(alloc(l, AT, 2 * MIB - 100), 2 * MIB);                 /* rounded up */
    assert_int_equal(alloc(l, AT + 2 * MIB, 17 * MIB + MIB / 2), 18 * MIB); /* the rest: no use */
    release(l, AT + 2 * MIB);
    assert_int_equal(alloc(l, AT + 2 * MIB, 17 * MIB - 1), 17 * MIB + MIB); /* 1 MiB: not either */
    release(l, AT + 2 * MIB);
    assert_int_equal(alloc(l, AT + 2 * MIB, 16 * MIB), 16 * MIB); /* 2 MiB are */
    release(l, AT);
    release(l, AT + 2 * MIB);
    assert_int_equal(alloc(l, AT, 19 * MIB + 1), 20 * MIB); /* all merged again */

    assert_int_equal(tmk_import_layout_map(l, AT - 2 * MIB, 2 * MIB, false), 0); /* small pool */
    assert_int_equal(alloc(l, AT - 2 * MIB, 1), 512);
    assert_int_equal(alloc(l, AT - 2 * MIB + 512, MIB - 511), MIB);
    release(l, AT - 2 * MIB + 512);
    assert_int_equal(tmk_import_layout_n_odd(l), 0);
    tmk_import_layout_close(l);
}

/* Segments that touch stay apart; expandable memory does not. */
static void neighbours(void **state)
{
    (void)state;
    struct tmk_import_layout *l = open_layout();
    struct tmk_import_span span;
    assert_int_equal(tmk_import_layout_map(l, AT, 2 * MIB, false), 0);
    assert_int_equal(tmk_import_layout_map(l, AT + 2 * MIB, 2 * MIB, false), 0);
    assert_int_equal(tmk_import_layout_left(l, AT), 2 * MIB);

    uint64_t at = AT * 2;
    assert_int_equal(tmk_import_layout_map(l, at, 4 * MIB, true), 0);
    assert_int_equal(tmk_import_layout_map(l, at + 8 * MIB, 4 * MIB, true), 0);
    assert_int_equal(tmk_import_layout_map(l, at + 4 * MIB, 4 * MIB, true), 0); /* closes the gap */
    assert_int_equal(tmk_import_layout_left(l, at), 12 * MIB);
    assert_int_equal(alloc(l, at, 11 * MIB + 1), 11 * MIB + 512); /* expandable: always cut */
    release(l, at);
    assert_int_equal(alloc(l, at, 3 * MIB), 3 * MIB);
    assert_int_equal(tmk_import_layout_unmap(l, at + 4 * MIB, 4 * MIB), 0);
    assert_true(tmk_import_layout_is_valid(l));
    assert_int_equal(tmk_import_layout_left(l, at), 4 * MIB);
    assert_int_equal(tmk_import_layout_left(l, at + 5 * MIB), 0);
    assert_int_equal(tmk_import_layout_left(l, at + 8 * MIB), 4 * MIB);
    uint64_t i = tmk_import_layout_first_span(l, at + 4 * MIB);
    assert_true(tmk_import_layout_span(l, i, &span));
    assert_true(span.address == at + 8 * MIB && span.is_expandable);
    assert_false(tmk_import_layout_span(l, i + 1, &span));
    assert_int_equal(tmk_import_layout_n_odd(l), 0);
    tmk_import_layout_close(l);
}

static void what_cannot_be(void **state)
{
    (void)state;
    struct tmk_import_layout *l = open_layout();
    assert_int_equal(alloc(l, AT, 100), 512); /* outside of all segments */
    assert_false(tmk_import_layout_free(l, AT));
    assert_int_equal(tmk_import_layout_n_odd(l), 2);
    assert_int_equal(tmk_import_layout_map(l, AT, 2 * MIB, false), 0);
    assert_int_equal(alloc(l, AT + 4096, 1000), 1024); /* not where a free one begins */
    assert_int_equal(alloc(l, AT + 4096, 2000), 2048); /* its free was lost */
    assert_int_equal(alloc(l, AT, 8000), 8192);        /* goes over the one that is there */
    assert_int_equal(tmk_import_layout_n_odd(l), 4);
    assert_int_equal(tmk_import_layout_unmap(l, AT, 2 * MIB), 0);
    assert_true(tmk_import_layout_is_valid(l));
    assert_int_equal(tmk_import_layout_left(l, AT), 0);
    tmk_import_layout_close(l);
}

/* Whatever comes, in whatever order. */
static void anything(void **state)
{
    (void)state;
    struct tmk_import_layout *l = open_layout();
    uint64_t random = 1, size;
    for (unsigned i = 0; i < 20000; i++) {
        random = tmk_hash_u64(random + i);
        uint64_t address = AT + random % 64 * (MIB / 2), n = (1 + (random >> 8) % 40) * (MIB / 4);
        switch ((random >> 32) % 8) {
        case 0:
            assert_int_equal(tmk_import_layout_map(l, address, n, random >> 40 & 1), 0);
            break;
        case 1:
            assert_int_equal(tmk_import_layout_unmap(l, address, n), 0);
            break;
        case 2:
        case 3:
        case 4:
            tmk_import_layout_free(l, address);
            break;
        default:
            assert_int_equal(
                tmk_import_layout_alloc(l, address, n / 3, random >> 41 & 1 ? n : 0, &size), 0);
            assert_true(size >= n / 3);
            break;
        }
        assert_true(tmk_import_layout_is_valid(l));
    }
    tmk_import_layout_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(what_cannot_be),
        cmocka_unit_test(anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
