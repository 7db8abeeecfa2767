/* SPDX-License-Identifier: MIT */
/* forecast_series.c - see forecast_series.h. Shares of the capacity, by step. */
#include "forecast_series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY 85899345920.0 /* 80 GiB */

/* ---- chance ---- */

struct chance {
    uint64_t state;
};

static double uniform(struct chance *c, double low, double high) /* splitmix64 */
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return low + (high - low) * ((double)(z >> 11) / 9007199254740992.0);
}

static double normal(struct chance *c)
{
    double u = uniform(c, 1e-12, 1), v = uniform(c, 0, 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Spread evenly over orders of magnitude. */
static double scaled(struct chance *c, double low, double high)
{
    return exp(uniform(c, log(low), log(high)));
}

static bool happens(struct chance *c, double p)
{
    return uniform(c, 0, 1) < p;
}

/* ---- shapes ---- */

struct shape {
    struct chance c;
    double base, noise;
    double length;  /* steps in which it would fill the rest, or its own time */
    double a, b, w; /* the kind's own */
};

static void begin(struct shape *s, uint64_t seed)
{
    *s = (struct shape){.c = {seed}};
    s->base = uniform(&s->c, 0.1, 0.6);
    s->noise = happens(&s->c, 0.3) ? 0 : scaled(&s->c, 0.0005, 0.03);
    s->length = scaled(&s->c, 60, 2500);
    s->a = uniform(&s->c, 0, 1);
    s->b = uniform(&s->c, 0, 1);
}

typedef double (*shape_function)(struct shape *s, double i);

static double warm_up(const struct shape *s, double i)
{
    return -s->base * 0.6 * exp(-i / (1 + 4 * s->a));
}

static double left(const struct shape *s)
{
    return 1 - s->base;
}

/* Growing, to fit. */

static double fit_line(struct shape *s, double i)
{
    return s->base + left(s) * i / s->length + s->noise * normal(&s->c) + warm_up(s, i);
}

static double fit_slow(struct shape *s, double i)
{
    return s->base + 0.001 * i + 0.3 * s->noise * normal(&s->c) + warm_up(s, i);
}

static double fit_batch(struct shape *s, double i)
{
    double t = i / s->length;
    return s->base + left(s) * t * t + 0.5 * s->noise * normal(&s->c);
}

static double fit_saw_leak(struct shape *s, double i)
{
    double period = 5 + 30 * s->a, tooth = fmod(i, period) / period;
    return s->base + left(s) * i / s->length + 0.1 * s->b * tooth + 0.3 * s->noise * normal(&s->c);
}

static double fit_two_phases(struct shape *s, double i)
{
    double t = i / s->length, turn = 0.1 + 0.3 * s->a, slow = 0.2 * s->b;
    double rise = t < turn ? slow * t : slow * turn + (t - turn);
    return s->base + left(s) * rise + s->noise * normal(&s->c);
}

static double fit_late(struct shape *s, double i)
{
    double t = i / s->length, from = 0.1 + 0.35 * s->a;
    return s->base + left(s) * (t < from ? 0 : (t - from) / (1 - from)) + s->noise * normal(&s->c) +
           warm_up(s, i);
}

static double fit_stairs(struct shape *s, double i)
{
    double n = 8 + floor(12 * s->a);
    return s->base + left(s) * floor(n * i / s->length) / n + 0.3 * s->noise * normal(&s->c);
}

static double fit_power(struct shape *s, double i)
{
    return s->base + left(s) * pow(i / s->length, 1.2 + 1.8 * s->a) +
           s->noise * s->b * normal(&s->c);
}

static double fit_spiked(struct shape *s, double i)
{
    double every = 7 + floor(60 * s->a), spike = fmod(i, every) == every / 2 ? 0.2 * s->b : 0;
    return s->base + left(s) * i / s->length + spike + 0.3 * s->noise * normal(&s->c);
}

static double fit_garbage_leak(struct shape *s, double i)
{
    s->w = happens(&s->c, 0.03 + 0.1 * s->a) ? 0.01 : s->w + 0.01 * s->b * uniform(&s->c, 0, 1);
    return s->base + left(s) * i / s->length + s->w;
}

static double fit_rare_stairs(struct shape *s, double i)
{
    double n = 8 + 25 * s->a;
    s->w = i == 0 ? 0 : s->w + (happens(&s->c, n / s->length) ? left(s) / n : 0);
    return s->base + s->w + 0.3 * s->noise * normal(&s->c);
}

static double fit_uneven(struct shape *s, double i) /* the rate itself wanders */
{
    s->w = i == 0 ? 0 : 0.98 * s->w + 0.1 * normal(&s->c);
    s->a += i == 0 ? -s->a : left(s) / s->length * fmax(1 + s->w, 0);
    return s->base + s->a + 0.2 * s->noise * normal(&s->c);
}

static double fit_after_drop(struct shape *s, double i)
{
    double t = i / s->length, turn = 0.1 + 0.3 * s->a;
    double before = s->base + 0.3 * s->b * left(s) * (1 - exp(-40 * t));
    return (t < turn ? before : s->base + left(s) * (t - turn) / (1 - turn)) +
           s->noise * normal(&s->c);
}

static double fit_random_leak(struct shape *s, double i)
{
    double u = uniform(&s->c, 0, 1) + uniform(&s->c, 0, 1);
    return s->base + left(s) * i / s->length + 0.1 * s->b * u;
}

/* Growing in other ways, to fit. */

static double fit_compound(struct shape *s, double i) /* by a share of itself */
{
    s->w = i == 0 ? s->base : s->w * (1 + (3 + 9 * s->a) / s->length * uniform(&s->c, 0.5, 1.5));
    return s->w + 0.3 * s->noise * uniform(&s->c, 0, 1);
}

static double fit_slowing(struct shape *s, double i)
{
    return s->base + left(s) * pow(i / s->length, 0.45 + 0.4 * s->a) +
           0.3 * s->noise * uniform(&s->c, 0, 1);
}

static double fit_towards(struct shape *s, double i) /* a bound that is above what there is */
{
    double t = i / s->length * (2 + 4 * s->a);
    return s->base + (1.15 + 0.2 * s->b - s->base) * t / (0.7 + t) +
           0.2 * s->noise * uniform(&s->c, 0, 1);
}

static double fit_heavy(struct shape *s, double i)
{
    double spike = 0.004 * exp((1 + 0.6 * s->a) * normal(&s->c));
    return s->base + left(s) * i / s->length + fmin(spike, 0.3);
}

/* Quiet, to fit. */

static double fit_flat(struct shape *s, double i)
{
    return s->base * 1.5 + s->noise * normal(&s->c) + warm_up(s, i);
}

static double fit_settles(struct shape *s, double i)
{
    return s->base + 0.8 * left(s) * s->b * (1 - exp(-i / (4 + s->length / 10))) +
           s->noise * normal(&s->c);
}

static double fit_saw(struct shape *s, double i)
{
    double period = 5 + s->length / 8 * s->a;
    return s->base + 0.3 * s->b * fmod(i, period) / period + s->noise * normal(&s->c);
}

static double fit_evaluation(struct shape *s, double i)
{
    double every = 10 + floor(90 * s->a);
    return s->base + (fmod(i, every) == every - 1 ? 0.3 * s->b : 0) + s->noise * normal(&s->c);
}

static double fit_lengths(struct shape *s, double i)
{
    (void)i;
    return s->base + 0.35 * uniform(&s->c, 0, 1) * uniform(&s->c, 0, 1);
}

static double fit_cache(struct shape *s, double i)
{
    return s->base + 0.04 * log(1 + i) + 0.5 * s->noise * normal(&s->c);
}

static double fit_walk(struct shape *s, double i)
{
    (void)i;
    s->w += 0.004 * normal(&s->c) - 0.02 * s->w;
    return s->base + s->w;
}

static double fit_ramp(struct shape *s, double i)
{
    return s->base + 0.7 * left(s) * s->b * fmin(i / (10 + s->length / 4 * s->a), 1) +
           s->noise * normal(&s->c);
}

static double fit_filled(struct shape *s, double i) /* a buffer, up to its bound */
{
    double turn = s->length * (0.1 + 0.9 * s->a);
    return s->base * 0.6 + (0.97 - s->base * 0.6) * (0.3 + 0.7 * s->b) * fmin(i / turn, 1) +
           0.1 * s->noise * normal(&s->c);
}

static double fit_tide(struct shape *s, double i)
{
    double t = fmod(i / s->length * (2 + 4 * s->b) + s->a, 2), swing = t < 1 ? t : 2 - t;
    return 0.15 + (s->base + 0.1) * swing * swing * (3 - 2 * swing) +
           0.3 * s->noise * normal(&s->c);
}

static double fit_long_saw(struct shape *s, double i)
{
    if (i == 0 || s->w >= 1)
        s->w = 0;
    s->w += 1 / (40 + 250 * s->a) * uniform(&s->c, 0.8, 1.2);
    return s->base + 0.4 * s->b * pow(s->w, 1 + s->a);
}

static double fit_fills_slower(struct shape *s, double i) /* a cache of keys drawn by chance */
{
    double n = 15 + s->length / 6;
    s->w = i == 0 ? 1 : s->w + (happens(&s->c, 1 - s->w / n) ? 1 : 0);
    return s->base + (0.2 + 0.75 * s->b) * left(s) * s->w / n;
}

static double fit_ladder(struct shape *s, double i) /* a few larger phases, and no more */
{
    double n = 3 + floor(3 * s->a), phase = fmin(floor(i / s->length * n), n - 1);
    return s->base * 0.5 + (0.45 + 0.45 * s->b) * phase / n + 0.2 * s->noise * normal(&s->c);
}

static double fit_heavy_flat(struct shape *s, double i)
{
    (void)i;
    return s->base + fmin(0.01 * exp((1 + 0.6 * s->a) * normal(&s->c)), 0.35);
}

static double fit_drift(struct shape *s, double i)
{
    s->w = i == 0 ? 0.2 : s->w + (0.002 + 0.008 * s->a) * normal(&s->c);
    s->w = s->w > 0.35 ? 0.35 : s->w < 0 ? 0 : s->w;
    return s->base + s->w;
}

/* Growing, to check. */

static double check_line(struct shape *s, double i)
{
    double extra = 0.5 * s->noise * (exp(0.7 * normal(&s->c)) - 1);
    return s->base + left(s) * i / s->length + extra + warm_up(s, 2 * i);
}

static double check_slow(struct shape *s, double i) /* with evaluation now and then */
{
    double every = 20 + floor(30 * s->a), spike = fmod(i, every) == 0 && i > 0 ? 0.08 * s->b : 0;
    return s->base + 0.001 * i + spike + 0.2 * s->noise * (uniform(&s->c, -1, 1));
}

static double check_batch(struct shape *s, double i)
{
    return s->base + left(s) * pow(i / s->length, 1.5 + s->a) +
           0.3 * s->noise * uniform(&s->c, -1, 1);
}

static double check_saw_leak(struct shape *s, double i) /* garbage is collected at any time */
{
    s->w = happens(&s->c, 0.08) ? 0 : s->w + 0.006 * s->b;
    return s->base + left(s) * i / s->length + s->w;
}

static double check_context(struct shape *s, double i) /* requests with ever longer contexts */
{
    double period = 12 + 12 * s->a, turn = floor(i / period), part = fmod(i, period) / period;
    double longest = left(s) * (0.1 + 1.1 * turn * period / s->length);
    return s->base + longest * (0.4 + 0.6 * part);
}

static double check_two_phases(struct shape *s, double i) /* the first ends, and gives back */
{
    double t = i / s->length, turn = 0.15 + 0.15 * s->a;
    double before = s->base + 0.1 * left(s);
    return (t < turn ? before : s->base + left(s) * (t - turn) / (1 - turn)) +
           0.5 * s->noise * uniform(&s->c, -1, 1);
}

static double check_late(struct shape *s, double i)
{
    double t = i / s->length, from = 0.05 + 0.35 * s->b;
    return s->base + left(s) * (t < from ? 0 : (t - from) / (1 - from)) +
           0.5 * s->noise * uniform(&s->c, -1, 1) + warm_up(s, i);
}

static double check_stairs(struct shape *s, double i) /* of any height, at any time */
{
    if (i == 0)
        s->w = 0;
    if (happens(&s->c, 18 / s->length))
        s->w += left(s) / 18 * uniform(&s->c, 0.5, 1.5);
    return s->base + s->w;
}

static double check_lengths_leak(struct shape *s, double i)
{
    double u = uniform(&s->c, 0, 1);
    return s->base + left(s) * i / s->length + 0.12 * s->b * u * u;
}

static double check_pairs(struct shape *s, double i) /* every other step keeps something */
{
    return s->base + left(s) * floor(i / 2) * 2 / s->length + 0.02 * s->a * fmod(i, 2);
}

/* Quiet, to check. */

static double check_flat(struct shape *s,
                         double i) /* the optimizer comes at step 1, caches later */
{
    double level = i < 1 ? 0.3 : i < 6 ? 0.9 : 1;
    return s->base * 1.6 * level + s->noise * uniform(&s->c, -1, 1);
}

static double check_plateau(struct shape *s, double i)
{
    double t = i / (3 + 9 * s->a);
    return s->base + 0.9 * left(s) * s->b * (t < 1 ? t : 1) + 0.5 * s->noise * normal(&s->c);
}

static double check_settles(struct shape *s, double i)
{
    double t = i / (5 + s->length / 12);
    return s->base + 0.7 * left(s) * s->b * t / (1 + t) + 0.3 * s->noise * uniform(&s->c, -1, 1);
}

static double check_saw(struct shape *s, double i) /* garbage is collected at any time */
{
    (void)i;
    s->w = s->w > 0.25 || happens(&s->c, 0.03) ? 0 : s->w + 0.0125 + 0.03 * s->b;
    return s->base + s->w + 0.2 * s->noise * normal(&s->c);
}

static double check_evaluation(struct shape *s, double i)
{
    double every = 15 + floor(50 * s->b), in = fmod(i, every);
    return s->base + (in >= every - 4 ? 0.3 * s->a : 0) + s->noise * uniform(&s->c, -1, 1);
}

static double check_outlier(struct shape *s, double i) /* one long batch */
{
    bool is_it = i == floor(s->length * (0.1 + 0.8 * s->b));
    return s->base + (is_it ? 0.8 * left(s) : 0) + 0.5 * s->noise * uniform(&s->c, -1, 1) +
           warm_up(s, i);
}

static double check_lengths(struct shape *s, double i)
{
    (void)i;
    return s->base + fmin(0.05 * exp(0.6 * normal(&s->c)), 0.35);
}

static double check_cache(struct shape *s, double i)
{
    return s->base + 0.05 * sqrt(log(1 + i)) + (happens(&s->c, 0.05) ? 0.01 : 0);
}

static double check_walk(struct shape *s, double i)
{
    if (i == 0)
        s->w = 0;
    s->w += 0.004 * uniform(&s->c, -1, 1);
    s->w = s->w > 0.05 ? 0.05 : s->w < -0.05 ? -0.05 : s->w;
    return s->base + s->w;
}

static double check_swing(struct shape *s, double i)
{
    return s->base + 0.15 * s->b * sin(i / s->length * 6.283185307179586 * (5 + 8 * s->a)) +
           0.3 * s->noise * uniform(&s->c, -1, 1);
}

static double check_shrinks(struct shape *s, double i)
{
    return s->base * (1.4 - 0.6 * i / s->length) + 0.5 * s->noise * normal(&s->c);
}

/* Shapes that were found hard: growing, to judge by. */

static double above(struct shape *s, double part)
{
    return part * s->noise * fabs(normal(&s->c));
}

static double pareto(struct chance *c, double power)
{
    return pow(uniform(c, 1e-9, 1), -1 / power);
}

static double hard_linear(struct shape *s, double i)
{
    return s->base + left(s) * i / s->length + above(s, 0.4);
}

static double hard_buckets(struct shape *s, double i) /* some batches need a third more */
{
    return s->base * (happens(&s->c, 0.25 + 0.15 * s->a) ? 1.3 : 1) + left(s) * i / s->length;
}

static double hard_kept(struct shape *s, double i) /* a checkpoint is kept now and then */
{
    double every = fmax(3, floor(s->length / (8 + floor(20 * s->a))));
    return s->base + left(s) * floor(i / every) * every / s->length + above(s, 0.4);
}

static double hard_exponential(struct shape *s, double i)
{
    return s->base * exp(i / s->length * log(1 / s->base)) + above(s, 0.12);
}

static double hard_root(struct shape *s, double i)
{
    return s->base + left(s) * sqrt(i / s->length) + above(s, 0.12);
}

static double hard_asymptote(struct shape *s, double i) /* its bound is above what there is */
{
    return s->base + (1.08 + 0.06 * s->a - s->base) * (1 - exp(-2.6 * i / s->length)) +
           above(s, 0.12);
}

static double hard_late(struct shape *s, double i)
{
    double start = s->length * (0.25 + 0.2 * s->a);
    return s->base + fmax(0, left(s) * (i - start) / (s->length - start)) + above(s, 0.4);
}

static double hard_garbage(struct shape *s, double i) /* over a floor that rises */
{
    double every = 5 + floor(22 * s->a), tall = 0.08 + 0.04 * s->b;
    return s->base + (left(s) - tall) * i / s->length + tall * fmod(i, every) / every;
}

static double hard_evaluation(struct shape *s, double i)
{
    double every = 18 + floor(14 * s->a);
    return s->base + left(s) * i / s->length + (fmod(i, every) == every - 1 ? 0.12 : 0) +
           above(s, 0.4);
}

static double hard_tail(struct shape *s, double i)
{
    return s->base + left(s) * i / s->length + fmin(0.25, 0.02 * (pareto(&s->c, 1.5) - 1));
}

static double hard_quadratic(struct shape *s, double i)
{
    double t = i / s->length;
    return s->base + left(s) * t * t + above(s, 0.12);
}

/* Quiet, to judge by. */

static double hard_buffer(struct shape *s, double i)
{
    double top = 0.5 + 0.43 * s->a, fill = (0.05 + 0.45 * s->b) * s->length, from = s->base / 2;
    return from + (top - from) * fmin(1, i / fill);
}

static double hard_saw(struct shape *s, double i)
{
    double every = 8 + floor(15 * s->a);
    return s->base * 0.8 + (0.05 + 0.35 * s->b) * fmod(i, every) / every;
}

static double hard_long_saw(struct shape *s, double i)
{
    double every = 50 + floor(280 * s->a);
    return s->base * 0.8 + (0.05 + 0.35 * s->b) * fmod(i, every) / every;
}

static double hard_curriculum(struct shape *s, double i) /* five phases, each larger */
{
    double phase = fmin(4, floor(5 * i / (s->length * 2)));
    if (i == 0 || phase > s->b) {
        s->w = i == 0 ? s->base : s->w + (0.93 - s->w) * uniform(&s->c, 0, 0.4);
        s->b = phase;
    }
    return s->w + above(s, 0.12);
}

static double hard_flat_tail(struct shape *s, double i)
{
    (void)i;
    return fmin(0.96, s->base + 0.02 * (pareto(&s->c, 1.1) - 1));
}

static double hard_walk(struct shape *s, double i)
{
    s->w = (i == 0 ? s->base + 0.2 : s->w) + (0.004 + 0.004 * s->a) * normal(&s->c);
    s->w = s->w > 0.9 ? 0.9 : s->w < 0.15 ? 0.15 : s->w;
    return s->w;
}

static double hard_cosine(struct shape *s, double i)
{
    double turn = 6.283185307179586 * (1 + s->a);
    return 0.5 - 0.35 * cos(turn * i / s->length) + above(s, 0.4);
}

static double hard_cache(struct shape *s, double i) /* keys drawn by chance from n */
{
    double n = 20 + floor(300 * s->a);
    s->w = i == 0 ? 1 : s->w + (happens(&s->c, 1 - s->w / n) ? 1 : 0);
    return s->base + fmin(0.45, 0.95 - s->base) * s->w / n;
}

static double hard_warm_up(struct shape *s, double i)
{
    double slow = s->length / (4 + 16 * s->a);
    return s->base + fmin(0.4, 0.95 - s->base) * (1 - exp(-i / slow));
}

static double hard_doubles(struct shape *s, double i) /* the batch doubles three times */
{
    return 0.1 * pow(2, fmin(3, floor(4 * i / (2 * s->length)))) + above(s, 0.2);
}

static double hard_sorted(struct shape *s, double i) /* batches sorted by length in each epoch */
{
    double every = 30 + floor(190 * s->a), t = fmod(i, every) / every;
    return s->base + fmin(0.35, 0.95 - s->base) * t * t;
}

struct kind {
    const char *name;
    shape_function value;
    bool runs_out, is_slow;
};

static const struct kind to_fit[] = {
    {"line", fit_line, true, false},
    {"slow leak", fit_slow, true, true},
    {"growing batch", fit_batch, true, false},
    {"sawtooth leak", fit_saw_leak, true, false},
    {"two phases", fit_two_phases, true, false},
    {"late leak", fit_late, true, false},
    {"stairs", fit_stairs, true, false},
    {"power", fit_power, true, false},
    {"spiked leak", fit_spiked, true, false},
    {"leak with garbage", fit_garbage_leak, true, false},
    {"rare stairs", fit_rare_stairs, true, false},
    {"uneven leak", fit_uneven, true, false},
    {"after a drop", fit_after_drop, true, false},
    {"leak, any length", fit_random_leak, true, false},
    {"compound", fit_compound, true, false},
    {"slowing", fit_slowing, true, false},
    {"towards a bound above", fit_towards, true, false},
    {"heavy spikes", fit_heavy, true, false},
    {"flat", fit_flat, false, false},
    {"settles", fit_settles, false, false},
    {"sawtooth", fit_saw, false, false},
    {"evaluation", fit_evaluation, false, false},
    {"lengths", fit_lengths, false, false},
    {"cache", fit_cache, false, false},
    {"walk", fit_walk, false, false},
    {"ramp", fit_ramp, false, false},
    {"filled", fit_filled, false, false},
    {"tide", fit_tide, false, false},
    {"long sawtooth", fit_long_saw, false, false},
    {"fills slower", fit_fills_slower, false, false},
    {"ladder", fit_ladder, false, false},
    {"heavy, flat", fit_heavy_flat, false, false},
    {"drift", fit_drift, false, false},
};

static const struct kind to_check[] = {
    {"leak, uneven", check_line, true, false},
    {"slow leak with evaluation", check_slow, true, true},
    {"growing batch", check_batch, true, false},
    {"leak under garbage", check_saw_leak, true, false},
    {"longer contexts", check_context, true, false},
    {"second phase leaks", check_two_phases, true, false},
    {"leak from later on", check_late, true, false},
    {"steps up", check_stairs, true, false},
    {"leak under random lengths", check_lengths_leak, true, false},
    {"leak every other step", check_pairs, true, false},
    {"warm-up, then flat", check_flat, false, false},
    {"plateau", check_plateau, false, false},
    {"settles", check_settles, false, false},
    {"garbage", check_saw, false, false},
    {"evaluation", check_evaluation, false, false},
    {"one long batch", check_outlier, false, false},
    {"random lengths", check_lengths, false, false},
    {"cache", check_cache, false, false},
    {"bounded walk", check_walk, false, false},
    {"swing", check_swing, false, false},
    {"shrinks", check_shrinks, false, false},
};

static const struct kind to_judge[] = {
    {"linear", hard_linear, true, false},
    {"buckets of lengths", hard_buckets, true, false},
    {"checkpoints kept", hard_kept, true, false},
    {"exponential", hard_exponential, true, false},
    {"square root", hard_root, true, false},
    {"towards a bound above", hard_asymptote, true, false},
    {"from later on", hard_late, true, false},
    {"under garbage", hard_garbage, true, false},
    {"under evaluation", hard_evaluation, true, false},
    {"under a heavy tail", hard_tail, true, false},
    {"quadratic", hard_quadratic, true, false},
    {"buffer", hard_buffer, false, false},
    {"sawtooth", hard_saw, false, false},
    {"long sawtooth", hard_long_saw, false, false},
    {"curriculum", hard_curriculum, false, false},
    {"heavy tail", hard_flat_tail, false, false},
    {"walk", hard_walk, false, false},
    {"cosine", hard_cosine, false, false},
    {"cache by chance", hard_cache, false, false},
    {"warm-up", hard_warm_up, false, false},
    {"batch doubles", hard_doubles, false, false},
    {"sorted epochs", hard_sorted, false, false},
};

/* ---- making ---- */

static const struct kind *kinds_of(enum series_set set, unsigned *ret_n)
{
    static const struct {
        const struct kind *kinds;
        unsigned n;
    } sets[] = {
        [SERIES_FIT] = {to_fit, sizeof to_fit / sizeof *to_fit},
        [SERIES_CHECK] = {to_check, sizeof to_check / sizeof *to_check},
        [SERIES_JUDGE] = {to_judge, sizeof to_judge / sizeof *to_judge},
    };
    *ret_n = sets[set].n;
    return sets[set].kinds;
}

unsigned series_n_kinds(enum series_set set)
{
    unsigned n;
    kinds_of(set, &n);
    return n;
}

/* Up to the step that reaches the capacity. A quiet one must not. */
static void fill(const struct kind *kind, struct shape *shape, struct series *ret)
{
    uint32_t most = kind->runs_out ? SERIES_MOST : (uint32_t)fmin(shape->length * 2, SERIES_MOST);
    for (ret->n = 0; ret->n < most; ret->n++) {
        double share = kind->value(shape, ret->n);
        if (!kind->runs_out)
            share = fmin(share, 0.97);
        ret->bytes[ret->n] = floor(fmax(share, 0.001) * CAPACITY);
        if (share >= 1)
            break;
    }
    ret->oom = ret->n;
    ret->n += ret->n < most;
}

void series_make(enum series_set set, unsigned kind, uint64_t seed, struct series *ret)
{
    unsigned n;
    const struct kind *k = &kinds_of(set, &n)[kind];
    struct shape shape;
    begin(&shape,
          seed * 1000003 + kind * 7919 + set * 733331u - (set == SERIES_CHECK ? 233322u : 0));
    ret->name = k->name;
    ret->runs_out = k->runs_out;
    ret->is_slow = k->is_slow;
    ret->is_recorded = false;
    ret->capacity = CAPACITY;
    fill(k, &shape, ret);
}

/* ---- recorded ---- */

/* "# NAME runs_out|quiet CAPACITY" */
static int read_head(char *line, char *name, struct series *ret)
{
    char *rest = NULL, *end;
    const char *mark = strtok_r(line, " \n", &rest), *title = strtok_r(NULL, " \n", &rest);
    const char *what = strtok_r(NULL, " \n", &rest), *capacity = strtok_r(NULL, " \n", &rest);
    if (!mark || strcmp(mark, "#") != 0 || !title || !what || !capacity)
        return -1;
    snprintf(name, SERIES_NAME_BYTES, "%s", title);
    ret->name = name;
    ret->runs_out = strcmp(what, "runs_out") == 0;
    ret->capacity = strtod(capacity, &end);
    return *end == '\0' && ret->capacity > 0 ? 0 : -1;
}

static int read_lines(FILE *in, char *name, struct series *ret)
{
    char *line = NULL, *end;
    size_t room = 0;
    int rc = getline(&line, &room, in) > 0 ? read_head(line, name, ret) : -1;
    for (ret->n = 0; rc == 0 && ret->n < SERIES_MOST && getline(&line, &room, in) > 0; ret->n++) {
        ret->bytes[ret->n] = strtod(line, &end);
        if (end == line)
            rc = -1;
    }
    free(line);
    return rc;
}

int series_read(const char *path, char *name, struct series *ret)
{
    FILE *in = fopen(path, "r");
    if (!in)
        return -1;
    int rc = read_lines(in, name, ret);
    fclose(in);
    ret->is_slow = false;
    ret->is_recorded = true;
    ret->oom = ret->runs_out ? ret->n - 1 : ret->n;
    return rc == 0 && ret->n > 1 ? 0 : -1;
}
