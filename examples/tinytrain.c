/* SPDX-License-Identifier: MIT */
/* tinytrain.c - a real training in plain C on the CPU, annotated for tidemark.
 *
 * It trains a character-level transformer on a text it carries, and tells tidemark what its memory
 * is for. Watch it with `tidemark run -- tinytrain`; alone, it runs just the same. It is also the
 * example of how a C program is annotated, and it can be made to misbehave: to leak, to spike, to
 * run out of memory, to become NaN. To annotate a program of your own:
 *
 *   1. Report blocks where they are handed out and taken back: tt_mem_new() and tt_free() in
 *      tinytrain_mem.c. With that alone peak and leaks are seen.
 *   2. Say what is going on: tidemark_step() and the stages in train_step() below.
 *   3. Say who asks: a module range around each layer's work, in tinytrain_model.c; handed on to
 *      worker threads in tinytrain_math.c.
 *
 * Reading order: train_step() here, then tinytrain_mem.c, then tinytrain_model.c. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tidemark/tidemark.h"
#include "tinytrain_math.h"
#include "tinytrain_mem.h"
#include "tinytrain_model.h"
#include "tinytrain_text.h"

enum { EXIT_USAGE = 2, SEQ_MAX = 2048 };
#define NEVER UINT64_MAX

struct settings {
    uint64_t n_steps, n_layers, n_dim, n_heads, n_seq, n_batch, n_threads, seed;
    uint64_t leak_bytes, spike_step, nan_step, capacity_bytes;
    uint64_t wants_count, is_quiet, wants_help;
};

static const struct settings defaults = {
    .n_steps = 30,
    .n_layers = 2,
    .n_dim = 64,
    .n_heads = 4,
    .n_seq = 64,
    .n_batch = 8,
    .n_threads = 1,
    .seed = 1,
    .spike_step = NEVER,
    .nan_step = NEVER,
};

/* The flags, one line each: parsing, checking and --help all read this. */
enum flag_kind { FLAG_SWITCH, FLAG_NUMBER, FLAG_SIZE };

struct flag {
    const char *name;
    const char *value; /* how --help calls it */
    enum flag_kind kind;
    size_t offset; /* of a uint64_t in struct settings */
    uint64_t min, max;
    const char *help;
};

#define AT(field) offsetof(struct settings, field)
static const struct flag flags[] = {
    {"steps", "N", FLAG_NUMBER, AT(n_steps), 1, 1000000, "training steps"},
    {"layers", "N", FLAG_NUMBER, AT(n_layers), 1, 64, "transformer blocks"},
    {"dim", "N", FLAG_NUMBER, AT(n_dim), 1, 4096, "width of the model"},
    {"heads", "N", FLAG_NUMBER, AT(n_heads), 1, 64, "attention heads; divides --dim"},
    {"seq", "N", FLAG_NUMBER, AT(n_seq), 1, SEQ_MAX, "characters a text is long"},
    {"batch", "N", FLAG_NUMBER, AT(n_batch), 1, 4096, "texts in a step"},
    {"threads", "N", FLAG_NUMBER, AT(n_threads), 1, TT_THREADS_MAX, "threads that compute"},
    {"seed", "N", FLAG_NUMBER, AT(seed), 0, UINT64_MAX, "of the random numbers"},
    {"leak", "SIZE", FLAG_SIZE, AT(leak_bytes), 1, UINT64_MAX, "lose a block this large each step"},
    {"spike", "STEP", FLAG_NUMBER, AT(spike_step), 0, NEVER - 1, "that step has a double batch"},
    {"nan", "STEP", FLAG_NUMBER, AT(nan_step), 0, NEVER - 1, "put a NaN in a weight at that step"},
    {"capacity", "SIZE", FLAG_SIZE, AT(capacity_bytes), 1, UINT64_MAX, "run out of memory here"},
    {"count", NULL, FLAG_SWITCH, AT(wants_count), 0, 0, "end with own counts, one line of JSON"},
    {"quiet", NULL, FLAG_SWITCH, AT(is_quiet), 0, 0, "print no losses"},
    {"help", NULL, FLAG_SWITCH, AT(wants_help), 0, 0, "print this"},
};
enum { N_FLAGS = sizeof(flags) / sizeof(flags[0]) };

static const struct {
    const char *text;
    unsigned shift;
} size_suffixes[] = {
    {"", 0}, {"K", 10}, {"KiB", 10}, {"M", 20}, {"MiB", 20}, {"G", 30}, {"GiB", 30},
};

