/* SPDX-License-Identifier: MIT */
/* fake_nvml.c - a libnvidia-ml.so.1 for machines without a card.
 *
 * What it answers is computed from a text, the file that $FAKE_CUDA_STATE names. It is read anew at
 * each call, so a test changes the machine by changing the file. A line is one of
 *
 *     driver 580.95.05           version of the driver
 *     cuda 13000                 the newest CUDA that it can run
 *     device TOTAL NAME          a card; lines below are about it, until the next one
 *     mig TOTAL NAME             a part of the last card; likewise
 *     uuid TEXT                  else GPU-0, GPU-1, and MIG-0-0 for parts
 *     reserved BYTES             what the driver keeps
 *     mode N                     compute mode
 *     migmode 0|1                else the card knows nothing of MIG
 *     process PID BYTES|-        a compute process; -: the driver does not tell its bytes
 *     graphics PID BYTES|-
 *     hidden BYTES               by processes of namespaces that the asker is not told of
 *     fail FUNCTION CODE         it answers CODE: for this card, or, before the first, always
 *
 * The accounts add up: used = processes and hidden, a card's and its parts'; free = total -
 * reserved - used, of which the older function counts reserved as used. No lock: tests ask from one
 * thread. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nvml_abi.h"

#define EXPORT __attribute__((visibility("default")))

enum { MOST_DEVICES = 64, MOST_PROCESSES = 2048, MOST_FAILURES = 16, EVERYWHERE = -1 };

struct tmk_nvml_device {
    int card; /* of a part: whose */
    bool is_part;
    unsigned number; /* among the cards, or among the card's parts */
    char name[TMK_NVML_TEXT_BYTES], uuid[TMK_NVML_TEXT_BYTES];
    uint64_t total_bytes, reserved_bytes, hidden_bytes;
    unsigned mode;
    int mig_mode; /* -1: none */
};

struct process {
    int device;
    bool is_graphics;
    unsigned pid;
    uint64_t used_bytes;
};

struct failure {
    int device;
    char function[64];
    int code;
};

/* The machine as the text has it. Handles are addresses in `devices`, and stay good. */
static struct {
    int n_started;
    char driver[80];
    int cuda;
    struct tmk_nvml_device devices[MOST_DEVICES];
    int n_devices;
    struct process processes[MOST_PROCESSES];
    int n_processes;
    struct failure failures[MOST_FAILURES];
    int n_failures;
} machine;

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
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct tmk_nvml_device *device,
                                      struct tmk_nvml_memory_v2 *memory);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct tmk_nvml_device *device, unsigned *count,
                                                   struct tmk_nvml_process *processes);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(struct tmk_nvml_device *device, unsigned *count,
                                                    struct tmk_nvml_process *processes);
#endif

/* ---- reading the text ---- */

static void wrong(const char *line)
{
    fprintf(stderr, "fake_nvml: $FAKE_CUDA_STATE: cannot read: %s\n", line);
    abort();
}

static void add_device(const char *line, bool is_part)
{
    if (machine.n_devices == MOST_DEVICES)
        wrong(line);
    int self = machine.n_devices++, card = self;
    struct tmk_nvml_device *d = &machine.devices[self];
    unsigned number = 0;
    for (int i = self - 1; i >= 0; i--) {
        if (is_part && !machine.devices[i].is_part) {
            card = i;
            break;
        }
        number += machine.devices[i].is_part == is_part;
    }
    *d = (struct tmk_nvml_device){
        .card = card, .is_part = is_part, .number = number, .mig_mode = -1};
    if (sscanf(line, "%*s %" SCNu64 " %95[^\n]", &d->total_bytes, d->name) != 2)
        wrong(line);
    if (is_part)
        snprintf(d->uuid, sizeof d->uuid, "MIG-%u-%u", machine.devices[card].number, number);
    else
        snprintf(d->uuid, sizeof d->uuid, "GPU-%u", number);
}

static void add_process(const char *line, bool is_graphics)
{
    struct process *p = &machine.processes[machine.n_processes++];
    char bytes[24];
    if (machine.n_processes == MOST_PROCESSES || sscanf(line, "%*s %u %23s", &p->pid, bytes) != 2)
        wrong(line);
    p->device = machine.n_devices - 1;
    p->is_graphics = is_graphics;
    p->used_bytes = bytes[0] == '-' ? TMK_NVML_UNAVAILABLE : strtoull(bytes, NULL, 10);
}

static void add_failure(const char *line)
{
    struct failure *f = &machine.failures[machine.n_failures++];
    if (machine.n_failures == MOST_FAILURES ||
        sscanf(line, "%*s %63s %d", f->function, &f->code) != 2)
        wrong(line);
    f->device = machine.n_devices ? machine.n_devices - 1 : EVERYWHERE;
}

