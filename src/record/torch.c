/* SPDX-License-Identifier: MIT */
/* record/torch.c - see torch.h.
 *
 * Names with "lll" are those of torch 1.13, with "lmm" of 2.x: sizes became unsigned. A Device is
 * two bytes, type and index, and comes in a register. libc10 is loaded RTLD_LOCAL: its functions
 * are found by asking that library, never by RTLD_NEXT. */
#include "record/torch.h"

#include <dlfcn.h>
#include <stddef.h>

#include "record/intern.h"
#include "record/library.h"
#include "record/pystack.h"
#include "record/recorder.h"
#include "record/torch_backward.h"
#include "tidemark/tidemark.h"

enum { DEVICE_CPU = 0, MAX_DEVICES = 16 };

#define NAME_USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define NAME_USAGE_113 "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define NAME_OOM "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#define NAME_OOM_113 "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"
#define NAME_CPU_NEW "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"
#define NAME_CPU_DELETE "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"
#define NAME_CPU_OOM "_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm"

/* A hook has a hidden name, by which its address is ours whoever else defines torch's name, and
 * that name as well, for the loader to find. */
#define EXPORT(hook, name)                                                                         \
    extern __typeof__(hook) hook##_export __asm__(name)                                            \
        __attribute__((alias(#hook), visibility("default")))

typedef void usage_function(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                            uint16_t device);
typedef void oom_function(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device);
typedef void cpu_new_function(void *self, void *address, size_t size);
typedef void cpu_delete_function(void *self, void *address);
typedef void cpu_oom_function(void *self, size_t size);

static usage_function hook_usage, hook_usage_113;
static oom_function hook_oom, hook_oom_113;
static cpu_new_function hook_cpu_new;
static cpu_delete_function hook_cpu_delete;
static cpu_oom_function hook_cpu_oom;

enum { USAGE, USAGE_113, OOM, OOM_113, CPU_NEW, CPU_DELETE, CPU_OOM, BACKWARD };

struct tmk_hook tmk_torch_hooks[TMK_N_TORCH_HOOKS] = {
    [USAGE] = {NAME_USAGE, "libc10.so", (void *)hook_usage, 0, 0},
    [USAGE_113] = {NAME_USAGE_113, "libc10.so", (void *)hook_usage_113, 0, 0},
    [OOM] = {NAME_OOM, "libc10.so", (void *)hook_oom, 0, 0},
    [OOM_113] = {NAME_OOM_113, "libc10.so", (void *)hook_oom_113, 0, 0},
    [CPU_NEW] = {NAME_CPU_NEW, "libc10.so", (void *)hook_cpu_new, 0, 0},
    [CPU_DELETE] = {NAME_CPU_DELETE, "libc10.so", (void *)hook_cpu_delete, 0, 0},
    [CPU_OOM] = {NAME_CPU_OOM, "libc10.so", (void *)hook_cpu_oom, 0, 0},
    [BACKWARD] = {TMK_NAME_BACKWARD, "libtorch_cpu.so", (void *)tmk_hook_backward, 0, 0},
};

/* Another preloaded library's, if one stands in front of torch as we do, else torch's own. */
static uintptr_t find_real(const struct tmk_hook *hook)
{
    void *next = dlsym(RTLD_NEXT, hook->name);
    if (next && next != hook->ours)
        return (uintptr_t)next;
    return (uintptr_t)tmk_library_symbol(hook->library, hook->name);
}

void *tmk_torch_find_real(struct tmk_hook *hook)
{
    uintptr_t real = atomic_load_explicit(&hook->real, memory_order_acquire);
    if (real == 0) {
        real = find_real(hook);
        atomic_store_explicit(&hook->real, real, memory_order_release);
    }
    return (void *)real;
}

/* Whoever calls without torch, a test or a measurement, shall not look for it each time. */
static void *real_of(struct tmk_hook *hook)
{
    uintptr_t real = atomic_load_explicit(&hook->real, memory_order_acquire);
    if (__builtin_expect(real != 0, 1))
        return (void *)real;
    uint32_t n = atomic_fetch_add_explicit(&hook->n_missed, 1, memory_order_relaxed);
    return n % 4096 == 0 ? tmk_torch_find_real(hook) : NULL;
}

/* ---- devices ---- */

/* What was last said of a device; written under torch's lock of that device. */
static struct {
    _Atomic uint32_t generation; /* in which it was said */
    uint16_t device;
    uint64_t reserved_bytes;
} said[MAX_DEVICES];

static _Atomic uint32_t host_seen; /* in this generation host blocks were recorded */
static _Atomic uint32_t host_ends; /* and in this one no more are */

static uint16_t device_of(uint16_t torch_device)
{
    unsigned type = torch_device & 0xff, index = torch_device >> 8;
    return type == DEVICE_CPU ? TIDEMARK_HOST : (uint16_t)(type << 8 | index);
}

static void note_reserved(struct tmk_lane *lane, uint16_t device, uint64_t reserved_bytes)
{
    unsigned i = device % MAX_DEVICES;
    bool same = said[i].device == device && said[i].reserved_bytes == reserved_bytes &&
                atomic_load_explicit(&said[i].generation, memory_order_relaxed) == lane->generation;
    if (__builtin_expect(same, 1))
        return;
    said[i].device = device;
    said[i].reserved_bytes = reserved_bytes;
    atomic_store_explicit(&said[i].generation, lane->generation, memory_order_relaxed);
    tmk_lane_put(lane, TMK_KIND_RESERVED, device, 0, reserved_bytes, 0);
}

/* An accelerator is in use: host tensors are no longer what fills it. */
static void end_host(struct tmk_lane *lane)
{
    if (tmk_recorder.settings.cpu_tensors || atomic_load(&host_ends) == lane->generation)
        return;
    atomic_store(&host_ends, lane->generation);
    if (atomic_load(&host_seen) != lane->generation)
        return;
    static const char reason[] = "an accelerator is in use; --cpu-tensors records them all along";
    tmk_lane_put(lane, TMK_KIND_DEVICE_END, TIDEMARK_HOST, 0, 0, 0);
    tmk_lane_put_text(lane, TMK_KIND_MARK,
                      tmk_intern_string(lane, "host tensors no longer recorded"), 0, reason,
                      sizeof reason - 1);
}

static bool host_is_off(const struct tmk_lane *lane)
{
    return atomic_load_explicit(&host_ends, memory_order_relaxed) == lane->generation;
}

/* ---- streams ---- */

/* A c10::Stream as it is returned: in two registers. */
struct stream {
    uint64_t device;
    int64_t id;
};
typedef struct stream stream_function(int8_t device);

static struct {
    uint8_t type;
    const char *library, *name;
    _Atomic uintptr_t function; /* 1: there is none */
} stream_functions[] = {
    {1, "libc10_cuda.so", "_ZN3c104cuda20getCurrentCUDAStreamEa", 0},
    {6, "libc10_hip.so", "_ZN3c103hip19getCurrentHIPStreamEa", 0},
    {12, "libc10_xpu.so", "_ZN3c103xpu19getCurrentXPUStreamEa", 0},
};

static stream_function *stream_function_of(uint8_t type)
{
    for (size_t i = 0; i < sizeof stream_functions / sizeof stream_functions[0]; i++) {
        if (stream_functions[i].type != type)
            continue;
        uintptr_t function =
            atomic_load_explicit(&stream_functions[i].function, memory_order_acquire);
        if (function == 0) {
            function = (uintptr_t)tmk_library_symbol(stream_functions[i].library,
                                                     stream_functions[i].name);
            function = function ? function : 1;
            atomic_store_explicit(&stream_functions[i].function, function, memory_order_release);
        }
        return function == 1 ? NULL : (stream_function *)function;
    }
    return NULL;
}

/* The stream on which the calling thread allocates, as an id. */
static uint64_t current_stream(struct tmk_lane *lane, uint16_t device)
{
    stream_function *get = stream_function_of((uint8_t)(device >> 8));
    if (!get)
        return 0;
    struct stream stream = get((int8_t)(device & 0xff));
    return stream.id == 0 ? 0 : tmk_intern_stream(lane, device, (uint64_t)stream.id);
}

/* ---- events ---- */

static void record_host_alloc(struct tmk_lane *lane, const void *address, uint64_t size)
{
    if (host_is_off(lane))
        return;
    if (atomic_load_explicit(&host_seen, memory_order_relaxed) != lane->generation)
        atomic_store(&host_seen, lane->generation);
    tmk_lane_put(lane, TMK_KIND_ALLOC, TIDEMARK_HOST, tmk_pystack_id(lane), (uintptr_t)address,
                 size);
}

static void record_host_free(struct tmk_lane *lane, const void *address)
{
    if (!host_is_off(lane))
        tmk_lane_put(lane, TMK_KIND_FREE, TIDEMARK_HOST, 0, (uintptr_t)address, 0);
}

static void record_usage(const void *address, int64_t size, uint64_t reserved,
                         uint16_t torch_device)
{
    uint16_t device = device_of(torch_device);
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (size == 0 || (device == TIDEMARK_HOST && frame < tmk_lane.reporting))
        return; /* the second: the CPU's reporter says it to the profiler, and has said it to us */
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    if (device == TIDEMARK_HOST) {
        if (size > 0)
            record_host_alloc(lane, address, (uint64_t)size);
        else
            record_host_free(lane, address);
    } else if (size > 0) {
        end_host(lane);
        uint64_t stream = current_stream(lane, device);
        tmk_lane_put(lane, TMK_KIND_ALLOC, device, tmk_pystack_id(lane), (uintptr_t)address,
                     (uint64_t)size | stream << TMK_SIZE_BITS);
        note_reserved(lane, device, reserved);
    } else {
        tmk_lane_put(lane, TMK_KIND_FREE, device, 0, (uintptr_t)address, 0);
        note_reserved(lane, device, reserved);
    }
    tmk_lane_leave(lane);
}

static void record_oom(uint64_t size, uint64_t reserved, uint16_t device)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (device == TIDEMARK_HOST && frame < tmk_lane.reporting)
        return;
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    if (device != TIDEMARK_HOST)
        note_reserved(lane, device, reserved);
    tmk_lane_put(lane, TMK_KIND_OOM, device, tmk_pystack_id(lane), size, 0);
    tmk_lane_leave(lane);
    tmk_recorder_hurry();
}

/* ---- hooks ---- */

static void hook_usage(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                       uint16_t device)
{
    record_usage(address, size, reserved, device);
    usage_function *real = (usage_function *)real_of(&tmk_torch_hooks[USAGE]);
    if (real)
        real(address, size, allocated, reserved, device);
}

static void hook_usage_113(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                           uint16_t device)
{
    record_usage(address, size, reserved, device);
    usage_function *real = (usage_function *)real_of(&tmk_torch_hooks[USAGE_113]);
    if (real)
        real(address, size, allocated, reserved, device);
}

static void hook_oom(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device)
{
    record_oom((uint64_t)size, reserved, device_of(device));
    oom_function *real = (oom_function *)real_of(&tmk_torch_hooks[OOM]);
    if (real)
        real(size, allocated, reserved, device);
}

static void hook_oom_113(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device)
{
    record_oom((uint64_t)size, reserved, device_of(device));
    oom_function *real = (oom_function *)real_of(&tmk_torch_hooks[OOM_113]);
    if (real)
        real(size, allocated, reserved, device);
}

/* The CPU's reporter tells the profiler through the functions above: `reporting` keeps us from
 * counting twice. It is a frame's address, so one left behind by an exception does no harm. */
static void hook_cpu_new(void *self, void *address, size_t size)
{
    struct tmk_lane *lane = size ? tmk_lane_enter() : NULL;
    if (lane) {
        record_host_alloc(lane, address, size);
        tmk_lane_leave(lane);
    }
    cpu_new_function *real = (cpu_new_function *)real_of(&tmk_torch_hooks[CPU_NEW]);
    tmk_lane.reporting = (uintptr_t)__builtin_frame_address(0);
    if (real)
        real(self, address, size);
    tmk_lane.reporting = 0;
}

static void hook_cpu_delete(void *self, void *address)
{
    struct tmk_lane *lane = address ? tmk_lane_enter() : NULL;
    if (lane) {
        record_host_free(lane, address);
        tmk_lane_leave(lane);
    }
    cpu_delete_function *real = (cpu_delete_function *)real_of(&tmk_torch_hooks[CPU_DELETE]);
    tmk_lane.reporting = (uintptr_t)__builtin_frame_address(0);
    if (real)
        real(self, address);
    tmk_lane.reporting = 0;
}

static void hook_cpu_oom(void *self, size_t size)
{
    record_oom(size, 0, TIDEMARK_HOST);
    cpu_oom_function *real = (cpu_oom_function *)real_of(&tmk_torch_hooks[CPU_OOM]);
    tmk_lane.reporting = (uintptr_t)__builtin_frame_address(0);
    if (real)
        real(self, size);
    tmk_lane.reporting = 0;
}

EXPORT(hook_usage, NAME_USAGE);
EXPORT(hook_usage_113, NAME_USAGE_113);
EXPORT(hook_oom, NAME_OOM);
EXPORT(hook_oom_113, NAME_OOM_113);
EXPORT(hook_cpu_new, NAME_CPU_NEW);
EXPORT(hook_cpu_delete, NAME_CPU_DELETE);
EXPORT(hook_cpu_oom, NAME_CPU_OOM);

/* Called by the stub of torch_backward.h, which then jumps to what this returns. */
void *tmk_torch_begin_backward(void)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (lane) {
        tmk_pystack_note_backward(lane);
        tmk_lane_leave(lane);
    }
    return real_of(&tmk_torch_hooks[BACKWARD]);
}
