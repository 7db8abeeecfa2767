/* SPDX-License-Identifier: MIT */
/* interop/out/pickle_out.c - see pickle_out.h. */
#include "interop/out/pickle_out.h"

#include <string.h>

#include "base/bytes.h"
#include "interop/pickle/pickle_ops.h"
#include "kit/utf8.h"

enum { PROTOCOL = 4, LONGEST_TEXT = 1 << 16 };

static void put(struct tmk_pickler *p, enum tmk_pickle_op op)
{
    tmk_out_byte(p->out, (uint8_t)op);
}

static void put_u32(struct tmk_pickler *p, uint32_t value)
{
    uint8_t bytes[4];
    tmk_store_u32(bytes, value);
    tmk_out_bytes(p->out, bytes, sizeof bytes);
}

void tmk_pickler_begin(struct tmk_pickler *p, struct tmk_out *out)
{
    *p = (struct tmk_pickler){.out = out};
    put(p, TMK_OP_PROTO);
    tmk_out_byte(out, PROTOCOL);
}

void tmk_pickler_end(struct tmk_pickler *p)
{
    put(p, TMK_OP_STOP);
}

void tmk_pickler_dict(struct tmk_pickler *p)
{
    put(p, TMK_OP_EMPTY_DICT);
}

void tmk_pickler_list(struct tmk_pickler *p)
{
    put(p, TMK_OP_EMPTY_LIST);
}

void tmk_pickler_mark(struct tmk_pickler *p)
{
    put(p, TMK_OP_MARK);
}

void tmk_pickler_set_items(struct tmk_pickler *p)
{
    put(p, TMK_OP_SETITEMS);
}

void tmk_pickler_append_items(struct tmk_pickler *p)
{
    put(p, TMK_OP_APPENDS);
}

void tmk_pickler_pair(struct tmk_pickler *p)
{
    put(p, TMK_OP_TUPLE2);
}

/* ---- texts ---- */

void tmk_pickler_text(struct tmk_pickler *p, const char *text)
{
    char repaired[LONGEST_TEXT];
    if (!text) {
        put(p, TMK_OP_NONE);
        return;
    }
    size_t n = tmk_utf8_repair(text, repaired, sizeof repaired);
    if (n < 256) {
        put(p, TMK_OP_SHORT_BINUNICODE);
        tmk_out_byte(p->out, (uint8_t)n);
    } else {
        put(p, TMK_OP_BINUNICODE);
        put_u32(p, (uint32_t)n);
    }
    tmk_out_bytes(p->out, repaired, n);
}

/* ---- numbers ---- */

/* Bytes of the shortest two's complement. */
static uint8_t long_bytes(int64_t value)
{
    uint64_t bits = value < 0 ? ~(uint64_t)value : (uint64_t)value; /* but for the sign's */
    uint8_t n = 1;
    while (n < 8 && bits >> (8 * n - 1))
        n++;
    return n;
}

void tmk_pickler_int(struct tmk_pickler *p, int64_t value)
{
    uint8_t bytes[8];
    tmk_store_u64(bytes, (uint64_t)value);
    if (value >= 0 && value < 256) {
        put(p, TMK_OP_BININT1);
        tmk_out_byte(p->out, bytes[0]);
    } else if (value >= 0 && value < 65536) {
        put(p, TMK_OP_BININT2);
        tmk_out_bytes(p->out, bytes, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put(p, TMK_OP_BININT);
        tmk_out_bytes(p->out, bytes, 4);
    } else {
        put(p, TMK_OP_LONG1);
        tmk_out_byte(p->out, long_bytes(value));
        tmk_out_bytes(p->out, bytes, long_bytes(value));
    }
}

void tmk_pickler_u64(struct tmk_pickler *p, uint64_t value)
{
    tmk_pickler_int(p, (int64_t)value);
}

/* The one number that is written with its first byte first. */
void tmk_pickler_double(struct tmk_pickler *p, double value)
{
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &value, sizeof bits);
    tmk_store_u64(bytes, __builtin_bswap64(bits));
    put(p, TMK_OP_BINFLOAT);
    tmk_out_bytes(p->out, bytes, sizeof bytes);
}

void tmk_pickler_bool(struct tmk_pickler *p, bool value)
{
    put(p, value ? TMK_OP_NEWTRUE : TMK_OP_NEWFALSE);
}

/* ---- the memo ---- */

uint32_t tmk_pickler_keep(struct tmk_pickler *p)
{
    put(p, TMK_OP_MEMOIZE);
    return p->n_memo++;
}

void tmk_pickler_get(struct tmk_pickler *p, uint32_t number)
{
    if (number < 256) {
        put(p, TMK_OP_BINGET);
        tmk_out_byte(p->out, (uint8_t)number);
    } else {
        put(p, TMK_OP_LONG_BINGET);
        put_u32(p, number);
    }
}

uint64_t tmk_pickler_get_changeable(struct tmk_pickler *p, uint32_t number)
{
    put(p, TMK_OP_BINGET);
    tmk_out_byte(p->out, (uint8_t)number);
    return tmk_out_place(p->out) - 1;
}
