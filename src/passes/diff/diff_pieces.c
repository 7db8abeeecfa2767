/* SPDX-License-Identifier: MIT */
/* passes/diff/diff_pieces.c - see diff_pieces.h. */
#include "passes/diff/diff_pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/grow.h"
#include "model/owners.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "tidemark/tidemark.h"
#include "trace/reader.h"
#include "trace/state.h"

/* The number of a text, which is kept; UINT32_MAX without memory. */
static uint32_t number_of_text(struct tmk_pieces *l, const char *text)
{
    uint32_t number;
    if (tmk_textmap_find(&l->texts, text, &number))
        return number;
    const char *kept = text ? tmk_arena_text(&l->memory, text, strlen(text)) : NULL;
    bool failed = (text && !kept) || tmk_textmap_put(&l->texts, kept, &number) < 0;
    return failed ? UINT32_MAX : number;
}

const char *tmk_name_pattern(struct tmk_arena *memory, const char *name)
{
    char *pattern = tmk_arena_text(memory, name, strlen(name)), *to = pattern;
    for (const char *at = name; pattern && *at;) {
        size_t n = strcspn(at, ".");
        bool is_number = n > 0 && strspn(at, "0123456789") == n && at != name;
        to = is_number ? stpcpy(to, "*") : mempcpy(to, at, n);
        at += n;
        if (*at)
            *to++ = *at++;
    }
    if (pattern)
        *to = '\0';
    return pattern;
}

/* The number of a name's pattern: layers of the same kind are one thing. */
static uint32_t number_of_pattern(struct tmk_pieces *l, const char *name)
{
    const char *pattern = name ? tmk_name_pattern(&l->memory, name) : NULL;
    return name && !pattern ? UINT32_MAX : number_of_text(l, pattern);
}

/* True for blocks that their name identifies, wherever they were made. */
static bool goes_by_name(const struct tmk_block *b, uint8_t category)
{
    return b->name && (category == TIDEMARK_PARAMETER || category == TIDEMARK_BUFFER ||
                       category == TIDEMARK_GRADIENT || category == TIDEMARK_OPTIMIZER_STATE);
}

/* The bytes of a name without its last `n` parts. */
static size_t length_without_last(const char *name, unsigned n)
{
    size_t bytes = strlen(name);
    for (; n > 0; n--) {
        const char *dot = memrchr(name, '.', bytes);
        if (!dot || dot == name)
            break;
        bytes = (size_t)(dot - name);
    }
    return bytes;
}

/* The meaning of a name, as numbers of texts + 1; all 0: not looked at yet. */
struct meaning {
    uint32_t identity, owner, parameter;
};

enum { N_NAME_KINDS = 2 }; /* optimizer state, others */

/* The state for describing the blocks of one side. */
struct teller {
    const struct tmk_labels *labels;
    struct tmk_align *align;
    struct meaning *names; /* by string id and kind */
    uint32_t n_names;
    struct tmk_group *modules;
    struct tmk_textmap module_keys; /* as in the trace */
    struct meaning *module_meanings;
    uint64_t module_room;
};

static uint32_t number_of_part(struct tmk_pieces *l, const char *name, unsigned n_less)
{
    const char *part =
        name ? tmk_arena_text(&l->memory, name, length_without_last(name, n_less)) : NULL;
    return name && !part ? UINT32_MAX : number_of_text(l, part);
}

static bool ends_in_grad(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    return n > 5 && strcmp(name + n - 5, ".grad") == 0;
}

/* The meaning of a name: "layers.0.fc.weight" belongs to module layers.0.fc, and so do
 * "layers.0.fc.weight.exp_avg" and "layers.0.fc.weight.grad". */
static const struct meaning *meaning_of(struct tmk_pieces *l, struct teller *t, uint32_t name,
                                        bool is_state)
{
    struct meaning *m = &t->names[(size_t)name * N_NAME_KINDS + is_state];
    if (m->identity == 0) {
        const char *text = tmk_align_name(t->align, tmk_reader_string(t->labels->p->reader, name));
        m->identity = number_of_pattern(l, text) + 1;
        m->owner = number_of_part(l, text, is_state || ends_in_grad(text) ? 2 : 1) + 1;
        m->parameter = is_state ? number_of_part(l, text, 1) + 1 : 0;
    }
    return m;
}

