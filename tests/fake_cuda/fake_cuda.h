/* SPDX-License-Identifier: MIT */
/* fake_cuda.h - what the parts of the stand-in libcuda.so.1 share.
 *
 * Each function of the driver holds the one lock from fake_enter() to its return. What has an
 * address is a struct fake_range in one of the tables below, which are sorted by address. Addresses
 * are mapped without any access, so that they are nobody else's; the bytes of the card are
 * accounted for with fake_card_take(). */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <sys/types.h>

#include "fake_cuda_api.h"

#define MIB (1ull << 20)
#define FAKE_GRANULE_BYTES (2 * MIB)       /* in which the card's memory is given out */
#define FAKE_SMALL_BYTES (1 * MIB)         /* up to here, allocations share a granule */
#define FAKE_CHUNK_BYTES (32 * MIB)        /* by which a pool grows */
#define FAKE_CONTEXT_BYTES (300 * MIB)     /* what a context costs */
#define FAKE_MODULE_BYTES (4 * MIB)        /* what loaded code costs */
#define FAKE_ALIGNMENT ((CUdeviceptr)512u) /* of what shares a granule or a chunk */

enum { FAKE_MOST_VISIBLE = 64 };

enum fake_kind {
    FAKE_SMALL, /* in a slab without a pool */
    FAKE_LARGE,
    FAKE_ARRAY,  /* the handle is the address */
    FAKE_MODULE, /* likewise */
    FAKE_MANAGED,
    FAKE_PINNED,
    FAKE_REGISTERED,
    FAKE_IPC,
    FAKE_ASYNC,    /* in a slab of a pool */
    FAKE_RESERVED, /* addresses for mappings */
    FAKE_MAPPING,
    FAKE_SLAB,
};

struct fake_physical; /* memory without an address: fake_cuda_vmm.c */

struct fake_range {
    CUdeviceptr start;
    size_t size; /* as asked for */
    enum fake_kind kind;
    CUdevice device;
    CUcontext context;              /* with which it ends; NULL: with none */
    size_t charged_bytes;           /* of the card */
    CUmemoryPool pool;              /* of FAKE_ASYNC and of its slab */
    struct fake_physical *physical; /* of FAKE_MAPPING */
    int n_opened;                   /* of FAKE_IPC, like the next two */
    uint64_t ipc_pid, ipc_address;  /* whose memory it is, and where it is there */
};

struct fake_table {
    struct fake_range *ranges; /* by start; they do not overlap */
    int n, room;
};

extern struct fake_table fake_allocations; /* all kinds but those of the tables below */
extern struct fake_table fake_registered, fake_reserved, fake_mappings, fake_slabs;

/* The range with this address in it, or NULL; good until the table changes. */
struct fake_range *fake_table_find(const struct fake_table *t, CUdeviceptr address);
/* The range that starts there and is of this kind, or NULL. */
struct fake_range *fake_table_at(const struct fake_table *t, CUdeviceptr start,
                                 enum fake_kind kind);
/* Index of the first range that ends behind this address. */
int fake_table_first(const struct fake_table *t, CUdeviceptr address);
void fake_table_add(struct fake_table *t, const struct fake_range *range);
void fake_table_remove(struct fake_table *t, const struct fake_range *range);

/* Addresses that nothing else has, a multiple of 2 MiB. 0: none are left. */
CUdeviceptr fake_addresses_take(size_t size);
void fake_addresses_give_back(CUdeviceptr start, size_t size);

static inline size_t fake_round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

/* Room for `size` bytes in a slab, by first fit; 0: there is none. */
CUdeviceptr fake_slab_gap(const struct fake_range *slab, size_t size);
bool fake_slab_is_empty(const struct fake_range *slab);
/* A new one, of slab->size bytes, for its device and its pool. */
CUresult fake_slab_add(struct fake_range *slab);
void fake_slab_remove(const struct fake_range *slab);

/* ---- a call ---- */

struct fake_call {
    CUresult code;     /* why the function cannot go on, or 0 */
    CUcontext context; /* the thread's current one */
};

extern pid_t fake_started_by; /* the process; 0: none yet */

/* As the real one, it is no more when the process has begun to end. */
void fake_end_with_process(void);

/* Take the lock. The first: the driver must have been started; the second: with a context. */
struct fake_call fake_enter(void);
struct fake_call fake_enter_context(void);
void fake_leave(struct fake_call *call);
#define FAKE_CALL __attribute__((cleanup(fake_leave), unused)) struct fake_call

/* ---- devices and contexts ---- */

struct CUctx_st {
    CUdevice device;
    int n_retained; /* of a primary context */
    bool is_live;
};

enum {
    FAKE_LAST_NAMED_STREAM = 2
}; /* 0, and the two that have numbers: the legacy one, the thread's */

/* Whose stream it is. */
CUcontext fake_stream_context(CUstream stream, CUcontext of_thread);
bool fake_is_device(CUdevice device);
/* Bytes of the card, for this process: 0 or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult fake_card_take(CUdevice device, uint64_t bytes);
void fake_card_give_back(CUdevice device, uint64_t bytes);
/* As cuMemGetInfo tells. */
void fake_card_info(CUdevice device, uint64_t *free_bytes, uint64_t *total_bytes);
unsigned fake_card_number(CUdevice device);

/* ---- what ends ---- */

void fake_allocation_free(struct fake_range *range);
/* All that the context has. */
void fake_context_free(CUcontext context);
void fake_pool_free(struct fake_range *range);
/* After a synchronisation: the device's pools give back what is above their thresholds. */
void fake_pools_synchronize(CUdevice device);

#endif
