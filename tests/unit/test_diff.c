/* SPDX-License-Identifier: MIT */
/* Two moments compared: traces whose difference is known to the byte. */
#include "maker.h"

#include "model/run.h"
#include "passes/diff/align.h"
#include "passes/diff/diff.h"
#include "passes/diff/diff_steps.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "tidemark/tidemark.h"

enum { CUDA0 = 0x100 };

/* ---- two traces ---- */

struct side {
    struct maker maker;
    struct tmk_run *run;
    struct tmk_peak *peak;
};

static struct tmk_peak *look_at_peak(struct tmk_run *run)
{
    return maker_peak(run, (struct tmk_moment){.kind = TMK_MOMENT_PEAK, .any_device = true});
}

static void finish(struct side *s)
{
    s->run = maker_finish(&s->maker);
    s->peak = look_at_peak(s->run);
}

static void end(struct side *s)
{
    tmk_peak_close(s->peak);
    tmk_run_close(s->run);
    maker_remove(&s->maker);
}

static struct tmk_diff *compare(struct side sides[2], enum tmk_by by)
{
    struct tmk_peak *const peaks[2] = {sides[0].peak, sides[1].peak};
    struct tmk_diff *d = NULL;
    assert_int_equal(tmk_diff_open(peaks, by, &d, NULL), 0);
    return d;
}

/* Everything adds up, whatever was compared. */
static void check_sums(const struct tmk_diff *d)
{
    struct tmk_diff_split all = tmk_diff_split(d), sum = {0};
    uint64_t bytes[2] = {0}, rows[2] = {0};
    for (uint64_t i = 0; i < tmk_diff_n_causes(d); i++) {
        const struct tmk_diff_cause *c = tmk_diff_cause(d, i);
        const struct tmk_diff_split *s = &c->split;
        assert_int_equal(s->resized + s->recounted + s->added + s->gone,
                         tmk_diff_change(c->bytes[0], c->bytes[1]));
        sum.resized += s->resized;
        sum.recounted += s->recounted;
        sum.added += s->added;
        sum.gone += s->gone;
        bytes[0] += c->bytes[0];
        bytes[1] += c->bytes[1];
    }
    for (uint64_t i = 0; i < tmk_diff_n_rows(d); i++) {
        rows[0] += tmk_diff_row(d, i)->bytes[0];
        rows[1] += tmk_diff_row(d, i)->bytes[1];
    }
    assert_memory_equal(&all, &sum, sizeof all);
    for (unsigned side = 0; side < 2; side++) {
        assert_int_equal(bytes[side], tmk_diff_bytes(d, side));
        assert_int_equal(rows[side], tmk_diff_bytes(d, side));
    }
}

static void check_split(struct tmk_diff_split s, int64_t resized, int64_t recounted, int64_t added,
                        int64_t gone)
{
    assert_int_equal(s.resized, resized);
    assert_int_equal(s.recounted, recounted);
    assert_int_equal(s.added, added);
    assert_int_equal(s.gone, gone);
}

static void check_row(const struct tmk_diff *d, uint64_t i, const char *key, uint64_t a, uint64_t b)
{
    const struct tmk_diff_row *row = tmk_diff_row(d, i);
    assert_true(i < tmk_diff_n_rows(d));
    if (key)
        assert_string_equal(row->key, key);
    else
        assert_null(row->key);
    assert_int_equal(row->bytes[0], a);
    assert_int_equal(row->bytes[1], b);
}

/* ---- splits ---- */

enum { S_FILE = 1, S_MAIN, S_F, S_G, S_MODULE, S_NAME };

/* Stack 1 is f called by main; stack 2 g called by main. Lines as given. */
static void define(struct maker *m, const char *file, uint32_t f_line, uint32_t g_line)
{
    maker_string(m, S_FILE, file);
    maker_string(m, S_MAIN, "main");
    maker_string(m, S_F, "f");
    maker_string(m, S_G, "g");
    maker_frame(m, 1, S_FILE, S_F, f_line);
    maker_frame(m, 2, S_FILE, S_G, g_line);
    maker_frame(m, 3, S_FILE, S_MAIN, 90);
    maker_stack(m, 1, (uint32_t[]){1, 3}, 2);
    maker_stack(m, 2, (uint32_t[]){2, 3}, 2);
}

