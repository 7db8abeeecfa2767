/* SPDX-License-Identifier: MIT */
/* interop/pickle.c - see pickle.h.
 *
 * One table says of every byte what it is: how many bytes follow at least, and what it means. The
 * first pass goes through the instructions with it and notes which memo entries are fetched; it
 * stops at whatever it does not know and leaves it to the second pass, the machine, to say what is
 * wrong, since only that has the names.
 *
 * Where a list lies is read off the stack below it: containers are there before what they hold. */
#include "interop/pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "interop/pickle_memory.h"
#include "kit/grow.h"

enum {
    PROTOCOL_MAX = 5,
    STACK_MAX = 1 << 22, /* values waiting at once; picklers leave a thousand */
    ITEMS_MAX = 1 << 26, /* of one list, dict or tuple */
    INSTRUCTION_MAX = 9, /* bytes, those of a text not counted */
};

/* What an instruction does. Those that take no part in plain data are listed to name them. */
enum op {
    OP_UNKNOWN,
    OP_PROTO,
    OP_FRAME,
    OP_STOP,
    OP_NONE,
    OP_TRUE,
    OP_FALSE,
    OP_INT1,
    OP_INT2,
    OP_INT4,
    OP_LONG1,
    OP_LONG4,
    OP_FLOAT,
    OP_TEXT1,
    OP_TEXT4,
    OP_TEXT8,
    OP_BYTES1,
    OP_BYTES4,
    OP_BYTES8,
    OP_EMPTY_DICT,
    OP_EMPTY_LIST,
    OP_EMPTY_TUPLE,
    OP_MARK,
    OP_LIST,
    OP_DICT,
    OP_TUPLE,
    OP_TUPLE1,
    OP_TUPLE2,
    OP_TUPLE3,
    OP_APPEND,
    OP_APPENDS,
    OP_SETITEM,
    OP_SETITEMS,
    OP_POP,
    OP_POP_MARK,
    OP_DUP,
    OP_GET1,
    OP_GET4,
    OP_PUT1,
    OP_PUT4,
    OP_MEMOIZE,
    OP_FIRST_REFUSED,
    OP_GLOBAL = OP_FIRST_REFUSED, /* two lines follow: module and name */
    OP_STACK_GLOBAL,              /* both are on the stack */
    OP_CALL,
    OP_EXTENSION,
    OP_PERSISTENT,
    OP_BUFFER,
    OP_SET,
    OP_TEXTUAL, /* protocol 0 */
};

