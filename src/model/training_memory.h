/* SPDX-License-Identifier: MIT */
/* model/training_memory.h - estimate the device memory that training a model needs, from its number
 * of parameters alone.
 *
 * Bytes per parameter, with Adam or AdamW (two numbers of state):
 *
 *                                      weights  gradients  master  states
 *     fp32                                   4          4       -       8
 *     bf16 with fp32 master weights          2          2       4       8
 *     bf16 alone                             2          2       -       4
 *     bf16, 8-bit optimizer                  2          2       -       2 + 8/256 (scales)
 *
 * With LoRA the weights are frozen in bf16, and each adapted matrix of [out, in] gets rank * (out +
 * in) parameters, trained in fp32. The estimate leaves out activations, which grow with batch and
 * sequence, the allocator's losses, and the CUDA context. */
#ifndef TMK_MODEL_TRAINING_MEMORY_H
#define TMK_MODEL_TRAINING_MEMORY_H

#include <stdint.h>

enum tmk_training_way {
    TMK_TRAINING_FP32,
    TMK_TRAINING_BF16_MIXED,
    TMK_TRAINING_BF16,
    TMK_TRAINING_8BIT,
    TMK_TRAINING_N_WAYS,
};

struct tmk_training_memory {
    uint64_t n_trained; /* parameters */
    uint64_t weights, gradients, master, optimizer,
        total; /* bytes; with LoRA, including the adapters' */
};

/* The key ("fp32", "bf16_mixed", "bf16", "bf16_8bit_optimizer") and a text that explains it. */
const char *tmk_training_way_key(enum tmk_training_way way);
const char *tmk_training_way_text(enum tmk_training_way way);

/* Estimate for training all parameters. Sums saturate at UINT64_MAX. */
struct tmk_training_memory tmk_training_full(uint64_t n_parameters, enum tmk_training_way way);
/* Estimate for LoRA: `n_parameters` are frozen, with adapters of `rank` on matrices;
 * `adapted_sides` is the sum of (out + in) over these. */
struct tmk_training_memory tmk_training_lora(uint64_t n_parameters, uint64_t adapted_sides,
                                             uint32_t rank);

#endif
