/* SPDX-License-Identifier: MIT */
/* sweep/advice.c - see advice.h. */
#include "sweep/advice.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "sweep/fit.h"
#include "sweep/params.h"
#include "sweep/results.h"

#define SEEN_CHANGE                                                                                \
    0.05 /* share of a peak: a parameter that was seen to change so much matters                   \
          */
#define GIB (UINT64_C(1) << 30)
#define LARGEST_WHOLE 1e12

enum { MOST_CAPACITIES = 8, MOST_KINDS = 512, FAR_ABOVE = 16 };
static const uint64_t common_gpus[] = {16 * GIB, 24 * GIB, 40 * GIB, 80 * GIB};

/* ---- measured peaks ---- */

/* Whether configurations ran side by side. Then the driver's figures are about several of them. */
static bool ran_side_by_side(const struct tmk_results *r)
{
    static const char jobs[] = "--jobs=";
    for (uint32_t i = 0; i < r->n_options; i++)
        if (strncmp(r->options[i], jobs, strlen(jobs)) == 0 &&
            strcmp(r->options[i] + strlen(jobs), "1") != 0)
            return true;
    return false;
}

/* Find the overhead: other processes' use may come and go, so the least is what is always there. */
static uint64_t find_overhead(const struct tmk_results *r)
{
    uint64_t least = TMK_BYTES_UNKNOWN;
    if (ran_side_by_side(r))
        return least;
    for (uint32_t i = 0; i < r->n_cells; i++) {
        const struct tmk_cell *c = &r->cells[i];
        if (tmk_cell_is_measured(c) && c->peak_device != TMK_BYTES_UNKNOWN &&
            c->peak_reserved != TMK_BYTES_UNKNOWN && c->peak_device >= c->peak_reserved &&
            c->peak_device - c->peak_reserved < least)
            least = c->peak_device - c->peak_reserved;
    }
    return least;
}

static void add_advice_capacity(struct tmk_advice *a, uint64_t bytes)
{
    uint32_t at = 0;
    if (bytes == 0 || bytes == TMK_BYTES_UNKNOWN || a->n_capacities == MOST_CAPACITIES)
        return;
    while (at < a->n_capacities && a->capacities[at] < bytes)
        at++;
    if (at < a->n_capacities && a->capacities[at] == bytes)
        return;
    memmove(&a->capacities[at + 1], &a->capacities[at],
            (a->n_capacities - at) * sizeof *a->capacities);
    a->capacities[at] = bytes;
    a->n_capacities++;
}

static void find_capacities(const struct tmk_survey *g, uint64_t asked, struct tmk_advice *a)
{
    add_advice_capacity(a, asked);
    for (uint32_t i = 0; asked == 0 && i < TMK_N(common_gpus); i++)
        if (common_gpus[i] / FAR_ABOVE <= g->most) /* beyond that the fit is not reliable */
            add_advice_capacity(a, common_gpus[i]);
    for (uint32_t c = 0; c < g->r->n_cells; c++)
        add_advice_capacity(a, g->r->cells[c].capacity);
}

/* ---- effects of parameters ---- */

const char *tmk_influence_name(enum tmk_influence_shape shape)
{
    static const char *const names[] = {
        [TMK_INFLUENCE_NONE] = "none",
        [TMK_INFLUENCE_HARDLY] = "hardly",
        [TMK_INFLUENCE_LINEAR] = "linear",
        [TMK_INFLUENCE_PARTLY] = "partly_quadratic",
        [TMK_INFLUENCE_QUADRATIC] = "quadratic",
        [TMK_INFLUENCE_FALLS] = "falls",
        [TMK_INFLUENCE_UNEXPLAINED] = "unexplained",
    };
    return names[shape];
}

static enum tmk_influence_shape influence_shape_of(const struct tmk_fit_effect *e)
{
    double grows = e->linear + e->squared, change = fabs(e->bytes_to - e->bytes_from);
    if (!e->known)
        return TMK_INFLUENCE_UNKNOWN;
    if (grows == 0 && e->inverse == 0)
        return TMK_INFLUENCE_NONE;
    if (change < 0.01 * fmax(e->bytes_to, e->bytes_from))
        return TMK_INFLUENCE_HARDLY;
    if (e->bytes_to < e->bytes_from)
        return TMK_INFLUENCE_FALLS;
    return e->squared >= 0.5 * grows   ? TMK_INFLUENCE_QUADRATIC
           : e->squared >= 0.1 * grows ? TMK_INFLUENCE_PARTLY
                                       : TMK_INFLUENCE_LINEAR;
}

