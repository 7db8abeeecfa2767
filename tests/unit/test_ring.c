/* SPDX-License-Identifier: MIT */
/* test_ring.c - pages taken and given back by many threads at once; records as they become visible;
 * copies of ring files. Runs under TSan. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/ring.h"
#include "trace/ring_file.h"
#include "trace_kit.h"

static const uint8_t id[16] = "ring ring ring r";

static void test_take_and_give_back(void **unused)
{
    (void)unused;
    enum { N = 10 };
    struct tmk_ring ring;
    struct tmk_page *pages[N];
    assert_int_equal(tmk_ring_create(&ring, NULL, N, N, id, "/nowhere", NULL), 0);
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
        assert_true(tmk_ring_is_valid(&ring));
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
    assert_int_equal(
        tmk_ring_create(&s->ring, NULL, N_STRESS_PAGES, N_STRESS_PAGES, id, "/nowhere", NULL), 0);
    for (uint32_t i = 0; i < N_TAKERS; i++) {
        takers[i] = (struct taker){s, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
    }
    for (uint32_t i = 0; i < N_TAKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(s->n_wrong, 0);
    assert_int_equal(atomic_load(&s->ring.header->next_page_number), s->n_taken + 1);
    assert_true(tmk_ring_is_valid(&s->ring));
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
    assert_int_equal(tmk_ring_create(&ring, NULL, 2, 2, id, "/nowhere", NULL), 0);
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
        assert_true(tmk_ring_is_valid(&ring));
        tmk_ring_give_back(&ring, page);
        assert_true(tmk_ring_is_valid(&ring));
    }
    tmk_ring_close(&ring);
}

/* ---- files ---- */

static int copy_of(const char *path, struct tmk_ring *ret, bool live, struct tmk_error *err)
{
    struct tmk_ring_file file;
    int rc = tmk_ring_file_open(&file, path, err);
    if (rc == 0) {
        rc = tmk_ring_copy(ret, file.fd, path, live, 500000000, err);
        tmk_ring_file_close(&file);
    }
    return rc;
}

/* As tmk_ring_file_is_held(), of a path; 0 when there is none. */
static int is_held(const char *path)
{
    struct tmk_ring_file file;
    if (tmk_ring_file_open(&file, path, NULL) < 0)
        return 0;
    int held = tmk_ring_file_is_held(&file);
    tmk_ring_file_close(&file);
    return held;
}

static void test_file(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    struct tmk_ring ring, copy;
    struct tmk_error err = {0};
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    assert_int_equal(tmk_ring_create(&ring, path, 4, 4, id, "/the/trace", NULL), 0);
    assert_true(ring.has_file);
    assert_int_equal(tmk_ring_create(&copy, path, 4, 4, id, "", &err), TMK_EIO);
    assert_int_equal(err.os_error, EEXIST);
    struct tmk_page *page = tmk_ring_take(&ring, 9);
    page->slots[0].a = 1234;

    assert_int_equal(copy_of(path, &copy, true, NULL), 0);
    assert_int_equal(tmk_ring_n_pages(&copy), 4);
    assert_string_equal(copy.header->trace_path, "/the/trace");
    assert_int_equal(copy.pages[page - ring.pages].slots[0].a, 1234);
    assert_int_equal(copy.pages[page - ring.pages].thread, 9);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&copy.pages[i].state),
                         &ring.pages[i] == page ? TMK_PAGE_USED : TMK_PAGE_FREE);
    tmk_ring_close(&copy);

    atomic_fetch_add(&ring.header->epoch, 1); /* records are being moved: wait, then say so */
    assert_int_equal(copy_of(path, &copy, true, &err), TMK_EBUSY);
    assert_int_equal(copy_of(path, &copy, false, NULL), 0);
    tmk_ring_close(&copy);
    tmk_ring_close(&ring);
    unlink(path);
    assert_int_equal(copy_of(path, &copy, false, &err), TMK_EIO);
    kit_file_write(path, "TMKRING1 but no more", 20);
    assert_int_equal(copy_of(path, &copy, false, &err), TMK_EFORMAT);
    kit_folder_remove(folder);
}

