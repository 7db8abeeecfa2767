/* SPDX-License-Identifier: MIT */
/* passes/group.c - see group.h.
 *
 * Each key follows from a number: a category, a stack, a string's id, or a context, followed by
 * numbers for what the context does not tell. The first block with a number finds its row by
 * text, since one text may have several numbers; later blocks find it by number. There may be any
 * number of steps, so they are always found by text. */
#include "passes/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "model/owners.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum { N_CATEGORIES = 256, MAX_FRAMES = 256 };

struct tmk_group {
    const struct tmk_labels *labels;
    enum tmk_by by;
    uint32_t *row_of; /* by number of the key: row + 1 */
    uint32_t n_numbers;
    struct tmk_textmap keys;
    struct tmk_peak_row *rows;
    uint64_t n_rows, row_room;
    int64_t last_step; /* by step: the last block's step; its row is row_of[0] */
    uint32_t nowhere;
    struct tmk_arena texts;
    bool failed;
};

bool tmk_by_find(const char *name, enum tmk_by *ret)
{
    static const char *const names[] = {
        [TMK_BY_CATEGORY] = "category",   [TMK_BY_MODULE] = "module",
        [TMK_BY_COMPONENT] = "component", [TMK_BY_STAGE] = "stage",
        [TMK_BY_STEP] = "step",           [TMK_BY_STACK] = "stack",
        [TMK_BY_TENSOR] = "tensor",       [TMK_BY_SITE] = "line"};
    for (size_t i = 0; i < TMK_N(names); i++)
        if (strcmp(names[i], name) == 0) {
            *ret = (enum tmk_by)i;
            return true;
        }
    return false;
}

/* ---- labels ---- */

int tmk_labels_init(struct tmk_labels *l, const struct tmk_process *p, const struct tmk_state *s)
{
    *l = (struct tmk_labels){.p = p, .n_contexts = s->n_contexts + 1};
    l->contexts = malloc(l->n_contexts * sizeof *l->contexts);
    if (!l->contexts)
        return TMK_ENOMEM;
    memcpy(l->contexts, s->contexts, l->n_contexts * sizeof *l->contexts);
    return 0;
}

void tmk_labels_fini(struct tmk_labels *l)
{
    free(l->contexts);
    *l = (struct tmk_labels){0};
}

/* ---- numbers and texts ---- */

static uint32_t n_numbers(const struct tmk_labels *l, enum tmk_by by)
{
    uint32_t n_stacks = tmk_reader_n_stacks(l->p->reader) + 1;
    uint32_t n_strings = tmk_reader_n_strings(l->p->reader) + 1;
    switch (by) {
    case TMK_BY_CATEGORY:
        return N_CATEGORIES;
    case TMK_BY_STACK:
    case TMK_BY_SITE:
        return n_stacks;
    case TMK_BY_TENSOR:
        return n_strings;
    case TMK_BY_STAGE:
        return l->n_contexts + n_stacks;
    case TMK_BY_MODULE:
    case TMK_BY_COMPONENT:
        return l->n_contexts + n_strings;
    case TMK_BY_STEP:
        return 1;
    }
    return 0;
}

static bool is_stack_key(enum tmk_by by)
{
    return by == TMK_BY_STACK || by == TMK_BY_SITE;
}

/* Memory that a library keeps as a workspace, named "cuBLAS workspace": it serves more modules
 * than the one that happened to need it first. */
static bool is_workspace(const struct tmk_group *g, const struct tmk_block *b)
{
    static const char end[] = " workspace";
    if (b->category != TIDEMARK_TEMPORARY || b->name == 0)
        return false;
    const char *name = tmk_reader_string(g->labels->p->reader, b->name);
    size_t n = name ? strlen(name) : 0;
    return n >= sizeof end - 1 && strcmp(name + n - (sizeof end - 1), end) == 0;
}

