/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_layout.h - where the blocks of one device lie, followed event by event, to
 * know how large they really are.
 *
 * A snapshot's events say what was requested. The block that torch made of it is rounded up, and is
 * larger still where the rest of the free block it was taken from was too small to be cut off.
 * Which free block that was is told by the address: blocks are taken from the front of a free one,
 * and free neighbours are one. So keeping the blocks of every segment in order, as torch does,
 * gives the sizes to the byte; the rules for rounding and cutting are model/alloc_conf.h's.
 *
 *     segment  | used 2 MiB | free 18 MiB                  |   alloc of 17.5 MiB at the free one:
 *              | used 2 MiB | used 18 MiB                  |   0.5 MiB would be left: not cut
 *
 * What does not fit (an event was lost) is counted and made to fit. */
#ifndef TMK_INTEROP_TORCH_TORCH_LAYOUT_H
#define TMK_INTEROP_TORCH_TORCH_LAYOUT_H

#include "interop/pickle/work_limit.h"
#include "model/alloc_conf.h"

struct tmk_import_layout;

/* `conf` is copied. `work`, borrowed, counts what is walked through; NULL: nothing does. 0 or
 * TMK_ENOMEM. close takes NULL, returns NULL. */
int tmk_import_layout_open(const struct tmk_alloc_conf *conf, struct tmk_work_limit *work,
                           struct tmk_import_layout **ret_layout);
struct tmk_import_layout *tmk_import_layout_close(struct tmk_import_layout *l);

/* The driver gave memory. Expandable: it continues what is mapped before and behind it. What is
 * there already is not given twice. 0, TMK_ENOMEM, or TMK_EFULL: the limit of work is exceeded. */
int tmk_import_layout_map(struct tmk_import_layout *l, uint64_t address, uint64_t size_bytes,
                          bool is_expandable);
/* It took memory back; blocks there end. Results are the same. */
int tmk_import_layout_unmap(struct tmk_import_layout *l, uint64_t address, uint64_t size_bytes);

/* A block begins: *ret_size is its size. `real_bytes` is that where it is known, else 0. Results
 * are the same. */
int tmk_import_layout_alloc(struct tmk_import_layout *l, uint64_t address, uint64_t requested_bytes,
                            uint64_t real_bytes, uint64_t *ret_size);
/* Its memory may be handed out again. False: there is none at the address. */
bool tmk_import_layout_free(struct tmk_import_layout *l, uint64_t address);

/* Bytes from `address` to the end of what is mapped there; 0: nothing is. */
uint64_t tmk_import_layout_left(const struct tmk_import_layout *l, uint64_t address);
/* The block at `address`: its size, 0: there is none. */
uint64_t tmk_import_layout_block(const struct tmk_import_layout *l, uint64_t address);

/* Memory that lies together: all of an expandable segment, or one segment; in order of addresses.
 * False: there is no i-th. first_span: the first that ends behind `address`. */
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

/* For tests: every invariant holds. */
bool tmk_import_layout_is_valid(const struct tmk_import_layout *l);

#endif