static const struct {
    uint8_t op;       /* enum op */
    uint8_t argument; /* bytes that follow, those of a text not counted */
    bool is_simple;   /* the first pass has only to go past it */
} ops[256] = {
    [0x80] = {OP_PROTO, 1, true},         [0x95] = {OP_FRAME, 8, true},
    ['.'] = {OP_STOP, 0, false},          ['N'] = {OP_NONE, 0, true},
    [0x88] = {OP_TRUE, 0, true},          [0x89] = {OP_FALSE, 0, true},
    ['K'] = {OP_INT1, 1, true},           ['M'] = {OP_INT2, 2, true},
    ['J'] = {OP_INT4, 4, true},           [0x8a] = {OP_LONG1, 1, false},
    [0x8b] = {OP_LONG4, 4, false},        ['G'] = {OP_FLOAT, 8, true},
    [0x8c] = {OP_TEXT1, 1, false},        ['X'] = {OP_TEXT4, 4, false},
    [0x8d] = {OP_TEXT8, 8, false},        ['U'] = {OP_TEXT1, 1, false},
    ['T'] = {OP_TEXT4, 4, false},         ['C'] = {OP_BYTES1, 1, false},
    ['B'] = {OP_BYTES4, 4, false},        [0x8e] = {OP_BYTES8, 8, false},
    [0x96] = {OP_BYTES8, 8, false},       ['}'] = {OP_EMPTY_DICT, 0, true},
    [']'] = {OP_EMPTY_LIST, 0, true},     [')'] = {OP_EMPTY_TUPLE, 0, true},
    ['('] = {OP_MARK, 0, true},           ['l'] = {OP_LIST, 0, false},
    ['d'] = {OP_DICT, 0, false},          ['t'] = {OP_TUPLE, 0, true},
    [0x85] = {OP_TUPLE1, 0, true},        [0x86] = {OP_TUPLE2, 0, true},
    [0x87] = {OP_TUPLE3, 0, true},        ['a'] = {OP_APPEND, 0, true},
    ['e'] = {OP_APPENDS, 0, true},        ['s'] = {OP_SETITEM, 0, true},
    ['u'] = {OP_SETITEMS, 0, true},       ['0'] = {OP_POP, 0, false},
    ['1'] = {OP_POP_MARK, 0, false},      ['2'] = {OP_DUP, 0, false},
    ['h'] = {OP_GET1, 1, false},          ['j'] = {OP_GET4, 4, false},
    ['q'] = {OP_PUT1, 1, false},          ['r'] = {OP_PUT4, 4, false},
    [0x94] = {OP_MEMOIZE, 0, false},      ['c'] = {OP_GLOBAL, 0, false},
    ['i'] = {OP_GLOBAL, 0, false}, /* INST: the same two lines, and a call */
    [0x93] = {OP_STACK_GLOBAL, 0, false}, ['R'] = {OP_CALL, 0, false},
    ['b'] = {OP_CALL, 0, false},          ['o'] = {OP_CALL, 0, false},
    [0x81] = {OP_CALL, 0, false},         [0x92] = {OP_CALL, 0, false},
    [0x82] = {OP_EXTENSION, 0, false},    [0x83] = {OP_EXTENSION, 0, false},
    [0x84] = {OP_EXTENSION, 0, false},    ['P'] = {OP_PERSISTENT, 0, false},
    ['Q'] = {OP_PERSISTENT, 0, false},    [0x97] = {OP_BUFFER, 0, false},
    [0x98] = {OP_BUFFER, 0, false},       [0x8f] = {OP_SET, 0, false},
    [0x90] = {OP_SET, 0, false},          [0x91] = {OP_SET, 0, false},
    ['I'] = {OP_TEXTUAL, 0, false},       ['L'] = {OP_TEXTUAL, 0, false},
    ['F'] = {OP_TEXTUAL, 0, false},       ['S'] = {OP_TEXTUAL, 0, false},
    ['V'] = {OP_TEXTUAL, 0, false},       ['g'] = {OP_TEXTUAL, 0, false},
    ['p'] = {OP_TEXTUAL, 0, false},
};

struct tmk_pickle {
    struct tmk_feed *feed;
    struct tmk_pickle_visitor visitor;
    struct tmk_pickle_memory memory;
    struct tmk_error *err; /* of the call under way */

    struct tmk_pickle_value *stack;
    uint64_t n, room;
    uint32_t *marks; /* where they are on the stack */
    uint64_t n_marks, mark_room;

    uint64_t *wanted; /* by memo number, a bit: it is fetched later */
    uint64_t wanted_room;
    struct tmk_pickle_object *
        *memo; /* the wanted ones; what is no object lies in one of kind MARK */
    uint64_t n_memo;
    uint64_t n_scanned_memo;

    uint64_t progress_base;
};

/* ---- errors ---- */

static int fail(struct tmk_pickle *p, int rc, const char *text)
{
    tmk_fail(p->err, rc, "%s", text);
    if (p->err)
        p->err->offset = tmk_feed_offset(p->feed);
    return rc;
}

static int fail_memory(struct tmk_pickle *p)
{
    return fail(p, TMK_ENOMEM, "out of memory");
}

static int fail_nonsense(struct tmk_pickle *p)
{
    return fail(p, TMK_EDAMAGED, "the pickle makes no sense here: it is damaged");
}

/* After need() or skip() gave `rc`, not 1. */
static int fail_feed(struct tmk_pickle *p, int rc)
{
    if (rc == 0)
        return fail(p, TMK_EDAMAGED, "the file ends in the middle: it was cut");
    return fail(p, rc, p->feed->error.text);
}

/* ---- the first pass ---- */

static bool note_wanted(struct tmk_pickle *p, uint64_t i)
{
    if (i >= p->n_scanned_memo)
        return false;
    p->wanted[i / 64] |= UINT64_C(1) << (i % 64);
    return true;
}

/* Numbers are dense: each new one follows the last. */
static bool note_put(struct tmk_pickle *p, uint64_t i)
{
    if (i > p->n_scanned_memo)
        return false;
    if (i < p->n_scanned_memo)
        return true;
    uint64_t room = p->wanted_room;
    uint64_t *more = tmk_grow(p->wanted, i / 64 + 1, &p->wanted_room, sizeof *more);
    if (!more)
        return false;
    p->wanted = more;
    memset(more + room, 0, (size_t)(p->wanted_room - room) * sizeof *more);
    p->n_scanned_memo++;
    return true;
}