/* The number that the key's text follows from; 0 when nothing is known. */
static uint32_t key_number_of(const struct tmk_group *g, const struct tmk_block *b)
{
    const struct tmk_labels *l = g->labels;
    const struct tmk_context *context = &l->contexts[b->context];
    switch (g->by) {
    case TMK_BY_CATEGORY:
        return tmk_block_category(l->p, l->contexts, b);
    case TMK_BY_STACK:
    case TMK_BY_SITE:
        return b->stack;
    case TMK_BY_TENSOR:
        return b->name;
    case TMK_BY_STAGE:
        if (context->stage || b->serial == 0)
            return b->context;
        if (b->category == TIDEMARK_PARAMETER || b->category == TIDEMARK_BUFFER)
            return UINT32_MAX; /* it and its stack: not kept */
        return l->n_contexts + b->stack;
    case TMK_BY_MODULE:
        if (is_workspace(g, b))
            return l->n_contexts + b->name;
        if (tmk_block_has_maker(l->p, b))
            return UINT32_MAX;
        if (context->module)
            return b->context;
        return tmk_block_has_parameter(l->p, b) ? l->n_contexts + b->name : 0;
    case TMK_BY_COMPONENT:
        if (is_workspace(g, b) || tmk_block_has_parameter(l->p, b))
            return l->n_contexts + b->name;
        return b->serial || context->module ? b->context : l->n_contexts;
    case TMK_BY_STEP:
        return 0;
    }
    return 0;
}

static void write_stack_frames(FILE *out, const struct tmk_process *p,
                               const struct tmk_stack *frames)
{
    for (uint32_t i = 0; i < frames->n_frames && i < MAX_FRAMES; i++) {
        struct tmk_frame f;
        char text[TMK_FRAME_TEXT_BYTES];
        bool known = tmk_process_frame(p, frames->frames[i], &f);
        fprintf(out, "%s%s", i ? "\n" : "", tmk_frame_text(known ? &f : NULL, false, text));
    }
}

static void write_site(FILE *out, const struct tmk_process *p, uint32_t stack)
{
    struct tmk_frame f;
    char text[TMK_FRAME_TEXT_BYTES];
    fputs(tmk_frame_text(tmk_stack_site(p, stack, &f) ? &f : NULL, false, text), out);
}

/* The frames of a stack, one a line; the first line is the key that is shown. NULL: unknown. */
static const char *stack_text(struct tmk_group *g, uint32_t stack)
{
    const struct tmk_process *p = g->labels->p;
    struct tmk_stack frames;
    if (!tmk_reader_stack(p->reader, stack, &frames) || frames.n_frames == 0)
        return NULL;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (out && g->by == TMK_BY_SITE)
        write_site(out, p, stack);
    else if (out)
        write_stack_frames(out, p, &frames);
    const char *kept = out && fclose(out) == 0 ? tmk_arena_text(&g->texts, text, n) : NULL;
    free(text);
    g->failed |= !kept;
    return kept;
}

static const char *step_text(struct tmk_group *g, int64_t step)
{
    if (step == TMK_NO_STEP)
        return NULL;
    const char *text = tmk_arena_format(&g->texts, "%" PRId64, step);
    g->failed |= !text;
    return text;
}

static const char *workspace_text(struct tmk_group *g, const struct tmk_block *b)
{
    const char *name = tmk_reader_string(g->labels->p->reader, b->name);
    const char *text = tmk_arena_format(&g->texts, "(%s)", name ? name : "");
    g->failed |= !text;
    return text;
}

static const char *key_text_of(struct tmk_group *g, const struct tmk_block *b)
{
    const struct tmk_labels *l = g->labels;
    if (is_workspace(g, b) && (g->by == TMK_BY_MODULE || g->by == TMK_BY_COMPONENT))
        return workspace_text(g, b);
    switch (g->by) {
    case TMK_BY_CATEGORY:
        return tmk_category_name(tmk_block_category(l->p, l->contexts, b));
    case TMK_BY_MODULE:
        return tmk_block_module(l->p, l->contexts, b);
    case TMK_BY_COMPONENT:
        return tmk_block_component(l->p, l->contexts, b);
    case TMK_BY_STAGE:
        return tmk_block_stage(l->p, l->contexts, b);
    case TMK_BY_STACK:
    case TMK_BY_SITE:
        return stack_text(g, b->stack);
    case TMK_BY_TENSOR:
        return tmk_reader_string(l->p->reader, b->name);
    case TMK_BY_STEP:
        return step_text(g, b->step);
    }
    return NULL;
}

/* ---- rows ---- */

