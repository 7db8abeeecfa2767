/* SPDX-License-Identifier: MIT */
/* sweep/advice.h - what a sweep says to people: what each parameter does to the peak, and the
 * largest that fits on a card. All of it comes from the fit, nothing from habit.
 *
 *     struct tmk_advice a;
 *     if (tmk_advice_make(&survey, reserved, 0, arena, &a) != 0) ... TMK_ENOMEM
 *     for (uint32_t i = 0; i < a.n_influences; i++) puts(a.influences[i].text); */
#ifndef TMK_SWEEP_ADVICE_H
#define TMK_SWEEP_ADVICE_H

#include "sweep/fit.h"
#include "sweep/survey.h"

enum tmk_influence_shape {
    TMK_INFLUENCE_UNKNOWN,
    TMK_INFLUENCE_NONE,   /* in no term */
    TMK_INFLUENCE_HARDLY, /* less than a hundredth of the peak */
    TMK_INFLUENCE_LINEAR,
    TMK_INFLUENCE_PARTLY, /* a tenth to a half of the growth is by squares */
    TMK_INFLUENCE_QUADRATIC,
    TMK_INFLUENCE_FALLS,
};

struct tmk_influence {
    uint32_t param;
    enum tmk_influence_shape shape;
    struct tmk_fit_effect effect;
    const char *text; /* a sentence */
};

/* "On a device of `capacity`, with all but `param` as in `cell`." What hardly matters is as in
 * the largest configuration. */
struct tmk_advice_limit {
    uint32_t param, cell;
    uint64_t capacity;
    uint64_t sure;     /* the largest value that fits by the high bound; UINT64_MAX: no limit */
    uint64_t possible; /* what is larger does not fit */
    bool is_far;       /* more than twice what was measured: to be tried before it is believed */
};

struct tmk_advice {
    uint64_t overhead; /* of a device, besides what the allocator reserves: context, code, others */
    bool is_side_by_side;             /* several ran at once: then that is not known */
    struct tmk_influence *influences; /* of parameters that are numbers and vary */
    uint32_t n_influences;
    uint64_t *capacities;
    uint32_t n_capacities;
    struct tmk_advice_limit *limits; /* by parameter, cell, capacity; of a huge grid none */
    uint32_t n_limits;
    uint32_t main_param; /* whose limits people ask for: a batch where it matters; or UINT32_MAX */
};

/* `reserved` is the fit of reserved bytes. Where it is NULL, or the survey has no fit, there is
 * less to say. `capacity` is asked about, 0: those of the devices and of common cards. Everything
 * lies in the arena. 0 or TMK_ENOMEM. */
int tmk_advice_make(const struct tmk_survey *g, const struct tmk_fit *reserved, uint64_t capacity,
                    struct tmk_arena *arena, struct tmk_advice *ret);

/* "none", "hardly", "linear", "partly_quadratic", "quadratic", "falls"; NULL: unknown. */
const char *tmk_influence_name(enum tmk_influence_shape shape);

/* Whether parameter p has a part in what is told of other parameters: words with several values do,
 * numbers that change nothing, or hardly anything, do not. */
bool tmk_advice_matters(const struct tmk_results *r, const struct tmk_advice *a, uint32_t p);

#endif
