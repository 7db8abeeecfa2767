/* SPDX-License-Identifier: MIT */
/* passes/leaks.c - see leaks.h.
 *
 * Groups are added up by line before they are judged: where a line reaches many modules, each may
 * grow at random and all together regularly. What is found by line is then put together by graph,
 * and the sum judged once more, so that rate and confidence are those of the whole. */
#include "passes/leaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "model/owners.h"
#include "passes/leak_groups.h"
#include "passes/leak_owner.h"
#include "tidemark/tidemark.h"

#define TOGETHER 0.8 /* the part of their rises that lines of one graph share */
enum { LEAST_RISES_BY_TIME = 8, LEAST_BURSTS = 2 };

/* A line, or several that are one leak. */
struct line {
    bool has_site;
    struct tmk_frame site;
    uint16_t device;
    uint32_t *groups; /* numbers */
    uint64_t n_groups, room;
    uint64_t *bytes, *blocks; /* by look, from the first known */
    struct tmk_rise rise;
    uint32_t root;        /* number of the group that was made last */
    bool is_made_in_call; /* in forward or evaluation: autograd may keep it */
    bool is_input;
    bool is_graph;
    bool is_taken; /* it is part of another one */
};

struct tmk_leakage {
    const struct tmk_process *p;
    uint64_t threshold_bytes;
    struct tmk_leak_groups groups;
    const struct tmk_context *contexts; /* while finishing */
    struct tmk_arena arena;
    struct line *lines;
    uint64_t n_lines, line_room;
    struct tmk_leak *leaks, *cycles, *doubts;
    uint64_t n_leaks, leak_room, n_cycles, cycle_room, n_doubts, doubt_room;
    uint64_t n_small;
    bool is_training; /* there is a backward */
};

/* ---- by line ---- */

static uint8_t category_of(const struct tmk_leak_group *g)
{
    uint8_t best = TIDEMARK_UNKNOWN;
    for (uint8_t i = 0; i < TMK_LEAK_N_CATEGORIES; i++)
        if (g->category_bytes[i] > g->category_bytes[best])
            best = i;
    return best;
}

static int add_to_line(struct tmk_leakage *l, struct line *line, uint32_t group)
{
    const struct tmk_leak_groups *g = &l->groups;
    uint32_t *more = tmk_grow(line->groups, line->n_groups + 1, &line->room, sizeof *more);
    if (!more)
        return TMK_ENOMEM;
    line->groups = more;
    line->groups[line->n_groups++] = group;
    for (uint64_t i = 0; i < tmk_leak_groups_n_looks(g); i++) {
        line->bytes[i] += g->groups[group].bytes[g->first + i];
        line->blocks[i] += g->groups[group].blocks[g->first + i];
    }
    if (line->n_groups == 1 || g->groups[group].latest.serial > g->groups[line->root].latest.serial)
        line->root = group;
    return 0;
}

static int add_line(struct tmk_leakage *l, const struct line *line)
{
    struct line *more = tmk_grow(l->lines, l->n_lines + 1, &l->line_room, sizeof *more);
    size_t n = tmk_leak_groups_n_looks(&l->groups) * sizeof(uint64_t);
    uint64_t *bytes = tmk_arena_take(&l->arena, n), *blocks = tmk_arena_take(&l->arena, n);
    if (more)
        l->lines = more;
    if (!more || !bytes || !blocks)
        return TMK_ENOMEM;
    l->lines[l->n_lines] = *line;
    l->lines[l->n_lines].bytes = bytes;
    l->lines[l->n_lines++].blocks = blocks;
    return 0;
}

static int put_in_line(struct tmk_leakage *l, struct tmk_textmap *keys, uint32_t group)
{
    const struct tmk_block *b = &l->groups.groups[group].latest;
    struct line line = {.device = b->device};
    char text[TMK_FRAME_TEXT_BYTES];
    uint32_t number;
    line.has_site = tmk_stack_site(l->p, b->stack, &line.site);
    const char *key =
        tmk_arena_format(&l->arena, "%u %s", (unsigned)b->device,
                         tmk_frame_text(line.has_site ? &line.site : NULL, false, text));
    if (!key || tmk_textmap_put(keys, key, &number) < 0)
        return TMK_ENOMEM;
    int rc = number == l->n_lines ? add_line(l, &line) : 0;
    return rc == 0 ? add_to_line(l, &l->lines[number], group) : rc;
}

