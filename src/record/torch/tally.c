/* SPDX-License-Identifier: MIT */
/* record/torch/tally.c - see tally.h. */
#include "record/torch/tally.h"

#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#include "record/core/fast_path_line.h"
#include "record/core/fast_path_state.h"
#include "record/core/recorder.h"
#include "record/core/torch_state.h"
#include "record/driver/driver_changes.h"
#include "record/identity/host_memory.h"
#include "record/python/python.h"
#include "record/torch/address_table.h"
#include "record/torch/runtime_calls.h"
#include "record/torch/torch_slots.h"
#include "tidemark/tidemark.h"

/* The figures of one device, in cache lines of their own, because different threads use different
 * devices. What is written with each block comes first. */
struct figures {
    _Atomic uint64_t allocated, reserved;
    _Atomic uint64_t peak_allocated, peak_reserved; /* since the window began */
    _Atomic uint64_t n_changes; /* n_changes_now() when torch said the figures */
    _Atomic uint32_t device;    /* its number plus 1; 0: torch has said nothing */
    _Atomic uint32_t n_said;    /* how often torch has said figures */
    _Atomic bool is_explained;  /* the runtime's calls account for what is reserved */
    _Atomic uint64_t past_allocated, past_reserved; /* the highest before the window began */
    _Atomic uint64_t told_after; /* state_of_figures() when torch was asked for these */
    _Atomic uint64_t told_allocated, told_reserved;
} __attribute__((aligned(64)));

/* 42 MiB of addresses, room for two million blocks; most programs touch only the first two MiB. */
enum { TABLE_BITS = 17, N_LEVELS = 3 };

static struct {
    struct figures devices[TMK_TORCH_DEVICES];
    struct figures host;
    _Atomic uintptr_t slots; /* 0: nobody has asked for the host's figures */
    _Atomic bool has_missed; /* a block of the host found no room */
} tally;

static struct tmk_address_table host_table(void)
{
    uintptr_t slots = atomic_load_explicit(&tally.slots, memory_order_acquire);
    return (struct tmk_address_table){(struct tmk_address_slot *)slots, TABLE_BITS, N_LEVELS};
}

/* ---- accelerators ---- */

static inline void store_figure(_Atomic uint64_t *figure, uint64_t value)
{
    atomic_store_explicit(figure, value, memory_order_relaxed);
}

static inline uint64_t load_figure(const _Atomic uint64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

/* Count of what may have changed torch's reserved bytes without a report, or with one that was not
 * heard. */
static uint64_t n_changes_now(void)
{
    return tmk_driver_changes_now() + tmk_runtime_calls_changes() +
           load_figure(&tmk_torch_slots.n_gaps);
}

void tmk_tally_say(uint16_t device, uint64_t allocated_bytes, uint64_t reserved_bytes)
{
    struct figures *f = &tally.devices[device % TMK_TORCH_DEVICES];
    store_figure(&f->allocated, allocated_bytes);
    store_figure(&f->reserved, reserved_bytes);
    if (allocated_bytes > load_figure(&f->peak_allocated))
        store_figure(&f->peak_allocated, allocated_bytes);
    if (reserved_bytes > load_figure(&f->peak_reserved))
        store_figure(&f->peak_reserved, reserved_bytes);
    atomic_store_explicit(&f->is_explained, tmk_runtime_calls_explains(device, reserved_bytes),
                          memory_order_relaxed);
    atomic_store_explicit(&f->n_changes, n_changes_now(), memory_order_release);
    uint32_t n_said = atomic_load_explicit(&f->n_said, memory_order_relaxed);
    atomic_store_explicit(&f->n_said, n_said + 1, memory_order_release);
    atomic_store_explicit(&f->device, device + 1U, memory_order_release);
}

/* ---- the host ---- */

/* Called for each report of a host block. */
static inline void note_host(void)
{
    if (atomic_load_explicit(&tally.host.device, memory_order_relaxed) == 0)
        atomic_store_explicit(&tally.host.device, TIDEMARK_HOST + 1U, memory_order_relaxed);
}

void tmk_tally_host_alloc(const void *address, uint64_t size_bytes)
{
    struct tmk_address_table table = host_table();
    note_host();
    if (!table.slots)
        return;
    if (!tmk_address_table_put(&table, (uintptr_t)address, size_bytes)) {
        atomic_store_explicit(&tally.has_missed, true, memory_order_relaxed);
        return;
    }
    uint64_t now = atomic_fetch_add(&tally.host.allocated, size_bytes) + size_bytes;
    uint64_t peak = load_figure(&tally.host.peak_allocated);
    while (now > peak && !atomic_compare_exchange_weak(&tally.host.peak_allocated, &peak, now))
        ;
}

void tmk_tally_host_free(const void *address)
{
    struct tmk_address_table table = host_table();
    note_host();
    if (table.slots)
        atomic_fetch_sub(&tally.host.allocated, tmk_address_table_take(&table, (uintptr_t)address));
}

bool tmk_tally_want(void)
{
    atomic_store(&tmk_torch_hot.is_tallied, true);
    tmk_fast_path_close();
    struct tmk_address_table table = host_table();
    if (table.slots)
        return true;
    size_t n_bytes = sizeof(struct tmk_address_slot) * tmk_address_slots_before(&table, N_LEVELS);
    void *slots = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED)
        return false;
    madvise(slots, n_bytes, MADV_NOHUGEPAGE); /* if it fails, more memory is used than needed */
    uintptr_t none = 0;
    if (!atomic_compare_exchange_strong(&tally.slots, &none, (uintptr_t)slots))
        munmap(slots, n_bytes);
    return true;
}

