/* SPDX-License-Identifier: MIT */
/* record/torch/block_hooks.c - see block_hooks.h. */
#include "record/torch/block_hooks.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/clock.h"
#include "record/core/fast_path_line.h"
#include "record/core/fast_path_state.h"
#include "record/core/hot.h"
#include "record/core/intern.h"
#include "record/core/packing.h"
#include "record/core/recorder.h"
#include "record/core/thread_slot.h"
#include "record/core/torch_state.h"
#include "record/driver/device_samples.h"
#include "record/loader/library.h"
#include "record/python/pystack.h"
#include "record/torch/tally.h"
#include "record/torch/torch_stubs.h"
#include "record/training/bridge.h"
#include "record/training/grad_mode.h"
#include "record/training/torch_calls.h"
#include "record/training/training_context.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"

typedef void oom_function(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device);
typedef void cpu_new_function(void *self, void *address, size_t size);
typedef void cpu_delete_function(void *self, void *address);
typedef void cpu_oom_function(void *self, size_t size);
typedef void node_function(void *self, void *task, void *node, void *input, void *queue);

/* ---- devices ---- */

/* A c10::Stream as it is returned, in two registers. */
struct torch_stream {
    uint64_t device;
    int64_t id;
};
typedef struct torch_stream stream_function(int8_t device);

static inline uint16_t device_of_torch(uint16_t torch_device)
{
    bool is_host = (torch_device & 0xff) == TMK_DEVICE_TYPE_CPU;
    return is_host ? TIDEMARK_HOST : tmk_accelerator_of(torch_device);
}

static uint64_t head_of(uint8_t kind, uint16_t device)
{
    union tmk_record_head head = {{.kind = kind, .n_slots = 1, .device = device}};
    return head.word;
}

/* No two devices share a place: devices of the first kind that is reported have sixteen places. For
 * other devices the reserved bytes are said again and again, and their blocks take the slow
 * path. */
static bool has_place(uint16_t device)
{
    static _Atomic unsigned kind;
    unsigned ours = device >> 8, other = 0;
    return (device & 0xff) < TMK_TORCH_DEVICES &&
           (atomic_compare_exchange_strong(&kind, &other, ours) || other == ours);
}

__attribute__((noinline, cold)) static void
put_device_reserved(struct tmk_lane *lane, uint16_t device, uint64_t reserved_bytes)
{
    struct tmk_fast_path_device *said = tmk_fast_path_device_of(device);
    if (has_place(device)) {
        said->reserved_bytes = reserved_bytes;
        said->alloc_head = (uint32_t)head_of(TMK_KIND_ALLOC, device);
        atomic_store_explicit(&said->torch_device, tmk_accelerator_of(device),
                              memory_order_relaxed);
        atomic_store_explicit(&said->generation, lane->generation, memory_order_relaxed);
    }
    tmk_lane_put(lane, TMK_KIND_RESERVED, device, 0, reserved_bytes, 0);
    if (device >> 8 == TMK_DEVICE_TYPE_CUDA) {
        atomic_fetch_or_explicit(&tmk_torch_hot.cuda_devices, UINT64_C(1) << (device & 63),
                                 memory_order_relaxed);
        tmk_device_samples_want();
    }
}

static inline void note_device_reserved(struct tmk_lane *lane, uint16_t device,
                                        uint64_t reserved_bytes)
{
    if (__builtin_expect(!tmk_fast_path_has_said(tmk_fast_path_device_of(device), lane->generation,
                                                 tmk_accelerator_of(device), reserved_bytes),
                         0))
        put_device_reserved(lane, device, reserved_bytes);
}

/* Note a block record that was not written on the fast path. */
static inline void note_long_block(struct tmk_lane *lane, uint16_t device, uint64_t reserved_bytes)
{
    tmk_fast_path_end_sharing(device);
    note_device_reserved(lane, device, reserved_bytes);
}

static inline bool host_is_off(const struct tmk_lane *lane)
{
    return atomic_load_explicit(&tmk_torch_hot.host_ends, memory_order_relaxed) == lane->generation;
}

/* Stop recording host tensors, because an accelerator is in use: host memory is no longer what the
 * job may run out of. Other threads may be about to write one, so the end is said again when that
 * is over. */
