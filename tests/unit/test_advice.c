/* SPDX-License-Identifier: MIT */
/* What a sweep says: sentences and limits, of sweeps made by formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kit/amount.h"
#include "kit/arena.h"
#include "sweep/advice.h"
#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"
#include "sweep_kit.h"

#define MB 1048576.0
#define GB 1073741824.0
#define GIB(n) ((uint64_t)(n) << 30)

struct said {
    struct tmk_arena arena;
    struct tmk_survey g;
    struct tmk_fit *reserved;
    struct tmk_advice a;
};

static void ask(const struct tmk_results *r, uint64_t capacity, struct said *s)
{
    *s = (struct said){.reserved = NULL};
    assert_int_equal(tmk_survey_init(&s->g, r), 0);
    (void)tmk_fit_make(r, TMK_FIT_RESERVED, &s->reserved, NULL);
    assert_int_equal(tmk_advice_make(&s->g, s->reserved, capacity, &s->arena, &s->a), 0);
}

static void forget(struct said *s)
{
    tmk_survey_fini(&s->g);
    tmk_fit_close(s->reserved);
    tmk_arena_fini(&s->arena);
}

static struct tmk_results *lora_sweep(void)
{
    struct tmk_results *r =
        kit_sweep_open((const char *[]){"seq=128,256,512", "batch=8,16", "physical=1,2,4",
                                        "rank=8,16", "attention=plain"},
                       5, 1);
    for (uint32_t c = 0; c < r->n_cells; c++) {
        double seq = kit_sweep_number(r, c, 0), physical = kit_sweep_number(r, c, 2);
        kit_sweep_done(r, c, 2 * GB + kit_sweep_number(r, c, 3) * MB,
                       physical * seq * 100000 + physical * seq * seq * 3000);
    }
    return r;
}

static void sentences_are_the_fits(void **state)
{
    struct tmk_results *r = lora_sweep();
    struct said s;
    (void)state;
    ask(r, 0, &s);
    assert_int_equal(s.g.largest->number, 29); /* the first of two: the batch changes nothing */
    assert_int_equal(s.a.n_influences, 4);     /* words have none */
    assert_string_equal(s.a.influences[0].text,
                        "seq makes it grow quadratically: 2.25 GiB at 128, 5.14 GiB at 512; 95 % "
                        "of the growth is by its square");
    assert_string_equal(s.a.influences[1].text, "batch changes nothing");
    assert_string_equal(s.a.influences[2].text,
                        "physical makes it grow linearly: 2.80 GiB at 1, 5.14 GiB at 4");
    assert_string_equal(s.a.influences[3].text, "rank hardly matters: 5.13 GiB at 8, 5.14 GiB at "
                                                "16");
    assert_string_equal(tmk_influence_name(s.a.influences[0].shape), "quadratic");
    assert_int_equal(s.a.main_param, 2); /* the batch that matters */
    forget(&s);
    kit_sweep_close(r);
}

/* Rows for each value of what matters, columns for each card. */
static void limits_are_the_truth(void **state)
{
    struct tmk_results *r = lora_sweep();
    struct said s;
    uint32_t n = 0;
    (void)state;
    ask(r, GIB(24), &s);
    assert_int_equal(s.a.n_capacities, 1);
    for (uint32_t i = 0; i < s.a.n_limits; i++) {
        const struct tmk_advice_limit *l = &s.a.limits[i];
        double seq = kit_sweep_number(r, l->cell, 0);
        if (l->param != 2)
            continue;
        uint64_t truth =
            (uint64_t)((24 * GB - 2 * GB - 16 * MB) / (seq * 100000 + seq * seq * 3000));
        assert_int_equal(l->sure, truth);
        assert_int_equal(l->possible, truth);
        assert_int_equal(l->is_far, truth > 8);
        n++;
    }
    assert_int_equal(n, 3);
    forget(&s);
    kit_sweep_close(r);
}

/* What the driver's figure has more than the allocator's is not for us. */
static void context_is_left_free(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"batch=1,2,4,8"}, 1, 1);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++) {
        kit_sweep_done(r, c, 2 * GB, GB * kit_sweep_number(r, c, 0));
        r->cells[c].peak_device = r->cells[c].peak_reserved + GIB(1) + c;
        r->cells[c].capacity = GIB(80);
    }
    ask(r, GIB(24), &s);
    assert_int_equal(s.a.overhead, GIB(1));
    assert_int_equal(s.a.n_capacities, 2); /* asked, and its own */
    assert_int_equal(s.a.limits[0].capacity, GIB(24));
    assert_int_equal(s.a.limits[0].sure, 20); /* 21 would be full to the byte */
    assert_int_equal(s.a.limits[1].capacity, GIB(80));
    forget(&s);
    kit_sweep_close(r);
}

/* ---- what was tried goes before what the fit says ---- */

