/* SPDX-License-Identifier: MIT */
/* record/identity/host_memory.h - how much of the host's memory this process may have.
 *
 * Read once, when arming, so that a reader elsewhere knows what a job on the CPU could run out of.
 * No malloc, no stdio. */
#ifndef TMK_RECORD_HOST_MEMORY_H
#define TMK_RECORD_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_host_memory {
    uint64_t total_bytes;     /* of the host, or the tightest limit of its control groups */
    uint64_t available_bytes; /* of that, not used by anybody now */
};

/* False: /proc does not tell. */
bool tmk_host_memory_read(struct tmk_host_memory *ret);

/* The same of a /proc and a /sys elsewhere. For tests. */
bool tmk_host_memory_read_at(const char *proc, const char *sys, struct tmk_host_memory *ret);

#endif
