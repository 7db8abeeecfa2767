/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_doubts.c - growth that is named but not judged; see leaks.h.
 *
 * Each doubt is about a line that keeps what a leak would keep, and says what else is known of
 * it. */
#include <math.h>

#include "model/owners.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_groups.h"
#include "passes/leak/leaks_internal.h"
#include "passes/leak/survival.h"
#include "tidemark/tidemark.h"

enum {
    WORK_POWER = 3,   /* work grows at most as the cube of what it is given */
    LOADING_PART = 4, /* loading keeps a quarter of all that it makes, or more */
    LEAST_JOINED = 4, /* blocks */
    STATE_COPIES = 2,
    STATE_MORE_PART = 16, /* and a counter for each */
};

/* A result that was put together: after the last step one block was made that is as large as what
 * the line had in several, or larger by one or two steps' growth. */
static bool is_joined_result(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    double level = (double)line->levels[g->n_looks - 1];
    if (!g->has_steps || g->has_oom || line->survival.n == 0 ||
        line->blocks[g->n_looks - 1] < LEAST_JOINED)
        return false;
    for (uint32_t i = 0; i < TMK_LEAK_MAX_LATE; i++) {
        double size = (double)g->late[i].size_bytes;
        if (g->late[i].device == line->device && size >= level &&
            size <= level + 2 * line->survival.per_step)
            return true;
    }
    return false;
}

/* The last block that a call of a model made, or one that was made of it afterwards. */
static bool is_output(const struct tmk_leak_groups *g, const struct tmk_leak_group *group)
{
    uint32_t look = tmk_leak_groups_look_after(g, group->latest.alloc_ns);
    return look < g->n_looks && g->call_serial[look] > 0 &&
           group->latest.serial >= g->call_serial[look] &&
           tmk_leak_category_of(group) != TIDEMARK_INPUT;
}

/* In inference, the output of a model, kept of every call and nothing else of it: this is how
 * results are gathered. Once memory was refused they are too many whatever they are for. */
static bool is_result(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    if (!g->has_steps || l->is_training || g->has_oom || line->is_graph ||
        line->survival.n != line->survival.last - line->survival.first + 1)
        return false;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *group = &g->groups[line->groups[i]];
        if (group->kept_bytes > 0 &&
            (!is_output(g, group) || group->kept_blocks > line->survival.n))
            return false;
    }
    return true;
}

void tmk_leak_inputs(const struct tmk_leakage *l, const struct tmk_leak_line *line,
                     uint64_t *ret_from, uint64_t *ret_to)
{
    const struct tmk_leak_groups *g = &l->groups;
    uint32_t first = line->growth.first, third = (line->growth.last - first + 1) / 3;
    uint64_t from = 0, to = 0;
    for (uint32_t i = 0; i < third; i++) {
        from += g->input_bytes[first + i];
        to += g->input_bytes[line->growth.last - i];
    }
    *ret_from = third ? from / third : 0;
    *ret_to = third ? to / third : 0;
}

/* The mean size in a third of the time, if it grows from `first` to `last` evenly. */
static double third_of(uint64_t first, uint64_t last, double at)
{
    return (double)first + at * (double)(last - first);
}

/* A block that is made larger each time since what the model is given grows too; or nothing is
 * known of that. */
static bool is_work(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    uint64_t from, to, first = line->growth.first_bytes, last = line->growth.last_bytes;
    if (line->growth.n == 0)
        return false;
    tmk_leak_inputs(l, line, &from, &to);
    if (from == 0 || to == 0)
        return true;
    double block = third_of(first, last, 5.0 / 6) / third_of(first, last, 1.0 / 6);
    return log((double)to / (double)from) * WORK_POWER >= log(block);
}

/* Optimizers make state for a parameter when it is first trained. As long as there is no more of it
 * than two copies of all parameters (Adam's moments), it may be that they are unfrozen, or trained
 * by turns. */
static bool is_state(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    uint64_t parameters = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = &l->groups.groups[line->groups[i]];
        if (g->kept_bytes > 0 && tmk_leak_category_of(g) != TIDEMARK_OPTIMIZER_STATE)
            return false;
    }
    for (uint32_t i = 0; i < tmk_parameters_n(l->p); i++)
        parameters += tmk_parameter_get(l->p, i)->size_bytes;
    return line->survival.n > 0 &&
           line->survival.bytes <= STATE_COPIES * parameters + parameters / STATE_MORE_PART;
}

/* Without steps, a process that keeps so much of what it makes loads something: that is its
 * work. */
static bool is_loading(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    const struct tmk_leak_groups *g = &l->groups;
    return !g->has_steps && !l->is_training && line->survival.n > 0 && g->made_bytes > 0 &&
           line->survival.bytes >= g->made_bytes / LOADING_PART;
}

enum tmk_leak_doubt tmk_leak_doubt_of(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    if (!tmk_leak_grows(line))
        return TMK_DOUBT_NONE;
    if (is_work(l, line))
        return TMK_DOUBT_WORK;
    if (is_joined_result(l, line))
        return TMK_DOUBT_JOINED;
    if (is_result(l, line))
        return TMK_DOUBT_RESULT;
    if (is_state(l, line))
        return TMK_DOUBT_STATE;
    if (is_loading(l, line))
        return TMK_DOUBT_LOADING;
    return line->survival.kind == TMK_SURVIVAL_FEW       ? TMK_DOUBT_FEW
           : line->survival.kind == TMK_SURVIVAL_SLOWING ? TMK_DOUBT_SLOWING
                                                         : TMK_DOUBT_NONE;
}

const char *tmk_doubt_name(enum tmk_leak_doubt doubt)
{
    static const char *const names[] = {
        [TMK_DOUBT_NONE] = NULL,         [TMK_DOUBT_FEW] = "few",
        [TMK_DOUBT_SLOWING] = "slowing", [TMK_DOUBT_JOINED] = "joined",
        [TMK_DOUBT_RESULT] = "result",   [TMK_DOUBT_WORK] = "work",
        [TMK_DOUBT_STATE] = "state",     [TMK_DOUBT_LOADING] = "loading"};
    return names[doubt];
}
