/* SPDX-License-Identifier: MIT */
/* record/driver.c - see driver.h. Names, versions and arguments are those of NVIDIA's cuda.h; a
 * CUresult is an int, a CUdeviceptr 64 bits, handles are pointers. */
#include "record/driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "record/held.h"
#include "record/intern.h"
#include "record/library.h"
#include "record/loader.h"
#include "record/pystack.h"
#include "record/torch.h"

enum {
    SUCCESS = 0,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    PER_THREAD_STREAM = 2,   /* a flag of cuGetProcAddress() */
    POOL_RESERVED_NOW = 5,   /* an attribute of a pool */
    POINTER_DEVICE = 9,      /* an attribute of a pointer */
    LAST_DEFAULT_STREAM = 2, /* handles up to here are the default stream, by its names */
    LOCATION_DEVICE = 1,
    DEVICE_CUDA = 1,
    MAX_DEVICES = 64,
};

typedef struct {
    char bytes[64];
} ipc_handle;

struct location {
    int type;
    int id;
};

struct pool_properties { /* how CUmemPoolProps begins */
    int type;
    int handle_types;
    struct location location;
};

struct memory_properties { /* how CUmemAllocationProp begins */
    int type;
    int handle_types;
    struct location location;
};

struct array_2d { /* CUDA_ARRAY_DESCRIPTOR */
    size_t width, height;
    int format;
    unsigned n_channels;
};

struct array_3d { /* how CUDA_ARRAY3D_DESCRIPTOR begins */
    size_t width, height, depth;
    int format;
    unsigned n_channels;
};

/* Symbol, the name that cuGetProcAddress() knows it by, the version of CUDA that made it so, and
 * whether it is for programs whose default stream is the thread's. */
#define FUNCTIONS(X)                                                                               \
    X(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)                                                        \
    X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0)                                              \
    X(cuMemAllocManaged, "cuMemAllocManaged", 6000, 0)                                             \
    X(cuMemFree_v2, "cuMemFree", 3020, 0)                                                          \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020, 0)                                                   \
    X(cuMemAllocHost_v2, "cuMemAllocHost", 3020, 0)                                                \
    X(cuMemFreeHost, "cuMemFreeHost", 2000, 0)                                                     \
    X(cuMemHostRegister_v2, "cuMemHostRegister", 6050, 0)                                          \
    X(cuMemHostUnregister, "cuMemHostUnregister", 4000, 0)                                         \
    X(cuMemAllocAsync, "cuMemAllocAsync", 11020, 0)                                                \
    X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 1)                                           \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0)                                \
    X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, 1)                           \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020, 0)                                                  \
    X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 1)                                             \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, 0)                                                \
    X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020, 0)                                    \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 0)                                              \
    X(cuMemCreate, "cuMemCreate", 10020, 0)                                                        \
    X(cuMemRelease, "cuMemRelease", 10020, 0)                                                      \
    X(cuMemMap, "cuMemMap", 10020, 0)                                                              \
    X(cuMemUnmap, "cuMemUnmap", 10020, 0)                                                          \
    X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, 0)                        \
    X(cuArrayCreate_v2, "cuArrayCreate", 3020, 0)                                                  \
    X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, 0)                                              \
    X(cuArrayDestroy, "cuArrayDestroy", 2000, 0)                                                   \
    X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 4010, 0)                                           \
    X(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000, 0)                                       \
    X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, 0)                                         \
    X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 0)                                                    \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0)                               \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 0)                         \
    X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 0)                             \
    X(cuGetProcAddress, "cuGetProcAddress", 11030, 0)                                              \
    X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, 0)

enum function {
#define X(symbol, name, version, per_thread) FN_##symbol,
    FUNCTIONS(X)
#undef X
        N_FUNCTIONS,
};

typedef uint64_t pointer; /* to memory of the device */
typedef void *handle;

/* Under hidden names, by which their addresses are ours; under the driver's they are below. */
static int hook_cuMemAlloc_v2(pointer *ret, size_t n);
static int hook_cuMemAllocPitch_v2(pointer *ret, size_t *pitch, size_t width, size_t height,
                                   unsigned element);
