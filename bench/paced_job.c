/* SPDX-License-Identifier: MIT */
/* paced_job.c - a watched program that allocates and frees as a torch job does, at a steady pace.
 *
 *     paced_job LIVE PACE_NS
 *
 * LIVE blocks are alive, of 64 sizes; an allocation every PACE_NS frees the oldest block, and a new
 * one has the address of a block that was freed before, as a caching allocator hands them out.
 * Every 500 allocations are a step of two stages. It goes on until it is killed. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "tidemark/tidemark.h"

enum { STEP_BLOCKS = 500, PACE_BLOCKS = 50, N_SIZES = 64, FIRST_BYTES = 512 };

static void *address_of(uint64_t k, uint64_t n_live)
{
    return (void *)(uintptr_t)(0x7f0000000000 + k % (2 * n_live) * (FIRST_BYTES * N_SIZES));
}

static void sleep_until(struct timespec *due, uint64_t more_ns)
{
    more_ns += (uint64_t)due->tv_nsec;
    due->tv_sec += (time_t)(more_ns / 1000000000u);
    due->tv_nsec = (long)(more_ns % 1000000000u);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
}

/* Half of a step is its forward pass. */
static void mark_step(uint64_t k)
{
    if (k % STEP_BLOCKS == 0) {
        tidemark_pop(TIDEMARK_STAGE);
        tidemark_step((int64_t)(k / STEP_BLOCKS));
        tidemark_push(TIDEMARK_STAGE, "forward");
    } else if (k % STEP_BLOCKS == STEP_BLOCKS / 2) {
        tidemark_pop(TIDEMARK_STAGE);
        tidemark_push(TIDEMARK_STAGE, "backward");
    }
}

int main(int argc, char **argv)
{
    uint64_t n_live = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t pace_ns = n_live ? strtoull(argv[2], NULL, 10) : 0;
    struct timespec due;
    if (pace_ns == 0)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (uint64_t k = 0;; k++) {
        mark_step(k);
        if (k >= n_live)
            tidemark_free(TIDEMARK_CUDA(0), address_of(k - n_live, n_live));
        tidemark_alloc(TIDEMARK_CUDA(0), address_of(k, n_live), (k % N_SIZES + 1) * FIRST_BYTES);
        if (k % PACE_BLOCKS == 0)
            sleep_until(&due, pace_ns * PACE_BLOCKS);
    }
}
