/* SPDX-License-Identifier: MIT */
/* device/device.h - the devices of this machine, their memory, and the processes that use it.
 *
 *     struct tmk_devices *d = NULL;
 *     struct tmk_device_roots roots = tmk_device_roots_get();
 *     rc = tmk_devices_open(&roots, &d, &err);
 *     for (unsigned i = 0; i < tmk_devices_count(d); i++)
 *         rc = tmk_devices_memory(d, i, &memory, &err);
 *     d = tmk_devices_close(d);
 *
 * GPUs come first: NVIDIA's through NVML, then AMD's through sysfs. A GPU that is divided (MIG) is
 * followed by its parts. The last device is always the host, so a machine without a GPU has one
 * device. No vendor library is linked and no program is started. A broken driver is no error here:
 * its tmk_driver says what is wrong. Unknown is not zero: TMK_BYTES_UNKNOWN, or an empty text.
 *
 * Only one thread at a time may use a tmk_devices. */
#ifndef TMK_DEVICE_DEVICE_H
#define TMK_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { TMK_DEVICES_MOST = 128, TMK_DEVICE_PROCESSES_MOST = 512, TMK_DEVICE_TEXT_BYTES = 96 };

/* Where to read /proc and /sys, and which library to load. */
struct tmk_device_roots {
    const char *proc; /* "/proc", or TIDEMARK_PROC_DIR: for a container that is given the host's */
    const char *sys;  /* "/sys", or TIDEMARK_SYS_DIR, likewise */
    const char *nvml; /* "libnvidia-ml.so.1", found as the loader finds it */
};

struct tmk_device_roots tmk_device_roots_get(void);

enum tmk_device_kind { TMK_DEVICE_NVIDIA, TMK_DEVICE_AMD, TMK_DEVICE_HOST, TMK_DEVICE_N_KINDS };

/* "nvidia", "amd", "host": the name in JSON. */
const char *tmk_device_kind_text(enum tmk_device_kind kind);

enum tmk_compute_mode {
    TMK_COMPUTE_UNKNOWN,
    TMK_COMPUTE_DEFAULT,
    TMK_COMPUTE_EXCLUSIVE, /* one process at a time */
    TMK_COMPUTE_PROHIBITED,
};

enum tmk_mig { TMK_MIG_NONE, TMK_MIG_OFF, TMK_MIG_ON, TMK_MIG_PART };

struct tmk_device {
    enum tmk_device_kind kind;
    unsigned number; /* the driver's number; for a part, its number within the GPU */
    unsigned card;   /* for a part, its GPU's index in the list, else the device's own */
    enum tmk_compute_mode compute_mode;
    enum tmk_mig mig;
    char name[TMK_DEVICE_TEXT_BYTES];
    char id[TMK_DEVICE_TEXT_BYTES]; /* its name in CUDA_VISIBLE_DEVICES; AMD: the PCI address */
    char reason[160];               /* why it cannot be asked; "": it can */
    void *handle;                   /* belongs to the source */
};

struct tmk_device_memory { /* all unknown: the GPU has no memory of its own, but uses the host's */
    uint64_t total_bytes;
    uint64_t used_bytes;     /* without reserved_bytes where that is known */
    uint64_t reserved_bytes; /* what the driver keeps for itself */
};

/* How busy a device is. Each value may be TMK_LOAD_UNKNOWN by itself: old drivers, parts of a GPU
 * and the host do not tell all of them. */
#define TMK_LOAD_UNKNOWN UINT32_MAX
struct tmk_device_load {
    uint32_t busy_percent; /* the share of the driver's last sampling period (a second or less) in
                              which the GPU computed; the host: of the time since the load was read
                              before, over all processors; unknown at first */
    uint32_t power_mw, power_limit_mw;
    uint32_t temperature_c;
};

struct tmk_device_process {
    pid_t pid;       /* its number in our /proc, or the driver's number if it is not there */
    pid_t inner_pid; /* its number its number in its own container; 0: the process cannot be seen
                        from here */
    uint64_t used_bytes;
    char name[16];
};

struct tmk_device_processes {
    unsigned n;
    unsigned n_left_out; /* there was no room for them; they use least */
    struct tmk_device_process items[TMK_DEVICE_PROCESSES_MOST];
};

/* The state of a kind's driver. `tidemark doctor` gives advice for each. */
enum tmk_driver_state {
    TMK_DRIVER_ABSENT, /* no such GPU here, as far as can be seen */
    TMK_DRIVER_READY,
    TMK_DRIVER_NOT_LOADED,    /* a GPU, but no module */
    TMK_DRIVER_NO_LIBRARY,    /* a module, but no libnvidia-ml.so.1 */
    TMK_DRIVER_MISMATCH,      /* module and library are of different versions */
    TMK_DRIVER_NO_PERMISSION, /* /dev/nvidia* may not be opened */
    TMK_DRIVER_HIDDEN,        /* a module, but its device files are not in this container */
    TMK_DRIVER_FAILED,        /* something else; see reason */
};

struct tmk_driver {
    enum tmk_driver_state state;
    char module_version[32];  /* the kernel module's; "": not loaded or not known */
    char library_version[32]; /* NVML's */
    unsigned cuda_version;    /* the newest CUDA that it can run: 13000 is 13.0; 0: not known */
    char reason[200];         /* a sentence when the driver is neither absent nor ready */
};

struct tmk_devices;

/* The texts of `roots` are borrowed until close. 0, or TMK_ENOMEM and *ret_devices untouched. */
int tmk_devices_open(const struct tmk_device_roots *roots, struct tmk_devices **ret_devices,
                     struct tmk_error *err);
struct tmk_devices *tmk_devices_close(struct tmk_devices *d);

unsigned tmk_devices_count(const struct tmk_devices *d);
/* Borrowed until close. */
const struct tmk_device *tmk_devices_get(const struct tmk_devices *d, unsigned index);
const struct tmk_driver *tmk_devices_driver(const struct tmk_devices *d, enum tmk_device_kind kind);

/* Read a device's memory as it is now. 0, or TMK_E* with a reason; *ret is untouched then. */
int tmk_devices_memory(struct tmk_devices *d, unsigned index, struct tmk_device_memory *ret,
                       struct tmk_error *err);
/* Read how busy a device is now; what it does not tell is unknown. */
void tmk_devices_load(struct tmk_devices *d, unsigned index, struct tmk_device_load *ret);
/* List the processes that use a GPU, each once, by PID. For the host, list the larger processes
 * with their resident memory (see host.h). 0, or TMK_E* with a reason; *ret is empty then. */
int tmk_devices_processes(struct tmk_devices *d, unsigned index, struct tmk_device_processes *ret,
                          struct tmk_error *err);

#endif
