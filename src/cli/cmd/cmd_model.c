/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_model.c - the parameters in files of weights: how many, which, and whether they are
 * numbers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/weights/weights_answer.h"
#include "interop/weights/weight_scan.h"
#include "interop/weights/weights.h"
#include "kit/amount.h"
#include "kit/progress.h"

static int fail_model(const char *path, int rc, const struct tmk_error *err)
{
    if (err->offset)
        tmk_say("%s: byte %" PRIu64 ": %s", path ? path : "model", err->offset, err->text);
    else
        tmk_say("%s: %s", path ? path : "model", err->text[0] ? err->text : tmk_result_text(rc));
    return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
}

/* ---- options ---- */

static int ask_count(const char *name, const char *text, int64_t most, uint32_t *ret)
{
    int64_t value;
    if (tmk_integer_parse(text, &value) < 0 || value < 0 || value > most) {
        tmk_say("--%s wants a number from 0 to %" PRId64 ", not '%s'", name, most, text);
        return TMK_EXIT_USAGE;
    }
    *ret = (uint32_t)value;
    return 0;
}

static int ask_model(struct tmk_weights_answer *a, const struct tmk_args *args)
{
    static const uint32_t usual[] = {8, 16, 64};
    const char *ranks[TMK_MAX_VALUES], *top = tmk_args_get(args, "top");
    unsigned n = tmk_args_list(args, "lora-rank", ranks);
    a->n_shown = 10;
    a->shows_all = tmk_args_get(args, "all") != NULL;
    int status = top ? ask_count("top", top, 1000000, &a->n_shown) : 0;
    if (n > TMK_MODEL_MAX_RANKS) {
        tmk_say("at most %d ranks at once", TMK_MODEL_MAX_RANKS);
        return TMK_EXIT_USAGE;
    }
    a->n_ranks = n ? n : (uint32_t)TMK_N(usual);
    if (n == 0)
        memcpy(a->ranks, usual, sizeof usual);
    for (unsigned i = 0; i < n && status == 0; i++)
        status = ask_count("lora-rank", ranks[i], 1000000, &a->ranks[i]);
    return status;
}

/* ---- the command ---- */

static int scan_weights(struct tmk_weights_answer *a)
{
    struct tmk_scan_result *results = tmk_xcalloc(a->weights.n + 1, sizeof *results);
    struct tmk_progress progress;
    struct tmk_error err = {0};
    const char *path = NULL;
    tmk_progress_init(&progress, stderr, "looking at the numbers");
    int rc = tmk_weights_scan(&a->weights, results, tmk_progress_tell, &progress, &path, &err);
    tmk_progress_fini(&progress);
    a->results = results;
    return rc < 0 ? fail_model(path, rc, &err) : 0;
}

static int answer_model(struct tmk_weights_answer *a, const struct tmk_args *args)
{
    struct tmk_error err = {0};
    const char *path = NULL;
    int rc = tmk_weights_read(&a->weights, (const char *const *)args->operands, args->n_operands,
                              tmk_args_get(args, "no-limits") != NULL, &path, &err);
    if (rc < 0)
        return fail_model(path, rc, &err);
    if (a->weights.n == 0) {
        tmk_say("%s: no tensor is in it", path);
        return TMK_EXIT_FINDING;
    }
    int status = tmk_args_get(args, "no-scan") ? 0 : scan_weights(a);
    if (status != 0)
        return status;
    tmk_weights_sum_up(a);
    if (tmk_args_get(args, "json"))
        tmk_weights_json(a, stdout);
    else
        tmk_weights_text(a, stdout);
    return a->n_nan || a->n_inf ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

static int run_model(const struct tmk_args *args)
{
    struct tmk_weights_answer a = {0};
    int status = ask_model(&a, args);
    if (status == 0)
        status = answer_model(&a, args);
    free((void *)(uintptr_t)a.results);
    tmk_weights_answer_fini(&a);
    return status;
}

static const struct tmk_option options[] = {
    {"no-scan", 0, NULL, NULL, "read names and shapes only, not the numbers"},
    {"all", 0, NULL, NULL, "list all tensors, with least, largest, mean and std"},
    {"top", 0, "N", NULL, "list N of the largest tensors (10)"},
    {"lora-rank", 0, "N...", NULL, "estimate LoRA of these ranks (8 16 64)"},
    {"no-limits", 0, NULL, NULL, "accept any use of memory and time"},
    {"json", 0, NULL, NULL, "print one JSON object, with every tensor"},
};

static const char *const description[] = {
    "FILE is a .safetensors file, a file of torch.save (.pt, .pth, .bin), an index of shards "
    "(model.safetensors.index.json), or a folder of these. Neither torch nor Python is needed. "
    "Pickles are parsed, never executed. A file that takes far more memory or time than its "
    "size suggests is refused (docs/limits.md).",
    "Every number is read, at about the speed of the memory: NaN and infinity with the index "
    "of the first, zeros, denormals; least, largest, mean and standard deviation of the finite "
    "ones. Tensors that share data count once. The memory for training is an estimate without "
    "activations. docs/model.md has more.",
    NULL,
};

static const char *const exit_status[] = {
    "0\tsuccess",
    "1\tthere is a NaN or an infinity, or no tensor at all",
    "2\twrong usage",
    "3\ta file cannot be read, is damaged or of another kind",
    NULL,
};

static const char *const examples[] = {
    "tidemark model model.safetensors",
    "parameters, layers, types, NaN, and memory for training",
    "tidemark model --no-scan ~/models/llama",
    "all shards in a folder, from their headers alone: at once",
    "tidemark model checkpoint.pt --lora-rank 4 32 --json",
    "every tensor, and estimates for LoRA of ranks 4 and 32",
    NULL,
};

const struct tmk_command tmk_cmd_model = {
    .name = "model",
    .group = TMK_GROUP_FILES,
    .summary = "Show the parameters of safetensors and torch checkpoints",
    .usage = "FILE... [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1000000,
    .is_paged = true,
    .operand = TMK_OPERAND_FILE,
    .exit_status = exit_status,
    .examples = examples,
    .run = run_model,
};
