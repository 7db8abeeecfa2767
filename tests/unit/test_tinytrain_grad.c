/* SPDX-License-Identifier: MIT */
/* test_tinytrain_grad.c - the hand-written backward of examples/tinytrain is the true derivative.
 *
 * A training whose gradient is a little wrong still learns, so a falling loss proves nothing. Here
 * each parameter is moved by hand and the loss is measured: (L(w + h d) - L(w - h d)) / 2h must be
 * the product of gradient and d. For each tensor d is the gradient's own direction, then single
 * entries at random. The model is tiny and its weights are large and all different, so that no
 * path is silent. Floats limit the precision to about one part in a thousand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../examples/tinytrain_math.h"
#include "../../examples/tinytrain_mem.h"
#include "../../examples/tinytrain_model.h"

enum { N_BATCH = 3, N_SEQ = 7, N_DIM = 12, N_ENTRIES = 8 };

/* embed, two blocks, norm, head; the largest tensor is the weight of an MLP's fc1 or fc2. */
enum { N_PARAMS = 2 + 2 * 12 + 2 + 2, N_VALUES_MAX = N_DIM * 4 * N_DIM };

struct gradients {
    float of[N_PARAMS][N_VALUES_MAX];
};

static const struct tt_shape shape = {
    .n_layers = 2, .n_dim = N_DIM, .n_heads = 3, .n_seq = N_SEQ, .n_vocab = 11};

static float uniform(uint64_t *random)
{
    return (float)(tt_random(random) >> 40) * 0x1p-23f - 1.0f;
}

static struct tt_model *model_make(void)
{
    struct tt_model *model = tt_model_open(&shape, 7);
    uint64_t random = 11;
    for (struct tt_param *p = tt_model_params(model); p; p = p->next)
        for (size_t i = 0; i < p->n; i++)
            p->value[i] += 0.4f * uniform(&random);
    return model;
}

static struct tt_batch *batch_get(void)
{
    static int32_t tokens[N_BATCH * N_SEQ], targets[N_BATCH * N_SEQ];
    static struct tt_batch batch = {N_BATCH, tokens, targets};
    uint64_t random = 5;
    for (size_t i = 0; i < N_BATCH * N_SEQ; i++) {
        tokens[i] = (int32_t)(tt_random(&random) % shape.n_vocab);
        targets[i] = (int32_t)(tt_random(&random) % shape.n_vocab);
    }
    return &batch;
}

/* The loss; its gradients go to *gradients unless that is NULL. Leaves nothing behind. */
static double loss_measure(struct tt_model *model, struct gradients *gradients)
{
    const double loss = tt_model_forward(model, batch_get());
    tt_model_backward(model);
    size_t i = 0;
    for (struct tt_param *p = tt_model_params(model); gradients && p; p = p->next, i++) {
        assert_true(i < N_PARAMS && p->n <= N_VALUES_MAX);
        memcpy(gradients->of[i], p->grad, p->n * sizeof(float));
    }
    tt_model_zero_grad(model);
    return loss;
}

/* The change of the loss per unit of `direction`, measured on both sides of where p is. */
static double slope_measure(struct tt_model *model, struct tt_param *p, const float *direction)
{
    const float h = 4e-3f;
    float saved[N_VALUES_MAX];
    memcpy(saved, p->value, p->n * sizeof(float));
    double loss[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < p->n; i++)
            p->value[i] = saved[i] + (side ? h : -h) * direction[i];
        loss[side] = loss_measure(model, NULL);
    }
    memcpy(p->value, saved, p->n * sizeof(float));
    return (loss[1] - loss[0]) / (2.0 * (double)h);
}

static void slope_assert(const struct tt_param *p, const char *what, double measured,
                         double computed, double tolerance)
{
    if (fabs(measured - computed) <= tolerance)
        return;
    fail_msg("%s, %s: measured %.6g, computed %.6g, tolerance %.2g", p->name, what, measured,
             computed, tolerance);
}

static double length(const float *vector, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)vector[i] * (double)vector[i];
    return sqrt(sum);
}

static void param_check(struct tt_model *model, struct tt_param *p, const float *gradient,
                        uint64_t *random)
{
    const double norm = length(gradient, p->n);
    assert_true(norm > 1e-3); /* else this parameter is not tested at all */
    float direction[N_VALUES_MAX];
    for (size_t i = 0; i < p->n; i++)
        direction[i] = (float)((double)gradient[i] / norm);
    slope_assert(p, "along the gradient", slope_measure(model, p, direction), norm, 0.005 * norm);

    for (size_t n = 0; n < N_ENTRIES; n++) {
        const size_t at = tt_random(random) % p->n;
        memset(direction, 0, p->n * sizeof(float));
        direction[at] = 1;
        slope_assert(p, "one entry", slope_measure(model, p, direction), (double)gradient[at],
                     0.005 * norm);
    }
}

