/* SPDX-License-Identifier: MIT */
/* record/core/hot.h - where the code and data of every event stand: together, on pages of their
 * own.
 *
 * Between two events a training goes through more memory than the inner caches and their table of
 * pages hold. What an event needs is then fetched line by line and page by page; scattered over the
 * library's data it would be twice as many. */
#ifndef TMK_RECORD_HOT_H
#define TMK_RECORD_HOT_H

/* A function on each event's way: beside the others, and from the beginning of a line on. The
 * linker sorts them by `order`, a digit; the first begins a page, and all of the first five orders,
 * 0 to 4, are on it: those of blocks, and then of nodes, which run one after the other. 5, on the
 * page behind it, are calls of modules and gradients (tests/torch/test_short_way.py). Linkers that
 * do not sort leave them where they are. */
#define TMK_HOT_CODE(order) TMK_HOT_CODE_ALIGNED(order, 64)
#define TMK_HOT_CODE_FIRST TMK_HOT_CODE_ALIGNED(0, 4096)
#define TMK_HOT_CODE_NEXT TMK_HOT_CODE_ALIGNED(5, 4096) /* in the first file that has order 5 */
#define TMK_HOT_CODE_ALIGNED(order, n)                                                             \
    __attribute__((section(".text.sorted.tidemark." #order), aligned(n)))

#define TMK_HOT_DATA __attribute__((section(".tmk_hot"), aligned(64)))
/* The first of them, in the first file that has one, so that all the small ones are on one page. */
#define TMK_HOT_FIRST __attribute__((section(".tmk_hot"), aligned(4096)))
/* Behind them all, a large one of which only the beginning is so. */
#define TMK_HOT_LAST __attribute__((section(".tmk_hot_last"), aligned(64)))

#endif