static uint64_t argument_of(const uint8_t *at, unsigned bytes)
{
    return bytes == 1   ? at[0]
           : bytes == 4 ? tmk_load_u32(at)
           : bytes == 8 ? tmk_load_u64(at)
           : bytes == 2 ? tmk_load_u16(at)
                        : 0;
}

static void tell(struct tmk_pickle *p)
{
    if (p->visitor.progress)
        p->visitor.progress(p->visitor.arg, p->progress_base + p->feed->file_read,
                            2 * p->feed->file_bytes);
}

/* The next instruction's bytes are here, as far as the file has them. False: not enough of them. */
static bool fetch(struct tmk_pickle *p)
{
    struct tmk_feed *f = p->feed;
    tell(p);
    return tmk_feed_need(f, INSTRUCTION_MAX) >= 0 && f->end > f->at &&
           f->end - f->at > ops[f->at[0]].argument;
}

static inline bool have_instruction(struct tmk_pickle *p)
{
    return __builtin_expect(p->feed->end - p->feed->at >= INSTRUCTION_MAX, 1) || fetch(p);
}

/* One that the first pass has to look at. False: it ends there. */
static bool scan_one(struct tmk_pickle *p, uint8_t op, uint64_t argument)
{
    switch (op) {
    case OP_GET1:
    case OP_GET4:
        return note_wanted(p, argument);
    case OP_PUT1:
    case OP_PUT4:
        return note_put(p, argument);
    case OP_MEMOIZE:
        return note_put(p, p->n_scanned_memo);
    case OP_TEXT1:
    case OP_TEXT4:
    case OP_TEXT8:
    case OP_BYTES1:
    case OP_BYTES4:
    case OP_BYTES8:
    case OP_LONG1:
    case OP_LONG4:
        return tmk_feed_skip(p->feed, argument) > 0;
    default:
        return op != OP_STOP && op != OP_UNKNOWN && op < OP_FIRST_REFUSED;
    }
}

static void scan(struct tmk_pickle *p)
{
    struct tmk_feed *f = p->feed;
    while (have_instruction(p)) {
        const uint8_t *at = f->at, *last = f->end - INSTRUCTION_MAX;
        uint64_t i;
        for (; at <= last;
             at += 1 + ops[at[0]].argument) { /* the most frequent, one after the other */
            if (at[0] == 'h' && (i = at[1]) < p->n_scanned_memo)
                p->wanted[i / 64] |= UINT64_C(1) << (i % 64);
            else if (at[0] == 'j' && (i = tmk_load_u32(at + 1)) < p->n_scanned_memo)
                p->wanted[i / 64] |= UINT64_C(1) << (i % 64);
            else if (!ops[at[0]].is_simple)
                break;
        }
        f->at = at;
        if (f->end == at)
            continue;
        unsigned bytes = ops[at[0]].argument;
        if (f->end - at <= bytes)
            continue;
        f->at = at + 1 + bytes;
        if (!scan_one(p, ops[at[0]].op, argument_of(at + 1, bytes)))
            return;
    }
}

/* ---- the stack ---- */

static int grow_stack(struct tmk_pickle *p)
{
    if (p->n >= STACK_MAX)
        return fail(p, TMK_EFULL, "it nests deeper, or piles up more, than any snapshot");
    struct tmk_pickle_value *more = tmk_grow(p->stack, p->n + 1, &p->room, sizeof *more);
    if (!more)
        return fail_memory(p);
    p->stack = more;
    return 0;
}

static inline int push(struct tmk_pickle *p, struct tmk_pickle_value v)
{
    if (__builtin_expect(p->n == p->room, 0)) {
        int rc = grow_stack(p);
        if (rc < 0)
            return rc;
    }
    p->stack[p->n++] = v;
    return 0;
}

static inline int push_number(struct tmk_pickle *p, enum tmk_pickle_kind kind, int64_t number)
{
    return push(p, (struct tmk_pickle_value){.kind = kind, .number = number});
}

static inline int push_object(struct tmk_pickle *p, struct tmk_pickle_object *o)
{
    if (!o)
        return fail_memory(p);
    return push(p, (struct tmk_pickle_value){.kind = (enum tmk_pickle_kind)o->kind, .object = o});
}

static int push_mark(struct tmk_pickle *p)
{
    uint32_t *more = tmk_grow(p->marks, p->n_marks + 1, &p->mark_room, sizeof *more);
    if (!more)
        return fail_memory(p);
    p->marks = more;
    p->marks[p->n_marks++] = (uint32_t)p->n;
    return push_number(p, TMK_PICKLE_MARK, 0);
}