/* Whether the ring is held depends on the mapping alone: not on descriptors, nor on children. */
static void test_liveness(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    struct tmk_ring ring;
    int pipe_of_child[2], end_of_test[2], status = -1;
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    assert_int_equal(pipe(pipe_of_child), 0);
    assert_int_equal(pipe(end_of_test), 0);
    pid_t owner = fork();
    if (owner == 0) { /* makes a ring, closes everything, leaves a child behind when it is killed */
        char byte = tmk_ring_create(&ring, path, 2, 2, id, "", NULL) == 0 ? 'a' : 'b';
        for (int fd = 3; fd < 1024; fd++)
            if (fd != pipe_of_child[1] && fd != end_of_test[0])
                close(fd);
        if (fork() > 0)
            (void)!write(pipe_of_child[1], &byte, 1);
        (void)!read(end_of_test[0], &byte, 1);
        _exit(0);
    }
    char byte = 0;
    assert_int_equal(read(pipe_of_child[0], &byte, 1), 1);
    assert_int_equal(byte, 'a');
    assert_int_equal(is_held(path), 1);
    kill(owner, SIGKILL);
    waitpid(owner, &status, 0);
    assert_int_equal(is_held(path), 0); /* its child lives */
    close(pipe_of_child[0]);
    close(pipe_of_child[1]);
    close(end_of_test[0]);
    close(end_of_test[1]);
    kit_folder_remove(folder);
}

/* Whoever merges holds another lock, which makes nobody take the ring for a living process's. */
static void test_merging_lock(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    struct tmk_ring ring;
    struct tmk_ring_file one, two;
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    assert_int_equal(tmk_ring_create(&ring, path, 2, 2, id, "", NULL), 0);
    tmk_ring_close(&ring);
    assert_int_equal(tmk_ring_file_open(&one, path, NULL), 0);
    assert_int_equal(tmk_ring_file_open(&two, path, NULL), 0);
    assert_int_equal(tmk_ring_file_lock(&one, 0), 0);
    assert_int_equal(tmk_ring_file_is_held(&two), 0);
    assert_int_equal(tmk_ring_file_lock(&two, 10000000), TMK_EBUSY);
    assert_true(tmk_ring_file_remove(&one));
    assert_false(tmk_ring_file_remove(&one)); /* its name stands for nothing now */
    tmk_ring_file_close(&one);
    assert_int_equal(tmk_ring_file_lock(&two, 0), TMK_EBUSY); /* merged and gone */
    tmk_ring_file_close(&two);
    kit_folder_remove(folder);
}

/* A name that has become another file's is not removed, and links are not followed. */
static void test_other_file(void **unused)
{
    (void)unused;
    char folder[256], path[300], other[300];
    struct tmk_ring ring;
    struct tmk_ring_file file;
    struct tmk_error err = {0};
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    snprintf(other, sizeof other, "%s/precious", folder);
    assert_int_equal(tmk_ring_create(&ring, path, 2, 2, id, "", NULL), 0);
    tmk_ring_close(&ring);
    assert_int_equal(tmk_ring_file_open(&file, path, NULL), 0);
    kit_file_write(other, "keys", 4);
    assert_int_equal(rename(other, path), 0);
    assert_false(tmk_ring_file_remove(&file));
    assert_int_equal(access(path, F_OK), 0);
    tmk_ring_file_close(&file);
    unlink(path);
    kit_file_write(other, "keys", 4);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(tmk_ring_file_open(&file, path, &err), TMK_EFORMAT);
    assert_int_equal(tmk_ring_file_open(&file, other, &err), TMK_EFORMAT); /* not a ring's name */
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(tmk_ring_file_open(&file, path, &err), TMK_EFORMAT);
    kit_folder_remove(folder);
}

