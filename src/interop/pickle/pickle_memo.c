/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_memo.c - see pickle_memo.h. */
#include "interop/pickle/pickle_memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "interop/pickle/feed.h"
#include "interop/pickle/pickle_ops.h"
#include "interop/pickle/pickle_value.h"
#include "kit/grow.h"

/* ---- looking ahead ---- */

static void want_memo(struct tmk_pickle_memo *m, uint64_t i)
{
    if (i < m->n_wanted)
        m->wanted[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Numbers are dense: each new one follows the last. */
static int note_memo_put(struct tmk_pickle_memo *m, uint64_t i)
{
    if (i != m->n_wanted)
        return 0;
    uint64_t room = m->wanted_room;
    if (TMK_GROW(m->wanted, i / 64 + 1, m->wanted_room) < 0)
        return TMK_ENOMEM;
    memset(m->wanted + room, 0, (size_t)(m->wanted_room - room) * sizeof *m->wanted);
    m->n_wanted++;
    return 0;
}

static uint64_t argument_of(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

/* Scan an instruction that is not simple. Returns 1; 0: stop there; or TMK_ENOMEM. */
static int scan_instruction(struct tmk_feed *f, struct tmk_pickle_memo *m,
                            const struct tmk_pickle_instruction *op, uint64_t argument)
{
    switch (op->form) {
    case TMK_PICKLE_GETS:
        want_memo(m, argument);
        return 1;
    case TMK_PICKLE_PUTS:
        return note_memo_put(m, op->argument ? argument : m->n_wanted) < 0 ? TMK_ENOMEM : 1;
    case TMK_PICKLE_COUNTED:
        return tmk_feed_skip(f, argument) > 0;
    default:
        return op->form == TMK_PICKLE_PLAIN;
    }
}

int tmk_pickle_scan(struct tmk_feed *f, struct tmk_pickle_memo *m)
{
    int rc = note_memo_put(m, 0); /* so that the bits exist, even if nothing is ever put */
    m->n_wanted = 0;
    while (rc >= 0 && tmk_feed_need(f, TMK_OP_MAX_BYTES) >= 0 && f->end > f->at) {
        const struct tmk_pickle_instruction *op = &tmk_pickle_ops[f->at[0]];
        if (f->end - f->at <= op->argument)
            return 0;
        uint64_t argument = argument_of(f->at + 1, op->argument);
        f->at += 1 + op->argument;
        rc = op->form == TMK_PICKLE_PLAIN ? 1 : scan_instruction(f, m, op, argument);
        if (rc == 0)
            return 0;
    }
    return rc < 0 ? rc : 0;
}

/* ---- words ---- */

static struct tmk_pickle_object *object_at(const struct tmk_pickle_memo *m, uint64_t i)
{
    return m->words[i] & TMK_MEMO_BITS ? NULL : (struct tmk_pickle_object *)(uintptr_t)m->words[i];
}

/* Take one more reference to a value, as an object. */
static struct tmk_pickle_object *keep_value(struct tmk_pickle_memory *memory,
                                            const struct tmk_pickle_value *v)
{
    if (tmk_pickle_is_object(v)) {
        v->object->n_refs++;
        return v->object;
    }
    struct tmk_pickle_object *box = tmk_pickle_object_new(memory, TMK_PICKLE_MARK);
    if (!box || !tmk_pickle_object_reserve(memory, box, 1))
        return NULL;
    box->n = 1;
    box->items[0] = *v;
    return box;
}

static bool is_memo_wanted(const struct tmk_pickle_memo *m, uint64_t i)
{
    return !m->wanted || (i < m->n_wanted && m->wanted[i / 64] >> (i % 64) & 1);
}

int tmk_pickle_memo_put(struct tmk_pickle_memo *m, struct tmk_pickle_memory *memory, uint64_t i,
                        const struct tmk_pickle_value *v)
{
    if (TMK_GROW(m->words, i + 1, m->room) < 0)
        return TMK_ENOMEM;
    if (i == m->n)
        m->words[m->n++] = 0;
    if (!is_memo_wanted(m, i))
        return 0;
    struct tmk_pickle_object *kept = keep_value(memory, v), *old = object_at(m, i);
    if (!kept)
        return TMK_ENOMEM;
    kept->memo = i + 1;
    m->words[i] = (uintptr_t)kept;
    if (old && --old->n_refs == 0)
        tmk_pickle_object_free(memory, old);
    return 0;
}

int tmk_pickle_memo_get(struct tmk_pickle_memo *m, struct tmk_pickle_memory *memory, uint64_t i,
                        struct tmk_pickle_value *ret)
{
    uint64_t word = m->words[i];
    struct tmk_pickle_object *o = object_at(m, i);
    if (o) {
        *ret = o->kind == TMK_PICKLE_MARK
                   ? o->items[0]
                   : (struct tmk_pickle_value){.kind = (enum tmk_pickle_kind)o->kind, .object = o};
        o->n_refs += o->kind != TMK_PICKLE_MARK;
        return 0;
    }
    if ((word & TMK_MEMO_BITS) == TMK_MEMO_GONE)
        return TMK_EAGAIN;
    if ((word & TMK_MEMO_BITS) != TMK_MEMO_FOLDED)
        return TMK_EDAMAGED;
    o = tmk_pickle_object_new(memory, TMK_PICKLE_LIST);
    if (!o)
        return TMK_ENOMEM;
    o->is_folded = 1;
    o->tag = (uint32_t)(word >> 4);
    *ret = (struct tmk_pickle_value){.kind = TMK_PICKLE_LIST, .object = o};
    return 0;
}

/* Give up an object that only the memo and one other value refer to. */
static void give_up_object(struct tmk_pickle_memo *m, struct tmk_pickle_object *o)
{
    if (o->memo == 0 || o->n_refs != 2 || m->words[o->memo - 1] != (uintptr_t)o)
        return;
    m->words[o->memo - 1] = TMK_MEMO_GONE;
    o->memo = 0;
    o->n_refs = 1;
}

void tmk_pickle_memo_forget(struct tmk_pickle_memo *m, struct tmk_pickle_object *item)
{
    give_up_object(m, item);
    if (item->n_refs > 1)
        return;
    for (uint32_t i = 0; i < item->n; i++) {
        const struct tmk_pickle_value *v = &item->items[i];
        if (tmk_pickle_is_object(v) && v->kind != TMK_PICKLE_TEXT)
            give_up_object(m, v->object);
    }
}

void tmk_pickle_memo_fold(struct tmk_pickle_memo *m, struct tmk_pickle_object *list)
{
    if (list->memo == 0 || m->words[list->memo - 1] != (uintptr_t)list || list->n_refs < 2)
        return;
    m->words[list->memo - 1] = (uint64_t)list->tag << 4 | TMK_MEMO_FOLDED;
    list->memo = 0;
    list->n_refs--;
}

void tmk_pickle_memo_fini(struct tmk_pickle_memo *m)
{
    free(m->words);
    free(m->wanted);
    *m = (struct tmk_pickle_memo){0};
}