/* The topmost value, if it is not a mark; NULL: there is none. */
static inline struct tmk_pickle_value *top(struct tmk_pickle *p)
{
    return p->n > 0 && p->stack[p->n - 1].kind != TMK_PICKLE_MARK ? &p->stack[p->n - 1] : NULL;
}

static void drop_above(struct tmk_pickle *p, uint64_t n)
{
    while (p->n > n)
        tmk_pickle_release(&p->memory, p->stack[--p->n]);
}

/* ---- where a list lies ---- */

/* Position of the last mark below `at`, or -1. */
static int64_t mark_below(const struct tmk_pickle *p, uint64_t at)
{
    uint64_t i = p->n_marks;
    while (i > 0 && p->marks[i - 1] >= at)
        i--;
    return i > 0 ? (int64_t)p->marks[i - 1] : -1;
}

/* The key of the outermost dict under which the value at `at` will lie; NULL: it lies elsewhere. */
static const char *root_key(const struct tmk_pickle *p, uint64_t at)
{
    if (at < 2 || p->stack[0].kind != TMK_PICKLE_DICT || p->stack[at - 1].kind != TMK_PICKLE_TEXT)
        return NULL;
    int64_t mark = mark_below(p, at);
    bool in_group = mark == 1 && (at - 2) % 2 == 1; /* dict ( key value ... key HERE */
    bool alone = mark < 0 && at == 2;               /* dict key HERE */
    return in_group || alone ? p->stack[at - 1].object->text : NULL;
}

static uint16_t ask_stream(const struct tmk_pickle *p, uint64_t at)
{
    const struct tmk_pickle_visitor *v = &p->visitor;
    const char *key = root_key(p, at);
    if (key)
        return v->stream(v->arg, key, 1, 0);
    int64_t mark = mark_below(p, at);
    /* list HERE, or list ( value ... HERE */
    uint64_t outer = mark >= 0 && (uint64_t)mark + 1 == at ? at - 2 : at - 1;
    uint64_t index = 0;
    if (at >= 2 && p->stack[at - 1].kind != TMK_PICKLE_MARK && mark > 0 &&
        root_key(p, (uint64_t)mark - 1)) {
        outer = (uint64_t)mark - 1;
        index = at - (uint64_t)mark - 1;
    }
    if (at < 2 || outer >= at || p->stack[outer].kind != TMK_PICKLE_LIST)
        return 0;
    key = root_key(p, outer);
    return key ? v->stream(v->arg, key, 2, p->stack[outer].object->n + index) : 0;
}

/* What the visitor wants of the list at `at`. */
static inline uint16_t stream_of(struct tmk_pickle *p, uint64_t at)
{
    struct tmk_pickle_object *list = p->stack[at].object;
    if (list->stream == 0)
        list->stream = (uint16_t)(1 + ask_stream(p, at));
    return (uint16_t)(list->stream - 1);
}

static int hand_over(struct tmk_pickle *p, uint16_t stream, struct tmk_pickle_value v)
{
    int rc = p->visitor.item(p->visitor.arg, stream, v.object, p->err);
    if (rc < 0 && p->err && p->err->offset == 0)
        p->err->offset = tmk_feed_offset(p->feed);
    tmk_pickle_release(&p->memory, v);
    return rc;
}

/* A dict is about to be pushed. What is on top and a dict too is complete, since a dict is never a
 * key; if it is the first of a list that streams, it goes now. */
static inline int flow(struct tmk_pickle *p)
{
    if (p->n < 3 || p->stack[p->n - 2].kind != TMK_PICKLE_MARK ||
        p->stack[p->n - 1].kind != TMK_PICKLE_DICT || p->stack[p->n - 3].kind != TMK_PICKLE_LIST)
        return 0;
    uint16_t stream = stream_of(p, p->n - 3);
    return stream ? hand_over(p, stream, p->stack[--p->n]) : 0;
}

/* ---- containers ---- */

/* Move the values from `from` up to the top into a container. */
static int take_items(struct tmk_pickle *p, struct tmk_pickle_object *o, uint64_t from)
{
    uint64_t n = p->n - from;
    if (n == 0)
        return 0;
    if (o->is_folded)
        return fail(p, TMK_EFORMAT, "it adds to a list after that was used");
    if (o->n + n > ITEMS_MAX)
        return fail(p, TMK_EFULL, "it has a longer list than any snapshot");
    if (!tmk_pickle_object_reserve(&p->memory, o, o->n + n))
        return fail_memory(p);
    memcpy(o->items + o->n, p->stack + from, (size_t)n * sizeof *o->items);
    o->n += (uint32_t)n;
    p->n = from;
    return 0;
}