static void flag_print(const struct flag *flag)
{
    const uint64_t value =
        *(const uint64_t *)(const void *)((const char *)&defaults + flag->offset);
    char left[32];
    snprintf(left, sizeof(left), "--%s %s", flag->name, flag->value ? flag->value : "");
    printf("  %-18s %s", left, flag->help);
    if (flag->kind == FLAG_NUMBER && value != NEVER)
        printf(" (%" PRIu64 ")", value);
    printf("\n");
}

static void help_print(void)
{
    printf("usage: tinytrain [flags]\n"
           "Train a small transformer on a text it carries, on the CPU. STEP counts from 0;\n"
           "SIZE is in bytes or has a suffix: K or KiB, M or MiB, G or GiB.\n\n");
    for (size_t i = 0; i < N_FLAGS; i++)
        flag_print(&flags[i]);
    printf("\nexamples:\n"
           "  tinytrain\n"
           "  tidemark run -- tinytrain --leak 64KiB\n"
           "  tidemark run -- tinytrain --spike 20 --capacity 12MiB --threads 4\n");
}

/* Parse digits and a suffix if `kind` has them: 0, or -1 when it is something else or too large. */
static int value_parse(const char *text, enum flag_kind kind, uint64_t *ret_value)
{
    if (!isdigit((unsigned char)text[0]))
        return -1;
    char *end;
    errno = 0;
    const unsigned long long digits = strtoull(text, &end, 10);
    if (errno != 0)
        return -1;
    const size_t n_suffixes =
        kind == FLAG_SIZE ? sizeof(size_suffixes) / sizeof(size_suffixes[0]) : 1;
    for (size_t i = 0; i < n_suffixes; i++) {
        if (strcmp(end, size_suffixes[i].text) != 0 ||
            digits > UINT64_MAX >> size_suffixes[i].shift)
            continue;
        *ret_value = (uint64_t)digits << size_suffixes[i].shift;
        return 0;
    }
    return -1;
}

static int flag_complain(const struct flag *flag, const char *text)
{
    fprintf(stderr, "tinytrain: --%s: '%s' is not a %s", flag->name, text,
            flag->kind == FLAG_SIZE ? "size" : "number");
    if (flag->max < NEVER - 1)
        fprintf(stderr, " from %" PRIu64 " to %" PRIu64, flag->min, flag->max);
    else if (flag->min > 0)
        fprintf(stderr, " of %" PRIu64 " or more", flag->min);
    fprintf(stderr, "; see --help\n");
    return -1;
}

/* Find the flag for "--name" or "--name=value"; *ret_text is the value after '=', or NULL. */
static const struct flag *flag_find(const char *argument, const char **ret_text)
{
    const size_t n = strcspn(argument, "=");
    for (size_t i = 0; i < N_FLAGS && strncmp(argument, "--", 2) == 0; i++) {
        if (strlen(flags[i].name) != n - 2 || strncmp(argument + 2, flags[i].name, n - 2) != 0)
            continue;
        *ret_text = argument[n] == '=' ? argument + n + 1 : NULL;
        return &flags[i];
    }
    return NULL;
}

/* Take a flag, and its value, from the front of `arguments`: how many were taken, or -1. */
static int flag_take(char **arguments, struct settings *settings)
{
    const char *text = NULL;
    const struct flag *flag = flag_find(arguments[0], &text);
    if (!flag || (flag->kind == FLAG_SWITCH && text)) {
        fprintf(stderr, "tinytrain: unknown flag '%s'; see --help\n", arguments[0]);
        return -1;
    }
    uint64_t *field = (uint64_t *)(void *)((char *)settings + flag->offset);
    if (flag->kind == FLAG_SWITCH) {
        *field = 1;
        return 1;
    }
    const int n_taken = text ? 1 : 2;
    if (!text && !(text = arguments[1])) {
        fprintf(stderr, "tinytrain: --%s wants a value; see --help\n", flag->name);
        return -1;
    }
    uint64_t value;
    if (value_parse(text, flag->kind, &value) < 0 || value < flag->min || value > flag->max)
        return flag_complain(flag, text);
    *field = value;
    return n_taken;
}

