/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle.c - see pickle.h.
 *
 * The machine has a stack of values, marks on it, and the memo. The stack below a list tells
 * where it will lie: containers are there before their content. */
#include "interop/pickle/pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "interop/pickle/pickle_machine.h"
#include "interop/pickle/pickle_memo.h"
#include "interop/pickle/pickle_memory.h"
#include "interop/pickle/pickle_ops.h"
#include "kit/arena.h"
#include "kit/grow.h"

enum {
    PROTOCOL_MAX = 5,
    STACK_MAX = 1 << 22, /* values pending at once; picklers leave a thousand */
    ITEMS_MAX = 1 << 26, /* in one list, dict or tuple */
    PILE_MAX_BYTES = 128 << 20,
    /* The most that a text counts in limits: a longer one may lie in a hole of the file. */
    TEXT_COUNTED_BYTES = 4096,
};

/* ---- instructions ---- */

static void tell_pickle_progress(struct tmk_pickle *p)
{
    const struct tmk_feed *f = p->feed;
    if (p->visitor.progress)
        p->visitor.progress(p->visitor.arg, f->file_read + (p->is_careful ? 2 * f->file_bytes : 0),
                            (p->is_careful ? 3 : 1) * f->file_bytes);
}

/* Get the next instruction's bytes, as far as the file has them. Returns false when there are too
 * few. */
static bool fetch_instruction(struct tmk_pickle *p)
{
    struct tmk_feed *f = p->feed;
    tell_pickle_progress(p);
    return tmk_feed_need(f, TMK_OP_MAX_BYTES) >= 0 && f->end > f->at &&
           f->end - f->at > tmk_pickle_ops[f->at[0]].argument;
}

static inline bool have_instruction(struct tmk_pickle *p)
{
    return __builtin_expect(p->feed->end - p->feed->at >= TMK_OP_MAX_BYTES, 1) ||
           fetch_instruction(p);
}

/* ---- the stack ---- */

static int grow_stack(struct tmk_pickle *p)
{
    if (p->n >= STACK_MAX)
        return tmk_pickle_fail(p, TMK_EFULL,
                               "it nests deeper, or piles up more, than any snapshot");
    if (TMK_GROW(p->stack, p->n + 1, p->room) < 0)
        return tmk_pickle_fail_memory(p);
    return 0;
}

static inline int push_value(struct tmk_pickle *p, struct tmk_pickle_value v)
{
    if (__builtin_expect(p->n == p->room, 0)) {
        int rc = grow_stack(p);
        if (rc < 0)
            return rc;
    }
    p->stack[p->n++] = v;
    return 0;
}

static inline int push_number_value(struct tmk_pickle *p, enum tmk_pickle_kind kind, int64_t number)
{
    return push_value(p, (struct tmk_pickle_value){.kind = kind, .number = number});
}

static inline int push_object(struct tmk_pickle *p, struct tmk_pickle_object *o)
{
    if (!o)
        return tmk_pickle_fail_memory(p);
    return push_value(
        p, (struct tmk_pickle_value){.kind = (enum tmk_pickle_kind)o->kind, .object = o});
}

static int push_mark(struct tmk_pickle *p)
{
    if (TMK_GROW(p->marks, p->n_marks + 1, p->mark_room) < 0)
        return tmk_pickle_fail_memory(p);
    p->marks[p->n_marks++] = (uint32_t)p->n;
    return push_number_value(p, TMK_PICKLE_MARK, 0);
}

/* The topmost value, if it is not a mark; NULL: there is none. */
static inline struct tmk_pickle_value *top_value(struct tmk_pickle *p)
{
    return p->n > 0 && p->stack[p->n - 1].kind != TMK_PICKLE_MARK ? &p->stack[p->n - 1] : NULL;
}

static void drop_values_above(struct tmk_pickle *p, uint64_t n)
{
    while (p->n > n)
        tmk_pickle_release(&p->memory, p->stack[--p->n]);
}

/* ---- streaming ---- */

/* Ask the visitor what it wants of the list at index `at`. */
static inline uint16_t stream_of_list(struct tmk_pickle *p, uint64_t at)
{
    struct tmk_pickle_object *list = p->stack[at].object;
    if (list->stream == 0)
        list->stream = (uint16_t)(1 + tmk_pickle_ask_stream(p, at));
    return (uint16_t)(list->stream - 1);
}

