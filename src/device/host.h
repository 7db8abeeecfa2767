/* SPDX-License-Identifier: MIT */
/* device/host.h - the host's memory: limits, pressure, and what a process holds of it. */
#ifndef TMK_DEVICE_HOST_H
#define TMK_DEVICE_HOST_H

#include "device/device.h"

/* A process is listed as one of the host's when so much of it is resident. */
#define TMK_HOST_PROCESS_LEAST (16ull << 20)

/* The tightest limit of control groups (v2, or v1's memory controller) that this process is under;
 * its own group's or one further up. */
struct tmk_host_limit {
    uint64_t limit_bytes; /* TMK_BYTES_UNKNOWN: none */
    uint64_t used_bytes;  /* by all under that limit, without file pages that can be dropped */
};

/* 0; TMK_ENOENT when this machine has no control groups for memory. */
int tmk_host_limit_read(const struct tmk_device_roots *roots, struct tmk_host_limit *ret,
                        struct tmk_error *err);

/* How much of the last ten seconds some process waited for memory, in hundredths of a percent.
 * TMK_ENOENT: this kernel does not tell (before 4.20, or psi=0). */
int tmk_host_pressure_read(const struct tmk_device_roots *roots, unsigned *ret_some_avg10,
                           struct tmk_error *err);

struct tmk_host_process {
    uint64_t rss_bytes;
    uint64_t pss_bytes;    /* shared pages divided by those who share; unknown for other users' */
    uint64_t locked_bytes; /* by mlock */
    uint64_t pinned_bytes; /* by a driver, for DMA */
};

/* Resident bytes alone, which is cheap. 0: there is no such process, or it is the kernel's. */
uint64_t tmk_host_resident_bytes(const struct tmk_device_roots *roots, pid_t pid);

/* Of a process of our /proc. 0; TMK_ENOENT: there is none. */
int tmk_host_process_read(const struct tmk_device_roots *roots, pid_t pid,
                          struct tmk_host_process *ret, struct tmk_error *err);

#endif
