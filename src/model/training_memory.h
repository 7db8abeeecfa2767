/* SPDX-License-Identifier: MIT */
/* model/training_memory.h - an estimate: what training a model keeps on the device, from the number
 * of its parameters alone.
 *
 * Bytes a parameter, with Adam or AdamW (two numbers of state):
 *
 *                                      weights  gradients  master  states
 *     fp32                                   4          4       -       8
 *     bf16 with fp32 master weights          2          2       4       8
 *     bf16 alone                             2          2       -       4
 *     bf16, 8-bit optimizer                  2          2       -       2 + 8/256 (scales)
 *
 * With LoRA the weights are frozen in bf16, and each adapted matrix of [out, in] gets rank * (out +
 * in) parameters, trained in fp32. Not in it: activations, which grow with batch and sequence, what
 * the allocator loses, the CUDA context. */
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
    uint64_t n_trained;                                    /* parameters */
    uint64_t weights, gradients, master, optimizer, total; /* bytes; of LoRA the adapters' too */
};

/* "fp32", "bf16_mixed", "bf16", "bf16_8bit_optimizer", and what that means. */
const char *tmk_training_way_key(enum tmk_training_way way);
const char *tmk_training_way_text(enum tmk_training_way way);

/* Of all parameters. Sums stop at UINT64_MAX. */
struct tmk_training_memory tmk_training_full(uint64_t n_parameters, enum tmk_training_way way);
/* `n_parameters` frozen; adapters of `rank` on matrices whose out + in add up to `adapted_sides`.
 */
struct tmk_training_memory tmk_training_lora(uint64_t n_parameters, uint64_t adapted_sides,
                                             uint32_t rank);

#endif
