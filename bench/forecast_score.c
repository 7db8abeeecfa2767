/* SPDX-License-Identifier: MIT */
/* forecast_score.c - how good are the forecasts? forecast_score [--fit | --quick] [FOLDER]
 *
 * Goes through series of the sets to check and to judge (forecast_series.h) and those recorded in
 * FOLDER, and forecasts at moments of each, with nothing but what was before it. Prints of each set
 *   - the error of the predicted time at half way to the step that ran out,
 *   - the quiet series that raised an alarm (high or critical), at any moment,
 *   - the series that ran out without one,
 *   - of the forecasts of each confidence, how many came true,
 *   - how early a slow leak is seen, and what a forecast costs,
 * and exits 1 when a bound of docs/forecast.md does not hold. --quick takes every third moment.
 * --fit prints the weights of src/forecast/oom_forecast.c anew, from the other set: maximum
 * likelihood by Newton's method. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "forecast/oom_forecast.h"
#include "forecast_series.h"

enum {
    N_SEEDS = 40,
    N_MOMENTS = 36,
    N_BINS = 10,
    BIN_LEAST = 40, /* forecasts, for a bin to be judged */
    MOST_SERIES = 2000,
    MOST_FORECASTS = 80000,
    MOST_RECORDED = 64,
};

#define MOST_ERROR 0.10
#define MOST_ERROR_OF_KIND 0.15 /* of a heavy tail even its true parameters leave 10 % */
#define MOST_FALSE 0.02         /* of the quiet series */
#define MOST_MISSED 0.05        /* of those that ran out */
#define MOST_OFF 0.10
#define RIDGE 5.0
#define SHARPEN 1.25 /* the kinds to fit are noisier than most jobs, which flattens the weights */
#define GROWTH_WEIGHT 2.4 /* half of the kinds are quiet; of jobs that grow fewer are */

struct forecast { /* that named a time, and could be checked */
    double confidence;
    double features[TMK_OOM_FORECAST_FEATURES];
    bool came_true, runs_out;
};

struct score {
    struct forecast *forecasts;
    unsigned n_forecasts;
    double errors[MOST_SERIES];
    unsigned n_errors;
    double leads[MOST_SERIES]; /* of slow leaks: the part of the way at the first alarm */
    unsigned n_leads;
    unsigned n_series, n_quiet, n_false, n_recorded, n_missed;
    double kind_errors[MOST_SERIES];
    unsigned n_kind_errors, n_kind_false, n_kind_missed;
    double worst_kind; /* the largest median error of a kind */
};

/* ---- looking ---- */

static uint64_t looking_ns, n_looked;
static unsigned every_moment = 1; /* of N_MOMENTS, which every one divides */

static struct tmk_oom_forecast look(const struct series *s, uint32_t n)
{
    static struct tmk_oom_forecast_point points[SERIES_MOST];
    for (uint32_t i = 0; i < n; i++)
        points[i] = (struct tmk_oom_forecast_point){i, s->bytes[i]};
    uint64_t start_ns = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    struct tmk_oom_forecast o = tmk_oom_forecast_make(
        points, n,
        &(struct tmk_oom_forecast_terms){.capacity_bytes = s->capacity,
                                         .least_span = TMK_OOM_FORECAST_LEAST_STEPS,
                                         .soon = TMK_OOM_FORECAST_SOON_STEPS});
    looking_ns += tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
    n_looked++;
    return o;
}

/* Whether it ran out between the bounds. What was recorded may end before. */
static void note_forecast(struct score *sc, const struct series *s, uint32_t n,
                          const struct tmk_oom_forecast *o)
{
    bool is_over = s->oom == s->n;
    if ((is_over && s->is_recorded && n - 1 + o->high > s->n) || sc->n_forecasts == MOST_FORECASTS)
        return;
    struct forecast *f = &sc->forecasts[sc->n_forecasts++];
    double left = s->oom - (n - 1.0);
    f->confidence = o->confidence;
    f->runs_out = s->runs_out;
    f->came_true = !is_over && floor(o->low) <= left && left <= ceil(o->high);
    memcpy(f->features, o->features, sizeof f->features);
}