__attribute__((noinline, cold)) static void end_host(struct tmk_lane *lane)
{
    static const uint64_t grace_ns = 100000000;
    static const char reason[] = "an accelerator is in use; --cpu-tensors records them all along";
    if (tmk_recorder.settings.cpu_tensors) {
        atomic_store(&tmk_torch_hot.host_over, lane->generation);
        return;
    }
    uint64_t now = tmk_clock_monotonic_ns();
    bool first = atomic_exchange(&tmk_torch_hot.host_ends, lane->generation) != lane->generation;
    if (first)
        atomic_store(&tmk_torch_hot.host_ends_ns, now);
    else if (now < atomic_load(&tmk_torch_hot.host_ends_ns) + grace_ns)
        return;
    else
        atomic_store(&tmk_torch_hot.host_over, lane->generation);
    if (atomic_load(&tmk_torch_hot.host_seen) != lane->generation)
        return;
    tmk_lane_put(lane, TMK_KIND_DEVICE_END, TIDEMARK_HOST, 0, 0, 0);
    if (first)
        tmk_lane_put_text(lane, TMK_KIND_MARK,
                          tmk_intern_string(lane, "host tensors no longer recorded"), 0, reason,
                          sizeof reason - 1);
}

static inline bool host_is_over(const struct tmk_lane *lane)
{
    return atomic_load_explicit(&tmk_torch_hot.host_over, memory_order_relaxed) == lane->generation;
}

/* ---- streams ---- */

static const struct {
    unsigned type;
    const char *library, *name;
} stream_functions[] = {
    {1, "libc10_cuda.so", "_ZN3c104cuda20getCurrentCUDAStreamEa"},
    {6, "libc10_hip.so", "_ZN3c103hip19getCurrentHIPStreamEa"},
    {12, "libc10_xpu.so", "_ZN3c103xpu19getCurrentXPUStreamEa"},
};

/* A process has accelerators of one type only. */
__attribute__((noinline, cold)) static uintptr_t find_stream_function(unsigned type)
{
    uintptr_t function = 0;
    for (size_t i = 0; i < sizeof stream_functions / sizeof stream_functions[0]; i++)
        if (stream_functions[i].type == type)
            function = (uintptr_t)tmk_library_symbol(stream_functions[i].library,
                                                     stream_functions[i].name);
    function = function ? function : 1;
    atomic_store_explicit(&tmk_torch_hot.current_stream, function, memory_order_release);
    return function;
}

/* The id of the stream on which the calling thread allocates. */
static inline uint64_t current_stream(struct tmk_lane *lane, uint16_t device)
{
    if (__builtin_expect(!atomic_load_explicit(&tmk_torch_hot.streams_used, memory_order_relaxed),
                         1))
        return 0;
    uintptr_t function = atomic_load_explicit(&tmk_torch_hot.current_stream, memory_order_acquire);
    if (__builtin_expect(function <= 1, 0)) {
        function = function ? function : find_stream_function(device >> 8);
        if (function == 1)
            return 0;
    }
    struct torch_stream stream = ((stream_function *)function)((int8_t)(device & 0xff));
    if (__builtin_expect(stream.id == 0, 1))
        return 0;
    return tmk_intern_stream(lane, device, (uint64_t)stream.id);
}

/* ---- events ---- */

/* True when the bridge does not wait for the next block. */
static inline bool is_settled(const struct tmk_lane *lane)
{
    return atomic_load_explicit(&tmk_fast_path.settled, memory_order_relaxed) == lane->generation;
}

static inline void want_bridge(struct tmk_lane *lane)
{
    if (tmk_seldom(!is_settled(lane)))
        tmk_bridge_want(lane);
}

/* Called before a block is recorded. */
static inline void begin_torch_block(struct tmk_lane *lane)
{
    want_bridge(lane);
    tmk_torch_calls_see_worker(lane);
}

static void record_host_alloc(struct tmk_lane *lane, const void *address, uint64_t size)
{
    if (host_is_off(lane))
        return;
    if (atomic_load_explicit(&tmk_torch_hot.host_seen, memory_order_relaxed) != lane->generation)
        atomic_store(&tmk_torch_hot.host_seen, lane->generation);
    begin_torch_block(lane);
    tmk_lane_put(lane, TMK_KIND_ALLOC, TIDEMARK_HOST, tmk_pystack_id(lane), (uintptr_t)address,
                 size);
}

