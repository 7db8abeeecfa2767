/* SPDX-License-Identifier: MIT */
/* tinytrain_model.c - the layers: what each one allocates, computes, keeps and frees.
 *
 * Each layer is a struct with its parameters and its output, and a forward and a backward function.
 * Who owns what decides how memory rises and falls:
 *
 *   activation  the layer's output, and what else its backward needs. Allocated in its forward,
 *               freed in its backward: by then all that read it have gone backward already.
 *   gradient    of a parameter: allocated in its layer's backward, freed by tt_model_zero_grad().
 *   temporary   the gradient of an input: returned by a backward, freed by the caller when it has
 *               been passed on. One of them, the residual stream's, flows from norm to embed.
 *
 * Each function opens the range of its layer first and closes it last, in backward too; the ranges
 * nest as the names do: blocks.0 > blocks.0.attn > blocks.0.attn.qkv. */
#include "tinytrain_model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tinytrain_math.h"
#include "tinytrain_mem.h"

struct linear {
    char name[TT_NAME_BYTES];
    size_t n_in, n_out;
    struct tt_param weight; /* n_in x n_out */
    struct tt_param bias;
    const float *in; /* borrowed from the layer before */
    float *out;
};

struct norm {
    char name[TT_NAME_BYTES];
    size_t n_dim;
    struct tt_param weight, bias;
    const float *in;
    float *out;
    float *stats;
};

struct attention {
    char name[TT_NAME_BYTES];
    struct linear qkv, proj;
    float *probs;
    float *out;
};

struct mlp {
    char name[TT_NAME_BYTES];
    struct linear fc1, fc2;
    float *out; /* of the GELU between them */
};

struct tt_block {
    char name[TT_NAME_BYTES];
    struct norm norm1;
    struct attention attn;
    struct norm norm2;
    struct mlp mlp;
};

struct embed {
    char name[TT_NAME_BYTES];
    struct tt_param token;    /* n_vocab x n_dim */
    struct tt_param position; /* n_seq x n_dim */
    float *out;
};

struct tt_model {
    struct tt_shape shape;
    struct tt_param *first_param;
    struct tt_param **last_link;
    uint64_t random;
    struct embed embed;
    struct tt_block *blocks;
    struct norm norm;
    struct linear head;
    const struct tt_batch *batch; /* borrowed from forward until backward */
    size_t n_rows;                /* positions in that batch */
    float *probs;                 /* of the loss */
};

static size_t float_bytes(size_t n)
{
    return n * sizeof(float);
}

__attribute__((format(printf, 2, 3))) static void name_set(char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, TT_NAME_BYTES, format, arguments);
    va_end(arguments);
}

/* splitmix64: small, good enough, and the same everywhere. */
uint64_t tt_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Functions that make parameters. */

static void param_add(struct tt_model *model, struct tt_param *p, const char *module,
                      const char *what, size_t n)
{
    name_set(p->name, "%s.%s", module, what);
    p->n = n;
    *model->last_link = p;
    model->last_link = &p->next;
}

/* Fill a parameter with uniform random numbers of the given standard deviation. */
static void param_fill_random(struct tt_model *model, struct tt_param *p, float deviation)
{
    const float width = 2.0f * sqrtf(3.0f) * deviation;
    for (size_t i = 0; i < p->n; i++)
        p->value[i] = width * ((float)(tt_random(&model->random) >> 40) * 0x1p-24f - 0.5f);
    p->is_decayed = true;
}

static void param_fill(struct tt_param *p, float value)
{
    for (size_t i = 0; i < p->n; i++)
        p->value[i] = value;
}

static void linear_init(struct tt_model *model, struct linear *l, size_t n_in, size_t n_out)
{
    tidemark_push(TIDEMARK_MODULE, l->name);
    l->n_in = n_in;
    l->n_out = n_out;
    param_add(model, &l->weight, l->name, "weight", n_in * n_out);
    l->weight.value = tt_new(TIDEMARK_PARAMETER, float_bytes(n_in * n_out), l->name, "weight");
    param_fill_random(model, &l->weight, 1.0f / sqrtf((float)n_in));

    param_add(model, &l->bias, l->name, "bias", n_out);
    l->bias.value = tt_new(TIDEMARK_PARAMETER, float_bytes(n_out), l->name, "bias");
    param_fill(&l->bias, 0.0f);
    tidemark_pop(TIDEMARK_MODULE);
}

