/* SPDX-License-Identifier: MIT */
/* fake_nvml.c - a libnvidia-ml.so.1 for machines without a card.
 *
 * What it answers is computed from a text, see fake_machine.h. Of the two functions for memory the
 * older one counts reserved as used. No lock: tests ask from one thread. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_machine.h"

#define EXPORT __attribute__((visibility("default")))

/* Handles are addresses in `devices`, and stay good. */
static struct fake_machine machine;
static int n_started;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int code);
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORT int nvmlSystemGetCudaDriverVersion(int *version);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct tmk_nvml_device **device);
EXPORT int nvmlDeviceGetName(struct tmk_nvml_device *device, char *name, unsigned length);
EXPORT int nvmlDeviceGetUUID(struct tmk_nvml_device *device, char *uuid, unsigned length);
EXPORT int nvmlDeviceGetMemoryInfo(struct tmk_nvml_device *device, struct tmk_nvml_memory *memory);
EXPORT int nvmlDeviceGetComputeMode(struct tmk_nvml_device *device, unsigned *mode);
EXPORT int nvmlDeviceGetMigMode(struct tmk_nvml_device *device, unsigned *current,
                                unsigned *pending);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct tmk_nvml_device *device, unsigned *count);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct tmk_nvml_device *device, unsigned index,
                                               struct tmk_nvml_device **part);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(struct tmk_nvml_device *device, unsigned *count,
                                                   struct tmk_nvml_process *processes);

#ifndef FAKE_NVML_460
EXPORT int nvmlDeviceGetUtilizationRates(struct tmk_nvml_device *device,
                                         struct tmk_nvml_utilization *rates);
EXPORT int nvmlDeviceGetPowerUsage(struct tmk_nvml_device *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetEnforcedPowerLimit(struct tmk_nvml_device *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetTemperature(struct tmk_nvml_device *device, unsigned sensor,
                                    unsigned *celsius);
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct tmk_nvml_device *device,
                                      struct tmk_nvml_memory_v2 *memory);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct tmk_nvml_device *device, unsigned *count,
                                                   struct tmk_nvml_process *processes);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(struct tmk_nvml_device *device, unsigned *count,
                                                    struct tmk_nvml_process *processes);
#endif

/* ---- the machine as it is now ---- */

/* Look at it, and whether `function` may answer for `device`. */
static int look(const char *function, const struct tmk_nvml_device *device)
{
    if (!fake_machine_read(&machine))
        return TMK_NVML_DRIVER_NOT_LOADED;
    int number = device ? (int)(device - machine.devices) : FAKE_EVERYWHERE;
    for (int i = 0; i < machine.n_failures; i++) {
        const struct fake_failure *f = &machine.failures[i];
        if ((f->device == FAKE_EVERYWHERE || f->device == number) &&
            strcmp(f->function, function) == 0)
            return f->code;
    }
    if (n_started == 0 && strcmp(function, "nvmlInit_v2") != 0)
        return TMK_NVML_UNINITIALIZED;
    return number < machine.n_devices ? TMK_NVML_OK : TMK_NVML_GPU_IS_LOST;
}

static int answer_text(const char *text, char *to, unsigned length)
{
    if (strlen(text) >= length)
        return TMK_NVML_INSUFFICIENT_SIZE;
    snprintf(to, length, "%s", text);
    return TMK_NVML_OK;
}

/* ---- the machine ---- */

/* Of the library's own, as a driver's may have: it takes signals that it was not made to block. */
static pthread_t thread;
static bool has_thread;

