/* SPDX-License-Identifier: MIT */
/* device/device_source.h - a table of functions for each source of devices; for device/ alone. */
#ifndef TMK_DEVICE_DEVICE_SOURCE_H
#define TMK_DEVICE_DEVICE_SOURCE_H

#include "device/device.h"

struct tmk_devices {
    struct tmk_device_roots roots;
    struct tmk_driver drivers[TMK_DEVICE_N_KINDS];
    struct tmk_device list[TMK_DEVICES_MOST];
    unsigned n;
    void *nvml; /* nvml.c's; NULL: not open */
};

struct tmk_device_source {
    /* Set the kind's driver state and add the devices found. Fails for want of memory only. */
    int (*open)(struct tmk_devices *d, struct tmk_error *err);
    int (*memory)(struct tmk_devices *d, const struct tmk_device *device,
                  struct tmk_device_memory *ret, struct tmk_error *err);
    /* Add by tmk_processes_add(), PIDs as the source knows them. NULL: lists none. */
    int (*processes)(struct tmk_devices *d, const struct tmk_device *device,
                     struct tmk_device_processes *ret, struct tmk_error *err);
    bool has_own_pids;                    /* they are our /proc's, not what a driver calls them */
    void (*close)(struct tmk_devices *d); /* NULL: nothing to close */
};

extern const struct tmk_device_source tmk_source_nvml;
extern const struct tmk_device_source tmk_source_amdgpu;
extern const struct tmk_device_source tmk_source_host;

/* The next place in the list, zeroed but for kind, number and card; NULL when it is full, one place
 * being kept for the host. */
struct tmk_device *tmk_devices_add(struct tmk_devices *d, enum tmk_device_kind kind,
                                   unsigned number);

/* Note that `pid` uses so many bytes. A process that is there already keeps the larger figure: the
 * drivers list one that draws and computes twice. */
void tmk_processes_add(struct tmk_device_processes *list, pid_t pid, uint64_t used_bytes);

#endif