/* Dicts of a list that streams go to the visitor instead. */
static int append_from(struct tmk_pickle *p, uint64_t list_at, uint64_t from)
{
    uint16_t stream = stream_of(p, list_at);
    struct tmk_pickle_object *list = p->stack[list_at].object;
    if (stream == 0)
        return take_items(p, list, from);
    int rc = 0;
    for (uint64_t i = from; i < p->n && rc == 0; i++) {
        struct tmk_pickle_value v = p->stack[i];
        p->stack[i] = (struct tmk_pickle_value){.kind = TMK_PICKLE_NONE};
        if (v.kind == TMK_PICKLE_DICT)
            rc = hand_over(p, stream, v);
        else
            tmk_pickle_release(&p->memory, v);
    }
    drop_above(p, from);
    return rc;
}

static int append(struct tmk_pickle *p)
{
    if (!top(p) || p->n < 2 || p->stack[p->n - 2].kind != TMK_PICKLE_LIST)
        return fail_nonsense(p);
    return append_from(p, p->n - 2, p->n - 1);
}

/* Where the topmost mark is, which goes; -1: there is none, or not `kind` below it. */
static int64_t pop_mark(struct tmk_pickle *p, enum tmk_pickle_kind kind)
{
    if (p->n_marks == 0)
        return -1;
    int64_t at = p->marks[p->n_marks - 1];
    if (kind != TMK_PICKLE_MARK && (at == 0 || p->stack[at - 1].kind != kind))
        return -1;
    p->n_marks--;
    return at;
}

static int appends(struct tmk_pickle *p)
{
    int64_t mark = pop_mark(p, TMK_PICKLE_LIST);
    if (mark < 0)
        return fail_nonsense(p);
    int rc = append_from(p, (uint64_t)mark - 1, (uint64_t)mark + 1);
    if (rc == 0)
        p->n = (uint64_t)mark;
    return rc;
}

static int set_item(struct tmk_pickle *p)
{
    if (p->n < 3 || p->stack[p->n - 1].kind == TMK_PICKLE_MARK ||
        p->stack[p->n - 2].kind == TMK_PICKLE_MARK || p->stack[p->n - 3].kind != TMK_PICKLE_DICT)
        return fail_nonsense(p);
    return take_items(p, p->stack[p->n - 3].object, p->n - 2);
}

static int set_items(struct tmk_pickle *p)
{
    int64_t mark = pop_mark(p, TMK_PICKLE_DICT);
    if (mark < 0 || (p->n - (uint64_t)mark - 1) % 2 != 0)
        return fail_nonsense(p);
    int rc = take_items(p, p->stack[mark - 1].object, (uint64_t)mark + 1);
    if (rc == 0)
        p->n = (uint64_t)mark;
    return rc;
}

/* A new container of the values from `from` on; `n_below` values and marks under them go too. */
static int gather(struct tmk_pickle *p, enum tmk_pickle_kind kind, uint64_t from, uint64_t n_below)
{
    struct tmk_pickle_object *o = tmk_pickle_object_new(&p->memory, kind);
    if (!o)
        return fail_memory(p);
    int rc =
        kind == TMK_PICKLE_DICT && (p->n - from) % 2 ? fail_nonsense(p) : take_items(p, o, from);
    if (rc < 0)
        return rc;
    p->n = from - n_below;
    return push_object(p, o);
}

static int gather_from_mark(struct tmk_pickle *p, enum tmk_pickle_kind kind)
{
    int64_t mark = pop_mark(p, TMK_PICKLE_MARK);
    return mark < 0 ? fail_nonsense(p) : gather(p, kind, (uint64_t)mark + 1, 1);
}

static int tuple_of(struct tmk_pickle *p, uint64_t n)
{
    uint64_t least = p->n_marks ? p->marks[p->n_marks - 1] + 1 : 0;
    return p->n < least + n ? fail_nonsense(p) : gather(p, TMK_PICKLE_TUPLE, p->n - n, 0);
}

/* ---- the memo ---- */

/* One more reference to a value, as an object. */
static struct tmk_pickle_object *keep(struct tmk_pickle *p, const struct tmk_pickle_value *v)
{
    if (tmk_pickle_is_object(v)) {
        v->object->n_refs++;
        return v->object;
    }
    struct tmk_pickle_object *box = tmk_pickle_object_new(&p->memory, TMK_PICKLE_MARK);
    if (!box || !tmk_pickle_object_reserve(&p->memory, box, 1))
        return NULL;
    box->n = 1;
    box->items[0] = *v;
    return box;
}

