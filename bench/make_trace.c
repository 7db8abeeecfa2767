/* SPDX-License-Identifier: MIT */
/* make_trace.c - make a large trace without running anything, and print the truth about it.
 *
 *     make_trace --kind training --events 10000000 -o a.tmk
 *     make_trace --kind torch_trace --rows 10000000 -o b.tmk
 *     make_trace --ranks 1024 --steps 2 -o c.tmk
 *
 * It plays the training of a transformer encoder on one GPU: the layers' forward and backward with
 * their activations, gradients and temporaries, AdamW, batches of varying length. Sizes follow from
 * the model's dimensions, addresses from a model of a caching allocator, and what lives how long
 * from who needs it. `training` does all of it, about 1,250 allocations and as many frees a step;
 * `torch_trace` is about module ranges: about 1,000 opened or closed a step, one or two events
 * between them. The same seed gives the same bytes. With --ranks a run has as many traces, on a
 * host for each eight; the rank at two thirds of them has twice the batch. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bench_out.h"
#include "bench_pool.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"

enum {
    BATCH = 16,
    DIM = 512,
    HEADS = 8,
    FFN_DIM = 2048,
    VOCABULARY = 8000,
    SEQ_MAX = 128,
    SEQ_STEP = 8,
    N_SEQ = 6, /* lengths 88, 96 ... 128 */
    FLOAT_BYTES = 4,
    WORK_BYTES = 1056768, /* a matrix product's scratch */
    TRAINING_LAYERS = 12,
    TRACE_LAYERS = 15,
    THREAD_MAIN = 1,
    THREAD_AUTOGRAD = 2,
    MAX_NODES = 512,
    MAX_OPS = 4,
    MAX_PARAMS = 4,
    MAX_HELD = 1024,
    MOST_RANKS = 100000,
    GPU = TIDEMARK_CUDA(0),
};

/* ---- the model, as tables ---- */

enum size {
    TOKENS,
    FFN,
    SCORES,
    TOKENS_MASK,
    FFN_MASK,
    SCORES_MASK,
    STATS,
    LOGITS,
    IDS,
    WORK,
    ONE
};

/* How long a result lives: KEEP until its module's backward is done, FLOW until the next module is
 * done with it, TEMP until the next operation is done with it. */
enum life { KEEP, FLOW, TEMP };

struct op {
    const char *function;
    uint16_t line;
    uint8_t size;
    uint8_t life;
};

struct module {
    const char *name; /* under its layer */
    const char *file;
    struct op forward[MAX_OPS]; /* up to the first without function */
    struct op backward[MAX_OPS];
    uint32_t params[MAX_PARAMS]; /* elements; up to the first 0 */
    uint8_t depth;               /* of nesting: a module is inside the last one less deep */
};

#define NORM(name_)                                                                                \
    {                                                                                              \
        .depth = 1, .name = (name_), .file = "torch/nn/modules/normalization.py",                  \
        .forward = {{"layer_norm", 2515, TOKENS, KEEP},                                            \
                    {"layer_norm", 2516, TOKENS, KEEP},                                            \
                    {"layer_norm", 2516, STATS, KEEP},                                             \
                    {"layer_norm", 2516, STATS, KEEP}},                                            \
        .backward = {{"", 0, TOKENS, FLOW}, {"", 0, STATS, TEMP}, {"", 0, STATS, TEMP}},           \
        .params = {DIM, DIM},                                                                      \
    }

#define DROPOUT(name_, depth_, size_, mask_)                                                       \
    {                                                                                              \
        .depth = (depth_), .name = (name_), .file = "torch/nn/modules/dropout.py",                 \
        .forward = {{"dropout", 1252, size_, KEEP}, {"dropout", 1252, mask_, KEEP}},               \
        .backward = {{"", 0, size_, FLOW}},                                                        \
    }

