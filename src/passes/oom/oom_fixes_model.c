/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_fixes_model.c - see oom_fixes.h: fixes of the model and of its training. All of
 * them are estimates from bytes by category, except for what was plainly there and not needed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/textmap.h"
#include "model/owners.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_fixes_internal.h"
#include "passes/oom/oom_scene.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

/* The cost of a fix to the user. */
enum { A_CALL = 1, THE_BATCH = 2, TIME = 3, A_LIBRARY = 4, OTHER_TRAINING = 6, A_CARD = 9 };

/* ---- the batch ---- */

/* Leave a part of the limit for what is not seen yet: after an interrupted forward that is all
 * that backward adds, the gradients of its inputs and the handles and workspaces of cuBLAS. */
static double room_of_limit(const struct tmk_case *c)
{
    return (c->need.is_estimate ? 0.85 : 0.92) * (double)c->verdict.limit_bytes;
}

/* The categories of blocks are not known, so neither is how much this saves. */
static void some_smaller_batch(struct tmk_fixing *f)
{
    const struct tmk_process *p = f->c->p;
    bool is_imported = p && p->reader && tmk_reader_info(p->reader, "imported");
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "batch",
                         .saves_bytes = TMK_BYTES_UNKNOWN,
                         .proof = TMK_PROOF_ESTIMATE,
                         .cost = THE_BATCH,
                         .is_for_cause = f->c->verdict.rows[0].cause == TMK_CAUSE_DEMAND},
        "Use a smaller batch or shorter sequences. %s.",
        is_imported ? _("A snapshot does not say what blocks are for; a trace of tidemark run does")
                    : _("The category of most blocks is not known, since no module was seen to "
                        "allocate them"));
}

static void smaller_batch(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    char size[TMK_AMOUNT_BYTES], need[TMK_AMOUNT_BYTES];
    uint64_t unknown = c->scene.category_bytes[TIDEMARK_UNKNOWN];
    if (!c->scene.is_of_driver && unknown > 0 && unknown >= c->scene.allocated_bytes / 10 * 9)
        some_smaller_batch(f);
    if (!c->need.has_parts || !tmk_fixing_is_much(c, c->need.scaling_bytes))
        return;
    double scaling = (double)c->need.scaling_bytes;
    double fixed = (double)(c->need.bytes - c->need.scaling_bytes);
    double part = (room_of_limit(c) - fixed) / scaling;
    int percent = part < 0 ? 0 : part > 0.95 ? 95 : (int)(part * 100);
    if (percent < 2)
        return; /* not even one sample: the rest is too much */
    uint64_t saves = c->need.scaling_bytes / 100 * (uint64_t)(100 - percent);
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "batch",
                         .saves_bytes = saves,
                         .proof = TMK_PROOF_ESTIMATE,
                         .avoids = tmk_fixing_covers(c, saves),
                         .factor = percent / 100.0,
                         .cost = THE_BATCH,
                         .is_for_cause = c->verdict.rows[0].cause == TMK_CAUSE_DEMAND},
        "Use at most %d %% of the batch (%d of every 32 samples) or sequence length. Accumulate "
        "gradients over %d parts to train the same. The step needs %s%s; %s of it scales with "
        "the batch.",
        percent, percent * 32 / 100 ? percent * 32 / 100 : 1, (99 + percent) / percent,
        c->need.is_estimate ? _("about ") : _("at least "), tmk_size_text(c->need.bytes, need),
        tmk_size_text(c->need.scaling_bytes, size));
}

/* ---- checkpointing ---- */

/* The length up to and including the first part that is a number: "layers.3" of
 * "layers.3.attn.q". 0: there is none. */
static size_t block_length(const char *module)
{
    const char *at = module;
    while (*at) {
        size_t n = strcspn(at, ".");
        if (n > 0 && strspn(at, "0123456789") >= n)
            return (size_t)(at - module) + n;
        at += n + (at[n] == '.');
    }
    return 0;
}

struct blocks {
    uint32_t n;
    uint64_t bytes;        /* activations in all of them */
    uint64_t tensor_bytes; /* a large one, as each block's input will be */
};