static int hook_cuMemAllocManaged(pointer *ret, size_t n, unsigned flags);
static int hook_cuMemFree_v2(pointer p);
static int hook_cuMemHostAlloc(void **ret, size_t n, unsigned flags);
static int hook_cuMemAllocHost_v2(void **ret, size_t n);
static int hook_cuMemFreeHost(void *p);
static int hook_cuMemHostRegister_v2(void *p, size_t n, unsigned flags);
static int hook_cuMemHostUnregister(void *p);
static int hook_cuMemAllocAsync(pointer *ret, size_t n, handle stream);
static int hook_cuMemAllocAsync_ptsz(pointer *ret, size_t n, handle stream);
static int hook_cuMemAllocFromPoolAsync(pointer *ret, size_t n, handle pool, handle stream);
static int hook_cuMemAllocFromPoolAsync_ptsz(pointer *ret, size_t n, handle pool, handle stream);
static int hook_cuMemFreeAsync(pointer p, handle stream);
static int hook_cuMemFreeAsync_ptsz(pointer p, handle stream);
static int hook_cuMemPoolTrimTo(handle pool, size_t keep);
static int hook_cuMemPoolGetAttribute(handle pool, int attribute, void *ret);
static int hook_cuMemPoolDestroy(handle pool);
static int hook_cuMemCreate(uint64_t *ret, size_t n, const struct memory_properties *properties,
                            unsigned long long flags);
static int hook_cuMemRelease(uint64_t memory);
static int hook_cuMemMap(pointer p, size_t n, size_t offset, uint64_t memory,
                         unsigned long long flags);
static int hook_cuMemUnmap(pointer p, size_t n);
static int hook_cuMemRetainAllocationHandle(uint64_t *ret, void *p);
static int hook_cuArrayCreate_v2(handle *ret, const struct array_2d *what);
static int hook_cuArray3DCreate_v2(handle *ret, const struct array_3d *what);
static int hook_cuArrayDestroy(handle array);
static int hook_cuIpcOpenMemHandle(pointer *ret, ipc_handle from, unsigned flags);
static int hook_cuIpcOpenMemHandle_v2(pointer *ret, ipc_handle from, unsigned flags);
static int hook_cuIpcCloseMemHandle(pointer p);
static int hook_cuCtxDestroy_v2(handle context);
static int hook_cuDevicePrimaryCtxRetain(handle *ret, int device);
static int hook_cuDevicePrimaryCtxRelease_v2(int device);
static int hook_cuDevicePrimaryCtxReset_v2(int device);
static int hook_cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags);
static int hook_cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags,
                                    int *ret_status);

