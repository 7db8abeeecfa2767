/* SPDX-License-Identifier: MIT */
/* What every view of a sweep shows: deciding cells, the largest, the order of parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"
#include "sweep_kit.h"

#define MB 1048576.0

static void init(struct tmk_survey *g, const struct tmk_results *r)
{
    assert_int_equal(tmk_survey_init(g, r), 0);
}

static void close(struct tmk_survey *g, struct tmk_results *r)
{
    tmk_survey_fini(g);
    kit_sweep_close(r);
}

/* The repeat with the largest peak decides; the first of two that are equal. */
static void the_largest_repeat_decides(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=128,256,512"}, 1, 3);
    static const double peaks[] = {1, 3, 2, 6, 4, 5, 7, 7, 7};
    struct tmk_survey g;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, peaks[c] * MB, 0);
    init(&g, r);
    assert_int_equal(g.n_configs, 3);
    assert_int_equal(g.n_measured, 3);
    assert_int_equal(g.configs[0].number, 1);
    assert_int_equal(g.configs[1].number, 3);
    assert_int_equal(g.configs[2].number, 6);
    assert_ptr_equal(g.configs[0].cell, &r->cells[1]);
    assert_ptr_equal(g.largest, &g.configs[2]);
    assert_int_equal(g.most, 7 << 20);
    assert_int_equal(g.n_cells[TMK_CELL_DONE], 9);
    assert_null(g.configs[0].repeats);
    assert_null(g.repeats_note);
    close(&g, r);
}

/* A repeat that ended well goes before those that did not, whenever it ran. */
static void mixed_repeats_are_told(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=128,256,512,1024"}, 1, 3);
    struct tmk_survey g;
    struct tmk_estimate e;
    (void)state;
    r->cells[0].outcome = TMK_CELL_OOM;
    r->cells[0].peak_allocated = 9 << 20;
    kit_sweep_done(r, 1, 2 * MB, 0);
    kit_sweep_done(r, 3, 3 * MB, 0); /* two are pending */
    r->cells[7].outcome = TMK_CELL_FAILED;
    for (uint32_t c = 9; c < 12; c++)
        r->cells[c].outcome = TMK_CELL_EXCLUDED;
    init(&g, r);
    assert_int_equal(g.configs[0].number, 1);
    assert_int_equal(g.configs[0].n_well, 1);
    assert_int_equal(g.configs[0].n_ill, 1);
    assert_string_equal(g.configs[0].repeats, "1 of 3");
    assert_string_equal(g.repeats_note, "n of 3: so many repeats ended well");
    assert_int_equal(g.configs[1].number, 3);
    assert_null(g.configs[1].repeats);
    assert_int_equal(g.configs[2].number, 7); /* it was tried */
    assert_false(g.configs[2].has_peak);
    assert_int_equal(g.configs[3].n_ill, 0);
    assert_int_equal(g.n_measured, 2);
    assert_ptr_equal(g.largest, &g.configs[1]);
    assert_int_equal(g.most, 3 << 20);
    assert_null(g.fit);
    assert_non_null(strstr(g.why_none, "too few cells are done"));
    assert_false(tmk_survey_is_estimated(&g, &g.configs[2], &e));
    close(&g, r);
}

static void nothing_measured(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=128,256"}, 1, 2);
    struct tmk_survey g;
    (void)state;
    r->cells[0].outcome = TMK_CELL_DONE; /* without a peak */
    init(&g, r);
    assert_null(g.largest);
    assert_int_equal(g.most, 0);
    assert_int_equal(g.n_measured, 0);
    assert_int_equal(g.n_peakless, 1);
    assert_int_equal(g.n_order, 1);
    close(&g, r);
}

