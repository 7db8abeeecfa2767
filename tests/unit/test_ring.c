/* SPDX-License-Identifier: MIT */
/* test_ring.c - pages taken and given back by many threads at once; records as they become visible;
 * copies of ring files. Runs under TSan. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/ring.h"
#include "trace_kit.h"

static const uint8_t id[16] = "ring ring ring r";

static void test_take_and_give_back(void **unused)
{
    (void)unused;
    enum { N = 10 };
    struct tmk_ring ring;
    struct tmk_page *pages[N];
    assert_int_equal(tmk_ring_create(&ring, NULL, N, id, "/nowhere", NULL), 0);
    assert_false(ring.has_file);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < N; i++) {
            pages[i] = tmk_ring_take(&ring, 100 + i);
            assert_non_null(pages[i]);
            assert_int_equal(pages[i]->thread, 100 + i);
            assert_int_equal(pages[i]->number, round * N + i + 1);
            assert_int_equal(atomic_load(&pages[i]->state), TMK_PAGE_USED);
            assert_int_equal(atomic_load(&pages[i]->done), 0);
            for (uint32_t k = 0; k < i; k++)
                assert_ptr_not_equal(pages[i], pages[k]);
            memset((void *)pages[i]->slots, 0xee, sizeof pages[i]->slots);
            atomic_store(&pages[i]->done, 77);
        }
        assert_null(tmk_ring_take(&ring, 1));
        for (uint32_t i = 0; i < N; i++)
            tmk_ring_give_back(&ring, pages[i]);
    }
    static const uint8_t zeros[sizeof pages[0]->slots]; /* a free page is empty */
    assert_memory_equal((void *)ring.pages[3].slots, zeros, sizeof zeros);
    tmk_ring_close(&ring);
}

/* ---- the free list under fire ---- */

enum { N_STRESS_PAGES = 7, N_TAKERS = 4, N_TURNS = 20000 };

struct stress {
    struct tmk_ring ring;
    _Atomic uint32_t owner[N_STRESS_PAGES]; /* who has the page, 0: nobody */
    _Atomic uint64_t n_taken, n_refused, n_wrong;
};

struct taker {
    struct stress *s;
    uint32_t number;
};

/* Take a few pages, mark them as one's own, put them back: two owners of one page are a fault of
 * the list (the ABA kind, if it is one). */
static void *take_and_give(void *arg)
{
    const struct taker *me = arg;
    struct stress *s = me->s;
    struct tmk_page *held[3];
    for (uint32_t turn = 0; turn < N_TURNS; turn++) {
        uint32_t n = 0;
        for (uint32_t want = 1 + turn % 3; n < want; n++) {
            held[n] = tmk_ring_take(&s->ring, me->number);
            if (!held[n]) {
                atomic_fetch_add(&s->n_refused, 1);
                break;
            }
            uint32_t nobody = 0, at = (uint32_t)(held[n] - s->ring.pages);
            if (!atomic_compare_exchange_strong(&s->owner[at], &nobody, me->number))
                atomic_fetch_add(&s->n_wrong, 1);
            atomic_fetch_add(&s->n_taken, 1);
        }
        while (n > 0) {
            struct tmk_page *page = held[--n];
            atomic_store(&s->owner[page - s->ring.pages], 0);
            tmk_ring_give_back(&s->ring, page);
        }
    }
    return NULL;
}