static struct {
    const char *symbol, *name;
    int version;
    bool per_thread;
    void *ours;
    _Atomic uintptr_t real; /* 0: not known yet */
} functions[N_FUNCTIONS] = {
#define X(symbol_, name_, version_, per_thread_)                                                   \
    [FN_##symbol_] = {.symbol = #symbol_,                                                          \
                      .name = (name_),                                                             \
                      .version = (version_),                                                       \
                      .per_thread = (per_thread_),                                                 \
                      .ours = (void *)hook_##symbol_},
    FUNCTIONS(X)
#undef X
};

static _Atomic bool is_used;

bool tmk_driver_is_used(void)
{
    return atomic_load_explicit(&is_used, memory_order_relaxed);
}

/* ---- finding the driver's own ---- */

void *tmk_driver_symbol(const char *symbol)
{
    return tmk_library_symbol("libcuda.so", symbol);
}

static void learn_real(int i, void *real)
{
    uintptr_t none = 0;
    if (real && real != functions[i].ours)
        atomic_compare_exchange_strong(&functions[i].real, &none, (uintptr_t)real);
}

/* Of a program that is linked with it: another that stands in front of the driver, or the driver.
 */
__attribute__((noinline, cold)) static void *find_real(int i)
{
    void *real = tmk_loader_symbol(RTLD_NEXT, functions[i].symbol);
    if (!real || real == functions[i].ours)
        real = tmk_driver_symbol(functions[i].symbol);
    learn_real(i, real);
    return (void *)atomic_load(&functions[i].real);
}

static inline void *real_of(int i)
{
    uintptr_t real = atomic_load_explicit(&functions[i].real, memory_order_acquire);
    if (!atomic_load_explicit(&is_used, memory_order_relaxed))
        atomic_store(&is_used, true);
    return real ? (void *)real : find_real(i);
}

/* The driver's function; where there is none, its name was found without the driver. */
#define DRIVER(symbol, ...)                                                                        \
    __extension__({                                                                                \
        __typeof__(hook_##symbol) *real_ = (__typeof__(hook_##symbol) *)real_of(FN_##symbol);      \
        real_ ? real_(__VA_ARGS__) : NOT_INITIALIZED;                                              \
    })

void *tmk_driver_hook(const char *symbol, void *real)
{
    for (int i = 0; i < N_FUNCTIONS; i++) {
        if (strcmp(functions[i].symbol, symbol) != 0)
            continue;
        learn_real(i, real);
        return functions[i].ours;
    }
    return NULL;
}

/* ---- what we ask the driver ourselves ---- */

enum question {
    ASK_DEVICE,
    ASK_POINTER,
    ASK_CONTEXT,
    ASK_POOL_OF_DEVICE,
    ASK_POOL_ATTRIBUTE,
    ASK_RANGE,
    ASK_FREE,
    ASK_PRIMARY_STATE,
    N_QUESTIONS,
};

static void *question(enum question which)
{
    static const char *const symbols[N_QUESTIONS] = {
        [ASK_DEVICE] = "cuCtxGetDevice",
        [ASK_POINTER] = "cuPointerGetAttribute",
        [ASK_CONTEXT] = "cuCtxGetCurrent",
        [ASK_POOL_OF_DEVICE] = "cuDeviceGetMemPool",
        [ASK_POOL_ATTRIBUTE] = "cuMemPoolGetAttribute",
        [ASK_RANGE] = "cuMemGetAddressRange_v2",
        [ASK_FREE] = "cuMemGetInfo_v2",
        [ASK_PRIMARY_STATE] = "cuDevicePrimaryCtxGetState",
    };
    static _Atomic uintptr_t found[N_QUESTIONS];
    uintptr_t function = atomic_load_explicit(&found[which], memory_order_acquire);
    if (!function) {
        function = (uintptr_t)tmk_driver_symbol(symbols[which]);
        atomic_store_explicit(&found[which], function, memory_order_release);
    }
    return (void *)function;
}

static uint16_t current_device(void)
{
    int (*ask)(int *ret) = (int (*)(int *))question(ASK_DEVICE);
    int device = 0;
    return ask && ask(&device) == SUCCESS ? (uint16_t)device : 0;
}

/* Of memory from a pool, or asked for on a stream: another device's than the thread's, perhaps. */
static uint16_t device_of_pointer(pointer p)
{
    int (*ask)(void *ret, int attribute, pointer p) =
        (int (*)(void *, int, pointer))question(ASK_POINTER);
    int device = 0;
    return ask && ask(&device, POINTER_DEVICE, p) == SUCCESS ? (uint16_t)device : current_device();
}

static uint64_t current_context(void)
{
    int (*ask)(handle * ret) = (int (*)(handle *))question(ASK_CONTEXT);
    handle context = NULL;
    return ask && ask(&context) == SUCCESS ? (uintptr_t)context : 0;
}

/* ---- what came of it ---- */

/* The card as the driver sees it, with the refusal: what was free. */
static void note_free_memory(struct tmk_lane *lane, uint16_t device)
{
    int (*ask)(size_t * free, size_t * total) = (int (*)(size_t *, size_t *))question(ASK_FREE);
    size_t n_free = 0, n_total = 0;
    if (!ask || ask(&n_free, &n_total) != SUCCESS || n_free > n_total)
        return;
    struct tmk_sample_body sample = {.used_bytes = n_total - n_free,
                                     .total_bytes = n_total,
                                     .own_bytes = UINT64_MAX,
                                     .others_bytes = UINT64_MAX};
    tmk_lane_put_text(lane, TMK_KIND_SAMPLE, device, 0, &sample, sizeof sample);
}

static int refused(int rc, uint64_t size, uint16_t device)
{
    struct tmk_lane *lane = rc == OUT_OF_MEMORY ? tmk_lane_enter() : NULL;
    if (!lane)
        return rc;
    uint16_t full = (uint16_t)(DEVICE_CUDA << 8 | device);
    note_free_memory(lane, full);
    tmk_lane_put(lane, TMK_KIND_OOM, full | TMK_OOM_OF_DRIVER, tmk_pystack_native_id(lane), size,
                 0);
    tmk_lane_leave(lane);
    tmk_recorder_hurry();
    return rc;
}

static int noted(int rc, unsigned kind, uint64_t address, uint64_t size)
{
    if (rc != SUCCESS)
        return refused(rc, size, current_device());
    tmk_held_begin(&(struct tmk_driver_segment){.address = address,
                                                .size_bytes = size,
                                                .owner = current_context(),
                                                .device = current_device(),
                                                .kind = (uint8_t)kind});
    return rc;
}

/* What was noted as gone is not, when the driver refuses. */
static int ended(int rc, bool was_there, const struct tmk_driver_segment *gone)
{
    if (rc != SUCCESS && was_there)
        tmk_held_begin(gone);
    return rc;
}

/* ---- memory of the device ---- */

static int hook_cuMemAlloc_v2(pointer *ret, size_t n)
{
    int rc = DRIVER(cuMemAlloc_v2, ret, n);
    return noted(rc, TMK_SEGMENT_DEVICE, rc == SUCCESS ? *ret : 0, n);
}

static int hook_cuMemAllocPitch_v2(pointer *ret, size_t *pitch, size_t width, size_t height,
                                   unsigned element)
{
    int rc = DRIVER(cuMemAllocPitch_v2, ret, pitch, width, height, element);
    size_t row = rc == SUCCESS ? *pitch : width;
    return noted(rc, TMK_SEGMENT_DEVICE, rc == SUCCESS ? *ret : 0, row * height);
}

static int hook_cuMemAllocManaged(pointer *ret, size_t n, unsigned flags)
{
    int rc = DRIVER(cuMemAllocManaged, ret, n, flags);
    return noted(rc, TMK_SEGMENT_MANAGED, rc == SUCCESS ? *ret : 0, n);
}

static void note_pool(uint64_t pool, uint16_t device);

static int hook_cuMemFree_v2(pointer p)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end_pointer(p, &gone);
    int rc = ended(DRIVER(cuMemFree_v2, p), was_there, &gone);
    if (was_there && gone.kind == TMK_SEGMENT_ASYNC)
        note_pool(gone.owner, gone.device);
    return rc;
}

static uint64_t element_bytes(int format)
{
    switch (format) {
    case 0x02: /* 16 bits */
    case 0x09:
    case 0x10:
        return 2;
    case 0x03: /* 32 bits */
    case 0x0a:
    case 0x20:
        return 4;
    default:
        return 1;
    }
}

static int hook_cuArrayCreate_v2(handle *ret, const struct array_2d *what)
{
    int rc = DRIVER(cuArrayCreate_v2, ret, what);
    if (!what)
        return rc;
    uint64_t n = (uint64_t)what->width * (what->height ? what->height : 1) * what->n_channels *
                 element_bytes(what->format);
    return noted(rc, TMK_SEGMENT_ARRAY, rc == SUCCESS ? (uintptr_t)*ret : 0, n);
}

static int hook_cuArray3DCreate_v2(handle *ret, const struct array_3d *what)
{
    int rc = DRIVER(cuArray3DCreate_v2, ret, what);
    if (!what)
        return rc;
    uint64_t n = (uint64_t)what->width * (what->height ? what->height : 1) *
                 (what->depth ? what->depth : 1) * what->n_channels * element_bytes(what->format);
    return noted(rc, TMK_SEGMENT_ARRAY, rc == SUCCESS ? (uintptr_t)*ret : 0, n);
}

static int hook_cuArrayDestroy(handle array)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end(TMK_SEGMENT_ARRAY, (uintptr_t)array, &gone);
    return ended(DRIVER(cuArrayDestroy, array), was_there, &gone);
}

