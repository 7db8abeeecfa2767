/* SPDX-License-Identifier: MIT */
/* tinytrain_math.h - the arithmetic of tinytrain: loops over floats, shared among a few threads.
 *
 * All tensors are dense and row-major. Nothing here keeps a tensor; each function fills what its
 * caller allocated. The result is the same bit for bit whatever the number of threads: threads
 * share out rows of the result, and each row is summed by one thread in one order. */
#ifndef TINYTRAIN_MATH_H
#define TINYTRAIN_MATH_H

#include <stddef.h>
#include <stdint.h>

enum { TT_THREADS_MAX = 64 };

/* Work with `n_threads` threads, the caller being one of them, from now on until tt_pool_stop().
 * 0, or an errno value; then nothing was started. Without a pool all work is the caller's. */
int tt_pool_start(size_t n_threads);
void tt_pool_stop(void);

/* Where in the training a piece of work belongs. Ranges are per thread, so a pool that wants its
 * threads' blocks to be counted with the layer they work for hands the layer's place to them. */
struct tt_place {
    const char *stage;
    const char *module;
};

/* c = a b + bias, where c is n_rows x n_cols and element (i, k) of a is a[i * a_row + k * a_col]:
 * exchange the two strides to multiply with the transpose. `bias` has n_cols values or is NULL. */
struct tt_matmul {
    struct tt_place place;
    size_t n_rows, n_inner, n_cols;
    const float *a;
    size_t a_row, a_col;
    const float *b;
    size_t b_row, b_col;
    const float *bias;
    float *c;
};
void tt_matmul(const struct tt_matmul *m);

/* Causal self-attention of all heads. A row of `qkv` is query, key and value of one position, each
 * n_dim wide, heads side by side; `probs` is [batch][head][seq][seq], zero above the diagonal. */
struct tt_attention {
    struct tt_place place;
    size_t n_batch, n_heads, n_seq, n_dim;
    const float *qkv;
    float *probs;
    float *out;         /* forward */
    const float *d_out; /* backward */
    float *d_qkv;
};
void tt_attention_forward(const struct tt_attention *a);  /* qkv -> probs, out */
void tt_attention_backward(const struct tt_attention *a); /* qkv, probs, d_out -> d_qkv */

/* Layer normalisation of n_rows rows; `stats` takes mean and 1/deviation of each. */
struct tt_norm_shape {
    size_t n_rows, n_dim;
};
void tt_norm_forward(struct tt_norm_shape s, const float *in, const float *weight,
                     const float *bias, float *out, float *stats);
/* Adds to `d_in` (the residual stream flows through it); fills d_weight and d_bias. */
void tt_norm_backward(struct tt_norm_shape s, const float *in, const float *stats,
                      const float *weight, const float *d_out, float *d_in, float *d_weight,
                      float *d_bias);

void tt_gelu_forward(size_t n, const float *in, float *out);
/* Turns the gradient of the output into the gradient of the input, in place. */
void tt_gelu_backward(size_t n, const float *in, float *d);

/* Mean cross-entropy of n_rows predictions; `probs` takes their softmax. */
double tt_loss_forward(size_t n_rows, size_t n_classes, const float *logits, const int32_t *targets,
                       float *probs);
void tt_loss_backward(size_t n_rows, size_t n_classes, const float *probs, const int32_t *targets,
                      float *d_logits);

/* sums[j] = sum over i of in[i][j] */
void tt_column_sums(size_t n_rows, size_t n_cols, const float *in, float *sums);
/* to += from */
void tt_add(size_t n, const float *from, float *to);

#endif
