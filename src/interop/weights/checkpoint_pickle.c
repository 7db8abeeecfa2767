/* SPDX-License-Identifier: MIT */
/* interop/weights/checkpoint_pickle.c - see checkpoint_pickle.h.
 *
 * A loop over instructions, with a stack and a memo. Both grow by at most one value for a byte that
 * was read; what the values take in the arena is held against the bytes read after every
 * instruction. Names are made of texts that may be referred to from anywhere: their bytes count as
 * work. */
#include "interop/weights/checkpoint_pickle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "interop/pickle/pickle_ops.h"
#include "kit/amount.h"
#include "kit/grow.h"

enum {
    /* Memory for a byte that was read: long lists of numbers take 27 at most. */
    MEMORY_TIMES = 32,
    MEMORY_LEAST_BYTES = 64 << 20,
    /* What a text counts as in limits, at most: a longer one may lie in a hole of the file. */
    TEXT_COUNTED_BYTES = 4096,
    /* Places of values that are all alike, behind the numbers of one byte. */
    SHARED_FALSE = 256,
    SHARED_TRUE,
    SHARED_NONE,
    SHARED_OTHER,
    N_SHARED,
};

struct machine {
    const uint8_t *start, *at, *end;
    struct tmk_arena *arena;
    struct tmk_checkpoint_value **stack;
    uint64_t n_stack, stack_room;
    struct tmk_checkpoint_value **memo;
    uint64_t n_memo, memo_room;
    struct tmk_checkpoint_value *none;
    struct tmk_checkpoint_value *shared[N_SHARED]; /* NULL: not used yet */
    struct tmk_checkpoint_limit *limit;
    uint64_t uncounted; /* bytes that pay for nothing: skipped ones, and ends of long texts */
    int rc;             /* the first problem */
    struct tmk_error *err;
};

static void fail(struct machine *m, int rc, const char *text)
{
    if (m->rc < 0)
        return;
    m->rc = tmk_fail(m->err, rc, "data.pkl: %s", text);
    if (m->err)
        m->err->offset = (uint64_t)(m->at - m->start);
}

/* ---- limits ---- */

void tmk_checkpoint_limit_init(struct tmk_checkpoint_limit *l, const struct tmk_arena *arena,
                               uint64_t steps_per_byte, bool is_off)
{
    *l = (struct tmk_checkpoint_limit){.arena = arena, .arena_before = arena->n_bytes};
    tmk_work_limit_init(&l->work, steps_per_byte, is_off);
}

int tmk_checkpoint_limit_check(const struct tmk_checkpoint_limit *l, struct tmk_error *err)
{
    char limit[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES];
    uint64_t most = MEMORY_TIMES * l->work.bytes + MEMORY_LEAST_BYTES;
    if (l->work.used > l->work.most)
        return tmk_work_fail(&l->work, err);
    if (l->work.is_off || l->arena->n_bytes - l->arena_before <= most)
        return 0;
    return tmk_fail(err, TMK_EFULL,
                    "data.pkl: its values take more than %s of memory, the limit for the %s read "
                    "so far (docs/limits.md). --no-limits reads it, whatever memory and time that "
                    "takes",
                    tmk_size_text(most, limit), tmk_size_text(l->work.bytes, size));
}

static void pay(struct machine *m)
{
    uint64_t n = (uint64_t)(m->at - m->start);
    tmk_work_limit_pay(&m->limit->work, n > m->uncounted ? n - m->uncounted : 0);
}

static void check_limit(struct machine *m)
{
    pay(m);
    if (m->rc == 0)
        m->rc = tmk_checkpoint_limit_check(m->limit, m->err);
}

/* ---- bytes ---- */

static const uint8_t *take(struct machine *m, uint64_t n)
{
    if (m->rc < 0 || n > (uint64_t)(m->end - m->at)) {
        fail(m, TMK_EDAMAGED, "it ends in the middle");
        return NULL;
    }
    const uint8_t *bytes = m->at;
    m->at += n;
    return bytes;
}