/* By the category of most of its growth. */
static void characterize(const struct tmk_leakage *l, struct line *line)
{
    uint64_t call_bytes = 0, input_bytes = 0, all = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = &l->groups.groups[line->groups[i]];
        uint64_t bytes = g->bytes[l->groups.n_looks - 1];
        uint8_t stage = l->contexts[g->latest.context].stage_kind;
        bool in_call = stage == TMK_STAGE_FORWARD || stage == TMK_STAGE_EVAL ||
                       category_of(g) == TIDEMARK_ACTIVATION;
        in_call = in_call && !tmk_leak_is_hook(l->p, g->latest.stack);
        all += bytes;
        call_bytes += in_call ? bytes : 0;
        input_bytes += category_of(g) == TIDEMARK_INPUT ? bytes : 0;
    }
    line->is_made_in_call = call_bytes > 0 && call_bytes >= all / 2;
    line->is_input = input_bytes > all / 2;
}

/* Without steps, what is loaded one after the other looks like a leak. */
static bool is_loading(const struct tmk_leakage *l, const struct line *line)
{
    uint8_t category = category_of(&l->groups.groups[line->root]);
    return !l->groups.has_steps && (category == TIDEMARK_PARAMETER || category == TIDEMARK_BUFFER);
}

/* A result that was gathered and is done with: the program goes on without it. What is dropped
 * since memory was refused is none. */
static bool is_let_go(const struct tmk_leakage *l, const struct line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    uint64_t bytes = 0;
    if (!g->has_steps || !g->has_parameters || g->has_oom)
        return false;
    for (uint64_t i = 0; i < line->n_groups; i++)
        bytes += g->groups[line->groups[i]].let_go_bytes;
    return bytes >= line->rise.bytes - line->rise.bytes / 10;
}

/* In training, what a call makes anew each time, and larger, is the work that grows: longer
 * sequences, a larger batch. Nothing is kept. */
static bool is_work(const struct tmk_leakage *l, const struct line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    struct tmk_rise blocks;
    if (!l->is_training || !(line->is_made_in_call || line->is_input))
        return false;
    tmk_rise_judge(line->blocks, g->n_before + g->first, (uint32_t)tmk_leak_groups_n_looks(g),
                   &blocks);
    return blocks.per_step <= 0;
}

static void judge(const struct tmk_leakage *l, struct line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    tmk_rise_judge(line->bytes, g->n_before + g->first, (uint32_t)tmk_leak_groups_n_looks(g),
                   &line->rise);
    struct tmk_rise *r = &line->rise;
    if (r->kind != TMK_RISE_NONE && (is_loading(l, line) || is_work(l, line)))
        r->kind = TMK_RISE_NONE;
    if (r->kind == TMK_RISE_LEAK && !g->has_steps && r->n_rises < LEAST_RISES_BY_TIME)
        r->kind = TMK_RISE_FEW;
}

static enum tmk_leak_doubt doubt_of(const struct tmk_leakage *l, const struct line *line)
{
    if (line->rise.kind != TMK_RISE_NONE && is_let_go(l, line))
        return TMK_DOUBT_LET_GO;
    return line->rise.kind == TMK_RISE_FEW       ? TMK_DOUBT_FEW
           : line->rise.kind == TMK_RISE_SLOWING ? TMK_DOUBT_SLOWING
                                                 : TMK_DOUBT_NONE;
}

static int make_lines(struct tmk_leakage *l)
{
    struct tmk_textmap keys = {0};
    int rc = 0;
    for (uint32_t i = 0; i < l->groups.n_groups && rc == 0; i++)
        rc = put_in_line(l, &keys, i);
    tmk_textmap_fini(&keys);
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        characterize(l, &l->lines[i]);
        judge(l, &l->lines[i]);
    }
    return rc;
}

/* ---- by graph ---- */

