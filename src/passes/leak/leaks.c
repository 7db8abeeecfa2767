/* SPDX-License-Identifier: MIT */
/* passes/leak/leaks.c - see leaks.h.
 *
 * Groups are summed by line before they are judged: where a line reaches many modules, each may
 * keep something at random and all together regularly. But what age is usual is found by group: a
 * line that calls a model makes blocks of many kinds. Findings by line are then put together by
 * graph, and the sum is judged once more, so that rate and confidence are those of the whole. */
#include "passes/leak/leaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "model/owners.h"
#include "passes/leak/cohorts.h"
#include "passes/leak/leak_groups.h"
#include "passes/leak/leak_holders.h"
#include "passes/leak/leak_owner.h"
#include "passes/leak/leaks_internal.h"
#include "passes/leak/survival.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/state.h"

#define TOGETHER 0.8 /* the part of their rises that lines of one graph share */
enum {
    LEAST_FLAT = 4,   /* steps: of fewer it cannot be said that the later half added nothing */
    SMALL_PARTS = 64, /* of the threshold: less is not told where many lines grow by little */
};

/* ---- by line ---- */

static int add_to_line(struct tmk_leakage *l, struct tmk_leak_line *line, uint32_t group)
{
    const struct tmk_leak_groups *g = &l->groups;
    if (TMK_GROW(line->groups, line->n_groups + 1, line->room) < 0)
        return TMK_ENOMEM;
    line->groups[line->n_groups++] = group;
    tmk_cohorts_levels(&g->groups[group].cohorts, g->n_looks, line->levels, line->blocks);
    if (line->n_groups == 1 || g->groups[group].latest.serial > g->groups[line->root].latest.serial)
        line->root = group;
    return 0;
}

static int add_leak_line(struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    uint64_t *curves[4];
    for (int i = 0; i < 4; i++) {
        curves[i] = tmk_arena_take(&l->arena, (l->groups.n_looks + 1) * sizeof(uint64_t));
        if (!curves[i])
            return TMK_ENOMEM;
    }
    if (TMK_GROW(l->lines, l->n_lines + 1, l->line_room) < 0)
        return TMK_ENOMEM;
    struct tmk_leak_line *new = &l->lines[l->n_lines++];
    *new = *line;
    new->levels = curves[0];
    new->blocks = curves[1];
    new->kept.bytes = curves[2];
    new->kept.blocks = curves[3];
    new->kept.n_before = l->groups.n_before;
    new->kept.has_steps = l->groups.has_steps;
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
    uint64_t input_bytes = 0, all = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = &l->groups.groups[line->groups[i]];
        all += g->kept_bytes;
        input_bytes += tmk_leak_category_of(g) == TIDEMARK_INPUT ? g->kept_bytes : 0;
    }
    line->is_input = input_bytes > all / 2;
    tmk_leak_find_graph_character(l, line);
}

static int make_lines(struct tmk_leakage *l)
{
    struct tmk_textmap keys = {0};
    int rc = 0;
    for (uint32_t i = 0; i < l->groups.n_groups && rc == 0; i++)
        rc = put_in_line(l, &keys, i);
    tmk_textmap_fini(&keys);
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++) {
        tmk_leak_judge_line(l, &l->lines[i]);
        find_line_character(l, &l->lines[i]);
    }
    tmk_leak_drop_consequences(l);
    return rc;
}

/* ---- by graph ---- */

/* The part of all steps that keep something in which both lines do. */
static double kept_together(const struct tmk_leak_line *a, const struct tmk_leak_line *b)
{
    uint32_t n_both = 0, n_either = 0;
    uint32_t at = a->kept.at > b->kept.at ? a->kept.at : b->kept.at;
    for (uint32_t i = 0; i <= at; i++) {
        n_both += a->kept.bytes[i] > 0 && b->kept.bytes[i] > 0;
        n_either += a->kept.bytes[i] > 0 || b->kept.bytes[i] > 0;
    }
    return n_either ? (double)n_both / n_either : 0;
}

