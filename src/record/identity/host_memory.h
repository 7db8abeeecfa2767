/* SPDX-License-Identifier: MIT */
/* record/identity/host_memory.h - how much of the host's memory this process may have.
 *
 * It is read once, when arming, so that a reader elsewhere knows what a job on the CPU could run
 * out of. No malloc, no stdio. */
#ifndef TMK_RECORD_HOST_MEMORY_H
#define TMK_RECORD_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_host_memory {
    uint64_t total_bytes;     /* the host's, or the tightest limit of its control groups */
    uint64_t available_bytes; /* the part of it that nobody uses now */
};

/* Read it. False: /proc does not tell. */
bool tmk_host_memory_read(struct tmk_host_memory *ret);

/* The same from another /proc and /sys, for tests. */
bool tmk_host_memory_read_at(const char *proc, const char *sys, struct tmk_host_memory *ret);

#endif