static const char *influence_text(const struct tmk_influence *i)
{
    switch (i->shape) {
    case TMK_INFLUENCE_HARDLY:
        return _("hardly matters");
    case TMK_INFLUENCE_LINEAR:
        return i->effect.n_values > 2 ? _("makes it grow linearly")
                                      : _("makes it grow, linearly as far as two values can tell");
    case TMK_INFLUENCE_PARTLY:
        return _("makes it grow, in part quadratically");
    case TMK_INFLUENCE_QUADRATIC:
        return _("makes it grow quadratically");
    case TMK_INFLUENCE_FALLS:
        return _("makes it fall");
    default:
        return "";
    }
}

/* The peak measured for the largest configuration but with this value: a row of the table that the
 * reader has before them. */
static uint64_t measured_at(const struct tmk_survey *g, uint32_t p, double value)
{
    uint32_t choice[TMK_SWEEP_MAX_PARAMS];
    uint64_t most = TMK_BYTES_UNKNOWN;
    memcpy(choice, g->largest->cell->choice, g->r->n_params * sizeof *choice);
    for (choice[p] = 0; choice[p] < g->r->params[p].n_values; choice[p]++) {
        const struct tmk_survey_config *c = tmk_survey_at(g, choice);
        if (c->has_peak && g->r->params[p].numbers[choice[p]] == value &&
            (most == TMK_BYTES_UNKNOWN || c->cell->peak_allocated > most))
            most = c->cell->peak_allocated;
    }
    return most;
}

struct measured_change { /* the two configurations that differ most, in that parameter alone */
    const struct tmk_survey_config *less, *more;
};

/* Find how much of a peak the parameter was seen to change, as a share. */
static double find_measured_change(const struct tmk_survey *g, uint32_t p,
                                   struct measured_change *ret)
{
    double most = 0;
    for (uint32_t i = 0; i < g->n_configs; i++) {
        const struct tmk_survey_config *a = &g->configs[i];
        uint32_t choice[TMK_SWEEP_MAX_PARAMS];
        if (!a->has_peak)
            continue;
        memcpy(choice, a->cell->choice, g->r->n_params * sizeof *choice);
        for (choice[p] = 0; choice[p] < g->r->params[p].n_values; choice[p]++) {
            const struct tmk_survey_config *b = tmk_survey_at(g, choice);
            if (!b->has_peak || b->cell->peak_allocated <= a->cell->peak_allocated)
                continue;
            double share = (double)(b->cell->peak_allocated - a->cell->peak_allocated) /
                           (double)b->cell->peak_allocated;
            if (share > most) {
                most = share;
                *ret = (struct measured_change){a, b};
            }
        }
    }
    return most;
}

/* The fit sees little or nothing of a parameter that was measured to matter. */
static const char *unexplained_sentence(const struct tmk_survey *g, const struct tmk_influence *i,
                                        struct tmk_arena *arena)
{
    struct measured_change m = {0};
    char less[TMK_AMOUNT_BYTES], more[TMK_AMOUNT_BYTES];
    find_measured_change(g, i->param, &m);
    return tmk_arena_format(arena,
                            _("%s matters, and the fit does not explain how: %s with %s, %s with "
                              "%s"),
                            g->r->params[i->param].name,
                            tmk_size_text(m.less->cell->peak_allocated, less), m.less->name,
                            tmk_size_text(m.more->cell->peak_allocated, more), m.more->name);
}

enum { AT_BYTES = 2 * TMK_AMOUNT_BYTES };

/* Write "1.70 GiB at 512", with "about " if the fit estimated it. */
static const char *size_at_text(uint64_t measured, double fitted, double value, char *buffer)
{
    char size[TMK_AMOUNT_BYTES];
    bool is_fitted = measured == TMK_BYTES_UNKNOWN;
    snprintf(buffer, AT_BYTES, _("%s%s at %g"), is_fitted ? _("about ") : "",
             tmk_size_text(is_fitted ? tmk_size_whole(fitted) : measured, size), value);
    return buffer;
}