static bool is_alarm(const struct tmk_oom_forecast *o)
{
    return o->risk == TMK_RISK_HIGH || o->risk == TMK_RISK_CRITICAL;
}

static void look_at_moments(struct score *sc, const struct series *s)
{
    double lead = 1;
    bool rang = false;
    for (unsigned i = every_moment - 1; i < N_MOMENTS; i += every_moment) {
        uint32_t n = (uint32_t)(s->oom * (0.1 + 0.025 * i));
        struct tmk_oom_forecast o = look(s, n);
        if (o.has_time)
            note_forecast(sc, s, n, &o);
        if (is_alarm(&o) && !rang)
            lead = (double)n / s->oom;
        rang |= is_alarm(&o);
    }
    if (s->is_slow)
        sc->leads[sc->n_leads++] = lead;
    if (s->oom < s->n) {
        sc->n_missed += !rang;
        sc->n_kind_missed += !rang;
    }
    if (!s->runs_out) {
        sc->n_quiet++;
        sc->n_false += rang;
        sc->n_kind_false += rang;
    }
}

static void look_at_half(struct score *sc, const struct series *s)
{
    uint32_t n = s->oom / 2;
    struct tmk_oom_forecast o = look(s, n);
    double left = s->oom - (n - 1.0);
    double error = o.has_time ? fabs(o.to_oom - left) / left : 1;
    sc->errors[sc->n_errors++] = error;
    sc->kind_errors[sc->n_kind_errors++] = error;
}

static void look_at(struct score *sc, const struct series *s)
{
    sc->n_series++;
    sc->n_recorded += s->is_recorded;
    look_at_moments(sc, s);
    if (s->oom < s->n)
        look_at_half(sc, s);
}

/* ---- figures ---- */

static int rising(const void *va, const void *vb)
{
    double a = *(const double *)va, b = *(const double *)vb;
    return (a > b) - (a < b);
}

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof *v, rising);
    return n == 0 ? NAN : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void print_kind(struct score *sc, const char *name, bool runs_out, unsigned n)
{
    double error = median(sc->kind_errors, sc->n_kind_errors);
    if (runs_out)
        printf("  %-28s %3u  %5.1f %%, %u without an alarm\n", name, n, 100 * error,
               sc->n_kind_missed);
    else
        printf("  %-28s %3u  %3u with an alarm\n", name, n, sc->n_kind_false);
    sc->worst_kind = fmax(sc->worst_kind, runs_out ? error : 0);
    sc->n_kind_errors = sc->n_kind_false = sc->n_kind_missed = 0;
}