/* ---- memory of the host ---- */

static int hook_cuMemHostAlloc(void **ret, size_t n, unsigned flags)
{
    int rc = DRIVER(cuMemHostAlloc, ret, n, flags);
    return noted(rc, TMK_SEGMENT_PINNED, rc == SUCCESS ? (uintptr_t)*ret : 0, n);
}

static int hook_cuMemAllocHost_v2(void **ret, size_t n)
{
    int rc = DRIVER(cuMemAllocHost_v2, ret, n);
    return noted(rc, TMK_SEGMENT_PINNED, rc == SUCCESS ? (uintptr_t)*ret : 0, n);
}

static int hook_cuMemFreeHost(void *p)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end(TMK_SEGMENT_PINNED, (uintptr_t)p, &gone);
    return ended(DRIVER(cuMemFreeHost, p), was_there, &gone);
}

static int hook_cuMemHostRegister_v2(void *p, size_t n, unsigned flags)
{
    return noted(DRIVER(cuMemHostRegister_v2, p, n, flags), TMK_SEGMENT_REGISTERED, (uintptr_t)p,
                 n);
}

static int hook_cuMemHostUnregister(void *p)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end(TMK_SEGMENT_REGISTERED, (uintptr_t)p, &gone);
    return ended(DRIVER(cuMemHostUnregister, p), was_there, &gone);
}