static int put(struct tmk_pickle *p, uint64_t i)
{
    const struct tmk_pickle_value *v = top(p);
    if (!v)
        return fail_nonsense(p);
    if (i > p->n_memo)
        return fail(p, TMK_EFORMAT, "it numbers what it keeps out of order: not a torch snapshot");
    if (i == p->n_memo)
        p->n_memo++;
    if (i >= p->n_scanned_memo || !(p->wanted[i / 64] >> (i % 64) & 1))
        return 0;
    if (!p->memo && p->n_scanned_memo > 0) /* pages that are not written cost nothing */
        p->memo = calloc(p->n_scanned_memo, sizeof *p->memo);
    struct tmk_pickle_object *kept = p->memo ? keep(p, v) : NULL;
    if (!kept)
        return fail_memory(p);
    if (p->memo[i] && --p->memo[i]->n_refs == 0)
        tmk_pickle_object_free(&p->memory, p->memo[i]);
    p->memo[i] = kept;
    return 0;
}

static inline int get(struct tmk_pickle *p, uint64_t i)
{
    struct tmk_pickle_object *o = i < p->n_memo && p->memo ? p->memo[i] : NULL;
    if (!o)
        return fail_nonsense(p);
    if (o->kind == TMK_PICKLE_MARK)
        return push(p, o->items[0]);
    if (o->kind == TMK_PICKLE_DICT) {
        int rc = flow(p);
        if (rc < 0)
            return rc;
    }
    o->n_refs++;
    return push_object(p, o);
}

/* ---- plain values ---- */

static int text(struct tmk_pickle *p, uint64_t n)
{
    int rc = tmk_feed_need(p->feed, n);
    if (rc <= 0)
        return fail_feed(p, rc);
    struct tmk_pickle_object *o = tmk_pickle_text_new(&p->memory, p->feed->at, (uint32_t)n);
    p->feed->at += n;
    return push_object(p, o);
}

static int bytes(struct tmk_pickle *p, uint64_t n)
{
    int rc = tmk_feed_skip(p->feed, n);
    if (rc <= 0)
        return fail_feed(p, rc);
    return push_object(p, tmk_pickle_object_new(&p->memory, TMK_PICKLE_BYTES));
}

/* Little-endian, two's complement, as short as can be. */
static int long_number(struct tmk_pickle *p, uint64_t n)
{
    if (n > 8) {
        int rc = tmk_feed_skip(p->feed, n);
        return rc <= 0 ? fail_feed(p, rc) : push_number(p, TMK_PICKLE_BIG, 0);
    }
    int rc = tmk_feed_need(p->feed, n);
    if (rc <= 0)
        return fail_feed(p, rc);
    uint64_t value = 0;
    if (p->feed->end - p->feed->at >= 8)
        value = tmk_load_u64(p->feed->at);
    else
        memcpy(&value, p->feed->at, n);
    unsigned unused = 64 - 8 * (unsigned)n; /* the sign is in the last byte's highest bit */
    value = n ? (uint64_t)((int64_t)(value << unused) >> unused) : 0;
    p->feed->at += n;
    return push_number(p, TMK_PICKLE_INT, (int64_t)value);
}

static int real(struct tmk_pickle *p, const uint8_t *at)
{
    uint64_t word = __builtin_bswap64(tmk_load_u64(at));
    struct tmk_pickle_value v = {.kind = TMK_PICKLE_FLOAT};
    memcpy(&v.real, &word, sizeof v.real);
    return push(p, v);
}

/* ---- what is refused ---- */

/* A name for people: printable ASCII, cut. */
static void copy_name(char *to, size_t room, const uint8_t *from, size_t n)
{
    size_t i = 0;
    for (; i < n && i + 1 < room; i++)
        to[i] = from[i] >= ' ' && from[i] < 0x7f ? (char)from[i] : '?';
    to[i] = '\0';
}

static size_t line_length(struct tmk_feed *f, size_t from)
{
    size_t n = 0;
    while (tmk_feed_need(f, from + n + 1) > 0 && f->at[from + n] != '\n' && n < 80)
        n++;
    return n;
}

static int refuse_name(struct tmk_pickle *p, const char *module, const char *name)
{
    char why[200];
    snprintf(why, sizeof why, "refers to %s.%s: this file wants code run; nothing was run", module,
             name);
    return fail(p, TMK_EFORMAT, why);
}