static bool is_same_size(uint64_t a, uint64_t b)
{
    char one[TMK_AMOUNT_BYTES], other[TMK_AMOUNT_BYTES];
    return strcmp(tmk_size_text(a, one), tmk_size_text(b, other)) == 0;
}

static const char *influence_sentence(const struct tmk_survey *g, const struct tmk_influence *i,
                                      struct tmk_arena *arena)
{
    const char *name = g->r->params[i->param].name;
    const struct tmk_fit_effect *e = &i->effect;
    char from[AT_BYTES], to[AT_BYTES], size[TMK_AMOUNT_BYTES], square[64] = "";
    if (i->shape == TMK_INFLUENCE_UNKNOWN)
        return tmk_arena_format(arena, _("%s: too few cells to say what it does"), name);
    if (i->shape == TMK_INFLUENCE_UNEXPLAINED)
        return unexplained_sentence(g, i, arena);
    if (i->shape == TMK_INFLUENCE_NONE)
        return tmk_arena_format(arena, _("%s changes nothing"), name);
    if (i->shape == TMK_INFLUENCE_PARTLY || i->shape == TMK_INFLUENCE_QUADRATIC)
        snprintf(square, sizeof square, _("; %.0f %% of the growth is by its square"),
                 100 * e->squared / (e->linear + e->squared));
    uint64_t less = measured_at(g, i->param, e->from);
    uint64_t more = measured_at(g, i->param, e->to);
    size_at_text(less, e->bytes_from, e->from, from);
    size_at_text(more, e->bytes_to, e->to, to);
    if (less != TMK_BYTES_UNKNOWN && more != TMK_BYTES_UNKNOWN && more > less &&
        is_same_size(less, more))
        snprintf(to, sizeof to, _("%s more at %g"), tmk_size_text(more - less, size), e->to);
    return tmk_arena_format(arena, "%s %s: %s, %s%s", name, influence_text(i), from, to, square);
}

static int find_influences(const struct tmk_survey *g, struct tmk_arena *arena,
                           struct tmk_advice *a)
{
    const struct tmk_results *r = g->r;
    a->influences = tmk_arena_take(arena, (r->n_params + 1) * sizeof *a->influences);
    if (!a->influences)
        return TMK_ENOMEM;
    for (uint32_t p = 0; g->fit && g->largest && p < r->n_params; p++) {
        if (!r->params[p].numbers || r->params[p].n_values < 2)
            continue;
        struct tmk_influence *i = &a->influences[a->n_influences++];
        i->param = p;
        i->effect = tmk_fit_effect(g->fit, p, g->largest->number);
        i->effect.known = i->effect.known && i->effect.n_values > 1;
        i->shape = influence_shape_of(&i->effect);
        struct measured_change change;
        if ((i->shape == TMK_INFLUENCE_NONE || i->shape == TMK_INFLUENCE_HARDLY) &&
            find_measured_change(g, p, &change) > SEEN_CHANGE)
            i->shape = TMK_INFLUENCE_UNEXPLAINED;
        i->text = influence_sentence(g, i, arena);
        if (!i->text)
            return TMK_ENOMEM;
    }
    return 0;
}

static const struct tmk_influence *influence_of(const struct tmk_advice *a, uint32_t p)
{
    for (uint32_t i = 0; i < a->n_influences; i++)
        if (a->influences[i].param == p)
            return &a->influences[i];
    return NULL;
}

bool tmk_advice_matters(const struct tmk_results *r, const struct tmk_advice *a, uint32_t p)
{
    const struct tmk_influence *i = influence_of(a, p);
    return r->params[p].n_values > 1 && (!i || i->shape >= TMK_INFLUENCE_LINEAR);
}

/* ---- limits ---- */

static bool is_whole_param(const struct tmk_sweep_param *p)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->numbers[i] != floor(p->numbers[i]) || fabs(p->numbers[i]) > LARGEST_WHOLE)
            return false;
    return true;
}

/* Whether a limit can be asked for: of parameters that make the peak grow and are counted in whole
 * numbers. */
static bool can_be_asked(const struct tmk_results *r, const struct tmk_influence *i)
{
    return i->shape >= TMK_INFLUENCE_LINEAR && i->shape < TMK_INFLUENCE_FALLS &&
           is_whole_param(&r->params[i->param]);
}