static void norm_init(struct tt_model *model, struct norm *l)
{
    tidemark_push(TIDEMARK_MODULE, l->name);
    l->n_dim = model->shape.n_dim;
    param_add(model, &l->weight, l->name, "weight", l->n_dim);
    l->weight.value = tt_new(TIDEMARK_PARAMETER, float_bytes(l->n_dim), l->name, "weight");
    param_fill(&l->weight, 1.0f);

    param_add(model, &l->bias, l->name, "bias", l->n_dim);
    l->bias.value = tt_new(TIDEMARK_PARAMETER, float_bytes(l->n_dim), l->name, "bias");
    param_fill(&l->bias, 0.0f);
    tidemark_pop(TIDEMARK_MODULE);
}

static void embed_init(struct tt_model *model, struct embed *l)
{
    const size_t n_token = model->shape.n_vocab * model->shape.n_dim;
    const size_t n_position = model->shape.n_seq * model->shape.n_dim;
    tidemark_push(TIDEMARK_MODULE, l->name);
    param_add(model, &l->token, l->name, "token", n_token);
    l->token.value = tt_new(TIDEMARK_PARAMETER, float_bytes(n_token), l->name, "token");
    param_fill_random(model, &l->token, 0.1f);

    param_add(model, &l->position, l->name, "position", n_position);
    l->position.value = tt_new(TIDEMARK_PARAMETER, float_bytes(n_position), l->name, "position");
    param_fill_random(model, &l->position, 0.1f);
    tidemark_pop(TIDEMARK_MODULE);
}

static void attention_init(struct tt_model *model, struct attention *l)
{
    const size_t n_dim = model->shape.n_dim;
    tidemark_push(TIDEMARK_MODULE, l->name);
    linear_init(model, &l->qkv, n_dim, 3 * n_dim);
    linear_init(model, &l->proj, n_dim, n_dim);
    tidemark_pop(TIDEMARK_MODULE);
}

static void mlp_init(struct tt_model *model, struct mlp *l)
{
    const size_t n_dim = model->shape.n_dim;
    tidemark_push(TIDEMARK_MODULE, l->name);
    linear_init(model, &l->fc1, n_dim, 4 * n_dim);
    linear_init(model, &l->fc2, 4 * n_dim, n_dim);
    tidemark_pop(TIDEMARK_MODULE);
}

static void block_init(struct tt_model *model, struct tt_block *b)
{
    tidemark_push(TIDEMARK_MODULE, b->name);
    norm_init(model, &b->norm1);
    attention_init(model, &b->attn);
    norm_init(model, &b->norm2);
    mlp_init(model, &b->mlp);
    tidemark_pop(TIDEMARK_MODULE);
}

static void block_name(struct tt_block *b, size_t index)
{
    name_set(b->name, "blocks.%zu", index);
    name_set(b->norm1.name, "blocks.%zu.norm1", index);
    name_set(b->attn.name, "blocks.%zu.attn", index);
    name_set(b->attn.qkv.name, "blocks.%zu.attn.qkv", index);
    name_set(b->attn.proj.name, "blocks.%zu.attn.proj", index);
    name_set(b->norm2.name, "blocks.%zu.norm2", index);
    name_set(b->mlp.name, "blocks.%zu.mlp", index);
    name_set(b->mlp.fc1.name, "blocks.%zu.mlp.fc1", index);
    name_set(b->mlp.fc2.name, "blocks.%zu.mlp.fc2", index);
}

static void *must_calloc(size_t n, size_t size_bytes)
{
    void *memory = calloc(n, size_bytes);
    if (!memory) {
        perror("tinytrain");
        exit(EXIT_FAILURE);
    }
    return memory;
}

struct tt_model *tt_model_open(const struct tt_shape *shape, uint64_t seed)
{
    struct tt_model *model = must_calloc(1, sizeof(*model));
    model->shape = *shape;
    model->random = seed;
    model->last_link = &model->first_param;
    model->blocks = must_calloc(shape->n_layers, sizeof(model->blocks[0]));

    name_set(model->embed.name, "embed");
    embed_init(model, &model->embed);
    for (size_t i = 0; i < shape->n_layers; i++) {
        block_name(&model->blocks[i], i);
        block_init(model, &model->blocks[i]);
    }
    name_set(model->norm.name, "norm");
    norm_init(model, &model->norm);
    name_set(model->head.name, "head");
    linear_init(model, &model->head, shape->n_dim, shape->n_vocab);
    return model;
}

/* Linear: out = in weight + bias. */

