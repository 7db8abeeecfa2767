/* SPDX-License-Identifier: MIT */
/* device/nvml.c - NVIDIA's GPUs, through libnvidia-ml.so.1, which is loaded if it is there.
 *
 * Start-up can fail for several reasons (no module, no library, two versions, no device files).
 * This file tells them apart by /proc and /sys, because NVML's own code says "Driver Not Loaded"
 * for three of them. Drivers report reserved memory since 510; before, it is unknown and part of
 * `used`. */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/lines.h"
#include "base/nvml_abi.h"
#include "device/device.h"
#include "device/device_source.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/kernel_files.h"

enum {
    RAW_PROCESSES_FIRST = 1024,
    RAW_PROCESSES_MOST = 65536,
    MIG_PARTS_MOST = 16,
    OUT_OF_MEMORY = 20, /* NVML's own code for that */
};

typedef int process_fn(struct tmk_nvml_device *, unsigned *, struct tmk_nvml_process *);

/* NVML, loaded. Functions marked (optional) are NULL in old libraries. */
struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_text)(int);
    int (*driver_version)(char *, unsigned);
    int (*cuda_version)(int *);
    int (*count)(unsigned *);
    int (*handle)(unsigned, struct tmk_nvml_device **);
    int (*name)(struct tmk_nvml_device *, char *, unsigned);
    int (*uuid)(struct tmk_nvml_device *, char *, unsigned);
    int (*memory)(struct tmk_nvml_device *, struct tmk_nvml_memory *);
    int (*memory_v2)(struct tmk_nvml_device *, struct tmk_nvml_memory_v2 *); /* (optional) */
    int (*compute_mode)(struct tmk_nvml_device *, unsigned *);
    int (*mig_mode)(struct tmk_nvml_device *, unsigned *, unsigned *); /* (optional) */
    int (*mig_count)(struct tmk_nvml_device *, unsigned *);            /* (optional) */
    int (*mig_handle)(struct tmk_nvml_device *, unsigned,
                      struct tmk_nvml_device **);                                /* (optional) */
    int (*utilization)(struct tmk_nvml_device *, struct tmk_nvml_utilization *); /* (optional) */
    int (*power)(struct tmk_nvml_device *, unsigned *);                          /* (optional) */
    int (*power_limit)(struct tmk_nvml_device *, unsigned *);                    /* (optional) */
    int (*temperature)(struct tmk_nvml_device *, unsigned, unsigned *);          /* (optional) */
    process_fn *compute;                                                         /* (optional) */
    process_fn *graphics;                                                        /* (optional) */
    struct tmk_nvml_process *raw; /* lists, as NVML gives them */
    uint64_t raw_room;
};

static const struct {
    const char *name, *older; /* older: the previous name for the same types; NULL: none */
    size_t place;
    bool optional;
} functions[] = {
    {"nvmlInit_v2", NULL, offsetof(struct nvml, init), false},
    {"nvmlShutdown", NULL, offsetof(struct nvml, shutdown), false},
    {"nvmlErrorString", NULL, offsetof(struct nvml, error_text), false},
    {"nvmlSystemGetDriverVersion", NULL, offsetof(struct nvml, driver_version), false},
    {"nvmlSystemGetCudaDriverVersion", NULL, offsetof(struct nvml, cuda_version), false},
    {"nvmlDeviceGetCount_v2", NULL, offsetof(struct nvml, count), false},
    {"nvmlDeviceGetHandleByIndex_v2", NULL, offsetof(struct nvml, handle), false},
    {"nvmlDeviceGetName", NULL, offsetof(struct nvml, name), false},
    {"nvmlDeviceGetUUID", NULL, offsetof(struct nvml, uuid), false},
    {"nvmlDeviceGetMemoryInfo", NULL, offsetof(struct nvml, memory), false},
    {"nvmlDeviceGetMemoryInfo_v2", NULL, offsetof(struct nvml, memory_v2), true},
    {"nvmlDeviceGetComputeMode", NULL, offsetof(struct nvml, compute_mode), false},
    {"nvmlDeviceGetMigMode", NULL, offsetof(struct nvml, mig_mode), true},
    {"nvmlDeviceGetMaxMigDeviceCount", NULL, offsetof(struct nvml, mig_count), true},
    {"nvmlDeviceGetMigDeviceHandleByIndex", NULL, offsetof(struct nvml, mig_handle), true},
    {"nvmlDeviceGetUtilizationRates", NULL, offsetof(struct nvml, utilization), true},
    {"nvmlDeviceGetPowerUsage", NULL, offsetof(struct nvml, power), true},
    {"nvmlDeviceGetEnforcedPowerLimit", NULL, offsetof(struct nvml, power_limit), true},
    {"nvmlDeviceGetTemperature", NULL, offsetof(struct nvml, temperature), true},
    {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
     offsetof(struct nvml, compute), true},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
     offsetof(struct nvml, graphics), true},
};