#define PROJECTION(name_)                                                                          \
    {                                                                                              \
        .depth = 2, .name = (name_), .file = "torch/nn/modules/linear.py",                         \
        .forward = {{"linear", 1847, TOKENS, TEMP},                                                \
                    {"linear", 1847, WORK, TEMP},                                                  \
                    {"contiguous", 5142, TOKENS, KEEP}},                                           \
        .backward = {{"", 0, TOKENS, FLOW}, {"", 0, WORK, TEMP}, {"", 0, TOKENS, TEMP}},           \
        .params = {DIM * DIM, DIM},                                                                \
    }

static const struct module layer_modules[] = {
    {.depth = 0, .name = "", .file = "torch/nn/modules/transformer.py"},
    {.depth = 1, .name = ".self_attn", .file = "torch/nn/modules/activation.py"},
    PROJECTION(".self_attn.q_proj"),
    PROJECTION(".self_attn.k_proj"),
    PROJECTION(".self_attn.v_proj"),
    {
        .depth = 2,
        .name = ".self_attn.softmax",
        .file = "torch/nn/modules/activation.py",
        .forward = {{"baddbmm", 5101, SCORES, TEMP},
                    {"masked_fill", 5104, SCORES, TEMP},
                    {"softmax", 1841, SCORES, KEEP}},
        .backward = {{"", 0, SCORES, FLOW}, {"", 0, SCORES, TEMP}},
    },
    DROPOUT(".self_attn.dropout", 2, SCORES, SCORES_MASK),
    {
        .depth = 2,
        .name = ".self_attn.out_proj",
        .file = "torch/nn/modules/linear.py",
        .forward = {{"bmm", 5110, TOKENS, TEMP},
                    {"contiguous", 5112, TOKENS, KEEP},
                    {"linear", 1847, TOKENS, FLOW}},
        .backward = {{"", 0, TOKENS, FLOW}, {"", 0, WORK, TEMP}, {"", 0, TOKENS, TEMP}},
        .params = {DIM * DIM, DIM},
    },
    DROPOUT(".dropout1", 1, TOKENS, TOKENS_MASK),
    NORM(".norm1"),
    {
        .depth = 1,
        .name = ".linear1",
        .file = "torch/nn/modules/linear.py",
        .forward = {{"linear", 1847, FFN, KEEP}, {"linear", 1847, WORK, TEMP}},
        .backward = {{"", 0, TOKENS, FLOW}, {"", 0, WORK, TEMP}},
        .params = {DIM * FFN_DIM, FFN_DIM},
    },
    {
        .depth = 1,
        .name = ".activation",
        .file = "torch/nn/modules/activation.py",
        .forward = {{"gelu", 1701, FFN, KEEP}},
        .backward = {{"", 0, FFN, FLOW}},
    },
    DROPOUT(".dropout", 1, FFN, FFN_MASK),
    {
        .depth = 1,
        .name = ".linear2",
        .file = "torch/nn/modules/linear.py",
        .forward = {{"linear", 1847, TOKENS, FLOW}, {"linear", 1847, WORK, TEMP}},
        .backward = {{"", 0, FFN, FLOW}, {"", 0, WORK, TEMP}},
        .params = {DIM * FFN_DIM, DIM},
    },
    DROPOUT(".dropout2", 1, TOKENS, TOKENS_MASK),
    NORM(".norm2"),
};

static const struct module first_modules[] = {
    {.depth = 0, .name = "model", .file = "model.py"},
    {
        .depth = 1,
        .name = "embed_tokens",
        .file = "torch/nn/modules/sparse.py",
        .forward = {{"embedding", 2210, TOKENS, TEMP}, {"embedding", 2211, TOKENS, FLOW}},
        .backward = {{"", 0, IDS, TEMP}, {"", 0, IDS, TEMP}},
        .params = {VOCABULARY * DIM},
    },
    {
        .depth = 1,
        .name = "embed_positions",
        .file = "torch/nn/modules/sparse.py",
        .forward = {{"arange", 44, IDS, KEEP}, {"embedding", 2210, TOKENS, FLOW}},
        .backward = {{"", 0, IDS, TEMP}},
        .params = {SEQ_MAX * DIM},
    },
    {.depth = 1, .name = "encoder", .file = "torch/nn/modules/transformer.py"},
};

