/* SPDX-License-Identifier: MIT */
/* test_native.c - native stacks. The truth is glibc's backtrace(), called in the same place: the
 * same addresses, all of them, through a library, a signal, a thread, deep recursion, frames that
 * align their stack, and wherever a timer's signal comes in. Runs under TSan. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "chain.h"
#include "record/core/intern.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/native/mapped_files.h"
#include "record/native/native.h"
#include "record/native/unwind.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/ring.h"

#define NOINLINE __attribute__((noinline))

enum { MAX = TMK_NATIVE_MAX_FRAMES, N_PAGES = 64 };
static const uint8_t trace_id[16] = "native stacks";
static struct tmk_control control;
static int (*glibc_backtrace)(void **pcs, int max);

static int open_recorder(void **unused)
{
    (void)unused;
    void *warm[2], *libc = dlopen("libc.so.6", RTLD_LAZY); /* its own, not a sanitizer's */
    void *symbol = dlsym(libc, "backtrace");
    assert_non_null(symbol);
    memcpy(&glibc_backtrace, &symbol, sizeof symbol);
    (void)glibc_backtrace(warm, 2); /* it loads libgcc the first time */
    assert_int_equal(
        tmk_ring_create(&tmk_recorder.ring, NULL, N_PAGES, N_PAGES, trace_id, "", NULL), 0);
    assert_int_equal(tmk_intern_reset(), 0);
    tmk_recorder.counter = tmk_clock_has_counter();
    tmk_recorder.control = &control;
    tmk_recorder_set_armed(true);
    return tmk_native_open(false);
}

static int close_recorder(void **unused)
{
    (void)unused;
    tmk_recorder_disarm();
    tmk_ring_close(&tmk_recorder.ring);
    return 0;
}

/* Both walks from here. [0] is in this function for both and differs; the rest is the callers'. */
struct look {
    uintptr_t ours[MAX];
    void *theirs[MAX];
    uint32_t n_ours, n_theirs;
};

static NOINLINE void take_look(void *arg)
{
    struct look *look = arg;
    look->n_ours = tmk_native_walk(look->ours, MAX);
    look->n_theirs = (uint32_t)glibc_backtrace(look->theirs, MAX);
}

/* How many of the callers' frames are the same; all of them when it is n − 1. */
static uint32_t n_same(const struct look *look)
{
    uint32_t i = 1;
    while (i < look->n_ours && i < look->n_theirs && look->ours[i] == (uintptr_t)look->theirs[i])
        i++;
    return i - 1;
}

static bool is_same(const struct look *look)
{
    return look->n_ours == look->n_theirs && n_same(look) + 1 == look->n_ours;
}

static void check_same(const struct look *look, uint32_t n_least)
{
    assert_int_equal(look->n_ours, look->n_theirs);
    assert_int_equal(n_same(look) + 1, look->n_theirs);
    assert_true(look->n_ours >= n_least);
}

/* ---- ways to get there ---- */

static _Atomic int after;

static NOINLINE void call_plain(struct look *look)
{
    take_look(look);
    after++;
}

static NOINLINE void recurse(struct look *look, int depth)
{
    if (depth == 0)
        take_look(look);
    else
        recurse(look, depth - 1);
    after++;
}

static struct look *sorted_look;

static int compare_and_look(const void *a, const void *b)
{
    take_look(sorted_look);
    return *(const int *)a - *(const int *)b;
}

static void *in_thread(void *arg)
{
    chain_call(take_look, arg);
    return NULL;
}

static void check_all_ways(void)
{
    struct look look;
    call_plain(&look);
    check_same(&look, 6);
    chain_call(take_look, &look);
    check_same(&look, 7);
    for (size_t n = 0; n < 300; n += 13) {
        chain_call_aligned(take_look, &look, n);
        check_same(&look, 6);
    }
    int numbers[] = {3, 2, 1};
    sorted_look = &look;
    qsort(numbers, 3, sizeof numbers[0], compare_and_look);
    check_same(&look, 7);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, in_thread, &look), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    check_same(&look, 6);
}

