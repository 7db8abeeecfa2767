/* SPDX-License-Identifier: MIT */
/* The sampler: figures of a machine that changes between looks, gaps, processes, the schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "device/device.h"
#include "kit/amount.h"
#include "monitor/device_leaks.h"
#include "monitor/growth.h"
#include "monitor/sampler.h"
#include "monitor/selection.h"
#include "tree_kit.h"

#define MIB (1ull << 20)
#define MS_NS 1000000ull

struct fixture {
    struct tree tree;
    struct tmk_devices *devices;
    struct tmk_sampler *sampler;
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
    tmk_sampler_close(f->sampler);
    tmk_devices_close(f->devices);
    tree_fini(&f->tree);
    free(f);
    return 0;
}

/* One card of 1000 MiB: so many MiB in one process, and lines more. */
static void set_card(struct fixture *f, unsigned pid, unsigned mib, const char *more)
{
    char text[256];
    snprintf(text, sizeof text, "device %llu A\nprocess %u %llu\n%s", 1000 * MIB, pid, mib * MIB,
             more);
    tree_cards(&f->tree, text);
}

static void open_with(struct fixture *f, const struct tmk_sampler_settings *settings)
{
    struct tmk_selection all;
    assert_int_equal(tmk_devices_open(&f->tree.roots, &f->devices, NULL), 0);
    assert_int_equal(tmk_selection_parse(f->devices, NULL, 0, &all, NULL), 0);
    assert_int_equal(tmk_sampler_open(f->devices, &all, settings, &f->sampler, NULL), 0);
    assert_int_equal(tmk_sampler_n_devices(f->sampler), 1);
}

static const struct tmk_watched_device *look(struct fixture *f)
{
    assert_int_equal(tmk_sampler_look(f->sampler, NULL), 0);
    return tmk_sampler_device(f->sampler, 0);
}

static void test_figures(void **state)
{
    struct fixture *f = *state;
    static const unsigned mib[] = {100, 700, 400};
    set_card(f, 41, 0, "");
    open_with(f, &(struct tmk_sampler_settings){.interval_ns = MS_NS});
    const struct tmk_watched_device *u = NULL;
    for (unsigned i = 0; i < 3; i++) {
        set_card(f, 41, mib[i], "reserved 1048576\n");
        u = look(f);
        assert_true(tmk_device_use_percent(u) == mib[i] / 10.0);
    }
    assert_int_equal(u->n_samples, 3);
    assert_int_equal(u->now.used_bytes, 400 * MIB);
    assert_int_equal(u->now.reserved_bytes, MIB);
    assert_int_equal(u->min_bytes, 100 * MIB);
    assert_int_equal(u->max_bytes, 700 * MIB);
    assert_true(u->sum_bytes == 1200 * MIB);
    assert_true(u->max_percent == 70.0);
    assert_int_equal(u->history.n, 3);
    assert_int_equal(u->n_processes, 0); /* nobody asked for them */
}

static void test_a_failure_is_a_gap(void **state)
{
    struct fixture *f = *state;
    set_card(f, 41, 500, "");
    open_with(f, &(struct tmk_sampler_settings){.interval_ns = MS_NS});
    look(f);
    set_card(f, 41, 500, "fail nvmlDeviceGetMemoryInfo 15\nfail nvmlDeviceGetMemoryInfo_v2 15\n");
    const struct tmk_watched_device *u = look(f);
    assert_false(u->has_now);
    assert_string_equal(u->reason, "NVML, card 0: GPU is lost (15)");
    set_card(f, 41, 500, "");
    u = look(f);
    assert_true(u->has_now);
    assert_string_equal(u->reason, "");
    assert_int_equal(u->n_samples, 2);
    assert_int_equal(u->n_gaps, 1);
    assert_int_equal(u->min_bytes, 500 * MIB);
    assert_true(u->history.entries[1].after_gap);
}

static void test_processes_come_and_go(void **state)
{
    struct fixture *f = *state;
    set_card(f, 41, 500, "process 40 1048576\nprocess 42 -\n");
    open_with(f, &(struct tmk_sampler_settings){.interval_ns = 1, .process_interval_ns = 1});
    const struct tmk_watched_device *u = look(f);
    assert_int_equal(u->n_processes, 3);
    assert_int_equal(u->processes[2].now.used_bytes, TMK_BYTES_UNKNOWN);
    assert_int_equal(u->processes[2].history.n, 0);
    set_card(f, 41, 600, "");
    u = look(f);
    assert_int_equal(u->n_processes, 1);
    assert_int_equal(u->processes[0].now.pid, 41);
    assert_int_equal(u->processes[0].history.n, 2);
    assert_int_equal(u->processes[0].history.entries[1].last_bytes, 600 * MIB);
    set_card(f, 41, 600, "fail nvmlDeviceGetComputeRunningProcesses_v3 4\n");
    u = look(f);
    assert_string_equal(u->process_reason, "NVML, card 0: Insufficient Permissions (4)");
    assert_int_equal(u->n_processes, 1);
}

