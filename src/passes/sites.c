/* SPDX-License-Identifier: MIT */
/* passes/sites.c - see sites.h. */
#include "passes/sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "trace/events.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

struct stack_count {
    uint64_t n_allocs, bytes, live_blocks, live_bytes;
};

struct tmk_sites {
    const struct tmk_process *p;
    struct stack_count *by_stack; /* 0: no stack, or one that is not defined */
    uint32_t n_stacks;
    struct tmk_site_total *rows;
    uint64_t n_rows, row_room;
};

static void on_site_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    (void)rp;
    (void)b;
    struct tmk_sites *s = arg;
    struct stack_count *c = &s->by_stack[ev->stack < s->n_stacks ? ev->stack : 0];
    c->n_allocs++;
    c->bytes += ev->size_bytes;
}

struct tmk_visitor tmk_sites_visitor(struct tmk_sites *s)
{
    return (struct tmk_visitor){.arg = s, .kinds = TMK_HEARS(ALLOC), .event = on_site_event};
}

static void count_live_sites(struct tmk_sites *s, const struct tmk_state *state)
{
    for (uint32_t i = 1; i <= state->n_entries; i++) {
        const struct tmk_block *b = &state->entries[i];
        if (!b->live)
            continue;
        struct stack_count *c = &s->by_stack[b->stack < s->n_stacks ? b->stack : 0];
        c->live_blocks++;
        c->live_bytes += b->size_bytes;
    }
}

/* The row of a stack's line, which is made when new; NULL without memory. */
static struct tmk_site_total *site_row_of(struct tmk_sites *s, uint32_t stack,
                                          struct tmk_textmap *lines, struct tmk_arena *texts)
{
    struct tmk_site_total row = {0};
    row.is_known = tmk_stack_site(s->p, stack, &row.site);
    const char *key = NULL;
    if (row.is_known) {
        char text[TMK_FRAME_TEXT_BYTES];
        key = tmk_arena_format(texts, "%s", tmk_frame_text(&row.site, false, text));
        if (!key)
            return NULL;
    }
    uint32_t i;
    if (tmk_textmap_put(lines, key, &i) < 0)
        return NULL;
    if (i == s->n_rows) {
        if (TMK_GROW(s->rows, s->n_rows + 1, s->row_room) < 0)
            return NULL;
        s->rows[s->n_rows++] = row;
    }
    return &s->rows[i];
}

static int add_up_sites(struct tmk_sites *s, struct tmk_textmap *lines, struct tmk_arena *texts)
{
    for (uint32_t stack = 0; stack < s->n_stacks; stack++) {
        const struct stack_count *c = &s->by_stack[stack];
        if (c->n_allocs == 0 && c->live_blocks == 0)
            continue;
        struct tmk_site_total *row = site_row_of(s, stack, lines, texts);
        if (!row)
            return TMK_ENOMEM;
        row->n_allocs += c->n_allocs;
        row->bytes += c->bytes;
        row->live_blocks += c->live_blocks;
        row->live_bytes += c->live_bytes;
    }
    return 0;
}

static int compare_site_bytes(const void *va, const void *vb)
{
    const struct tmk_site_total *a = va, *b = vb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->n_allocs != b->n_allocs)
        return a->n_allocs > b->n_allocs ? -1 : 1;
    if (!a->is_known || !b->is_known)
        return (int)b->is_known - (int)a->is_known;
    int order = strcmp(a->site.file ? a->site.file : "", b->site.file ? b->site.file : "");
    return order ? order : (a->site.line > b->site.line) - (a->site.line < b->site.line);
}

int tmk_sites_finish(struct tmk_sites *s, const struct tmk_replay *rp, struct tmk_error *err)
{
    struct tmk_textmap lines = {0};
    struct tmk_arena texts = {0};
    count_live_sites(s, &rp->state);
    int rc = add_up_sites(s, &lines, &texts);
    tmk_textmap_fini(&lines);
    tmk_arena_fini(&texts);
    if (rc < 0)
        return tmk_fail(err, rc, "no memory to add up the call sites");
    if (s->n_rows > 0)
        qsort(s->rows, (size_t)s->n_rows, sizeof *s->rows, compare_site_bytes);
    return 0;
}

uint64_t tmk_sites_n(const struct tmk_sites *s)
{
    return s->n_rows;
}

const struct tmk_site_total *tmk_sites_get(const struct tmk_sites *s, uint64_t i)
{
    return &s->rows[i];
}

static bool is_number_in(const uint64_t *numbers, uint64_t n, uint64_t number)
{
    for (uint64_t i = 0; i < n; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

uint64_t tmk_sites_top_live(const struct tmk_sites *s, uint64_t n, uint64_t *ret)
{
    uint64_t found = 0;
    for (; found < n; found++) {
        uint64_t best = UINT64_MAX;
        for (uint64_t i = 0; i < s->n_rows; i++)
            if (s->rows[i].live_bytes > 0 && !is_number_in(ret, found, i) &&
                (best == UINT64_MAX || s->rows[i].live_bytes > s->rows[best].live_bytes))
                best = i;
        if (best == UINT64_MAX)
            break;
        ret[found] = best;
    }
    return found;
}

int tmk_sites_open(const struct tmk_process *p, struct tmk_sites **ret_sites)
{
    struct tmk_sites *s = calloc(1, sizeof *s);
    if (!s)
        return TMK_ENOMEM;
    s->p = p;
    s->n_stacks = tmk_reader_n_stacks(p->reader) + 1;
    s->by_stack = calloc(s->n_stacks, sizeof *s->by_stack);
    if (!s->by_stack) {
        tmk_sites_close(s);
        return TMK_ENOMEM;
    }
    *ret_sites = s;
    return 0;
}

struct tmk_sites *tmk_sites_close(struct tmk_sites *s)
{
    if (!s)
        return NULL;
    free(s->by_stack);
    free(s->rows);
    free(s);
    return NULL;
}
