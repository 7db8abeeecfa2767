/* SPDX-License-Identifier: MIT */
/* interop/weights/checkpoint_pickle.c - see checkpoint_pickle.h.
 *
 * The reader is a loop over instructions, with a stack and a memo. Both grow by at most one value
 * for a byte read; after every instruction the memory that values take in the arena is checked
 * against the bytes read. Names are made of texts that may be referred to from anywhere, so their
 * bytes count as work. */
#include "interop/weights/checkpoint_pickle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "interop/pickle/pickle_ops.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/language.h"

enum {
    /* For each byte read: long lists of numbers take 27 at most. */
    MEMORY_TIMES = 32,
    MEMORY_LEAST_BYTES = 64 << 20,
    /* The most that a text counts in limits: a longer one may lie in a hole of the file. */
    TEXT_COUNTED_BYTES = 4096,
    /* Indexes of shared values, after the one-byte numbers. */
    SHARED_FALSE = 256,
    SHARED_TRUE,
    SHARED_NONE,
    SHARED_OTHER,
    N_SHARED,
};

struct cell_machine {
    const uint8_t *start, *at, *end;
    struct tmk_arena *arena;
    struct tmk_checkpoint_value **stack;
    uint64_t n_stack, stack_room;
    struct tmk_checkpoint_value **memo;
    uint64_t n_memo, memo_room;
    struct tmk_checkpoint_value *none;
    struct tmk_checkpoint_value *shared[N_SHARED]; /* NULL: not used yet */
    struct tmk_checkpoint_limit *limit;
    uint64_t uncounted; /* bytes that do not raise the limit: skipped, or the end of a long text */
    int rc;             /* the first error */
    struct tmk_error *err;
};