/* Find the main parameter: a batch that matters, else the one that matters most. */
static uint32_t find_main(const struct tmk_results *r, const struct tmk_advice *a)
{
    uint32_t best = UINT32_MAX;
    double most = -1;
    for (int any = 0; any < 2 && best == UINT32_MAX; any++)
        for (uint32_t i = 0; i < a->n_influences; i++) {
            const struct tmk_influence *it = &a->influences[i];
            const char *name = r->params[it->param].name;
            double change = it->effect.bytes_to - it->effect.bytes_from;
            bool is_batch = strcasestr(name, "batch") || strcasestr(name, "physical");
            if (!can_be_asked(r, it) || (!any && !is_batch) || change <= most)
                continue;
            best = it->param;
            most = change;
        }
    return best;
}

struct limit_search {
    const struct tmk_survey *g;
    const struct tmk_results *r;
    const struct tmk_fit *reserved;
    struct tmk_arena *arena;
    struct tmk_advice *a;
};

static uint32_t n_kinds(const struct limit_search *l, uint32_t p)
{
    uint32_t n = 1;
    for (uint32_t q = 0; q < l->r->n_params && n <= MOST_KINDS; q++)
        n *= q != p && tmk_advice_matters(l->r, l->a, q) ? l->r->params[q].n_values : 1;
    return n;
}

/* Whether the cell represents the configurations that are equal in all parameters that matter but
 * `p`. */
static bool stands_for_others(const struct limit_search *l, uint32_t p, const struct tmk_cell *c)
{
    const uint32_t *largest = l->g->largest->cell->choice;
    if (c->choice[p] != largest[p])
        return false;
    for (uint32_t q = 0; q < l->r->n_params; q++)
        if (!tmk_advice_matters(l->r, l->a, q) && c->choice[q] != largest[q])
            return false;
    return true;
}

static uint64_t room_on(const struct limit_search *l, uint64_t capacity)
{
    uint64_t overhead = l->a->overhead == TMK_BYTES_UNKNOWN ? 0 : l->a->overhead;
    return capacity > overhead ? capacity - overhead : 0;
}

static void add_limit_row(struct limit_search *l, const struct tmk_influence *i, uint32_t cell,
                          uint64_t capacity)
{
    const struct tmk_fit *sure = l->reserved ? l->reserved : l->g->fit;
    uint64_t room = room_on(l, capacity);
    struct tmk_advice_limit *to = &l->a->limits[l->a->n_limits++];
    *to = (struct tmk_advice_limit){.param = i->param, .cell = cell, .capacity = capacity};
    to->sure = tmk_fit_largest(sure, i->param, cell, room);
    to->possible = tmk_fit_largest_possible(l->g->fit, i->param, cell, room);
    to->possible = to->possible > to->sure ? to->possible : to->sure;
}

/* ---- results of tried cells override the fit ---- */

/* Whether two cells are equal but for `p`; or, with `roughly`, in all parameters that matter but
 * `p`. */
static bool is_on_limit_line(const struct limit_search *l, uint32_t p, const struct tmk_cell *a,
                             const struct tmk_cell *b, bool roughly)
{
    for (uint32_t q = 0; q < l->r->n_params; q++)
        if (q != p && a->choice[q] != b->choice[q] &&
            (!roughly || tmk_advice_matters(l->r, l->a, q)))
            return false;
    return true;
}

static bool has_fitted(const struct limit_search *l, const struct tmk_cell *c, uint64_t capacity)
{
    if (!tmk_cell_is_measured(c))
        return false;
    bool was_there = c->capacity != TMK_BYTES_UNKNOWN && c->capacity <= capacity;
    uint64_t needs = c->peak_reserved == TMK_BYTES_UNKNOWN ? c->peak_allocated : c->peak_reserved;
    return was_there || needs <= room_on(l, capacity);
}

static bool has_not_fitted(const struct limit_search *l, const struct tmk_cell *c,
                           uint64_t capacity)
{
    if (c->outcome == TMK_CELL_OOM)
        return c->capacity != TMK_BYTES_UNKNOWN && c->capacity >= capacity;
    return tmk_cell_is_measured(c) && c->peak_allocated > room_on(l, capacity);
}

/* Whether a larger value would need less: then a value that did not fit says nothing about larger
 * ones. */
