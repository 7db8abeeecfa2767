/* SPDX-License-Identifier: MIT */
/* record/driver/device_samples.c - see device_samples.h. A device's number here is CUDA's in this
 * process. NVML's is another one where CUDA_VISIBLE_DEVICES says so; the GPU is found by its id. */
#include "record/driver/device_samples.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forks.h"
#include "base/nvml_abi.h"
#include "record/core/helper.h"
#include "record/core/lane.h"
#include "record/core/packing.h"
#include "record/core/recorder.h"
#include "record/core/torch_state.h"
#include "record/driver/driver.h"
#include "record/driver/driver_changes.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum {
    MAX_DEVICES = TMK_DRIVER_DEVICES,
    MAX_PROCESSES = 256,
    ID_BYTES = 16,
    MAX_TRIES = 8,
    TRY_AGAIN_NS = 300000,
    LOOK_NS = 20000000,
    STACK_BYTES = 512 * 1024,
};
static const uint64_t period_ns = 1000000000u, soonest_ns = 100000000u;

static struct {
    bool was_loaded, is_ready; /* loading was tried; it works */
    int (*init)(void);
    int (*count)(unsigned *ret);
    int (*by_index)(unsigned index, struct tmk_nvml_device **ret);
    int (*id)(struct tmk_nvml_device *device, char *text, unsigned length);
    int (*memory)(struct tmk_nvml_device *device, struct tmk_nvml_memory *ret);
    int (*memory_v2)(struct tmk_nvml_device *device, struct tmk_nvml_memory_v2 *ret);
    int (*processes)(struct tmk_nvml_device *device, unsigned *n, struct tmk_nvml_process *ret);
    struct {
        bool was_looked_for;
        struct tmk_nvml_device *handle; /* NULL: not found */
    } gpus[MAX_DEVICES];
    uint64_t taken_ns;
    uint64_t n_changes; /* changes of what is held, as of the last sample */
} nvml;

/* ---- loading ---- */

static bool load_nvml(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml.count = dlsym(library, "nvmlDeviceGetCount_v2");
    *(void **)&nvml.by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&nvml.id = dlsym(library, "nvmlDeviceGetUUID");
    *(void **)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
    *(void **)&nvml.memory_v2 = dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
    *(void **)&nvml.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (!nvml.processes)
        *(void **)&nvml.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
    return nvml.init && nvml.count && nvml.by_index && nvml.id && nvml.memory &&
           nvml.init() == TMK_NVML_OK;
}

static bool is_nvml_ready(void)
{
    if (!nvml.was_loaded)
        nvml.is_ready = load_nvml();
    nvml.was_loaded = true;
    return nvml.is_ready;
}

/* ---- gpus ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The id's text is "GPU-" and hexadecimal digits with dashes between. */
static bool is_same_id(const char *text, const uint8_t *id)
{
    int n = 2 * ID_BYTES;
    if (strncmp(text, "GPU-", 4) != 0)
        return false;
    for (size_t i = strlen(text); i > 4; i--) {
        int value = hex_digit(text[i - 1]);
        if (value < 0)
            continue;
        if (n-- == 0 || value != (n % 2 ? id[n / 2] & 0xf : id[n / 2] >> 4))
            return false;
    }
    return true;
}

static struct tmk_nvml_device *find_nvml_device(unsigned device)
{
    int (*ask)(uint8_t * ret, int device) =
        (int (*)(uint8_t *, int))tmk_driver_symbol("cuDeviceGetUuid");
    uint8_t id[ID_BYTES];
    unsigned n = 0;
    if (!ask || ask(id, (int)device) != 0 || nvml.count(&n) != TMK_NVML_OK)
        return NULL;
    for (unsigned i = 0; i < n; i++) {
        struct tmk_nvml_device *gpu = NULL;
        char text[TMK_NVML_TEXT_BYTES] = "";
        if (nvml.by_index(i, &gpu) == TMK_NVML_OK &&
            nvml.id(gpu, text, sizeof text) == TMK_NVML_OK && is_same_id(text, id))
            return gpu;
    }
    return NULL;
}

static struct tmk_nvml_device *nvml_device_of(unsigned device)
{
    if (!nvml.gpus[device].was_looked_for) {
        nvml.gpus[device].was_looked_for = true;
        nvml.gpus[device].handle = find_nvml_device(device);
    }
    return nvml.gpus[device].handle;
}

/* ---- samples ---- */

static bool ask_memory(struct tmk_nvml_device *gpu, struct tmk_sample_body *ret)
{
    struct tmk_nvml_memory_v2 more = {.version = TMK_NVML_MEMORY_V2};
    struct tmk_nvml_memory memory;
    if (nvml.memory_v2 && nvml.memory_v2(gpu, &more) == TMK_NVML_OK) {
        ret->used_bytes = more.used;
        ret->total_bytes = more.total - more.reserved;
        return true;
    }
    if (nvml.memory(gpu, &memory) != TMK_NVML_OK)
        return false;
    ret->used_bytes = memory.used;
    ret->total_bytes = memory.total;
    return true;
}

/* In a container the driver may know us by another number: one that no process here has. */
static bool is_own_process(const struct tmk_nvml_process *process, unsigned n)
{
    if (process->pid == (uint32_t)getpid())
        return true;
    return n == 1 && kill((pid_t)process->pid, 0) < 0 && errno == ESRCH;
}

