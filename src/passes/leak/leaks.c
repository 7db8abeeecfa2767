/* SPDX-License-Identifier: MIT */
/* passes/leak/leaks.c - see leaks.h.
 *
 * Groups are summed by line before they are judged: where a line reaches many modules, each may
 * grow at random and all together regularly. Findings by line are then put together by graph, and
 * the sum is judged once more, so that rate and confidence are those of the whole. */
#include "passes/leak/leaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "model/owners.h"
#include "passes/leak/leak_groups.h"
#include "passes/leak/leak_holders.h"
#include "passes/leak/leak_owner.h"
#include "passes/leak/leaks_internal.h"
#include "passes/leak/trend.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/state.h"

#define TOGETHER 0.8 /* the part of their rises that lines of one graph share */
enum { LEAST_RISES_BY_TIME = 8 };

/* ---- by line ---- */

static int add_to_line(struct tmk_leakage *l, struct tmk_leak_line *line, uint32_t group)
{
    const struct tmk_leak_groups *g = &l->groups;
    if (TMK_GROW(line->groups, line->n_groups + 1, line->room) < 0)
        return TMK_ENOMEM;
    line->groups[line->n_groups++] = group;
    for (uint64_t i = 0; i < tmk_leak_groups_n_looks(g); i++) {
        line->bytes[i] += g->groups[group].bytes[g->first + i];
        line->blocks[i] += g->groups[group].blocks[g->first + i];
    }
    if (line->n_groups == 1 || g->groups[group].latest.serial > g->groups[line->root].latest.serial)
        line->root = group;
    return 0;
}

static int add_leak_line(struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    size_t n = tmk_leak_groups_n_looks(&l->groups) * sizeof(uint64_t);
    uint64_t *bytes = tmk_arena_take(&l->arena, n), *blocks = tmk_arena_take(&l->arena, n);
    if (!bytes || !blocks || TMK_GROW(l->lines, l->n_lines + 1, l->line_room) < 0)
        return TMK_ENOMEM;
    l->lines[l->n_lines] = *line;
    l->lines[l->n_lines].bytes = bytes;
    l->lines[l->n_lines++].blocks = blocks;
    return 0;
}

static int put_in_line(struct tmk_leakage *l, struct tmk_textmap *keys, uint32_t group)
{
    const struct tmk_block *b = &l->groups.groups[group].latest;
    struct tmk_leak_line line = {.device = b->device};
    char text[TMK_FRAME_TEXT_BYTES];
    uint32_t number;
    line.has_site = tmk_stack_site(l->p, b->stack, &line.site);
    const char *key =
        tmk_arena_format(&l->arena, "%u %s", (unsigned)b->device,
                         tmk_frame_text(line.has_site ? &line.site : NULL, false, text));
    if (!key || tmk_textmap_put(keys, key, &number) < 0)
        return TMK_ENOMEM;
    int rc = number == l->n_lines ? add_leak_line(l, &line) : 0;
    return rc == 0 ? add_to_line(l, &l->lines[number], group) : rc;
}

/* Describe the line by the category of most of its growth. */
static void find_line_character(const struct tmk_leakage *l, struct tmk_leak_line *line)
{
    uint64_t call_bytes = 0, input_bytes = 0, all = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = &l->groups.groups[line->groups[i]];
        uint64_t bytes = g->bytes[l->groups.n_looks - 1];
        uint8_t stage = l->contexts[g->latest.context].stage_kind;
        bool in_call = stage == TMK_STAGE_FORWARD || stage == TMK_STAGE_EVAL ||
                       tmk_leak_category_of(g) == TIDEMARK_ACTIVATION;
        in_call = in_call && !tmk_leak_is_hook(l->p, g->latest.stack);
        all += bytes;
        call_bytes += in_call ? bytes : 0;
        input_bytes += tmk_leak_category_of(g) == TIDEMARK_INPUT ? bytes : 0;
    }
    line->is_made_in_call = call_bytes > 0 && call_bytes >= all / 2;
    line->is_input = input_bytes > all / 2;
    tmk_leak_find_graph_character(l, line);
}

/* A run without steps that loads one thing after the other looks like a leak. */
static bool is_line_loading(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    uint8_t category = tmk_leak_category_of(&l->groups.groups[line->root]);
    return !l->groups.has_steps && (category == TIDEMARK_PARAMETER || category == TIDEMARK_BUFFER);
}

/* In training, a block that a call makes anew each time, and larger, means growing work: longer
 * sequences, a larger batch. Nothing is kept. */
static bool is_growing_work(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    struct tmk_trend blocks;
    if (!l->is_training || !(line->is_made_in_call || line->is_input))
        return false;
    tmk_trend_judge(line->blocks, g->n_before + g->first, (uint32_t)tmk_leak_groups_n_looks(g),
                    &blocks);
    return blocks.per_step <= 0;
}

