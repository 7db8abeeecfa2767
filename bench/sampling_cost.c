/* SPDX-License-Identifier: MIT */
/* sampling_cost.c - the least that sampling can cost: sampling_cost LIBRARY STATE DEVICES HZ
 * SECONDS.
 *
 * bench/run measures our sampling against the stand-in for NVML, which reads a text file at every
 * call. This loop does nothing but sleep and make those calls, so what it costs is not ours. Prints
 * {"share": percent of a core}. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/nvml_abi.h"

enum { MOST_DEVICES = 64 };

struct library {
    int (*init)(void);
    int (*handle)(unsigned, struct tmk_nvml_device **);
    int (*memory)(struct tmk_nvml_device *, struct tmk_nvml_memory_v2 *);
    struct tmk_nvml_device *devices[MOST_DEVICES];
};

static void find(void *handle, const char *name, void *place)
{
    void *found = dlsym(handle, name);
    if (!found) {
        fprintf(stderr, "sampling_cost: no %s\n", name);
        exit(1);
    }
    memcpy(place, &found, sizeof found);
}

/* Memory of all devices, once. */
static void look(const struct library *nvml, unsigned n_devices)
{
    for (unsigned i = 0; i < n_devices; i++) {
        struct tmk_nvml_memory_v2 m = {.version = TMK_NVML_MEMORY_V2};
        if (nvml->memory(nvml->devices[i], &m) != TMK_NVML_OK)
            exit(1);
    }
}

static void open_devices(struct library *nvml, unsigned n_devices)
{
    if (n_devices > MOST_DEVICES || nvml->init() != TMK_NVML_OK)
        exit(1);
    for (unsigned i = 0; i < n_devices; i++)
        if (nvml->handle(i, &nvml->devices[i]) != TMK_NVML_OK)
            exit(1);
}

int main(int argc, char **argv)
{
    struct library nvml;
    void *handle = argc == 6 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!handle) {
        fprintf(stderr, "usage: sampling_cost LIBRARY STATE DEVICES HZ SECONDS\n");
        return 2;
    }
    setenv("FAKE_CUDA_STATE", argv[2], 1);
    find(handle, "nvmlInit_v2", &nvml.init);
    find(handle, "nvmlDeviceGetHandleByIndex_v2", &nvml.handle);
    find(handle, "nvmlDeviceGetMemoryInfo_v2", &nvml.memory);
    unsigned n_devices = (unsigned)strtoul(argv[3], NULL, 10);
    unsigned long hz = strtoul(argv[4], NULL, 10), seconds = strtoul(argv[5], NULL, 10);
    open_devices(&nvml, n_devices);
    uint64_t start = tmk_clock_monotonic_ns(), cpu = tmk_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned long i = 1; i <= hz * seconds; i++) {
        uint64_t due = start + i * (1000000000u / hz);
        struct timespec until = {.tv_sec = (time_t)(due / 1000000000u),
                                 .tv_nsec = (long)(due % 1000000000u)};
        look(&nvml, n_devices);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    cpu = tmk_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("{\"share\": %.4f}\n", (double)cpu / 1e7 / (double)seconds);
    return 0;
}