static int find_scene_blocks(struct tmk_fixing *f, struct blocks *ret)
{
    const struct tmk_scene *s = &f->c->scene;
    struct tmk_textmap seen = {0};
    int rc = 0;
    *ret = (struct blocks){0};
    for (uint64_t i = 0; i < s->n_activations && rc == 0; i++) {
        const struct tmk_peak_row *row = &s->activations[i];
        size_t n = row->key ? block_length(row->key) : 0;
        char *name = n ? tmk_arena_text(f->arena, row->key, n) : NULL;
        uint32_t number;
        if (n == 0)
            continue;
        rc = name ? tmk_textmap_put(&seen, name, &number) : TMK_ENOMEM;
        ret->bytes += row->bytes;
        if (row->n_blocks && row->bytes / row->n_blocks > ret->tensor_bytes)
            ret->tensor_bytes = row->bytes / row->n_blocks;
    }
    ret->n = (uint32_t)seen.n;
    tmk_textmap_fini(&seen);
    return rc;
}

/* The least that is kept when the blocks of each `group` are recomputed at once: their inputs,
 * and all of one group. */
static uint64_t kept_by_groups(uint32_t n, uint64_t block_bytes, uint64_t input_bytes,
                               uint32_t *ret_group)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t group = 1; group <= n; group++) {
        uint64_t kept = (n + group - 1) / group * input_bytes + group * block_bytes;
        if (kept < best) {
            best = kept;
            *ret_group = group;
        }
    }
    return best;
}

static void add_checkpointing_fix(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    struct blocks blocks;
    char size[TMK_AMOUNT_BYTES], groups[96] = "";
    if (!c->need.has_parts || find_scene_blocks(f, &blocks) < 0) {
        f->failed = f->failed || c->need.has_parts;
        return;
    }
    uint64_t now = c->scene.category_bytes[TIDEMARK_ACTIVATION];
    if (blocks.n < 3 || now == 0)
        return;
    uint32_t group = 1;
    uint64_t kept = kept_by_groups(blocks.n, blocks.bytes / blocks.n, blocks.tensor_bytes, &group);
    if (kept >= blocks.bytes)
        return;
    /* An interrupted forward has as much of the rest ahead. */
    double more = (double)c->need.activation_bytes / (double)now;
    uint64_t saves = tmk_size_whole((double)(blocks.bytes - kept) * more);
    if (!tmk_fixing_is_much(c, saves))
        return;
    snprintf(groups, sizeof groups, "%s", _("each block"));
    if (group > 1)
        snprintf(groups, sizeof groups, _("groups of %" PRIu32 " blocks"), group);
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "checkpointing",
                         .saves_bytes = saves,
                         .proof = TMK_PROOF_ESTIMATE,
                         .avoids = tmk_fixing_covers(c, saves),
                         .cost = TIME,
                         .is_for_cause = c->verdict.rows[0].cause == TMK_CAUSE_DEMAND},
        "Checkpoint %s with torch.utils.checkpoint. Only their inputs are kept; backward computes "
        "the rest again, which takes about a third more time. Activations used %s.",
        groups, tmk_size_text(now, size));
}

/* ---- dtypes, optimizer, what is trained ---- */

struct weights {
    uint64_t bytes, trained_bytes, float32_bytes;
};

static struct weights weights_of(const struct tmk_process *p, uint16_t device)
{
    struct weights w = {0};
    for (uint32_t i = 0; i < tmk_parameters_n(p); i++) {
        const struct tmk_parameter *parameter = tmk_parameter_get(p, i);
        if (parameter->device != device ||
            parameter->flags & (TMK_PARAMETER_IS_BUFFER | TMK_PARAMETER_IS_TIED))
            continue;
        w.bytes += parameter->size_bytes;
        if (parameter->flags & TMK_PARAMETER_REQUIRES_GRAD)
            w.trained_bytes += parameter->size_bytes;
        if (parameter->shape && strncmp(parameter->shape, "float32", 7) == 0)
            w.float32_bytes += parameter->size_bytes;
    }
    return w;
}

static void half_precision(struct tmk_fixing *f, const struct weights *w)
{
    const struct tmk_case *c = f->c;
    uint64_t saves = c->need.activation_bytes / 2;
    if (!c->need.has_parts || w->bytes == 0 || w->float32_bytes < w->bytes / 2 ||
        !tmk_fixing_is_much(c, saves))
        return;
    tmk_fixing_add(f,
                   (struct tmk_fix){.kind = "bfloat16",
                                    .saves_bytes = saves,
                                    .proof = TMK_PROOF_ESTIMATE,
                                    .avoids = tmk_fixing_covers(c, saves),
                                    .cost = TIME},
                   "Compute in bfloat16 with torch.autocast. The weights are float32; activations "
                   "that are float32 too take half.");
}