static void test_growing(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    struct tmk_ring ring, copy;
    struct stat st;
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    assert_int_equal(tmk_ring_create(&ring, path, 2, 10, id, "/the/trace", NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_blocks * 512 <= (off_t)tmk_ring_bytes(2)); /* the rest is a hole */
    struct tmk_page *pages[10];
    for (int i = 0; i < 2; i++)
        assert_non_null(pages[i] = tmk_ring_take(&ring, 1));
    assert_null(tmk_ring_take(&ring, 1));
    assert_int_equal(tmk_ring_grow(&ring, 3, false), 3);
    assert_int_equal(tmk_ring_grow(&ring, 30, false), 5);
    assert_int_equal(tmk_ring_grow(&ring, 1, false), TMK_EFULL);
    for (int i = 2; i < 10; i++) {
        assert_non_null(pages[i] = tmk_ring_take(&ring, 1));
        assert_ptr_equal(pages[i], &ring.pages[pages[i] - ring.pages]);
        memset((void *)pages[i]->slots, 0xee, sizeof pages[i]->slots);
    }
    assert_null(tmk_ring_take(&ring, 1));
    assert_int_equal(copy_of(path, &copy, true, NULL), 0);
    assert_int_equal(tmk_ring_n_pages(&copy), 10);
    tmk_ring_close(&copy);
    assert_true(tmk_ring_abandon(&ring)); /* threads may still write */
    memset((void *)pages[3]->slots, 0xee, sizeof pages[3]->slots);
    assert_int_equal(is_held(path), 0);
    tmk_ring_close(&ring);
    kit_folder_remove(folder);
}

static _Atomic bool may_stop;

static void *write_on(void *arg)
{
    volatile _Atomic uint64_t *word = arg;
    while (!atomic_load(&may_stop))
        atomic_store(word, 1);
    return NULL;
}

/* A thread that is in the middle of a record writes on, at every moment of it. */
static void test_abandon_under_writer(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    for (int i = 0; i < 300; i++) {
        struct tmk_ring ring;
        pthread_t writer;
        assert_int_equal(tmk_ring_create(&ring, path, 64, 64, id, "/the/trace", NULL), 0);
        _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)ring.pages[0].slots;
        atomic_store(&may_stop, false);
        assert_int_equal(pthread_create(&writer, NULL, write_on, word), 0);
        while (atomic_load(word) == 0)
            ;
        unlink(path);
        assert_true(tmk_ring_abandon(&ring));
        atomic_store(&may_stop, true);
        pthread_join(writer, NULL);
        tmk_ring_close(&ring);
    }
    kit_folder_remove(folder);
}

#ifndef __SANITIZE_THREAD__ /* its own tables find no memory under this limit */
/* Where there is no memory for that, the ring stays as it is. */
static void test_abandon_fails(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.ring", folder);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {4 << 20, 4 << 20};
        struct tmk_ring ring;
        bool ok = tmk_ring_create(&ring, path, 4, TMK_RING_PAGES, id, "", NULL) == 0;
        setrlimit(RLIMIT_DATA, &limit);
        ok = ok && !tmk_ring_abandon(&ring);
        struct tmk_page *page = ok ? tmk_ring_take(&ring, 1) : NULL;
        if (page)
            memset((void *)page->slots, 1, sizeof page->slots);
        _exit(page ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    kit_folder_remove(folder);
}
#endif

/* A file-size limit in the way: memory without a file, and no signal. */
/* ---- the name of a new file ---- */

static struct links { /* calls by descriptor, those that worked, and by a path in /proc */
    bool is_refused;
    int n_asked, n_done, n_by_path;
} links;

int linkat(int from, const char *name, int folder, const char *new_name, int flags)
{
    bool by_descriptor = (flags & AT_EMPTY_PATH) != 0;
    errno = ENOENT;
    int rc = by_descriptor && links.is_refused
                 ? -1
                 : (int)syscall(SYS_linkat, from, name, folder, new_name, flags);
    links.n_asked += by_descriptor;
    links.n_done += by_descriptor && rc == 0;
    links.n_by_path += !by_descriptor;
    return rc;
}

/* /proc is looked at only where the kernel wants it: that a thread's folder there was looked at is
 * what a parent waits for when the process has ended (ring.c). */
static void test_name(void **unused)
{
    (void)unused;
    char folder[256], path[300];
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    for (int i = 0; i < 2; i++) {
        struct tmk_ring ring;
        links = (struct links){.is_refused = i == 1};
        snprintf(path, sizeof path, "%s/%d.ring", folder, i);
        assert_int_equal(tmk_ring_create(&ring, path, 4, 4, id, "", NULL), 0);
        assert_true(ring.has_file);
        assert_int_equal(access(path, F_OK), 0);
        assert_int_equal(links.n_asked, 1);
        assert_int_equal(links.n_by_path, 1 - links.n_done);
        tmk_ring_close(&ring);
        unlink(path);
    }
    kit_folder_remove(folder);
}

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
        bool ok = tmk_ring_create(&ring, path, 4, 4, id, "", NULL) == 0 && !ring.has_file &&
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
        cmocka_unit_test(test_take_and_give_back),
        cmocka_unit_test(test_many_takers),
        cmocka_unit_test(test_records_are_whole),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_file_limit),
        cmocka_unit_test(test_liveness),
        cmocka_unit_test(test_merging_lock),
        cmocka_unit_test(test_other_file),
        cmocka_unit_test(test_growing),
        cmocka_unit_test(test_abandon_under_writer),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(test_abandon_fails),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
