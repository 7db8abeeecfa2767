/* SPDX-License-Identifier: MIT */
/* test_intern.c - names and call sites as numbers: the same text the same number, each defined in
 * the ring before it is used, from many threads at once. Runs under TSan. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "record/core/intern.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/ring.h"

enum { N_PAGES = 600, MAX_IDS = 1 << 17 };
static const uint8_t id[16] = "names and sites";
static struct tmk_control control;

static void open_recorder(void)
{
    control = (struct tmk_control){0};
    assert_int_equal(tmk_ring_create(&tmk_recorder.ring, NULL, N_PAGES, N_PAGES, id, "", NULL), 0);
    assert_int_equal(tmk_intern_reset(), 0);
    tmk_recorder.counter = tmk_clock_has_counter();
    tmk_recorder.control = &control;
    tmk_recorder_set_armed(true);
}

static void close_recorder(void)
{
    assert_true(tmk_lane_is_valid(&tmk_lane));
    assert_true(tmk_intern_is_valid());
    tmk_recorder_disarm();
    tmk_ring_close(&tmk_recorder.ring);
}

static uint32_t string_id(const char *text)
{
    struct tmk_lane *lane = tmk_lane_enter();
    assert_non_null(lane);
    uint32_t number = tmk_intern_string(lane, text);
    tmk_lane_leave(lane);
    return number;
}

static uint32_t site_id(const struct tidemark_site *site)
{
    struct tmk_lane *lane = tmk_lane_enter();
    assert_non_null(lane);
    uint32_t number = tmk_intern_site(lane, site);
    tmk_lane_leave(lane);
    return number;
}

/* Walk the records of the ring, page by page. */
static void for_each_record(void (*visit)(void *arg, union tmk_record_head head,
                                          const struct tmk_record *r),
                            void *arg)
{
    for (uint32_t i = 0; i < N_PAGES; i++) {
        const struct tmk_page *page = &tmk_recorder.ring.pages[i];
        for (uint32_t at = 0; at < TMK_PAGE_SLOTS;) {
            const struct tmk_record *r = &page->slots[at];
            union tmk_record_head head = {.word = atomic_load(&r->head)};
            if (head.kind == TMK_KIND_NONE)
                break;
            visit(arg, head, r);
            at += head.n_slots;
        }
    }
}

struct definitions {
    char *texts[MAX_IDS];
    uint32_t n_strings, n_frames, n_stacks;
};

static void keep(void *arg, union tmk_record_head head, const struct tmk_record *r)
{
    struct definitions *d = arg;
    d->n_frames += head.kind == TMK_KIND_DEF_FRAME;
    d->n_stacks += head.kind == TMK_KIND_DEF_STACK;
    if (head.kind != TMK_KIND_DEF_STRING)
        return;
    assert_in_range(head.id, 1, MAX_IDS - 1);
    assert_null(d->texts[head.id]); /* an id is defined once */
    d->texts[head.id] = strndup((const char *)&r->b, (size_t)(uint32_t)r->a);
    d->n_strings++;
}

static struct definitions *read_definitions(void)
{
    struct definitions *d = calloc(1, sizeof *d);
    for_each_record(keep, d);
    return d;
}

static void free_definitions(struct definitions *d)
{
    for (size_t i = 0; i < MAX_IDS; i++)
        free(d->texts[i]);
    free(d);
}

