/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_tell.c - the figures of a line that grows; see leaks_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "model/owners.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_groups.h"
#include "passes/leak/leak_owner.h"
#include "passes/leak/leaks_internal.h"
#include "passes/leak/survival.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

uint8_t tmk_leak_category_of(const struct tmk_leak_group *g)
{
    uint8_t best = TIDEMARK_UNKNOWN;
    if (g->is_given)
        return TIDEMARK_INPUT;
    for (uint8_t i = 0; i < TMK_LEAK_N_CATEGORIES; i++)
        if (g->category_bytes[i] > g->category_bytes[best])
            best = i;
    return best;
}

/* ---- the numbers ---- */

/* The group's part of the rates, by its share of what is kept. */
static struct tmk_leak_part growth_part_of(const struct tmk_leakage *l, const struct tmk_leak *leak,
                                           uint64_t all_blocks, const struct tmk_leak_group *g,
                                           uint64_t all)
{
    return (struct tmk_leak_part){
        .stack = g->latest.stack,
        .module = tmk_block_module(l->p, l->contexts, &g->latest),
        .stage = tmk_block_stage(l->p, l->contexts, &g->latest),
        .category = tmk_leak_category_of(g),
        .bytes_per_step = leak->bytes_per_step * (double)g->kept_bytes / (double)all,
        .blocks_per_step =
            all_blocks ? leak->blocks_per_step * (double)g->kept_blocks / (double)all_blocks : 0,
    };
}

static int by_part_bytes(const void *va, const void *vb)
{
    const struct tmk_leak_part *a = va, *b = vb;
    if (a->bytes_per_step != b->bytes_per_step)
        return a->bytes_per_step > b->bytes_per_step ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack > b->stack ? 1 : -1;
    return strcmp(a->module ? a->module : "", b->module ? b->module : "");
}

static int take_parts(struct tmk_leakage *l, const struct tmk_leak_line *line,
                      struct tmk_leak *leak)
{
    struct tmk_leak_part *parts = tmk_arena_take(&l->arena, line->n_groups * sizeof *parts);
    uint64_t all = 0, all_blocks = 0;
    if (!parts)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        all += l->groups.groups[line->groups[i]].kept_bytes;
        all_blocks += l->groups.groups[line->groups[i]].kept_blocks;
    }
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = &l->groups.groups[line->groups[i]];
        if (g->kept_bytes > 0)
            parts[leak->n_parts++] = growth_part_of(l, leak, all_blocks, g, all);
    }
    qsort(parts, (size_t)leak->n_parts, sizeof *parts, by_part_bytes);
    leak->parts = parts;
    return 0;
}

/* The category and module that more than half of the bytes have; failing that, the largest
 * category. */
static void take_leak_kind(struct tmk_leak *leak)
{
    double best = 0;
    for (uint64_t i = 0; i < leak->n_parts; i++) {
        double category = 0, module = 0;
        for (uint64_t k = 0; k < leak->n_parts; k++) {
            double bytes = leak->parts[k].bytes_per_step;
            category += leak->parts[k].category == leak->parts[i].category ? bytes : 0;
            module +=
                tmk_leak_is_same_text(leak->parts[k].module, leak->parts[i].module) ? bytes : 0;
        }
        if (category > best) {
            best = category;
            leak->category = leak->parts[i].category;
            leak->stage = leak->parts[i].stage;
        }
        if (module * 2 > leak->bytes_per_step)
            leak->module = leak->parts[i].module;
    }
}

static enum tmk_leak_keeper keeper_of(const struct tmk_leakage *l, const struct tmk_leak_line *line,
                                      const struct tmk_leak *leak)
{
    if (line->is_graph)
        return TMK_KEEPER_GRAPH;
    if (line->growth.n > 0)
        return TMK_KEEPER_GROWING;
    if (tmk_leak_is_hook(l->p, leak->stack))
        return TMK_KEEPER_HOOK;
    if (leak->stage && strcmp(leak->stage, "data") == 0)
        return TMK_KEEPER_LOADER;
    return leak->has_site ? TMK_KEEPER_CONTAINER : TMK_KEEPER_UNKNOWN;
}

