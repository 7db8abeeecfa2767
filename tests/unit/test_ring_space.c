/* SPDX-License-Identifier: MIT */
/* test_ring_space.c - threads of ours that look for rings of dead processes, while recordings come
 * and go. Not under TSan, which takes equal numbers in two tables of descriptors for one file. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/core/recorder.h"
#include "record/core/ring_space.h"
#include "trace/account.h"
#include "trace_kit.h"

static char rings[] = "/dev/shm/tidemark-test.XXXXXX";

/* While this is set, a thread that is not the main one waits before it reads a folder. */
static atomic_bool is_held;
static pthread_t main_thread;

/* The call by which folders are read (base/folder.c), in place of the C library's. */
long syscall(long number, ...)
{
    static long (*real)(long, ...);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    while (number == SYS_getdents64 && atomic_load(&is_held) &&
           !pthread_equal(pthread_self(), main_thread))
        usleep(1000);
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int n_sweepers(void)
{
    DIR *tasks = opendir("/proc/self/task");
    char path[300], name[32];
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        n += fgets(name, sizeof name, file) && strcmp(name, "tidemark-sweep\n") == 0;
        fclose(file);
    }
    closedir(tasks);
    return n;
}

/* The account `first` says that other processes have rings. */
static void look_with(struct tmk_account *first)
{
    assert_int_equal(tmk_ring_space_open(true), 0);
    atomic_store(&first->page->memory_used, 1 << 20);
    atomic_store(&first->page->swept_ns, 0);
    tmk_ring_space_look();
}

static void wait_for_sweepers(int n)
{
    for (int i = 0; i < 2000 && n_sweepers() != n; i++)
        usleep(1000);
    assert_int_equal(n_sweepers(), n);
}

/* A recording ends and another begins while a thread of the first is at it. */
static void test_one_sweep_at_a_time(void **unused)
{
    (void)unused;
    struct tmk_account first = {0};
    const char *folders[] = {rings};
    snprintf(tmk_recorder.settings.run_folder, sizeof tmk_recorder.settings.run_folder, "%s",
             kit_folder_make());
    strcpy(tmk_recorder.ring_folders[0], rings);
    tmk_recorder.pid = getpid();
    assert_int_equal(tmk_account_open(&first, folders, 1, tmk_recorder.settings.run_folder, NULL),
                     0);
    atomic_store(&is_held, true);
    look_with(&first);
    wait_for_sweepers(1);
    for (int i = 0; i < 3; i++) {
        tmk_ring_space_close();
        tmk_ring_space_reset();
        look_with(&first);
        usleep(2000);
        assert_int_equal(n_sweepers(), 1);
    }
    atomic_store(&is_held, false);
    wait_for_sweepers(0);
    atomic_store(&is_held, true);
    look_with(&first); /* now another may */
    wait_for_sweepers(1);
    atomic_store(&is_held, false);
    wait_for_sweepers(0);
    tmk_ring_space_close();
    tmk_account_close(&first);
    kit_folder_remove(tmk_recorder.settings.run_folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_sweep_at_a_time)};
    if (!mkdtemp(rings)) {
        fprintf(stderr, "NOT RUN: /dev/shm cannot be written\n");
        return 77;
    }
    main_thread = pthread_self();
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    kit_folder_remove(rings);
    return rc;
}