static void blocks(struct maker *m, uint32_t stack, const uint64_t *sizes, unsigned n,
                   uint64_t address, unsigned category, uint32_t name)
{
    for (unsigned i = 0; i < n; i++) {
        maker_alloc(m, CUDA0, address + i, sizes[i], stack);
        maker_tag(m, CUDA0, address + i, category, name);
    }
}

/* f: 100 100 300 -> 100 200 300 50. 100 and 300 cancel; 100 -> 200; 50 more. g is only in A. */
static void test_split(void **state)
{
    (void)state;
    struct side sides[2];
    for (unsigned i = 0; i < 2; i++) {
        maker_open(&sides[i].maker, 0);
        define(&sides[i].maker, "a.py", 10, 20);
    }
    blocks(&sides[0].maker, 1, (uint64_t[]){100, 100, 300}, 3, 0x100, TIDEMARK_ACTIVATION, 0);
    blocks(&sides[1].maker, 1, (uint64_t[]){100, 200, 300, 50}, 4, 0x100, TIDEMARK_ACTIVATION, 0);
    blocks(&sides[0].maker, 2, (uint64_t[]){7}, 1, 0x900, TIDEMARK_ACTIVATION, 0);
    blocks(&sides[1].maker, 2, (uint64_t[]){9}, 1, 0x900, TIDEMARK_INPUT, 0);
    finish(&sides[0]);
    finish(&sides[1]);
    struct tmk_diff *d = compare(sides, TMK_BY_CATEGORY);
    check_sums(d);
    check_split(tmk_diff_split(d), 100, 50, 9, -7);
    check_row(d, 0, "activation", 507, 650);
    check_row(d, 1, "input", 0, 9);
    assert_int_equal(tmk_diff_n_rows(d), 2);
    assert_int_equal(tmk_diff_n_causes(d), 3);
    const struct tmk_diff_cause *c = tmk_diff_cause(d, 0);
    check_split(c->split, 100, 50, 0, 0);
    assert_int_equal(c->n_resized, 1);
    assert_true(c->least_factor == 2 && c->most_factor == 2);
    assert_true(c->is_attributed);
    assert_true(tmk_diff_attributed(d, 0) == 1);
    assert_true(tmk_diff_attributed(d, 166) == 0.5); /* 150 + 9 + 7, and as much unexplained */
    tmk_diff_close(d);
    end(&sides[0]);
    end(&sides[1]);
}

/* Blocks of no known module, name or line are a change that is not attributed. */
static void test_not_attributed(void **state)
{
    (void)state;
    struct side sides[2];
    for (unsigned i = 0; i < 2; i++) {
        maker_open(&sides[i].maker, 0);
        define(&sides[i].maker, "a.py", 10, 20);
        blocks(&sides[i].maker, 1, (uint64_t[]){1}, 1, 0x1, TIDEMARK_INPUT, 0);
    }
    blocks(&sides[1].maker, 1, (uint64_t[]){60}, 1, 0x100, TIDEMARK_ACTIVATION, 0);
    blocks(&sides[1].maker, 1, (uint64_t[]){30}, 1, 0x200, TIDEMARK_UNKNOWN, 0);
    blocks(&sides[1].maker, 0, (uint64_t[]){10}, 1, 0x300, TIDEMARK_ACTIVATION, 0);
    finish(&sides[0]);
    finish(&sides[1]);
    struct tmk_diff *d = compare(sides, TMK_BY_STACK);
    check_sums(d);
    check_row(d, 0, "a.py:10 f", 1, 91);
    check_row(d, 1, NULL, 0, 10);
    assert_true(tmk_diff_attributed(d, 0) == 0.9);
    tmk_diff_close(d);
    end(&sides[0]);
    end(&sides[1]);
}

/* ---- alignment ---- */