/* ---- facts from the kernel ---- */

/* Read the version from "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue ...": the
 * first word of digits and dots. */
static void read_module_version(const struct tmk_devices *d, struct tmk_driver *driver)
{
    char text[512];
    tmk_kernel_file_read(text, sizeof text, "%s/driver/nvidia/version", d->roots.proc);
    const char *line = tmk_lines_field(text, "NVRM version:");
    for (const char *word = line; *word && *word != '\n'; word += strspn(word, " ")) {
        size_t n = strcspn(word, " \n"), n_digits = strspn(word, "0123456789.");
        if (n == n_digits && memchr(word, '.', n)) {
            snprintf(driver->module_version, sizeof driver->module_version, "%.*s", (int)n, word);
            return;
        }
        word += n;
    }
}

static unsigned long read_hex(const char *folder, const char *device, const char *name)
{
    char text[32];
    tmk_kernel_file_read(text, sizeof text, "%s/%s/%s", folder, device, name);
    return strtoul(text, NULL, 16);
}

/* Whether a GPU of NVIDIA's (class 03) is on the bus. */
static bool has_card(const struct tmk_devices *d)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/bus/pci/devices", d->roots.sys);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool found = false;
    while (folder && !found && (entry = readdir(folder)))
        found = read_hex(path, entry->d_name, "vendor") == 0x10de &&
                read_hex(path, entry->d_name, "class") >> 16 == 3;
    if (folder)
        closedir(folder);
    return found;
}

/* ---- the library ---- */

/* libnvidia-ml.so.1 is a link to libnvidia-ml.so.VERSION. */
static void read_library_version(void *library, struct tmk_driver *driver)
{
    const struct link_map *map;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) < 0)
        return;
    char *path = realpath(map->l_name, NULL);
    const char *version = path ? strstr(path, ".so.") : NULL;
    if (version && strchr(version + 4, '.'))
        snprintf(driver->library_version, sizeof driver->library_version, "%.31s", version + 4);
    free(path);
}

/* Find NVML's functions. Returns the name of a needed one that is missing; NULL: all are there. */
static const char *find_nvml_functions(struct nvml *nvml)
{
    for (size_t i = 0; i < TMK_N(functions); i++) {
        void *found = dlsym(nvml->library, functions[i].name);
        if (!found && functions[i].older)
            found = dlsym(nvml->library, functions[i].older);
        if (!found && !functions[i].optional)
            return functions[i].name;
        memcpy((char *)nvml + functions[i].place, &found, sizeof found);
    }
    return NULL;
}

static void explain_driver_state(struct tmk_driver *driver, enum tmk_driver_state state,
                                 const char *reason)
{
    driver->state = state;
    snprintf(driver->reason, sizeof driver->reason, "%s", reason);
}

static void explain_no_library(const struct tmk_devices *d, struct tmk_driver *driver)
{
    if (driver->module_version[0])
        explain_driver_state(driver, TMK_DRIVER_NO_LIBRARY,
                             "the module is loaded, but there is no libnvidia-ml.so.1");
    else if (has_card(d))
        explain_driver_state(driver, TMK_DRIVER_NOT_LOADED, "a GPU is there, but no driver");
}

static void explain_mismatch(struct tmk_driver *driver)
{
    char text[sizeof driver->reason];
    snprintf(text, sizeof text, "the kernel runs module %s, but the library is of driver %s",
             driver->module_version[0] ? driver->module_version : "(unknown)",
             driver->library_version[0] ? driver->library_version : "(unknown)");
    explain_driver_state(driver, TMK_DRIVER_MISMATCH, text);
}