static void judge_line(const struct tmk_leakage *l, struct tmk_leak_line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    tmk_trend_judge(line->bytes, g->n_before + g->first, (uint32_t)tmk_leak_groups_n_looks(g),
                    &line->trend);
    struct tmk_trend *r = &line->trend;
    if (r->kind != TMK_TREND_NONE && (is_line_loading(l, line) || is_growing_work(l, line)))
        r->kind = TMK_TREND_NONE;
    if (r->kind == TMK_TREND_LEAK && !g->has_steps && r->n_rises < LEAST_RISES_BY_TIME)
        r->kind = TMK_TREND_FEW;
}

static int make_lines(struct tmk_leakage *l)
{
    struct tmk_textmap keys = {0};
    int rc = 0;
    for (uint32_t i = 0; i < l->groups.n_groups && rc == 0; i++)
        rc = put_in_line(l, &keys, i);
    tmk_textmap_fini(&keys);
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        find_line_character(l, &l->lines[i]);
        judge_line(l, &l->lines[i]);
    }
    return rc;
}

/* ---- by graph ---- */

static bool is_of_graph(const struct tmk_leakage *l, const struct tmk_leak_line *seed,
                        const struct tmk_leak_line *other)
{
    return other->trend.kind == TMK_TREND_LEAK && !other->is_taken &&
           other->device == seed->device && tmk_leak_may_share_graph(l, seed, other) &&
           tmk_trend_together(&seed->trend, &other->trend) >= TOGETHER;
}

static int merge_graph(struct tmk_leakage *l, uint64_t seed)
{
    int rc = 0;
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        struct tmk_leak_line *other = &l->lines[i];
        if (i == seed || !is_of_graph(l, &l->lines[seed], other))
            continue;
        other->is_taken = true;
        for (uint64_t k = 0; k < other->n_groups && rc == 0; k++)
            rc = add_to_line(l, &l->lines[seed], other->groups[k]);
    }
    return rc;
}

static int merge_graphs(struct tmk_leakage *l)
{
    int rc = 0;
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        struct tmk_leak_line *line = &l->lines[i];
        if (line->trend.kind != TMK_TREND_LEAK || line->is_taken)
            continue;
        if (line->may_be_graph) {
            rc = merge_graph(l, i);
            judge_line(l, line);
        }
        tmk_leak_find_root(l, line);
        line->is_graph = tmk_leak_is_kept_by_graph(l, line);
        if (line->is_graph)
            tmk_leak_find_owner(l, line);
    }
    return rc;
}

/* ---- telling ---- */

static int add_found_leak(struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    if (TMK_GROW(l->leaks, l->n_leaks + 1, l->leak_room) < 0)
        return TMK_ENOMEM;
    return tmk_leak_tell(l, line, &l->leaks[l->n_leaks++]);
}

static int add_doubt(struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    if (TMK_GROW(l->doubts, l->n_doubts + 1, l->doubt_room) < 0)
        return TMK_ENOMEM;
    return tmk_leak_tell(l, line, &l->doubts[l->n_doubts++]);
}

static int add_cycle(struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    if (TMK_GROW(l->cycles, l->n_cycles + 1, l->cycle_room) < 0)
        return TMK_ENOMEM;
    const struct tmk_leak_group *root = &l->groups.groups[line->root];
    l->cycles[l->n_cycles++] = (struct tmk_leak){
        .device = line->device,
        .has_site = line->has_site,
        .site = line->site,
        .stack = root->latest.stack,
        .category = tmk_leak_category_of(root),
        .module = tmk_block_module(l->p, l->contexts, &root->latest),
        .stage = tmk_block_stage(l->p, l->contexts, &root->latest),
        .first_step = TMK_NO_STEP,
        .bytes = line->trend.burst_bytes,
        .keeper = TMK_KEEPER_CYCLE,
    };
    return 0;
}

static int by_rate(const void *va, const void *vb)
{
    const struct tmk_leak *a = va, *b = vb;
    if (a->bytes_per_step != b->bytes_per_step)
        return a->bytes_per_step > b->bytes_per_step ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

static int compare_leak_bytes(const void *va, const void *vb)
{
    const struct tmk_leak *a = va, *b = vb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

static int tell_leaks(struct tmk_leakage *l)
{
    int rc = 0;
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        const struct tmk_leak_line *line = &l->lines[i];
        if (line->is_taken)
            continue;
        bool is_large = line->trend.bytes >= l->threshold_bytes;
        bool is_leak = line->trend.kind == TMK_TREND_LEAK;
        if (tmk_leak_doubt_of(l, line) != TMK_DOUBT_NONE)
            rc = is_large ? add_doubt(l, line) : 0;
        else if (is_leak && is_large)
            rc = add_found_leak(l, line);
        else if (is_leak)
            l->n_small++;
        else if (line->trend.n_bursts >= TMK_LEAK_LEAST_BURSTS &&
                 line->trend.burst_bytes >= l->threshold_bytes)
            rc = add_cycle(l, line);
    }
    if (l->n_leaks > 1)
        qsort(l->leaks, (size_t)l->n_leaks, sizeof *l->leaks, by_rate);
    if (l->n_cycles > 1)
        qsort(l->cycles, (size_t)l->n_cycles, sizeof *l->cycles, by_rate);
    if (l->n_doubts > 1)
        qsort(l->doubts, (size_t)l->n_doubts, sizeof *l->doubts, compare_leak_bytes);
    return rc;
}

/* ---- the pass ---- */

static void on_leak_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    struct tmk_leakage *l = arg;
    if (ev->kind == TMK_KIND_FREE && b)
        tmk_leak_groups_freed(&l->groups, &rp->state, ev->time_ns, b);
    else if (ev->kind == TMK_KIND_OOM && !ev->is_of_driver)
        tmk_leak_groups_refused(&l->groups, ev->time_ns);
    else if (ev->kind == TMK_KIND_HOLDER)
        tmk_leak_holders_event(&l->holders, &rp->state, ev);
    else if ((ev->kind == TMK_KIND_SEGMENT || ev->kind == TMK_KIND_SEGMENT_END) && rp->ended.kind)
        tmk_leak_groups_ended(&l->groups, &rp->state, ev->time_ns, &rp->ended);
}

