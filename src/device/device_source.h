/* SPDX-License-Identifier: MIT */
/* device/device_source.h - a table of functions for each source of devices. Only device/ uses
 * it. */
#ifndef TMK_DEVICE_DEVICE_SOURCE_H
#define TMK_DEVICE_DEVICE_SOURCE_H

#include "device/device.h"

struct tmk_devices {
    struct tmk_device_roots roots;
    struct tmk_driver drivers[TMK_DEVICE_N_KINDS];
    struct tmk_device list[TMK_DEVICES_MOST];
    unsigned n;
    void *nvml;                           /* belongs to nvml.c; NULL: not open */
    uint64_t host_ticks, host_idle_ticks; /* of host.c: when its load was read before */
    uint32_t host_busy_percent;           /* what it was then */
};

struct tmk_device_source {
    /* Set the state of the kind's driver and add the devices found. 0 or TMK_ENOMEM. */
    int (*open)(struct tmk_devices *d, struct tmk_error *err);
    int (*memory)(struct tmk_devices *d, const struct tmk_device *device,
                  struct tmk_device_memory *ret, struct tmk_error *err);
    /* Write what is known of the load over *ret, which has everything unknown. NULL: nothing is. */
    void (*load)(struct tmk_devices *d, const struct tmk_device *device,
                 struct tmk_device_load *ret);
    /* Add processes with tmk_processes_add(), with PIDs as the source knows them. NULL: the source
     * lists none. */
    int (*processes)(struct tmk_devices *d, const struct tmk_device *device,
                     struct tmk_device_processes *ret, struct tmk_error *err);
    bool has_own_pids; /* PIDs are those of our /proc, not the driver's numbers */
    void (*close)(struct tmk_devices *d); /* NULL: nothing to close */
};

extern const struct tmk_device_source tmk_source_nvml;
extern const struct tmk_device_source tmk_source_amdgpu;
extern const struct tmk_device_source tmk_source_host;

/* Add a device, zeroed but for kind, number and card. NULL: the list is full, but for the one place
 * that is kept for the host. */
struct tmk_device *tmk_devices_add(struct tmk_devices *d, enum tmk_device_kind kind,
                                   unsigned number);

/* Note that `pid` uses that many bytes. A process that is already in the list keeps the larger
 * figure: drivers list a process twice that draws and computes. */
void tmk_processes_add(struct tmk_device_processes *list, pid_t pid, uint64_t used_bytes);

#endif