static const struct module last_modules[] = {
    {
        .depth = 2,
        .name = "encoder.norm",
        .file = "torch/nn/modules/normalization.py",
        .forward = {{"layer_norm", 2515, TOKENS, KEEP}, {"layer_norm", 2516, STATS, KEEP}},
        .backward = {{"", 0, TOKENS, FLOW}, {"", 0, STATS, TEMP}},
        .params = {DIM, DIM},
    },
    {
        .depth = 1,
        .name = "lm_head",
        .file = "torch/nn/modules/linear.py",
        .forward = {{"linear", 1847, LOGITS, KEEP}, {"linear", 1847, WORK, TEMP}},
        .backward = {{"", 0, TOKENS, FLOW}, {"", 0, WORK, TEMP}},
        .params = {DIM * VOCABULARY, VOCABULARY},
    },
    {
        .depth = 1,
        .name = "loss",
        .file = "torch/nn/modules/loss.py",
        .forward = {{"log_softmax", 1932, LOGITS, KEEP},
                    {"nll_loss", 3053, ONE, KEEP},
                    {"nll_loss", 3053, ONE, FLOW}},
        .backward = {{"", 0, ONE, TEMP}, {"", 0, LOGITS, FLOW}, {"", 0, LOGITS, TEMP}},
    },
};

static const char *const param_names[MAX_PARAMS] = {"weight", "bias"};

/* ---- the workload at work ---- */

struct held { /* blocks to be freed together */
    struct tmk_bench_block blocks[MAX_HELD];
    uint32_t n;
};

struct param {
    uint64_t size_bytes;
    uint32_t name;
    uint32_t stack;
};

struct node { /* one module of the tree, in the order of its forward */
    const struct module *module;
    uint32_t depth;
    uint32_t name;
    uint32_t end; /* nodes up to here are inside */
    uint32_t stacks[MAX_OPS];
    struct tmk_bench_block kept[MAX_OPS];
    uint32_t n_kept;
    uint32_t first_param, n_params;
};

struct maker {
    struct tmk_bench_out out;
    uint64_t batch;
    struct tmk_bench_pool *pool;
    bool is_torch_trace;
    uint32_t n_layers;
    struct node nodes[MAX_NODES];
    uint32_t n_nodes;
    struct param params[MAX_NODES * MAX_PARAMS];
    uint32_t n_params;
    uint32_t stack_backward, stack_state, stack_denom, stack_clip, stack_input;
    uint32_t stage_forward, stage_backward, stage_optimizer, optimizer;
    uint32_t name_input;

    uint64_t seq; /* this step's length */
    uint32_t thread;
    struct held temps, gradients;
    struct held flows[2]; /* of this module and of the one before, in turn */
    bool turn;
};

static uint64_t size_of(const struct maker *m, enum size size)
{
    const uint64_t tokens = m->batch * m->seq;
    const uint64_t scores = m->batch * HEADS * m->seq * m->seq;
    switch (size) {
    case TOKENS:
        return tokens * DIM * FLOAT_BYTES;
    case FFN:
        return tokens * FFN_DIM * FLOAT_BYTES;
    case SCORES:
        return scores * FLOAT_BYTES;
    case TOKENS_MASK:
        return tokens * DIM;
    case FFN_MASK:
        return tokens * FFN_DIM;
    case SCORES_MASK:
        return scores;
    case STATS:
        return tokens * FLOAT_BYTES;
    case LOGITS:
        return tokens * VOCABULARY * FLOAT_BYTES;
    case IDS:
        return tokens * 8;
    case WORK:
        return WORK_BYTES;
    case ONE:
        break;
    }
    return FLOAT_BYTES;
}