static void linear_forward(struct linear *l, size_t n_rows, const float *in)
{
    tidemark_push(TIDEMARK_MODULE, l->name);
    l->in = in;
    l->out = tt_new(TIDEMARK_ACTIVATION, float_bytes(n_rows * l->n_out), l->name, "out");
    tt_matmul(&(const struct tt_matmul){
        .place = {"forward", l->name},
        .n_rows = n_rows,
        .n_inner = l->n_in,
        .n_cols = l->n_out,
        .a = in,
        .a_row = l->n_in,
        .a_col = 1,
        .b = l->weight.value,
        .b_row = l->n_out,
        .b_col = 1,
        .bias = l->bias.value,
        .c = l->out,
    });
    tidemark_pop(TIDEMARK_MODULE);
}

/* weight.grad = in^T d_out */
static void linear_backward_weight(struct linear *l, size_t n_rows, const float *d_out)
{
    l->weight.grad = tt_new(TIDEMARK_GRADIENT, float_bytes(l->weight.n), l->weight.name, "grad");
    tt_matmul(&(const struct tt_matmul){
        .place = {"backward", l->name},
        .n_rows = l->n_in,
        .n_inner = n_rows,
        .n_cols = l->n_out,
        .a = l->in,
        .a_row = 1,
        .a_col = l->n_in,
        .b = d_out,
        .b_row = l->n_out,
        .b_col = 1,
        .c = l->weight.grad,
    });
    l->bias.grad = tt_new(TIDEMARK_GRADIENT, float_bytes(l->bias.n), l->bias.name, "grad");
    tt_column_sums(n_rows, l->n_out, d_out, l->bias.grad);
}

/* d_in = d_out weight^T */
static float *linear_backward_in(const struct linear *l, size_t n_rows, const float *d_out)
{
    float *d_in = tt_new(TIDEMARK_TEMPORARY, float_bytes(n_rows * l->n_in), l->name, "in.grad");
    tt_matmul(&(const struct tt_matmul){
        .place = {"backward", l->name},
        .n_rows = n_rows,
        .n_inner = l->n_out,
        .n_cols = l->n_in,
        .a = d_out,
        .a_row = l->n_out,
        .a_col = 1,
        .b = l->weight.value,
        .b_row = 1,
        .b_col = l->n_out,
        .c = d_in,
    });
    return d_in;
}

/* Returns the gradient of the input, which the caller frees. */
static float *linear_backward(struct linear *l, size_t n_rows, const float *d_out)
{
    tidemark_push(TIDEMARK_MODULE, l->name);
    l->out = tt_free(l->out);
    linear_backward_weight(l, n_rows, d_out);
    float *d_in = linear_backward_in(l, n_rows, d_out);
    tidemark_pop(TIDEMARK_MODULE);
    return d_in;
}

/* Norm: each row to mean 0 and deviation 1, then a gain and a bias. */

static void norm_forward(struct norm *l, size_t n_rows, const float *in)
{
    tidemark_push(TIDEMARK_MODULE, l->name);
    l->in = in;
    l->out = tt_new(TIDEMARK_ACTIVATION, float_bytes(n_rows * l->n_dim), l->name, "out");
    l->stats = tt_new(TIDEMARK_ACTIVATION, float_bytes(n_rows * 2), l->name, "stats");
    tt_norm_forward((struct tt_norm_shape){n_rows, l->n_dim}, in, l->weight.value, l->bias.value,
                    l->out, l->stats);
    tidemark_pop(TIDEMARK_MODULE);
}

/* Add to *d_in, the gradient of the residual stream. */
static void norm_backward(struct norm *l, size_t n_rows, const float *d_out, float *d_in)
{
    tidemark_push(TIDEMARK_MODULE, l->name);
    l->out = tt_free(l->out);
    l->weight.grad = tt_new(TIDEMARK_GRADIENT, float_bytes(l->n_dim), l->weight.name, "grad");
    l->bias.grad = tt_new(TIDEMARK_GRADIENT, float_bytes(l->n_dim), l->bias.name, "grad");
    tt_norm_backward((struct tt_norm_shape){n_rows, l->n_dim}, l->in, l->stats, l->weight.value,
                     d_out, d_in, l->weight.grad, l->bias.grad);
    l->stats = tt_free(l->stats);
    tidemark_pop(TIDEMARK_MODULE);
}

/* Attention: qkv, then each position looks back at those before it, then proj. */

