/* SPDX-License-Identifier: MIT */
/* The grid of a sweep: parameters and ranges, constraints and their errors, the order in which
 * cells are tried, the command's words. */
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
#include "kit/amount.h"
#include "kit/arena.h"
#include "sweep/order.h"
#include "sweep/params.h"
#include "sweep/remaining.h"
#include "sweep/results.h"
#include "sweep/where.h"
#include "sweep/words.h"

/* A sweep of the parameters given, constraints behind them; both end in NULL. */
static struct tmk_results *make(const char *const *params, const char *const *wheres,
                                uint32_t n_repeats)
{
    struct tmk_results *r = tmk_results_new("folder");
    struct tmk_error err = {0};
    r->params = tmk_arena_take(r->arena, TMK_SWEEP_MAX_PARAMS * sizeof *r->params);
    for (; params[r->n_params]; r->n_params++)
        if (tmk_param_parse(params[r->n_params], r->arena, &r->params[r->n_params], &err) != 0)
            fail_msg("%s: %s", params[r->n_params], err.text);
    r->wheres = (const char **)(uintptr_t)wheres;
    while (wheres && wheres[r->n_wheres])
        r->n_wheres++;
    r->n_repeats = n_repeats;
    if (tmk_results_lay_out(r, &err) != 0)
        fail_msg("%s", err.text);
    return r;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- parameters ---- */

static void expect_values(const char *text, const char *const *values)
{
    struct tmk_arena arena = {0};
    struct tmk_sweep_param p;
    struct tmk_error err = {0};
    if (tmk_param_parse(text, &arena, &p, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    uint32_t n = 0;
    for (; values[n]; n++) {
        assert_true(n < p.n_values);
        assert_string_equal(p.values[n], values[n]);
    }
    assert_int_equal(p.n_values, n);
    tmk_arena_fini(&arena);
}

static void test_values(void **state)
{
    (void)state;
    expect_values("seq=128,256,512", LIST("128", "256", "512"));
    expect_values("batch=1..4", LIST("1", "2", "3", "4"));
    expect_values("seq=128..512..128", LIST("128", "256", "384", "512"));
    expect_values("seq=128..600..128", LIST("128", "256", "384", "512"));
    expect_values("seq=128..1024*2", LIST("128", "256", "512", "1024"));
    expect_values("rank=0,8..40*2,64", LIST("0", "8", "16", "32", "64"));
    expect_values("lr=0.1..0.5..0.1", LIST("0.1", "0.2", "0.3", "0.4", "0.5"));
    expect_values("lr=1e-3,-2", LIST("1e-3", "-2"));
    expect_values("optimizer=adam,sgd", LIST("adam", "sgd"));
    expect_values("path=../a,x..y", LIST("../a", "x..y"));
    expect_values("x=3..3", LIST("3"));
    expect_values("t=a=b", LIST("a=b"));
}

static void test_numbers(void **state)
{
    (void)state;
    struct tmk_results *r = make(LIST("seq=128,256", "opt=adam,8"), NULL, 1);
    assert_non_null(r->params[0].numbers);
    assert_true(r->params[0].numbers[1] == 256);
    assert_null(r->params[1].numbers);
    tmk_results_close(r);
    double number;
    assert_false(tmk_param_number("0x10", &number));
    assert_false(tmk_param_number("nan", &number));
    assert_false(tmk_param_number(" 1", &number));
    assert_false(tmk_param_number("", &number));
    assert_false(tmk_param_number("1e999", &number));
    assert_true(tmk_param_number("-1.5e3", &number) && number == -1500);
}

static void refuse_param(const char *text, const char *why)
{
    struct tmk_arena arena = {0};
    struct tmk_sweep_param p = {.n_values = 77};
    struct tmk_error err = {0};
    assert_int_equal(tmk_param_parse(text, &arena, &p, &err), TMK_EINVAL);
    assert_int_equal(p.n_values, 77);
    if (!strstr(err.text, why))
        fail_msg("%s: %s", text, err.text);
    tmk_arena_fini(&arena);
}

static void test_refused(void **state)
{
    (void)state;
    refuse_param("seq", "has no '='");
    refuse_param("=1", "is no name");
    refuse_param("a-b=1", "is no name");
    refuse_param("2x=1", "is no name");
    refuse_param("ranks=1", "cannot be called 'ranks'");
    refuse_param("Run=1", "cannot be called 'Run'");
    refuse_param("not=1", "cannot be called");
    refuse_param("seq=", "empty");
    refuse_param("seq=1,,2", "empty");
    refuse_param("seq=1,2,1", "'1' twice");
    refuse_param("seq=1..3,2", "'2' twice");
    refuse_param("seq=8..1", "goes down");
    refuse_param("seq=1..8*1", "factor");
    refuse_param("seq=0..8*2", "factor");
    refuse_param("seq=1..8..0", "step");
    refuse_param("seq=1..1000000", "more than 4096");
}

static void test_together(void **state)
{
    (void)state;
    struct tmk_arena arena = {0};
    struct tmk_sweep_param p[2];
    struct tmk_error err = {0};
    assert_int_equal(tmk_param_parse("seq=1", &arena, &p[0], &err), 0);
    assert_int_equal(tmk_param_parse("SEQ=2", &arena, &p[1], &err), 0);
    assert_int_equal(tmk_params_check(p, 2, &err), TMK_EINVAL);
    assert_int_equal(tmk_param_parse("a=1..1000", &arena, &p[0], &err), 0);
    assert_int_equal(tmk_param_parse("b=1..1000", &arena, &p[1], &err), 0);
    uint32_t n = 77;
    assert_int_equal(tmk_params_n_cells(p, 2, 1, &n, &err), TMK_EINVAL);
    assert_int_equal(n, 77);
    assert_int_equal(tmk_params_n_cells(p, 1, 100, &n, &err), 0);
    assert_int_equal(n, 100000);
    assert_int_equal(tmk_params_n_cells(p, 1, 101, &n, &err), TMK_EINVAL);
    tmk_arena_fini(&arena);
}

static void test_cells(void **state)
{
    (void)state;
    struct tmk_results *r = make(LIST("a=1,2", "b=1,2,3"), LIST("b<=a"), 2);
    char text[64];
    assert_int_equal(r->n_cells, 12);
    assert_string_equal(tmk_cell_text(r, &r->cells[0], text, sizeof text), "a=1 b=1 repeat 1 of 2");
    assert_string_equal(tmk_cell_text(r, &r->cells[9], text, sizeof text), "a=2 b=2 repeat 2 of 2");
    static const enum tmk_cell_outcome P = TMK_CELL_PENDING, E = TMK_CELL_EXCLUDED;
    const enum tmk_cell_outcome want[] = {P, P, E, E, E, E, P, P, P, P, E, E};
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(r->cells[i].outcome, want[i]);
    assert_true(r->cells[0].peak_allocated == TMK_BYTES_UNKNOWN);
    assert_int_equal(tmk_params_find(r->params, r->n_params, "b", 1), 1);
    assert_int_equal(tmk_params_find(r->params, r->n_params, "c", 1), -1);
    tmk_results_close(r);
}

/* ---- constraints ---- */

/* Whether it holds for a=2, b=3, zero=0, opt=adam; TMK_EINVAL and *ret_at. */
static int judge(const char *text, uint64_t *ret_at)
{
    struct tmk_results *r = make(LIST("a=2", "b=3", "zero=0", "opt=adam", "nota=1"), NULL, 1);
    const struct tmk_where *w = NULL;
    struct tmk_error err = {0};
    int rc = tmk_where_parse(text, r->params, r->n_params, r->arena, &w, &err);
    if (rc == 0)
        rc = tmk_where_holds(w, r->cells[0].choice, &err);
    if (rc < 0)
        assert_true(err.text[0]);
    *ret_at = err.offset;
    tmk_results_close(r);
    return rc;
}

static void test_where(void **state)
{
    static const struct {
        const char *text;
        int holds;
    } cases[] = {
        {"a<=b", 1},
        {"a>=b", 0},
        {"a < b and b < a", 0},
        {"a < b or b < a", 1},
        {"not a < b", 0},
        {"! (a<b)", 0},
        {"!a<b", 0},
        {"a*b==6", 1},
        {"a + b * 2 == 8", 1},
        {"(a + b) * 2 = 10", 1},
        {"b % a == 1 && b / a == 1.5", 1},
        {"-a < 0", 1},
        {"a - -a == 4", 1},
        {"1 < a < b <= 3", 1},
        {"1 < a < 2", 0},
        {"zero", 0},
        {"a", 1},
        {"opt == 'adam'", 1},
        {"opt == \"sgd\" || a == 2", 1},
        {"opt != 'sgd'", 1},
        {"opt == 1", 0},
        {"a * 1e3 == 2000", 1},
        {"a*b <= .5e1 + 1", 1},
        {"nota == 1", 1},
        {"not nota", 0},
        {"10 - 3 - 2 == 5", 1},
        {"zero == 0 or b / zero > 1", 1}, /* the second is not asked */
    };
    uint64_t at;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (judge(cases[i].text, &at) != cases[i].holds)
            fail_msg("%s", cases[i].text);
}

static void test_where_errors(void **state)
{
    static const struct {
        const char *text;
        uint64_t at;
    } cases[] = {
        {"", 0},         {"a <", 3},   {"a <= c", 5},    {"a b", 2},     {"(a < b", 0},
        {"a < b)", 5},   {"a @ b", 2}, {"opt < 3", 0},   {"1 + opt", 4}, {"b / zero", 2},
        {"b % zero", 2}, {"opt", 0},   {"opt == 'a", 7}, {"3x < a", 0},  {"1.2.3 < a", 0},
        {"a = = b", 4},  {"and", 0},   {"a and", 5},     {"not", 3},     {"a < 1e", 4},
    };
    uint64_t at;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (judge(cases[i].text, &at) != TMK_EINVAL)
            fail_msg("'%s' was taken", cases[i].text);
        if (at != cases[i].at)
            fail_msg("'%s': at %d, not %d", cases[i].text, (int)at, (int)cases[i].at);
    }
    char deep[600], row[4000];
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(judge(deep, &at), TMK_EINVAL);
    memset(deep, '!', sizeof deep - 1);
    assert_int_equal(judge(deep, &at), TMK_EINVAL);
    for (size_t i = 0; i + 1 < sizeof row; i++)
        row[i] = i % 2 ? '+' : '1';
    row[sizeof row - 1] = '\0';
    assert_int_equal(judge(row, &at), 1);
    char *longer = calloc(1, 9000);
    memset(longer, ' ', 8999);
    assert_int_equal(judge(longer, &at), TMK_EINVAL);
    free(longer);
}

/* ---- order ---- */

/* As a line each. */
static void expect_order(const struct tmk_results *r, const char *cells)
{
    uint32_t *order = calloc(r->n_cells, sizeof *order), n = 0;
    char *got = NULL;
    size_t n_got;
    FILE *f = open_memstream(&got, &n_got);
    assert_int_equal(tmk_order_cells(r, order, &n), 0);
    for (uint32_t i = 0; i < n; i++) {
        char text[64];
        fprintf(f, "%s\n", tmk_cell_text(r, &r->cells[order[i]], text, sizeof text));
    }
    fclose(f);
    assert_string_equal(got, cells);
    free(got);
    free(order);
}

static void test_order(void **state)
{
    (void)state;
    struct tmk_results *r = make(LIST("seq=128,256,512", "batch=32,8,16"), NULL, 1);
    expect_order(r, "seq=128 batch=8\nseq=128 batch=32\nseq=512 batch=8\nseq=128 batch=16\n"
                    "seq=256 batch=8\nseq=256 batch=16\nseq=256 batch=32\nseq=512 batch=16\n"
                    "seq=512 batch=32\n");
    tmk_results_close(r);
    r = make(LIST("n=1..9"), NULL, 1);
    expect_order(r, "n=1\nn=5\nn=3\nn=7\nn=2\nn=4\nn=6\nn=8\nn=9\n");
    tmk_results_close(r);
}

static void test_order_constrained(void **state)
{
    (void)state;
    struct tmk_results *r = make(LIST("a=1,2", "b=1,2"), LIST("a>1 or b>1", "a<2 or b<2"), 2);
    expect_order(r, "a=1 b=2 repeat 1 of 2\na=2 b=1 repeat 1 of 2\na=1 b=2 repeat 2 of 2\n"
                    "a=2 b=1 repeat 2 of 2\n");
    tmk_results_close(r);
    r = make(LIST("a=1"), LIST("a>1"), 1);
    expect_order(r, "");
    tmk_results_close(r);
    r = make(LIST("a=7"), NULL, 2);
    expect_order(r, "a=7 repeat 1 of 2\na=7 repeat 2 of 2\n");
    tmk_results_close(r);
}

/* ---- time left ---- */

static void test_remaining(void **state)
{
    (void)state;
    struct tmk_results *r = make(LIST("n=1..3"), NULL, 1);
    const uint32_t order[] = {0, 1, 2};
    assert_true(tmk_remaining_seconds(r, order, 3, 1) < 0);
    r->cells[0].outcome = TMK_CELL_DONE;
    r->cells[0].seconds = 2;
    assert_true(tmk_remaining_seconds(r, order, 3, 1) == 4);
    assert_true(tmk_remaining_seconds(r, order, 3, 2) == 2);
    r->cells[1].outcome = TMK_CELL_OOM; /* half the way to the third */
    r->cells[1].seconds = 6;
    double far = 1 / 1.01, near = 1 / 0.26, want = (2 * far + 6 * near) / (far + near);
    assert_true(fabs(tmk_remaining_seconds(r, order, 3, 1) - want) < 1e-9);
    r->cells[2].outcome = TMK_CELL_HOPELESS;
    assert_true(tmk_remaining_seconds(r, order, 3, 1) == 0);
    tmk_results_close(r);
}

/* ---- words ---- */

static void expect_word(const struct tmk_results *r, const char *word, const char *want)
{
    struct tmk_error err = {0};
    if (tmk_word_check(word, r, &err) != 0)
        fail_msg("%s: %s", word, err.text);
    char *got = tmk_word_fill(word, r, &r->cells[r->n_cells - 1]);
    assert_string_equal(got, want);
    free(got);
}

static void test_words(void **state)
{
    (void)state;
    struct tmk_results *r = make(LIST("seq=128,256", "b=4"), NULL, 3);
    struct tmk_error err = {0};
    expect_word(r, "--seq", "--seq");
    expect_word(r, "--seq={seq}", "--seq=256");
    expect_word(r, "{seq}x{b}", "256x4");
    expect_word(r, "{{seq}", "{seq}");
    expect_word(r, "{\"n\": {b}}", "{\"n\": 4}");
    expect_word(r, "{} {1} { seq } {", "{} {1} { seq } {");
    expect_word(r, "{repeat}", "2");
    expect_word(r, "", "");
    assert_int_equal(tmk_word_check("{sq}", r, &err), TMK_EINVAL);
    assert_non_null(strstr(err.text, "--param sq="));
    tmk_results_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_where_errors),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_constrained),
        cmocka_unit_test(test_remaining),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