/* ---- events ---- */

static struct tmk_bench_block take(struct maker *m, uint64_t size_bytes, uint32_t stack)
{
    struct tmk_bench_block b = tmk_bench_pool_take(m->pool, size_bytes);
    struct tmk_input in = {.kind = TMK_KIND_ALLOC,
                           .device = GPU,
                           .a = b.address,
                           .b = b.size_bytes,
                           .id = stack,
                           .thread = m->thread};
    tmk_bench_out_event(&m->out, &in);
    return b;
}

static void give(struct maker *m, struct tmk_bench_block b)
{
    struct tmk_input in = {.kind = TMK_KIND_FREE,
                           .device = GPU,
                           .a = b.address,
                           .b = b.size_bytes,
                           .thread = m->thread};
    tmk_bench_out_event(&m->out, &in);
    tmk_bench_pool_give(m->pool, b.handle);
}

static void tag(struct maker *m, struct tmk_bench_block b, enum tidemark_category category,
                uint32_t name)
{
    struct tmk_input in = {.kind = TMK_KIND_TAG,
                           .device = GPU,
                           .a = b.address,
                           .b = category,
                           .id = name,
                           .thread = m->thread};
    tmk_bench_out_event(&m->out, &in);
}

static void push(struct maker *m, enum tidemark_range kind, uint32_t name)
{
    struct tmk_input in = {.kind = TMK_KIND_PUSH, .a = kind, .id = name, .thread = m->thread};
    tmk_bench_out_event(&m->out, &in);
}

static void pop(struct maker *m, enum tidemark_range kind)
{
    struct tmk_input in = {.kind = TMK_KIND_POP, .a = kind, .thread = m->thread};
    tmk_bench_out_event(&m->out, &in);
}

static void begin_step(struct maker *m, uint64_t step)
{
    struct tmk_input in = {.kind = TMK_KIND_STEP, .a = step, .thread = m->thread};
    tmk_bench_out_event(&m->out, &in);
}

static void hold(struct held *held, struct tmk_bench_block b)
{
    if (held->n == MAX_HELD)
        abort(); /* the tables above hold more than this program was written for */
    held->blocks[held->n++] = b;
}

static void give_all(struct maker *m, struct held *held)
{
    for (uint32_t i = 0; i < held->n; i++)
        give(m, held->blocks[i]);
    held->n = 0;
}

/* ---- one module's work ---- */

static void one_op(struct maker *m, struct node *node, const struct op *op, uint32_t stack)
{
    struct tmk_bench_block b = take(m, size_of(m, op->size), stack);
    give_all(m, &m->temps);
    if (op->life == KEEP)
        node->kept[node->n_kept++] = b;
    else
        hold(op->life == FLOW ? &m->flows[m->turn] : &m->temps, b);
}

/* The module is done: so is what it was given. */
static void end_module(struct maker *m)
{
    give_all(m, &m->temps);
    m->turn = !m->turn;
    give_all(m, &m->flows[m->turn]);
}

static bool is_leaf(const struct node *node)
{
    return node->module->forward[0].function != NULL;
}

static void work_forward(struct maker *m, struct node *node)
{
    if (!is_leaf(node))
        return;
    for (int i = 0; i < MAX_OPS && node->module->forward[i].function; i++)
        one_op(m, node, &node->module->forward[i], node->stacks[i]);
    if (node->n_kept > 2) /* normalisations: what they keep is known to be an activation */
        tag(m, node->kept[0], TIDEMARK_ACTIVATION, node->name);
    end_module(m);
}

static void make_gradients(struct maker *m, const struct node *node)
{
    for (uint32_t i = 0; i < node->n_params; i++) {
        const struct param *param = &m->params[node->first_param + i];
        struct tmk_bench_block b = take(m, param->size_bytes, m->stack_backward);
        hold(&m->gradients, b);
        if (i == 0)
            tag(m, b, TIDEMARK_GRADIENT, param->name);
    }
}

