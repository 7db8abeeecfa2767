/* SPDX-License-Identifier: MIT */
/* tests/fault/live_set.c - a program that keeps many blocks alive and counts what it reports.
 *
 *     live_set COUNTS LIVE PACE_NS [STOP]    LIVE blocks alive, the oldest freed for each new one;
 *                                            a step every 500; ends after STOP allocations
 *     live_set COUNTS names N PAUSE_US       N modules of different names, a block made in each; a
 *                                            pause after 64
 *
 * COUNTS is a file of three u64: allocations, frees and steps reported so far, each written right
 * behind its event. Block k has k % 1000 + 1 bytes. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tidemark/tidemark.h"

enum { STEP_BLOCKS = 500, TAG_BLOCKS = 50, N_NAMES = 4000, PACE_BLOCKS = 64 };

static _Atomic uint64_t *counts; /* allocations, frees, steps */

static void counts_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 4096) < 0) {
        perror(path);
        exit(2);
    }
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

static void *block_at(uint64_t k)
{
    return (void *)(uintptr_t)(0x10000000 + k * 64);
}

static void make_block(void)
{
    uint64_t k = counts[0];
    tidemark_alloc(TIDEMARK_HOST, block_at(k), k % 1000 + 1);
    counts[0] = k + 1;
    if (k % TAG_BLOCKS == 0) {
        char name[32];
        snprintf(name, sizeof name, "layer.%u.weight", (unsigned)(k / TAG_BLOCKS % N_NAMES));
        tidemark_tag(TIDEMARK_HOST, block_at(k), TIDEMARK_PARAMETER, name);
    }
}

static void free_oldest(void)
{
    uint64_t k = counts[1];
    tidemark_free(TIDEMARK_HOST, block_at(k));
    counts[1] = k + 1;
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Asleep if it is long: a packer that has no processor of its own needs this one. */
static void wait_until_ns(uint64_t end_ns)
{
    enum { LONG_NS = 200000 };
    for (uint64_t now; (now = now_ns()) < end_ns;)
        if (end_ns - now > LONG_NS)
            usleep((useconds_t)((end_ns - now) / 2000));
}

static void keep_alive(uint64_t n_live, uint64_t pace_ns, uint64_t n_blocks)
{
    uint64_t start_ns = now_ns();
    while (counts[0] < n_blocks) {
        if (counts[0] % STEP_BLOCKS == 0) {
            tidemark_step((int64_t)counts[2]);
            counts[2]++;
        }
        make_block();
        if (counts[0] - counts[1] > n_live)
            free_oldest();
        if (counts[0] % PACE_BLOCKS == 0)
            wait_until_ns(start_ns + counts[0] * pace_ns);
    }
}

static void open_modules(uint64_t n, useconds_t pause_us)
{
    for (uint64_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "module.%u", (unsigned)i);
        tidemark_push(TIDEMARK_MODULE, name);
        make_block();
        tidemark_pop(TIDEMARK_MODULE);
        if (i % PACE_BLOCKS == 0)
            usleep(pause_us);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || (strcmp(argv[2], "names") == 0 && argc < 5))
        return 2;
    counts_open(argv[1]);
    if (strcmp(argv[2], "names") == 0)
        open_modules(strtoull(argv[3], NULL, 10), (useconds_t)strtoul(argv[4], NULL, 10));
    else
        keep_alive(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
                   argc > 4 ? strtoull(argv[4], NULL, 10) : UINT64_MAX);
    return 0;
}
