/* SPDX-License-Identifier: MIT */
/* interop/out/pickle_out.h - a writer of Python's pickle format, protocol 4: only opcodes for
 * data, none that call anything.
 *
 * It uses opcodes that both memory_viz and Python read: dicts, lists, pairs, texts, whole numbers
 * of at most eight bytes, None, True and False, and the memo, by which a value is written once
 * and then referred to. It writes no frames (they are optional) and no POP (memory_viz has none),
 * and lists in portions, since a reader may hold a portion on its stack.
 *
 *     tmk_pickler_dict(p);
 *     tmk_pickler_mark(p);
 *     tmk_pickler_text(p, "size"), tmk_pickler_int(p, 512);
 *     tmk_pickler_set_items(p); */
#ifndef TMK_INTEROP_OUT_PICKLE_OUT_H
#define TMK_INTEROP_OUT_PICKLE_OUT_H

#include <stdbool.h>

#include "interop/out/out.h"

enum { TMK_PICKLER_PORTION = 1000 };

struct tmk_pickler {
    struct tmk_out *out;
    uint32_t n_memo;
};

void tmk_pickler_begin(struct tmk_pickler *p, struct tmk_out *out);
void tmk_pickler_end(struct tmk_pickler *p);

void tmk_pickler_dict(struct tmk_pickler *p);
void tmk_pickler_list(struct tmk_pickler *p);
/* What follows up to set_items (key, value, key, value ...) or append_items goes into the dict or
 * list before the mark; both accept an empty sequence. */
void tmk_pickler_mark(struct tmk_pickler *p);
void tmk_pickler_set_items(struct tmk_pickler *p);
void tmk_pickler_append_items(struct tmk_pickler *p);
/* Turn the last two values into a pair. */
void tmk_pickler_pair(struct tmk_pickler *p);

/* Write a text. Bytes that are not UTF-8 become U+FFFD, and the text is cut at 64 KiB. NULL:
 * None. */
void tmk_pickler_text(struct tmk_pickler *p, const char *text);
void tmk_pickler_int(struct tmk_pickler *p, int64_t value);
/* Write a number. Numbers above INT64_MAX, which no address or size of a program reaches, turn
 * negative: they keep to eight bytes. */
void tmk_pickler_u64(struct tmk_pickler *p, uint64_t value);
void tmk_pickler_double(struct tmk_pickler *p, double value);
void tmk_pickler_bool(struct tmk_pickler *p, bool value);

/* Keep the last value in the memo. Returns its number, from 0, with which get writes it again. */
uint32_t tmk_pickler_keep(struct tmk_pickler *p);
void tmk_pickler_get(struct tmk_pickler *p, uint32_t number);
/* The same for numbers below 256. Returns the place of the byte, which can be changed to another
 * number. */
uint64_t tmk_pickler_get_changeable(struct tmk_pickler *p, uint32_t number);

#endif