static int settings_check(const struct settings *s)
{
    if (s->n_dim % s->n_heads != 0) {
        fprintf(stderr, "tinytrain: --heads %" PRIu64 " does not divide --dim %" PRIu64 "\n",
                s->n_heads, s->n_dim);
        return -1;
    }
    const uint64_t steps[] = {s->spike_step, s->nan_step};
    for (size_t i = 0; i < 2; i++) {
        if (steps[i] == NEVER || steps[i] < s->n_steps)
            continue;
        fprintf(stderr, "tinytrain: --%s %" PRIu64 ": the last step is %" PRIu64 "\n",
                i == 0 ? "spike" : "nan", steps[i], s->n_steps - 1);
        return -1;
    }
    return 0;
}

static int settings_parse(char **arguments, struct settings *ret_settings)
{
    struct settings settings = defaults;
    while (*arguments) {
        const int n = flag_take(arguments, &settings);
        if (n < 0)
            return -1;
        arguments += n;
    }
    if (settings_check(&settings) < 0)
        return -1;
    *ret_settings = settings;
    return 0;
}

/* The text as token ids, and the position of the reader. */
struct corpus {
    int32_t *ids;
    size_t n_ids;
    size_t n_vocab;
    size_t cursor;
    unsigned n_epochs; /* times it was read to its end */
    uint64_t random;
};

static size_t text_length(void)
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof(tt_paragraphs) / sizeof(tt_paragraphs[0]); i++)
        n += strlen(tt_paragraphs[i]) + 2;
    return n;
}

/* Each new character gets the next id. */
static void corpus_add(struct corpus *corpus, int32_t id_of[256], unsigned char character)
{
    if (id_of[character] < 0)
        id_of[character] = (int32_t)corpus->n_vocab++;
    corpus->ids[corpus->n_ids++] = id_of[character];
}

static void corpus_init(struct corpus *corpus, uint64_t seed)
{
    int32_t id_of[256];
    memset(id_of, 0xff, sizeof(id_of));
    *corpus = (struct corpus){.random = ~seed};
    corpus->ids = tt_new(TIDEMARK_INPUT, text_length() * sizeof(int32_t), "corpus", "ids");
    for (size_t i = 0; i < sizeof(tt_paragraphs) / sizeof(tt_paragraphs[0]); i++) {
        for (const char *at = tt_paragraphs[i]; *at; at++)
            corpus_add(corpus, id_of, (unsigned char)*at);
        corpus_add(corpus, id_of, '\n');
        corpus_add(corpus, id_of, '\n');
    }
    assert(corpus->n_ids > 2 * SEQ_MAX); /* one piece fits, wherever corpus_rewind() begins */
}

/* Start again, not quite at the beginning, so that the cuts between texts fall elsewhere. */
static void corpus_rewind(struct corpus *corpus, size_t n_seq)
{
    char info[64];
    snprintf(info, sizeof(info), "pass %u over the text is done", ++corpus->n_epochs);
    tidemark_mark("epoch", info);
    corpus->cursor = tt_random(&corpus->random) % n_seq;
}

/* Fill the batch with the next n_batch pieces of the text, and the same shifted by one. */
static void batch_init(struct tt_batch *batch, struct corpus *corpus, size_t n_batch, size_t n_seq)
{
    const size_t size_bytes = n_batch * n_seq * sizeof(int32_t);
    batch->n_batch = n_batch;
    batch->tokens = tt_new(TIDEMARK_INPUT, size_bytes, "batch", "tokens");
    batch->targets = tt_new(TIDEMARK_INPUT, size_bytes, "batch", "targets");
    for (size_t i = 0; i < n_batch; i++) {
        if (corpus->cursor + n_seq + 1 > corpus->n_ids)
            corpus_rewind(corpus, n_seq);
        const int32_t *from = corpus->ids + corpus->cursor;
        memcpy(batch->tokens + i * n_seq, from, n_seq * sizeof(int32_t));
        memcpy(batch->targets + i * n_seq, from + 1, n_seq * sizeof(int32_t));
        corpus->cursor += n_seq;
    }
}

static void batch_fini(struct tt_batch *batch)
{
    batch->tokens = tt_free(batch->tokens);
    batch->targets = tt_free(batch->targets);
}

struct training {
    const struct settings *settings;
    struct corpus corpus;
    struct tt_model *model;
    struct tt_adamw adamw;
    bool is_nan;
};

/* --leak: the classic leak. Each loss goes into a new block, and nobody keeps its address. */
static void remember_loss(const struct settings *settings, double loss)
{
    char *history = tt_new(TIDEMARK_OTHER, settings->leak_bytes, "history", "loss");
    memset(history, 0, settings->leak_bytes);
    memcpy(history, &loss,
           settings->leak_bytes < sizeof(loss) ? settings->leak_bytes : sizeof(loss));
}

