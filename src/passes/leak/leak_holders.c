/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_holders.c - see leak_holders.h. */
#include "passes/leak/leak_holders.h"

#include <stdlib.h>

#include "base/hash.h"
#include "kit/grow.h"
#include "trace/kinds.h"

enum { FEW = 4 }; /* blocks that say nothing: variables hold those of the step */

static struct tmk_leak_holding *find_holding(const struct tmk_leak_holders *h, uint32_t stack)
{
    struct tmk_probe probe = tmk_index_probe(&h->index, tmk_hash_u64(stack));
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;)
        if (h->stacks[i - 1].stack == stack)
            return &h->stacks[i - 1];
    return NULL;
}

static struct tmk_leak_holding *holding_of(struct tmk_leak_holders *h, uint32_t stack)
{
    struct tmk_leak_holding *known = find_holding(h, stack);
    if (known)
        return known;
    if (tmk_grow_index(&h->index) < 0 || TMK_GROW(h->stacks, h->n_stacks + 1, h->room) < 0) {
        h->failed = true;
        return NULL;
    }
    h->stacks[h->n_stacks++] = (struct tmk_leak_holding){.stack = stack};
    tmk_index_add(&h->index, tmk_hash_u64(stack), (uint32_t)h->n_stacks);
    return &h->stacks[h->n_stacks - 1];
}

static void add_held(struct tmk_leak_holders *h, const struct tmk_block *b, bool is_graph)
{
    if (TMK_GROW(h->held, h->n_held + 1, h->held_room) < 0)
        h->failed = true;
    else
        h->held[h->n_held++] = 2 * b->serial + is_graph;
}

static int by_number(const void *va, const void *vb)
{
    const uint64_t *a = va, *b = vb;
    return (*a > *b) - (*a < *b);
}

static bool is_named(const struct tmk_leak_holders *h, const struct tmk_block *b, bool is_graph)
{
    uint64_t key = 2 * b->serial + is_graph;
    return h->n_held > 0 &&
           bsearch(&key, h->held, (size_t)h->n_held, sizeof key, by_number) != NULL;
}

static void count_live(const struct tmk_leak_holders *h, const struct tmk_state *s,
                       struct tmk_leak_holders *now)
{
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        struct tmk_leak_holding *g = b->live ? holding_of(now, b->stack) : NULL;
        if (!g)
            continue;
        bool is_graph = is_named(h, b, true);
        g->n_alive++;
        g->n_held += is_graph || is_named(h, b, false);
        g->n_graph += is_graph;
    }
}

/* Take the sum of an inquiry over all live blocks; several tensors may have one. */
static void end_inquiry(struct tmk_leak_holders *h, const struct tmk_state *s)
{
    struct tmk_leak_holders now = {0};
    if (h->n_held > 1)
        qsort(h->held, (size_t)h->n_held, sizeof *h->held, by_number);
    count_live(h, s, &now);
    for (uint64_t i = 0; i < now.n_stacks; i++) {
        struct tmk_leak_holding *best = holding_of(h, now.stacks[i].stack);
        if (best && now.stacks[i].n_alive >= best->n_alive) {
            now.stacks[i].name = best->name;
            *best = now.stacks[i];
        }
    }
    h->failed |= now.failed;
    tmk_leak_holders_fini(&now);
}

void tmk_leak_holders_event(struct tmk_leak_holders *h, const struct tmk_state *s,
                            const struct tmk_event *ev)
{
    if (ev->address == 0) {
        if (ev->size_bytes & TMK_HOLDER_ALL)
            end_inquiry(h, s);
        h->n_held = 0;
        return;
    }
    const struct tmk_block *b = tmk_state_find(s, ev->device, ev->address);
    if (!b || !b->live)
        return;
    if (!ev->name) {
        add_held(h, b, ev->size_bytes & TMK_HOLDER_GRAPH);
        return;
    }
    struct tmk_leak_holding *g = holding_of(h, b->stack);
    if (g)
        g->name = ev->name;
}

void tmk_leak_holders_fini(struct tmk_leak_holders *h)
{
    free(h->stacks);
    free(h->held);
    free(h->index.slots);
    *h = (struct tmk_leak_holders){0};
}

const struct tmk_leak_holding *tmk_leak_holders_of(const struct tmk_leak_holders *h, uint32_t stack)
{
    return find_holding(h, stack);
}

bool tmk_leak_is_held(const struct tmk_leak_holders *h, uint32_t stack)
{
    const struct tmk_leak_holding *g = find_holding(h, stack);
    return g && g->n_alive >= FEW && g->n_held * 4 >= g->n_alive * 3;
}

bool tmk_leak_is_unheld(const struct tmk_leak_holders *h, uint32_t stack)
{
    const struct tmk_leak_holding *g = find_holding(h, stack);
    return g && g->n_alive >= FEW && g->n_held * 4 <= g->n_alive;
}