static int hand_over_dict(struct tmk_pickle *p, uint16_t stream, struct tmk_pickle_value v)
{
    int rc = p->visitor.item(p->visitor.arg, stream, v.object, p->err);
    if (rc < 0 && p->err && p->err->offset == 0)
        p->err->offset = tmk_feed_offset(p->feed);
    if (!p->is_careful)
        tmk_pickle_memo_forget(&p->memo, v.object);
    tmk_pickle_release(&p->memory, v);
    return rc;
}

/* A dict is about to be pushed. If the top is a dict too, it is complete, since a dict is never a
 * key; if it is the first of a list that streams, it is handed over now. */
static inline int stream_first_dict(struct tmk_pickle *p)
{
    if (p->n < 3 || p->stack[p->n - 2].kind != TMK_PICKLE_MARK ||
        p->stack[p->n - 1].kind != TMK_PICKLE_DICT || p->stack[p->n - 3].kind != TMK_PICKLE_LIST)
        return 0;
    uint16_t stream = stream_of_list(p, p->n - 3);
    return stream ? hand_over_dict(p, stream, p->stack[--p->n]) : 0;
}

/* ---- containers ---- */

/* Move the values from `from` up to the top into a container. */
static int take_items(struct tmk_pickle *p, struct tmk_pickle_object *o, uint64_t from)
{
    uint64_t n = p->n - from;
    if (n == 0)
        return 0;
    if (o->is_folded)
        return tmk_pickle_fail(p, TMK_EFORMAT, "it adds to a list after that was used");
    if (o->n + n > ITEMS_MAX)
        return tmk_pickle_fail(p, TMK_EFULL, "it has a longer list than any snapshot");
    if (!tmk_pickle_object_reserve(&p->memory, o, o->n + n))
        return tmk_pickle_fail_memory(p);
    memcpy(o->items + o->n, p->stack + from, (size_t)n * sizeof *o->items);
    o->n += (uint32_t)n;
    p->n = from;
    return 0;
}

/* Append values; dicts of a list that streams go to the visitor instead. */
static int append_items_from(struct tmk_pickle *p, uint64_t list_at, uint64_t from)
{
    uint16_t stream = stream_of_list(p, list_at);
    struct tmk_pickle_object *list = p->stack[list_at].object;
    if (stream == 0)
        return take_items(p, list, from);
    int rc = 0;
    for (uint64_t i = from; i < p->n && rc == 0; i++) {
        struct tmk_pickle_value v = p->stack[i];
        p->stack[i] = (struct tmk_pickle_value){.kind = TMK_PICKLE_NONE};
        if (v.kind == TMK_PICKLE_DICT)
            rc = hand_over_dict(p, stream, v);
        else
            tmk_pickle_release(&p->memory, v);
    }
    drop_values_above(p, from);
    return rc;
}

static int append_item(struct tmk_pickle *p)
{
    if (!top_value(p) || p->n < 2 || p->stack[p->n - 2].kind != TMK_PICKLE_LIST)
        return tmk_pickle_fail_nonsense(p);
    return append_items_from(p, p->n - 2, p->n - 1);
}

/* Remove the topmost mark. Returns its index; -1: there is none, or the value below it is not of
 * `kind`. */
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

static int append_items(struct tmk_pickle *p)
{
    int64_t mark = pop_mark(p, TMK_PICKLE_LIST);
    if (mark < 0)
        return tmk_pickle_fail_nonsense(p);
    int rc = append_items_from(p, (uint64_t)mark - 1, (uint64_t)mark + 1);
    if (rc == 0)
        p->n = (uint64_t)mark;
    return rc;
}

static int set_dict_item(struct tmk_pickle *p)
{
    if (p->n < 3 || p->stack[p->n - 1].kind == TMK_PICKLE_MARK ||
        p->stack[p->n - 2].kind == TMK_PICKLE_MARK || p->stack[p->n - 3].kind != TMK_PICKLE_DICT)
        return tmk_pickle_fail_nonsense(p);
    return take_items(p, p->stack[p->n - 3].object, p->n - 2);
}

static int set_items(struct tmk_pickle *p)
{
    int64_t mark = pop_mark(p, TMK_PICKLE_DICT);
    if (mark < 0 || (p->n - (uint64_t)mark - 1) % 2 != 0)
        return tmk_pickle_fail_nonsense(p);
    int rc = take_items(p, p->stack[mark - 1].object, (uint64_t)mark + 1);
    if (rc == 0)
        p->n = (uint64_t)mark;
    return rc;
}

/* Make a container of the values from `from` on; `n_below` values and marks under them are
 * removed too. */
