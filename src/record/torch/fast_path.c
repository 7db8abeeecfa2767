/* SPDX-License-Identifier: MIT */
/* record/torch/fast_path.c - see fast_path.h. */
#include "record/torch/fast_path.h"

#include "base/clock.h"
#include "record/core/fast_path_line.h"
#include "record/core/fast_path_state.h"
#include "record/core/hot.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/core/thread_slot.h"
#include "record/python/pystack.h"
#include "record/torch/block_hooks.h"
#include "record/training/torch_calls.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/ring.h"

/* Added to an ALLOC head it gives the FREE head: the kind is the low byte. */
static const uint32_t to_free = (uint32_t)TMK_KIND_FREE - TMK_KIND_ALLOC;

/* The calling thread's lane, by an offset in a line that is read anyway; the loader's own TLS
 * tables are in another line. */
static inline struct tmk_lane *fast_lane(void)
{
    int32_t offset = atomic_load_explicit(&tmk_fast_path.lane, memory_order_relaxed);
    return (struct tmk_lane *)(tmk_thread_pointer() + (uintptr_t)(intptr_t)offset);
}

/* True when a block of the calling thread can be written at once, and what is reserved is on
 * record. */
static inline bool is_block_usual(const struct tmk_lane *lane, uint32_t generation,
                                  const struct tmk_fast_path_device *said, uint16_t torch_device,
                                  uint64_t reserved)
{
    bool is_busy =
        lane->busy != 0; /* while a lane is being opened, its generation may not say so yet */
    return !tmk_seldom(lane->generation != generation) && !tmk_seldom(is_busy) &&
           !tmk_seldom(lane->cursor >= lane->end) &&
           tmk_fast_path_has_said(said, generation, torch_device, reserved);
}

/* Make this the device's last block record. Another thread seldom wrote the one before, and a line
 * that many threads read is not written for nothing. */
static inline void note_last_block(struct tmk_lane *lane, struct tmk_fast_path_device *said)
{
    if (tmk_seldom(atomic_load_explicit(&said->thread, memory_order_relaxed) != lane->thread))
        atomic_store_explicit(&said->thread, lane->thread, memory_order_relaxed);
    lane->is_block = true;
}

/* Write the record into a lane that has room. */
static inline void put_usual_alloc(struct tmk_lane *lane, struct tmk_fast_path_device *said,
                                   uint64_t stack, const void *address, uint64_t size)
{
    struct tmk_record *r = tmk_lane_take(lane, 1);
    r->ticks = tmk_clock_counter();
    r->a = (uintptr_t)address;
    r->b = size;
    tmk_record_publish(r, (union tmk_record_head){.word = said->alloc_head | stack << 32});
    note_last_block(lane, said);
}

static inline void put_usual_free(struct tmk_lane *lane, struct tmk_fast_path_device *said,
                                  const void *address)
{
    struct tmk_record *r = tmk_lane_take(lane, 1);
    uint64_t last = r[-1].ticks; /* valid if `is_block` */
    uint64_t ticks = last + TMK_CLOCK_LITTLE;
    if (!tmk_fast_path_may_share(lane, said) ||
        tmk_seldom(last <= atomic_load_explicit(&tmk_fast_path.slept, memory_order_relaxed))) {
        note_last_block(lane, said);
        ticks = tmk_clock_counter();
    }
    r->ticks = ticks;
    r->a = (uintptr_t)address; /* `b` is 0, as are all slots beyond the last record (ring.h) */
    tmk_record_publish(r, (union tmk_record_head){.word = said->alloc_head + to_free});
}

static inline void report_to_torch(void *address, int64_t size, uint64_t allocated,
                                   uint64_t reserved, uint16_t device)
{
    uintptr_t real = atomic_load_explicit(&tmk_fast_path.real, memory_order_relaxed);
    if (tmk_seldom(real != 0))
        ((tmk_usage_function *)real)(address, size, allocated, reserved, device);
}