static void test_ways(void **unused)
{
    (void)unused;
    check_all_ways();
    check_all_ways(); /* by rules that are kept now */
}

/* More frames than are kept: the innermost 128. */
static void test_deep(void **unused)
{
    (void)unused;
    struct look look;
    for (int depth = 100; depth < 200; depth++) {
        recurse(&look, depth);
        check_same(&look, 100);
    }
    assert_int_equal(look.n_ours, MAX);
    recurse(&look, 5000);
    check_same(&look, MAX);
}

/* ---- signals ---- */

static struct look signal_look;

static void on_signal(int unused)
{
    (void)unused;
    take_look(&signal_look);
}

static void test_signal(void **unused)
{
    (void)unused;
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGUSR1, &action, &before);
    for (int i = 0; i < 3; i++) {
        memset(&signal_look, 0, sizeof signal_look);
        raise(SIGUSR1);
        check_same(&signal_look, 8);
    }
    sigaction(SIGUSR1, &before, NULL);
}

static volatile sig_atomic_t n_ticks, n_wrong;
static struct look wrong_look;

static void on_tick(int unused)
{
    (void)unused;
    take_look(&signal_look);
    n_ticks++;
    if (!is_same(&signal_look) && n_wrong++ == 0)
        wrong_look = signal_look;
}

static NOINLINE double work(void)
{
    char text[256];
    double sum = 0;
    int numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = (i * 7919) % 101;
    sorted_look = &(struct look){0};
    for (int i = 1; i < 64; i++)
        sum += (double)snprintf(text, sizeof text, "%d %f %s", numbers[i], sum / i, "text");
    char *copy = strdup(text);
    sum += strtod(copy, NULL);
    free(copy);
    return sum;
}

/* Wherever a signal comes in: in the middle of prologues, of libc, of the dynamic linker's stubs.
 */
static void test_anywhere(void **unused)
{
    (void)unused;
    enum { N = 200 };
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, before;
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGPROF, &action, &before);
    setitimer(ITIMER_PROF, &every, NULL);
    double sum = 0;
    while (n_ticks < N)
        sum += work();
    setitimer(ITIMER_PROF, &never, NULL);
    sigaction(SIGPROF, &before, NULL);
    assert_true(sum > 0);
    for (uint32_t i = 0; n_wrong && i < wrong_look.n_theirs; i++)
        print_message("%2u ours %#lx theirs %p\n", i,
                      i < wrong_look.n_ours ? (unsigned long)wrong_look.ours[i] : 0,
                      wrong_look.theirs[i]);
    assert_int_equal(n_wrong, 0);
}

/* A stack that nobody knows the end of is not walked. */
static void test_other_stack(void **unused)
{
    (void)unused;
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536}, none = {.ss_flags = SS_DISABLE};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, before;
    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &action, &before);
    for (int i = 0; i < 20; i++) {
        raise(SIGUSR1);
        assert_int_equal(signal_look.n_ours, 0);
    }
    sigaction(SIGUSR1, &before, NULL);
    sigaltstack(&none, NULL);
    free(other.ss_sp);
    struct look look;
    call_plain(&look);
    check_same(&look, 6);
}

/* ---- frame ids ---- */

struct definitions {
    uint32_t n_modules, n_frames;
    struct {
        uint32_t module;
        uint64_t address;
    } frames[1000];
    struct {
        char path[512];
        uint8_t build_id[TMK_BUILD_ID_MAX_BYTES];
        uint32_t build_id_bytes;
    } modules[100];
};

static void keep_module(struct definitions *d, uint32_t id, const struct tmk_record *r)
{
    assert_in_range(id, 1, 99);
    uint32_t n_id = (uint32_t)(r->a >> 32), n = (uint32_t)r->a;
    assert_true(n_id <= n && n - n_id < sizeof d->modules[id].path);
    memcpy(d->modules[id].build_id, &r->b, n_id);
    d->modules[id].build_id_bytes = n_id;
    memcpy(d->modules[id].path, (const char *)&r->b + n_id, n - n_id);
    d->n_modules++;
}