static void smaller_optimizer(struct tmk_fixing *f, const struct weights *w)
{
    const struct tmk_case *c = f->c;
    uint64_t state = c->scene.category_bytes[TIDEMARK_OPTIMIZER_STATE], saves = state / 4 * 3;
    char size[TMK_AMOUNT_BYTES];
    if (w->float32_bytes < w->bytes / 2 || w->bytes == 0 || !tmk_fixing_is_much(c, saves))
        return;
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "optimizer",
                         .saves_bytes = saves,
                         .proof = TMK_PROOF_ESTIMATE,
                         .avoids = tmk_fixing_covers(c, saves),
                         .cost = A_LIBRARY},
        "Keep the optimizer state in 8 bits (bitsandbytes, torchao). It uses %s, float32 "
        "as far as is known. Plain SGD has none.",
        tmk_size_text(state, size));
}

static void add_shard_fix(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    uint64_t state = c->scene.category_bytes[TIDEMARK_OPTIMIZER_STATE];
    int64_t n = c->p->world_size;
    char size[TMK_AMOUNT_BYTES];
    if (n < 2)
        return;
    uint64_t saves = state - state / (uint64_t)n;
    if (!tmk_fixing_is_much(c, saves))
        return;
    tmk_fixing_add(f,
                   (struct tmk_fix){.kind = "shard",
                                    .saves_bytes = saves,
                                    .proof = TMK_PROOF_ESTIMATE,
                                    .avoids = tmk_fixing_covers(c, saves),
                                    .cost = A_LIBRARY},
                   "Shard the optimizer state over the %" PRId64
                   " ranks (ZeroRedundancyOptimizer, FSDP). "
                   "That saves memory if it is not sharded yet; each rank has %s.",
                   n, tmk_size_text(state, size));
}

static void train_fewer_parameters(struct tmk_fixing *f, const struct weights *w)
{
    const struct tmk_case *c = f->c;
    const uint64_t *of = c->scene.category_bytes;
    uint64_t saves = (of[TIDEMARK_GRADIENT] + of[TIDEMARK_OPTIMIZER_STATE]) / 100 * 98;
    if (w->bytes == 0 || w->trained_bytes < w->bytes / 10 * 9 || !tmk_fixing_is_much(c, saves))
        return;
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "lora",
                         .saves_bytes = saves,
                         .proof = TMK_PROOF_ESTIMATE,
                         .avoids = tmk_fixing_covers(c, saves),
                         .cost = OTHER_TRAINING},
        "Train small adapters (LoRA) instead of all weights. With 2 %% of the weights trained, "
        "gradients and optimizer state nearly vanish.");
}

/* ---- what was there for nothing ---- */

static void drop_gradients(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    uint64_t gradients = c->scene.category_bytes[TIDEMARK_GRADIENT];
    char size[TMK_AMOUNT_BYTES];
    if (c->scene.stage_kind != TMK_STAGE_FORWARD || !tmk_fixing_is_much(c, gradients))
        return;
    tmk_fixing_add(f,
                   (struct tmk_fix){.kind = "zero_grad",
                                    .saves_bytes = gradients,
                                    .proof = TMK_PROOF_MEASURED,
                                    .avoids = tmk_fixing_covers(c, gradients),
                                    .cost = A_CALL},
                   "Call zero_grad(set_to_none=True) before forward. Gradients used %s while "
                   "forward ran. Leave it where gradients are accumulated on purpose.",
                   tmk_size_text(gradients, size));
}

/* Returns whether that is the fix: then the rest, which only makes room for more graphs, is not. */
static bool no_graph(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    uint64_t activations = c->scene.category_bytes[TIDEMARK_ACTIVATION];
    char size[TMK_AMOUNT_BYTES];
    bool keeps = tmk_scene_keeps_graphs(&c->scene);
    if ((c->scene.stage_kind != TMK_STAGE_EVAL && !keeps) || !tmk_fixing_is_much(c, activations))
        return false;
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "no_grad",
                         .saves_bytes = activations,
                         .proof = keeps ? TMK_PROOF_MEASURED : TMK_PROOF_ESTIMATE,
                         .avoids = keeps ? activations >= c->verdict.missing_bytes
                                         : tmk_fixing_covers(c, activations),
                         .cost = A_CALL,
                         .is_for_cause = keeps || c->verdict.rows[0].cause == TMK_CAUSE_DEMAND},
        "Evaluate under torch.no_grad(). %s were kept for a backward that does not come. Keep "
        "values only (.item(), .detach()%s).",
        tmk_size_text(activations, size), c->scene.device == TIDEMARK_HOST ? "" : ", .cpu()");
    return keeps;
}