/* ---- asking ---- */

static struct figures *figures_of(uint16_t device)
{
    return device == TIDEMARK_HOST ? &tally.host : &tally.devices[device % TMK_TORCH_DEVICES];
}

/* While nothing is recorded, the hooks may not even be in torch: then no report does not mean no
 * block. */
static bool is_host_known(void)
{
    bool is_heard = atomic_load_explicit(&tally.host.device, memory_order_relaxed) != 0;
    return host_table().slots && (is_heard || !tmk_recorder_is_off()) &&
           !atomic_load_explicit(&tally.has_missed, memory_order_relaxed);
}

/* True when torch uses its own allocator on the device, and we hear it. */
static bool is_device_said(const struct figures *f, uint16_t device)
{
    return atomic_load_explicit(&f->device, memory_order_acquire) == device + 1U &&
           tmk_torch_slots_are_heard();
}

/* True when the device's reserved bytes cannot change unseen: the driver's calls are seen, or the
 * runtime's are and account for all of it. */
static bool is_device_seen(uint16_t device, bool is_explained)
{
    uint64_t n_changes;
    return (is_explained && tmk_runtime_calls_is_seen()) ||
           (tmk_driver_changes_devices(&n_changes) >> (device & 63) & 1);
}

/* A number for what was said and what has changed: while it is the same, torch's answer is too. */
static uint64_t state_of_figures(const struct figures *f)
{
    uint64_t n_said = atomic_load_explicit(&f->n_said, memory_order_acquire);
    return n_said << 32 | (uint32_t)n_changes_now();
}

static bool read_device_tally(uint16_t device, struct tmk_tally *ret)
{
    const struct figures *f = figures_of(device);
    if (!is_device_said(f, device))
        return false;
    uint64_t n_changes = atomic_load_explicit(&f->n_changes, memory_order_acquire);
    bool is_explained = atomic_load_explicit(&f->is_explained, memory_order_relaxed);
    if (n_changes == n_changes_now() && is_device_seen(device, is_explained)) {
        ret->allocated_bytes = load_figure(&f->allocated);
        ret->reserved_bytes = load_figure(&f->reserved);
    } else if (atomic_load(&f->told_after) == state_of_figures(f) && is_device_seen(device, true)) {
        ret->allocated_bytes = load_figure(&f->told_allocated);
        ret->reserved_bytes = load_figure(&f->told_reserved);
    } else {
        return false;
    }
    ret->peak_allocated_bytes = load_figure(&f->peak_allocated);
    ret->peak_reserved_bytes = load_figure(&f->peak_reserved);
    return true;
}