/* Other folders and moved lines make nothing new. */
static void test_moved_lines(void **state)
{
    (void)state;
    struct side sides[2];
    const char *const files[2] = {"/home/a/train.py", "/build/17/train.py"};
    for (unsigned i = 0; i < 2; i++) {
        maker_open(&sides[i].maker, 0);
        define(&sides[i].maker, files[i], i ? 14 : 10, i ? 33 : 29);
        blocks(&sides[i].maker, 1, (uint64_t[]){100, 50}, 2, 0x100, TIDEMARK_ACTIVATION, 0);
        blocks(&sides[i].maker, 2, (uint64_t[]){i ? 80 : 40}, 1, 0x900, TIDEMARK_ACTIVATION, 0);
    }
    finish(&sides[0]);
    finish(&sides[1]);
    struct tmk_diff *d = compare(sides, TMK_BY_STACK);
    check_sums(d);
    check_split(tmk_diff_split(d), 40, 0, 0, 0);
    assert_int_equal(tmk_diff_n_rows(d), 2);
    check_row(d, 0, "/home/a/train.py:29 g", 40, 80);
    check_row(d, 1, "/home/a/train.py:10 f", 150, 150);
    assert_int_equal(tmk_diff_row(d, 0)->stack[0], 2);
    assert_int_equal(tmk_diff_row(d, 0)->stack[1], 2);
    tmk_diff_close(d);
    end(&sides[0]);
    end(&sides[1]);
}

/* Three lines of one function; B has another before them. In order: 10 11 12 are 11 12 13. */
static void test_inserted_line(void **state)
{
    (void)state;
    struct side sides[2];
    const uint64_t sizes[4] = {100, 200, 300, 5};
    for (unsigned i = 0; i < 2; i++) {
        struct maker *m = &sides[i].maker;
        maker_open(m, 0);
        maker_string(m, S_FILE, "a.py");
        maker_string(m, S_F, "f");
        for (uint32_t k = 0; k < 3 + i; k++) {
            maker_frame(m, k + 1, S_FILE, S_F, k < 3 ? 10 + i + k : 10);
            maker_stack(m, k + 1, (uint32_t[]){k + 1}, 1);
            blocks(m, k + 1, &sizes[k], 1, 0x100 + k, TIDEMARK_ACTIVATION, 0);
        }
    }
    finish(&sides[0]);
    finish(&sides[1]);
    struct tmk_diff *d = compare(sides, TMK_BY_STACK);
    check_sums(d);
    check_split(tmk_diff_split(d), 0, 0, 5, 0);
    assert_int_equal(tmk_diff_n_rows(d), 4);
    check_row(d, 0, "a.py:10 f", 0, 5);
    check_row(d, 1, "a.py:12 f", 300, 300);
    tmk_diff_close(d);
    end(&sides[0]);
    end(&sides[1]);
}

/* Other lines that hold other things are other places, not ones that moved. */
static void test_other_lines(void **state)
{
    (void)state;
    struct side sides[2];
    for (unsigned i = 0; i < 2; i++) {
        maker_open(&sides[i].maker, 0);
        define(&sides[i].maker, "a.py", i ? 14 : 10, 20);
        blocks(&sides[i].maker, 1, (uint64_t[]){100, 50}, 2 - i, 0x100, TIDEMARK_ACTIVATION, 0);
    }
    finish(&sides[0]);
    finish(&sides[1]);
    struct tmk_diff *d = compare(sides, TMK_BY_STACK);
    check_sums(d);
    check_split(tmk_diff_split(d), 0, 0, 100, -150);
    tmk_diff_close(d);
    end(&sides[0]);
    end(&sides[1]);
}

/* A file under a new name, with its lines elsewhere, is the same where its functions are. One with
 * other functions is another. */