/* Explain why NVML did not start. */
static void explain_start(const struct tmk_devices *d, struct tmk_driver *driver,
                          const struct nvml *nvml, int code)
{
    char text[sizeof driver->reason];
    switch (code) {
    case TMK_NVML_VERSION_MISMATCH:
        explain_mismatch(driver);
        break;
    case TMK_NVML_NO_PERMISSION:
        explain_driver_state(driver, TMK_DRIVER_NO_PERMISSION,
                             "this user may not open /dev/nvidiactl");
        break;
    case TMK_NVML_DRIVER_NOT_LOADED:
        if (driver->module_version[0])
            explain_driver_state(
                driver, TMK_DRIVER_HIDDEN,
                "the module is loaded, but its device files cannot be seen from here");
        else if (has_card(d))
            explain_driver_state(driver, TMK_DRIVER_NOT_LOADED,
                                 "a GPU is there, but its module is not loaded");
        break;
    default:
        snprintf(text, sizeof text, "NVML does not start: %s (%d)", nvml->error_text(code), code);
        explain_driver_state(driver, TMK_DRIVER_FAILED, text);
    }
}

/* Load and start NVML. False: it cannot be used, and the driver's state says why. */
static bool start_nvml(const struct tmk_devices *d, struct nvml *nvml, struct tmk_driver *driver)
{
    nvml->library = dlopen(d->roots.nvml, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        explain_no_library(d, driver);
        return false;
    }
    read_library_version(nvml->library, driver);
    const char *missing = find_nvml_functions(nvml);
    if (missing) {
        char text[sizeof driver->reason];
        snprintf(text, sizeof text, "libnvidia-ml.so.1 has no %s", missing);
        explain_driver_state(driver, TMK_DRIVER_FAILED, text);
        return false;
    }
    int code = nvml->init();
    if (code != TMK_NVML_OK)
        explain_start(d, driver, nvml, code);
    return code == TMK_NVML_OK;
}

static void read_versions(const struct nvml *nvml, struct tmk_driver *driver)
{
    char version[TMK_NVML_TEXT_BYTES] = "";
    int cuda = 0;
    driver->state = TMK_DRIVER_READY;
    if (nvml->driver_version(version, sizeof version) == TMK_NVML_OK)
        snprintf(driver->library_version, sizeof driver->library_version, "%.31s", version);
    if (nvml->cuda_version(&cuda) == TMK_NVML_OK && cuda > 0)
        driver->cuda_version = (unsigned)cuda;
}

/* ---- devices ---- */

static enum tmk_compute_mode read_mode(const struct nvml *nvml, struct tmk_nvml_device *handle)
{
    unsigned mode;
    if (nvml->compute_mode(handle, &mode) != TMK_NVML_OK)
        return TMK_COMPUTE_UNKNOWN;
    switch (mode) {
    case TMK_NVML_MODE_DEFAULT:
        return TMK_COMPUTE_DEFAULT;
    case TMK_NVML_MODE_PROHIBITED:
        return TMK_COMPUTE_PROHIBITED;
    case TMK_NVML_MODE_EXCLUSIVE_THREAD:
    case TMK_NVML_MODE_EXCLUSIVE_PROCESS:
        return TMK_COMPUTE_EXCLUSIVE;
    default:
        return TMK_COMPUTE_UNKNOWN;
    }
}

static enum tmk_mig read_mig(const struct nvml *nvml, struct tmk_nvml_device *handle)
{
    unsigned now, later;
    if (!nvml->mig_mode || nvml->mig_mode(handle, &now, &later) != TMK_NVML_OK)
        return TMK_MIG_NONE;
    return now ? TMK_MIG_ON : TMK_MIG_OFF;
}

static void describe_nvml_device(const struct nvml *nvml, struct tmk_device *device,
                                 struct tmk_nvml_device *handle)
{
    device->handle = handle;
    device->compute_mode = read_mode(nvml, handle);
    if (nvml->name(handle, device->name, sizeof device->name) != TMK_NVML_OK)
        device->name[0] = '\0';
    if (nvml->uuid(handle, device->id, sizeof device->id) != TMK_NVML_OK)
        device->id[0] = '\0';
}