/* For a graph, take the stack of the largest part that was made by way of the line that owns it. */
static void take_stack(const struct tmk_leakage *l, struct tmk_leak *leak)
{
    for (uint64_t i = 0; i < leak->n_parts; i++)
        if (leak->has_site && tmk_leak_passes(l->p, leak->parts[i].stack, &leak->site)) {
            leak->stack = leak->parts[i].stack;
            return;
        }
}

/* The time from one look to another, in seconds. */
static double seconds_between(const struct tmk_leak_groups *g, uint32_t from, uint32_t to)
{
    return (double)(g->look_ns[to] - g->look_ns[from]) / 1e9;
}

static void tell_survivors(const struct tmk_leak_groups *g, const struct tmk_leak_line *line,
                           struct tmk_leak *ret)
{
    const struct tmk_survival *s = &line->survival;
    uint32_t n = 0;
    ret->bytes_per_step = s->per_step;
    ret->blocks_per_step = s->blocks_per_step;
    ret->bytes = s->bytes;
    ret->n_rises = s->n;
    ret->every = s->every;
    ret->is_faster = s->pace == TMK_PACE_FASTER;
    ret->confidence = s->confidence;
    ret->first_step = g->step[s->first];
    ret->first_ns = g->look_ns[s->first];
    for (uint32_t i = s->first; i <= s->last && n < TMK_LEAK_SHOWN_STEPS; i++)
        if (line->kept.bytes[i] > 0)
            ret->steps[n++] = g->step[i];
    if (s->last > s->from)
        ret->bytes_per_second = s->per_step *
                                (double)(g->n_before[s->last] - g->n_before[s->from]) /
                                seconds_between(g, s->from, s->last);
}

static void tell_growth(const struct tmk_leakage *l, const struct tmk_leak_line *line,
                        struct tmk_leak *ret)
{
    const struct tmk_leak_groups *g = &l->groups;
    const struct tmk_leak_growth *growth = &line->growth;
    ret->is_block = true;
    ret->bytes_per_step = growth->per_step;
    ret->bytes = growth->last_bytes - growth->first_bytes;
    ret->n_rises = growth->n;
    ret->confidence = (growth->n + 1.0) / (growth->n + 2.0);
    ret->first_step = g->step[growth->first];
    ret->first_ns = g->look_ns[growth->first];
    if (growth->last > growth->first)
        ret->bytes_per_second = growth->per_step *
                                (double)(g->n_before[growth->last] - g->n_before[growth->first]) /
                                seconds_between(g, growth->first, growth->last);
    tmk_leak_inputs(l, line, &ret->input_from, &ret->input_to);
}

int tmk_leak_tell(struct tmk_leakage *l, const struct tmk_leak_line *line, struct tmk_leak *ret)
{
    const struct tmk_leak_groups *g = &l->groups;
    *ret = (struct tmk_leak){
        .device = line->device,
        .has_site = line->has_site,
        .site = line->site,
        .stack = g->groups[line->root].latest.stack,
        .doubt = line->doubt,
        .at_step = g->step[line->kept.at],
        .is_let_go = line->kept.at + 1 < g->n_looks,
    };
    for (uint32_t i = 0; i < TMK_LEAK_SHOWN_STEPS; i++)
        ret->steps[i] = TMK_NO_STEP;
    if (line->growth.n > 0)
        tell_growth(l, line, ret);
    else
        tell_survivors(g, line, ret);
    int rc = take_parts(l, line, ret);
    take_leak_kind(ret);
    ret->keeper = keeper_of(l, line, ret);
    ret->holder = tmk_leak_holder_of(l, line);
    if (line->is_graph)
        take_stack(l, ret);
    return rc;
}