/* The meaning of the block's module; NULL without memory. */
static const struct meaning *module_meaning(struct tmk_pieces *l, struct teller *t,
                                            const struct tmk_block *b)
{
    const char *key = tmk_group_key(t->modules, b);
    uint64_t n = t->module_keys.n;
    uint32_t number;
    if (tmk_textmap_put(&t->module_keys, key, &number) < 0)
        return NULL;
    if (number == n) {
        if (TMK_GROW(t->module_meanings, n + 1, t->module_room) < 0)
            return NULL;
        const char *name = tmk_align_name(t->align, key);
        t->module_meanings[number] = (struct meaning){.identity = number_of_pattern(l, name) + 1,
                                                      .owner = number_of_text(l, name) + 1};
    }
    return &t->module_meanings[number];
}

static int add_peak_piece(struct tmk_pieces *l, struct teller *t, enum tmk_side side,
                          const struct tmk_block *b)
{
    if (TMK_GROW(l->items, l->n + 1, l->room) < 0)
        return TMK_ENOMEM;
    struct tmk_piece piece = {.category = tmk_block_category(t->labels->p, t->labels->contexts, b),
                              .side = (uint8_t)side,
                              .size_bytes = b->size_bytes,
                              .own_stack = b->stack};
    bool is_named = goes_by_name(b, piece.category) && b->name < t->n_names;
    const struct meaning *m =
        is_named ? meaning_of(l, t, b->name, piece.category == TIDEMARK_OPTIMIZER_STATE)
                 : module_meaning(l, t, b);
    if (!m || m->identity == 0 || m->owner == 0)
        return TMK_ENOMEM;
    piece.identity = m->identity - 1;
    piece.owner = m->owner - 1;
    piece.parameter = m->parameter;
    piece.stack = is_named ? 0 : tmk_align_stack(t->align, side, b->stack);
    l->items[l->n++] = piece;
    l->bytes[side] += b->size_bytes;
    return 0;
}

int tmk_pieces_add(struct tmk_pieces *l, struct tmk_align *align, enum tmk_side side,
                   const struct tmk_peak *k)
{
    struct teller t = {.labels = tmk_peak_labels(k), .align = align};
    t.n_names = tmk_reader_n_strings(t.labels->p->reader) + 1;
    t.names = calloc((size_t)t.n_names * N_NAME_KINDS, sizeof *t.names);
    int rc = t.names ? tmk_group_open(t.labels, TMK_BY_MODULE, &t.modules) : TMK_ENOMEM;
    for (uint64_t i = 0; rc == 0 && i < tmk_peak_n_blocks(k); i++)
        rc = add_peak_piece(l, &t, side, tmk_peak_block(k, i));
    const struct tmk_peak_row *rows;
    uint64_t n_rows;
    if (rc == 0)
        rc = tmk_group_rows(t.modules, &rows, &n_rows); /* was there memory for all? */
    tmk_group_close(t.modules);
    tmk_textmap_fini(&t.module_keys);
    free(t.module_meanings);
    free(t.names);
    return rc;
}

bool tmk_pieces_are_one(const struct tmk_piece *a, const struct tmk_piece *b)
{
    return a->category == b->category && a->identity == b->identity && a->stack == b->stack;
}

static int by_thing(const void *va, const void *vb)
{
    const struct tmk_piece *a = va, *b = vb;
    if (a->category != b->category)
        return a->category < b->category ? -1 : 1;
    if (a->identity != b->identity)
        return a->identity < b->identity ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    if (a->side != b->side)
        return a->side < b->side ? -1 : 1;
    return (a->size_bytes < b->size_bytes) - (a->size_bytes > b->size_bytes);
}

void tmk_pieces_sort(struct tmk_pieces *l)
{
    if (l->n)
        qsort(l->items, l->n, sizeof *l->items, by_thing);
}

void tmk_pieces_fini(struct tmk_pieces *l)
{
    free(l->items);
    tmk_textmap_fini(&l->texts);
    tmk_arena_fini(&l->memory);
    *l = (struct tmk_pieces){0};
}