static void *sleep_always(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int nvmlInit_v2(void)
{
    int code = look(__func__, NULL);
    if (code == TMK_NVML_OK && n_started++ == 0)
        has_thread = pthread_create(&thread, NULL, sleep_always, NULL) == 0;
    return code;
}

int nvmlShutdown(void)
{
    if (n_started == 0)
        return TMK_NVML_UNINITIALIZED;
    if (--n_started == 0 && has_thread) {
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    return TMK_NVML_OK;
}

const char *nvmlErrorString(int code)
{
    switch (code) {
    case TMK_NVML_OK:
        return "Success";
    case TMK_NVML_NOT_SUPPORTED:
        return "Not Supported";
    case TMK_NVML_NO_PERMISSION:
        return "Insufficient Permissions";
    case TMK_NVML_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case TMK_NVML_GPU_IS_LOST:
        return "GPU is lost";
    case TMK_NVML_VERSION_MISMATCH:
        return "Driver/library version mismatch";
    default:
        return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    int code = look(__func__, NULL);
    return code ? code : answer_text(machine.driver, version, length);
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    int code = look(__func__, NULL);
    if (code == TMK_NVML_OK)
        *version = machine.cuda;
    return code;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    int code = look(__func__, NULL);
    unsigned n = 0;
    while (fake_machine_find(&machine, false, FAKE_EVERYWHERE, n))
        n++;
    if (code == TMK_NVML_OK)
        *count = n;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct tmk_nvml_device **device)
{
    int code = look(__func__, NULL);
    struct tmk_nvml_device *found = fake_machine_find(&machine, false, FAKE_EVERYWHERE, index);
    if (code == TMK_NVML_OK)
        code = found ? look(__func__, found) : TMK_NVML_INVALID_ARGUMENT;
    if (code == TMK_NVML_OK)
        *device = found;
    return code;
}

/* ---- one card or part ---- */

int nvmlDeviceGetName(struct tmk_nvml_device *device, char *name, unsigned length)
{
    int code = look(__func__, device);
    return code ? code : answer_text(device->name, name, length);
}

int nvmlDeviceGetUUID(struct tmk_nvml_device *device, char *uuid, unsigned length)
{
    int code = look(__func__, device);
    return code ? code : answer_text(device->uuid, uuid, length);
}

int nvmlDeviceGetComputeMode(struct tmk_nvml_device *device, unsigned *mode)
{
    int code = look(__func__, device);
    if (code == TMK_NVML_OK)
        *mode = device->mode;
    return code;
}

int nvmlDeviceGetMemoryInfo(struct tmk_nvml_device *device, struct tmk_nvml_memory *memory)
{
    int code = look(__func__, device);
    if (code == TMK_NVML_OK) {
        uint64_t used = fake_machine_used(&machine, device) + device->reserved_bytes;
        *memory = (struct tmk_nvml_memory){
            .total = device->total_bytes, .used = used, .free = device->total_bytes - used};
    }
    return code;
}

#ifndef FAKE_NVML_460

/* ---- load ---- */

/* A number of the state, which is below zero where the card does not support it. */
static int answer_number(int code, int number, unsigned *ret)
{
    if (code == TMK_NVML_OK && number < 0)
        code = TMK_NVML_NOT_SUPPORTED;
    if (code == TMK_NVML_OK)
        *ret = (unsigned)number;
    return code;
}

int nvmlDeviceGetUtilizationRates(struct tmk_nvml_device *device,
                                  struct tmk_nvml_utilization *rates)
{
    rates->memory = 0;
    return answer_number(look(__func__, device), device->busy_percent, &rates->gpu);
}

int nvmlDeviceGetPowerUsage(struct tmk_nvml_device *device, unsigned *milliwatts)
{
    return answer_number(look(__func__, device), device->power_mw, milliwatts);
}

int nvmlDeviceGetEnforcedPowerLimit(struct tmk_nvml_device *device, unsigned *milliwatts)
{
    return answer_number(look(__func__, device), device->power_limit_mw, milliwatts);
}

int nvmlDeviceGetTemperature(struct tmk_nvml_device *device, unsigned sensor, unsigned *celsius)
{
    int code = look(__func__, device);
    if (code == TMK_NVML_OK && sensor != TMK_NVML_SENSOR_GPU)
        code = TMK_NVML_INVALID_ARGUMENT;
    return answer_number(code, device->temperature_c, celsius);
}

#endif

/* ---- parts ---- */

int nvmlDeviceGetMigMode(struct tmk_nvml_device *device, unsigned *current, unsigned *pending)
{
    int code = look(__func__, device);
    if (code == TMK_NVML_OK && device->mig_mode < 0)
        code = TMK_NVML_NOT_SUPPORTED;
    if (code == TMK_NVML_OK)
        *current = *pending = (unsigned)device->mig_mode;
    return code;
}

/* The hardware's limit, as the real one tells: not how many there are. */
int nvmlDeviceGetMaxMigDeviceCount(struct tmk_nvml_device *device, unsigned *count)
{
    int code = look(__func__, device);
    if (code == TMK_NVML_OK)
        *count = device->mig_mode < 0 ? 0 : 7;
    return code;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct tmk_nvml_device *device, unsigned index,
                                        struct tmk_nvml_device **part)
{
    int code = look(__func__, device);
    struct tmk_nvml_device *found =
        fake_machine_find(&machine, true, (int)(device - machine.devices), index);
    if (code == TMK_NVML_OK && !found)
        code = TMK_NVML_NOT_FOUND;
    if (code == TMK_NVML_OK)
        *part = found;
    return code;
}

/* ---- processes ---- */

static int list_processes(const struct tmk_nvml_device *device, bool graphics, unsigned *count,
                          struct tmk_nvml_process *to)
{
    unsigned n = 0;
    for (int i = 0; i < machine.n_processes; i++) {
        const struct fake_process *p = &machine.processes[i];
        const struct tmk_nvml_device *on = &machine.devices[p->device];
        if (!fake_machine_is_on(&machine, p->device, device) || p->is_graphics != graphics)
            continue;
        uint32_t instance = on->is_part ? on->number : TMK_NVML_NO_INSTANCE;
        if (n < *count)
            to[n] = (struct tmk_nvml_process){.pid = p->pid,
                                              .used_bytes = p->used_bytes,
                                              .gpu_instance = instance,
                                              .compute_instance = instance};
        n++;
    }
    int code = n > *count ? TMK_NVML_INSUFFICIENT_SIZE : TMK_NVML_OK;
    *count = n;
    return code;
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct tmk_nvml_device *device, unsigned *count,
                                            struct tmk_nvml_process *processes)
{
    int code = look(__func__, device);
    return code ? code : list_processes(device, false, count, processes);
}

/* ---- since driver 510 ---- */

#ifndef FAKE_NVML_460

int nvmlDeviceGetMemoryInfo_v2(struct tmk_nvml_device *device, struct tmk_nvml_memory_v2 *memory)
{
    int code = look(__func__, device);
    if (code == TMK_NVML_OK && memory->version != TMK_NVML_MEMORY_V2)
        code = TMK_NVML_ARGUMENT_VERSION;
    if (code == TMK_NVML_OK) {
        memory->total = device->total_bytes;
        memory->reserved = device->reserved_bytes;
        memory->used = fake_machine_used(&machine, device);
        memory->free = memory->total - memory->reserved - memory->used;
    }
    return code;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct tmk_nvml_device *device, unsigned *count,
                                            struct tmk_nvml_process *processes)
{
    int code = look(__func__, device);
    return code ? code : list_processes(device, false, count, processes);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(struct tmk_nvml_device *device, unsigned *count,
                                             struct tmk_nvml_process *processes)
{
    int code = look(__func__, device);
    return code ? code : list_processes(device, true, count, processes);
}

#endif