static void names_have_what_varies(void **state)
{
    struct tmk_results *r =
        kit_sweep_open((const char *[]){"seq=128,256", "lr=1", "attention=plain,flash"}, 3, 1);
    uint32_t choice[] = {1, 0, 1};
    struct tmk_survey g;
    (void)state;
    init(&g, r);
    assert_ptr_equal(tmk_survey_at(&g, choice), &g.configs[3]);
    assert_string_equal(g.configs[3].name, "seq=256 attention=flash");
    assert_string_equal(g.configs[3].values, "256, flash");
    assert_string_equal(g.names, "seq, attention");
    close(&g, r);
    r = kit_sweep_open((const char *[]){"seq=128", "lr=1"}, 2, 1);
    init(&g, r);
    assert_string_equal(g.configs[0].name, "seq=128 lr=1");
    close(&g, r);
    r = kit_sweep_open(NULL, 0, 2);
    init(&g, r);
    assert_int_equal(g.n_configs, 1);
    assert_string_equal(g.configs[0].name, "the command");
    close(&g, r);
}

static void the_largest_effect_comes_first(void **state)
{
    struct tmk_results *r = kit_sweep_open(
        (const char *[]){"rank=8,16", "fixed=1", "seq=128,256,512", "attention=plain,flash"}, 4, 1);
    struct tmk_survey g;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        kit_sweep_done(r, c, 64 * MB + kit_sweep_number(r, c, 0) * MB,
                       kit_sweep_number(r, c, 2) * MB + (r->cells[c].choice[3] ? 0 : 50 * MB));
    init(&g, r);
    assert_non_null(g.fit);
    assert_int_equal(g.n_order, 3);
    assert_int_equal(g.order[0], 2);
    assert_int_equal(g.order[1], 3);
    assert_int_equal(g.order[2], 0);
    close(&g, r);
}

/* Large batches of long sequences ran out of memory. By what is left the sequence would matter
 * more: the mean of the large batch would be that of the shortest. */
static void estimates_fill_gaps(void **state)
{
    struct tmk_results *r =
        kit_sweep_open((const char *[]){"seq=100,900,1000", "batch=1,10"}, 2, 2);
    struct tmk_survey g;
    struct tmk_estimate e;
    (void)state;
    for (uint32_t c = 0; c < r->n_cells; c++)
        if (kit_sweep_number(r, c, 0) < 900 || kit_sweep_number(r, c, 1) < 10)
            kit_sweep_done(r, c, 100 * MB,
                           kit_sweep_number(r, c, 0) * kit_sweep_number(r, c, 1) * MB);
        else
            r->cells[c].outcome = TMK_CELL_OOM;
    init(&g, r);
    assert_int_equal(g.largest->number, 2); /* the first of two that are equal */
    assert_int_equal(g.order[0], 1);
    assert_true(tmk_survey_is_estimated(&g, &g.configs[5], &e));
    assert_true(e.bytes > 10090 * MB && e.bytes < 10110 * MB);
    assert_int_equal(g.configs[5].number, 10);
    assert_false(tmk_survey_is_estimated(&g, &g.configs[1], &e));
    assert_true(tmk_survey_estimate(&g, &g.configs[1]).known);
    close(&g, r);
}

static void one_capacity_or_none(void **state)
{
    struct tmk_results *r = kit_sweep_open((const char *[]){"seq=128,256"}, 1, 1);
    struct tmk_survey g;
    (void)state;
    kit_sweep_done(r, 0, MB, 0);
    r->cells[0].capacity = 24;
    init(&g, r);
    assert_int_equal(g.capacity, 24);
    tmk_survey_fini(&g);
    r->cells[1].capacity = 16;
    init(&g, r);
    assert_int_equal(g.capacity, 0);
    close(&g, r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_repeat_decides),
        cmocka_unit_test(mixed_repeats_are_told),
        cmocka_unit_test(nothing_measured),
        cmocka_unit_test(names_have_what_varies),
        cmocka_unit_test(the_largest_effect_comes_first),
        cmocka_unit_test(estimates_fill_gaps),
        cmocka_unit_test(one_capacity_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