static void on_leak_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_leakage *l = arg;
    tmk_leak_groups_restored(&l->groups, &rp->state);
}

struct tmk_visitor tmk_leakage_visitor(struct tmk_leakage *l)
{
    return (struct tmk_visitor){.arg = l,
                                .kinds = TMK_HEARS(FREE) | TMK_HEARS(OOM) | TMK_HEARS(HOLDER) |
                                         TMK_HEARS(SEGMENT) | TMK_HEARS(SEGMENT_END),
                                .event = on_leak_event,
                                .restored = on_leak_restored};
}

static bool has_backward(const struct tmk_state *s)
{
    for (uint32_t i = 1; i <= s->n_contexts; i++)
        if (s->contexts[i].stage_kind == TMK_STAGE_BACKWARD)
            return true;
    return false;
}

int tmk_leakage_finish(struct tmk_leakage *l, const struct tmk_replay *rp, struct tmk_error *err)
{
    l->contexts = rp->state.contexts;
    l->is_training = has_backward(&rp->state);
    int rc = tmk_leak_groups_finish(&l->groups, &rp->state);
    if (rc == 0 && tmk_leakage_verdict(l) != TMK_LEAK_TOO_SHORT) {
        rc = make_lines(l);
        if (rc == 0)
            rc = merge_graphs(l);
        if (rc == 0)
            rc = tell_leaks(l);
    }
    l->contexts = NULL;
    return rc < 0 ? tmk_fail(err, rc, "no memory to look for leaks") : 0;
}

int tmk_leakage_open(const struct tmk_process *p, uint64_t threshold_bytes,
                     struct tmk_leakage **ret_leakage)
{
    struct tmk_leakage *l = calloc(1, sizeof *l);
    if (!l)
        return TMK_ENOMEM;
    l->p = p;
    l->threshold_bytes = threshold_bytes;
    if (tmk_leak_groups_init(&l->groups, p) < 0) {
        tmk_leakage_close(l);
        return TMK_ENOMEM;
    }
    *ret_leakage = l;
    return 0;
}

struct tmk_leakage *tmk_leakage_close(struct tmk_leakage *l)
{
    if (!l)
        return NULL;
    for (uint64_t i = 0; i < l->n_lines; i++)
        free(l->lines[i].groups);
    free(l->lines);
    free(l->leaks);
    free(l->cycles);
    free(l->doubts);
    tmk_leak_groups_fini(&l->groups);
    tmk_leak_holders_fini(&l->holders);
    tmk_arena_fini(&l->arena);
    free(l);
    return NULL;
}

/* ---- asking ---- */

enum tmk_leak_verdict tmk_leakage_verdict(const struct tmk_leakage *l)
{
    if (tmk_leak_groups_n_looks(&l->groups) < TMK_LEAK_MIN_STEPS)
        return TMK_LEAK_TOO_SHORT;
    return l->n_leaks ? TMK_LEAK_FOUND : TMK_LEAK_CLEAN;
}

uint64_t tmk_leakage_n(const struct tmk_leakage *l)
{
    return l->n_leaks;
}

const struct tmk_leak *tmk_leakage_get(const struct tmk_leakage *l, uint64_t i)
{
    return &l->leaks[i];
}

uint64_t tmk_leakage_n_steps(const struct tmk_leakage *l)
{
    return l->groups.n_steps;
}

uint64_t tmk_leakage_n_small(const struct tmk_leakage *l)
{
    return l->n_small;
}

uint64_t tmk_leakage_n_cycles(const struct tmk_leakage *l)
{
    return l->n_cycles;
}

const struct tmk_leak *tmk_leakage_cycle(const struct tmk_leakage *l, uint64_t i)
{
    return &l->cycles[i];
}

uint64_t tmk_leakage_n_doubts(const struct tmk_leakage *l)
{
    return l->n_doubts;
}

const struct tmk_leak *tmk_leakage_doubt(const struct tmk_leakage *l, uint64_t i)
{
    return &l->doubts[i];
}