static void work_backward(struct maker *m, struct node *node)
{
    if (!is_leaf(node))
        return;
    for (int i = 0; i < MAX_OPS && node->module->backward[i].function; i++)
        one_op(m, node, &node->module->backward[i], m->stack_backward);
    make_gradients(m, node);
    while (node->n_kept > 0)
        give(m, node->kept[--node->n_kept]);
    end_module(m);
}

/* ---- torch_trace: one or two events between ranges ---- */

static void flicker(struct maker *m, const struct node *node)
{
    give(m, take(m, size_of(m, node->module->depth ? TOKENS : IDS), node->stacks[0]));
}

static void touch_forward(struct maker *m, struct node *node, bool is_end)
{
    if (is_end)
        flicker(m, node);
    else
        node->kept[node->n_kept++] = take(
            m, size_of(m, is_leaf(node) ? node->module->forward[0].size : STATS), node->stacks[0]);
}

static void touch_backward(struct maker *m, struct node *node, bool is_end)
{
    if (!is_end)
        flicker(m, node);
    else if (node->n_kept > 0)
        give(m, node->kept[--node->n_kept]);
}

/* ---- the tree ---- */

static void forward(struct maker *m, uint32_t i)
{
    struct node *node = &m->nodes[i];
    push(m, TIDEMARK_MODULE, node->name);
    if (m->is_torch_trace)
        touch_forward(m, node, false);
    else
        work_forward(m, node);
    for (uint32_t k = i + 1; k < node->end; k = m->nodes[k].end)
        forward(m, k);
    pop(m, TIDEMARK_MODULE);
    if (m->is_torch_trace)
        touch_forward(m, node, true);
}

static void backward(struct maker *m, uint32_t i)
{
    struct node *node = &m->nodes[i];
    push(m, TIDEMARK_MODULE, node->name);
    if (m->is_torch_trace)
        touch_backward(m, node, false);
    uint32_t children[MAX_NODES], n = 0;
    for (uint32_t k = i + 1; k < node->end; k = m->nodes[k].end)
        children[n++] = k;
    while (n > 0)
        backward(m, children[--n]);
    if (!m->is_torch_trace)
        work_backward(m, node);
    pop(m, TIDEMARK_MODULE);
    if (m->is_torch_trace)
        touch_backward(m, node, true);
}

static void clip_gradients(struct maker *m)
{
    struct held norms = {0};
    for (uint32_t i = 0; i < m->n_params; i += 4)
        hold(&norms, take(m, size_of(m, ONE), m->stack_clip));
    give_all(m, &norms);
}

static void optimize(struct maker *m, bool is_first)
{
    push(m, TIDEMARK_STAGE, m->stage_optimizer);
    push(m, TIDEMARK_MODULE, m->optimizer);
    for (uint32_t i = 0; is_first && i < 2 * m->n_params; i++) {
        const struct param *param = &m->params[i / 2];
        tag(m, take(m, param->size_bytes, m->stack_state), TIDEMARK_OPTIMIZER_STATE, param->name);
    }
    if (m->is_torch_trace) {
        give(m, take(m, size_of(m, ONE), m->stack_denom));
    } else {
        clip_gradients(m);
        struct held denoms = {0};
        for (uint32_t i = 0; i < m->n_params; i++)
            hold(&denoms, take(m, m->params[i].size_bytes, m->stack_denom));
        give_all(m, &denoms);
    }
    pop(m, TIDEMARK_MODULE);
    pop(m, TIDEMARK_STAGE);
}

static void run_forward(struct maker *m)
{
    push(m, TIDEMARK_STAGE, m->stage_forward);
    for (uint32_t i = 0; i < m->n_nodes; i = m->nodes[i].end)
        forward(m, i);
    pop(m, TIDEMARK_STAGE);
}