static void test_renamed_file(void **state)
{
    (void)state;
    for (unsigned is_same = 0; is_same < 2; is_same++) {
        struct side sides[2];
        for (unsigned i = 0; i < 2; i++) {
            struct maker *m = &sides[i].maker;
            maker_open(m, 0);
            maker_string(m, S_FILE, i ? "new/train2.py" : "old/train.py");
            maker_string(m, S_MAIN, "<module>");
            maker_string(m, S_F, is_same || i == 0 ? "step" : "evaluate");
            maker_string(m, S_G, is_same || i == 0 ? "load" : "plot");
            maker_frame(m, 1, S_FILE, S_MAIN, i ? 90 : 10);
            maker_frame(m, 2, S_FILE, S_F, i ? 7 : 20);
            maker_frame(m, 3, S_FILE, S_G, i ? 3 : 40);
            maker_stack(m, 1, (uint32_t[]){2, 1}, 2);
            maker_stack(m, 2, (uint32_t[]){3, 1}, 2);
            blocks(m, 1, (uint64_t[]){100}, 1, 0x100, TIDEMARK_ACTIVATION, 0);
            blocks(m, 2, (uint64_t[]){30}, 1, 0x200, TIDEMARK_INPUT, 0);
        }
        finish(&sides[0]);
        finish(&sides[1]);
        struct tmk_diff *d = compare(sides, TMK_BY_STACK);
        check_sums(d);
        check_split(tmk_diff_split(d), 0, 0, is_same ? 0 : 130, is_same ? 0 : -130);
        assert_int_equal(tmk_diff_n_rows(d), is_same ? 2 : 4);
        tmk_diff_close(d);
        end(&sides[0]);
        end(&sides[1]);
    }
}

/* The place of a peak is that of its last allocation. */
static void test_place_of_peak(void **state)
{
    (void)state;
    struct side side;
    const char *stage, *module;
    struct maker *m = &side.maker;
    maker_open(m, 0);
    maker_string(m, S_F, "backward");
    maker_string(m, S_MODULE, "blocks.1");
    maker_alloc(m, CUDA0, 0x100, 100, 0);
    maker_push(m, TIDEMARK_STAGE, S_F);
    maker_push(m, TIDEMARK_MODULE, S_MODULE);
    maker_alloc(m, CUDA0, 0x200, 100, 0);
    maker_free(m, CUDA0, 0x100);
    maker_pop(m, TIDEMARK_MODULE);
    maker_alloc(m, CUDA0, 0x300, 50, 0);
    finish(&side);
    tmk_peak_place(side.peak, &stage, &module);
    assert_string_equal(stage, "backward");
    assert_string_equal(module, "blocks.1");
    end(&side);
}

/* What a wrapper calls is the same, though its stack is longer. */
static void test_called_otherwise(void **state)
{
    (void)state;
    struct side sides[2];
    for (unsigned i = 0; i < 2; i++) {
        struct maker *m = &sides[i].maker;
        maker_open(m, 0);
        define(m, "a.py", 10, 20);
        maker_stack(m, 3, (uint32_t[]){1, 2, 3}, 3);
        blocks(m, i ? 3 : 1, (uint64_t[]){100}, 1, 0x100, TIDEMARK_ACTIVATION, 0);
    }
    finish(&sides[0]);
    finish(&sides[1]);
    struct tmk_diff *d = compare(sides, TMK_BY_STACK);
    check_split(tmk_diff_split(d), 0, 0, 0, 0);
    assert_int_equal(tmk_diff_n_rows(d), 1);
    tmk_diff_close(d);
    end(&sides[0]);
    end(&sides[1]);
}

/* ---- names ---- */

static const char *unwrap(const char *name)
{
    static char text[128];
    tmk_name_unwrap(name, text);
    return text;
}

static void test_unwrap(void **state)
{
    (void)state;
    assert_string_equal(unwrap("layers.0.fc"), "layers.0.fc");
    assert_string_equal(unwrap("module.layers.0.fc"), "layers.0.fc");
    assert_string_equal(unwrap("module._orig_mod.layers.0.fc"), "layers.0.fc");
    assert_string_equal(unwrap("_orig_mod.module.fc"), "fc");
    assert_string_equal(unwrap("base_model.model.model.q.base_layer.weight"), "model.q.weight");
    assert_string_equal(unwrap("a._checkpoint_wrapped_module.b"), "a.b");
    assert_string_equal(unwrap("layers.module.fc"), "layers.module.fc");
    assert_string_equal(unwrap("base_model.x"), "base_model.x");
    assert_string_equal(unwrap("module"), "module"); /* the model itself */
    assert_string_equal(unwrap("_orig_mod"), "_orig_mod");
    assert_string_equal(unwrap(""), "");
}