/* A process that grows beside one that does not, for 40 looks. False: we were kept waiting for so
 * long that the curve is not what it should be. Many busy processes on one core make each other
 * wait for some 40 ms, so the looks are far enough apart for that. */
static bool grow(struct fixture *f)
{
    uint64_t before = tmk_clock_monotonic_ns();
    bool good = true;
    for (unsigned i = 0; i < 40; i++) {
        set_card(f, 41, 100 + 10 * i, "process 42 209715200\n");
        look(f);
        usleep(20000);
        good &= tmk_clock_monotonic_ns() - before < 120 * MS_NS;
        before = tmk_clock_monotonic_ns();
    }
    return good;
}

/* The process that grows and its device are found, the steady one is not. */
static void test_leaks(void **state)
{
    struct fixture *f = *state;
    struct tmk_leaks leaks;
    const struct tmk_sampler_settings settings = {.interval_ns = 1, .process_interval_ns = 1};
    set_card(f, 41, 0, "");
    open_with(f, &settings);
    while (!grow(f)) {
        f->sampler = tmk_sampler_close(f->sampler);
        f->devices = tmk_devices_close(f->devices);
        open_with(f, &settings);
    }
    assert_int_equal(tmk_leaks_find(f->sampler, 100 * MIB, 0, &leaks), 0);
    assert_int_equal(leaks.n, 3);
    assert_int_equal(leaks.n_leaks, 2);
    assert_true(!leaks.rows[0].process != !leaks.rows[1].process);
    assert_int_equal(leaks.rows[2].process->now.pid, 42);
    assert_int_equal(leaks.rows[2].growth.bytes, 0);
    tmk_leaks_fini(&leaks);
    set_card(f, 41, 500, "process 43 209715200\n");
    look(f);
    assert_int_equal(tmk_leaks_find(f->sampler, 100 * MIB, 0, &leaks), 0);
    for (uint64_t i = 0; i < leaks.n; i++) /* came late: not judged */
        assert_true(!leaks.rows[i].process || leaks.rows[i].process->now.pid != 43 ||
                    !leaks.rows[i].growth.is_known);
    tmk_leaks_fini(&leaks);
}

/* ---- processes that end ---- */

static const struct tmk_process_use *find(const struct tmk_watched_device *u, pid_t pid, bool ended)
{
    for (uint64_t i = 0; i < u->n_processes; i++)
        if (u->processes[i].now.pid == pid && u->processes[i].has_ended == ended)
            return &u->processes[i];
    return NULL;
}

/* The row of a process that has ended; NULL: there is none. */
static const struct tmk_leak_row *find_row(const struct tmk_leaks *leaks, pid_t pid)
{
    for (uint64_t i = 0; i < leaks->n; i++)
        if (leaks->rows[i].process && leaks->rows[i].process->now.pid == pid)
            return &leaks->rows[i];
    return NULL;
}

static void open_fast(struct fixture *f)
{
    set_card(f, 42, 100, "");
    open_with(f, &(struct tmk_sampler_settings){
                     .interval_ns = 1, .process_interval_ns = 1, .roots = &f->tree.roots});
}

/* A process that leaked until it was killed is judged over its life, however long we look on. */
static void test_leaked_and_died(void **state)
{
    struct fixture *f = *state;
    struct tmk_leaks leaks;
    open_fast(f);
    while (!grow(f)) {
        f->sampler = tmk_sampler_close(f->sampler);
        f->devices = tmk_devices_close(f->devices);
        open_fast(f);
    }
    for (unsigned i = 0; i < 200; i++) {
        set_card(f, 42, 200, "");
        look(f);
        usleep(500);
    }
    assert_int_equal(tmk_leaks_find(f->sampler, 100 * MIB, 0, &leaks), 0);
    assert_int_equal(leaks.n_leaks, 1);
    const struct tmk_leak_row *row = find_row(&leaks, 41);
    assert_true(row && row->is_leak && row->process->has_ended);
    assert_int_equal(row->process->now.used_bytes, 490 * MIB);
    assert_false(find_row(&leaks, 42)->process->has_ended);
    tmk_leaks_fini(&leaks);
}

