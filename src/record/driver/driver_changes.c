/* SPDX-License-Identifier: MIT */
/* record/driver/driver_changes.c - see driver_changes.h. */
#include "record/driver/driver_changes.h"

#include <stdatomic.h>
#include <unistd.h>

static struct {
    _Atomic uint64_t n_begun, n_ended; /* calls */
    _Atomic uint64_t devices;          /* a bit each */
    _Atomic uint64_t n_changes;        /* what began and ended */
    _Atomic pid_t owner;               /* a child does not have what its parent has */
} changes;

void tmk_driver_changes_begin_call(void)
{
    atomic_fetch_add(&changes.n_begun, 1);
}

void tmk_driver_changes_end_call(const char *scope)
{
    (void)scope;
    atomic_fetch_add(&changes.n_ended, 1);
}

uint64_t tmk_driver_changes_n_calls(uint64_t *ret_n_ended)
{
    *ret_n_ended = atomic_load(&changes.n_ended);
    return atomic_load(&changes.n_begun);
}

/* ---- what is held ---- */

uint64_t tmk_driver_changes_devices(uint64_t *ret_n_changes)
{
    *ret_n_changes = atomic_load(&changes.n_changes);
    return tmk_driver_changes_are_of(getpid()) ? atomic_load(&changes.devices) : 0;
}

uint64_t tmk_driver_changes_now(void)
{
    return atomic_load_explicit(&changes.n_changes, memory_order_relaxed);
}

void tmk_driver_changes_count(void)
{
    atomic_fetch_add(&changes.n_changes, 1);
}

void tmk_driver_changes_set_device(uint16_t device, bool is_held)
{
    if (is_held)
        atomic_fetch_or(&changes.devices, UINT64_C(1) << device);
    else
        atomic_fetch_and(&changes.devices, ~(UINT64_C(1) << device));
}

bool tmk_driver_changes_are_of(pid_t self)
{
    return atomic_load(&changes.owner) == self;
}

void tmk_driver_changes_start_over(pid_t self)
{
    atomic_store(&changes.devices, 0);
    atomic_store(&changes.owner, self);
}