static struct tt_attention attention_task(const struct tt_model *model, const struct attention *l,
                                          const char *stage)
{
    return (struct tt_attention){
        .place = {stage, l->name},
        .n_batch = model->batch->n_batch,
        .n_heads = model->shape.n_heads,
        .n_seq = model->shape.n_seq,
        .n_dim = model->shape.n_dim,
        .qkv = l->qkv.out,
        .probs = l->probs,
        .out = l->out,
    };
}

static void attention_forward(const struct tt_model *model, struct attention *l, const float *in)
{
    const struct tt_shape *shape = &model->shape;
    const size_t n_probs = model->n_rows * shape->n_heads * shape->n_seq;
    tidemark_push(TIDEMARK_MODULE, l->name);
    linear_forward(&l->qkv, model->n_rows, in);
    l->probs = tt_new(TIDEMARK_ACTIVATION, float_bytes(n_probs), l->name, "probs");
    l->out = tt_new(TIDEMARK_ACTIVATION, float_bytes(model->n_rows * shape->n_dim), l->name, "out");
    const struct tt_attention task = attention_task(model, l, "forward");
    tt_attention_forward(&task);
    linear_forward(&l->proj, model->n_rows, l->out);
    tidemark_pop(TIDEMARK_MODULE);
}

static float *attention_backward(const struct tt_model *model, struct attention *l,
                                 const float *d_stream)
{
    const size_t n_qkv = model->n_rows * 3 * model->shape.n_dim;
    tidemark_push(TIDEMARK_MODULE, l->name);
    float *d_out = linear_backward(&l->proj, model->n_rows, d_stream);
    l->out = tt_free(l->out);
    float *d_qkv = tt_new(TIDEMARK_TEMPORARY, float_bytes(n_qkv), l->name, "qkv.out.grad");
    struct tt_attention task = attention_task(model, l, "backward");
    task.d_out = d_out;
    task.d_qkv = d_qkv;
    tt_attention_backward(&task);
    l->probs = tt_free(l->probs);
    tt_free(d_out);
    float *d_in = linear_backward(&l->qkv, model->n_rows, d_qkv);
    tt_free(d_qkv);
    tidemark_pop(TIDEMARK_MODULE);
    return d_in;
}

/* MLP: fc1, GELU, fc2. */

static void mlp_forward(struct mlp *l, size_t n_rows, const float *in)
{
    const size_t n = n_rows * l->fc1.n_out;
    tidemark_push(TIDEMARK_MODULE, l->name);
    linear_forward(&l->fc1, n_rows, in);
    l->out = tt_new(TIDEMARK_ACTIVATION, float_bytes(n), l->name, "gelu");
    tt_gelu_forward(n, l->fc1.out, l->out);
    linear_forward(&l->fc2, n_rows, l->out);
    tidemark_pop(TIDEMARK_MODULE);
}

static float *mlp_backward(struct mlp *l, size_t n_rows, const float *d_stream)
{
    tidemark_push(TIDEMARK_MODULE, l->name);
    float *d_hidden = linear_backward(&l->fc2, n_rows, d_stream);
    l->out = tt_free(l->out);
    tt_gelu_backward(n_rows * l->fc1.n_out, l->fc1.out, d_hidden);
    float *d_in = linear_backward(&l->fc1, n_rows, d_hidden);
    tt_free(d_hidden);
    tidemark_pop(TIDEMARK_MODULE);
    return d_in;
}

/* Block: two branches, each added to the stream it was taken from. The sum is kept in the output of
 * the branch's last layer, whose own backward does not need it. */

static const float *block_forward(const struct tt_model *model, struct tt_block *b, const float *in)
{
    const size_t n_rows = model->n_rows, n = n_rows * model->shape.n_dim;
    tidemark_push(TIDEMARK_MODULE, b->name);
    norm_forward(&b->norm1, n_rows, in);
    attention_forward(model, &b->attn, b->norm1.out);
    float *middle = b->attn.proj.out;
    tt_add(n, in, middle);

    norm_forward(&b->norm2, n_rows, middle);
    mlp_forward(&b->mlp, n_rows, b->norm2.out);
    tt_add(n, middle, b->mlp.fc2.out);
    tidemark_pop(TIDEMARK_MODULE);
    return b->mlp.fc2.out;
}

