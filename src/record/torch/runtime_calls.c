/* SPDX-License-Identifier: MIT */
/* record/torch/runtime_calls.c - see runtime_calls.h.
 *
 * Torch calls both functions under its lock of the device, under which it also changes its figures
 * and reports blocks. So it is enough to count a call before it is made. Whoever reads the count
 * after that and asks torch waits for the lock and gets the figures from after the call; whoever
 * has read it before finds that it has changed. (Torch can be set to release the lock during
 * cudaMalloc(). Then other blocks are reported while our sum is ahead of torch's: the figure is
 * unknown until the next block.)
 *
 * There is no lock here either. Torch's locks keep two threads from one address, except while a
 * list is told, which is then not taken. If the table has no room the sums differ, and torch is
 * asked. */
#include "record/torch/runtime_calls.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <unistd.h>

#include "record/core/fast_path_line.h"
#include "record/core/recorder.h"
#include "record/loader/library.h"
#include "record/loader/loader.h"
#include "record/torch/address_table.h"
#include "record/torch/torch_hook.h"
#include "record/torch/torch_slots.h"
#include "trace/layout.h"

typedef int malloc_function(void **ret_address, size_t size_bytes);
typedef int free_function(void *address);
typedef int device_function(int *ret_device);

/* Room for 86,016 segments, mostly of 20 MiB; the device is in the bits above a size. */
enum { TABLE_BITS = 12, N_LEVELS = 3, N_SLOTS = 21 << TABLE_BITS };

static struct {
    struct tmk_address_slot slots[N_SLOTS];
    _Atomic uint64_t given_bytes[TMK_TORCH_DEVICES];
    _Atomic uint64_t n_changes;
    _Atomic uintptr_t get_device; /* cudaGetDevice() */
    _Atomic pid_t owner;          /* the process that the table belongs to */
    _Atomic bool is_used;         /* the table has entries */
} runtime;

static const struct tmk_address_table runtime_segments = {runtime.slots, TABLE_BITS, N_LEVELS};

/* ---- the table ---- */

static void forget_segment(uint64_t address)
{
    uint64_t found = tmk_address_table_take(&runtime_segments, (uintptr_t)address);
    atomic_fetch_sub(&runtime.given_bytes[found >> TMK_SIZE_BITS],
                     found & ((UINT64_C(1) << TMK_SIZE_BITS) - 1));
}

void tmk_runtime_calls_note(uint16_t device, uint64_t address, uint64_t size_bytes)
{
    uint64_t i = (device & 0xffU) % TMK_TORCH_DEVICES;
    if (!address || size_bytes >> TMK_SIZE_BITS)
        return;
    atomic_store_explicit(&runtime.is_used, true, memory_order_relaxed);
    forget_segment(address); /* it may be told twice */
    if (tmk_address_table_put(&runtime_segments, (uintptr_t)address,
                              size_bytes | i << TMK_SIZE_BITS))
        atomic_fetch_add(&runtime.given_bytes[i], size_bytes);
}

/* Nothing is accounted for from now on until torch has reported a block. */
static void forget_all_segments(void)
{
    atomic_fetch_add(&runtime.n_changes, 1);
    if (atomic_exchange(&runtime.is_used, false))
        for (size_t i = 0; i < N_SLOTS; i++)
            atomic_store_explicit(&runtime.slots[i].address, 0, memory_order_relaxed);
    for (int i = 0; i < TMK_TORCH_DEVICES; i++)
        atomic_store(&runtime.given_bytes[i], 0);
    atomic_store(&runtime.owner, getpid());
}

/* Torch makes its list under the locks under which it calls us. So a call that was counted before
 * has ended by then. */
uint64_t tmk_runtime_calls_begin_list(void)
{
    forget_all_segments();
    return tmk_runtime_calls_changes();
}

bool tmk_runtime_calls_end_list(uint64_t begun)
{
    return tmk_runtime_calls_changes() == begun;
}

/* ---- hooks ---- */

static uintptr_t runtime_function(int which)
{
    return atomic_load_explicit(&tmk_hooks[which].real, memory_order_acquire);
}

int tmk_runtime_calls_malloc(void **ret_address, size_t size_bytes)
{
    device_function *get_device = (device_function *)atomic_load(&runtime.get_device);
    int device;
    atomic_fetch_add(&runtime.n_changes, 1);
    int rc = ((malloc_function *)runtime_function(TMK_HOOK_MALLOC))(ret_address, size_bytes);
    if (rc == 0 && ret_address && get_device && get_device(&device) == 0)
        tmk_runtime_calls_note(tmk_cuda_device((unsigned)device), (uintptr_t)*ret_address,
                               size_bytes);
    return rc;
}

/* The free is noted first: afterwards another thread may have the address already. */
int tmk_runtime_calls_free(void *address)
{
    if (address) {
        atomic_fetch_add(&runtime.n_changes, 1);
        forget_segment((uintptr_t)address);
    }
    return ((free_function *)runtime_function(TMK_HOOK_FREE))(address);
}

/* ---- seeing ---- */

/* If so, our dlsym() comes before the C library's: we were preloaded. */
static bool driver_is_seen(void)
{
    uintptr_t first = (uintptr_t)tmk_loader_symbol(RTLD_DEFAULT, "dlsym");
    struct tmk_code_range ours = tmk_library_range((const void *)tmk_runtime_calls_see);
    return first >= ours.start && first < ours.end;
}

static bool put_hooks_in(void)
{
    void *get_device = tmk_library_symbol("libc10_cuda.so", "cudaGetDevice");
    if (!get_device || driver_is_seen())
        return false;
    atomic_store(&runtime.get_device, (uintptr_t)get_device);
    forget_all_segments();
    return tmk_torch_slots_put_in_runtime();
}

/* After a fork the hooks are in, but what they noted is the parent's. */
bool tmk_runtime_calls_see(void)
{
    if (atomic_load(&tmk_torch_slots.is_runtime_seen)) {
        if (atomic_load(&runtime.owner) == getpid())
            return false;
        forget_all_segments();
        return true;
    }
    if (tmk_recorder_is_off() || !tmk_torch_slots_are_heard() ||
        atomic_load(&tmk_torch_slots.is_runtime_tried) || !tmk_torch_slots_take_turn())
        return false;
    atomic_store(&tmk_torch_slots.is_runtime_tried, true);
    bool is_in = put_hooks_in();
    tmk_torch_slots_end_turn();
    return is_in;
}

/* ---- asking ---- */

bool tmk_runtime_calls_is_seen(void)
{
    return atomic_load_explicit(&tmk_torch_slots.is_runtime_seen, memory_order_acquire) &&
           atomic_load_explicit(&runtime.owner, memory_order_relaxed) == getpid();
}

bool tmk_runtime_calls_explains(uint16_t device, uint64_t reserved_bytes)
{
    return device >> 8 == TMK_DEVICE_TYPE_CUDA &&
           atomic_load_explicit(&tmk_torch_slots.is_runtime_seen, memory_order_acquire) &&
           atomic_load(&runtime.given_bytes[(device & 0xff) % TMK_TORCH_DEVICES]) == reserved_bytes;
}

uint64_t tmk_runtime_calls_changes(void)
{
    return atomic_load_explicit(&runtime.n_changes, memory_order_acquire);
}