/* The main thread waits in backward() while autograd's thread works. */
static void run_backward(struct maker *m)
{
    push(m, TIDEMARK_STAGE, m->stage_backward);
    m->thread = THREAD_AUTOGRAD;
    push(m, TIDEMARK_STAGE, m->stage_backward);
    backward(m, 0);
    end_module(m);
    end_module(m);
    pop(m, TIDEMARK_STAGE);
    m->thread = THREAD_MAIN;
    pop(m, TIDEMARK_STAGE);
}

static void train_step(struct maker *m, uint64_t step)
{
    begin_step(m, step);
    m->seq = SEQ_MAX - SEQ_STEP * (tmk_bench_out_random(&m->out) % N_SEQ);
    struct tmk_bench_block input = take(m, size_of(m, IDS), m->stack_input);
    struct tmk_bench_block target = take(m, size_of(m, IDS), m->stack_input);
    tag(m, input, TIDEMARK_INPUT, m->name_input);
    run_forward(m);
    run_backward(m);
    optimize(m, step == 0);
    give_all(m, &m->gradients);
    give(m, input);
    give(m, target);
    tmk_bench_out_wait(&m->out, 1000000 + tmk_bench_out_random(&m->out) % 2000000);
}

/* ---- setting up ---- */

static uint32_t stack_of(struct maker *m, const char *file, const char *function, uint32_t line)
{
    struct tmk_bench_out *o = &m->out;
    uint32_t frames[] = {
        tmk_bench_out_frame(o, file, function, line),
        tmk_bench_out_frame(o, "train.py", "train_step", 61),
        tmk_bench_out_frame(o, "train.py", "main", 118),
        tmk_bench_out_frame(o, "train.py", "<module>", 131),
    };
    return tmk_bench_out_stack(o, frames, sizeof frames / sizeof frames[0]);
}

/* A module's operation as Python has it: the function, the module, its layer, the model. */
static uint32_t op_stack(struct maker *m, const struct module *module, const struct op *op,
                         uint32_t line)
{
    struct tmk_bench_out *o = &m->out;
    uint32_t call = tmk_bench_out_frame(o, "torch/nn/modules/module.py", "_call_impl", 1518);
    uint32_t frames[] = {
        tmk_bench_out_frame(o, "torch/nn/functional.py", op->function, op->line),
        tmk_bench_out_frame(o, module->file, "forward", 40 + op->line % 97),
        call,
        tmk_bench_out_frame(o, "model.py", "forward", line),
        call,
        tmk_bench_out_frame(o, "train.py", "train_step", 54),
        tmk_bench_out_frame(o, "train.py", "main", 118),
        tmk_bench_out_frame(o, "train.py", "<module>", 131),
    };
    return tmk_bench_out_stack(o, frames, sizeof frames / sizeof frames[0]);
}

static void add_params(struct maker *m, struct node *node, const char *name, uint32_t line)
{
    node->first_param = m->n_params;
    for (int i = 0; i < MAX_PARAMS && node->module->params[i]; i++) {
        char text[160];
        snprintf(text, sizeof text, "%s.%s", name, param_names[i]);
        m->params[m->n_params++] = (struct param){
            .size_bytes = (uint64_t)node->module->params[i] * FLOAT_BYTES,
            .name = tmk_bench_out_string(&m->out, text),
            .stack = stack_of(m, "model.py", "__init__", line + (uint32_t)i),
        };
        node->n_params++;
    }
}

static void add_module(struct maker *m, const struct module *module, const char *prefix,
                       uint32_t depth)
{
    if (m->n_nodes == MAX_NODES)
        abort(); /* the tables above hold more than this program was written for */
    char name[128];
    snprintf(name, sizeof name, "%s%s", prefix, module->name);
    uint32_t line = 100 + m->n_nodes; /* the model is written out, layer by layer */
    struct node *node = &m->nodes[m->n_nodes++];
    *node = (struct node){.module = module, .depth = depth};
    node->name = tmk_bench_out_string(&m->out, name);
    add_params(m, node, name, line + 1000);
    static const struct op call = {.function = "forward", .line = 12};
    node->stacks[0] = is_leaf(node) ? 0 : op_stack(m, module, &call, line);
    for (int i = 0; i < MAX_OPS && module->forward[i].function; i++)
        node->stacks[i] = op_stack(m, module, &module->forward[i], line);
}

