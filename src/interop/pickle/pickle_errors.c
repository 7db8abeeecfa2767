/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle_errors.c - error texts for pickles that cannot be read; see
 * pickle_machine.h. */
#include <stdio.h>

#include "base/error.h"
#include "interop/pickle/feed.h"
#include "interop/pickle/pickle_machine.h"
#include "interop/pickle/pickle_ops.h"
#include "interop/pickle/pickle_value.h"
#include "kit/amount.h"

int tmk_pickle_fail(struct tmk_pickle *p, int rc, const char *text)
{
    tmk_fail(p->err, rc, "%s", text);
    if (p->err)
        p->err->offset = tmk_feed_offset(p->feed);
    return rc;
}

int tmk_pickle_fail_memory(struct tmk_pickle *p)
{
    char limit[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES], text[200];
    if (p->memory.is_over) {
        snprintf(text, sizeof text,
                 "its values take more than %s of memory, the limit for the %s read so far "
                 "(docs/limits.md). --no-limits reads it, whatever memory and time that takes",
                 tmk_size_text(p->memory.most_bytes, limit),
                 tmk_size_text(tmk_feed_counted_bytes(p->feed), size));
        return tmk_pickle_fail(p, TMK_EFULL, text);
    }
    return tmk_pickle_fail(p, TMK_ENOMEM, "out of memory");
}

int tmk_pickle_fail_nonsense(struct tmk_pickle *p)
{
    return tmk_pickle_fail(p, TMK_EDAMAGED, "the pickle makes no sense here: it is damaged");
}

int tmk_pickle_fail_feed(struct tmk_pickle *p, int rc)
{
    if (rc == 0)
        return tmk_pickle_fail(p, TMK_EDAMAGED, "the file ends in the middle: it was cut");
    return tmk_pickle_fail(p, rc, p->feed->error.text);
}

/* ---- what is rejected ---- */

/* Copy a name for people: printable ASCII, truncated. */
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
    return tmk_pickle_fail(p, TMK_EFORMAT, why);
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

int tmk_pickle_refuse(struct tmk_pickle *p, enum tmk_pickle_op op)
{
    switch (op) {
    case TMK_OP_GLOBAL:
    case TMK_OP_INST:
        return refuse_global(p);
    case TMK_OP_STACK_GLOBAL:
        return refuse_stack_global(p);
    case TMK_OP_REDUCE:
    case TMK_OP_BUILD:
    case TMK_OP_OBJ:
    case TMK_OP_NEWOBJ:
    case TMK_OP_NEWOBJ_EX:
        return tmk_pickle_fail(p, TMK_EFORMAT, "this file wants code run; nothing was run");
    case TMK_OP_EXT1:
    case TMK_OP_EXT2:
    case TMK_OP_EXT4:
        return tmk_pickle_fail(
            p, TMK_EFORMAT,
            "refers to a registered extension: this file wants code run; nothing was run");
    case TMK_OP_PERSID:
    case TMK_OP_BINPERSID:
    case TMK_OP_NEXT_BUFFER:
    case TMK_OP_READONLY_BUFFER:
        return tmk_pickle_fail(p, TMK_EFORMAT,
                               "it refers to data outside of the file: not a torch snapshot");
    case TMK_OP_EMPTY_SET:
    case TMK_OP_ADDITEMS:
    case TMK_OP_FROZENSET:
        return tmk_pickle_fail(p, TMK_EFORMAT, "it has a set: not a torch snapshot");
    case TMK_OP_INT:
    case TMK_OP_LONG:
    case TMK_OP_FLOAT:
    case TMK_OP_STRING:
    case TMK_OP_UNICODE:
    case TMK_OP_GET:
    case TMK_OP_PUT:
        return tmk_pickle_fail(
            p, TMK_EFORMAT,
            "a pickle of protocol 0 or 1, which is not read; in Python, pickle.dump(snapshot, "
            "file, protocol=4) writes one that is");
    default:
        return tmk_pickle_fail(p, TMK_EDAMAGED, "it has a byte that is no pickle instruction");
    }
}
