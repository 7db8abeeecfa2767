/* SPDX-License-Identifier: MIT */
/* interop/pickle_out.h - write Python's pickle format, protocol 4: what data needs, nothing that
 * calls anything.
 *
 * Only opcodes that memory_viz reads as well as Python: dicts, lists, pairs, texts, whole numbers
 * of at most eight bytes, None, True and False, and the memo, by which a value is written once and
 * named from then on. No frames (they are optional), no POP (memory_viz has none), and lists in
 * portions, since a reader may hold a portion on its stack.
 *
 *     tmk_pickle_dict(p);
 *     tmk_pickle_mark(p);
 *     tmk_pickle_text(p, "size"), tmk_pickle_int(p, 512);
 *     tmk_pickle_set_items(p); */
#ifndef TMK_INTEROP_PICKLE_OUT_H
#define TMK_INTEROP_PICKLE_OUT_H

#include <stdbool.h>

#include "interop/out.h"

enum { TMK_PICKLE_PORTION = 1000 };

struct tmk_pickle {
    struct tmk_out *out;
    uint32_t n_memo;
};

void tmk_pickle_begin(struct tmk_pickle *p, struct tmk_out *out);
void tmk_pickle_end(struct tmk_pickle *p);

void tmk_pickle_dict(struct tmk_pickle *p);
void tmk_pickle_list(struct tmk_pickle *p);
/* What follows up to set_items (key, value, key, value ...) or append_items goes into the dict or
 * list before the mark. Neither minds none. */
void tmk_pickle_mark(struct tmk_pickle *p);
void tmk_pickle_set_items(struct tmk_pickle *p);
void tmk_pickle_append_items(struct tmk_pickle *p);
/* The last two values become a pair. */
void tmk_pickle_pair(struct tmk_pickle *p);

/* Text that is not UTF-8 is repaired with U+FFFD, and cut at 64 KiB. NULL: None. */
void tmk_pickle_text(struct tmk_pickle *p, const char *text);
void tmk_pickle_int(struct tmk_pickle *p, int64_t value);
/* Numbers above INT64_MAX, which no address or size of a program reaches, turn negative: they keep
 * to eight bytes. */
void tmk_pickle_u64(struct tmk_pickle *p, uint64_t value);
void tmk_pickle_bool(struct tmk_pickle *p, bool value);

/* Keep the last value: its number, from 0, by which get puts it again. */
uint32_t tmk_pickle_keep(struct tmk_pickle *p);
void tmk_pickle_get(struct tmk_pickle *p, uint32_t number);
/* The same for numbers below 256; the place of the byte that can be changed to another number. */
uint64_t tmk_pickle_get_changeable(struct tmk_pickle *p, uint32_t number);

#endif
