/* SPDX-License-Identifier: MIT */
/* cli/plot_survey.h - a sweep as its pictures see it: each configuration once, whatever its
 * repeats; which parameter matters most; and what a configuration is drawn as. */
#ifndef TMK_CLI_PLOT_SURVEY_H
#define TMK_CLI_PLOT_SURVEY_H

#include "cli/gnuplot.h"
#include "sweep/fit.h"
#include "sweep/results.h"

struct tmk_survey_config {
    const struct tmk_cell *cell; /* of its repeats the one with the largest peak, else the first */
    uint32_t number;             /* of that cell */
    bool has_peak;               /* it ended well, and its peak is known */
    uint32_t n_well, n_ill;      /* repeats that ended well, and that did not */
};

struct tmk_survey {
    const struct tmk_results *r;
    const struct tmk_fit *f; /* NULL: none */
    struct tmk_survey_config *configs;
    uint32_t n_configs;
    uint32_t n_measured;
    uint32_t *order;   /* of parameters with several values: the one with the most effect first */
    uint32_t n_order;  /* how many of those */
    uint32_t largest;  /* configuration with the largest peak */
    uint64_t most;     /* that peak */
    uint64_t capacity; /* of the devices, if it is one; 0 else */
};

/* 0, or TMK_EXIT_FINDING after a message: nothing was measured. fini in both cases. */
int tmk_survey_init(struct tmk_survey *g, const struct tmk_results *r, const struct tmk_fit *f);
void tmk_survey_fini(struct tmk_survey *g);

/* The configuration with these choices. */
const struct tmk_survey_config *tmk_survey_at(const struct tmk_survey *g, const uint32_t *choice);
/* What it would need; not known without a fit. */
struct tmk_estimate tmk_survey_estimate(const struct tmk_survey *g,
                                        const struct tmk_survey_config *c);
/* "seq=128 batch=8", of parameters with several values; where none has, of all; of a sweep without
 * parameters "the command". The caller's. */
char *tmk_survey_name(const struct tmk_survey *g, const struct tmk_survey_config *c);
/* The same without the names, "128, 8", and those: "seq, batch". For lists whose lines would be too
 * long. The caller's. */
char *tmk_survey_values(const struct tmk_survey *g, const struct tmk_survey_config *c);
char *tmk_survey_names(const struct tmk_survey *g);
/* "2 of 3", where some repeats ended well and some did not, and so many are to be; else NULL. The
 * caller's. */
char *tmk_survey_repeats(const struct tmk_survey *g, const struct tmk_survey_config *c);
/* What that means, where there is such a configuration; else NULL. The caller's. */
char *tmk_survey_mixed_text(const struct tmk_survey *g);
/* Add what a sign means to a note of several, *note NULL at first; NULL adds nothing. */
void tmk_survey_note(char **note, const char *text);
/* The sweep's title for `what` of it; the caller's. */
char *tmk_survey_title(const struct tmk_survey *g, const char *what);

/* The pictures, script and all; what tmk_plot_sweep_picture() dispatches to. */
struct tmk_survey_picture {
    unsigned (*height)(const struct tmk_survey *g);
    void (*put)(const struct tmk_survey *g, struct tmk_gnuplot *plot);
};

extern const struct tmk_survey_picture tmk_survey_overview;
extern const struct tmk_survey_picture tmk_survey_heatmap;
extern const struct tmk_survey_picture tmk_survey_components;
extern const struct tmk_survey_picture tmk_survey_operations;

#endif