static int gather_items(struct tmk_pickle *p, enum tmk_pickle_kind kind, uint64_t from,
                        uint64_t n_below)
{
    struct tmk_pickle_object *o = tmk_pickle_object_new(&p->memory, kind);
    if (!o)
        return tmk_pickle_fail_memory(p);
    int rc = kind == TMK_PICKLE_DICT && (p->n - from) % 2 ? tmk_pickle_fail_nonsense(p)
                                                          : take_items(p, o, from);
    if (rc < 0)
        return rc;
    p->n = from - n_below;
    return push_object(p, o);
}

static int gather_items_from_mark(struct tmk_pickle *p, enum tmk_pickle_kind kind)
{
    int64_t mark = pop_mark(p, TMK_PICKLE_MARK);
    return mark < 0 ? tmk_pickle_fail_nonsense(p) : gather_items(p, kind, (uint64_t)mark + 1, 1);
}

static int make_tuple(struct tmk_pickle *p, uint64_t n)
{
    uint64_t least = p->n_marks ? p->marks[p->n_marks - 1] + 1 : 0;
    return p->n < least + n ? tmk_pickle_fail_nonsense(p)
                            : gather_items(p, TMK_PICKLE_TUPLE, p->n - n, 0);
}

/* ---- the memo ---- */

/* True when values pile up that might be referred to again: then find out first which ones are. */
static bool has_memo_piled_up(const struct tmk_pickle *p)
{
    return !p->is_careful && p->memory.total_bytes > PILE_MAX_BYTES;
}

static int put_memo(struct tmk_pickle *p, uint64_t i)
{
    const struct tmk_pickle_value *v = top_value(p);
    if (!v)
        return tmk_pickle_fail_nonsense(p);
    if (i > p->memo.n)
        return tmk_pickle_fail(p, TMK_EFORMAT,
                               "it numbers what it keeps out of order: not a torch snapshot");
    if (has_memo_piled_up(p))
        return TMK_EAGAIN;
    return tmk_pickle_memo_put(&p->memo, &p->memory, i, v) < 0 ? tmk_pickle_fail_memory(p) : 0;
}

/* Get a value that is no object, or with content that was given up. */
static int get_rare_memo(struct tmk_pickle *p, uint64_t i)
{
    struct tmk_pickle_value v;
    int rc = i < p->memo.n ? tmk_pickle_memo_get(&p->memo, &p->memory, i, &v) : TMK_EDAMAGED;
    if (rc == TMK_EAGAIN)
        return rc;
    return rc == 0            ? push_value(p, v)
           : rc == TMK_ENOMEM ? tmk_pickle_fail_memory(p)
                              : tmk_pickle_fail_nonsense(p);
}

static inline int get_memo(struct tmk_pickle *p, uint64_t i)
{
    struct tmk_pickle_object *o = tmk_pickle_memo_object(&p->memo, i);
    if (__builtin_expect(!o, 0))
        return get_rare_memo(p, i);
    if (o->kind == TMK_PICKLE_DICT) {
        int rc = stream_first_dict(p);
        if (rc < 0)
            return rc;
    }
    o->n_refs++;
    return push_object(p, o);
}

/* ---- plain values ---- */

static int push_text_value(struct tmk_pickle *p, uint64_t n)
{
    int rc = tmk_feed_need(p->feed, n);
    if (rc <= 0)
        return tmk_pickle_fail_feed(p, rc);
    struct tmk_pickle_object *o = tmk_pickle_text_new(&p->memory, p->feed->at, (uint32_t)n);
    p->feed->at += n;
    if (n > TEXT_COUNTED_BYTES)
        tmk_feed_uncount(p->feed, n - TEXT_COUNTED_BYTES);
    return push_object(p, o);
}

static int push_bytes(struct tmk_pickle *p, uint64_t n)
{
    int rc = tmk_feed_skip(p->feed, n);
    if (rc <= 0)
        return tmk_pickle_fail_feed(p, rc);
    return push_object(p, tmk_pickle_object_new(&p->memory, TMK_PICKLE_BYTES));
}

/* Push a little-endian two's complement number, as short as possible. */
static int long_number(struct tmk_pickle *p, uint64_t n)
{
    if (n > 8) {
        int rc = tmk_feed_skip(p->feed, n);
        return rc <= 0 ? tmk_pickle_fail_feed(p, rc) : push_number_value(p, TMK_PICKLE_BIG, 0);
    }
    int rc = tmk_feed_need(p->feed, n);
    if (rc <= 0)
        return tmk_pickle_fail_feed(p, rc);
    uint64_t value = 0;
    if (p->feed->end - p->feed->at >= 8)
        value = tmk_load_u64(p->feed->at);
    else
        memcpy(&value, p->feed->at, n);
    unsigned unused = 64 - 8 * (unsigned)n; /* the sign is in the last byte's highest bit */
    value = n ? (uint64_t)((int64_t)(value << unused) >> unused) : 0;
    p->feed->at += n;
    return push_number_value(p, TMK_PICKLE_INT, (int64_t)value);
}