static void add_mig_parts(struct tmk_devices *d, const struct nvml *nvml, unsigned card)
{
    unsigned n = 0;
    struct tmk_nvml_device *whole = d->list[card].handle, *handle;
    if (!nvml->mig_count || !nvml->mig_handle || nvml->mig_count(whole, &n) != TMK_NVML_OK)
        return;
    for (unsigned i = 0; i < n && i < MIG_PARTS_MOST; i++) {
        if (nvml->mig_handle(whole, i, &handle) != TMK_NVML_OK)
            continue; /* numbers have holes where parts were removed */
        struct tmk_device *part = tmk_devices_add(d, TMK_DEVICE_NVIDIA, i);
        if (!part)
            return;
        part->card = card;
        describe_nvml_device(nvml, part, handle);
        part->mig = TMK_MIG_PART;
    }
}

static void add_nvml_card(struct tmk_devices *d, const struct nvml *nvml, unsigned number)
{
    struct tmk_nvml_device *handle;
    struct tmk_device *device = tmk_devices_add(d, TMK_DEVICE_NVIDIA, number);
    if (!device)
        return;
    int code = nvml->handle(number, &handle);
    if (code != TMK_NVML_OK) {
        snprintf(device->reason, sizeof device->reason, "NVML: %s (%d)", nvml->error_text(code),
                 code);
        return;
    }
    describe_nvml_device(nvml, device, handle);
    device->mig = read_mig(nvml, handle);
    if (device->mig == TMK_MIG_ON)
        add_mig_parts(d, nvml, device->card);
}

static void nvml_close(struct tmk_devices *d)
{
    struct nvml *nvml = d->nvml;
    if (nvml && d->drivers[TMK_DEVICE_NVIDIA].state == TMK_DRIVER_READY)
        nvml->shutdown();
    if (nvml && nvml->library)
        dlclose(nvml->library);
    if (nvml)
        free(nvml->raw);
    free(nvml);
    d->nvml = NULL;
}

static int nvml_open(struct tmk_devices *d, struct tmk_error *err)
{
    struct tmk_driver *driver = &d->drivers[TMK_DEVICE_NVIDIA];
    struct nvml *nvml = calloc(1, sizeof *nvml);
    if (!nvml)
        return tmk_fail(err, TMK_ENOMEM, "no memory for NVML");
    d->nvml = nvml;
    read_module_version(d, driver);
    if (!start_nvml(d, nvml, driver))
        return 0;
    read_versions(nvml, driver);
    unsigned n = 0;
    int code = nvml->count(&n);
    if (code != TMK_NVML_OK)
        snprintf(driver->reason, sizeof driver->reason, "NVML does not count the GPUs: %s (%d)",
                 nvml->error_text(code), code);
    for (unsigned i = 0; i < n && i < TMK_DEVICES_MOST; i++)
        add_nvml_card(d, nvml, i);
    return 0;
}

/* ---- memory and processes ---- */

static int report_nvml_failure(const struct nvml *nvml, const struct tmk_device *device, int code,
                               struct tmk_error *err)
{
    return tmk_fail(err, TMK_EIO, "NVML, card %u: %s (%d)", device->number, nvml->error_text(code),
                    code);
}

static int nvml_memory(struct tmk_devices *d, const struct tmk_device *device,
                       struct tmk_device_memory *ret, struct tmk_error *err)
{
    const struct nvml *nvml = d->nvml;
    struct tmk_nvml_memory_v2 m = {.version = TMK_NVML_MEMORY_V2};
    if (nvml->memory_v2 && nvml->memory_v2(device->handle, &m) == TMK_NVML_OK) {
        *ret = (struct tmk_device_memory){
            .total_bytes = m.total, .used_bytes = m.used, .reserved_bytes = m.reserved};
        return 0;
    }
    struct tmk_nvml_memory old;
    int code = nvml->memory(device->handle, &old);
    if (code == TMK_NVML_NOT_SUPPORTED) { /* Grace-Blackwell, Jetson */
        *ret = (struct tmk_device_memory){TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN};
        return 0;
    }
    if (code != TMK_NVML_OK)
        return report_nvml_failure(nvml, device, code, err);
    *ret = (struct tmk_device_memory){
        .total_bytes = old.total, .used_bytes = old.used, .reserved_bytes = TMK_BYTES_UNKNOWN};
    return 0;
}