/* A line about the card or part above it; false: it is not one. */
static bool read_detail(const char *line)
{
    struct tmk_nvml_device *d = &machine.devices[machine.n_devices ? machine.n_devices - 1 : 0];
    return sscanf(line, "uuid %95s", d->uuid) == 1 ||
           sscanf(line, "reserved %" SCNu64, &d->reserved_bytes) == 1 ||
           sscanf(line, "hidden %" SCNu64, &d->hidden_bytes) == 1 ||
           sscanf(line, "mode %u", &d->mode) == 1 || sscanf(line, "migmode %d", &d->mig_mode) == 1;
}

static void read_line(const char *line)
{
    if (strncmp(line, "device ", 7) == 0)
        add_device(line, false);
    else if (strncmp(line, "mig ", 4) == 0)
        add_device(line, true);
    else if (strncmp(line, "process ", 8) == 0)
        add_process(line, false);
    else if (strncmp(line, "graphics ", 9) == 0)
        add_process(line, true);
    else if (strncmp(line, "fail ", 5) == 0)
        add_failure(line);
    else if (sscanf(line, "driver %79s", machine.driver) != 1 &&
             sscanf(line, "cuda %d", &machine.cuda) != 1 && !read_detail(line))
        wrong(line);
}

/* The machine as it is now, and whether `function` may answer for `device`. */
static int look(const char *function, const struct tmk_nvml_device *device)
{
    const char *path = getenv("FAKE_CUDA_STATE");
    FILE *in = path ? fopen(path, "r") : NULL;
    char line[256];
    machine.n_devices = machine.n_processes = machine.n_failures = 0;
    while (in && fgets(line, sizeof line, in))
        if (line[0] != '\n')
            read_line(line);
    if (!in)
        return TMK_NVML_DRIVER_NOT_LOADED;
    fclose(in);
    int number = device ? (int)(device - machine.devices) : EVERYWHERE;
    for (int i = 0; i < machine.n_failures; i++) {
        const struct failure *f = &machine.failures[i];
        if ((f->device == EVERYWHERE || f->device == number) && strcmp(f->function, function) == 0)
            return f->code;
    }
    if (machine.n_started == 0 && strcmp(function, "nvmlInit_v2") != 0)
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

int nvmlInit_v2(void)
{
    int code = look(__func__, NULL);
    machine.n_started += code == TMK_NVML_OK;
    return code;
}

int nvmlShutdown(void)
{
    if (machine.n_started == 0)
        return TMK_NVML_UNINITIALIZED;
    machine.n_started--;
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

/* The card or part `number`, of `card` for a part; NULL: none. */
static struct tmk_nvml_device *find(bool is_part, int card, unsigned number)
{
    for (int i = 0; i < machine.n_devices; i++) {
        struct tmk_nvml_device *d = &machine.devices[i];
        if (d->is_part == is_part && d->number == number && (!is_part || d->card == card))
            return d;
    }
    return NULL;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    int code = look(__func__, NULL);
    unsigned n = 0;
    while (find(false, EVERYWHERE, n))
        n++;
    if (code == TMK_NVML_OK)
        *count = n;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct tmk_nvml_device **device)
{
    int code = look(__func__, NULL);
    struct tmk_nvml_device *found = find(false, EVERYWHERE, index);
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

/* Is what is on the device of this number on `d`? What is on a part is on its card too. */
static bool is_on(int number, const struct tmk_nvml_device *d)
{
    int self = (int)(d - machine.devices);
    return number == self || machine.devices[number].card == self;
}

static uint64_t used_bytes(const struct tmk_nvml_device *d)
{
    uint64_t sum = 0;
    for (int i = 0; i < machine.n_processes; i++) {
        const struct process *p = &machine.processes[i];
        if (is_on(p->device, d) && p->used_bytes != TMK_NVML_UNAVAILABLE)
            sum += p->used_bytes;
    }
    for (int i = 0; i < machine.n_devices; i++)
        if (is_on(i, d))
            sum += machine.devices[i].hidden_bytes;
    return sum;
}

int nvmlDeviceGetMemoryInfo(struct tmk_nvml_device *device, struct tmk_nvml_memory *memory)
{
    int code = look(__func__, device);
    if (code == TMK_NVML_OK) {
        uint64_t used = used_bytes(device) + device->reserved_bytes;
        *memory = (struct tmk_nvml_memory){
            .total = device->total_bytes, .used = used, .free = device->total_bytes - used};
    }
    return code;
}

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
    struct tmk_nvml_device *found = find(true, (int)(device - machine.devices), index);
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
        const struct process *p = &machine.processes[i];
        const struct tmk_nvml_device *on = &machine.devices[p->device];
        if (!is_on(p->device, device) || p->is_graphics != graphics)
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
        memory->used = used_bytes(device);
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