static int push_real(struct tmk_pickle *p, const uint8_t *at)
{
    uint64_t word = __builtin_bswap64(tmk_load_u64(at));
    struct tmk_pickle_value v = {.kind = TMK_PICKLE_FLOAT};
    memcpy(&v.real, &word, sizeof v.real);
    return push_value(p, v);
}

/* ---- the machine ---- */

static int dup_top_value(struct tmk_pickle *p)
{
    const struct tmk_pickle_value *v = top_value(p);
    if (!v)
        return tmk_pickle_fail_nonsense(p);
    if (tmk_pickle_is_object(v))
        v->object->n_refs++;
    return push_value(p, *v);
}

static int pop_top_value(struct tmk_pickle *p)
{
    if (p->n == 0)
        return tmk_pickle_fail_nonsense(p);
    if (p->stack[p->n - 1].kind == TMK_PICKLE_MARK)
        p->n_marks--;
    drop_values_above(p, p->n - 1);
    return 0;
}

static int pop_values_to_mark(struct tmk_pickle *p)
{
    int64_t mark = pop_mark(p, TMK_PICKLE_MARK);
    if (mark < 0)
        return tmk_pickle_fail_nonsense(p);
    drop_values_above(p, (uint64_t)mark);
    return 0;
}

static int empty_dict(struct tmk_pickle *p)
{
    int rc = stream_first_dict(p);
    return rc < 0 ? rc : push_object(p, tmk_pickle_object_new(&p->memory, TMK_PICKLE_DICT));
}

/* Run one instruction, which is already taken off the feed except for the bytes of a text; its
 * argument is at `at`. This handles those that are rare in snapshots. */
static int run_rare_instruction(struct tmk_pickle *p, enum tmk_pickle_op op, const uint8_t *at)
{
    switch (op) {
    case TMK_OP_PROTO:
        return at[0] <= PROTOCOL_MAX
                   ? 0
                   : tmk_pickle_fail(p, TMK_EVERSION, "a pickle of a protocol newer than 5");
    case TMK_OP_FRAME:
        return 0;
    case TMK_OP_NEWTRUE:
        return push_number_value(p, TMK_PICKLE_BOOL, 1);
    case TMK_OP_NEWFALSE:
        return push_number_value(p, TMK_PICKLE_BOOL, 0);
    case TMK_OP_LONG4:
        return long_number(p, tmk_load_u32(at));
    case TMK_OP_BINFLOAT:
        return push_real(p, at);
    case TMK_OP_BINUNICODE:
    case TMK_OP_BINSTRING:
        return push_text_value(p, tmk_load_u32(at));
    case TMK_OP_BINUNICODE8:
        return push_text_value(p, tmk_load_u64(at));
    case TMK_OP_SHORT_BINBYTES:
        return push_bytes(p, at[0]);
    case TMK_OP_BINBYTES:
        return push_bytes(p, tmk_load_u32(at));
    case TMK_OP_BINBYTES8:
    case TMK_OP_BYTEARRAY8:
        return push_bytes(p, tmk_load_u64(at));
    case TMK_OP_EMPTY_TUPLE:
        return push_object(p, tmk_pickle_object_new(&p->memory, TMK_PICKLE_TUPLE));
    case TMK_OP_LIST:
        return gather_items_from_mark(p, TMK_PICKLE_LIST);
    case TMK_OP_DICT:
        return gather_items_from_mark(p, TMK_PICKLE_DICT);
    case TMK_OP_TUPLE:
        return gather_items_from_mark(p, TMK_PICKLE_TUPLE);
    case TMK_OP_POP:
        return pop_top_value(p);
    case TMK_OP_POP_MARK:
        return pop_values_to_mark(p);
    case TMK_OP_DUP:
        return dup_top_value(p);
    default:
        return tmk_pickle_refuse(p, op);
    }
}

