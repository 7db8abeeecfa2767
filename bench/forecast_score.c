/* SPDX-License-Identifier: MIT */
/* forecast_score.c - how good are the forecasts? forecast_score [--fit] [FOLDER]
 *
 * Goes through series of the set to check (forecast_series.h) and those recorded in FOLDER, and
 * forecasts at moments of each, with nothing but what was before it. Prints
 *   - the error of the predicted time at half way to the step that ran out,
 *   - the quiet series that raised an alarm (high or critical), at any moment,
 *   - of the forecasts of each confidence, how many came true,
 *   - how early a slow leak is seen, and what a forecast costs,
 * and exits 1 when a bound of docs/forecast.md does not hold. --fit prints the weights of
 * src/forecast/oom_forecast.c anew, from the other set: maximum likelihood by Newton's method. */
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
    N_FIT_SEEDS = 40,
    N_CHECK_SEEDS = 40,
    N_MOMENTS = 36,
    N_BINS = 10,
    BIN_LEAST = 40, /* forecasts, for a bin to be judged */
    MOST_SERIES = 1000,
    MOST_FORECASTS = 40000,
    MOST_RECORDED = 64,
};

#define MOST_ERROR 0.10
#define MOST_OFF 0.10
#define RIDGE 5.0

struct forecast { /* that named a time, and could be checked */
    double confidence;
    double features[TMK_OOM_FORECAST_FEATURES];
    bool came_true;
};

struct score {
    struct forecast *forecasts;
    unsigned n_forecasts;
    double errors[MOST_SERIES];
    unsigned n_errors;
    double leads[MOST_SERIES]; /* of slow leaks: the part of the way at the first alarm */
    unsigned n_leads;
    unsigned n_series, n_quiet, n_false, n_recorded;
    double kind_errors[MOST_SERIES];
    unsigned n_kind_errors, n_kind_false;
};

/* ---- looking ---- */

static uint64_t looking_ns, n_looked;

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
    for (unsigned i = 0; i < N_MOMENTS; i++) {
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
    if (runs_out)
        printf("  %-28s %3u  %5.1f %%\n", name, n,
               100 * median(sc->kind_errors, sc->n_kind_errors));
    else
        printf("  %-28s %3u  %3u with an alarm\n", name, n, sc->n_kind_false);
    sc->n_kind_errors = sc->n_kind_false = 0;
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

static int print_score(struct score *sc)
{
    double error = median(sc->errors, sc->n_errors), p90 = sc->errors[sc->n_errors * 9 / 10];
    double lead = median(sc->leads, sc->n_leads), worst_lead = sc->leads[sc->n_leads * 9 / 10];
    printf("series: %u, of them recorded %u, quiet %u\n", sc->n_series, sc->n_recorded,
           sc->n_quiet);
    printf("error of the time at half way: median %.1f %%, of nine in ten under %.1f %% (%u)\n",
           100 * error, 100 * p90, sc->n_errors);
    printf("quiet series with an alarm: %u of %u\n", sc->n_false, sc->n_quiet);
    printf("slow leaks: alarm after %.0f %% of the way (median), %.0f %% (nine in ten)\n",
           100 * lead, 100 * worst_lead);
    double off = print_calibration(sc);
    printf("a forecast takes %.1f us (%llu made)\n", (double)looking_ns / 1e3 / (double)n_looked,
           (unsigned long long)n_looked);
    bool good = sc->n_series >= 40 && error <= MOST_ERROR && sc->n_false == 0 && off <= MOST_OFF;
    printf("%s: median error %.1f %% (at most 10), false alarms %u (none), calibration off by "
           "%.1f points (at most 10)\n",
           good ? "good" : "NOT GOOD", 100 * error, sc->n_false, 100 * off);
    printf("[  %s  ] 1 test(s).\n", good ? "PASSED" : "FAILED"); /* as tools/sum_tests reads it */
    return good ? 0 : 1;
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
            double p = 1 / (1 + exp(-sum));
            for (unsigned i = 0; i < K; i++) {
                g[i] += (f->came_true - p) * f->features[i];
                for (unsigned j = 0; j < K; j++)
                    h[i][j] += p * (1 - p) * f->features[i] * f->features[j];
            }
        }
        solve(h, g);
        for (unsigned i = 0; i < K; i++)
            w[i] += g[i];
    }
    printf("static const double weights[TMK_OOM_FORECAST_FEATURES] = {");
    for (unsigned i = 0; i < K; i++)
        printf("%s%.3f", i ? ", " : "", w[i]);
    printf("};\n");
}

int main(int argc, char **argv)
{
    static struct score sc;
    bool wants_fit = argc > 1 && strcmp(argv[1], "--fit") == 0;
    sc.forecasts = calloc(MOST_FORECASTS, sizeof *sc.forecasts);
    if (!sc.forecasts)
        return 1;
    if (wants_fit) {
        look_at_set(&sc, SERIES_FIT, N_FIT_SEEDS, true);
        fit(&sc);
    } else {
        look_at_set(&sc, SERIES_CHECK, N_CHECK_SEEDS, true);
    }
    unsigned n_bad = !wants_fit && argc > 1 ? look_at_recorded(&sc, argv[1]) : 0;
    int status = print_score(&sc);
    free(sc.forecasts);
    return wants_fit ? 0 : n_bad ? 1 : status;
}