static void fewer_inputs(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    uint64_t inputs = c->scene.category_bytes[TIDEMARK_INPUT];
    char size[TMK_AMOUNT_BYTES];
    if (inputs == 0 || inputs / 2 < c->verdict.limit_bytes / 20 || c->scene.device == TIDEMARK_HOST)
        return;
    tmk_fixing_add(
        f,
        (struct tmk_fix){.kind = "inputs",
                         .saves_bytes = TMK_BYTES_UNKNOWN,
                         .proof = TMK_PROOF_ESTIMATE,
                         .cost = THE_BATCH},
        "Keep only the current batch on the GPU. Inputs used %s. Load and prefetch the rest into "
        "host memory.",
        tmk_size_text(inputs, size));
}

static void beside_torch(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    const struct tmk_scene *s = &c->scene;
    char size[TMK_AMOUNT_BYTES];
    if (s->is_of_driver || s->reserved_bytes == TMK_BYTES_UNKNOWN || !s->sees_driver ||
        c->verdict.limit != TMK_LIMIT_CARD || s->segment_bytes <= s->reserved_bytes)
        return;
    uint64_t beside = s->segment_bytes - s->reserved_bytes;
    if (!tmk_fixing_is_much(c, beside))
        return;
    tmk_fixing_add(f,
                   (struct tmk_fix){.kind = "beside_torch",
                                    .saves_bytes = beside,
                                    .proof = TMK_PROOF_MEASURED,
                                    .avoids = tmk_fixing_covers(c, beside),
                                    .cost = A_LIBRARY},
                   "Reduce what else this process has on the GPU. %s are not torch's; tidemark "
                   "report --full says what they are. JAX takes less with "
                   "XLA_PYTHON_CLIENT_PREALLOCATE=false.",
                   tmk_size_text(beside, size));
}

static void larger_card(struct tmk_fixing *f)
{
    const struct tmk_case *c = f->c;
    const struct tmk_oom_verdict *v = &c->verdict;
    uint64_t least =
        v->held_bytes + v->asked_bytes; /* the need leaves out that a whole segment is requested */
    char need[TMK_AMOUNT_BYTES], site[TMK_FRAME_TEXT_BYTES];
    if (c->verdict.rows[0].cause != TMK_CAUSE_DEMAND || c->scene.device == TIDEMARK_HOST)
        return;
    if (c->scene.card_total_bytes != TMK_BYTES_UNKNOWN &&
        c->scene.request_bytes > c->scene.card_total_bytes) {
        tmk_fixing_add(f,
                       (struct tmk_fix){.kind = "request",
                                        .saves_bytes = c->scene.request_bytes,
                                        .proof = TMK_PROOF_MEASURED,
                                        .avoids = true,
                                        .cost = A_CALL,
                                        .is_for_cause = true},
                       "Check the size computed at %.200s. The shape may be larger than meant (a "
                       "broadcast, an outer product), or a number overflowed.",
                       tmk_frame_text(c->scene.has_site ? &c->scene.site : NULL, true, site));
        return;
    }
    tmk_fixing_add(f,
                   (struct tmk_fix){.kind = "card",
                                    .saves_bytes = TMK_BYTES_UNKNOWN,
                                    .proof = TMK_PROOF_ESTIMATE,
                                    .cost = A_CARD,
                                    .is_for_cause = true},
                   "Use a GPU with %s %s free, or shard the model (FSDP). tidemark whatif "
                   "--capacity tells which GPU would do.",
                   c->need.is_estimate ? "about" : _("more than"),
                   tmk_size_text(c->need.bytes > v->limit_bytes ? c->need.bytes : least, need));
}

void tmk_fixing_model(struct tmk_fixing *f)
{
    struct weights w = weights_of(f->c->p, f->c->scene.device);
    drop_gradients(f);
    if (no_graph(f))
        return;
    smaller_batch(f);
    add_checkpointing_fix(f);
    half_precision(f, &w);
    smaller_optimizer(f, &w);
    add_shard_fix(f);
    train_fewer_parameters(f, &w);
    fewer_inputs(f);
    beside_torch(f);
    larger_card(f);
}