static void record_host_free(struct tmk_lane *lane, const void *address)
{
    if (!host_is_off(lane))
        tmk_lane_put(lane, TMK_KIND_FREE, TIDEMARK_HOST, 0, (uintptr_t)address, 0);
}

/* Does nothing when the CPU's reporter passes a block on to the profiler: it has reported it to us
 * already. */
__attribute__((noinline)) static void record_host(const void *address, int64_t size)
{
    if ((uintptr_t)__builtin_frame_address(0) < tmk_lane.reporting)
        return;
    if (size > 0)
        tmk_tally_host_alloc(address, (uint64_t)size);
    else
        tmk_tally_host_free(address);
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    if (size > 0)
        record_host_alloc(lane, address, (uint64_t)size);
    else
        record_host_free(lane, address);
    tmk_lane_leave(lane);
}

/* ---- the short way ---- */

/* True when a block, and what is reserved, is all there is to record in this recording. Whoever
 * changes one of these conditions calls tmk_fast_path_close() afterwards. */
static bool is_all_usual(const struct tmk_lane *lane)
{
    const struct tmk_hook *hook = &tmk_hooks[TMK_HOOK_USAGE];
    return tmk_pystack_is_usual() && tmk_recorder.counter && host_is_over(lane) &&
           atomic_load(&tmk_recorder.control->generation) == lane->generation &&
           !tmk_packing_is_held() && !atomic_load(&tmk_torch_hot.streams_used) &&
           !atomic_load(&tmk_torch_hot.is_tallied) && !atomic_load(&hook->foreign) &&
           atomic_load(&hook->real) != 0;
}

/* The loader puts each thread's lane at the same distance from its thread pointer. */
static void note_lane(void)
{
    atomic_store_explicit(&tmk_fast_path.lane,
                          (int32_t)((uintptr_t)&tmk_lane - tmk_thread_pointer()),
                          memory_order_relaxed);
}

/* Torch's own function looks for a listener among what the thread has pushed, and finds none, which
 * takes about as long as our work. A thread has only what it, or the thread that it works for, has
 * pushed. */
static bool may_be_heard(void)
{
    return atomic_load(&tmk_torch_hot.is_listened_to) ||
           !atomic_load(&tmk_hooks[TMK_HOOK_PUSH].real) ||
           !atomic_load(&tmk_hooks[TMK_HOOK_GUARD].real);
}

/* Open the fast path, if everything is usual. A change meanwhile is not missed: whoever changes
 * something closes the path, and then the compare-and-exchange fails. The conditions are checked
 * once more, because several threads may be here. */
static void look_whether_usual(const struct tmk_lane *lane)
{
    enum { LOOKING = TMK_NO_GENERATION };
    if (atomic_load(&tmk_fast_path.generation) == lane->generation || !is_all_usual(lane))
        return;
    note_lane();
    atomic_store(&tmk_fast_path.generation, LOOKING);
    bool is_heard = may_be_heard();
    uintptr_t real = atomic_load(&tmk_hooks[TMK_HOOK_USAGE].real);
    atomic_store_explicit(&tmk_fast_path.real, is_heard ? real : 0, memory_order_relaxed);
    uint32_t looking = LOOKING;
    if (atomic_compare_exchange_strong(&tmk_fast_path.generation, &looking, lane->generation) &&
        (!is_all_usual(lane) || may_be_heard() != is_heard))
        tmk_fast_path_close();
}

/* ---- the long way: programs that use several streams always go it, those whose stacks are not
 * Python's alone, and those without ---- */

__attribute__((hot, noinline)) static void record_alloc(uint16_t device, const void *address,
                                                        uint64_t size, uint64_t reserved)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    if (__builtin_expect(!host_is_over(lane), 0))
        end_host(lane);
    begin_torch_block(lane);
    uint64_t stream = current_stream(lane, device);
    tmk_lane_put(lane, TMK_KIND_ALLOC, device, tmk_pystack_id(lane), (uintptr_t)address,
                 size | stream << TMK_SIZE_BITS);
    note_long_block(lane, device, reserved);
    look_whether_usual(lane);
    tmk_lane_leave(lane);
}