static void look_at_set(struct score *sc, enum series_set set, unsigned n_seeds, bool tell)
{
    static struct series s;
    for (unsigned kind = 0; kind < series_n_kinds(set); kind++) {
        for (unsigned seed = 0; seed < n_seeds; seed++) {
            series_make(set, kind, seed, &s);
            look_at(sc, &s);
        }
        if (tell)
            print_kind(sc, s.name, s.runs_out, n_seeds);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Returns how many could not be read. */
static unsigned look_at_recorded(struct score *sc, const char *folder)
{
    static struct series s;
    static char names[MOST_RECORDED][256]; /* NAME_MAX and its end */
    char *path, name[SERIES_NAME_BYTES];
    unsigned n = 0, n_bad = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && n < MOST_RECORDED && (e = readdir(dir)) != NULL;)
        if (strstr(e->d_name, ".txt"))
            snprintf(names[n++], sizeof names[0], "%.255s", e->d_name);
    if (dir)
        closedir(dir);
    qsort(names, n, sizeof names[0], by_name);
    for (unsigned i = 0; i < n; i++) {
        int rc = asprintf(&path, "%s/%s", folder, names[i]) < 0 ? -1 : series_read(path, name, &s);
        if (rc < 0) {
            fprintf(stderr, "forecast_score: cannot read %s\n", names[i]);
            n_bad++;
            continue;
        }
        free(path);
        look_at(sc, &s);
        print_kind(sc, name, s.runs_out, 1);
    }
    return n_bad;
}

/* Returns the farthest that a bin with enough in it is off. */
static double print_calibration(const struct score *sc)
{
    double worst = 0;
    printf("confidence   forecasts   mean said   came true   off by\n");
    for (unsigned b = 0; b < N_BINS; b++) {
        unsigned n = 0, n_true = 0;
        double sum = 0;
        for (unsigned i = 0; i < sc->n_forecasts; i++) {
            const struct forecast *f = &sc->forecasts[i];
            if ((unsigned)(f->confidence * N_BINS) != b)
                continue;
            n++;
            n_true += f->came_true;
            sum += f->confidence;
        }
        if (n == 0)
            continue;
        double said = sum / n, was = (double)n_true / n;
        printf("%.1f to %.1f   %9u   %7.1f %%   %7.1f %%   %+5.1f%s\n", b / (double)N_BINS,
               (b + 1) / (double)N_BINS, n, 100 * said, 100 * was, 100 * (was - said),
               n < BIN_LEAST ? "  (few)" : "");
        if (n >= BIN_LEAST)
            worst = fmax(worst, fabs(was - said));
    }
    return worst;
}

/* Print the figures of a set. */
static void print_score(struct score *sc, const char *what)
{
    double error = median(sc->errors, sc->n_errors), p90 = sc->errors[sc->n_errors * 9 / 10];
    printf("%s: %u series, of them recorded %u, quiet %u\n", what, sc->n_series, sc->n_recorded,
           sc->n_quiet);
    printf("error of the time at half way: median %.1f %%, of nine in ten under %.1f %% (%u); of "
           "one kind at most %.1f %%\n",
           100 * error, 100 * p90, sc->n_errors, 100 * sc->worst_kind);
    printf("quiet series with an alarm: %u of %u\n", sc->n_false, sc->n_quiet);
    printf("series that ran out without an alarm: %u of %u\n", sc->n_missed, sc->n_errors);
    if (sc->n_leads) {
        double lead = median(sc->leads, sc->n_leads);
        printf("slow leaks: alarm after %.0f %% of the way (median), %.0f %% (nine in ten)\n",
               100 * lead, 100 * sc->leads[sc->n_leads * 9 / 10]);
    }
    print_calibration(sc);
}

/* ---- fitting ---- */

enum { K = TMK_OOM_FORECAST_FEATURES };

/* a x = b, by elimination; a is symmetric and positive. */
static void solve(double a[K][K], double b[K])
{
    for (unsigned i = 0; i < K; i++)
        for (unsigned r = i + 1; r < K; r++) {
            double f = a[r][i] / a[i][i];
            for (unsigned c = i; c < K; c++)
                a[r][c] -= f * a[i][c];
            b[r] -= f * b[i];
        }
    for (unsigned i = K; i-- > 0;) {
        for (unsigned c = i + 1; c < K; c++)
            b[i] -= a[i][c] * b[c];
        b[i] /= a[i][i];
    }
}

static void fit(const struct score *sc)
{
    double w[K] = {0};
    for (unsigned round = 0; round < 30; round++) {
        double h[K][K] = {0}, g[K] = {0};
        for (unsigned i = 0; i < K; i++) {
            h[i][i] = RIDGE; /* large weights are believed less */
            g[i] = -RIDGE * w[i];
        }
        for (unsigned n = 0; n < sc->n_forecasts; n++) {
            const struct forecast *f = &sc->forecasts[n];
            double sum = 0;
            for (unsigned i = 0; i < K; i++)
                sum += w[i] * f->features[i];
            double p = 1 / (1 + exp(-sum)), weight = f->runs_out ? GROWTH_WEIGHT : 1;
            for (unsigned i = 0; i < K; i++) {
                g[i] += weight * (f->came_true - p) * f->features[i];
                for (unsigned j = 0; j < K; j++)
                    h[i][j] += weight * p * (1 - p) * f->features[i] * f->features[j];
            }
        }
        solve(h, g);
        for (unsigned i = 0; i < K; i++)
            w[i] += g[i];
    }
    printf("static const double weights[TMK_OOM_FORECAST_FEATURES] = {");
    for (unsigned i = 0; i < K; i++)
        printf("%s%.3f", i ? ", " : "", SHARPEN * w[i]);
    printf("};\n");
}

/* Returns NULL when there is no memory or a recorded series cannot be read. */
static struct score *score_of_set(enum series_set set, const char *what, const char *folder)
{
    struct score *sc = calloc(1, sizeof *sc);
    if (sc)
        sc->forecasts = calloc(MOST_FORECASTS, sizeof *sc->forecasts);
    if (!sc || !sc->forecasts)
        return NULL;
    look_at_set(sc, set, N_SEEDS, true);
    unsigned n_bad = folder ? look_at_recorded(sc, folder) : 0;
    print_score(sc, what);
    return n_bad ? NULL : sc;
}

static void add_score(struct score *sc, const struct score *other)
{
    for (unsigned i = 0; i < other->n_forecasts && sc->n_forecasts < MOST_FORECASTS; i++)
        sc->forecasts[sc->n_forecasts++] = other->forecasts[i];
    for (unsigned i = 0; i < other->n_errors && sc->n_errors < MOST_SERIES; i++)
        sc->errors[sc->n_errors++] = other->errors[i];
    sc->n_series += other->n_series;
    sc->n_recorded += other->n_recorded;
    sc->n_quiet += other->n_quiet;
    sc->n_false += other->n_false;
    sc->n_missed += other->n_missed;
}

/* Whether the bounds hold. How surely jobs go on growing differs from set to set, so that is judged
 * of all together. */
static bool is_good(const struct score *judged, struct score *all)
{
    double error = median(all->errors, all->n_errors), off = print_calibration(all);
    bool good = judged->worst_kind <= MOST_ERROR_OF_KIND && error <= MOST_ERROR &&
                judged->n_false <= MOST_FALSE * judged->n_quiet &&
                judged->n_missed <= MOST_MISSED * judged->n_errors &&
                all->n_false <= MOST_FALSE * all->n_quiet && off <= MOST_OFF;
    printf("%s: median error %.1f %% (at most 10), false alarms %u (at most %.0f of %u), "
           "calibration off by %.1f points (at most 10), no alarm before the OOM %u of %u\n",
           good ? "good" : "NOT GOOD", 100 * error, all->n_false, MOST_FALSE * all->n_quiet,
           all->n_quiet, 100 * off, all->n_missed, all->n_errors);
    return good;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--fit") == 0) {
        struct score *sc = score_of_set(SERIES_FIT, "to fit", NULL);
        if (sc)
            fit(sc);
        return sc ? 0 : 1;
    }
    if (argc > 1 && strcmp(argv[1], "--quick") == 0) {
        every_moment = 3;
        argc--;
        argv++;
    }
    struct score *all = score_of_set(SERIES_CHECK, "checked", argc > 1 ? argv[1] : NULL);
    struct score *judged = score_of_set(SERIES_JUDGE, "judged", NULL);
    bool good = all && judged;
    if (good) {
        puts("together:");
        add_score(all, judged);
        good = is_good(judged, all);
    }
    printf("a forecast takes %.1f us (%llu made)\n", (double)looking_ns / 1e3 / (double)n_looked,
           (unsigned long long)n_looked);
    printf("[  %s  ] 1 test(s).\n", good ? "PASSED" : "FAILED"); /* as tools/sum_tests reads it */
    return good ? 0 : 1;
}