static void parameters(struct side *s, const char *prefix, unsigned n_layers, uint64_t size)
{
    struct maker *m = &s->maker;
    char name[64];
    maker_open(m, 0);
    for (uint32_t i = 0; i < n_layers; i++) {
        snprintf(name, sizeof name, "%slayers.%u.fc", prefix, (unsigned)i);
        maker_string(m, 10 + i, name);
        maker_push(m, TIDEMARK_MODULE, 10 + i);
        snprintf(name, sizeof name, "%slayers.%u.fc.weight", prefix, (unsigned)i);
        maker_string(m, 100 + i, name);
        blocks(m, 0, &size, 1, 0x1000 * (i + 1), TIDEMARK_PARAMETER, 100 + i);
        snprintf(name, sizeof name, "%slayers.%u.fc.weight.exp_avg", prefix, (unsigned)i);
        maker_string(m, 200 + i, name);
        blocks(m, 0, &size, 1, 0x1000 * (i + 1) + 1, TIDEMARK_OPTIMIZER_STATE, 200 + i);
        snprintf(name, sizeof name, "%slayers.%u.fc.weight.exp_avg_sq", prefix, (unsigned)i);
        maker_string(m, 300 + i, name);
        blocks(m, 0, &size, 1, 0x1000 * (i + 1) + 2, TIDEMARK_OPTIMIZER_STATE, 300 + i);
        maker_pop(m, TIDEMARK_MODULE);
    }
    finish(s);
}

/* Two layers of 10 bytes against three of 40, inside a wrapper. */
static void test_names(void **state)
{
    (void)state;
    struct side sides[2];
    parameters(&sides[0], "", 2, 10);
    parameters(&sides[1], "module.", 3, 40);
    struct tmk_diff *d = compare(sides, TMK_BY_TENSOR);
    check_sums(d);
    assert_true(tmk_diff_unwraps(d));
    check_split(tmk_diff_split(d), 6 * 30, 3 * 40, 0, 0);
    check_row(d, 0, "layers.2.fc.weight", 0, 40);
    assert_int_equal(tmk_diff_n_rows(d), 9);
    assert_int_equal(tmk_diff_n_causes(d), 2);
    const struct tmk_diff_cause *c = tmk_diff_cause(d, 0);
    assert_int_equal(c->category, TIDEMARK_OPTIMIZER_STATE);
    assert_string_equal(c->owner, "layers.*.fc");
    assert_int_equal(c->n_parameters[0], 2);
    assert_int_equal(c->n_parameters[1], 3);
    assert_int_equal(c->n_blocks[1], 6);
    check_split(c->split, 4 * 30, 2 * 40, 0, 0);
    assert_true(c->least_factor == 4 && c->most_factor == 4);
    tmk_diff_close(d);
    d = compare(sides, TMK_BY_MODULE);
    check_row(d, 0, "layers.2.fc", 0, 120);
    check_row(d, 1, "layers.0.fc", 30, 120);
    tmk_diff_close(d);
    end(&sides[0]);
    end(&sides[1]);
}

/* Nothing alive on one side, and sizes that no sum can hold. */
static void test_edges(void **state)
{
    (void)state;
    struct side sides[2];
    maker_open(&sides[0].maker, 0);
    maker_open(&sides[1].maker, 0);
    blocks(&sides[1].maker, 0, (uint64_t[]){UINT64_MAX / 2}, 1, 0x1, TIDEMARK_INPUT, 0);
    finish(&sides[0]);
    finish(&sides[1]);
    struct tmk_diff *d = compare(sides, TMK_BY_CATEGORY);
    check_row(d, 0, "input", 0, UINT64_MAX / 2);
    check_split(tmk_diff_split(d), 0, 0, INT64_MAX, 0);
    tmk_diff_close(d);
    assert_int_equal(tmk_diff_change(0, UINT64_MAX), INT64_MAX);
    assert_int_equal(tmk_diff_change(UINT64_MAX, 0), -INT64_MAX);
    assert_int_equal(tmk_diff_change(5, 3), -2);
    end(&sides[0]);
    end(&sides[1]);
}

