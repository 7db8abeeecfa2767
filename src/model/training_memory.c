/* SPDX-License-Identifier: MIT */
/* model/training_memory.c - see training_memory.h. */
#include "model/training_memory.h"

static const struct {
    const char *key, *text;
    uint32_t weights, gradients, master, states; /* bytes per parameter */
    uint32_t scale_block; /* how many parameters share two scales; 0: no scales */
} ways[TMK_TRAINING_N_WAYS] = {
    [TMK_TRAINING_FP32] = {"fp32", "fp32", 4, 4, 0, 8, 0},
    [TMK_TRAINING_BF16_MIXED] = {"bf16_mixed", "bf16, fp32 master", 2, 2, 4, 8, 0},
    [TMK_TRAINING_BF16] = {"bf16", "bf16 alone", 2, 2, 0, 4, 0},
    [TMK_TRAINING_8BIT] = {"bf16_8bit_optimizer", "bf16, 8-bit Adam", 2, 2, 0, 2, 256},
};

const char *tmk_training_way_key(enum tmk_training_way way)
{
    return ways[way].key;
}

const char *tmk_training_way_text(enum tmk_training_way way)
{
    return ways[way].text;
}

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t saturating_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static struct tmk_training_memory add_up_training(struct tmk_training_memory m)
{
    m.total = saturating_sum(saturating_sum(m.weights, m.gradients),
                             saturating_sum(m.master, m.optimizer));
    return m;
}

struct tmk_training_memory tmk_training_full(uint64_t n_parameters, enum tmk_training_way way)
{
    uint64_t n_blocks =
        ways[way].scale_block ? n_parameters / ways[way].scale_block + (n_parameters > 0) : 0;
    return add_up_training((struct tmk_training_memory){
        .n_trained = n_parameters,
        .weights = saturating_product(n_parameters, ways[way].weights),
        .gradients = saturating_product(n_parameters, ways[way].gradients),
        .master = saturating_product(n_parameters, ways[way].master),
        .optimizer = saturating_sum(saturating_product(n_parameters, ways[way].states),
                                    saturating_product(n_blocks, 8)),
    });
}

struct tmk_training_memory tmk_training_lora(uint64_t n_parameters, uint64_t adapted_sides,
                                             uint32_t rank)
{
    uint64_t n = saturating_product(adapted_sides, rank);
    return add_up_training((struct tmk_training_memory){
        .n_trained = n,
        .weights = saturating_sum(saturating_product(n_parameters, 2), saturating_product(n, 4)),
        .gradients = saturating_product(n, 4),
        .optimizer = saturating_product(n, 8),
    });
}