/* What this thread's page has. */
static struct definitions *read_definitions(void)
{
    struct definitions *d = calloc(1, sizeof *d);
    for (const struct tmk_record *r = tmk_lane.end - TMK_PAGE_SLOTS; r < tmk_lane.cursor;) {
        union tmk_record_head head = {.word = atomic_load(&r->head)};
        if (head.kind == TMK_KIND_DEF_MODULE)
            keep_module(d, head.id, r);
        if (head.kind == TMK_KIND_DEF_NATIVE_FRAME) {
            assert_in_range(head.id, 1, 999);
            d->frames[head.id].module = (uint32_t)r->a;
            d->frames[head.id].address = r->b;
            d->n_frames++;
        }
        r += head.n_slots;
    }
    return d;
}

struct ids {
    uint32_t ids[MAX], n;
    uintptr_t pcs[MAX];
    uint32_t n_pcs, skip;
};

static NOINLINE void take_ids(void *arg)
{
    struct ids *out = arg;
    struct tmk_lane *lane = tmk_lane_enter();
    assert_non_null(lane);
    out->n_pcs = tmk_native_walk(out->pcs, MAX);
    out->n = tmk_native_frames(lane, out->skip, NULL, out->ids, MAX);
    tmk_lane_leave(lane);
}

/* Frame i is the one at this address: module and address as dladdr() has them. */
static void check_frame(const struct definitions *d, uint32_t id, uintptr_t pc)
{
    struct link_map *map = NULL;
    Dl_info info;
    char real[4096];
    assert_true(dladdr1((void *)(pc - 1), &info, (void **)&map, RTLD_DL_LINKMAP) != 0);
    assert_int_equal(d->frames[id].address, pc - map->l_addr);
    const char *path = d->modules[d->frames[id].module].path;
    const char *name = map->l_name[0] ? map->l_name : "/proc/self/exe";
    char *expected = realpath(name, real);
    assert_non_null(expected);
    char *found = realpath(path, NULL);
    assert_non_null(found);
    assert_int_equal(path[0], '/');
    assert_string_equal(found, expected);
    free(found);
}

static void test_ids(void **unused)
{
    (void)unused;
    struct ids first = {.skip = 0}, again = {.skip = 0}, skipped = {.skip = 3};
    chain_call(take_ids, &first);
    struct definitions *d = read_definitions();
    assert_true(first.n >= 7);
    assert_int_equal(first.n, first.n_pcs);
    assert_int_equal(d->n_frames, first.n); /* each once, defined before it was used */
    assert_int_equal(d->n_modules, 4);      /* program, chain, cmocka, libc */
    for (uint32_t i = 1; i < first.n; i++)  /* [0] differs: two calls */
        check_frame(d, first.ids[i], first.pcs[i]);
    free(d);

    chain_call(take_ids, &again);
    assert_int_equal(again.n, first.n);
    assert_memory_equal(again.ids + 5, first.ids + 5, (first.n - 5) * sizeof(uint32_t));
    chain_call(take_ids, &skipped);
    assert_int_equal(skipped.n, first.n - 3);
    assert_memory_equal(skipped.ids, first.ids + 3, 1 * sizeof(uint32_t));

    tmk_recorder_disarm(); /* another trace: everything is defined again, from 1 */
    assert_int_equal(tmk_intern_reset(), 0);
    tmk_recorder_set_armed(true);
    tmk_ring_close(&tmk_recorder.ring);
    assert_int_equal(
        tmk_ring_create(&tmk_recorder.ring, NULL, N_PAGES, N_PAGES, trace_id, "", NULL), 0);
    chain_call(take_ids, &again);
    d = read_definitions();
    assert_int_equal(again.n, first.n);
    assert_int_equal(d->n_frames, again.n);
    assert_int_equal(d->n_modules, 4);
    assert_int_equal(again.ids[0], 1);
    free(d);
}

/* ---- libraries that come and go ---- */

static void call_in(void *library, struct look *look)
{
    void (*call)(void (*visit)(void *), void *);
    void *symbol = dlsym(library, "chain_call");
    assert_non_null(symbol);
    memcpy(&call, &symbol, sizeof call);
    call(take_look, look);
}