static void look_often(struct fixture *f, unsigned pid, unsigned mib)
{
    for (unsigned i = 0; i < TMK_GROWTH_LEAST_SAMPLES; i++) {
        set_card(f, pid, mib + i, "");
        look(f);
    }
}

static void set_start(struct fixture *f, unsigned pid, const char *ticks)
{
    char text[160];
    snprintf(text, sizeof text, "%u (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %s 20\n",
             pid, ticks);
    tree_file(&f->tree, text, "proc/%u/stat", pid);
    tree_file(&f->tree, "Name:\ta ) b\n", "proc/%u/status", pid);
}

/* The start is the 22nd field. Another start is another process; the same one is back. */
static void test_reused_number(void **state)
{
    struct fixture *f = *state;
    open_fast(f);
    set_start(f, 41, "1000");
    look_often(f, 41, 100);
    set_start(f, 41, "2000");
    look_often(f, 41, 700);
    const struct tmk_watched_device *u = tmk_sampler_device(f->sampler, 0);
    const struct tmk_process_use *old = find(u, 41, true), *now = find(u, 41, false);
    assert_true(old && now);
    assert_int_equal(old->start_ticks, 1000);
    assert_int_equal(old->now.used_bytes, (100 + TMK_GROWTH_LEAST_SAMPLES - 1) * MIB);
    assert_int_equal(now->start_ticks, 2000);
    assert_int_equal(now->history.entries[0].min_bytes, 700 * MIB);
    set_card(f, 43, 1, "");
    look(f);
    assert_true(find(u, 41, true) && !find(u, 41, false));
    set_card(f, 41, 800, "");
    look(f);
    now = find(u, 41, false);
    assert_int_equal(now->history.n, TMK_GROWTH_LEAST_SAMPLES + 1);
    assert_true(now->history.entries[TMK_GROWTH_LEAST_SAMPLES].after_gap);
}

/* So many at most; what goes first is what grew least, and what was too short is not kept. */
static void test_ended_are_bounded(void **state)
{
    struct fixture *f = *state;
    open_fast(f);
    for (unsigned n = 0; n < TMK_ENDED_MOST + 3; n++) {
        for (unsigned i = 0; i < TMK_GROWTH_LEAST_SAMPLES; i++) {
            set_card(f, 1000 + n, 100 + i * (n == 1 ? 0 : 1), "");
            look(f);
        }
    }
    set_card(f, 9, 1, "");
    look(f);
    set_card(f, 10, 1, "");
    const struct tmk_watched_device *u = look(f);
    assert_int_equal(u->n_processes, TMK_ENDED_MOST + 1);
    assert_null(find(u, 1001, true));
    assert_null(find(u, 9, true));
    assert_non_null(find(u, 1000 + TMK_ENDED_MOST + 2, true));
}

/* ---- the schedule ---- */

static void test_schedule(void **state)
{
    struct fixture *f = *state;
    uint64_t due, start;
    set_card(f, 41, 0, "");
    open_with(
        f, &(struct tmk_sampler_settings){.interval_ns = 50 * MS_NS, .duration_ns = 250 * MS_NS});
    start = tmk_sampler_start_ns(f->sampler);
    assert_true(tmk_sampler_due_ns(f->sampler, &due));
    assert_int_equal(due, start);
    look(f);
    assert_true(tmk_sampler_due_ns(f->sampler, &due));
    assert_int_equal(due, start + 50 * MS_NS); /* whenever the look was */
    while (tmk_clock_monotonic_ns() < start + 160 * MS_NS)
        usleep(1000);
    look(f); /* late: those of 100 and 150 ms are past, 150 ms is the last of them */
    assert_true(tmk_sampler_due_ns(f->sampler, &due));
    assert_true(due >= start + 150 * MS_NS && (due - start) % (50 * MS_NS) == 0);
    assert_int_equal(tmk_sampler_n_missed(f->sampler), (due - start) / (50 * MS_NS) - 2);
    while (tmk_clock_monotonic_ns() < start + 260 * MS_NS)
        usleep(1000);
    look(f);
    assert_false(tmk_sampler_due_ns(f->sampler, &due));
    assert_int_equal(
        tmk_sampler_device(f->sampler, 0)->n_samples + tmk_sampler_n_missed(f->sampler), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_figures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failure_is_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_processes_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leaks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leaked_and_died, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reused_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_schedule, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