uint64_t tmk_tally_ask(uint16_t device)
{
    return device == TIDEMARK_HOST ? 0 : state_of_figures(figures_of(device));
}

static inline uint64_t larger_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* One caller at a time; another's answer is dropped, and whoever asks next will tell. If a call has
 * come since the question, or comes now, the state differs and never has this value again. */
void tmk_tally_tell(uint16_t device, uint64_t asked, const struct tmk_tally *answer)
{
    static atomic_flag is_telling = ATOMIC_FLAG_INIT;
    struct figures *f = figures_of(device);
    uint32_t whose = atomic_load(&f->device);
    if (device == TIDEMARK_HOST || (whose && whose != device + 1U) ||
        atomic_flag_test_and_set(&is_telling))
        return;
    store_figure(&f->past_allocated,
                 larger_of(load_figure(&f->past_allocated), answer->peak_allocated_bytes));
    store_figure(&f->past_reserved,
                 larger_of(load_figure(&f->past_reserved), answer->peak_reserved_bytes));
    if (is_device_said(f, device) &&
        is_device_seen(device, tmk_runtime_calls_explains(device, answer->reserved_bytes))) {
        atomic_store(&f->told_after, 0);
        store_figure(&f->told_allocated, answer->allocated_bytes);
        store_figure(&f->told_reserved, answer->reserved_bytes);
        atomic_store(&f->told_after, asked);
    }
    atomic_flag_clear(&is_telling);
}

static bool read_host_tally(struct tmk_tally *ret)
{
    if (!is_host_known())
        return false;
    ret->allocated_bytes = ret->reserved_bytes = load_figure(&tally.host.allocated);
    ret->peak_allocated_bytes = ret->peak_reserved_bytes = load_figure(&tally.host.peak_allocated);
    return true;
}

bool tmk_tally_read_window(uint16_t device, uint64_t *ret_peak_bytes)
{
    const struct figures *f = figures_of(device);
    if (!(device == TIDEMARK_HOST ? is_host_known() : is_device_said(f, device)))
        return false;
    *ret_peak_bytes = load_figure(&f->peak_allocated);
    return true;
}

bool tmk_tally_read(uint16_t device, struct tmk_tally *ret)
{
    if (!(device == TIDEMARK_HOST ? read_host_tally(ret) : read_device_tally(device, ret)))
        return false;
    const struct figures *f = figures_of(device);
    ret->peak_allocated_bytes =
        larger_of(ret->peak_allocated_bytes, load_figure(&f->past_allocated));
    ret->peak_reserved_bytes =
        larger_of(ret->peak_reserved_bytes,
                  load_figure(device == TIDEMARK_HOST ? &f->past_allocated : &f->past_reserved));
    return true;
}

/* The peak may miss blocks that are allocated while this runs. */
void tmk_tally_begin_window(uint16_t device)
{
    struct figures *f = figures_of(device);
    store_figure(&f->past_allocated,
                 larger_of(load_figure(&f->past_allocated), load_figure(&f->peak_allocated)));
    store_figure(&f->past_reserved,
                 larger_of(load_figure(&f->past_reserved), load_figure(&f->peak_reserved)));
    store_figure(&f->peak_allocated, load_figure(&f->allocated));
    store_figure(&f->peak_reserved, load_figure(&f->reserved));
}

/* ---- for the Python package ---- */

__attribute__((visibility("default"))) struct tmk_object *tidemark_record_tally_function(void);
__attribute__((visibility("default"))) int tidemark_record_want_tally(void);
__attribute__((visibility("default"))) int tidemark_record_host_memory(uint64_t *ret_two);
__attribute__((visibility("default"))) void tidemark_record_begin_window(unsigned device);
__attribute__((visibility("default"))) int tidemark_record_window(unsigned device,
                                                                  uint64_t *ret_peak_bytes);