static bool falls_at(const struct limit_search *l, uint32_t p, uint32_t cell, double value)
{
    double numbers[TMK_SWEEP_MAX_PARAMS];
    const uint32_t *choice = l->r->cells[cell].choice;
    for (uint32_t q = 0; q < l->r->n_params; q++)
        numbers[q] = l->r->params[q].numbers ? l->r->params[q].numbers[choice[q]] : NAN;
    numbers[p] = value;
    struct tmk_estimate here = tmk_fit_at(l->g->fit, numbers, choice);
    numbers[p] = value + 1;
    struct tmk_estimate there = tmk_fit_at(l->g->fit, numbers, choice);
    return here.known && there.known && there.bytes < here.bytes;
}

/* Find the largest value that has fitted, -1: none; and the smallest above it that has not,
 * INFINITY: none. */
static void find_tried(const struct limit_search *l, const struct tmk_advice_limit *to,
                       double *ret_fitted, double *ret_failed)
{
    const struct tmk_results *r = l->r;
    double fitted = -1, failed = INFINITY;
    for (uint32_t c = 0; c < r->n_cells; c++) {
        double value = r->params[to->param].numbers[r->cells[c].choice[to->param]];
        if (value > fitted &&
            is_on_limit_line(l, to->param, &r->cells[to->cell], &r->cells[c], false) &&
            has_fitted(l, &r->cells[c], to->capacity))
            fitted = value;
    }
    for (uint32_t c = 0; c < r->n_cells; c++) {
        double value = r->params[to->param].numbers[r->cells[c].choice[to->param]];
        if (value > fitted && value < failed &&
            is_on_limit_line(l, to->param, &r->cells[to->cell], &r->cells[c], true) &&
            has_not_fitted(l, &r->cells[c], to->capacity) &&
            (fitted >= 0 || !falls_at(l, to->param, to->cell, value)))
            failed = value;
    }
    *ret_fitted = fitted;
    *ret_failed = failed;
}

static void heed_tried(const struct limit_search *l, struct tmk_advice_limit *to)
{
    double fitted, failed;
    find_tried(l, to, &fitted, &failed);
    uint64_t least = fitted > 0 ? (uint64_t)fitted : 0;
    uint64_t most = failed == INFINITY ? UINT64_MAX : failed > 1 ? (uint64_t)failed - 1 : 0;
    to->sure = to->sure < least ? least : to->sure > most ? most : to->sure;
    to->possible = to->possible < to->sure ? to->sure : to->possible > most ? most : to->possible;
}

static void find_limits_of(struct limit_search *l, const struct tmk_influence *i)
{
    if (n_kinds(l, i->param) > MOST_KINDS) /* a list that long is not read */
        return;
    for (uint32_t n = 0; n < l->g->n_configs; n++) {
        const struct tmk_survey_config *c = &l->g->configs[n];
        for (uint32_t k = 0; k < l->a->n_capacities && stands_for_others(l, i->param, c->cell);
             k++) {
            struct tmk_advice_limit *to = &l->a->limits[l->a->n_limits];
            add_limit_row(l, i, c->number, l->a->capacities[k]);
            heed_tried(l, to);
            to->is_far = to->sure != UINT64_MAX && (double)to->sure > 2 * i->effect.to;
        }
    }
}

static int find_every_limit(struct limit_search *l)
{
    size_t room = (size_t)l->a->n_influences * MOST_KINDS * l->a->n_capacities;
    l->a->limits = tmk_arena_take(l->arena, (room + 1) * sizeof *l->a->limits);
    if (!l->a->limits)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < l->a->n_influences; i++)
        if (can_be_asked(l->r, &l->a->influences[i]))
            find_limits_of(l, &l->a->influences[i]);
    return 0;
}

int tmk_advice_make(const struct tmk_survey *g, const struct tmk_fit *reserved, uint64_t capacity,
                    struct tmk_arena *arena, struct tmk_advice *ret)
{
    struct tmk_advice a = {.overhead = find_overhead(g->r),
                           .is_side_by_side = ran_side_by_side(g->r)};
    struct limit_search l = {.g = g, .r = g->r, .reserved = reserved, .arena = arena, .a = &a};
    a.capacities = tmk_arena_take(arena, (MOST_CAPACITIES + 1) * sizeof *a.capacities);
    if (!a.capacities || find_influences(g, arena, &a) != 0)
        return TMK_ENOMEM;
    find_capacities(g, capacity, &a);
    a.main_param = find_main(g->r, &a);
    if (find_every_limit(&l) != 0)
        return TMK_ENOMEM;
    *ret = a;
    return 0;
}
