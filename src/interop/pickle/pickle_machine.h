/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_machine.h - the pickle machine, as its files share it. Private to the
 * pickle reader.
 */
#ifndef TMK_INTEROP_PICKLE_PICKLE_MACHINE_H
#define TMK_INTEROP_PICKLE_PICKLE_MACHINE_H

#include "interop/pickle/pickle.h"
#include "interop/pickle/pickle_memo.h"
#include "interop/pickle/pickle_memory.h"
#include "interop/pickle/pickle_ops.h"

struct tmk_pickle {
    struct tmk_feed *feed;
    struct tmk_pickle_visitor visitor;
    struct tmk_pickle_memory memory;
    struct tmk_error *err; /* of the call under way */

    struct tmk_pickle_value *stack;
    uint64_t n, room;
    uint32_t *marks; /* where they are on the stack */
    uint64_t n_marks, mark_room;

    struct tmk_pickle_memo memo;
    bool is_careful;
};

/* An error at the byte that is next; they return `rc`. */
int tmk_pickle_fail(struct tmk_pickle *p, int rc, const char *text);
int tmk_pickle_fail_memory(struct tmk_pickle *p);
int tmk_pickle_fail_nonsense(struct tmk_pickle *p);
/* After need() or skip() of the feed gave `rc`, not 1. */
int tmk_pickle_fail_feed(struct tmk_pickle *p, int rc);
/* An instruction that makes no plain data: says which, and what it refers to. */
int tmk_pickle_refuse(struct tmk_pickle *p, enum tmk_pickle_op op);

/* What the visitor wants of the list that lies at `at` on the stack. */
uint16_t tmk_pickle_ask_stream(const struct tmk_pickle *p, uint64_t at);

#endif