__attribute__((visibility("default"))) int tidemark_record_see_runtime(void);
__attribute__((visibility("default"))) uint64_t tidemark_record_begin_segments(void);
__attribute__((visibility("default"))) int tidemark_record_end_segments(uint64_t begun);
__attribute__((visibility("default"))) void
tidemark_record_segment(unsigned device, uint64_t address, uint64_t size_bytes);
__attribute__((visibility("default"))) uint64_t tidemark_record_ask(unsigned device);
__attribute__((visibility("default"))) void tidemark_record_tell(unsigned device, uint64_t asked,
                                                                 uint64_t allocated_bytes,
                                                                 uint64_t reserved_bytes,
                                                                 uint64_t peak_allocated_bytes,
                                                                 uint64_t peak_reserved_bytes);

static const struct tmk_python *python_functions; /* valid while its functions can be called */

/* tally(device): bytes of five numbers, the time (ns since 1970) and the four figures; empty when
 * they are not known. */
static struct tmk_object *python_tally(struct tmk_object *unused, struct tmk_object *device)
{
    struct {
        uint64_t time_ns;
        struct tmk_tally tally;
    } row;
    (void)unused;
    long number = python_functions->PyLong_AsLong(device);
    if (number == -1 && python_functions->PyErr_Occurred())
        return NULL;
    if (!tmk_tally_read((uint16_t)number, &row.tally))
        return python_functions->PyBytes_FromStringAndSize("", 0);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    row.time_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    /* cppcheck-suppress returnDanglingLifetime ; it copies */
    return python_functions->PyBytes_FromStringAndSize((const char *)&row, (long)sizeof row);
}

/* Return the same as a Python function, because a call by ctypes would cost more than the answer.
 * The caller has the interpreter's lock. NULL: an exception is set, unless Python's functions were
 * not found. */
struct tmk_object *tidemark_record_tally_function(void)
{
    static struct tmk_python_method method = {"tally", python_tally, TMK_PYTHON_ONE_ARGUMENT, NULL};
    const char *reason;
    python_functions = tmk_python_find(&reason);
    return python_functions ? python_functions->PyCFunction_NewEx(&method, NULL, NULL) : NULL;
}

int tidemark_record_want_tally(void)
{
    return tmk_tally_want();
}

/* Total and available bytes; in a container by its limit. 0: not known. */
int tidemark_record_host_memory(uint64_t *ret_two)
{
    struct tmk_host_memory memory;
    if (!tmk_host_memory_read(&memory))
        return 0;
    ret_two[0] = memory.total_bytes;
    ret_two[1] = memory.available_bytes;
    return 1;
}

void tidemark_record_begin_window(unsigned device)
{
    tmk_tally_begin_window((uint16_t)device);
}

/* The most bytes allocated since the window began. 0: not known. */
int tidemark_record_window(unsigned device, uint64_t *ret_peak_bytes)
{
    return tmk_tally_read_window((uint16_t)device, ret_peak_bytes);
}

/* 1: tell what torch has got by cudaMalloc() before now: begin, each segment, end. */
int tidemark_record_see_runtime(void)
{
    return tmk_runtime_calls_see();
}

uint64_t tidemark_record_begin_segments(void)
{
    return tmk_runtime_calls_begin_list();
}

/* 0: torch's segments have changed meanwhile; begin anew. */
int tidemark_record_end_segments(uint64_t begun)
{
    return tmk_runtime_calls_end_list(begun);
}

void tidemark_record_segment(unsigned device, uint64_t address, uint64_t size_bytes)
{
    tmk_runtime_calls_note((uint16_t)device, address, size_bytes);
}

uint64_t tidemark_record_ask(unsigned device)
{
    return tmk_tally_ask((uint16_t)device);
}

void tidemark_record_tell(unsigned device, uint64_t asked, uint64_t allocated_bytes,
                          uint64_t reserved_bytes, uint64_t peak_allocated_bytes,
                          uint64_t peak_reserved_bytes)
{
    tmk_tally_tell((uint16_t)device, asked,
                   &(struct tmk_tally){allocated_bytes, reserved_bytes, peak_allocated_bytes,
                                       peak_reserved_bytes});
}