/* The definitions of a new stack may have filled the page. */
__attribute__((noinline, cold)) static void put_on_next_page(struct tmk_lane *lane,
                                                             struct tmk_fast_path_device *said,
                                                             uint64_t stack, const void *address,
                                                             uint64_t size)
{
    union tmk_record_head h = {.word = said->alloc_head};
    tmk_fast_path_end_sharing(h.device);
    tmk_lane_put(lane, h.kind, h.device, (uint32_t)stack, (uintptr_t)address, size);
}

/* Where there are Python frames. */
TMK_HOT_CODE(1)
__attribute__((noinline)) static void python_alloc(void *address, int64_t size, uint64_t allocated,
                                                   uint64_t reserved, uint16_t device,
                                                   struct tmk_fast_path_device *said)
{
    struct tmk_lane *lane = fast_lane();
    tmk_lane_make_busy(lane);
    uint64_t stack = tmk_pystack_usual_id(lane);
    if (__builtin_expect(lane->cursor < lane->end, 1))
        put_usual_alloc(lane, said, stack, address, (uint64_t)size);
    else
        put_on_next_page(lane, said, stack, address, (uint64_t)size);
    tmk_lane_leave(lane);
    report_to_torch(address, size, allocated, reserved, device);
}

/* The thread's first block in a backward, or the thread has Python frames. */
__attribute__((noinline, cold)) static void worker_alloc(void *address, int64_t size,
                                                         uint64_t allocated, uint64_t reserved,
                                                         uint16_t device,
                                                         struct tmk_fast_path_device *said)
{
    struct tmk_lane *lane = &tmk_lane;
    tmk_lane_make_busy(lane);
    tmk_torch_calls_see_worker(lane);
    tmk_lane_leave(lane);
    python_alloc(address, size, allocated, reserved, device, said);
}

/* Serves autograd's threads, which mostly have no Python frames. */
TMK_HOT_CODE(1)
__attribute__((noinline)) static void autograd_alloc(void *address, int64_t size,
                                                     uint64_t allocated, uint64_t reserved,
                                                     uint16_t device,
                                                     struct tmk_fast_path_device *said)
{
    struct tmk_lane *lane = fast_lane();
    uint64_t stack = tmk_pystack_of_backward(lane);
    if (tmk_seldom(!stack) || tmk_seldom(!tmk_torch_calls_knows_worker(lane))) {
        worker_alloc(address, size, allocated, reserved, device, said);
        return;
    }
    tmk_lane_make_busy(lane);
    put_usual_alloc(lane, said, stack, address, (uint64_t)size);
    tmk_lane_leave(lane);
    report_to_torch(address, size, allocated, reserved, device);
}

TMK_HOT_CODE_FIRST void tmk_fast_path_usage(void *address, int64_t size, uint64_t allocated,
                                            uint64_t reserved, uint16_t device)
{
    struct tmk_fast_path_device *said = tmk_fast_path_device_of(tmk_accelerator_of(device));
    uint32_t generation = atomic_load_explicit(&tmk_fast_path.generation, memory_order_acquire);
    struct tmk_lane *lane = fast_lane();
    __asm__("" : "+r"(said)); /* compute its address once, not anew for each field */
    if (!tmk_seldom(generation == 0) &&
        __builtin_expect(is_block_usual(lane, generation, said, device, reserved), 1)) {
        if (size > 0) {
            if (!tmk_seldom(atomic_load_explicit(&tmk_fast_path.settled, memory_order_relaxed) !=
                            generation)) {
                if (lane->is_autograd)
                    autograd_alloc(address, size, allocated, reserved, device, said);
                else
                    python_alloc(address, size, allocated, reserved, device, said);
                return;
            }
        } else if (!tmk_seldom(size == 0)) {
            tmk_lane_make_busy(lane);
            put_usual_free(lane, said, address);
            tmk_lane_leave(lane);
            report_to_torch(address, size, allocated, reserved, device);
            return;
        }
    }
    tmk_block_hook_usage(address, size, allocated, reserved, device, __builtin_return_address(0));
}

TMK_EXPORT(tmk_fast_path_usage, TMK_NAME_USAGE);
