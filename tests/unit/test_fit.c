/* SPDX-License-Identifier: MIT */
/* How memory grows: sweeps made by formulas, which must come back; with noise, how often the bounds
 * hold; and sweeps that say little. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "kit/arena.h"
#include "sweep/fit.h"
#include "sweep/params.h"
#include "sweep/results.h"
#include "sweep_kit.h"

#define MB 1048576.0
#define GB 1073741824.0

static void assert_near(double is, double should, double part)
{
    if (!(fabs(is - should) <= part * fabs(should)))
        fail_msg("%.17g, not %.17g", is, should);
}

static struct tmk_fit *fit_of(const struct tmk_results *r, enum tmk_fit_of of)
{
    struct tmk_fit *f = NULL;
    struct tmk_error err = {0};
    if (tmk_fit_make(r, of, &f, &err) != 0)
        fail_msg("%s", err.text);
    return f;
}

/* A term by its text, or NULL. */
static const struct tmk_fit_term *term(const struct tmk_fit *f, const char *category,
                                       const char *text)
{
    for (uint32_t i = 0; i < tmk_fit_n_terms(f); i++)
        if (strcmp(tmk_fit_term(f, i)->category, category) == 0 &&
            strcmp(tmk_fit_term(f, i)->text, text) == 0)
            return tmk_fit_term(f, i);
    return NULL;
}

static void assert_term(const struct tmk_fit *f, const char *category, const char *text,
                        double coefficient)
{
    const struct tmk_fit_term *t = term(f, category, text);
    if (!t) {
        for (uint32_t i = 0; i < tmk_fit_n_terms(f); i++)
            print_message("%s %s %g\n", tmk_fit_term(f, i)->category, tmk_fit_term(f, i)->text,
                          tmk_fit_term(f, i)->coefficient);
        fail_msg("no term %s of %s", text, category);
        return;
    }
    assert_near(t->coefficient, coefficient, 1e-3);
}

/* ---- formulas come back ---- */

enum { SEQ, BATCH, PHYSICAL, RANK, N_LORA };
static const char *const lora[N_LORA] = {"seq=128,256,512", "batch=8,16,32", "physical=1,2,4",
                                         "rank=8,16"};

/* As LoRA does it: weights and their gradients by rank, activations by physical batch, plain
 * attention with its square; the batch decides nothing. */
static double lora_parameter(double rank)
{
    return 2 * GB + rank * MB;
}

static double lora_activation(double seq, double physical)
{
    return 300 * MB + physical * seq * 400000 + physical * seq * seq * 3000;
}

static struct tmk_results *lora_sweep(void)
{
    struct tmk_results *r = kit_sweep_open(lora, N_LORA, 1);
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(
            r, c, lora_parameter(kit_sweep_number(r, c, RANK)),
            lora_activation(kit_sweep_number(r, c, SEQ), kit_sweep_number(r, c, PHYSICAL)));
    return r;
}