static bool is_of_graph(const struct tmk_leakage *l, const struct tmk_leak_line *seed,
                        const struct tmk_leak_line *other)
{
    return other->survival.kind == TMK_SURVIVAL_LEAK && !other->is_taken &&
           other->device == seed->device && tmk_leak_may_share_graph(l, seed, other) &&
           kept_together(seed, other) >= TOGETHER;
}

/* What a call was given may hang on a graph, but is no part of one. */
static bool is_part_of_graph(const struct tmk_leak_group *g)
{
    return g->kept_bytes > 0 && tmk_leak_category_of(g) != TIDEMARK_INPUT;
}

/* Whether parts of the line were made in several lines, or in several places of one in the same
 * module: then calls of modules led to them. */
static bool has_many_sites(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    struct tmk_frame first = {0}, f;
    bool has_first = false;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = &l->groups.groups[line->groups[i]];
        if (!is_part_of_graph(g) || !tmk_stack_site(l->p, g->latest.stack, &f))
            continue;
        if (!has_first)
            first = f;
        has_first = true;
        if (f.line != first.line || !tmk_leak_is_same_text(f.file, first.file))
            return true;
        const char *module = tmk_block_module(l->p, l->contexts, &g->latest);
        for (uint64_t k = 0; k < i; k++) {
            const struct tmk_leak_group *other = &l->groups.groups[line->groups[k]];
            if (is_part_of_graph(other) && other->latest.stack != g->latest.stack && module &&
                tmk_leak_is_same_text(tmk_block_module(l->p, l->contexts, &other->latest), module))
                return true;
        }
    }
    return false;
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
        if (!tmk_leak_grows(line) || line->is_taken)
            continue;
        if (line->may_be_graph && line->survival.kind == TMK_SURVIVAL_LEAK) {
            rc = merge_graph(l, i);
            tmk_leak_judge_line(l, line);
        }
        tmk_leak_find_root(l, line);
        line->is_graph = line->growth.n == 0 && tmk_leak_is_kept_by_graph(l, line);
        if (line->is_graph && has_many_sites(l, line))
            tmk_leak_find_owner(l, line);
        else if (line->is_graph)
            line->has_site =
                tmk_stack_site(l->p, l->groups.groups[line->root].latest.stack, &line->site);
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
        .bytes = line->bursts.bytes,
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

/* A line that grows and is no leak falls back now and then. */
static bool is_cycle(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    return line->bursts.n >= TMK_LEAK_LEAST_BURSTS && line->bursts.bytes >= l->threshold_bytes;
}

static bool is_leak_line(const struct tmk_leak_line *line)
{
    return !line->is_taken && tmk_leak_grows(line) && line->doubt == TMK_DOUBT_NONE;
}

/* Lines that each grow by little leak if all of them together grow by the threshold. */
static uint64_t bytes_of_all(const struct tmk_leakage *l)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < l->n_lines; i++)
        bytes += is_leak_line(&l->lines[i]) ? tmk_leak_growth_bytes(&l->lines[i]) : 0;
    return bytes;
}

static int tell_line(struct tmk_leakage *l, const struct tmk_leak_line *line, uint64_t least)
{
    bool is_large = tmk_leak_growth_bytes(line) >= least;
    if (is_leak_line(line) && is_large)
        return add_found_leak(l, line);
    if (is_leak_line(line)) {
        l->n_small++;
        return 0;
    }
    if (tmk_leak_grows(line))
        return tmk_leak_growth_bytes(line) >= l->threshold_bytes ? add_doubt(l, line) : 0;
    return is_cycle(l, line) ? add_cycle(l, line) : 0;
}

static void sort_leaks(struct tmk_leakage *l)
{
    if (l->n_leaks > 1)
        qsort(l->leaks, (size_t)l->n_leaks, sizeof *l->leaks, by_rate);
    if (l->n_cycles > 1)
        qsort(l->cycles, (size_t)l->n_cycles, sizeof *l->cycles, by_rate);
    if (l->n_doubts > 1)
        qsort(l->doubts, (size_t)l->n_doubts, sizeof *l->doubts, compare_leak_bytes);
}