static int refuse_global(struct tmk_pickle *p)
{
    char module[64], name[64];
    size_t n = line_length(p->feed, 0);
    copy_name(module, sizeof module, p->feed->at, n);
    size_t m = line_length(p->feed, n + 1);
    copy_name(name, sizeof name, p->feed->at + n + 1, m);
    return refuse_name(p, module, name);
}

static int refuse_stack_global(struct tmk_pickle *p)
{
    char parts[2][64] = {"?", "?"};
    for (unsigned i = 0; i < 2; i++) {
        const struct tmk_pickle_value *v = p->n > i ? &p->stack[p->n - 1 - i] : NULL;
        if (v && v->kind == TMK_PICKLE_TEXT)
            copy_name(parts[i], sizeof parts[i], (const uint8_t *)v->object->text, v->object->n);
    }
    return refuse_name(p, parts[1], parts[0]);
}

static int refuse(struct tmk_pickle *p, enum op op)
{
    switch (op) {
    case OP_GLOBAL:
        return refuse_global(p);
    case OP_STACK_GLOBAL:
        return refuse_stack_global(p);
    case OP_CALL:
        return fail(p, TMK_EFORMAT, "this file wants code run; nothing was run");
    case OP_EXTENSION:
        return fail(p, TMK_EFORMAT,
                    "refers to a registered extension: this file wants code run; nothing was run");
    case OP_PERSISTENT:
    case OP_BUFFER:
        return fail(p, TMK_EFORMAT, "it refers to data outside of the file: not a torch snapshot");
    case OP_SET:
        return fail(p, TMK_EFORMAT, "it has a set: not a torch snapshot");
    case OP_TEXTUAL:
        return fail(
            p, TMK_EFORMAT,
            "a pickle of protocol 0 or 1, which is not read; in Python, pickle.dump(snapshot, "
            "file, protocol=4) writes one that is");
    default:
        return fail(p, TMK_EDAMAGED, "it has a byte that is no pickle instruction");
    }
}

/* ---- the machine ---- */

static int dup_top(struct tmk_pickle *p)
{
    const struct tmk_pickle_value *v = top(p);
    if (!v)
        return fail_nonsense(p);
    if (tmk_pickle_is_object(v))
        v->object->n_refs++;
    return push(p, *v);
}

static int pop_top(struct tmk_pickle *p)
{
    if (p->n == 0)
        return fail_nonsense(p);
    if (p->stack[p->n - 1].kind == TMK_PICKLE_MARK)
        p->n_marks--;
    drop_above(p, p->n - 1);
    return 0;
}

static int pop_to_mark(struct tmk_pickle *p)
{
    int64_t mark = pop_mark(p, TMK_PICKLE_MARK);
    if (mark < 0)
        return fail_nonsense(p);
    drop_above(p, (uint64_t)mark);
    return 0;
}

static int empty_dict(struct tmk_pickle *p)
{
    int rc = flow(p);
    return rc < 0 ? rc : push_object(p, tmk_pickle_object_new(&p->memory, TMK_PICKLE_DICT));
}

