/* SPDX-License-Identifier: MIT */
/* tinytrain_model.h - a small decoder-only transformer over characters, and AdamW to train it.
 *
 *     embed -> blocks.0 ... blocks.N-1 -> norm -> head -> loss
 *
 *     block:  x = x + attn.proj(attention(attn.qkv(norm1(x))))
 *             x = x + mlp.fc2(gelu(mlp.fc1(norm2(x))))
 *
 * One step of training, after which only parameters and optimizer state live:
 *
 *     double loss = tt_model_forward(model, &batch);
 *     tt_model_backward(model);
 *     tt_adamw_step(&adamw, model);
 *     tt_model_zero_grad(model); */
#ifndef TINYTRAIN_MODEL_H
#define TINYTRAIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TT_NAME_BYTES = 64 };

/* A trained tensor. It stays where it is until tt_model_close(). */
struct tt_param {
    struct tt_param *next; /* in the order of creation */
    char name[TT_NAME_BYTES];
    size_t n;
    bool is_decayed; /* matrices are, gains and biases are not */
    float *value;
    float *grad;       /* NULL outside backward ... zero_grad */
    float *exp_avg;    /* NULL until the first optimizer step */
    float *exp_avg_sq; /* NULL until the first optimizer step */
};

struct tt_shape {
    size_t n_layers, n_dim, n_heads, n_seq, n_vocab;
};

/* n_batch texts of n_seq tokens, and for each token the one that follows it. */
struct tt_batch {
    size_t n_batch;
    int32_t *tokens;
    int32_t *targets;
};

struct tt_model; /* opaque */

/* A new model with random weights, the same for the same seed. n_heads divides n_dim. */
struct tt_model *tt_model_open(const struct tt_shape *shape, uint64_t seed);

/* Free the model with whatever still lives in it; takes NULL. Returns NULL. */
struct tt_model *tt_model_close(struct tt_model *model);

/* The mean loss over the batch, in nats a character. The batch stays borrowed until backward. */
double tt_model_forward(struct tt_model *model, const struct tt_batch *batch);

/* Fill the gradients of the last forward and free its activations. */
void tt_model_backward(struct tt_model *model);

/* Free the gradients. */
void tt_model_zero_grad(struct tt_model *model);

/* The first parameter; `next` leads to the others. */
struct tt_param *tt_model_params(struct tt_model *model);

struct tt_adamw {
    float learning_rate;
    float beta1, beta2;
    float weight_decay;
    unsigned n_steps; /* taken so far */
};

/* Change every parameter along its gradient. Makes its state when it first needs it. */
void tt_adamw_step(struct tt_adamw *adamw, struct tt_model *model);

/* A random number, all 64 bits of it; changes *state. */
uint64_t tt_random(uint64_t *state);

#endif
