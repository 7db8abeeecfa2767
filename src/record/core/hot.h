/* SPDX-License-Identifier: MIT */
/* record/core/hot.h - where the code and data that every event needs are placed: together, on pages
 * of their own.
 *
 * Between two events a training goes through more memory than the inner caches and the TLB hold. An
 * event's code and data are then fetched again, line by line and page by page. Scattered over the
 * library they would be twice as many lines and pages. */
#ifndef TMK_RECORD_HOT_H
#define TMK_RECORD_HOT_H

/* Place a function beside the others that run for each event, at the start of a cache line. The
 * linker sorts them by `order`, a digit. The first one begins a page, which has all of orders 0 to
 * 4: blocks, then autograd's nodes, which run one after the other. Order 5, on the next page, has
 * calls of modules and gradients (tests/torch/test_short_way.py). A linker that does not sort
 * leaves them where they are. */
#define TMK_HOT_CODE(order) TMK_HOT_CODE_ALIGNED(order, 64)
#define TMK_HOT_CODE_FIRST TMK_HOT_CODE_ALIGNED(0, 4096)
#define TMK_HOT_CODE_NEXT TMK_HOT_CODE_ALIGNED(5, 4096) /* for the first file that has order 5 */
#define TMK_HOT_CODE_ALIGNED(order, n)                                                             \
    __attribute__((section(".text.sorted.tidemark." #order), aligned(n)))

#define TMK_HOT_DATA __attribute__((section(".tmk_hot"), aligned(64)))
/* Marks the first object in the first file that has hot data, so that all small objects are on one
 * page. */
#define TMK_HOT_FIRST __attribute__((section(".tmk_hot"), aligned(4096)))
/* Marks a large object, placed behind all others. Only its beginning is hot. */
#define TMK_HOT_LAST __attribute__((section(".tmk_hot_last"), aligned(64)))

#endif
