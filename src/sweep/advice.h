/* SPDX-License-Identifier: MIT */
/* sweep/advice.h - advice from a sweep: the effect of each parameter on the peak, and the largest
 * value that fits on a GPU. All of it comes from the fit, nothing from rules of thumb.
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
    TMK_INFLUENCE_NONE,   /* the parameter is in no term */
    TMK_INFLUENCE_HARDLY, /* less than a hundredth of the peak */
    TMK_INFLUENCE_LINEAR,
    TMK_INFLUENCE_PARTLY, /* a tenth to a half of the growth is quadratic */
    TMK_INFLUENCE_QUADRATIC,
    TMK_INFLUENCE_FALLS,
    TMK_INFLUENCE_UNEXPLAINED, /* cells show that it matters, and the fit does not */
};

struct tmk_influence {
    uint32_t param;
    enum tmk_influence_shape shape;
    struct tmk_fit_effect effect;
    const char *text; /* a sentence */
};

/* The limit of `param` on a device of `capacity`, with the other parameters as in `cell`.
 * Parameters that hardly matter are as in the largest configuration. */
struct tmk_advice_limit {
    uint32_t param, cell;
    uint64_t capacity;
    uint64_t sure;     /* the largest value that fits by the high bound; UINT64_MAX: no limit */
    uint64_t possible; /* larger values do not fit */
    bool is_far; /* more than twice the largest measured value: try it before you rely on it */
};

struct tmk_advice {
    uint64_t overhead;    /* memory of a device that the allocator does not reserve: context, code,
                             others */
    bool is_side_by_side; /* several ran at once: the overhead is not known */
    struct tmk_influence *influences; /* for numeric parameters that vary */
    uint32_t n_influences;
    uint64_t *capacities;
    uint32_t n_capacities;
    struct tmk_advice_limit *limits; /* by parameter, cell, capacity; none for a huge grid */
    uint32_t n_limits;
    uint32_t main_param; /* the parameter with the limits that people ask for: a batch if it
                            matters; or UINT32_MAX */
};

/* Make the advice. `reserved` is the fit of reserved bytes. If it is NULL, or the survey has no
 * fit, there is less advice. `capacity` is the capacity asked about; 0: those of the devices and of
 * common GPUs. Everything is in the arena. 0 or TMK_ENOMEM. */
int tmk_advice_make(const struct tmk_survey *g, const struct tmk_fit *reserved, uint64_t capacity,
                    struct tmk_arena *arena, struct tmk_advice *ret);

/* "none", "hardly", "linear", "partly_quadratic", "quadratic", "falls"; NULL: unknown. */
const char *tmk_influence_name(enum tmk_influence_shape shape);

/* Whether parameter p matters for the advice about other parameters: words with several values do,
 * numbers that change nothing, or hardly anything, do not. */
bool tmk_advice_matters(const struct tmk_results *r, const struct tmk_advice *a, uint32_t p);

#endif