static void test_many_takers(void **unused)
{
    (void)unused;
    struct stress *s = calloc(1, sizeof *s);
    struct taker takers[N_TAKERS];
    pthread_t threads[N_TAKERS];
    assert_int_equal(tmk_ring_create(&s->ring, NULL, N_STRESS_PAGES, id, "/nowhere", NULL), 0);
    for (uint32_t i = 0; i < N_TAKERS; i++) {
        takers[i] = (struct taker){s, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
    }
    for (uint32_t i = 0; i < N_TAKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(s->n_wrong, 0);
    assert_int_equal(atomic_load(&s->ring.header->next_page_number), s->n_taken + 1);
    for (uint32_t i = 0; i < N_STRESS_PAGES; i++) /* none got lost */
        assert_non_null(tmk_ring_take(&s->ring, 1));
    assert_null(tmk_ring_take(&s->ring, 1));
    tmk_ring_close(&s->ring);
    free(s);
}

/* ---- records ---- */

static void *write_page(void *arg)
{
    struct tmk_page *page = arg;
    for (uint32_t i = 0; i < TMK_PAGE_SLOTS; i++) {
        struct tmk_record *r = &page->slots[i];
        r->ticks = i;
        r->a = i * 3;
        r->b = ~(uint64_t)i;
        tmk_record_publish(
            r, (union tmk_record_head){{.kind = TMK_KIND_ALLOC, .n_slots = 1, .id = i}});
    }
    tmk_page_seal(page);
    return NULL;
}

/* Whoever sees a record's head sees all of it; whoever sees the seal sees all records. */
static void test_records_are_whole(void **unused)
{
    (void)unused;
    struct tmk_ring ring;
    assert_int_equal(tmk_ring_create(&ring, NULL, 2, id, "/nowhere", NULL), 0);
    for (int round = 0; round < 300; round++) {
        struct tmk_page *page = tmk_ring_take(&ring, 1);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, write_page, page), 0);
        uint32_t n = 0;
        bool sealed = false;
        while (n < TMK_PAGE_SLOTS) {
            struct tmk_record *r = &page->slots[n];
            sealed = atomic_load_explicit(&page->state, memory_order_acquire) == TMK_PAGE_SEALED;
            union tmk_record_head head = {.word =
                                              atomic_load_explicit(&r->head, memory_order_acquire)};
            if (head.kind == TMK_KIND_NONE) {
                assert_false(sealed);
                continue;
            }
            assert_int_equal(head.id, n);
            assert_int_equal(r->ticks, n);
            assert_int_equal(r->a, n * 3);
            assert_true(r->b == ~(uint64_t)n);
            n++;
        }
        pthread_join(thread, NULL);
        tmk_ring_give_back(&ring, page);
    }
    tmk_ring_close(&ring);
}

/* ---- files ---- */

static void test_file(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    struct tmk_ring ring, copy;
    struct tmk_error err = {0};
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    assert_int_equal(tmk_ring_create(&ring, path, 4, id, "/the/trace", NULL), 0);
    assert_true(ring.has_file);
    assert_in_range(ring.fd, 100, 100000); /* out of the program's way */
    assert_int_equal(tmk_ring_create(&copy, path, 4, id, "", &err), TMK_EIO);
    assert_int_equal(err.os_error, EEXIST);
    struct tmk_page *page = tmk_ring_take(&ring, 9);
    page->slots[0].a = 1234;

    assert_int_equal(tmk_ring_copy(&copy, path, true, NULL), 0);
    assert_int_equal(copy.n_pages, 4);
    assert_string_equal(copy.header->trace_path, "/the/trace");
    assert_int_equal(copy.pages[page - ring.pages].slots[0].a, 1234);
    assert_int_equal(copy.pages[page - ring.pages].thread, 9);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&copy.pages[i].state),
                         &ring.pages[i] == page ? TMK_PAGE_USED : TMK_PAGE_FREE);
    tmk_ring_close(&copy);

    atomic_fetch_add(&ring.header->epoch, 1); /* records are being moved: wait, then say so */
    assert_int_equal(tmk_ring_copy(&copy, path, true, &err), TMK_EBUSY);
    assert_int_equal(tmk_ring_copy(&copy, path, false, NULL), 0);
    tmk_ring_close(&copy);

    pid_t pid = fork(); /* a lock of one's own is not seen by oneself: ask from another process */
    if (pid == 0)
        _exit(tmk_ring_is_held(path) == 1 ? 0 : 1);
    int status = -1;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    close(ring.fd); /* as a program might: the mapping still tells */
    pid = fork();
    if (pid == 0)
        _exit(tmk_ring_is_held(path) == 1 ? 0 : 1);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    ring.fd = -1;
    tmk_ring_close(&ring);
    assert_int_equal(tmk_ring_is_held(path), 0);
    unlink(path);
    assert_int_equal(tmk_ring_is_held(path), 0);
    assert_int_equal(tmk_ring_copy(&copy, path, false, &err), TMK_EIO);
    kit_file_write(path, "TMKRING1 but no more", 20);
    assert_int_equal(tmk_ring_copy(&copy, path, false, &err), TMK_EFORMAT);
    kit_folder_remove(folder);
}

/* A file-size limit in the way: memory without a file, and no signal. */
static void test_file_limit(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {30000, 30000};
        struct tmk_ring ring;
        setrlimit(RLIMIT_FSIZE, &limit);
        bool ok = tmk_ring_create(&ring, path, 4, id, "", NULL) == 0 && !ring.has_file &&
                  access(path, F_OK) < 0 && tmk_ring_take(&ring, 1) != NULL;
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    kit_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_and_give_back), cmocka_unit_test(test_many_takers),
        cmocka_unit_test(test_records_are_whole),  cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
