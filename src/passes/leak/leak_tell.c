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
#include "passes/leak/trend.h"
#include "tidemark/tidemark.h"

uint8_t tmk_leak_category_of(const struct tmk_leak_group *g)
{
    uint8_t best = TIDEMARK_UNKNOWN;
    for (uint8_t i = 0; i < TMK_LEAK_N_CATEGORIES; i++)
        if (g->category_bytes[i] > g->category_bytes[best])
            best = i;
    return best;
}

uint64_t tmk_leak_growth_of(const struct tmk_leakage *l, const struct tmk_leak_line *line,
                            uint32_t group)
{
    const uint64_t *bytes = l->groups.groups[group].bytes + l->groups.first;
    uint64_t from = bytes[line->trend.from], to = bytes[line->trend.to];
    return to > from ? to - from : 0;
}

/* ---- what is not judged ---- */

static uint64_t let_go_bytes(const struct tmk_leak_group *group)
{
    return group->let_go_bytes > group->replaced_bytes ? group->let_go_bytes - group->replaced_bytes
                                                       : 0;
}

/* A result that was gathered and is done with: the program goes on without it. What is freed
 * after an OOM does not count. */
static bool is_line_let_go(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    uint64_t bytes = 0;
    if (!g->has_steps || !g->has_parameters || g->has_oom)
        return false;
    for (uint64_t i = 0; i < line->n_groups; i++)
        bytes += let_go_bytes(&g->groups[line->groups[i]]);
    return bytes >= line->trend.bytes - line->trend.bytes / 10;
}

/* A result that was put together: after the last step one block was made that is as large as what
 * the line had in several, or larger by one or two steps' growth. */
static bool is_joined_result(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    uint64_t last = tmk_leak_groups_n_looks(g) - 1;
    double level = (double)line->bytes[last];
    if (!g->has_steps || g->has_oom || line->blocks[last] < TMK_TREND_LEAST_RISES)
        return false;
    for (uint32_t i = 0; i < TMK_LEAK_MAX_LATE; i++) {
        double size = (double)g->late[i].size_bytes;
        if (g->late[i].device == line->device && size >= level &&
            size <= level + 2 * line->trend.per_step)
            return true;
    }
    return false;
}

enum tmk_leak_doubt tmk_leak_doubt_of(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    if (line->trend.kind != TMK_TREND_NONE && is_line_let_go(l, line))
        return TMK_DOUBT_LET_GO;
    if (line->trend.kind == TMK_TREND_LEAK && is_joined_result(l, line))
        return TMK_DOUBT_JOINED;
    return line->trend.kind == TMK_TREND_FEW       ? TMK_DOUBT_FEW
           : line->trend.kind == TMK_TREND_SLOWING ? TMK_DOUBT_SLOWING
                                                   : TMK_DOUBT_NONE;
}

const char *tmk_doubt_name(enum tmk_leak_doubt doubt)
{
    static const char *const names[] = {[TMK_DOUBT_NONE] = NULL,
                                        [TMK_DOUBT_FEW] = "few",
                                        [TMK_DOUBT_SLOWING] = "slowing",
                                        [TMK_DOUBT_LET_GO] = "let_go",
                                        [TMK_DOUBT_JOINED] = "joined"};
    return names[doubt];
}

/* ---- the numbers ---- */

/* The group's part of what is added, by its share of all growth. */
static struct tmk_leak_part growth_part_of(const struct tmk_leakage *l,
                                           const struct tmk_leak_line *line,
                                           const struct tmk_leak_group *g, uint64_t all)
{
    const uint64_t *bytes = g->bytes + l->groups.first, *blocks = g->blocks + l->groups.first;
    const uint64_t *steps = l->groups.n_before + l->groups.first;
    const struct tmk_trend *r = &line->trend;
    double n_steps = (double)(steps[r->to] - steps[r->from]);
    return (struct tmk_leak_part){
        .stack = g->latest.stack,
        .module = tmk_block_module(l->p, l->contexts, &g->latest),
        .stage = tmk_block_stage(l->p, l->contexts, &g->latest),
        .category = tmk_leak_category_of(g),
        .bytes_per_step = r->per_step * (double)(bytes[r->to] - bytes[r->from]) / (double)all,
        .blocks_per_step =
            n_steps > 0 ? ((double)blocks[r->to] - (double)blocks[r->from]) / n_steps : 0,
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
    uint64_t all = 0;
    if (!parts)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < line->n_groups; i++)
        all += tmk_leak_growth_of(l, line, line->groups[i]);
    for (uint64_t i = 0; i < line->n_groups; i++)
        if (tmk_leak_growth_of(l, line, line->groups[i]) > 0)
            parts[leak->n_parts++] =
                growth_part_of(l, line, &l->groups.groups[line->groups[i]], all);
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
    /* A graph has swings of its own, so the fall must be large beside what is kept. */
    uint64_t least = line->is_graph ? line->trend.bytes / 4 : 0;
    if (line->trend.n_bursts >= TMK_LEAK_LEAST_BURSTS && line->trend.burst_bytes >= least)
        return TMK_KEEPER_CYCLE;
    if (line->is_graph)
        return TMK_KEEPER_GRAPH;
    if (tmk_leak_is_hook(l->p, leak->stack))
        return TMK_KEEPER_HOOK;
    if (leak->blocks_per_step <= 0 && leak->bytes_per_step > 0)
        return TMK_KEEPER_GROWING;
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

/* The look at which it began: the first one known, if the line had then what it adds in a step. */
static uint32_t first_look(const struct tmk_leak_line *line)
{
    double level = (double)line->bytes[0], rate = line->trend.per_step;
    return level >= 0.5 * rate && level <= 1.5 * rate && line->trend.first == 1 ? 0
                                                                                : line->trend.first;
}

int tmk_leak_tell(struct tmk_leakage *l, const struct tmk_leak_line *line, struct tmk_leak *ret)
{
    const struct tmk_leak_groups *g = &l->groups;
    struct tmk_trend blocks;
    tmk_trend_judge(line->blocks, g->n_before + g->first, (uint32_t)tmk_leak_groups_n_looks(g),
                    &blocks);
    uint32_t first = g->first + first_look(line);
    uint32_t from = g->first + line->trend.from, to = g->first + line->trend.to;
    *ret = (struct tmk_leak){
        .device = line->device,
        .has_site = line->has_site,
        .site = line->site,
        .stack = g->groups[line->root].latest.stack,
        .bytes_per_step = line->trend.per_step,
        .blocks_per_step = blocks.per_step,
        .first_step = g->step[first],
        .first_ns = g->look_ns[first],
        .bytes = line->trend.bytes,
        .n_rises = line->trend.n_rises,
        .doubt = tmk_leak_doubt_of(l, line),
        .confidence = line->trend.confidence,
    };
    if (to > from)
        ret->bytes_per_second = line->trend.per_step *
                                (double)(g->n_before[to] - g->n_before[from]) * 1e9 /
                                (double)(g->look_ns[to] - g->look_ns[from]);
    int rc = take_parts(l, line, ret);
    take_leak_kind(ret);
    ret->keeper = keeper_of(l, line, ret);
    ret->holder = tmk_leak_holder_of(l, line);
    if (line->is_graph)
        take_stack(l, ret);
    return rc;
}