static inline int run_instruction(struct tmk_pickle *p, enum tmk_pickle_op op, const uint8_t *at)
{
    switch (op) {
    case TMK_OP_NONE:
        return push_number_value(p, TMK_PICKLE_NONE, 0);
    case TMK_OP_BININT1:
        return push_number_value(p, TMK_PICKLE_INT, at[0]);
    case TMK_OP_BININT2:
        return push_number_value(p, TMK_PICKLE_INT, tmk_load_u16(at));
    case TMK_OP_BININT:
        return push_number_value(p, TMK_PICKLE_INT, (int32_t)tmk_load_u32(at));
    case TMK_OP_LONG1:
        return long_number(p, at[0]);
    case TMK_OP_SHORT_BINUNICODE:
    case TMK_OP_SHORT_BINSTRING:
        return push_text_value(p, at[0]);
    case TMK_OP_EMPTY_DICT:
        return empty_dict(p);
    case TMK_OP_EMPTY_LIST:
        return push_object(p, tmk_pickle_object_new(&p->memory, TMK_PICKLE_LIST));
    case TMK_OP_MARK:
        return push_mark(p);
    case TMK_OP_TUPLE1:
    case TMK_OP_TUPLE2:
    case TMK_OP_TUPLE3:
        return make_tuple(p, 1 + (uint64_t)(op - TMK_OP_TUPLE1));
    case TMK_OP_APPEND:
        return append_item(p);
    case TMK_OP_APPENDS:
        return append_items(p);
    case TMK_OP_SETITEM:
        return set_dict_item(p);
    case TMK_OP_SETITEMS:
        return set_items(p);
    case TMK_OP_BINGET:
        return get_memo(p, at[0]);
    case TMK_OP_LONG_BINGET:
        return get_memo(p, tmk_load_u32(at));
    case TMK_OP_BINPUT:
        return put_memo(p, at[0]);
    case TMK_OP_LONG_BINPUT:
        return put_memo(p, tmk_load_u32(at));
    case TMK_OP_MEMOIZE:
        return put_memo(p, p->memo.n);
    default:
        return run_rare_instruction(p, op, at);
    }
}

static int run_instructions(struct tmk_pickle *p)
{
    struct tmk_feed *f = p->feed;
    while (have_instruction(p)) {
        const uint8_t *at = f->at;
        enum tmk_pickle_op op = (enum tmk_pickle_op)at[0];
        if (op == TMK_OP_STOP)
            return 0;
        f->at = at + 1 + tmk_pickle_ops[op].argument;
        int rc = run_instruction(p, op, at + 1);
        if (rc < 0)
            return rc;
    }
    return tmk_pickle_fail_feed(p, tmk_feed_need(f, (size_t)(f->end - f->at) + 1));
}

/* Find what is referred to before anything is made. */
static int find_references(struct tmk_pickle *p, struct tmk_error *err)
{
    int rc = tmk_pickle_scan(p->feed, &p->memo);
    if (rc < 0)
        return tmk_fail(err, rc, "out of memory");
    return tmk_feed_rewind(p->feed, err);
}

int tmk_pickle_read(struct tmk_pickle *p, struct tmk_pickle_value *ret_root, struct tmk_error *err)
{
    p->err = err;
    int rc = p->is_careful ? find_references(p, err) : 0;
    if (rc < 0)
        return rc;
    if (tmk_feed_need(p->feed, 1) > 0 && p->feed->at[0] != TMK_OP_PROTO)
        return tmk_pickle_fail(p, TMK_EFORMAT, "this is not a pickle of protocol 2 to 5");
    rc = run_instructions(p);
    if (rc < 0)
        return rc;
    if (p->n != 1 || !top_value(p))
        return tmk_pickle_fail_nonsense(p);
    *ret_root = p->stack[0];
    return 0;
}

/* ---- the rest ---- */

int tmk_pickle_open(struct tmk_feed *feed, const struct tmk_pickle_visitor *visitor,
                    bool is_careful, struct tmk_pickle **ret_pickle)
{
    struct tmk_pickle *p = calloc(1, sizeof *p);
    if (!p)
        return TMK_ENOMEM;
    p->feed = feed;
    p->visitor = *visitor;
    p->is_careful = is_careful;
    if (!feed->no_limits)
        p->memory.feed = feed;
    *ret_pickle = p;
    return 0;
}

struct tmk_pickle *tmk_pickle_close(struct tmk_pickle *p)
{
    if (!p)
        return NULL;
    tmk_arena_fini(&p->memory.arena);
    tmk_pickle_memo_fini(&p->memo);
    free(p->stack);
    free(p->marks);
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
    tmk_pickle_memo_fold(&p->memo, list);
}