static const char *shown_key(struct tmk_group *g, const char *text)
{
    const char *line = text && g->by == TMK_BY_STACK ? strchr(text, '\n') : NULL;
    return line ? tmk_arena_text(&g->texts, text, (size_t)(line - text)) : text;
}

/* The row of the block's text, which is made when new; NULL without memory. */
static struct tmk_peak_row *find_row(struct tmk_group *g, const struct tmk_block *b)
{
    const char *text = key_text_of(g, b);
    uint32_t row;
    if (g->failed || tmk_textmap_put(&g->keys, text, &row) < 0)
        return NULL;
    if (row == g->n_rows) {
        if (TMK_GROW(g->rows, g->n_rows + 1, g->row_room) < 0)
            return NULL;
        g->rows[g->n_rows++] = (struct tmk_peak_row){.key = shown_key(g, text),
                                                     .stack = is_stack_key(g->by) ? b->stack : 0};
    }
    return &g->rows[row];
}

/* Where the number of the block's row is kept, once found: number + 1, or 0. */
static uint32_t *kept_row(struct tmk_group *g, const struct tmk_block *b)
{
    if (g->by == TMK_BY_STEP) {
        if (b->step != g->last_step)
            g->row_of[0] = 0;
        g->last_step = b->step;
        return &g->row_of[0];
    }
    uint32_t number = key_number_of(g, b);
    if (number < g->n_numbers)
        return &g->row_of[number];
    g->nowhere = 0; /* also in a damaged trace */
    return &g->nowhere;
}

/* The block's row; NULL without memory, which is remembered. */
static struct tmk_peak_row *group_row_of(struct tmk_group *g, const struct tmk_block *b)
{
    uint32_t *kept = kept_row(g, b);
    struct tmk_peak_row *row = *kept ? &g->rows[*kept - 1] : find_row(g, b);
    if (row)
        *kept = (uint32_t)(row - g->rows) + 1;
    g->failed |= !row;
    return row;
}

void tmk_group_add(struct tmk_group *g, const struct tmk_block *b)
{
    struct tmk_peak_row *row = group_row_of(g, b);
    if (row) {
        row->bytes += b->size_bytes;
        row->n_blocks++;
    }
}

const char *tmk_group_key(struct tmk_group *g, const struct tmk_block *b)
{
    const struct tmk_peak_row *row = group_row_of(g, b);
    return row ? row->key : NULL;
}

uint32_t tmk_group_number(struct tmk_group *g, const struct tmk_block *b)
{
    const struct tmk_peak_row *row = group_row_of(g, b);
    return row ? (uint32_t)(row - g->rows) : UINT32_MAX;
}

/* Order by bytes, largest first; then by key, unknown last, so that the order is always the same.
 */
static int compare_group_rows(const void *va, const void *vb)
{
    const struct tmk_peak_row *a = va, *b = vb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (!a->key || !b->key)
        return (a->key == NULL) - (b->key == NULL);
    return strcmp(a->key, b->key);
}

int tmk_group_rows(struct tmk_group *g, const struct tmk_peak_row **ret_rows, uint64_t *ret_n)
{
    if (g->failed)
        return TMK_ENOMEM;
    if (g->n_rows > 0)
        qsort(g->rows, (size_t)g->n_rows, sizeof *g->rows, compare_group_rows);
    *ret_rows = g->rows;
    *ret_n = g->n_rows;
    return 0;
}

int tmk_group_open(const struct tmk_labels *l, enum tmk_by by, struct tmk_group **ret_group)
{
    struct tmk_group *g = calloc(1, sizeof *g);
    if (!g)
        return TMK_ENOMEM;
    g->labels = l;
    g->by = by;
    g->n_numbers = n_numbers(l, by);
    g->row_of = calloc(g->n_numbers, sizeof *g->row_of);
    if (!g->row_of) {
        tmk_group_close(g);
        return TMK_ENOMEM;
    }
    *ret_group = g;
    return 0;
}

struct tmk_group *tmk_group_close(struct tmk_group *g)
{
    if (!g)
        return NULL;
    free(g->row_of);
    free(g->rows);
    tmk_textmap_fini(&g->keys);
    tmk_arena_fini(&g->texts);
    free(g);
    return NULL;
}
