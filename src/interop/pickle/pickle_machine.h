/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_machine.h - the pickle machine, shared by its files. Private to the
 * pickle reader. */
#ifndef TMK_INTEROP_PICKLE_PICKLE_MACHINE_H
#define TMK_INTEROP_PICKLE_PICKLE_MACHINE_H

#include "interop/pickle/feed.h"
#include "interop/pickle/pickle_memo.h"
#include "interop/pickle/pickle_memory.h"
#include "interop/pickle/pickle_ops.h"
#include "interop/pickle/pickle_value.h"

struct tmk_pickle {
    struct tmk_feed *feed;
    struct tmk_pickle_visitor visitor;
    struct tmk_pickle_memory memory;
    struct tmk_error *err; /* of the current call */

    struct tmk_pickle_value *stack;
    uint64_t n, room;
    uint32_t *marks; /* their indexes on the stack */
    uint64_t n_marks, mark_room;

    struct tmk_pickle_memo memo;
    bool is_careful;
};

/* Report an error at the next byte; each returns `rc`. */
int tmk_pickle_fail(struct tmk_pickle *p, int rc, const char *text);
int tmk_pickle_fail_memory(struct tmk_pickle *p);
int tmk_pickle_fail_nonsense(struct tmk_pickle *p);
/* Report that need() or skip() of the feed returned `rc`, not 1. */
int tmk_pickle_fail_feed(struct tmk_pickle *p, int rc);
/* Report an instruction that makes no plain data: which one it is, and what it refers to. */
int tmk_pickle_refuse(struct tmk_pickle *p, enum tmk_pickle_op op);

/* Ask the visitor what it wants of the list at index `at` of the stack. */
uint16_t tmk_pickle_ask_stream(const struct tmk_pickle *p, uint64_t at);

#endif