static bool is_of_graph(const struct line *seed, const struct line *other)
{
    return other->rise.kind == TMK_RISE_LEAK && !other->is_taken && other->device == seed->device &&
           (other->is_made_in_call || other->is_input) &&
           tmk_rise_together(&seed->rise, &other->rise) >= TOGETHER;
}

/* What a group of the line has grown by while the line did. */
static uint64_t growth_of(const struct tmk_leakage *l, const struct line *line, uint32_t group)
{
    const uint64_t *bytes = l->groups.groups[group].bytes + l->groups.first;
    uint64_t from = bytes[line->rise.from], to = bytes[line->rise.to];
    return to > from ? to - from : 0;
}

static uint64_t n_growing(const struct tmk_leakage *l, const struct line *line)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < line->n_groups; i++)
        n += growth_of(l, line, line->groups[i]) > 0;
    return n;
}

/* The root alone decides who owns a graph; which group that is was settled by add_to_line(). */
static void find_owner(struct tmk_leakage *l, struct line *line)
{
    uint32_t *stacks = tmk_arena_take(&l->arena, line->n_groups * sizeof *stacks);
    uint32_t n = 0, root = 0;
    for (uint64_t i = 0; stacks && i < line->n_groups; i++) {
        if (growth_of(l, line, line->groups[i]) == 0)
            continue;
        if (line->groups[i] == line->root)
            root = n;
        stacks[n++] = l->groups.groups[line->groups[i]].latest.stack;
    }
    struct tmk_frame f;
    if (n > 0 && tmk_leak_common_line(l->p, stacks, n, root, &f)) {
        line->site = f;
        line->has_site = true;
    }
}

static int merge_graph(struct tmk_leakage *l, uint64_t seed)
{
    int rc = 0;
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        struct line *other = &l->lines[i];
        if (i == seed || !is_of_graph(&l->lines[seed], other))
            continue;
        other->is_taken = true;
        for (uint64_t k = 0; k < other->n_groups && rc == 0; k++)
            rc = add_to_line(l, &l->lines[seed], other->groups[k]);
    }
    return rc;
}

/* The group of a line that was made last among those that grow. What a backward makes hangs on
 * nothing that is kept: it comes into question only where there is nothing else. */
static void find_root(const struct tmk_leakage *l, struct line *line)
{
    uint64_t last = 0;
    bool has_forward = false;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_block *b = &l->groups.groups[line->groups[i]].latest;
        bool is_forward = l->contexts[b->context].stage_kind != TMK_STAGE_BACKWARD;
        if (growth_of(l, line, line->groups[i]) == 0 || is_forward < has_forward ||
            (is_forward == has_forward && b->serial < last))
            continue;
        last = b->serial;
        has_forward = is_forward;
        line->root = line->groups[i];
    }
}

static int merge_graphs(struct tmk_leakage *l)
{
    int rc = 0;
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        struct line *line = &l->lines[i];
        if (line->rise.kind != TMK_RISE_LEAK || line->is_taken)
            continue;
        if (line->is_made_in_call) {
            rc = merge_graph(l, i);
            judge(l, line);
        }
        find_root(l, line);
        line->is_graph = line->is_made_in_call && n_growing(l, line) > 1;
        if (line->is_graph)
            find_owner(l, line);
    }
    return rc;
}

/* ---- telling ---- */

