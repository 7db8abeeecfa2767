/* SPDX-License-Identifier: MIT */
/* fake_c10.c - stands for libc10.so or libc10_cuda.so: reports blocks on CUDA device 0 through an
 * import slot, as torch's allocator does. */
#include <stdint.h>

#define USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

struct stream {
    uint64_t device;
    int64_t id;
};

__attribute__((visibility("default"), noinline)) void usage(void *address, int64_t size,
                                                            uint64_t allocated, uint64_t reserved,
                                                            uint16_t device) __asm__(USAGE);
__attribute__((visibility("default"))) struct stream
current_stream(int8_t device) __asm__("_ZN3c104cuda20getCurrentCUDAStreamEa");

static int n_heard;

__attribute__((visibility("default"))) int count_heard(void)
{
    return n_heard;
}

/* What a profiler begins with, in two ways. */
__attribute__((visibility("default"), noinline)) void push(uint8_t kind, void *information) __asm__(
    "_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE");
__attribute__((visibility("default"), noinline)) void
guard(void *self, uint8_t kind, void *information) __asm__(
    "_ZN3c1014DebugInfoGuardC1ENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE");

static int n_pushed;

void push(uint8_t kind, void *information)
{
    n_pushed += kind + (information != 0);
}

void guard(void *self, uint8_t kind, void *information)
{
    n_pushed += kind + (self != information);
}

__attribute__((visibility("default"))) int listen_by(int how)
{
    if (how)
        guard(0, 2, 0);
    else
        push(2, 0);
    return n_pushed;
}

void usage(void *address, int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device)
{
    n_heard++;
    __asm__ volatile("" ::"r"(address), "r"(size), "r"(allocated), "r"(reserved), "r"(device));
}

static int64_t current_id;

struct stream current_stream(int8_t device)
{
    return (struct stream){(uint64_t)device, current_id};
}

__attribute__((visibility("default"), noinline)) struct stream
from_pool(int priority, int8_t device) __asm__("_ZN3c104cuda17getStreamFromPoolEia");

struct stream from_pool(int priority, int8_t device)
{
    return (struct stream){(uint64_t)device, 100 + priority};
}

/* As torch.cuda.Stream(priority) and torch.cuda.set_stream() do: the stream's id. */
__attribute__((visibility("default"))) int64_t use_stream(int priority)
{
    current_id = from_pool(priority, 0).id;
    return current_id;
}

__attribute__((visibility("default"))) void report(void *address, int64_t size)
{
    usage(address, size, 0, 1 << 20, 1);
}

__attribute__((visibility("default"))) void report_with(void *address, int64_t size,
                                                        uint64_t reserved)
{
    usage(address, size, 0, reserved, 1);
    __asm__ volatile(""); /* the call comes from here, by which this library is found */
}