/* Turn d_stream, the gradient of the block's output, into the gradient of its input. */
static void block_backward(const struct tt_model *model, struct tt_block *b, float *d_stream)
{
    const size_t n_rows = model->n_rows;
    tidemark_push(TIDEMARK_MODULE, b->name);
    float *d_branch = mlp_backward(&b->mlp, n_rows, d_stream);
    norm_backward(&b->norm2, n_rows, d_branch, d_stream);
    tt_free(d_branch);

    d_branch = attention_backward(model, &b->attn, d_stream);
    norm_backward(&b->norm1, n_rows, d_branch, d_stream);
    tt_free(d_branch);
    tidemark_pop(TIDEMARK_MODULE);
}

/* Embed: the vector of the token plus the vector of its position. */

static const float *embed_forward(const struct tt_model *model, struct embed *l)
{
    const size_t n_dim = model->shape.n_dim;
    tidemark_push(TIDEMARK_MODULE, l->name);
    l->out = tt_new(TIDEMARK_ACTIVATION, float_bytes(model->n_rows * n_dim), l->name, "out");
    for (size_t i = 0; i < model->n_rows; i++) {
        const size_t token = (size_t)model->batch->tokens[i];
        memcpy(l->out + i * n_dim, l->token.value + token * n_dim, float_bytes(n_dim));
        tt_add(n_dim, l->position.value + i % model->shape.n_seq * n_dim, l->out + i * n_dim);
    }
    tidemark_pop(TIDEMARK_MODULE);
    return l->out;
}

static void embed_backward(const struct tt_model *model, struct embed *l, const float *d_out)
{
    const size_t n_dim = model->shape.n_dim;
    tidemark_push(TIDEMARK_MODULE, l->name);
    l->out = tt_free(l->out);
    l->token.grad = tt_new(TIDEMARK_GRADIENT, float_bytes(l->token.n), l->token.name, "grad");
    l->position.grad =
        tt_new(TIDEMARK_GRADIENT, float_bytes(l->position.n), l->position.name, "grad");
    memset(l->token.grad, 0, float_bytes(l->token.n));
    memset(l->position.grad, 0, float_bytes(l->position.n));
    for (size_t i = 0; i < model->n_rows; i++) {
        const size_t token = (size_t)model->batch->tokens[i];
        tt_add(n_dim, d_out + i * n_dim, l->token.grad + token * n_dim);
        tt_add(n_dim, d_out + i * n_dim, l->position.grad + i % model->shape.n_seq * n_dim);
    }
    tidemark_pop(TIDEMARK_MODULE);
}

/* Loss: mean cross-entropy of the next character. */

static double loss_forward(struct tt_model *model)
{
    const size_t n = model->n_rows * model->shape.n_vocab;
    tidemark_push(TIDEMARK_MODULE, "loss");
    model->probs = tt_new(TIDEMARK_ACTIVATION, float_bytes(n), "loss", "probs");
    const double loss = tt_loss_forward(model->n_rows, model->shape.n_vocab, model->head.out,
                                        model->batch->targets, model->probs);
    tidemark_pop(TIDEMARK_MODULE);
    return loss;
}

static float *loss_backward(struct tt_model *model)
{
    const size_t n = model->n_rows * model->shape.n_vocab;
    tidemark_push(TIDEMARK_MODULE, "loss");
    float *d_logits = tt_new(TIDEMARK_TEMPORARY, float_bytes(n), "loss", "logits.grad");
    tt_loss_backward(model->n_rows, model->shape.n_vocab, model->probs, model->batch->targets,
                     d_logits);
    model->probs = tt_free(model->probs);
    tidemark_pop(TIDEMARK_MODULE);
    return d_logits;
}

/* The whole model. */

double tt_model_forward(struct tt_model *model, const struct tt_batch *batch)
{
    model->batch = batch;
    model->n_rows = batch->n_batch * model->shape.n_seq;
    const float *stream = embed_forward(model, &model->embed);
    for (size_t i = 0; i < model->shape.n_layers; i++)
        stream = block_forward(model, &model->blocks[i], stream);
    norm_forward(&model->norm, model->n_rows, stream);
    linear_forward(&model->head, model->n_rows, model->norm.out);
    return loss_forward(model);
}

/* The gradient of the last norm's input is where the gradient of the stream begins. */
static float *stream_backward_begin(struct tt_model *model, const float *d_normed)
{
    const size_t n = model->n_rows * model->shape.n_dim;
    tidemark_push(TIDEMARK_MODULE, model->norm.name);
    float *d_stream = tt_new(TIDEMARK_TEMPORARY, float_bytes(n), model->norm.name, "in.grad");
    tidemark_pop(TIDEMARK_MODULE);
    memset(d_stream, 0, float_bytes(n));
    norm_backward(&model->norm, model->n_rows, d_normed, d_stream);
    return d_stream;
}