static void test_strings(void **unused)
{
    (void)unused;
    char longest[TMK_STRING_MAX_BYTES + 100];
    open_recorder();
    assert_int_equal(string_id(NULL), 0);
    uint32_t a = string_id("a"), b = string_id("b"), empty = string_id("");
    memset(longest, 'l', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    uint32_t big = string_id(longest);
    assert_true(a && b && empty && big && a != b && a != empty && b != empty && big != a);
    char copy[] = "a"; /* by content, not by address */
    assert_int_equal(string_id(copy), a);
    assert_int_equal(string_id("b"), b);
    longest[TMK_STRING_MAX_BYTES + 5] = 'x'; /* beyond what is kept */
    assert_int_equal(string_id(longest), big);
    struct definitions *d = read_definitions();
    assert_int_equal(d->n_strings, 4);
    assert_string_equal(d->texts[a], "a");
    assert_string_equal(d->texts[empty], "");
    assert_int_equal(strlen(d->texts[big]), TMK_STRING_MAX_BYTES);
    free_definitions(d);

    assert_int_equal(tmk_intern_reset(), 0); /* a new trace: defined again, from 1 */
    assert_int_equal(string_id("b"), 1);
    close_recorder();
}

static void test_sites(void **unused)
{
    (void)unused;
    static const char file[] = "a.c", function[] = "f";
    struct tidemark_site one = {file, function, 3, 0}, same = one, other = {file, function, 4, 0};
    open_recorder();
    assert_int_equal(site_id(NULL), 0);
    uint32_t first = site_id(&one);
    assert_int_not_equal(first, 0);
    assert_int_equal(site_id(&same), first);
    assert_int_not_equal(site_id(&other), first);
    struct tidemark_site nameless = {NULL, NULL, 7, 0};
    assert_int_not_equal(site_id(&nameless), 0);
    struct definitions *d = read_definitions();
    assert_int_equal(d->n_strings, 2);
    assert_int_equal(d->n_frames, 3);
    assert_int_equal(d->n_stacks, 3);
    free_definitions(d);
    close_recorder();
}

/* More names than the table has room for: 0 for those, and those known stay known. */
static void test_full_table(void **unused)
{
    (void)unused;
    char name[32];
    uint32_t n_known = 0, first = 0;
    open_recorder();
    for (uint32_t i = 0; i < 160000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        uint32_t number = string_id(name);
        if (i == 0)
            first = number;
        n_known += number != 0;
    }
    assert_in_range(n_known, 60000, 131072);
    assert_int_equal(string_id("n0"), first);
    assert_int_equal(atomic_load(&tmk_recorder.ring.header->n_dropped), 0);
    assert_int_equal(atomic_load(&tmk_recorder.ring.header->n_unnamed), 160000 - n_known);
    close_recorder();
}

/* ---- many threads ---- */

enum { N_THREADS = 8, N_NAMES = 300, N_ROUNDS = 40 };
static uint32_t given[N_THREADS][N_NAMES], first_given[N_THREADS][N_NAMES];

static void *intern_all(void *arg)
{
    uint32_t *mine = given[(uintptr_t)arg];
    char name[32];
    for (uint32_t round = 0; round < N_ROUNDS; round++) {
        for (uint32_t i = 0; i < N_NAMES; i++) {
            snprintf(name, sizeof name, "name %u", i);
            struct tmk_lane *lane = tmk_lane_enter();
            uint32_t number = lane ? tmk_intern_string(lane, name) : 0;
            if (lane)
                tmk_lane_leave(lane);
            if (number == 0)
                abort();
            mine[i] = number;
        }
    }
    return NULL;
}

static void intern_on_all_threads(void)
{
    pthread_t threads[N_THREADS];
    for (uintptr_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, intern_all, (void *)i), 0);
    for (uint32_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Two threads that meet a new name at once may both define it; afterwards all get one number, and
 * every number that anyone got has been defined with that text. */
static void test_threads(void **unused)
{
    (void)unused;
    open_recorder();
    intern_on_all_threads();
    memcpy(first_given, given, sizeof given);
    intern_on_all_threads();
    struct definitions *d = read_definitions();
    for (uint32_t i = 0; i < N_NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "name %u", i);
        for (uint32_t t = 0; t < N_THREADS; t++) {
            assert_string_equal(d->texts[first_given[t][i]], name);
            assert_string_equal(d->texts[given[t][i]], name);
            assert_int_equal(given[t][i], given[0][i]);
        }
    }
    assert_in_range(d->n_strings, N_NAMES, N_NAMES * N_THREADS);
    free_definitions(d);
    close_recorder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_full_table),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