/* One instruction, already taken off the feed but for the bytes of a text. `at`: its argument. */
static inline int step(struct tmk_pickle *p, enum op op, const uint8_t *at)
{
    switch (op) {
    case OP_PROTO:
        return at[0] <= PROTOCOL_MAX ? 0
                                     : fail(p, TMK_EVERSION, "a pickle of a protocol newer than 5");
    case OP_FRAME:
        return 0;
    case OP_NONE:
        return push_number(p, TMK_PICKLE_NONE, 0);
    case OP_TRUE:
        return push_number(p, TMK_PICKLE_BOOL, 1);
    case OP_FALSE:
        return push_number(p, TMK_PICKLE_BOOL, 0);
    case OP_INT1:
        return push_number(p, TMK_PICKLE_INT, at[0]);
    case OP_INT2:
        return push_number(p, TMK_PICKLE_INT, tmk_load_u16(at));
    case OP_INT4:
        return push_number(p, TMK_PICKLE_INT, (int32_t)tmk_load_u32(at));
    case OP_LONG1:
        return long_number(p, at[0]);
    case OP_LONG4:
        return long_number(p, tmk_load_u32(at));
    case OP_FLOAT:
        return real(p, at);
    case OP_TEXT1:
        return text(p, at[0]);
    case OP_TEXT4:
        return text(p, tmk_load_u32(at));
    case OP_TEXT8:
        return text(p, tmk_load_u64(at));
    case OP_BYTES1:
        return bytes(p, at[0]);
    case OP_BYTES4:
        return bytes(p, tmk_load_u32(at));
    case OP_BYTES8:
        return bytes(p, tmk_load_u64(at));
    case OP_EMPTY_DICT:
        return empty_dict(p);
    case OP_EMPTY_LIST:
        return push_object(p, tmk_pickle_object_new(&p->memory, TMK_PICKLE_LIST));
    case OP_EMPTY_TUPLE:
        return push_object(p, tmk_pickle_object_new(&p->memory, TMK_PICKLE_TUPLE));
    case OP_MARK:
        return push_mark(p);
    case OP_LIST:
        return gather_from_mark(p, TMK_PICKLE_LIST);
    case OP_DICT:
        return gather_from_mark(p, TMK_PICKLE_DICT);
    case OP_TUPLE:
        return gather_from_mark(p, TMK_PICKLE_TUPLE);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return tuple_of(p, 1 + (uint64_t)(op - OP_TUPLE1));
    case OP_APPEND:
        return append(p);
    case OP_APPENDS:
        return appends(p);
    case OP_SETITEM:
        return set_item(p);
    case OP_SETITEMS:
        return set_items(p);
    case OP_POP:
        return pop_top(p);
    case OP_POP_MARK:
        return pop_to_mark(p);
    case OP_DUP:
        return dup_top(p);
    case OP_GET1:
        return get(p, at[0]);
    case OP_GET4:
        return get(p, tmk_load_u32(at));
    case OP_PUT1:
        return put(p, at[0]);
    case OP_PUT4:
        return put(p, tmk_load_u32(at));
    case OP_MEMOIZE:
        return put(p, p->n_memo);
    default:
        return refuse(p, op);
    }
}

static int run(struct tmk_pickle *p)
{
    struct tmk_feed *f = p->feed;
    while (have_instruction(p)) {
        const uint8_t *at = f->at;
        enum op op = (enum op)ops[at[0]].op;
        if (op == OP_STOP)
            return 0;
        f->at = at + 1 + ops[at[0]].argument;
        int rc = step(p, op, at + 1);
        if (rc < 0)
            return rc;
    }
    return fail_feed(p, tmk_feed_need(f, (size_t)(f->end - f->at) + 1));
}

int tmk_pickle_read(struct tmk_pickle *p, struct tmk_pickle_value *ret_root, struct tmk_error *err)
{
    p->err = err;
    p->progress_base = 0;
    scan(p);
    int rc = tmk_feed_rewind(p->feed, err);
    if (rc < 0)
        return rc;
    p->progress_base = p->feed->file_bytes;
    if (tmk_feed_need(p->feed, 1) > 0 && p->feed->at[0] != 0x80)
        return fail(p, TMK_EFORMAT, "this is not a pickle of protocol 2 to 5");
    rc = run(p);
    if (rc < 0)
        return rc;
    if (p->n != 1 || !top(p))
        return fail_nonsense(p);
    *ret_root = p->stack[0];
    return 0;
}

/* ---- the rest ---- */

int tmk_pickle_open(struct tmk_feed *feed, const struct tmk_pickle_visitor *visitor,
                    struct tmk_pickle **ret_pickle)
{
    struct tmk_pickle *p = calloc(1, sizeof *p);
    if (!p)
        return TMK_ENOMEM;
    p->feed = feed;
    p->visitor = *visitor;
    *ret_pickle = p;
    return 0;
}

struct tmk_pickle *tmk_pickle_close(struct tmk_pickle *p)
{
    if (!p)
        return NULL;
    tmk_arena_fini(&p->memory.arena);
    free(p->stack);
    free(p->marks);
    free(p->wanted);
    free(p->memo);
    free(p);
    return NULL;
}

const struct tmk_pickle_value *tmk_pickle_get(const struct tmk_pickle_object *dict, const char *key)
{
    for (uint32_t i = dict->n; i >= 2; i -= 2) {
        const struct tmk_pickle_value *k = &dict->items[i - 2];
        if (k->kind == TMK_PICKLE_TEXT && strcmp(k->object->text, key) == 0)
            return &dict->items[i - 1];
    }
    return NULL;
}

void tmk_pickle_fold(struct tmk_pickle *p, struct tmk_pickle_object *list, uint32_t tag)
{
    tmk_pickle_object_empty(&p->memory, list);
    list->is_folded = 1;
    list->tag = tag;
}