/* ---- pools ---- */

static void note_pool(uint64_t pool, uint16_t device)
{
    int (*ask)(handle pool, int attribute, void *ret) =
        (int (*)(handle, int, void *))question(ASK_POOL_ATTRIBUTE);
    uint64_t reserved = 0;
    if (pool && ask && ask((handle)pool, POOL_RESERVED_NOW, &reserved) == SUCCESS)
        tmk_held_pool(pool, device, reserved);
}

static uint64_t pool_of_device(uint16_t device)
{
    int (*ask)(handle * ret, int device) = (int (*)(handle *, int))question(ASK_POOL_OF_DEVICE);
    handle pool = NULL;
    return ask && ask(&pool, device) == SUCCESS ? (uintptr_t)pool : 0;
}

/* Where torch says nothing of its blocks, these are them; else they are somebody else's. It is
 * decided once, so that what begins as the one ends as it. */
static bool are_blocks(uint16_t device)
{
    enum { NOT_KNOWN, BLOCKS, SEGMENTS };
    static _Atomic uint8_t decided[MAX_DEVICES];
    if (device >= MAX_DEVICES)
        return false;
    uint8_t is = atomic_load_explicit(&decided[device], memory_order_relaxed);
    if (is == NOT_KNOWN) {
        is = tmk_torch_has_said((uint16_t)(DEVICE_CUDA << 8 | device)) ? SEGMENTS : BLOCKS;
        atomic_store(&decided[device], is);
    }
    return is == BLOCKS;
}

/* The pool first: it has grown for this one. `from` is NULL for the device's own. */
static int noted_async(int rc, const pointer *p, size_t n, handle from, handle stream)
{
    bool is_threads = !from && (uintptr_t)stream <= LAST_DEFAULT_STREAM;
    uint16_t device = rc == SUCCESS && !is_threads ? device_of_pointer(*p) : current_device();
    uint64_t pool = from ? (uintptr_t)from : rc == SUCCESS ? pool_of_device(device) : 0;
    bool is_block = are_blocks(device);
    if (rc != SUCCESS) {
        if (rc == OUT_OF_MEMORY && is_block)
            tmk_torch_note_oom((uint16_t)(DEVICE_CUDA << 8 | device), n,
                               tmk_held_pool_bytes(device));
        return is_block ? rc : refused(rc, n, device);
    }
    note_pool(pool, device);
    tmk_held_begin(&(struct tmk_driver_segment){.address = *p,
                                                .size_bytes = n,
                                                .owner = pool,
                                                .stream = (uintptr_t)stream,
                                                .is_block = is_block,
                                                .device = device,
                                                .kind = TMK_SEGMENT_ASYNC});
    return rc;
}

static int hook_cuMemAllocAsync(pointer *ret, size_t n, handle stream)
{
    int rc = DRIVER(cuMemAllocAsync, ret, n, stream);
    return noted_async(rc, ret, n, NULL, stream);
}

static int hook_cuMemAllocAsync_ptsz(pointer *ret, size_t n, handle stream)
{
    int rc = DRIVER(cuMemAllocAsync_ptsz, ret, n, stream);
    return noted_async(rc, ret, n, NULL, stream);
}

static int hook_cuMemAllocFromPoolAsync(pointer *ret, size_t n, handle pool, handle stream)
{
    int rc = DRIVER(cuMemAllocFromPoolAsync, ret, n, pool, stream);
    return noted_async(rc, ret, n, pool, stream);
}

static int hook_cuMemAllocFromPoolAsync_ptsz(pointer *ret, size_t n, handle pool, handle stream)
{
    int rc = DRIVER(cuMemAllocFromPoolAsync_ptsz, ret, n, pool, stream);
    return noted_async(rc, ret, n, pool, stream);
}