static void ask_processes(struct tmk_nvml_device *gpu, struct tmk_sample_body *ret)
{
    static struct tmk_nvml_process list[MAX_PROCESSES];
    unsigned n = MAX_PROCESSES;
    uint64_t own = UINT64_MAX, others = 0;
    ret->own_bytes = ret->others_bytes = UINT64_MAX;
    if (!nvml.processes || nvml.processes(gpu, &n, list) != TMK_NVML_OK)
        return;
    for (unsigned i = 0; i < n; i++) {
        bool is_known = list[i].used_bytes != TMK_NVML_UNAVAILABLE;
        if (is_own_process(&list[i], n) && is_known)
            own = list[i].used_bytes;
        else if (others != UINT64_MAX)
            others = is_known ? others + list[i].used_bytes : UINT64_MAX;
    }
    ret->own_bytes = own;
    ret->others_bytes = own == UINT64_MAX ? UINT64_MAX : others;
}

/* Ask before, between and after the questions whether a call that changes our memory is under way.
 * If none is, the driver's figures and ours are of one moment. In a program that is never quiet,
 * samples do not tell its own share. */
static bool ask_quietly(struct tmk_nvml_device *gpu, uint64_t *ret_ticks,
                        struct tmk_sample_body *ret)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        uint64_t n_ended, n_begun = tmk_driver_changes_n_calls(&n_ended), n_changes, n_now;
        tmk_driver_changes_devices(&n_changes);
        *ret_ticks = tmk_clock_ticks(tmk_recorder.counter);
        if (!ask_memory(gpu, ret))
            return false;
        ask_processes(gpu, ret);
        tmk_driver_changes_devices(&n_now);
        uint64_t ended_now, begun_now = tmk_driver_changes_n_calls(&ended_now);
        if (n_begun == n_ended && begun_now == n_begun && ended_now == n_ended &&
            n_now == n_changes)
            return true;
        struct timespec pause = {.tv_nsec = TRY_AGAIN_NS};
        nanosleep(&pause, NULL);
    }
    ret->own_bytes = ret->others_bytes = UINT64_MAX;
    return true;
}

static void take_device_sample(unsigned device)
{
    struct tmk_sample_body sample;
    uint64_t ticks;
    struct tmk_nvml_device *gpu = nvml_device_of(device);
    if (!gpu || !ask_quietly(gpu, &ticks, &sample))
        return;
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    tmk_lane_put_text_at(lane, ticks, TMK_KIND_SAMPLE, tmk_cuda_device(device), 0, &sample,
                         sizeof sample);
    tmk_lane_leave(lane);
}

static void take_samples(uint64_t devices)
{
    if (!is_nvml_ready())
        return;
    for (unsigned i = 0; i < MAX_DEVICES; i++)
        if (devices >> i & 1)
            take_device_sample(i);
}

/* NVML and the loader have locks, which a child that is forked meanwhile would find locked. */
static void look_at_devices(uint64_t now_ns, bool at_once)
{
    uint64_t n_changes, devices = tmk_driver_changes_devices(&n_changes);
    devices |= atomic_load(&tmk_torch_hot.cuda_devices); /* maybe used before we came */
    uint64_t age_ns = now_ns - nvml.taken_ns;
    bool is_due = age_ns >= period_ns || (n_changes != nvml.n_changes && age_ns >= soonest_ns);
    if (devices == 0 || !(is_due || at_once) || (nvml.was_loaded && !nvml.is_ready))
        return;
    nvml.taken_ns = now_ns;
    nvml.n_changes = n_changes;
    tmk_forks_hold();
    take_samples(devices);
    tmk_forks_let();
}

/* ---- the thread ---- */

static _Atomic uint32_t started_for; /* the recording that the thread was started for */
static _Atomic pid_t runs_in;        /* 0: nowhere; a child does not have its parent's thread */

/* A child of the process that loaded NVML loads it anew. */
static void reset_nvml(void)
{
    static pid_t owner;
    if (owner != getpid()) {
        memset(&nvml, 0, sizeof nvml);
        owner = getpid();
    }
    nvml.taken_ns = nvml.n_changes = 0;
}

static void *samples_main(void *arg)
{
    struct tmk_control *c = tmk_recorder.control;
    uint32_t generation = (uint32_t)(uintptr_t)arg;
    prctl(PR_SET_NAME, "tidemark-nvml", 0, 0, 0);
    reset_nvml();
    atomic_store(&runs_in, getpid());
    while (!atomic_load(&c->stop) && atomic_load(&c->generation) == generation) {
        look_at_devices(tmk_clock_monotonic_ns(), atomic_exchange(&c->sample, 0));
        if (!atomic_load(&c->sample))
            tmk_packing_sleep(LOOK_NS);
    }
    atomic_store(&runs_in, 0);
    return NULL;
}

unsigned tmk_device_samples_n_threads(void)
{
    return atomic_load(&runs_in) == getpid();
}

void tmk_device_samples_want(void)
{
    uint32_t generation = atomic_load(&tmk_recorder.control->generation);
    uint32_t before = atomic_load_explicit(&started_for, memory_order_relaxed);
    if (generation == 0 || before == generation ||
        !atomic_compare_exchange_strong(&started_for, &before, generation))
        return;
    (void)tmk_helper_start(samples_main, (void *)(uintptr_t)generation, STACK_BYTES);
}