static void fail_machine(struct cell_machine *m, int rc, const char *text)
{
    if (m->rc < 0)
        return;
    m->rc = tmk_fail(m->err, rc, "data.pkl: %s", _(text));
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

static void pay_for_bytes(struct cell_machine *m)
{
    uint64_t n = (uint64_t)(m->at - m->start);
    tmk_work_limit_pay(&m->limit->work, n > m->uncounted ? n - m->uncounted : 0);
}

static void check_machine_limit(struct cell_machine *m)
{
    pay_for_bytes(m);
    if (m->rc == 0)
        m->rc = tmk_checkpoint_limit_check(m->limit, m->err);
}

/* ---- bytes ---- */

static const uint8_t *take_machine_bytes(struct cell_machine *m, uint64_t n)
{
    if (m->rc < 0 || n > (uint64_t)(m->end - m->at)) {
        fail_machine(m, TMK_EDAMAGED, "it ends in the middle");
        return NULL;
    }
    const uint8_t *bytes = m->at;
    m->at += n;
    return bytes;
}

/* Take a number of `n` bytes, little endian. */
static uint64_t take_number_bytes(struct cell_machine *m, unsigned n)
{
    const uint8_t *bytes = take_machine_bytes(m, n);
    uint64_t value = 0;
    for (unsigned i = 0; bytes && i < n; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static const char *take_text(struct cell_machine *m, uint64_t n)
{
    const uint8_t *bytes = take_machine_bytes(m, n);
    char *text = bytes ? tmk_arena_text(m->arena, (const char *)bytes, (size_t)n) : NULL;
    if (bytes && !text)
        fail_machine(m, TMK_ENOMEM, "out of memory");
    if (n > TEXT_COUNTED_BYTES)
        m->uncounted += n - TEXT_COUNTED_BYTES;
    return text ? text : "";
}

static const char *take_pickle_line(struct cell_machine *m)
{
    const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!end) {
        fail_machine(m, TMK_EDAMAGED, "it ends in the middle");
        return "";
    }
    const char *text = take_text(m, (uint64_t)(end - m->at));
    m->at = end + 1;
    return text;
}

/* ---- values ---- */

static struct tmk_checkpoint_value *make_cell(struct cell_machine *m, enum tmk_checkpoint_kind kind)
{
    struct tmk_checkpoint_value *v = tmk_arena_take(m->arena, sizeof *v);
    if (!v) {
        fail_machine(m, TMK_ENOMEM, "out of memory");
        return m->none;
    }
    v->kind = kind;
    return v;
}

static void push_cell(struct cell_machine *m, struct tmk_checkpoint_value *v)
{
    if (TMK_GROW(m->stack, m->n_stack + 1, m->stack_room) < 0) {
        fail_machine(m, TMK_ENOMEM, "out of memory");
        return;
    }
    m->stack[m->n_stack++] = v;
}

static struct tmk_checkpoint_value *pop_cell(struct cell_machine *m)
{
    if (m->n_stack == 0 || m->stack[m->n_stack - 1]->kind == TMK_CHECKPOINT_MARK) {
        fail_machine(m, TMK_EDAMAGED, "it takes more than there is");
        return m->none;
    }
    return m->stack[--m->n_stack];
}

static struct tmk_checkpoint_value *top_cell(struct cell_machine *m)
{
    struct tmk_checkpoint_value *v = pop_cell(m);
    if (m->rc == 0)
        m->n_stack++;
    return v;
}

static void add_cell_item(struct cell_machine *m, struct tmk_checkpoint_value *to,
                          struct tmk_checkpoint_value *item)
{
    if (to->n == to->room) {
        uint64_t room = to->room ? 2 * to->room : 4;
        struct tmk_checkpoint_value **items =
            tmk_arena_take(m->arena, room * sizeof(struct tmk_checkpoint_value *));
        if (!items) {
            fail_machine(m, TMK_ENOMEM, "out of memory");
            return;
        }
        if (to->n > 0)
            memcpy(items, to->items, to->n * sizeof(struct tmk_checkpoint_value *));
        to->items = items;
        to->room = room;
    }
    to->items[to->n++] = item;
}

static void push_number_cell(struct cell_machine *m, enum tmk_checkpoint_kind kind, int64_t value)
{
    struct tmk_checkpoint_value *v = make_cell(m, kind);
    v->number = value;
    push_cell(m, v);
}

/* Push a value that nobody writes to, so that it is made only once: a one-byte number, or a
 * SHARED_. */
static void push_shared_cell(struct cell_machine *m, unsigned which)
{
    if (!m->shared[which]) {
        struct tmk_checkpoint_value *v = make_cell(m, which == SHARED_OTHER   ? TMK_CHECKPOINT_OTHER
                                                      : which == SHARED_NONE  ? TMK_CHECKPOINT_NONE
                                                      : which >= SHARED_FALSE ? TMK_CHECKPOINT_BOOL
                                                                              : TMK_CHECKPOINT_INT);
        v->number = which < SHARED_FALSE ? which : which == SHARED_TRUE;
        m->shared[which] = v;
    }
    push_cell(m, m->shared[which]);
}

static void push_text_cell(struct cell_machine *m, const char *text)
{
    struct tmk_checkpoint_value *v = make_cell(m, TMK_CHECKPOINT_TEXT);
    v->text = text;
    push_cell(m, v);
}

static void push_skipped_bytes(struct cell_machine *m, uint64_t n)
{
    if (take_machine_bytes(m, n))
        m->uncounted += n;
    push_shared_cell(m, SHARED_OTHER);
}

static void push_long_number(struct cell_machine *m, uint64_t n)
{
    if (n > 8) {
        push_skipped_bytes(m, n);
        return;
    }
    uint64_t value = take_number_bytes(m, (unsigned)n);
    if (n > 0 && n < 8 && value >> (8 * n - 1))
        value |= ~0ull << (8 * n);
    push_number_cell(m, TMK_CHECKPOINT_INT, (int64_t)value);
}

/* ---- marks, containers ---- */

/* The index of the last mark; all above it goes into something. */
static uint64_t find_mark(struct cell_machine *m)
{
    for (uint64_t i = m->n_stack; i > 0; i--)
        if (m->stack[i - 1]->kind == TMK_CHECKPOINT_MARK)
            return i - 1;
    fail_machine(m, TMK_EDAMAGED, "a mark is missing");
    return m->n_stack;
}

static void push_items_from(struct cell_machine *m, enum tmk_checkpoint_kind kind, uint64_t from)
{
    struct tmk_checkpoint_value *v = make_cell(m, kind);
    for (uint64_t i = from; i < m->n_stack && m->rc == 0; i++)
        add_cell_item(m, v, m->stack[i]);
    m->n_stack = from;
    push_cell(m, v);
}

static void push_marked_items(struct cell_machine *m, enum tmk_checkpoint_kind kind)
{
    uint64_t mark = find_mark(m);
    if (m->rc < 0)
        return;
    push_items_from(m, kind, mark + 1);
    if (m->rc == 0) {
        m->stack[mark] = m->stack[m->n_stack - 1];
        m->n_stack = mark + 1;
    }
}

static void push_tuple(struct cell_machine *m, uint64_t n)
{
    for (uint64_t i = 1; i <= n; i++)
        if (m->n_stack < i || m->stack[m->n_stack - i]->kind == TMK_CHECKPOINT_MARK) {
            fail_machine(m, TMK_EDAMAGED, "it takes more than there is");
            return;
        }
    push_items_from(m, TMK_CHECKPOINT_TUPLE, m->n_stack - n);
}

/* The container of items added to a call's object: they are kept beside its arguments. */
static struct tmk_checkpoint_value *container_of(struct cell_machine *m,
                                                 struct tmk_checkpoint_value *target)
{
    if (target->kind == TMK_CHECKPOINT_LIST || target->kind == TMK_CHECKPOINT_DICT)
        return target;
    if (target->kind != TMK_CHECKPOINT_CALL) {
        fail_machine(m, TMK_EDAMAGED, "it puts something into a value that holds none");
        return NULL;
    }
    if (!target->dict)
        target->dict = make_cell(m, TMK_CHECKPOINT_DICT);
    return target->dict == m->none ? NULL : target->dict;
}

/* Put everything from `from` on into the value below, and remove the mark between them. */
static void put_items_into(struct cell_machine *m, uint64_t from, uint64_t below, bool in_pairs)
{
    if (m->rc < 0)
        return;
    if (below == 0 || m->stack[below - 1]->kind == TMK_CHECKPOINT_MARK ||
        (in_pairs && (m->n_stack - from) % 2 != 0)) {
        fail_machine(m, TMK_EDAMAGED, "it puts something into nothing, or half a pair");
        return;
    }
    struct tmk_checkpoint_value *target = container_of(m, m->stack[below - 1]);
    if (target && (target->kind == TMK_CHECKPOINT_DICT) != in_pairs) {
        if (m->stack[below - 1]->kind == TMK_CHECKPOINT_CALL)
            target = NULL; /* a list of an unknown class */
        else
            fail_machine(m, TMK_EDAMAGED, "it puts pairs into a list, or values into a dict");
    }
    for (uint64_t i = from; target && i < m->n_stack && m->rc == 0; i++)
        add_cell_item(m, target, m->stack[i]);
    m->n_stack = below;
}

static void put_marked_items(struct cell_machine *m, bool in_pairs)
{
    uint64_t mark = find_mark(m);
    put_items_into(m, mark + 1, mark, in_pairs);
}

static void put_last_item(struct cell_machine *m, uint64_t n, bool in_pairs)
{
    if (m->n_stack < n + 1)
        fail_machine(m, TMK_EDAMAGED, "it takes more than there is");
    else
        put_items_into(m, m->n_stack - n, m->n_stack - n, in_pairs);
}

/* ---- the memo ---- */

static void memoize_top(struct cell_machine *m, uint64_t number)
{
    if (number > (uint64_t)(m->at - m->start) || m->n_stack == 0) {
        fail_machine(m, TMK_EDAMAGED, "the memo has a number that makes no sense");
        return;
    }
    if (TMK_GROW(m->memo, number + 1, m->memo_room) < 0) {
        fail_machine(m, TMK_ENOMEM, "out of memory");
        return;
    }
    for (; m->n_memo <= number; m->n_memo++)
        m->memo[m->n_memo] = NULL;
    m->memo[number] = top_cell(m);
}

static void push_memoized(struct cell_machine *m, uint64_t number)
{
    if (number >= m->n_memo || !m->memo[number])
        fail_machine(m, TMK_EDAMAGED, "it refers to what is not there");
    else
        push_cell(m, m->memo[number]);
}

/* ---- names and calls: kept, never made ---- */

static void push_name(struct cell_machine *m, const char *module, const char *name)
{
    struct tmk_checkpoint_value *v = make_cell(m, TMK_CHECKPOINT_NAME);
    pay_for_bytes(m);
    if (!tmk_work_take(&m->limit->work, strlen(module) + strlen(name))) {
        m->rc = tmk_work_fail(&m->limit->work, m->err);
        return;
    }
    v->text = tmk_arena_format(m->arena, "%s.%s", module, name);
    if (!v->text)
        fail_machine(m, TMK_ENOMEM, "out of memory");
    push_cell(m, v);
}

static void push_stack_name(struct cell_machine *m)
{
    const struct tmk_checkpoint_value *name = pop_cell(m), *module = pop_cell(m);
    if (m->rc == 0 && (name->kind != TMK_CHECKPOINT_TEXT || module->kind != TMK_CHECKPOINT_TEXT))
        fail_machine(m, TMK_EDAMAGED, "a name is no text");
    if (m->rc == 0)
        push_name(m, module->text, name->text);
}

static void push_call(struct cell_machine *m)
{
    struct tmk_checkpoint_value *arguments = pop_cell(m), *function = pop_cell(m),
                                *v = make_cell(m, TMK_CHECKPOINT_CALL);
    if (m->rc < 0)
        return;
    add_cell_item(m, v, function);
    add_cell_item(m, v, arguments);
    push_cell(m, v);
}

static void push_call_with_names(struct cell_machine *m)
{
    pop_cell(m); /* keyword arguments */
    push_call(m);
}

static void set_object_state(struct cell_machine *m)
{
    struct tmk_checkpoint_value *state = pop_cell(m), *target = top_cell(m);
    if (m->rc == 0 && target->kind == TMK_CHECKPOINT_CALL)
        add_cell_item(m, target, state);
}

static void push_persistent_id(struct cell_machine *m)
{
    struct tmk_checkpoint_value *what = pop_cell(m), *v = make_cell(m, TMK_CHECKPOINT_ID);
    if (m->rc < 0)
        return;
    add_cell_item(m, v, what);
    push_cell(m, v);
}

/* ---- the loop ---- */

/* Run an instruction that makes a value from bytes. Returns false when it is none of these. */
static bool run_plain_opcode(struct cell_machine *m, enum tmk_pickle_op op, uint64_t argument)
{
    switch (op) {
    case TMK_OP_NONE:
        push_shared_cell(m, SHARED_NONE);
        return true;
    case TMK_OP_NEWTRUE:
        push_shared_cell(m, SHARED_TRUE);
        return true;
    case TMK_OP_NEWFALSE:
        push_shared_cell(m, SHARED_FALSE);
        return true;
    case TMK_OP_BININT1:
        push_shared_cell(m, (uint8_t)argument);
        return true;
    case TMK_OP_BININT2:
        push_number_cell(m, TMK_CHECKPOINT_INT, (int64_t)argument);
        return true;
    case TMK_OP_BININT:
        push_number_cell(m, TMK_CHECKPOINT_INT, (int32_t)(uint32_t)argument);
        return true;
    case TMK_OP_LONG1:
    case TMK_OP_LONG4:
        push_long_number(m, argument);
        return true;
    case TMK_OP_BINFLOAT:
        push_shared_cell(m, SHARED_OTHER);
        return true;
    case TMK_OP_SHORT_BINUNICODE:
    case TMK_OP_BINUNICODE:
    case TMK_OP_BINUNICODE8:
    case TMK_OP_SHORT_BINSTRING:
    case TMK_OP_BINSTRING:
        push_text_cell(m, take_text(m, argument));
        return true;
    case TMK_OP_SHORT_BINBYTES:
    case TMK_OP_BINBYTES:
    case TMK_OP_BINBYTES8:
    case TMK_OP_BYTEARRAY8:
        push_skipped_bytes(m, argument);
        return true;
    default:
        return false;
    }
}

/* Run an instruction that makes or fills a container, likewise. A set is a list here. */
static bool run_container_opcode(struct cell_machine *m, enum tmk_pickle_op op)
{
    switch (op) {
    case TMK_OP_MARK:
        push_cell(m, make_cell(m, TMK_CHECKPOINT_MARK));
        return true;
    case TMK_OP_EMPTY_DICT:
        push_cell(m, make_cell(m, TMK_CHECKPOINT_DICT));
        return true;
    case TMK_OP_EMPTY_LIST:
    case TMK_OP_EMPTY_SET:
        push_cell(m, make_cell(m, TMK_CHECKPOINT_LIST));
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
        push_marked_items(m, TMK_CHECKPOINT_TUPLE);
        return true;
    case TMK_OP_LIST:
    case TMK_OP_FROZENSET:
        push_marked_items(m, TMK_CHECKPOINT_LIST);
        return true;
    case TMK_OP_DICT:
        push_marked_items(m, TMK_CHECKPOINT_DICT);
        return true;
    case TMK_OP_APPEND:
        put_last_item(m, 1, false);
        return true;
    case TMK_OP_SETITEM:
        put_last_item(m, 2, true);
        return true;
    case TMK_OP_APPENDS:
    case TMK_OP_ADDITEMS:
        put_marked_items(m, false);
        return true;
    case TMK_OP_SETITEMS:
        put_marked_items(m, true);
        return true;
    default:
        return false;
    }
}

static bool run_naming_opcode(struct cell_machine *m, enum tmk_pickle_op op)
{
    switch (op) {
    case TMK_OP_GLOBAL: {
        const char *module = take_pickle_line(m);
        push_name(m, module, take_pickle_line(m));
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
        set_object_state(m);
        return true;
    case TMK_OP_BINPERSID:
        push_persistent_id(m);
        return true;
    default:
        return false;
    }
}

static bool run_memo_opcode(struct cell_machine *m, enum tmk_pickle_op op, uint64_t argument)
{
    switch (op) {
    case TMK_OP_BINPUT:
    case TMK_OP_LONG_BINPUT:
        memoize_top(m, argument);
        return true;
    case TMK_OP_MEMOIZE:
        memoize_top(m, m->n_memo);
        return true;
    case TMK_OP_BINGET:
    case TMK_OP_LONG_BINGET:
        push_memoized(m, argument);
        return true;
    case TMK_OP_POP:
        pop_cell(m);
        return true;
    case TMK_OP_POP_MARK: {
        uint64_t mark = find_mark(m);
        if (m->rc == 0)
            m->n_stack = mark;
        return true;
    }
    case TMK_OP_DUP:
        push_cell(m, top_cell(m));
        return true;
    case TMK_OP_PROTO:
    case TMK_OP_FRAME:
        return true;
    default:
        return false;
    }
}

static void run_machine(struct cell_machine *m)
{
    while (m->rc == 0) {
        const uint8_t *at = take_machine_bytes(m, 1);
        if (!at || *at == TMK_OP_STOP)
            return;
        enum tmk_pickle_op op = (enum tmk_pickle_op) * at;
        uint64_t argument = take_number_bytes(m, tmk_pickle_ops[op].argument);
        if (m->rc == 0 && !run_memo_opcode(m, op, argument) && !run_plain_opcode(m, op, argument) &&
            !run_container_opcode(m, op) && !run_naming_opcode(m, op))
            fail_machine(m, TMK_EFORMAT, "it has an instruction that checkpoints do not use");
        check_machine_limit(m);
    }
}

int tmk_checkpoint_pickle_read(const uint8_t *pickle, size_t n, struct tmk_arena *arena,
                               struct tmk_checkpoint_limit *limit,
                               struct tmk_checkpoint_value **ret, struct tmk_error *err)
{
    struct tmk_checkpoint_value none = {.kind = TMK_CHECKPOINT_NONE};
    struct cell_machine m = {.start = pickle,
                             .at = pickle,
                             .end = pickle + n,
                             .arena = arena,
                             .none = &none,
                             .limit = limit,
                             .err = err};
    if (n < 2 || pickle[0] != TMK_OP_PROTO)
        fail_machine(&m, TMK_EFORMAT, "this is no pickle");
    run_machine(&m);
    pay_for_bytes(&m);
    struct tmk_checkpoint_value *root = pop_cell(&m);
    free(m.stack);
    free(m.memo);
    if (m.rc == 0)
        *ret = root;
    return m.rc;
}