static int ended_async(int rc, bool was_there, const struct tmk_driver_segment *gone)
{
    ended(rc, was_there, gone);
    if (was_there && gone->kind == TMK_SEGMENT_ASYNC)
        note_pool(gone->owner, gone->device);
    return rc;
}

static int hook_cuMemFreeAsync(pointer p, handle stream)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end_pointer(p, &gone);
    return ended_async(DRIVER(cuMemFreeAsync, p, stream), was_there, &gone);
}

static int hook_cuMemFreeAsync_ptsz(pointer p, handle stream)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end_pointer(p, &gone);
    return ended_async(DRIVER(cuMemFreeAsync_ptsz, p, stream), was_there, &gone);
}

static int hook_cuMemPoolTrimTo(handle pool, size_t keep)
{
    int rc = DRIVER(cuMemPoolTrimTo, pool, keep);
    if (rc == SUCCESS)
        note_pool((uintptr_t)pool,
                  tmk_held_device(TMK_SEGMENT_POOL, (uintptr_t)pool, current_device()));
    return rc;
}

/* Whoever asks what a pool holds, torch for its own figures, tells us too: a pool also shrinks when
 * the program waits for its stream. */
static int hook_cuMemPoolGetAttribute(handle pool, int attribute, void *ret)
{
    int rc = DRIVER(cuMemPoolGetAttribute, pool, attribute, ret);
    if (rc == SUCCESS && attribute == POOL_RESERVED_NOW && ret)
        tmk_held_pool((uintptr_t)pool,
                      tmk_held_device(TMK_SEGMENT_POOL, (uintptr_t)pool, current_device()),
                      *(const uint64_t *)ret);
    return rc;
}

static int hook_cuMemPoolDestroy(handle pool)
{
    uint16_t device = tmk_held_device(TMK_SEGMENT_POOL, (uintptr_t)pool, current_device());
    int rc = DRIVER(cuMemPoolDestroy, pool);
    if (rc == SUCCESS)
        tmk_held_end_pool((uintptr_t)pool, device);
    return rc;
}

/* ---- memory and addresses apart ---- */

/* Of the host's nodes it is not the card's memory. */
static int hook_cuMemCreate(uint64_t *ret, size_t n, const struct memory_properties *properties,
                            unsigned long long flags)
{
    int rc = DRIVER(cuMemCreate, ret, n, properties, flags);
    bool is_ours = properties && properties->location.type == LOCATION_DEVICE;
    uint16_t device = is_ours ? (uint16_t)properties->location.id : current_device();
    if (rc != SUCCESS)
        return refused(rc, n, device);
    if (is_ours)
        tmk_held_begin(&(struct tmk_driver_segment){.address = *ret,
                                                    .size_bytes = n,
                                                    .n_refs = 1,
                                                    .device = device,
                                                    .kind = TMK_SEGMENT_PHYSICAL});
    return rc;
}

static int hook_cuMemRelease(uint64_t memory)
{
    tmk_held_release(memory);
    return DRIVER(cuMemRelease, memory);
}

static int hook_cuMemMap(pointer p, size_t n, size_t offset, uint64_t memory,
                         unsigned long long flags)
{
    int rc = DRIVER(cuMemMap, p, n, offset, memory, flags);
    if (rc != SUCCESS)
        return rc;
    tmk_held_map(&(struct tmk_driver_segment){
        .address = p,
        .size_bytes = n,
        .owner = memory,
        .device = tmk_held_device(TMK_SEGMENT_PHYSICAL, memory, current_device()),
        .kind = TMK_SEGMENT_MAPPING});
    return rc;
}

static int hook_cuMemUnmap(pointer p, size_t n)
{
    int rc = DRIVER(cuMemUnmap, p, n);
    if (rc == SUCCESS)
        tmk_held_unmap(p, n);
    return rc;
}

static int hook_cuMemRetainAllocationHandle(uint64_t *ret, void *p)
{
    int rc = DRIVER(cuMemRetainAllocationHandle, ret, p);
    if (rc == SUCCESS)
        tmk_held_retain(*ret);
    return rc;
}

/* ---- other processes' memory ---- */

static int noted_ipc(int rc, const pointer *p)
{
    int (*ask)(pointer * base, size_t * n, pointer p) =
        (int (*)(pointer *, size_t *, pointer))question(ASK_RANGE);
    pointer base = 0;
    size_t n = 0;
    if (rc == SUCCESS && ask)
        ask(&base, &n, *p);
    return rc == SUCCESS ? noted(rc, TMK_SEGMENT_IPC, *p, n) : rc;
}

