/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_memo.h - the memo: values that a pickle may refer to again, by number.
 * Private to the pickle reader.
 *
 * Each entry is a word:
 *   0         not kept (a careful reader knows that nobody asks)
 *   pointer   an object, which has a reference for it; of kind MARK: its only item
 *   tag 0001  a list that the visitor has folded into that tag
 *   ... 0010  given up with the item that held it: asking for it gives TMK_EAGAIN */
#ifndef TMK_INTEROP_PICKLE_PICKLE_MEMO_H
#define TMK_INTEROP_PICKLE_PICKLE_MEMO_H

#include "interop/pickle/pickle_memory.h"
#include "interop/pickle/pickle_value.h"

enum { TMK_MEMO_FOLDED = 1, TMK_MEMO_GONE = 2, TMK_MEMO_BITS = 15 };

struct tmk_pickle_memo {
    uint64_t *words;
    uint64_t n, room;
    uint64_t *wanted; /* a bit each: it is asked for. NULL: not known, so all are kept */
    uint64_t n_wanted, wanted_room;
};

/* Scan a feed's instructions and note which numbers are asked for. It stops at an instruction
 * that it does not understand: the machine will report why. Returns 0 or TMK_ENOMEM. */
int tmk_pickle_scan(struct tmk_feed *f, struct tmk_pickle_memo *m);

/* Store a value; `i` is at most `n`. Returns 0 or TMK_ENOMEM. */
int tmk_pickle_memo_put(struct tmk_pickle_memo *m, struct tmk_pickle_memory *memory, uint64_t i,
                        const struct tmk_pickle_value *v);
/* The object, if it is a plain one; NULL: use get. */
static inline struct tmk_pickle_object *tmk_pickle_memo_object(const struct tmk_pickle_memo *m,
                                                               uint64_t i)
{
    uint64_t word = i < m->n && i < m->room ? m->words[i] : 0;
    struct tmk_pickle_object *o =
        word & TMK_MEMO_BITS ? NULL : (struct tmk_pickle_object *)(uintptr_t)word;
    return o && o->kind != TMK_PICKLE_MARK ? o : NULL;
}
/* Give a value with one more reference. Returns 0, TMK_EAGAIN, TMK_EDAMAGED (there is none) or
 * TMK_ENOMEM. */
int tmk_pickle_memo_get(struct tmk_pickle_memo *m, struct tmk_pickle_memory *memory, uint64_t i,
                        struct tmk_pickle_value *ret);

/* Finish with the item. The memo gives up the item, and what it holds (one level down, except
 * texts), if nothing else refers to them. */
void tmk_pickle_memo_forget(struct tmk_pickle_memo *m, struct tmk_pickle_object *item);
/* Keep only the tag of a list that was folded. */
void tmk_pickle_memo_fold(struct tmk_pickle_memo *m, struct tmk_pickle_object *list);
void tmk_pickle_memo_fini(struct tmk_pickle_memo *m);

#endif
