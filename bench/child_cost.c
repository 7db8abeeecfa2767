/* SPDX-License-Identifier: MIT */
/* child_cost.c - what a forked worker costs that reports three blocks and ends by _exit(), as data
 * loaders' workers do.
 *
 *     child_cost N      N workers, one after the other; prints JSON:
 *         seconds       for all of them
 *         events        that were reported
 *         shm_bytes     what rings and accounts have in the folder for rings while eight more
 *                       workers, which have reported, are alive */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tidemark/tidemark.h"

enum { BLOCKS = 3, AT_ONCE = 8 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void report(void)
{
    for (uintptr_t i = 1; i <= BLOCKS; i++)
        tidemark_alloc(TIDEMARK_HOST, (void *)(i << 20), 64);
    for (uintptr_t i = 1; i <= BLOCKS; i++)
        tidemark_free(TIDEMARK_HOST, (void *)(i << 20));
}

static void run_worker(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        report();
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "child_cost: a worker failed\n");
        exit(1);
    }
}

static uint64_t ring_bytes(void)
{
    const char *named = getenv("TIDEMARK_RING_DIR");
    DIR *folder = opendir(named && *named ? named : "/dev/shm");
    uint64_t bytes = 0;
    struct stat st;
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, "tidemark.", 9) == 0 &&
            fstatat(dirfd(folder), entry->d_name, &st, 0) == 0)
            bytes += (uint64_t)st.st_blocks * 512;
    if (folder)
        closedir(folder);
    return bytes;
}

/* Eight more workers at once, all alive while we look at what their rings have. */
static uint64_t look_at_rings(void)
{
    int ready[2], go[2];
    char byte = 0;
    if (pipe(ready) < 0 || pipe(go) < 0)
        exit(1);
    for (int i = 0; i < AT_ONCE; i++)
        if (fork() == 0) {
            report();
            close(go[1]);
            (void)!write(ready[1], &byte, 1);
            (void)!read(go[0], &byte, 1);
            _exit(0);
        }
    for (int i = 0; i < AT_ONCE; i++)
        (void)!read(ready[0], &byte, 1);
    uint64_t bytes = ring_bytes();
    close(go[1]);
    while (wait(NULL) > 0)
        ;
    return bytes;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 0;
    if (n < 1) {
        fprintf(stderr, "usage: child_cost N\n");
        return 2;
    }
    double start = now_s();
    for (int i = 0; i < n; i++)
        run_worker();
    double seconds = now_s() - start;
    printf("{\"seconds\": %.6f, \"events\": %d, \"shm_bytes\": %llu}\n", seconds,
           (n + AT_ONCE) * 2 * BLOCKS, (unsigned long long)look_at_rings());
    return 0;
}
