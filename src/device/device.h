/* SPDX-License-Identifier: MIT */
/* device/device.h - the devices of this machine: what memory they have, and who uses it.
 *
 *     struct tmk_devices *d = NULL;
 *     struct tmk_device_roots roots = tmk_device_roots_get();
 *     rc = tmk_devices_open(&roots, &d, &err);
 *     for (unsigned i = 0; i < tmk_devices_count(d); i++)
 *         rc = tmk_devices_memory(d, i, &memory, &err);
 *     d = tmk_devices_close(d);
 *
 * Cards come first, NVIDIA's by NVML, then AMD's by sysfs; behind a card that is divided (MIG) come
 * its parts. The last device is always the host, so a machine without a card has one device.
 * Nothing is linked, no program is started. A driver that is broken is not an error here: its
 * tmk_driver says what is wrong. Unknown is not zero: TMK_BYTES_UNKNOWN, or an empty text.
 *
 * Not for several threads at once. */
#ifndef TMK_DEVICE_DEVICE_H
#define TMK_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum { TMK_DEVICES_MOST = 128, TMK_DEVICE_PROCESSES_MOST = 512, TMK_DEVICE_TEXT_BYTES = 96 };

/* Where to look. */
struct tmk_device_roots {
    const char *proc; /* "/proc"; TIDEMARK_PROC_DIR: in a container that is given the host's */
    const char *sys;  /* "/sys"; TIDEMARK_SYS_DIR, likewise */
    const char *nvml; /* "libnvidia-ml.so.1", found as the loader finds it */
};

struct tmk_device_roots tmk_device_roots_get(void);

enum tmk_device_kind { TMK_DEVICE_NVIDIA, TMK_DEVICE_AMD, TMK_DEVICE_HOST, TMK_DEVICE_N_KINDS };

/* "nvidia", "amd", "host": as JSON has it. */
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
    unsigned number; /* as its driver counts; of a part: within its card */
    unsigned card;   /* of a part: its card's index in the list; else its own */
    enum tmk_compute_mode compute_mode;
    enum tmk_mig mig;
    char name[TMK_DEVICE_TEXT_BYTES];
    char id[TMK_DEVICE_TEXT_BYTES]; /* what CUDA_VISIBLE_DEVICES takes; AMD: the PCI address */
    char reason[160];               /* why it cannot be asked, "" when it can */
    void *handle;                   /* the source's */
};

struct tmk_device_memory { /* all unknown: the card has none of its own, but the host's */
    uint64_t total_bytes;
    uint64_t used_bytes;     /* without reserved where that is known */
    uint64_t reserved_bytes; /* by the driver for itself */
};

struct tmk_device_process {
    pid_t pid;       /* as our /proc calls it, or as the driver does where it is not there */
    pid_t inner_pid; /* in its own container; 0: the process cannot be seen from here */
    uint64_t used_bytes;
    char name[16];
};

struct tmk_device_processes {
    unsigned n;
    unsigned n_left_out; /* for want of room: those that use least */
    struct tmk_device_process items[TMK_DEVICE_PROCESSES_MOST];
};

/* The state of a kind's driver; what doctor can give advice for. */
enum tmk_driver_state {
    TMK_DRIVER_ABSENT, /* no such card here, as far as can be seen */
    TMK_DRIVER_READY,
    TMK_DRIVER_NOT_LOADED,    /* a card, but no module */
    TMK_DRIVER_NO_LIBRARY,    /* a module, but no libnvidia-ml.so.1 */
    TMK_DRIVER_MISMATCH,      /* module and library are of different versions */
    TMK_DRIVER_NO_PERMISSION, /* to open /dev/nvidia* */
    TMK_DRIVER_HIDDEN,        /* a module, but its device files are not in this container */
    TMK_DRIVER_FAILED,        /* something else; see reason */
};

struct tmk_driver {
    enum tmk_driver_state state;
    char module_version[32];  /* of the kernel's module; "": not loaded or not known */
    char library_version[32]; /* of NVML */
    unsigned cuda_version;    /* the newest that it can run: 13000 is 13.0; 0: not known */
    char reason[200];         /* a sentence when it is neither absent nor ready */
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

/* As it is now. 0, or TMK_E* and a reason; *ret is untouched then. */
int tmk_devices_memory(struct tmk_devices *d, unsigned index, struct tmk_device_memory *ret,
                       struct tmk_error *err);
/* Who uses a card, each process once, by PID; of the host, what is resident of the larger ones (see
 * host.h). 0, or TMK_E* and a reason; *ret is empty then. */
int tmk_devices_processes(struct tmk_devices *d, unsigned index, struct tmk_device_processes *ret,
                          struct tmk_error *err);

#endif