/* A part of a GPU, and some boards, do not support some of these: the value stays unknown. */
static void nvml_load(struct tmk_devices *d, const struct tmk_device *device,
                      struct tmk_device_load *ret)
{
    const struct nvml *nvml = d->nvml;
    struct tmk_nvml_utilization rates;
    unsigned value;
    if (nvml->utilization && nvml->utilization(device->handle, &rates) == TMK_NVML_OK)
        ret->busy_percent = rates.gpu;
    if (nvml->power && nvml->power(device->handle, &value) == TMK_NVML_OK)
        ret->power_mw = value;
    if (nvml->power_limit && nvml->power_limit(device->handle, &value) == TMK_NVML_OK)
        ret->power_limit_mw = value;
    if (nvml->temperature &&
        nvml->temperature(device->handle, TMK_NVML_SENSOR_GPU, &value) == TMK_NVML_OK)
        ret->temperature_c = value;
}

/* Ask for a list, with more room until it fits, and put it behind the `*n` entries that are there.
 * Returns NVML's code. */
static int ask_process_list(struct nvml *nvml, const struct tmk_device *device, process_fn *list,
                            unsigned *n)
{
    uint64_t wanted = *n + RAW_PROCESSES_FIRST;
    int code = TMK_NVML_INSUFFICIENT_SIZE;
    while (code == TMK_NVML_INSUFFICIENT_SIZE && wanted <= RAW_PROCESSES_MOST) {
        if (TMK_GROW(nvml->raw, wanted, nvml->raw_room) < 0)
            return OUT_OF_MEMORY;
        unsigned count = (unsigned)(nvml->raw_room - *n);
        code = list(device->handle, &count, nvml->raw + *n);
        wanted = nvml->raw_room * 2; /* some may start in between */
        if (code == TMK_NVML_OK)
            *n += count;
    }
    return code;
}

static int by_nvml_pid(const void *va, const void *vb)
{
    const struct tmk_nvml_process *a = va, *b = vb;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static uint64_t known_bytes(const struct tmk_nvml_process *p)
{
    return p->used_bytes == TMK_NVML_UNAVAILABLE ? TMK_BYTES_UNKNOWN : p->used_bytes;
}

/* Add each process once, so that those left out are counted right: one that draws and computes is
 * in both lists. */
static void add_each_process(struct nvml *nvml, unsigned n, struct tmk_device_processes *ret)
{
    const struct tmk_nvml_process *raw = nvml->raw;
    if (n > 1)
        qsort(nvml->raw, n, sizeof *raw, by_nvml_pid);
    for (unsigned i = 0; i < n;) {
        uint32_t pid = raw[i].pid;
        uint64_t most = known_bytes(&raw[i++]);
        for (; i < n && raw[i].pid == pid; i++) {
            uint64_t bytes = known_bytes(&raw[i]);
            if (most == TMK_BYTES_UNKNOWN || (bytes != TMK_BYTES_UNKNOWN && bytes > most))
                most = bytes;
        }
        tmk_processes_add(ret, (pid_t)pid, most);
    }
}

/* GPUs without a display, and parts, may not support the graphics list. That is no failure. */
static int nvml_processes(struct tmk_devices *d, const struct tmk_device *device,
                          struct tmk_device_processes *ret, struct tmk_error *err)
{
    struct nvml *nvml = d->nvml;
    unsigned n = 0;
    if (!nvml->compute)
        return tmk_fail(err, TMK_EVERSION, "this driver is too old to list processes (before 460)");
    int code = ask_process_list(nvml, device, nvml->compute, &n);
    bool is_had = code == TMK_NVML_OK;
    if (is_had && nvml->graphics)
        code = ask_process_list(nvml, device, nvml->graphics, &n);
    if (code == TMK_NVML_INSUFFICIENT_SIZE)
        return tmk_fail(err, TMK_EFULL, "more than %d processes use card %u", RAW_PROCESSES_MOST,
                        device->number);
    if (code == OUT_OF_MEMORY)
        return tmk_fail(err, TMK_ENOMEM, "no memory for the processes of card %u", device->number);
    if (!is_had)
        return report_nvml_failure(nvml, device, code, err);
    add_each_process(nvml, n, ret);
    return 0;
}

const struct tmk_device_source tmk_source_nvml = {
    .open = nvml_open,
    .memory = nvml_memory,
    .load = nvml_load,
    .processes = nvml_processes,
    .close = nvml_close,
};
