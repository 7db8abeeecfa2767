/* SPDX-License-Identifier: MIT */
/* sweep/survey.h - a sweep as every view shows it: each configuration once, however often it was
 * repeated.
 *
 * A configuration is represented by its deciding cell: the repeat with the largest peak, because a
 * GPU must have room for that one. The page, the console, the files and the pictures take the cell,
 * the largest configuration, the order of the parameters and the estimates from here, so they
 * agree.
 *
 *     struct tmk_survey g;
 *     if (tmk_survey_init(&g, results) != 0) ... TMK_ENOMEM
 *     for (uint32_t i = 0; i < g.n_configs; i++)
 *         if (g.configs[i].has_peak) ... g.configs[i].cell->peak_allocated ...
 *     tmk_survey_fini(&g); */
#ifndef TMK_SWEEP_SURVEY_H
#define TMK_SWEEP_SURVEY_H

#include "kit/arena.h"
#include "sweep/fit.h"
#include "sweep/results.h"

struct tmk_survey_config {
    const struct tmk_cell *cell; /* the deciding one; without a peak the first that was tried */
    uint32_t number;             /* that cell's number */
    bool has_peak;               /* the cell ended well, and its peak is known */
    uint32_t n_well, n_ill;      /* how many repeats ended well, and how many did not */
    const char *name;    /* "seq=128 batch=8": the parameters with several values; all if none has
                            several; "the command" without parameters */
    const char *values;  /* "128, 8": for lists with lines that would be too long */
    const char *repeats; /* "2 of 3" where some repeats ended well and some did not, else NULL */
};

struct tmk_survey {
    const struct tmk_results *r;       /* borrowed */
    struct tmk_fit *fit;               /* of the allocated bytes; NULL: there is none, */
    const char *why_none;              /* and that is why */
    struct tmk_survey_config *configs; /* in the grid's order */
    uint32_t n_configs;
    uint32_t n_measured;                     /* configurations that have a peak */
    uint32_t n_cells[TMK_CELL_HOPELESS + 1]; /* by outcome */
    uint32_t n_peakless;                     /* cells that ended well, but have no peak */
    const struct tmk_survey_config
        *largest;      /* the first with the largest peak; NULL: none has a peak */
    uint64_t most;     /* that peak; 0: none */
    uint32_t *order;   /* parameters with several values, the one with the largest effect first */
    uint32_t n_order;  /* how many of those */
    uint64_t capacity; /* of the devices, if it is the same for all; else 0 */
    const char *names; /* "seq, batch": the parameters that `values` belong to */
    const char *repeats_note; /* the meaning of "2 of 3" if a configuration has it, else NULL */
    struct tmk_arena arena;
};

/* Make a survey. 0 or TMK_ENOMEM; call fini in both cases. The results are borrowed until then. */
int tmk_survey_init(struct tmk_survey *g, const struct tmk_results *r);
void tmk_survey_fini(struct tmk_survey *g);

/* The configuration with these choices. */
const struct tmk_survey_config *tmk_survey_at(const struct tmk_survey *g, const uint32_t *choice);
/* Estimate what the configuration needs; not known without a fit. */
struct tmk_estimate tmk_survey_estimate(const struct tmk_survey *g,
                                        const struct tmk_survey_config *c);
/* Whether views show an estimate for the configuration: it is known, and there is no measured
 * peak. */
bool tmk_survey_is_estimated(const struct tmk_survey *g, const struct tmk_survey_config *c,
                             struct tmk_estimate *ret);

#endif