/* --nan: do to a weight what a flipped bit or a bad division does. */
static void poison_weight(struct tt_model *model, uint64_t step)
{
    struct tt_param *p = tt_model_params(model);
    while (p->next && !strstr(p->name, ".mlp.fc1.weight"))
        p = p->next;
    p->value[0] = NAN;
    fprintf(stderr, "tinytrain: step %" PRIu64 ": a NaN was put in %s\n", step, p->name);
}

/* Print the loss; say once that it is lost, and go on, as a training left alone overnight does. */
static void loss_report(struct training *training, uint64_t step, double loss)
{
    if (!training->settings->is_quiet)
        printf("step %4" PRIu64 "  loss %.4f\n", step, loss);
    if (!isnan(loss) || training->is_nan)
        return;
    training->is_nan = true;
    fprintf(stderr, "tinytrain: step %" PRIu64 ": the loss is not a number; going on\n", step);
    tidemark_mark("nan", "the loss is not a number");
}

static double train_step(struct training *training, uint64_t step)
{
    const struct settings *settings = training->settings;
    const size_t n_batch = settings->n_batch * (step == settings->spike_step ? 2 : 1);
    tidemark_step((int64_t)step);

    struct tt_batch batch;
    tidemark_push(TIDEMARK_STAGE, "data");
    batch_init(&batch, &training->corpus, n_batch, settings->n_seq);
    tidemark_pop(TIDEMARK_STAGE);

    if (step == settings->nan_step)
        poison_weight(training->model, step);

    tidemark_push(TIDEMARK_STAGE, "forward");
    const double loss = tt_model_forward(training->model, &batch);
    tidemark_pop(TIDEMARK_STAGE);

    tidemark_push(TIDEMARK_STAGE, "backward");
    tt_model_backward(training->model);
    tidemark_pop(TIDEMARK_STAGE);

    tidemark_push(TIDEMARK_STAGE, "optimizer");
    tt_adamw_step(&training->adamw, training->model);
    tidemark_pop(TIDEMARK_STAGE);

    tt_model_zero_grad(training->model);
    batch_fini(&batch);
    if (settings->leak_bytes)
        remember_loss(settings, loss);
    return loss;
}

static void training_init(struct training *training, const struct settings *settings)
{
    *training = (struct training){
        .settings = settings,
        .adamw = {.learning_rate = 3e-3f, .beta1 = 0.9f, .beta2 = 0.99f, .weight_decay = 0.01f},
    };

    tidemark_push(TIDEMARK_STAGE, "data");
    corpus_init(&training->corpus, settings->seed);
    tidemark_pop(TIDEMARK_STAGE);

    const struct tt_shape shape = {.n_layers = settings->n_layers,
                                   .n_dim = settings->n_dim,
                                   .n_heads = settings->n_heads,
                                   .n_seq = settings->n_seq,
                                   .n_vocab = training->corpus.n_vocab};
    tidemark_push(TIDEMARK_STAGE, "model_load");
    training->model = tt_model_open(&shape, settings->seed);
    tidemark_pop(TIDEMARK_STAGE);
}

static void training_fini(struct training *training)
{
    training->model = tt_model_close(training->model);
    training->corpus.ids = tt_free(training->corpus.ids);
}

/* Print the counts at exit, so that a run that ends out of memory has them too. */
static void counts_print(void)
{
    tt_mem_counts_print(stdout);
}

int main(int argc, char **argv)
{
    struct settings settings;
    if (argc < 1 || settings_parse(argv + 1, &settings) < 0)
        return EXIT_USAGE;
    if (settings.wants_help) {
        help_print();
        return EXIT_SUCCESS;
    }
    tt_mem_limit(settings.capacity_bytes);
    const int rc = tt_pool_start(settings.n_threads);
    if (rc != 0) {
        fprintf(stderr, "tinytrain: cannot start %" PRIu64 " threads: %s\n", settings.n_threads,
                strerror(rc));
        return EXIT_FAILURE;
    }
    if (settings.wants_count)
        atexit(counts_print);

    struct training training;
    training_init(&training, &settings);
    for (uint64_t step = 0; step < settings.n_steps; step++)
        loss_report(&training, step, train_step(&training, step));
    training_fini(&training);
    tt_pool_stop();
    return EXIT_SUCCESS;
}