/* ---- steps ---- */

/* Step i of side s has a peak of peaks[s][i]; 0: it has no such step. */
static struct tmk_diff_steps *make_steps(struct side sides[2], const uint64_t peaks[2][6])
{
    const struct tmk_process *processes[2];
    struct tmk_diff_steps *steps = NULL;
    for (unsigned s = 0; s < 2; s++) {
        maker_open(&sides[s].maker, 0);
        for (unsigned i = 0; i < 6; i++) {
            if (peaks[s][i] == 0)
                continue;
            sides[s].maker.ns += 100;
            maker_step(&sides[s].maker, i);
            maker_alloc(&sides[s].maker, CUDA0, 0x10, peaks[s][i], 0);
            maker_free(&sides[s].maker, CUDA0, 0x10);
        }
        finish(&sides[s]);
        processes[s] = tmk_run_process(sides[s].run, 0);
    }
    assert_int_equal(tmk_diff_steps_open(processes, (uint16_t[]){CUDA0, CUDA0}, &steps), 0);
    return steps;
}

static void test_steps(void **state)
{
    (void)state;
    static const uint64_t peaks[2][6] = {{9000, 1000, 1000, 1000, 1000, 0},
                                         {9000, 1010, 1000, 1200, 1300, 1400}};
    struct side sides[2];
    struct tmk_diff_steps *s = make_steps(sides, peaks);
    uint64_t settled, picked[4];
    int64_t apart;
    assert_int_equal(tmk_diff_steps_n(s), 6);
    assert_true(tmk_diff_steps_apart(s, &apart));
    assert_int_equal(apart, 3); /* step 1 differs by 1 % only */
    assert_true(tmk_diff_steps_settled(s, 0, &settled));
    assert_int_equal(settled, 1000);
    assert_true(tmk_diff_steps_settled(s, 1, &settled)); /* the last is still open */
    assert_int_equal(settled, 1200);                     /* of 1010 1000 1200 1300 */
    assert_false(tmk_diff_steps_get(s, 5)->has[0]);
    assert_int_equal(tmk_diff_steps_get(s, 5)->peak_bytes[1], 1400);
    assert_int_equal(tmk_diff_steps_pick(s, 4, picked), 4);
    const uint64_t wanted[4] = {0, 1, 3, 5};
    assert_memory_equal(picked, wanted, sizeof wanted);
    tmk_diff_steps_close(s);
    end(&sides[0]);
    end(&sides[1]);
}

static void test_no_steps(void **state)
{
    (void)state;
    static const uint64_t peaks[2][6] = {{0}, {5}};
    struct side sides[2];
    struct tmk_diff_steps *s = make_steps(sides, peaks);
    uint64_t settled, picked[4];
    int64_t apart;
    assert_int_equal(tmk_diff_steps_n(s), 1);
    assert_false(tmk_diff_steps_apart(s, &apart));
    assert_false(tmk_diff_steps_settled(s, 0, &settled));
    assert_int_equal(tmk_diff_steps_pick(s, 4, picked), 1);
    tmk_diff_steps_close(s);
    end(&sides[0]);
    end(&sides[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),         cmocka_unit_test(test_not_attributed),
        cmocka_unit_test(test_moved_lines),   cmocka_unit_test(test_inserted_line),
        cmocka_unit_test(test_other_lines),   cmocka_unit_test(test_called_otherwise),
        cmocka_unit_test(test_unwrap),        cmocka_unit_test(test_names),
        cmocka_unit_test(test_edges),         cmocka_unit_test(test_steps),
        cmocka_unit_test(test_no_steps),      cmocka_unit_test(test_renamed_file),
        cmocka_unit_test(test_place_of_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