void tt_model_backward(struct tt_model *model)
{
    float *d_logits = loss_backward(model);
    float *d_normed = linear_backward(&model->head, model->n_rows, d_logits);
    tt_free(d_logits);
    float *d_stream = stream_backward_begin(model, d_normed);
    tt_free(d_normed);
    for (size_t i = model->shape.n_layers; i-- > 0;)
        block_backward(model, &model->blocks[i], d_stream);
    embed_backward(model, &model->embed, d_stream);
    tt_free(d_stream);
    model->batch = NULL;
}

void tt_model_zero_grad(struct tt_model *model)
{
    for (struct tt_param *p = model->first_param; p; p = p->next)
        p->grad = tt_free(p->grad);
}

struct tt_param *tt_model_params(struct tt_model *model)
{
    return model->first_param;
}

/* Freeing. After a backward there are no activations; a model may also be closed before one. */

static void linear_free_activations(struct linear *l)
{
    l->out = tt_free(l->out);
}

static void norm_free_activations(struct norm *l)
{
    l->out = tt_free(l->out);
    l->stats = tt_free(l->stats);
}

static void block_free_activations(struct tt_block *b)
{
    norm_free_activations(&b->norm1);
    linear_free_activations(&b->attn.qkv);
    b->attn.probs = tt_free(b->attn.probs);
    b->attn.out = tt_free(b->attn.out);
    linear_free_activations(&b->attn.proj);
    norm_free_activations(&b->norm2);
    linear_free_activations(&b->mlp.fc1);
    b->mlp.out = tt_free(b->mlp.out);
    linear_free_activations(&b->mlp.fc2);
}

struct tt_model *tt_model_close(struct tt_model *model)
{
    if (!model)
        return NULL;
    model->embed.out = tt_free(model->embed.out);
    for (size_t i = 0; i < model->shape.n_layers; i++)
        block_free_activations(&model->blocks[i]);
    norm_free_activations(&model->norm);
    linear_free_activations(&model->head);
    model->probs = tt_free(model->probs);
    for (struct tt_param *p = model->first_param; p; p = p->next) {
        tt_free(p->grad);
        tt_free(p->exp_avg);
        tt_free(p->exp_avg_sq);
        tt_free(p->value);
    }
    free(model->blocks);
    free(model);
    return NULL;
}

/* AdamW. */

static void adamw_make_state(struct tt_param *p)
{
    p->exp_avg = tt_new(TIDEMARK_OPTIMIZER_STATE, float_bytes(p->n), p->name, "exp_avg");
    p->exp_avg_sq = tt_new(TIDEMARK_OPTIMIZER_STATE, float_bytes(p->n), p->name, "exp_avg_sq");
    memset(p->exp_avg, 0, float_bytes(p->n));
    memset(p->exp_avg_sq, 0, float_bytes(p->n));
}

static void adamw_update(const struct tt_adamw *adamw, struct tt_param *p)
{
    const float fix1 = 1.0f - powf(adamw->beta1, (float)adamw->n_steps);
    const float fix2 = 1.0f - powf(adamw->beta2, (float)adamw->n_steps);
    const float keep = p->is_decayed ? 1.0f - adamw->learning_rate * adamw->weight_decay : 1.0f;
    float *denominator = tt_new(TIDEMARK_TEMPORARY, float_bytes(p->n), p->name, "denominator");
    for (size_t i = 0; i < p->n; i++) {
        const float g = p->grad[i];
        p->exp_avg[i] += (1.0f - adamw->beta1) * (g - p->exp_avg[i]);
        p->exp_avg_sq[i] += (1.0f - adamw->beta2) * (g * g - p->exp_avg_sq[i]);
        denominator[i] = sqrtf(p->exp_avg_sq[i] / fix2) + 1e-8f;
    }
    for (size_t i = 0; i < p->n; i++)
        p->value[i] =
            p->value[i] * keep - adamw->learning_rate / fix1 * p->exp_avg[i] / denominator[i];
    tt_free(denominator);
}

void tt_adamw_step(struct tt_adamw *adamw, struct tt_model *model)
{
    tidemark_push(TIDEMARK_MODULE, "AdamW");
    adamw->n_steps++;
    for (struct tt_param *p = model->first_param; p; p = p->next) {
        if (!p->exp_avg)
            adamw_make_state(p);
        adamw_update(adamw, p);
    }
    tidemark_pop(TIDEMARK_MODULE);
}