/* A number of so many bytes, little endian. */
static uint64_t take_number(struct machine *m, unsigned n)
{
    const uint8_t *bytes = take(m, n);
    uint64_t value = 0;
    for (unsigned i = 0; bytes && i < n; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static const char *take_text(struct machine *m, uint64_t n)
{
    const uint8_t *bytes = take(m, n);
    char *text = bytes ? tmk_arena_text(m->arena, (const char *)bytes, (size_t)n) : NULL;
    if (bytes && !text)
        fail(m, TMK_ENOMEM, "out of memory");
    if (n > TEXT_COUNTED_BYTES)
        m->uncounted += n - TEXT_COUNTED_BYTES;
    return text ? text : "";
}

static const char *take_line(struct machine *m)
{
    const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!end) {
        fail(m, TMK_EDAMAGED, "it ends in the middle");
        return "";
    }
    const char *text = take_text(m, (uint64_t)(end - m->at));
    m->at = end + 1;
    return text;
}

/* ---- values ---- */

static struct tmk_checkpoint_value *make(struct machine *m, enum tmk_checkpoint_kind kind)
{
    struct tmk_checkpoint_value *v = tmk_arena_take(m->arena, sizeof *v);
    if (!v) {
        fail(m, TMK_ENOMEM, "out of memory");
        return m->none;
    }
    v->kind = kind;
    return v;
}

static void push(struct machine *m, struct tmk_checkpoint_value *v)
{
    if (TMK_GROW(m->stack, m->n_stack + 1, m->stack_room) < 0) {
        fail(m, TMK_ENOMEM, "out of memory");
        return;
    }
    m->stack[m->n_stack++] = v;
}

static struct tmk_checkpoint_value *pop(struct machine *m)
{
    if (m->n_stack == 0 || m->stack[m->n_stack - 1]->kind == TMK_CHECKPOINT_MARK) {
        fail(m, TMK_EDAMAGED, "it takes more than there is");
        return m->none;
    }
    return m->stack[--m->n_stack];
}

static struct tmk_checkpoint_value *top(struct machine *m)
{
    struct tmk_checkpoint_value *v = pop(m);
    if (m->rc == 0)
        m->n_stack++;
    return v;
}

static void add_item(struct machine *m, struct tmk_checkpoint_value *to,
                     struct tmk_checkpoint_value *item)
{
    if (to->n == to->room) {
        uint64_t room = to->room ? 2 * to->room : 4;
        struct tmk_checkpoint_value **items =
            tmk_arena_take(m->arena, room * sizeof(struct tmk_checkpoint_value *));
        if (!items) {
            fail(m, TMK_ENOMEM, "out of memory");
            return;
        }
        if (to->n > 0)
            memcpy(items, to->items, to->n * sizeof(struct tmk_checkpoint_value *));
        to->items = items;
        to->room = room;
    }
    to->items[to->n++] = item;
}

static void push_number(struct machine *m, enum tmk_checkpoint_kind kind, int64_t value)
{
    struct tmk_checkpoint_value *v = make(m, kind);
    v->number = value;
    push(m, v);
}

/* Nobody writes to such a value, so that it is made once: a number of one byte, or a SHARED_. */
static void push_shared(struct machine *m, unsigned which)
{
    if (!m->shared[which]) {
        struct tmk_checkpoint_value *v = make(m, which == SHARED_OTHER   ? TMK_CHECKPOINT_OTHER
                                                 : which == SHARED_NONE  ? TMK_CHECKPOINT_NONE
                                                 : which >= SHARED_FALSE ? TMK_CHECKPOINT_BOOL
                                                                         : TMK_CHECKPOINT_INT);
        v->number = which < SHARED_FALSE ? which : which == SHARED_TRUE;
        m->shared[which] = v;
    }
    push(m, m->shared[which]);
}

static void push_text(struct machine *m, const char *text)
{
    struct tmk_checkpoint_value *v = make(m, TMK_CHECKPOINT_TEXT);
    v->text = text;
    push(m, v);
}

static void push_skipped(struct machine *m, uint64_t n)
{
    if (take(m, n))
        m->uncounted += n;
    push_shared(m, SHARED_OTHER);
}

static void push_long(struct machine *m, uint64_t n)
{
    if (n > 8) {
        push_skipped(m, n);
        return;
    }
    uint64_t value = take_number(m, (unsigned)n);
    if (n > 0 && n < 8 && value >> (8 * n - 1))
        value |= ~0ull << (8 * n);
    push_number(m, TMK_CHECKPOINT_INT, (int64_t)value);
}

/* ---- marks, containers ---- */

/* Place of the last mark, on which all that is above goes into something. */
static uint64_t find_mark(struct machine *m)
{
    for (uint64_t i = m->n_stack; i > 0; i--)
        if (m->stack[i - 1]->kind == TMK_CHECKPOINT_MARK)
            return i - 1;
    fail(m, TMK_EDAMAGED, "a mark is missing");
    return m->n_stack;
}

static void push_from(struct machine *m, enum tmk_checkpoint_kind kind, uint64_t from)
{
    struct tmk_checkpoint_value *v = make(m, kind);
    for (uint64_t i = from; i < m->n_stack && m->rc == 0; i++)
        add_item(m, v, m->stack[i]);
    m->n_stack = from;
    push(m, v);
}

static void push_marked(struct machine *m, enum tmk_checkpoint_kind kind)
{
    uint64_t mark = find_mark(m);
    if (m->rc < 0)
        return;
    push_from(m, kind, mark + 1);
    if (m->rc == 0) {
        m->stack[mark] = m->stack[m->n_stack - 1];
        m->n_stack = mark + 1;
    }
}

static void push_tuple(struct machine *m, uint64_t n)
{
    for (uint64_t i = 1; i <= n; i++)
        if (m->n_stack < i || m->stack[m->n_stack - i]->kind == TMK_CHECKPOINT_MARK) {
            fail(m, TMK_EDAMAGED, "it takes more than there is");
            return;
        }
    push_from(m, TMK_CHECKPOINT_TUPLE, m->n_stack - n);
}

/* What is put into an object that a call made is kept beside its arguments. */
static struct tmk_checkpoint_value *container_of(struct machine *m,
                                                 struct tmk_checkpoint_value *target)
{
    if (target->kind == TMK_CHECKPOINT_LIST || target->kind == TMK_CHECKPOINT_DICT)
        return target;
    if (target->kind != TMK_CHECKPOINT_CALL) {
        fail(m, TMK_EDAMAGED, "it puts something into a value that holds none");
        return NULL;
    }
    if (!target->dict)
        target->dict = make(m, TMK_CHECKPOINT_DICT);
    return target->dict == m->none ? NULL : target->dict;
}

/* Everything from `from` on goes into what is below, and a mark there with it. */
static void put_into(struct machine *m, uint64_t from, uint64_t below, bool in_pairs)
{
    if (m->rc < 0)
        return;
    if (below == 0 || m->stack[below - 1]->kind == TMK_CHECKPOINT_MARK ||
        (in_pairs && (m->n_stack - from) % 2 != 0)) {
        fail(m, TMK_EDAMAGED, "it puts something into nothing, or half a pair");
        return;
    }
    struct tmk_checkpoint_value *target = container_of(m, m->stack[below - 1]);
    if (target && (target->kind == TMK_CHECKPOINT_DICT) != in_pairs) {
        if (m->stack[below - 1]->kind == TMK_CHECKPOINT_CALL)
            target = NULL; /* a list of a class that nobody knows */
        else
            fail(m, TMK_EDAMAGED, "it puts pairs into a list, or values into a dict");
    }
    for (uint64_t i = from; target && i < m->n_stack && m->rc == 0; i++)
        add_item(m, target, m->stack[i]);
    m->n_stack = below;
}

static void put_marked(struct machine *m, bool in_pairs)
{
    uint64_t mark = find_mark(m);
    put_into(m, mark + 1, mark, in_pairs);
}

static void put_last(struct machine *m, uint64_t n, bool in_pairs)
{
    if (m->n_stack < n + 1)
        fail(m, TMK_EDAMAGED, "it takes more than there is");
    else
        put_into(m, m->n_stack - n, m->n_stack - n, in_pairs);
}

/* ---- the memo ---- */

static void remember(struct machine *m, uint64_t number)
{
    if (number > (uint64_t)(m->at - m->start) || m->n_stack == 0) {
        fail(m, TMK_EDAMAGED, "the memo has a number that makes no sense");
        return;
    }
    if (TMK_GROW(m->memo, number + 1, m->memo_room) < 0) {
        fail(m, TMK_ENOMEM, "out of memory");
        return;
    }
    for (; m->n_memo <= number; m->n_memo++)
        m->memo[m->n_memo] = NULL;
    m->memo[number] = top(m);
}

static void recall(struct machine *m, uint64_t number)
{
    if (number >= m->n_memo || !m->memo[number])
        fail(m, TMK_EDAMAGED, "it refers to what is not there");
    else
        push(m, m->memo[number]);
}

/* ---- names and calls: kept, never made ---- */

static void push_name(struct machine *m, const char *module, const char *name)
{
    struct tmk_checkpoint_value *v = make(m, TMK_CHECKPOINT_NAME);
    pay(m);
    if (!tmk_work_take(&m->limit->work, strlen(module) + strlen(name))) {
        m->rc = tmk_work_fail(&m->limit->work, m->err);
        return;
    }
    v->text = tmk_arena_format(m->arena, "%s.%s", module, name);
    if (!v->text)
        fail(m, TMK_ENOMEM, "out of memory");
    push(m, v);
}

static void push_stack_name(struct machine *m)
{
    const struct tmk_checkpoint_value *name = pop(m), *module = pop(m);
    if (m->rc == 0 && (name->kind != TMK_CHECKPOINT_TEXT || module->kind != TMK_CHECKPOINT_TEXT))
        fail(m, TMK_EDAMAGED, "a name is no text");
    if (m->rc == 0)
        push_name(m, module->text, name->text);
}

static void push_call(struct machine *m)
{
    struct tmk_checkpoint_value *arguments = pop(m), *function = pop(m),
                                *v = make(m, TMK_CHECKPOINT_CALL);
    if (m->rc < 0)
        return;
    add_item(m, v, function);
    add_item(m, v, arguments);
    push(m, v);
}

static void push_call_with_names(struct machine *m)
{
    pop(m); /* arguments by name */
    push_call(m);
}

static void set_state(struct machine *m)
{
    struct tmk_checkpoint_value *state = pop(m), *target = top(m);
    if (m->rc == 0 && target->kind == TMK_CHECKPOINT_CALL)
        add_item(m, target, state);
}

static void push_id(struct machine *m)
{
    struct tmk_checkpoint_value *what = pop(m), *v = make(m, TMK_CHECKPOINT_ID);
    if (m->rc < 0)
        return;
    add_item(m, v, what);
    push(m, v);
}

/* ---- the loop ---- */

/* Instructions that make a value out of bytes; false: it is none of them. */
static bool run_plain(struct machine *m, enum tmk_pickle_op op, uint64_t argument)
{
    switch (op) {
    case TMK_OP_NONE:
        push_shared(m, SHARED_NONE);
        return true;
    case TMK_OP_NEWTRUE:
        push_shared(m, SHARED_TRUE);
        return true;
    case TMK_OP_NEWFALSE:
        push_shared(m, SHARED_FALSE);
        return true;
    case TMK_OP_BININT1:
        push_shared(m, (uint8_t)argument);
        return true;
    case TMK_OP_BININT2:
        push_number(m, TMK_CHECKPOINT_INT, (int64_t)argument);
        return true;
    case TMK_OP_BININT:
        push_number(m, TMK_CHECKPOINT_INT, (int32_t)(uint32_t)argument);
        return true;
    case TMK_OP_LONG1:
    case TMK_OP_LONG4:
        push_long(m, argument);
        return true;
    case TMK_OP_BINFLOAT:
        push_shared(m, SHARED_OTHER);
        return true;
    case TMK_OP_SHORT_BINUNICODE:
    case TMK_OP_BINUNICODE:
    case TMK_OP_BINUNICODE8:
    case TMK_OP_SHORT_BINSTRING:
    case TMK_OP_BINSTRING:
        push_text(m, take_text(m, argument));
        return true;
    case TMK_OP_SHORT_BINBYTES:
    case TMK_OP_BINBYTES:
    case TMK_OP_BINBYTES8:
    case TMK_OP_BYTEARRAY8:
        push_skipped(m, argument);
        return true;
    default:
        return false;
    }
}

/* Those that make or fill a container. A set is a list here. */
static bool run_container(struct machine *m, enum tmk_pickle_op op)
{
    switch (op) {
    case TMK_OP_MARK:
        push(m, make(m, TMK_CHECKPOINT_MARK));
        return true;
    case TMK_OP_EMPTY_DICT:
        push(m, make(m, TMK_CHECKPOINT_DICT));
        return true;
    case TMK_OP_EMPTY_LIST:
    case TMK_OP_EMPTY_SET:
        push(m, make(m, TMK_CHECKPOINT_LIST));
        return true;
    case TMK_OP_EMPTY_TUPLE:
        push_tuple(m, 0);
        return true;
    case TMK_OP_TUPLE1:
    case TMK_OP_TUPLE2:
    case TMK_OP_TUPLE3:
        push_tuple(m, 1 + (uint64_t)(op - TMK_OP_TUPLE1));
        return true;
    case TMK_OP_TUPLE:
        push_marked(m, TMK_CHECKPOINT_TUPLE);
        return true;
    case TMK_OP_LIST:
    case TMK_OP_FROZENSET:
        push_marked(m, TMK_CHECKPOINT_LIST);
        return true;
    case TMK_OP_DICT:
        push_marked(m, TMK_CHECKPOINT_DICT);
        return true;
    case TMK_OP_APPEND:
        put_last(m, 1, false);
        return true;
    case TMK_OP_SETITEM:
        put_last(m, 2, true);
        return true;
    case TMK_OP_APPENDS:
    case TMK_OP_ADDITEMS:
        put_marked(m, false);
        return true;
    case TMK_OP_SETITEMS:
        put_marked(m, true);
        return true;
    default:
        return false;
    }
}

static bool run_name(struct machine *m, enum tmk_pickle_op op)
{
    switch (op) {
    case TMK_OP_GLOBAL: {
        const char *module = take_line(m);
        push_name(m, module, take_line(m));
        return true;
    }
    case TMK_OP_STACK_GLOBAL:
        push_stack_name(m);
        return true;
    case TMK_OP_REDUCE:
    case TMK_OP_NEWOBJ:
        push_call(m);
        return true;
    case TMK_OP_NEWOBJ_EX:
        push_call_with_names(m);
        return true;
    case TMK_OP_BUILD:
        set_state(m);
        return true;
    case TMK_OP_BINPERSID:
        push_id(m);
        return true;
    default:
        return false;
    }
}

static bool run_memo(struct machine *m, enum tmk_pickle_op op, uint64_t argument)
{
    switch (op) {
    case TMK_OP_BINPUT:
    case TMK_OP_LONG_BINPUT:
        remember(m, argument);
        return true;
    case TMK_OP_MEMOIZE:
        remember(m, m->n_memo);
        return true;
    case TMK_OP_BINGET:
    case TMK_OP_LONG_BINGET:
        recall(m, argument);
        return true;
    case TMK_OP_POP:
        pop(m);
        return true;
    case TMK_OP_POP_MARK: {
        uint64_t mark = find_mark(m);
        if (m->rc == 0)
            m->n_stack = mark;
        return true;
    }
    case TMK_OP_DUP:
        push(m, top(m));
        return true;
    case TMK_OP_PROTO:
    case TMK_OP_FRAME:
        return true;
    default:
        return false;
    }
}

static void run(struct machine *m)
{
    while (m->rc == 0) {
        const uint8_t *at = take(m, 1);
        if (!at || *at == TMK_OP_STOP)
            return;
        enum tmk_pickle_op op = (enum tmk_pickle_op) * at;
        uint64_t argument = take_number(m, tmk_pickle_ops[op].argument);
        if (m->rc == 0 && !run_memo(m, op, argument) && !run_plain(m, op, argument) &&
            !run_container(m, op) && !run_name(m, op))
            fail(m, TMK_EFORMAT, "it has an instruction that checkpoints do not use");
        check_limit(m);
    }
}

int tmk_checkpoint_pickle_read(const uint8_t *pickle, size_t n, struct tmk_arena *arena,
                               struct tmk_checkpoint_limit *limit,
                               struct tmk_checkpoint_value **ret, struct tmk_error *err)
{
    struct tmk_checkpoint_value none = {.kind = TMK_CHECKPOINT_NONE};
    struct machine m = {.start = pickle,
                        .at = pickle,
                        .end = pickle + n,
                        .arena = arena,
                        .none = &none,
                        .limit = limit,
                        .err = err};
    if (n < 2 || pickle[0] != TMK_OP_PROTO)
        fail(&m, TMK_EFORMAT, "this is no pickle");
    run(&m);
    pay(&m);
    struct tmk_checkpoint_value *root = pop(&m);
    free(m.stack);
    free(m.memo);
    if (m.rc == 0)
        *ret = root;
    return m.rc;
}