static void terms_come_back(void **state)
{
    struct tmk_results *r = lora_sweep();
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    (void)state;
    assert_int_equal(tmk_fit_n_terms(f), 5);
    assert_term(f, "parameter", "1", 2 * GB);
    assert_term(f, "parameter", "rank", MB);
    assert_term(f, "activation", "1", 300 * MB);
    assert_term(f, "activation", "seq*physical", 400000);
    assert_term(f, "activation", "seq^2*physical", 3000);
    assert_true(tmk_fit_left_out_worst(f) < 1e-6);
    assert_string_equal(tmk_fit_way(f, 0), "category");
    assert_int_equal(tmk_fit_n_configurations(f), 54);
    /* A place far outside. */
    double numbers[] = {2048, 64, 8, 64};
    struct tmk_estimate e = tmk_fit_at(f, numbers, r->cells[0].choice);
    assert_true(e.known);
    assert_near(e.bytes, lora_parameter(64) + lora_activation(2048, 8), 1e-5);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* With flash attention there is no square, and none is found. */
static void no_square_where_there_is_none(void **state)
{
    struct tmk_results *r = kit_sweep_open(lora, N_LORA, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, 2 * GB,
                       100 * MB +
                           500000 * kit_sweep_number(r, c, SEQ) * kit_sweep_number(r, c, PHYSICAL));
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    assert_int_equal(tmk_fit_n_terms(f), 3);
    assert_term(f, "activation", "seq*physical", 500000);
    struct tmk_fit_effect e = tmk_fit_effect(f, SEQ, 0);
    assert_true(e.known && e.squared == 0 && e.n_values == 3);
    assert_near(e.linear, 500000 * (512 - 128), 1e-5);
    e = tmk_fit_effect(f, BATCH, 0);
    assert_true(e.known && e.linear == 0 && e.bytes_from == e.bytes_to);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* Physical batches larger than the batch were tried too: the smaller one counts. */
static void the_smaller_one_counts(void **state)
{
    struct tmk_results *r = kit_sweep_open(
        (const char *[]){"seq=64,128,192", "batch=1,2,4,8", "physical=1,2,4,8"}, 3, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB,
                       50 * MB + 70000 * kit_sweep_number(r, c, 0) *
                                     fmin(kit_sweep_number(r, c, 1), kit_sweep_number(r, c, 2)));
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    assert_term(f, "activation", "seq*min(batch,physical)", 70000);
    assert_true(tmk_fit_left_out_worst(f) < 1e-6);
    /* Whatever the batch, a physical batch of 1 keeps it small. */
    assert_int_equal(tmk_fit_largest(f, 1, 0, (uint64_t)(2 * GB)), UINT64_MAX);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* Divided among ranks. */
static void what_is_divided(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"gpus=1,2,4,8", "batch=1,2,4"}, 2, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, 16 * GB / kit_sweep_number(r, c, 0),
                       20 * MB * kit_sweep_number(r, c, 1));
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    assert_term(f, "parameter", "1/gpus", 16 * GB);
    assert_term(f, "activation", "batch", 20 * MB);
    assert_true(tmk_fit_effect(f, 0, 0).inverse < -13 * GB);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

static void words_split_the_sweep(void **state)
{
    struct tmk_results *r =
        kit_sweep_open((const char *[]){"attention=plain,flash", "seq=128,256,512,1024"}, 2, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++) {
        double seq = kit_sweep_number(r, c, 1);
        kit_sweep_done(r, c, GB, seq * MB + (c < 4 ? seq * seq * 2000 : 0));
    }
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    double numbers[] = {NAN, 2048};
    struct tmk_estimate plain = tmk_fit_at(f, numbers, (uint32_t[]){0, 0});
    struct tmk_estimate flash = tmk_fit_at(f, numbers, (uint32_t[]){1, 0});
    assert_near(plain.bytes, GB + 2048 * MB + 2048.0 * 2048 * 2000, 1e-4);
    assert_near(flash.bytes, GB + 2048 * MB, 1e-4);
    assert_non_null(term(f, "activation", "seq^2"));
    assert_string_equal(term(f, "activation", "seq^2")->where, "attention=plain");
    assert_int_equal(tmk_fit_largest(f, 0, 0, (uint64_t)(99 * GB)), 0); /* not a number */
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* ---- sweeps that say little ---- */

static void too_few_cells(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=128,256,512"}, 1, 2);
    struct tmk_fit *f = NULL;
    struct tmk_error err = {0};
    (void)state;
    for (uint32_t c = 0; c < 4; c++) /* two configurations, twice */
        kit_sweep_done(r, c, GB, MB);
    assert_int_equal(tmk_fit_make(r, TMK_FIT_ALLOCATED, &f, &err), TMK_EINVAL);
    assert_string_equal(err.text,
                        "too few cells are done to say how memory grows: 2 configurations that "
                        "differ in numbers only; 3 are needed");
    assert_null(f);
    for (uint32_t c = 0; c < 4; c++)
        r->cells[c].outcome = TMK_CELL_FAILED;
    assert_int_equal(tmk_fit_make(r, TMK_FIT_ALLOCATED, &f, NULL), TMK_EINVAL);
    kit_sweep_close(r);
}

/* Of a parameter with one value nothing is known at others, and it takes part in no term. */
static void one_value_only(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=128,256,512,640", "rank=8"}, 2, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB, MB * kit_sweep_number(r, c, 0));
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    assert_term(f, "activation", "seq", MB);
    double numbers[] = {1024, 8};
    assert_near(tmk_fit_at(f, numbers, r->cells[0].choice).bytes, 2 * GB, 1e-5);
    numbers[1] = 16;
    assert_false(tmk_fit_at(f, numbers, r->cells[0].choice).known);
    assert_int_equal(tmk_fit_largest(f, 1, 0, (uint64_t)(99 * GB)), 0);
    assert_int_equal(tmk_fit_effect(f, 1, 0).n_values, 1);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

static void nothing_changes_anything(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=128,256", "rank=8,16"}, 2, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB, 0);
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    assert_int_equal(tmk_fit_n_terms(f), 1);
    assert_term(f, "parameter", "1", GB);
    assert_near(tmk_fit_cell(f, 3).bytes, GB, 1e-9);
    assert_int_equal(tmk_fit_largest(f, 0, 0, (uint64_t)(2 * GB)), UINT64_MAX);
    assert_int_equal(tmk_fit_largest(f, 0, 0, (uint64_t)(GB / 2)), 0);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* Two values of each: a square cannot be told from a line, so a line it is. */
static void two_values_make_a_line(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=128,256", "batch=1,2,4"}, 2, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB, MB * kit_sweep_number(r, c, 0) * kit_sweep_number(r, c, 1));
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    assert_term(f, "activation", "seq*batch", MB);
    assert_int_equal(tmk_fit_n_terms(f), 2);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* Of a huge grid some cells are drawn, and what they say holds for the others. */
static void very_many_cells(void **state)
{
    char values[2][512] = {"a=1", "b=1"};
    (void)state;
    for (int p = 0; p < 2; p++)
        for (int i = 2; i <= 40; i++)
            sprintf(values[p] + strlen(values[p]), ",%d", i);
    struct tmk_results *r = kit_sweep_open((const char *[]){values[0], values[1]}, 2, 2);
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB, MB * kit_sweep_number(r, c, 0) * kit_sweep_number(r, c, 1));
    struct tmk_fit *f = fit_of(r, TMK_FIT_RESERVED);
    assert_in_range(tmk_fit_n_configurations(f), TMK_FIT_MOST - 50, TMK_FIT_MOST + 50);
    for (uint32_t c = 0; c < r->n_cells; c++)
        assert_near(tmk_fit_cell(f, c).bytes, (double)r->cells[c].peak_allocated, 1e-4);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* Figures that nobody has measured must not lead anywhere bad. */
static void absurd_figures(void **state)
{
    struct tmk_results *r = kit_sweep_open(
        (const char *[]){"a=0,-1,1e308,1e-308", "b=1e300,-1e300,5", "c=nan,1"}, 3, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, (double)(UINT64_MAX >> 2), c % 3 ? 1 : 0);
    for (int of = TMK_FIT_ALLOCATED; of <= TMK_FIT_RESERVED; of++) {
        struct tmk_fit *f = NULL;
        if (tmk_fit_make(r, (enum tmk_fit_of)of, &f, NULL) != 0)
            continue;
        for (uint32_t c = 0; c < r->n_cells; c++) {
            struct tmk_estimate e = tmk_fit_cell(f, c);
            assert_true(!e.known || (e.low >= 0 && e.low <= e.high));
            (void)tmk_fit_largest(f, 0, c, UINT64_MAX);
            (void)tmk_fit_effect(f, 1, c);
        }
        tmk_fit_close(f);
    }
    kit_sweep_close(r);
}

/* ---- cells that did not end well ---- */

static void only_done_cells_count(void **state)
{
    struct tmk_results *r = lora_sweep();
    struct tmk_fit *all = fit_of(r, TMK_FIT_ALLOCATED);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c += 5) {
        r->cells[c].outcome = TMK_CELL_OOM;
        r->cells[c].peak_allocated = 12345; /* what there was when it ended says nothing */
        r->cells[c].capacity = (uint64_t)(80 * GB);
    }
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    for (uint32_t c = 0; c < r->n_cells; c++)
        assert_near(tmk_fit_cell(f, c).bytes, tmk_fit_cell(all, c).bytes, 1e-5);
    assert_true(tmk_fit_contradicts(f, 0)); /* would have fitted easily */
    assert_false(tmk_fit_contradicts(f, 1));
    r->cells[0].capacity = (uint64_t)GB;
    assert_false(tmk_fit_contradicts(f, 0));
    assert_true(isnan(tmk_fit_left_out(f, 0)));
    assert_true(tmk_fit_left_out(f, 1) < 1e-6);
    tmk_fit_close(all);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* ---- the largest that fits ---- */

static void the_largest_that_fits(void **state)
{
    struct tmk_results *r = lora_sweep();
    struct tmk_fit *f = fit_of(r, TMK_FIT_RESERVED);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++) {
        double seq = kit_sweep_number(r, c, SEQ), rank = kit_sweep_number(r, c, RANK);
        uint64_t largest = tmk_fit_largest(f, PHYSICAL, c, (uint64_t)(24 * GB)), truth = 0;
        while (lora_parameter(rank) + lora_activation(seq, (double)truth + 1) <= 24 * GB)
            truth++;
        assert_int_equal(largest, truth);
        assert_int_equal(tmk_fit_largest_possible(f, PHYSICAL, c, (uint64_t)(24 * GB)), truth);
        assert_int_equal(tmk_fit_largest(f, BATCH, c, (uint64_t)(24 * GB)), UINT64_MAX);
        assert_int_equal(tmk_fit_largest(f, BATCH, c, (uint64_t)GB), 0);
    }
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* ---- the peak moves ---- */

/* The larger one of two stages: what is alive jumps from the one to the other. */
static void a_peak_that_moves(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"batch=1,2,3,4,6,8,12,16"}, 1, 1);
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++) {
        double batch = kit_sweep_number(r, c, 0), forward = GB + 200 * MB * batch, step = 2 * GB;
        struct tmk_cell_stage *stages = tmk_arena_take(r->arena, 2 * sizeof *stages);
        if (forward > step)
            kit_sweep_done(r, c, GB, 200 * MB * batch);
        else
            kit_sweep_done(r, c, 2 * GB, 0);
        stages[0] = (struct tmk_cell_stage){.name = "forward", .peak = (uint64_t)forward};
        stages[1] = (struct tmk_cell_stage){.name = "optimizer", .peak = (uint64_t)step};
        r->cells[c].stages = stages;
        r->cells[c].n_stages = 2;
    }
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    assert_string_equal(tmk_fit_way(f, 0), "stage");
    assert_true(tmk_fit_left_out_worst(f) < 1e-6);
    assert_term(f, "stage forward", "batch", 200 * MB);
    assert_near(tmk_fit_at(f, (double[]){32}, r->cells[0].choice).bytes, GB + 6400 * MB, 1e-5);
    assert_near(tmk_fit_at(f, (double[]){0}, r->cells[0].choice).bytes, 2 * GB, 1e-5);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* ---- noise ---- */

static uint64_t random_state;

static double uniform(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(random_state >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Weights of a gigabyte, activations by sequence and batch; noise of 2 % in both, or in one. */
static double noisy_weights(unsigned round)
{
    return GB * (1 + (round % 2 ? 0.02 * normal() : 0));
}

static double noisy_activation(double seq, double batch)
{
    return (100 * MB + 900000 * seq * batch + GB) * (1 + 0.02 * normal());
}

/* New cells of the same kind, and of the corner where both parameters are twice what was measured:
 * how many of 100 are within the bounds, which should be 90. */
static void bounds_hold_nine_times_in_ten(void **state)
{
    unsigned inside = 0, outside = 0, beyond_inside = 0, n_beyond = 0;
    (void)state;
    random_state = 11;
    for (unsigned round = 0; round < 60; round++) {
        struct tmk_results *r =
            kit_sweep_open((const char *[]){"seq=128,256,384,512", "batch=1,2,4,8"}, 2, 1);
        for (uint32_t c = 0; c < r->n_cells; c++) {
            double seq = kit_sweep_number(r, c, 0), batch = kit_sweep_number(r, c, 1);
            kit_sweep_done(r, c, noisy_weights(round), noisy_activation(seq, batch));
        }
        struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
        for (unsigned i = 0; i < 20; i++) {
            double at[] = {floor(128 + 384 * uniform()), 1 + floor(8 * uniform())};
            bool is_beyond = i % 4 == 0;
            if (is_beyond) {
                at[0] = 2 * 512;
                at[1] = 2 * 8;
            }
            double truth = noisy_weights(round) + noisy_activation(at[0], at[1]);
            struct tmk_estimate e = tmk_fit_at(f, at, r->cells[0].choice);
            bool is_in = truth >= e.low && truth <= e.high;
            inside += is_in && !is_beyond;
            outside += !is_in && !is_beyond;
            beyond_inside += is_in && is_beyond;
            n_beyond += is_beyond;
        }
        tmk_fit_close(f);
        kit_sweep_close(r);
    }
    print_message("inside %u of %u, beyond %u of %u\n", inside, inside + outside, beyond_inside,
                  n_beyond);
    assert_in_range(100 * inside / (inside + outside), 88, 98);
    assert_in_range(100 * beyond_inside / n_beyond, 88, 98);
}

/* Repeats of a cell are left out together: twins would tell each other's answer. */
static void repeats_are_left_out_together(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"mode=1,2,3,4,5,6"}, 1, 3);
    (void)state;
    /* No rule at all: what others say of a configuration is wrong, whatever its twins say. */
    static const double bytes[] = {7, 1, 5, 2, 9, 3};
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, 0, bytes[c / 3] * GB);
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    assert_int_equal(tmk_fit_n_configurations(f), 6);
    assert_true(tmk_fit_left_out_median(f) > 0.3);
    tmk_fit_close(f);
    kit_sweep_close(r);
}

/* What is said of a cell left out is what a fit of all the others says of it. */
static void left_out_as_by_brute_force(void **state)
{
    struct tmk_results *r =
        kit_sweep_open((const char *[]){"seq=128,256,512", "batch=1,2,4,8"}, 2, 1);
    (void)state;
    random_state = 3;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB,
                       MB * kit_sweep_number(r, c, 0) * kit_sweep_number(r, c, 1) *
                           (1 + 0.1 * normal()));
    struct tmk_fit *all = fit_of(r, TMK_FIT_ALLOCATED);
    double worst = 0;
    assert_string_equal(tmk_fit_way(all, 0), "category");
    for (uint32_t c = 0; c < r->n_cells; c++) {
        r->cells[c].outcome = TMK_CELL_PENDING;
        struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
        double truth = (double)r->cells[c].peak_allocated;
        double error = fabs(tmk_fit_cell(f, c).bytes - truth) / truth;
        if (strcmp(tmk_fit_way(f, c), "category") == 0)
            assert_near(tmk_fit_left_out(all, c), error, 1e-9);
        worst = fmax(worst, tmk_fit_left_out(all, c));
        r->cells[c].outcome = TMK_CELL_DONE;
        tmk_fit_close(f);
    }
    assert_true(worst == tmk_fit_left_out_worst(all));
    tmk_fit_close(all);
    kit_sweep_close(r);
}

/* ---- the truth ---- */

/* A small Llama with LoRA adapters, measured with torch (tests/data/sweep/README.md). */
static struct tmk_results *load_llama(void)
{
    struct tmk_results *r = NULL;
    struct tmk_error err = {0};
    if (tmk_results_load("tests/data/sweep/llama", &r, &err) != 0)
        fail_msg("%s", err.text);
    return r;
}

static void a_real_training_is_told_by_the_others(void **state)
{
    struct tmk_results *r = load_llama();
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    (void)state;
    assert_int_equal(tmk_fit_n_configurations(f), 42);
    assert_true(tmk_fit_left_out_median(f) < 0.002);
    assert_true(tmk_fit_left_out_worst(f) < 0.01);
    /* 8 heads of 4 layers keep 4 bytes for each pair of places; a number of 4 for each rank and
     * place in 8 adapters. */
    assert_near(term(f, "activation", "seq^2*physical")->coefficient, 4 * 8 * 4, 0.01);
    assert_near(term(f, "parameter", "rank")->coefficient, 14336, 1e-6);
    assert_near(term(f, "optimizer_state", "rank")->coefficient, 2 * 14336, 1e-3);
    struct tmk_fit *reserved = NULL;
    assert_int_equal(tmk_fit_make(r, TMK_FIT_RESERVED, &reserved, NULL), TMK_EINVAL);
    tmk_fit_close(f);
    tmk_results_close(r);
}

/* From physical batches of 1, 2 and 4 to those of 8. */
static void a_real_training_is_told_beyond(void **state)
{
    struct tmk_results *r = load_llama();
    int physical = tmk_params_find(r->params, r->n_params, "physical", strlen("physical"));
    uint32_t n = 0;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        if (r->cells[c].outcome == TMK_CELL_DONE && kit_sweep_number(r, c, (uint32_t)physical) == 8)
            r->cells[c].outcome = TMK_CELL_PENDING;
    struct tmk_fit *f = fit_of(r, TMK_FIT_ALLOCATED);
    for (uint32_t c = 0; c < r->n_cells; c++) {
        if (r->cells[c].outcome != TMK_CELL_PENDING)
            continue;
        assert_near(tmk_fit_cell(f, c).bytes, (double)r->cells[c].peak_allocated, 0.02);
        n++;
    }
    assert_int_equal(n, 6);
    tmk_fit_close(f);
    tmk_results_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_come_back),
        cmocka_unit_test(no_square_where_there_is_none),
        cmocka_unit_test(the_smaller_one_counts),
        cmocka_unit_test(what_is_divided),
        cmocka_unit_test(words_split_the_sweep),
        cmocka_unit_test(too_few_cells),
        cmocka_unit_test(one_value_only),
        cmocka_unit_test(nothing_changes_anything),
        cmocka_unit_test(two_values_make_a_line),
        cmocka_unit_test(very_many_cells),
        cmocka_unit_test(absurd_figures),
        cmocka_unit_test(only_done_cells_count),
        cmocka_unit_test(the_largest_that_fits),
        cmocka_unit_test(a_peak_that_moves),
        cmocka_unit_test(bounds_hold_nine_times_in_ten),
        cmocka_unit_test(repeats_are_left_out_together),
        cmocka_unit_test(left_out_as_by_brute_force),
        cmocka_unit_test(a_real_training_is_told_by_the_others),
        cmocka_unit_test(a_real_training_is_told_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