__attribute__((hot, noinline)) static void record_free(uint16_t device, const void *address,
                                                       uint64_t reserved)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    tmk_lane_put(lane, TMK_KIND_FREE, device, 0, (uintptr_t)address, 0);
    note_long_block(lane, device, reserved);
    tmk_lane_leave(lane);
}

static inline void record_usage(const void *address, int64_t size, uint64_t allocated,
                                uint64_t reserved, uint16_t torch_device)
{
    uint16_t device = device_of_torch(torch_device);
    if (size == 0)
        return;
    if (__builtin_expect(device == TIDEMARK_HOST, 0)) {
        record_host(address, size);
        return;
    }
    if (__builtin_expect(atomic_load_explicit(&tmk_torch_hot.is_tallied, memory_order_relaxed), 0))
        tmk_tally_say(device, allocated, reserved);
    if (size > 0)
        record_alloc(device, address, (uint64_t)size, reserved);
    else
        record_free(device, address, reserved);
}

/* Record it and leave the lane. */
static void put_oom(struct tmk_lane *lane, uint16_t device, uint64_t size)
{
    tmk_recorder_count_oom();
    tmk_training_context_note_failure();
    tmk_lane_put(lane, TMK_KIND_OOM, device, tmk_pystack_id(lane), size, 0);
    tmk_lane_leave(lane);
    tmk_packing_hurry();
}

static void record_oom(uint64_t size, uint64_t reserved, uint16_t device)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (device == TIDEMARK_HOST && frame < tmk_lane.reporting)
        return;
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    tmk_torch_calls_see_worker(lane);
    if (device != TIDEMARK_HOST)
        note_device_reserved(lane, device, reserved);
    put_oom(lane, device, size);
}

/* ---- blocks of the driver's ---- */

uint32_t tmk_block_hook_stack(struct tmk_lane *lane)
{
    if (!host_is_over(lane))
        end_host(lane);
    begin_torch_block(lane);
    return tmk_pystack_id(lane);
}

void tmk_block_hook_note_oom(uint16_t device, uint64_t size)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    tmk_torch_calls_see_worker(lane);
    put_oom(lane, device, size);
}

/* ---- calling on ---- */

/* While a hook calls on, `reporting` is its frame and `hook` its number. When an exception leaves
 * them behind they do no harm: later frames are not below that one for long. */
struct hook_call {
    uintptr_t frame_before;
    unsigned hook_before;
};

static inline struct hook_call begin_call(int which, uintptr_t frame)
{
    struct hook_call before = {tmk_lane.reporting, tmk_lane.hook};
    tmk_lane.reporting = frame;
    tmk_lane.hook = (unsigned)(which + 1) & 0xf;
    return before;
}

static inline void end_call(struct hook_call before)
{
    tmk_lane.reporting = before.frame_before;
    tmk_lane.hook = before.hook_before & 0xf;
}

/* True when we called on to a library that found us behind itself. */
static inline bool is_nested(int which, uintptr_t frame)
{
    return atomic_load_explicit(&tmk_hooks[which].foreign, memory_order_relaxed) &&
           frame < tmk_lane.reporting && tmk_lane.hook == which + 1;
}

static void *own_of(int which)
{
    struct tmk_hook *hook = &tmk_hooks[which];
    uintptr_t own = atomic_load_explicit(&hook->own, memory_order_acquire);
    if (own == 0) {
        own = (uintptr_t)tmk_library_symbol(hook->library, hook->name);
        atomic_store_explicit(&hook->own, own, memory_order_release);
    }
    return (void *)own;
}

/* ---- hooks ---- */

__attribute__((noinline, cold)) static void usage_by_others(int which, const void *caller,
                                                            void *address, int64_t size,
                                                            uint64_t allocated, uint64_t reserved,
                                                            uint16_t device)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    bool nested = is_nested(which, frame);
    tmk_usage_function *next =
        (tmk_usage_function *)(nested ? own_of(which) : tmk_hook_real(&tmk_hooks[which], caller));
    if (!nested)
        record_usage(address, size, allocated, reserved, device);
    struct hook_call before = begin_call(which, frame);
    if (next)
        next(address, size, allocated, reserved, device);
    end_call(before);
}