static void test_backward_is_the_derivative(void **state)
{
    (void)state;
    struct tt_model *model = model_make();
    static struct gradients gradients;
    loss_measure(model, &gradients);
    uint64_t random = 3;
    size_t i = 0;
    for (struct tt_param *p = tt_model_params(model); p; p = p->next, i++)
        param_check(model, p, gradients.of[i], &random);
    assert_int_equal(i, N_PARAMS);
    tt_model_close(model);
}

/* A position does not see those after it: other keys and values there change nothing before. */
static void test_attention_looks_only_back(void **state)
{
    (void)state;
    enum { N_QKV = N_SEQ * 3 * N_DIM, N_OUT = N_SEQ * N_DIM, N_CHANGED = 2 };
    float qkv[N_QKV], probs[2 * N_SEQ * N_SEQ], before[N_OUT], after[N_OUT];
    uint64_t random = 9;
    for (size_t i = 0; i < N_QKV; i++)
        qkv[i] = uniform(&random);
    struct tt_attention task = {.place = {"forward", "test"},
                                .n_batch = 1,
                                .n_heads = 2,
                                .n_seq = N_SEQ,
                                .n_dim = N_DIM,
                                .qkv = qkv,
                                .probs = probs,
                                .out = before};
    tt_attention_forward(&task);
    for (size_t i = N_QKV - N_CHANGED * 3 * N_DIM; i < N_QKV; i++)
        qkv[i] += 1.0f;
    task.out = after;
    tt_attention_forward(&task);

    const size_t n_same = (N_SEQ - N_CHANGED) * N_DIM;
    assert_memory_equal(before, after, n_same * sizeof(float));
    for (size_t i = n_same; i < N_OUT; i++)
        assert_true(before[i] != after[i]);
}

/* Also with more threads than items: the gradient of a weight has 12 rows for 16 threads. */
static void test_threads_change_no_bit(void **state)
{
    (void)state;
    struct tt_model *model = model_make();
    static struct gradients alone, together;
    const double loss = loss_measure(model, &alone);
    static const size_t n_threads[] = {2, 3, 4, 16};
    for (size_t n = 0; n < sizeof(n_threads) / sizeof(n_threads[0]); n++) {
        assert_int_equal(tt_pool_start(n_threads[n]), 0);
        assert_true(loss_measure(model, &together) == loss);
        size_t i = 0;
        for (struct tt_param *p = tt_model_params(model); p; p = p->next, i++)
            assert_memory_equal(alone.of[i], together.of[i], p->n * sizeof(float));
        tt_pool_stop();
    }
    tt_model_close(model);
}

/* The batch has 21 random targets: a model this size learns them by heart, if steps are right. */
static void test_adamw_learns_a_batch_by_heart(void **state)
{
    (void)state;
    struct tt_model *model = tt_model_open(&shape, 7);
    struct tt_adamw adamw = {.learning_rate = 1e-2f, .beta1 = 0.9f, .beta2 = 0.99f};
    double loss = tt_model_forward(model, batch_get());
    assert_true(loss > 2.0);
    for (int step = 0; step < 200; step++) {
        tt_model_backward(model);
        tt_adamw_step(&adamw, model);
        tt_model_zero_grad(model);
        loss = tt_model_forward(model, batch_get());
    }
    assert_true(loss < 0.1);
    tt_model_close(model); /* with the activations of the last forward */
}

/* Every test above closed what it opened, in the middle of a step or after it. */
static void test_nothing_is_left(void **state)
{
    (void)state;
    const struct tt_mem_counts *counts = tt_mem_counts_get();
    assert_true(counts->n_allocations > 0);
    assert_int_equal(counts->n_allocations, counts->n_frees);
    assert_int_equal(counts->live_bytes, 0);
    for (size_t i = 0; i < TT_N_CATEGORIES; i++)
        assert_int_equal(counts->live_by_category[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backward_is_the_derivative),
        cmocka_unit_test(test_attention_looks_only_back),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_adamw_learns_a_batch_by_heart),
        cmocka_unit_test(test_nothing_is_left),
    };
    return cmocka_run_group_tests_name("tinytrain_grad", tests, NULL, NULL);
}