static const struct tmk_advice_limit *limit_of(const struct said *s, uint64_t capacity)
{
    for (uint32_t i = 0; i < s->a.n_limits; i++)
        if (s->a.limits[i].capacity == capacity)
            return &s->a.limits[i];
    fail_msg("nothing is said of %u GiB", (unsigned)(capacity >> 30));
    return NULL;
}

/* A part that is divided among n, and one that grows: too few do not fit either. */
static void what_fits_may_begin_above_one(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"n=1,2,3,4,6,8,12,16"}, 1, 1);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++) {
        double n = kit_sweep_number(r, c, 0);
        kit_sweep_done(r, c, 10 * GB / n, n * GB);
    }
    static const struct {
        uint64_t gib, largest;
    } truth[] = {{6, 0}, {8, 6}, {9, 7}, {12, 11}, {40, 39}};
    for (size_t i = 0; i < sizeof truth / sizeof *truth; i++) {
        ask(r, GIB(truth[i].gib), &s);
        const struct tmk_advice_limit *l = limit_of(&s, GIB(truth[i].gib));
        assert_int_equal(l->sure, truth[i].largest);
        assert_int_equal(l->possible, truth[i].largest);
        forget(&s);
    }
    kit_sweep_close(r);
}

static void fractions_and_what_falls_are_not_asked(void **state)
{
    struct tmk_results *r =
        kit_sweep_open((const char *[]){"p=0.1,0.2,0.3,0.4,0.5", "gpus=1,2,4"}, 2, 1);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, 8 * GB / kit_sweep_number(r, c, 1),
                       10 * GB * kit_sweep_number(r, c, 0));
    ask(r, GIB(8), &s);
    assert_int_equal(s.a.influences[0].shape, TMK_INFLUENCE_LINEAR);
    assert_int_equal(s.a.influences[1].shape, TMK_INFLUENCE_FALLS);
    assert_int_equal(s.a.n_limits, 0);
    assert_int_equal(s.a.main_param, UINT32_MAX);
    forget(&s);
    kit_sweep_close(r);
}

/* The fit is of small batches; the others ran out, more than they would by it. */
static void what_ran_out_does_not_fit(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"batch=1,2,3,4,5,6,7,8"}, 1, 1);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++) {
        kit_sweep_done(r, c, GB, GB * kit_sweep_number(r, c, 0));
        r->cells[c].capacity = GIB(10);
        r->cells[c].outcome = c < 5 ? TMK_CELL_DONE : TMK_CELL_OOM;
    }
    ask(r, 0, &s);
    assert_int_equal(limit_of(&s, GIB(10))->sure, 5);
    assert_int_equal(limit_of(&s, GIB(10))->possible, 5);
    assert_int_equal(limit_of(&s, GIB(16))->possible, 15); /* there they were not tried */
    forget(&s);
    ask(r, GIB(8), &s); /* less than that does not fit on less */
    assert_int_equal(limit_of(&s, GIB(8))->possible, 5);
    forget(&s);
    kit_sweep_close(r);
}

/* Noise makes bounds wide; what was measured is nevertheless known. */
static void what_has_fitted_fits(void **state)
{
    static const double gib[] = {1.3, 2.6, 2.7, 4.4, 4.7, 6.6, 6.6, 8.98, 9.4, 11};
    struct tmk_results *r = kit_sweep_open((const char *[]){"batch=1,2,3,4,5,6,7,8,9,10"}, 1, 1);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, 0, GB * gib[c]);
    ask(r, (uint64_t)(9.2 * GB), &s);
    assert_int_equal(s.a.limits[0].sure, 8);
    assert_int_equal(s.a.limits[0].possible, 8); /* 9 was measured above it */
    forget(&s);
    kit_sweep_close(r);
}

/* What is said of a configuration that was not measured is an estimate. */
static void estimates_are_called_so(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=1,2,4", "batch=1,2,4"}, 2, 1);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB, GB * kit_sweep_number(r, c, 0) * kit_sweep_number(r, c, 1));
    r->cells[8].outcome = TMK_CELL_OOM;
    ask(r, 0, &s);
    assert_int_equal(s.g.largest->number, 5); /* seq 2, batch 4 */
    assert_string_equal(s.a.influences[0].text, "seq makes it grow linearly: 5.00 GiB at 1, about "
                                                "17.00 GiB at 4");
    forget(&s);
    kit_sweep_close(r);
}

/* A fit passes by what was measured; the sentences say what stands in the table. */
static void what_was_measured_is_said(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=1,2,4", "batch=1,2,4"}, 2, 2);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB, GB * kit_sweep_number(r, c, 0) + (c == 2 * 6 + 5 ? 0.05 * GB : 0));
    ask(r, 0, &s);
    assert_int_equal(s.g.largest->number, 17); /* seq 4, batch 4, the second run */
    assert_false(s.a.influences[0].effect.bytes_to > 5.04 * GB);
    assert_string_equal(s.a.influences[0].text,
                        "seq makes it grow linearly: 2.00 GiB at 1, 5.05 GiB at 4");
    assert_false(s.a.is_side_by_side);
    forget(&s);
    kit_sweep_close(r);
}

