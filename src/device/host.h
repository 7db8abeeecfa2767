/* SPDX-License-Identifier: MIT */
/* device/host.h - the host's memory: limits, pressure, and how much of it a process uses. */
#ifndef TMK_DEVICE_HOST_H
#define TMK_DEVICE_HOST_H

#include "device/device.h"

/* A process is listed for the host if at least this much of it is resident. */
#define TMK_HOST_PROCESS_LEAST (16ull << 20)

/* The tightest memory limit that control groups (v2, or v1's memory controller) set for this
 * process: its own group's or one further up. */
struct tmk_host_limit {
    uint64_t limit_bytes; /* TMK_BYTES_UNKNOWN: none */
    uint64_t
        used_bytes; /* by all processes under that limit, without file pages that can be dropped */
};

/* Read it. 0, or TMK_ENOENT: this machine has no control groups for memory. */
int tmk_host_limit_read(const struct tmk_device_roots *roots, struct tmk_host_limit *ret,
                        struct tmk_error *err);

/* Read the memory pressure: the share of the last ten seconds in which some process waited for
 * memory, in hundredths of a percent. TMK_ENOENT: this kernel does not report it (before 4.20, or
 * psi=0). */
int tmk_host_pressure_read(const struct tmk_device_roots *roots, unsigned *ret_some_avg10,
                           struct tmk_error *err);

struct tmk_host_process {
    uint64_t rss_bytes;
    uint64_t pss_bytes;    /* shared pages count in part; unknown for other users' processes */
    uint64_t locked_bytes; /* by mlock */
    uint64_t pinned_bytes; /* by a driver, for DMA */
};

/* Read only the resident bytes, which is cheap. 0: there is no such process, or it is a kernel
 * thread. */
uint64_t tmk_host_resident_bytes(const struct tmk_device_roots *roots, pid_t pid);

/* Read a process of our /proc. 0, or TMK_ENOENT: there is none. */
int tmk_host_process_read(const struct tmk_device_roots *roots, pid_t pid,
                          struct tmk_host_process *ret, struct tmk_error *err);

#endif