static int hook_cuIpcOpenMemHandle(pointer *ret, ipc_handle from, unsigned flags)
{
    return noted_ipc(DRIVER(cuIpcOpenMemHandle, ret, from, flags), ret);
}

static int hook_cuIpcOpenMemHandle_v2(pointer *ret, ipc_handle from, unsigned flags)
{
    return noted_ipc(DRIVER(cuIpcOpenMemHandle_v2, ret, from, flags), ret);
}

static int hook_cuIpcCloseMemHandle(pointer p)
{
    struct tmk_driver_segment gone;
    bool was_there = tmk_held_end(TMK_SEGMENT_IPC, p, &gone);
    return ended(DRIVER(cuIpcCloseMemHandle, p), was_there, &gone);
}

/* ---- contexts ---- */

static int hook_cuCtxDestroy_v2(handle context)
{
    int rc = DRIVER(cuCtxDestroy_v2, context);
    if (rc == SUCCESS)
        tmk_held_end_context((uintptr_t)context);
    return rc;
}

/* The one that CUDA's runtime uses, by device. */
static _Atomic uintptr_t primary[MAX_DEVICES];

static int hook_cuDevicePrimaryCtxRetain(handle *ret, int device)
{
    int rc = DRIVER(cuDevicePrimaryCtxRetain, ret, device);
    if (rc == SUCCESS && device >= 0 && device < MAX_DEVICES)
        atomic_store(&primary[device], (uintptr_t)*ret);
    return rc;
}

static void end_primary(int device)
{
    if (device >= 0 && device < MAX_DEVICES)
        tmk_held_end_device((uint16_t)device, atomic_exchange(&primary[device], 0));
}

/* Whoever releases it last ends it. */
static int hook_cuDevicePrimaryCtxRelease_v2(int device)
{
    int (*ask)(int device, unsigned *flags, int *is_active) =
        (int (*)(int, unsigned *, int *))question(ASK_PRIMARY_STATE);
    unsigned flags;
    int is_active = 1;
    int rc = DRIVER(cuDevicePrimaryCtxRelease_v2, device);
    if (rc == SUCCESS && ask && ask(device, &flags, &is_active) == SUCCESS && !is_active)
        end_primary(device);
    return rc;
}

static int hook_cuDevicePrimaryCtxReset_v2(int device)
{
    int rc = DRIVER(cuDevicePrimaryCtxReset_v2, device);
    if (rc == SUCCESS)
        end_primary(device);
    return rc;
}

/* ---- asking for functions ---- */

/* The newest of that name that is not newer than what was asked for; -1: there is none. */
static int newest(const char *name, int version, bool per_thread)
{
    int best = -1;
    for (int i = 0; i < N_FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0 && functions[i].version <= version &&
            functions[i].per_thread == per_thread &&
            (best < 0 || functions[best].version < functions[i].version))
            best = i;
    return best;
}

/* Ours, where we have one for what the driver has given. Most have nothing to do with streams. */
static void *in_front_of(const char *name, void *given, int version, uint64_t flags)
{
    int i = flags & PER_THREAD_STREAM ? newest(name, version, true) : -1;
    if (i < 0)
        i = newest(name, version, false);
    if (i < 0)
        return given;
    learn_real(i, given);
    return functions[i].ours;
}

static int hook_cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags)
{
    int rc = DRIVER(cuGetProcAddress, name, ret, version, flags);
    if (rc == SUCCESS && name && ret && *ret)
        *ret = in_front_of(name, *ret, version, flags);
    return rc;
}

static int hook_cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags,
                                    int *ret_status)
{
    int rc = DRIVER(cuGetProcAddress_v2, name, ret, version, flags, ret_status);
    if (rc == SUCCESS && name && ret && *ret)
        *ret = in_front_of(name, *ret, version, flags);
    return rc;
}

/* For the loader: programs that are linked with the driver find these before it. */
#define X(symbol, name, version, per_thread)                                                       \
    extern __typeof__(hook_##symbol)(symbol)                                                       \
        __attribute__((alias("hook_" #symbol), visibility("default")));
FUNCTIONS(X)
#undef X