/* "5.00 GiB at 8, 5.00 GiB at 16" would say nothing. */
static void small_growth_is_said_as_such(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=1,2,4", "rank=8,16"}, 2, 1);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB + kit_sweep_number(r, c, 1) * MB / 4,
                       GB * kit_sweep_number(r, c, 0));
    ask(r, 0, &s);
    assert_string_equal(s.a.influences[1].text,
                        "rank hardly matters: 5.00 GiB at 8, 2.0 MiB more at 16");
    forget(&s);
    kit_sweep_close(r);
}

static void two_values_tell_no_curve(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=1,2", "batch=1,2"}, 2, 1);
    struct said s;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, GB, GB * kit_sweep_number(r, c, 0));
    ask(r, 0, &s);
    assert_string_equal(s.a.influences[0].text,
                        "seq makes it grow, linearly as far as two values can tell: 2.00 GiB at 1, "
                        "3.00 GiB at 2");
    assert_int_equal(s.a.n_capacities, 3); /* of common cards; 80 GiB are too far from 3 */
    forget(&s);
    kit_sweep_close(r);
}

static void nothing_measured_nothing_said(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=1,2,3"}, 1, 1);
    struct said s;
    (void)state;
    ask(r, 0, &s);
    assert_null(s.g.largest);
    assert_int_equal(s.a.n_influences, 0);
    assert_int_equal(s.a.n_limits, 0);
    assert_int_equal(s.a.main_param, UINT32_MAX);
    assert_true(s.a.overhead == TMK_BYTES_UNKNOWN);
    forget(&s);
    /* One cell is something, though no fit. */
    kit_sweep_done(r, 1, GB, GB);
    ask(r, 0, &s);
    assert_int_equal(s.g.largest->number, 1);
    assert_int_equal(s.a.n_influences, 0);
    forget(&s);
    kit_sweep_close(r);
}

/* Two stages, the second of which has the peak in one configuration alone: no fit explains that,
 * but nobody may say that nothing changes. */
static struct tmk_results *crossover_sweep(void)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=64,128,256", "batch=4,8"}, 2, 1);
    for (uint32_t c = 0; c < r->n_cells; c++) {
        double seq = kit_sweep_number(r, c, 0), batch = kit_sweep_number(r, c, 1);
        double first = 30e6 + 400 * seq * batch, second = 5e6 + 60 * batch * seq * seq;
        kit_sweep_done(r, c, 0, first > second ? first : second);
    }
    return r;
}

static void past_a_crossover(void **state)
{
    struct tmk_results *r = crossover_sweep();
    struct said s;
    uint32_t cell = UINT32_MAX;
    (void)state;
    ask(r, 0, &s);
    assert_string_equal(tmk_influence_name(s.a.influences[0].shape), "unexplained");
    assert_string_equal(s.a.influences[0].text,
                        "seq matters, and the fit does not explain how: 28.8 MiB with seq=64 "
                        "batch=8, 34.8 MiB with seq=256 batch=8");
    assert_string_equal(s.a.influences[1].text,
                        "batch matters, and the fit does not explain how: 29.0 MiB with seq=256 "
                        "batch=4, 34.8 MiB with seq=256 batch=8");
    assert_true(tmk_fit_is_edge_off(s.g.fit, &cell));
    assert_int_equal(kit_sweep_number(r, cell, 0), 256);
    assert_int_equal(kit_sweep_number(r, cell, 1), 8);
    double inside[] = {128, 8}, beyond[] = {512, 8}; /* 123.8 MiB in truth: four times the fit */
    assert_true(tmk_fit_at(s.g.fit, inside, r->cells[0].choice).known);
    assert_false(tmk_fit_at(s.g.fit, beyond, r->cells[0].choice).known);
    forget(&s);
    kit_sweep_close(r);
    r = lora_sweep();
    ask(r, 0, &s);
    assert_false(tmk_fit_is_edge_off(s.g.fit, &cell));
    forget(&s);
    kit_sweep_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_are_the_fits),
        cmocka_unit_test(limits_are_the_truth),
        cmocka_unit_test(context_is_left_free),
        cmocka_unit_test(what_was_measured_is_said),
        cmocka_unit_test(small_growth_is_said_as_such),
        cmocka_unit_test(two_values_tell_no_curve),
        cmocka_unit_test(nothing_measured_nothing_said),
        cmocka_unit_test(what_fits_may_begin_above_one),
        cmocka_unit_test(fractions_and_what_falls_are_not_asked),
        cmocka_unit_test(what_ran_out_does_not_fit),
        cmocka_unit_test(what_has_fitted_fits),
        cmocka_unit_test(estimates_are_called_so),
        cmocka_unit_test(past_a_crossover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