/* A copy of the library, loaded and unloaded: what was known of it is forgotten. */
static void test_unload(void **unused)
{
    (void)unused;
    char command[256], copy[] = "/tmp/tmk-chain-XXXXXX";
    Dl_info info;
    assert_true(dladdr((const void *)(uintptr_t)&chain_call, &info) != 0);
    int fd = mkstemp(copy);
    assert_true(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "cp '%s' %s", info.dli_fname, copy);
    assert_int_equal(system(command), 0);
    void *library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    struct look look;
    uint32_t generation = tmk_mapped_files_generation();
    call_in(library, &look);
    check_same(&look, 7);
    tmk_mapped_files_refresh();
    assert_int_equal(tmk_mapped_files_generation(), generation);
    uintptr_t inside = look.ours[1];
    assert_non_null(tmk_mapped_file_find(inside));
    dlclose(library);
    assert_null(tmk_mapped_file_find(inside));
    tmk_mapped_files_refresh();
    assert_int_equal(tmk_mapped_files_generation(), generation + 1);
    library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    call_in(library, &look);
    check_same(&look, 7);
    dlclose(library);
    unlink(copy);
}

/* Without _dl_find_object(): an address in a new library is unknown until the packer has looked,
 * and what is known stays loaded. */
static void test_old_ways(void **unused)
{
    (void)unused;
    assert_int_equal(tmk_native_open(true), 0);
    tmk_mapped_files_refresh();
    check_all_ways();
    test_deep(unused);
    assert_int_equal(tmk_native_open(false), 0);
}

/* ---- damaged tables ---- */

/* The library's table, copied, with wrong bytes: rules may be wrong or none, but nothing outside is
 * read (ASan watches), and undamaged it says the same as the original. */
static void test_damaged_table(void **unused)
{
    (void)unused;
    struct look look;
    chain_call(take_look, &look);
    const struct tmk_mapped_file *m = tmk_mapped_file_find(look.ours[1] - 1);
    assert_non_null(m);
    size_t n = m->eh_end - m->eh_header; /* the table, and behind it the descriptions */
    uint8_t *copy = malloc(n);
    struct tmk_mapped_file damaged = {
        .eh_start = (uintptr_t)copy, .eh_end = (uintptr_t)copy + n, .eh_header = (uintptr_t)copy};
    uint64_t random = 3, n_rules = 0, n_asked = 0;
    for (int round = 0; round < 2000; round++) {
        memcpy(copy, (const void *)m->eh_header, n);
        for (int i = 0; i < round % 8; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            copy[(random >> 20) % n] = (uint8_t)(random >> 56);
        }
        for (uintptr_t pc = m->code_start; pc < m->code_end; pc += 23, n_asked++) {
            struct tmk_unwind_rule rule, truth;
            tmk_unwind_find(&damaged, pc - m->eh_header + damaged.eh_header, &rule);
            n_rules += rule.flags != TMK_RULE_NONE;
            if (round != 0)
                continue;
            tmk_unwind_find(m, pc, &truth);
            assert_memory_equal(&rule, &truth, sizeof rule);
        }
    }
    assert_in_range(n_rules, n_asked / 10, n_asked - 1);
    free(copy);
}

/* ---- many threads ---- */

static void *walk_often(void *arg)
{
    struct look look;
    for (int i = 0; i < 200; i++) {
        recurse(&look, i % 50);
        if (!is_same(&look))
            ++*(int *)arg;
        chain_call(take_look, &look);
        if (!is_same(&look))
            ++*(int *)arg;
    }
    return NULL;
}

static void test_threads(void **unused)
{
    (void)unused;
    enum { N = 8 };
    pthread_t threads[N];
    int wrong[N] = {0};
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, walk_often, &wrong[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_signal),      cmocka_unit_test(test_anywhere),
        cmocka_unit_test(test_other_stack), cmocka_unit_test(test_ids),
        cmocka_unit_test(test_unload),      cmocka_unit_test(test_threads),
        cmocka_unit_test(test_old_ways),    cmocka_unit_test(test_damaged_table),
    };
    return cmocka_run_group_tests(tests, open_recorder, close_recorder);
}