/* Outputs that are kept beside other things, such as what the model was given, are no results. */
static void judge_results(struct tmk_leakage *l)
{
    bool has_leak = false;
    for (uint64_t i = 0; i < l->n_lines; i++)
        has_leak |= is_leak_line(&l->lines[i]);
    for (uint64_t i = 0; i < l->n_lines && has_leak; i++)
        if (l->lines[i].doubt == TMK_DOUBT_RESULT)
            l->lines[i].doubt = TMK_DOUBT_NONE;
}

static int tell_leaks(struct tmk_leakage *l)
{
    int rc = 0;
    bool has_large = false;
    for (uint64_t i = 0; i < l->n_lines; i++)
        l->lines[i].doubt = tmk_leak_doubt_of(l, &l->lines[i]);
    judge_results(l);
    for (uint64_t i = 0; i < l->n_lines; i++)
        has_large |=
            is_leak_line(&l->lines[i]) && tmk_leak_growth_bytes(&l->lines[i]) >= l->threshold_bytes;
    uint64_t least = l->threshold_bytes;
    if (!has_large && bytes_of_all(l) >= l->threshold_bytes)
        least = l->threshold_bytes / SMALL_PARTS;
    for (uint64_t i = 0; i < l->n_lines && rc == 0; i++)
        if (!l->lines[i].is_taken)
            rc = tell_line(l, &l->lines[i], least);
    sort_leaks(l);
    return rc;
}

static int measure_floor(struct tmk_leakage *l)
{
    uint64_t *levels = tmk_arena_take(&l->arena, (l->groups.n_looks + 1) * sizeof *levels);
    if (!levels)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < l->n_lines; i++)
        for (uint32_t k = 0; k < l->groups.n_looks; k++)
            levels[k] += l->lines[i].levels[k];
    uint32_t n = l->groups.n_looks, half = n / 2;
    l->floor = tmk_floor_of(levels, n);
    l->is_flat = l->groups.has_steps && n >= LEAST_FLAT &&
                 tmk_floor_of(levels + half - 1, n - half + 1).n_rises == 0;
    return 0;
}

/* ---- the pass ---- */

/* Whether a tag says that a model was given the block, as inputs are and caches of keys and values,
 * which come back in each call. */
static bool is_given(uint8_t category)
{
    return category == TIDEMARK_INPUT || category == TIDEMARK_KV_CACHE;
}

static void on_leak_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    struct tmk_leakage *l = arg;
    if (ev->kind == TMK_KIND_FREE && b)
        tmk_leak_groups_freed(&l->groups, &rp->state, ev->time_ns, b);
    else if (ev->kind == TMK_KIND_OOM && !ev->is_of_driver)
        tmk_leak_groups_refused(&l->groups, ev->time_ns);
    else if (ev->kind == TMK_KIND_TAG && b && is_given(ev->category))
        tmk_leak_groups_given(&l->groups, &rp->state, ev->time_ns, b);
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
                                .kinds = TMK_HEARS(FREE) | TMK_HEARS(TAG) | TMK_HEARS(OOM) |
                                         TMK_HEARS(HOLDER) | TMK_HEARS(SEGMENT) |
                                         TMK_HEARS(SEGMENT_END),
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
    if (rc == 0)
        rc = make_lines(l);
    if (rc == 0)
        rc = measure_floor(l);
    if (rc == 0 && l->groups.n_looks >= TMK_LEAK_MIN_STEPS) {
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
    if (l->groups.n_looks < TMK_LEAK_MIN_STEPS)
        return l->is_flat ? TMK_LEAK_CLEAN : TMK_LEAK_TOO_SHORT;
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

struct tmk_leak_floor tmk_leakage_floor(const struct tmk_leakage *l)
{
    const struct tmk_leak_groups *g = &l->groups;
    bool rose = l->floor.n_rises > 0;
    return (struct tmk_leak_floor){
        .bytes = l->floor.bytes,
        .n_rises = l->floor.n_rises,
        .last_step = rose ? g->step[l->floor.last] : TMK_NO_STEP,
        .is_over = rose && 3 * (uint64_t)l->floor.last < 2 * (uint64_t)(g->n_looks - 1),
    };
}

uint64_t tmk_leakage_threshold(const struct tmk_leakage *l)
{
    return l->threshold_bytes;
}