/* Its part of what is added, by what it has grown of all growth. */
static struct tmk_leak_part part_of(const struct tmk_leakage *l, const struct line *line,
                                    const struct tmk_leak_group *g, uint64_t all)
{
    const uint64_t *bytes = g->bytes + l->groups.first, *blocks = g->blocks + l->groups.first;
    const uint64_t *steps = l->groups.n_before + l->groups.first;
    const struct tmk_rise *r = &line->rise;
    double n_steps = (double)(steps[r->to] - steps[r->from]);
    return (struct tmk_leak_part){
        .stack = g->latest.stack,
        .module = tmk_block_module(l->p, l->contexts, &g->latest),
        .stage = tmk_block_stage(l->p, l->contexts, &g->latest),
        .category = category_of(g),
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

static int take_parts(struct tmk_leakage *l, const struct line *line, struct tmk_leak *leak)
{
    struct tmk_leak_part *parts = tmk_arena_take(&l->arena, line->n_groups * sizeof *parts);
    uint64_t all = 0;
    if (!parts)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < line->n_groups; i++)
        all += growth_of(l, line, line->groups[i]);
    for (uint64_t i = 0; i < line->n_groups; i++)
        if (growth_of(l, line, line->groups[i]) > 0)
            parts[leak->n_parts++] = part_of(l, line, &l->groups.groups[line->groups[i]], all);
    qsort(parts, (size_t)leak->n_parts, sizeof *parts, by_part_bytes);
    leak->parts = parts;
    return 0;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Category and module that more than half of the bytes have; of the category else the largest. */
static void take_kind(struct tmk_leak *leak)
{
    double best = 0;
    for (uint64_t i = 0; i < leak->n_parts; i++) {
        double category = 0, module = 0;
        for (uint64_t k = 0; k < leak->n_parts; k++) {
            double bytes = leak->parts[k].bytes_per_step;
            category += leak->parts[k].category == leak->parts[i].category ? bytes : 0;
            module += is_same_text(leak->parts[k].module, leak->parts[i].module) ? bytes : 0;
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

static enum tmk_leak_keeper keeper_of(const struct tmk_leakage *l, const struct line *line,
                                      const struct tmk_leak *leak)
{
    /* A graph has swings of its own, so what falls must be much beside what stays. */
    uint64_t least = line->is_graph ? line->rise.bytes / 4 : 0;
    if (line->rise.n_bursts >= LEAST_BURSTS && line->rise.burst_bytes >= least)
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

/* Of a graph, the largest part that was made by way of the line that owns it. */
static void take_stack(const struct tmk_leakage *l, struct tmk_leak *leak)
{
    for (uint64_t i = 0; i < leak->n_parts; i++)
        if (leak->has_site && tmk_leak_passes(l->p, leak->parts[i].stack, &leak->site)) {
            leak->stack = leak->parts[i].stack;
            return;
        }
}

/* When it began: with the first step known, if what it had then is what it adds in a step. */
static uint32_t first_look(const struct line *line)
{
    double level = (double)line->bytes[0], rate = line->rise.per_step;
    return level >= 0.5 * rate && level <= 1.5 * rate && line->rise.first == 1 ? 0
                                                                               : line->rise.first;
}

static int tell(struct tmk_leakage *l, const struct line *line, struct tmk_leak *ret)
{
    const struct tmk_leak_groups *g = &l->groups;
    struct tmk_rise blocks;
    tmk_rise_judge(line->blocks, g->n_before + g->first, (uint32_t)tmk_leak_groups_n_looks(g),
                   &blocks);
    uint32_t first = g->first + first_look(line);
    uint32_t from = g->first + line->rise.from, to = g->first + line->rise.to;
    *ret = (struct tmk_leak){
        .device = line->device,
        .has_site = line->has_site,
        .site = line->site,
        .stack = g->groups[line->root].latest.stack,
        .bytes_per_step = line->rise.per_step,
        .blocks_per_step = blocks.per_step,
        .first_step = g->step[first],
        .first_ns = g->look_ns[first],
        .bytes = line->rise.bytes,
        .n_rises = line->rise.n_rises,
        .doubt = doubt_of(l, line),
        .confidence = line->rise.confidence,
    };
    if (to > from)
        ret->bytes_per_second = line->rise.per_step *
                                (double)(g->n_before[to] - g->n_before[from]) * 1e9 /
                                (double)(g->look_ns[to] - g->look_ns[from]);
    int rc = take_parts(l, line, ret);
    take_kind(ret);
    ret->keeper = keeper_of(l, line, ret);
    if (line->is_graph)
        take_stack(l, ret);
    return rc;
}

static int add_leak(struct tmk_leakage *l, const struct line *line)
{
    struct tmk_leak *more = tmk_grow(l->leaks, l->n_leaks + 1, &l->leak_room, sizeof *more);
    if (!more)
        return TMK_ENOMEM;
    l->leaks = more;
    return tell(l, line, &l->leaks[l->n_leaks++]);
}

static int add_doubt(struct tmk_leakage *l, const struct line *line)
{
    struct tmk_leak *more = tmk_grow(l->doubts, l->n_doubts + 1, &l->doubt_room, sizeof *more);
    if (!more)
        return TMK_ENOMEM;
    l->doubts = more;
    return tell(l, line, &l->doubts[l->n_doubts++]);
}

static int add_cycle(struct tmk_leakage *l, const struct line *line)
{
    struct tmk_leak *more = tmk_grow(l->cycles, l->n_cycles + 1, &l->cycle_room, sizeof *more);
    if (!more)
        return TMK_ENOMEM;
    l->cycles = more;
    const struct tmk_leak_group *root = &l->groups.groups[line->root];
    l->cycles[l->n_cycles++] = (struct tmk_leak){
        .device = line->device,
        .has_site = line->has_site,
        .site = line->site,
        .stack = root->latest.stack,
        .category = category_of(root),
        .module = tmk_block_module(l->p, l->contexts, &root->latest),
        .stage = tmk_block_stage(l->p, l->contexts, &root->latest),
        .first_step = TMK_NO_STEP,
        .bytes = line->rise.burst_bytes,
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

static int by_bytes(const void *va, const void *vb)
{
    const struct tmk_leak *a = va, *b = vb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->stack > b->stack) - (a->stack < b->stack);
}

static int tell_all(struct tmk_leakage *l)
{
    int rc = 0;
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        const struct line *line = &l->lines[i];
        if (line->is_taken)
            continue;
        bool is_large = line->rise.bytes >= l->threshold_bytes;
        bool is_leak = line->rise.kind == TMK_RISE_LEAK;
        if (doubt_of(l, line) != TMK_DOUBT_NONE)
            rc = is_large ? add_doubt(l, line) : 0;
        else if (is_leak && is_large)
            rc = add_leak(l, line);
        else if (is_leak)
            l->n_small++;
        else if (line->rise.n_bursts >= LEAST_BURSTS &&
                 line->rise.burst_bytes >= l->threshold_bytes)
            rc = add_cycle(l, line);
    }
    if (l->n_leaks > 1)
        qsort(l->leaks, (size_t)l->n_leaks, sizeof *l->leaks, by_rate);
    if (l->n_cycles > 1)
        qsort(l->cycles, (size_t)l->n_cycles, sizeof *l->cycles, by_rate);
    if (l->n_doubts > 1)
        qsort(l->doubts, (size_t)l->n_doubts, sizeof *l->doubts, by_bytes);
    return rc;
}

/* ---- the pass ---- */

static void on_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                     struct tmk_block *b)
{
    struct tmk_leakage *l = arg;
    if (ev->kind == TMK_KIND_FREE && b)
        tmk_leak_groups_freed(&l->groups, &rp->state, ev->time_ns, b);
    else if (ev->kind == TMK_KIND_OOM && !ev->is_of_driver)
        tmk_leak_groups_refused(&l->groups, ev->time_ns);
    else if ((ev->kind == TMK_KIND_SEGMENT || ev->kind == TMK_KIND_SEGMENT_END) && rp->ended.kind)
        tmk_leak_groups_ended(&l->groups, &rp->state, ev->time_ns, &rp->ended);
}

static void on_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_leakage *l = arg;
    tmk_leak_groups_restored(&l->groups, &rp->state);
}

struct tmk_visitor tmk_leakage_visitor(struct tmk_leakage *l)
{
    return (struct tmk_visitor){.arg = l, .event = on_event, .restored = on_restored};
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
            rc = tell_all(l);
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

uint64_t tmk_leakage_part_ns(const struct tmk_leakage *l)
{
    const struct tmk_leak_groups *g = &l->groups;
    if (tmk_leak_groups_n_looks(g) < 2)
        return 0;
    uint64_t last = g->n_looks - 1;
    return (g->look_ns[last] - g->look_ns[g->first]) / (g->n_before[last] - g->n_before[g->first]);
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

const char *tmk_doubt_name(enum tmk_leak_doubt doubt)
{
    static const char *const names[] = {[TMK_DOUBT_NONE] = NULL,
                                        [TMK_DOUBT_FEW] = "few",
                                        [TMK_DOUBT_SLOWING] = "slowing",
                                        [TMK_DOUBT_LET_GO] = "let_go"};
    return names[doubt];
}