__attribute__((hot, noinline)) static void usage_hook(int which, const void *caller, void *address,
                                                      int64_t size, uint64_t allocated,
                                                      uint64_t reserved, uint16_t device)
{
    struct tmk_hook *hook = &tmk_hooks[which];
    if (__builtin_expect(atomic_load_explicit(&hook->foreign, memory_order_relaxed), 0)) {
        usage_by_others(which, caller, address, size, allocated, reserved, device);
        return;
    }
    record_usage(address, size, allocated, reserved, device);
    tmk_usage_function *real = (tmk_usage_function *)tmk_hook_real(hook, caller);
    if (real)
        real(address, size, allocated, reserved, device);
}

/* Cold only so that the jump to it is at the end of the calling code. */
__attribute__((cold, noinline)) void tmk_block_hook_usage(void *address, int64_t size,
                                                          uint64_t allocated, uint64_t reserved,
                                                          uint16_t device, const void *caller)
{
    usage_hook(TMK_HOOK_USAGE, caller, address, size, allocated, reserved, device);
}

void tmk_block_hook_usage_113(void *address, int64_t size, uint64_t allocated, uint64_t reserved,
                              uint16_t device)
{
    usage_hook(TMK_HOOK_USAGE_113, __builtin_return_address(0), address, size, allocated, reserved,
               device);
}

static void oom_hook(int which, const void *caller, int64_t size, uint64_t allocated,
                     uint64_t reserved, uint16_t device)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    bool nested = is_nested(which, frame);
    oom_function *next =
        (oom_function *)(nested ? own_of(which) : tmk_hook_real(&tmk_hooks[which], caller));
    if (!nested)
        record_oom((uint64_t)size, reserved, device_of_torch(device));
    struct hook_call before = begin_call(which, frame);
    if (next)
        next(size, allocated, reserved, device);
    end_call(before);
}

void tmk_block_hook_oom(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device)
{
    oom_hook(TMK_HOOK_OOM, __builtin_return_address(0), size, allocated, reserved, device);
}

void tmk_block_hook_oom_113(int64_t size, uint64_t allocated, uint64_t reserved, uint16_t device)
{
    oom_hook(TMK_HOOK_OOM_113, __builtin_return_address(0), size, allocated, reserved, device);
}

/* The CPU's reporter tells the profiler through the functions above: `reporting` keeps us from
 * counting twice. */
void tmk_block_hook_cpu_new(void *self, void *address, size_t size)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    bool nested = is_nested(TMK_HOOK_CPU_NEW, frame);
    if (size && !nested)
        tmk_tally_host_alloc(address, size);
    struct tmk_lane *lane = size && !nested ? tmk_lane_enter() : NULL;
    if (lane) {
        record_host_alloc(lane, address, size);
        tmk_lane_leave(lane);
    }
    cpu_new_function *next =
        (cpu_new_function *)(nested ? own_of(TMK_HOOK_CPU_NEW)
                                    : tmk_hook_real(&tmk_hooks[TMK_HOOK_CPU_NEW],
                                                    __builtin_return_address(0)));
    struct hook_call before = begin_call(TMK_HOOK_CPU_NEW, frame);
    if (next)
        next(self, address, size);
    end_call(before);
}

void tmk_block_hook_cpu_delete(void *self, void *address)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    bool nested = is_nested(TMK_HOOK_CPU_DELETE, frame);
    if (address && !nested)
        tmk_tally_host_free(address);
    struct tmk_lane *lane = address && !nested ? tmk_lane_enter() : NULL;
    if (lane) {
        record_host_free(lane, address);
        tmk_lane_leave(lane);
    }
    cpu_delete_function *next =
        (cpu_delete_function *)(nested ? own_of(TMK_HOOK_CPU_DELETE)
                                       : tmk_hook_real(&tmk_hooks[TMK_HOOK_CPU_DELETE],
                                                       __builtin_return_address(0)));
    struct hook_call before = begin_call(TMK_HOOK_CPU_DELETE, frame);
    if (next)
        next(self, address);
    end_call(before);
}

