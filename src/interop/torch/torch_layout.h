/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_layout.h - the addresses of one device's blocks, followed event by event to
 * find how large the blocks really are.
 *
 * A snapshot's events have the requested size. The block that torch makes of it is rounded up,
 * and is larger still where the rest of the free block it was taken from was too small to split
 * off. The address tells which free block that was: blocks are taken from the front of a free
 * one, and free neighbours are joined. So keeping the blocks of every segment in order, as torch
 * does, gives the sizes to the byte; model/alloc_conf.h has the rules for rounding and splitting.
 *
 *     segment  | used 2 MiB | free 18 MiB                  |   alloc of 17.5 MiB at the free one:
 *              | used 2 MiB | used 18 MiB                  |   0.5 MiB would be left: not cut
 *
 * An event that does not fit (one was lost) is counted and made to fit. */
#ifndef TMK_INTEROP_TORCH_TORCH_LAYOUT_H
#define TMK_INTEROP_TORCH_TORCH_LAYOUT_H

#include "interop/pickle/work_limit.h"
#include "model/alloc_conf.h"

struct tmk_import_layout;

/* `conf` is copied. `work`, borrowed, counts what is walked through; NULL: it is not counted.
 * Returns 0 or TMK_ENOMEM. close takes NULL, returns NULL. */
int tmk_import_layout_open(const struct tmk_alloc_conf *conf, struct tmk_work_limit *work,
                           struct tmk_import_layout **ret_layout);
struct tmk_import_layout *tmk_import_layout_close(struct tmk_import_layout *l);

/* Memory came from the driver. If expandable, it continues what is mapped before and after it.
 * What is there already is not added twice. Returns 0, TMK_ENOMEM, or TMK_EFULL: the limit of
 * work is exceeded. */
int tmk_import_layout_map(struct tmk_import_layout *l, uint64_t address, uint64_t size_bytes,
                          bool is_expandable);
/* Memory went back to the driver; blocks there end. Results are those of map. */
int tmk_import_layout_unmap(struct tmk_import_layout *l, uint64_t address, uint64_t size_bytes);

/* A block begins: *ret_size is its size. `real_bytes` is that size where it is known, else 0.
 * Results are those of map. */
int tmk_import_layout_alloc(struct tmk_import_layout *l, uint64_t address, uint64_t requested_bytes,
                            uint64_t real_bytes, uint64_t *ret_size);
/* The block's memory may be handed out again. Returns false when there is none at the address. */
bool tmk_import_layout_free(struct tmk_import_layout *l, uint64_t address);

/* The bytes from `address` to the end of what is mapped there; 0: nothing is. */
uint64_t tmk_import_layout_left(const struct tmk_import_layout *l, uint64_t address);
/* The size of the block at `address`; 0: there is none. */
uint64_t tmk_import_layout_block(const struct tmk_import_layout *l, uint64_t address);

/* Contiguous memory, in order of addresses: all of an expandable segment, or one segment. Returns
 * false when there is no i-th. first_span gives the first that ends after `address`. */
struct tmk_import_span {
    uint64_t address;
    uint64_t size_bytes;
    bool is_expandable;
};
bool tmk_import_layout_span(const struct tmk_import_layout *l, uint64_t i,
                            struct tmk_import_span *ret_span);
uint64_t tmk_import_layout_first_span(const struct tmk_import_layout *l, uint64_t address);

/* Events that did not fit. */
uint64_t tmk_import_layout_n_odd(const struct tmk_import_layout *l);

/* True when every invariant holds; for tests. */
bool tmk_import_layout_is_valid(const struct tmk_import_layout *l);

#endif
