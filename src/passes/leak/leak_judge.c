/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_judge.c - whether a line keeps more and more, or a block that grows; see
 * leaks.h.
 *
 * What age is usual is found by group, since a line that calls a model makes blocks of many kinds;
 * what is kept is judged by line. */
#include <string.h>

#include "passes/leak/cohorts.h"
#include "passes/leak/leak_groups.h"
#include "passes/leak/leaks_internal.h"
#include "passes/leak/survival.h"
#include "tidemark/tidemark.h"

#define AS_FAST 0.9     /* keys and values grow alike */
#define LEAST_CAUSE 0.1 /* a list of tokens does not explain a cache of keys and values */
enum {
    LEAST_COHORTS_BY_TIME = 8, /* parts of time are no steps, so it takes more of them */
    EARLIER_NUMERATOR = 3,     /* three fifths of the time: what leaks had that much less then */
    EARLIER_DENOMINATOR = 5,
};

/* A run without steps that loads one thing after the other looks like a leak. */
static bool is_model_loading(const struct tmk_leakage *l, const struct tmk_leak_group *g)
{
    uint8_t category = tmk_leak_category_of(g);
    return !l->groups.has_steps && (category == TIDEMARK_PARAMETER || category == TIDEMARK_BUFFER);
}

/* Take what is alive of a group at the line's last moment, unless all of it goes at an age that
 * is not yet seen to be usual: more than a third of the time. */
static void take_kept(const struct tmk_leakage *l, struct tmk_leak_line *line,
                      struct tmk_leak_group *g, uint64_t *earlier)
{
    struct tmk_survivors *kept = &line->kept;
    uint64_t bytes[TMK_MAX_LOOKS] = {0}, blocks[TMK_MAX_LOOKS] = {0};
    g->usual_age = tmk_cohorts_usual_age(&g->cohorts, kept->at);
    g->kept_bytes = g->kept_blocks = 0;
    if (3 * g->usual_age > kept->at || is_model_loading(l, g))
        return;
    tmk_cohorts_kept(&g->cohorts, kept->at, g->usual_age, bytes, blocks);
    for (uint32_t i = 0; i <= kept->at; i++) {
        g->kept_bytes += bytes[i];
        g->kept_blocks += blocks[i];
        kept->bytes[i] += bytes[i];
        kept->blocks[i] += blocks[i];
    }
    if (g->kept_bytes > 0 && g->usual_age > kept->usual_age)
        kept->usual_age = g->usual_age;
    tmk_cohorts_kept(&g->cohorts, kept->at * EARLIER_NUMERATOR / EARLIER_DENOMINATOR, g->usual_age,
                     earlier, NULL);
}

static void judge_survivors(struct tmk_leakage *l, struct tmk_leak_line *line)
{
    struct tmk_leak_groups *g = &l->groups;
    struct tmk_survivors *kept = &line->kept;
    uint64_t earlier[TMK_MAX_LOOKS] = {0};
    kept->at = tmk_last_moment(line->levels, g->n_looks);
    kept->usual_age = kept->n_earlier = kept->n_earlier_kept = 0;
    memset(kept->bytes, 0, g->n_looks * sizeof *kept->bytes);
    memset(kept->blocks, 0, g->n_looks * sizeof *kept->blocks);
    for (uint64_t i = 0; i < line->n_groups; i++)
        take_kept(l, line, &g->groups[line->groups[i]], earlier);
    for (uint32_t i = 0; i <= kept->at; i++) {
        kept->n_earlier += earlier[i] > 0;
        kept->n_earlier_kept += earlier[i] > 0 && kept->bytes[i] >= earlier[i] / 2;
    }
    tmk_survival_judge(kept, &line->survival);
    if (line->survival.kind == TMK_SURVIVAL_LEAK && !g->has_steps &&
        line->survival.n < LEAST_COHORTS_BY_TIME)
        line->survival.kind = TMK_SURVIVAL_FEW;
}

/* ---- one block that grows ---- */

static void add_growth(const struct tmk_leak_groups *g, struct tmk_leak_growth *growth,
                       struct tmk_leak_group *group, const struct tmk_larger *larger)
{
    growth->first =
        growth->n_groups && growth->first < larger->first ? growth->first : larger->first;
    growth->last = growth->last > larger->last ? growth->last : larger->last;
    growth->n = growth->n > larger->n - 1 ? growth->n : larger->n - 1;
    growth->n_groups++;
    growth->n_extended += 2 * group->n_extended >= larger->n;
    growth->first_bytes += larger->first_bytes;
    growth->last_bytes += larger->last_bytes;
    uint64_t bytes = larger->last_bytes - larger->first_bytes;
    growth->per_step +=
        (double)bytes / (double)(g->n_before[larger->last] - g->n_before[larger->first]);
    group->kept_bytes = bytes;
    group->kept_blocks = 0;
}

/* A block that grew until early in the run does not grow now. */
static bool is_growing_still(const struct tmk_larger *larger, uint32_t at)
{
    return at - larger->last <= 2 * ((larger->last - larger->first) / (larger->n - 1) + 1);
}

static void judge_growth(struct tmk_leakage *l, struct tmk_leak_line *line)
{
    line->growth = (struct tmk_leak_growth){0};
    if (line->survival.kind != TMK_SURVIVAL_NONE)
        return;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        struct tmk_leak_group *g = &l->groups.groups[line->groups[i]];
        struct tmk_larger larger;
        g->kept_bytes = g->kept_blocks = 0;
        if (tmk_cohorts_larger(&g->cohorts, line->kept.at, &larger) &&
            is_growing_still(&larger, line->kept.at))
            add_growth(&l->groups, &line->growth, g, &larger);
    }
}

void tmk_leak_judge_line(struct tmk_leakage *l, struct tmk_leak_line *line)
{
    judge_survivors(l, line);
    judge_growth(l, line);
    line->bursts = tmk_bursts_of(line->levels, l->groups.n_looks);
}

bool tmk_leak_grows(const struct tmk_leak_line *line)
{
    return line->survival.kind != TMK_SURVIVAL_NONE || line->growth.n > 0;
}

uint64_t tmk_leak_growth_bytes(const struct tmk_leak_line *line)
{
    return line->growth.n ? line->growth.last_bytes - line->growth.first_bytes
                          : line->survival.bytes;
}

/* What is made of a block that grows, grows too. The causes are blocks that are made of themselves
 * or, where that cannot be seen (autograd keeps the old one for a while), those that grow fastest.
 */
void tmk_leak_drop_consequences(struct tmk_leakage *l)
{
    double fastest = 0, fastest_cause = 0;
    for (uint64_t i = 0; i < l->n_lines; i++) {
        const struct tmk_leak_growth *growth = &l->lines[i].growth;
        if (growth->n && growth->per_step > fastest)
            fastest = growth->per_step;
        if (growth->n && growth->n_extended && growth->per_step > fastest_cause)
            fastest_cause = growth->per_step;
    }
    bool has_cause = fastest_cause > 0 && fastest_cause >= LEAST_CAUSE * fastest;
    for (uint64_t i = 0; i < l->n_lines; i++) {
        struct tmk_leak_growth *growth = &l->lines[i].growth;
        if (has_cause ? growth->n_extended == 0 : growth->per_step < AS_FAST * fastest)
            growth->n = 0;
    }
}