void tmk_block_hook_cpu_oom(void *self, size_t size)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    bool nested = is_nested(TMK_HOOK_CPU_OOM, frame);
    if (!nested)
        record_oom(size, 0, TIDEMARK_HOST);
    cpu_oom_function *next =
        (cpu_oom_function *)(nested ? own_of(TMK_HOOK_CPU_OOM)
                                    : tmk_hook_real(&tmk_hooks[TMK_HOOK_CPU_OOM],
                                                    __builtin_return_address(0)));
    struct hook_call before = begin_call(TMK_HOOK_CPU_OOM, frame);
    if (next)
        next(self, size);
    end_call(before);
}

/* Find torch's function at the first node of all. */
__attribute__((noinline, cold)) static uintptr_t find_real_node(const void *caller)
{
    uintptr_t real = (uintptr_t)tmk_hook_find_real(&tmk_hooks[TMK_HOOK_NODE], caller);
    if (!real)
        __builtin_trap(); /* nobody calls a function that does not exist */
    atomic_store(&tmk_torch_hot.node_real, real);
    return real;
}

/* Called for each node that backward comes to; what the node raises passes through here. Used only
 * where modules have names. Otherwise the hook is taken out if possible
 * (tmk_torch_slots_switch_nodes), and a worker's first block tells that it works. */
TMK_HOT_CODE_ALIGNED(4, 16)
void tmk_block_hook_node(void *self, void *task, void *node, void *input, void *queue)
{
    uintptr_t real = atomic_load_explicit(&tmk_torch_hot.node_real, memory_order_acquire);
    if (tmk_seldom(!real))
        real = find_real_node(__builtin_return_address(0));
    if (atomic_load_explicit(&tmk_fast_path.quiet, memory_order_relaxed) == TMK_TORCH_NEVER_QUIET)
        tmk_torch_calls_note_node(node);
    ((node_function *)real)(self, task, node, input, queue);
}

/* It is never reached without the real function: the slot had it (torch_slots.c). */
void tmk_block_hook_autograd_state(uintptr_t state)
{
    struct tmk_hook *hook = &tmk_hooks[TMK_HOOK_AUTOGRAD_STATE];
    void (*real)(uintptr_t) =
        (void (*)(uintptr_t))atomic_load_explicit(&hook->real, memory_order_acquire);
    real(state);
    tmk_grad_mode_note();
}

TMK_EXPORT(tmk_block_hook_usage_113, TMK_NAME_USAGE_113);
TMK_EXPORT(tmk_block_hook_oom, TMK_NAME_OOM);
TMK_EXPORT(tmk_block_hook_oom_113, TMK_NAME_OOM_113);
TMK_EXPORT(tmk_block_hook_cpu_new, TMK_NAME_CPU_NEW);
TMK_EXPORT(tmk_block_hook_cpu_delete, TMK_NAME_CPU_DELETE);
TMK_EXPORT(tmk_block_hook_cpu_oom, TMK_NAME_CPU_OOM);
TMK_EXPORT(tmk_block_hook_node, TMK_NAME_NODE);

/* ---- for the stubs ---- */

/* A stub cannot go on without the function, so it is searched for each time. */
static void *next_of(int which, const void *caller)
{
    return tmk_hook_find_real(&tmk_hooks[which], caller);
}

void *tmk_torch_begin_backward(const void *caller)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (lane) {
        tmk_pystack_note_backward(lane);
        tmk_lane_leave(lane);
    }
    return next_of(TMK_HOOK_BACKWARD, caller);
}

void *tmk_torch_use_pool_bool(const void *caller)
{
    tmk_torch_expect_streams();
    return next_of(TMK_HOOK_POOL_BOOL, caller);
}

void *tmk_torch_use_pool_int(const void *caller)
{
    tmk_torch_expect_streams();
    return next_of(TMK_HOOK_POOL_INT, caller);
}

void *tmk_torch_use_external(const void *caller)
{
    tmk_torch_expect_streams();
    return next_of(TMK_HOOK_EXTERNAL, caller);
}

void *tmk_torch_use_push(const void *caller)
{
    tmk_torch_expect_listeners();
    return next_of(TMK_HOOK_PUSH, caller);
}

void *tmk_torch_use_guard(const void *caller)
{
    tmk_torch_expect_listeners();
    return next_of(TMK_HOOK_GUARD, caller);
}