static void add_modules(struct maker *m, const struct module *modules, size_t n, const char *prefix,
                        uint32_t depth)
{
    for (size_t i = 0; i < n; i++)
        add_module(m, &modules[i], prefix, depth + modules[i].depth);
}

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

static void build_model(struct maker *m)
{
    add_modules(m, first_modules, N_OF(first_modules), "", 0);
    for (uint32_t i = 0; i < m->n_layers; i++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "encoder.layers.%u", i);
        add_modules(m, layer_modules, N_OF(layer_modules), prefix, 2);
    }
    add_modules(m, last_modules, N_OF(last_modules), "", 0);
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        uint32_t end = i + 1;
        while (end < m->n_nodes && m->nodes[end].depth > m->nodes[i].depth)
            end++;
        m->nodes[i].end = end;
    }
}

static void set_up(struct maker *m)
{
    struct tmk_bench_out *o = &m->out;
    tmk_bench_out_thread(o, THREAD_MAIN, 4242, "python");
    tmk_bench_out_thread(o, THREAD_AUTOGRAD, 4243, "pt_autograd_0");
    m->thread = THREAD_MAIN;
    m->stage_forward = tmk_bench_out_string(o, "forward");
    m->stage_backward = tmk_bench_out_string(o, "backward");
    m->stage_optimizer = tmk_bench_out_string(o, "optimizer");
    m->optimizer = tmk_bench_out_string(o, "AdamW");
    m->name_input = tmk_bench_out_string(o, "input_ids");
    m->stack_input = stack_of(m, "data.py", "to_device", 33);
    m->stack_backward = stack_of(m, "torch/autograd/__init__.py", "backward", 251);
    m->stack_state = stack_of(m, "torch/optim/adamw.py", "_init_group", 125);
    m->stack_denom = stack_of(m, "torch/optim/adamw.py", "_multi_tensor_adamw", 595);
    m->stack_clip = stack_of(m, "torch/nn/utils/clip_grad.py", "clip_grad_norm_", 55);
    build_model(m);
    for (uint32_t i = 0; i < m->n_params; i++) {
        const struct param *param = &m->params[i];
        tag(m, take(m, param->size_bytes, param->stack), TIDEMARK_PARAMETER, param->name);
    }
}

/* ---- the program ---- */

struct settings {
    const char *folder;
    const char *kind;
    uint64_t n_events, n_rows, n_steps, seed, n_ranks;
};

static int usage(void)
{
    fputs("usage: make_trace --kind training|torch_trace [--events N] [--rows N] [--steps N]\n"
          "                  [--seed N] [--ranks N] -o DIR.tmk\n"
          "Ends at the first limit reached: 10 million events (training) or rows (torch_trace)\n"
          "when none is given. Prints what the trace holds as one JSON object.\n",
          stderr);
    return 2;
}

static int parse_number(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-')
        return TMK_EINVAL;
    *ret = value;
    return 0;
}

static int parse(int argc, char **argv, struct settings *s)
{
    const struct {
        const char *name;
        uint64_t *number;
        const char **text;
    } flags[] = {
        {"--events", &s->n_events, NULL}, {"--rows", &s->n_rows, NULL},
        {"--steps", &s->n_steps, NULL},   {"--seed", &s->seed, NULL},
        {"--ranks", &s->n_ranks, NULL},   {"--kind", NULL, &s->kind},
        {"-o", NULL, &s->folder},
    };
    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;
        while (k < N_OF(flags) && strcmp(argv[i], flags[k].name) != 0)
            k++;
        if (k == N_OF(flags) || i + 1 >= argc)
            return TMK_EINVAL;
        if (flags[k].text)
            *flags[k].text = argv[i + 1];
        else if (parse_number(argv[i + 1], flags[k].number) < 0)
            return TMK_EINVAL;
    }
    bool is_known = strcmp(s->kind, "training") == 0 || strcmp(s->kind, "torch_trace") == 0;
    bool has_ranks = s->n_ranks > 0 && s->n_ranks <= MOST_RANKS;
    return is_known && has_ranks && s->folder ? 0 : TMK_EINVAL;
}

static void print_truth(const struct maker *m, const char *kind)
{
    const struct tmk_bench_truth *t = &m->out.truth;
    printf("{\"kind\":\"%s\",\"events\":%" PRIu64 ",\"allocations\":%" PRIu64 ",\"frees\":%" PRIu64
           ",\"tags\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"steps\":%" PRIu64
           ",\"live_bytes\":%" PRIu64 ",\"live_blocks\":%" PRIu64 ",\"peak_bytes\":%" PRIu64
           ",\"peak_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
           ",\"modules\":%u,\"stacks\":%u,\"file_bytes\":%" PRIu64 "}\n",
           kind, t->n_events, t->n_allocs, t->n_frees, t->n_tags, t->n_rows, t->n_steps,
           t->live_bytes, t->n_live, t->peak_bytes, t->peak_ns, t->end_ns, m->n_nodes + 1,
           m->out.n_stacks, t->file_bytes);
}

static int make(struct maker *m, const struct settings *s, unsigned rank)
{
    const struct tmk_bench_rank place = {rank, (unsigned)s->n_ranks};
    *m = (struct maker){.batch = rank > 0 && rank == s->n_ranks * 2 / 3 ? 2 * BATCH : BATCH};
    m->is_torch_trace = strcmp(s->kind, "torch_trace") == 0;
    m->n_layers = m->is_torch_trace ? TRACE_LAYERS : TRAINING_LAYERS;
    m->pool = tmk_bench_pool_open();
    if (!m->pool)
        return TMK_ENOMEM;
    struct tmk_bench_limits limits = {.n_events = s->n_events, .n_rows = s->n_rows};
    char command[96];
    snprintf(command, sizeof command, "make_trace --kind %s --seed %" PRIu64, s->kind, s->seed);
    int rc = tmk_bench_out_open(&m->out, s->folder, command, s->seed, &limits, &place);
    if (rc == 0)
        set_up(m);
    for (uint64_t step = 0; rc == 0 && step < s->n_steps && !m->out.is_full; step++) {
        train_step(m, step);
        rc = m->out.rc;
    }
    rc = tmk_bench_out_close(&m->out);
    m->pool = tmk_bench_pool_close(m->pool);
    return rc;
}

int main(int argc, char **argv)
{
    struct settings s = {.kind = "training", .seed = 1, .n_ranks = 1};
    if (parse(argc, argv, &s) < 0)
        return usage();
    if (!s.n_events && !s.n_rows && !s.n_steps)
        *(strcmp(s.kind, "training") == 0 ? &s.n_events : &s.n_rows) = 10000000;
    s.n_events = s.n_events ? s.n_events : UINT64_MAX;
    s.n_rows = s.n_rows ? s.n_rows : UINT64_MAX;
    s.n_steps = s.n_steps ? s.n_steps : UINT64_MAX;
    static struct maker maker;
    int rc = 0;
    for (unsigned rank = 0; rc == 0 && rank < s.n_ranks; rank++)
        rc = make(&maker, &s, rank);
    if (rc < 0) {
        const char *why = maker.out.error.text;
        fprintf(stderr, "make_trace: %s\n", why[0] ? why : tmk_result_text(rc));
        return 1;
    }
    print_truth(&maker, s.kind);
    return 0;
}
