/* SPDX-License-Identifier: MIT */
/* model/components.c - see components.h.
 *
 * The built-in rules are text in the form that users write, so there is one form and one parser,
 * and they serve as examples. Rules are tried in order, at each module from the innermost outwards.
 * Guessing by sizes or shapes was rejected: a line of the user's can correct a wrong name. */
#include "model/components.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/wildcard.h"
#include "trace/layout.h"

enum {
    MAX_CONDITIONS = 4,
    MAX_DEPTH = 64, /* a name with more dots has no component */
};

/* Adapters come first, because they sit inside the modules they adapt. Experts come before mlp,
 * because an expert is an mlp and consists of mlp parts. */
static const char own_rules[] = "lora name:lora_*\n"
                                "lora name:*_lora\n"
                                "lora path:*.lora_A*\n"
                                "lora path:*.lora_B*\n"
                                "normalization class:*Norm\n"
                                "normalization class:*Norm[123]d\n"
                                "normalization class:*LayerNorm*\n"
                                "normalization class:LocalResponseNorm\n"
                                "normalization name:norm\n"
                                "normalization name:norm[0-9]*\n"
                                "normalization name:*_norm\n"
                                "normalization name:*layernorm*\n"
                                "normalization name:*layer_norm*\n"
                                "normalization name:ln_*\n"
                                "normalization name:bn[0-9]*\n"
                                "router name:router\n"
                                "router class:*Router\n"
                                "router class:*TopKGate*\n"
                                "router name:gate beside:experts\n"
                                "router name:shared_expert_gate\n"
                                "expert path:*experts.*\n"
                                "expert path:*.shared_expert.*\n"
                                "expert name:experts\n"
                                "expert name:expert_[0-9]*\n"
                                "expert name:shared_expert*\n"
                                "expert class:*Expert\n"
                                "expert class:*Experts\n"
                                "expert class:*SparseMoe*\n"
                                "expert class:*MoeBlock\n"
                                "expert class:*MoE\n"
                                "expert class:MoELayer\n"
                                "attention class:*Attention*\n"
                                "attention class:*SelfOutput\n"
                                "attention class:*Rotary*\n"
                                "attention name:*attn*\n"
                                "attention name:*attention*\n"
                                "attention name:dropout1 in:Transformer*Layer\n"
                                "attention name:dropout2 in:TransformerDecoderLayer\n"
                                "head name:embed_out\n"
                                "embedding class:*Embedding\n"
                                "embedding class:*Embeddings\n"
                                "embedding class:EmbeddingBag\n"
                                "embedding class:*PositionalEncoding\n"
                                "embedding name:*embed*\n"
                                "embedding name:wte\n"
                                "embedding name:wpe\n"
                                "embedding name:pos_emb*\n"
                                "embedding name:cls_token\n"
                                "conv class:Conv[123]d\n"
                                "conv name:features\n"
                                "conv class:ConvTranspose[123]d\n"
                                "conv class:LazyConv*\n"
                                "conv class:Conv2dNormActivation\n"
                                "conv class:BasicConv2d\n"
                                "conv class:BasicBlock\n"
                                "conv class:Bottleneck\n"
                                "conv class:InvertedResidual\n"
                                "conv name:conv[0-9]*\n"
                                "head name:lm_head\n"
                                "head name:*_head\n"
                                "head name:head\n"
                                "head name:heads top\n"
                                "head name:classifier\n"
                                "head name:score\n"
                                "head name:qa_outputs\n"
                                "head name:cls\n"
                                "head name:fc top\n"
                                "head class:?*Head\n"
                                "head class:?*Heads\n"
                                "mlp class:*MLP*\n"
                                "mlp class:*Mlp*\n"
                                "mlp class:*FeedForward*\n"
                                "mlp class:*FFN*\n"
                                "mlp class:*DenseAct*\n"
                                "mlp class:*LayerFF\n"
                                "mlp class:*Intermediate\n"
                                "mlp class:*Output\n"
                                "mlp name:mlp\n"
                                "mlp name:ffn\n"
                                "mlp name:feed_forward\n"
                                "mlp name:fc[0-9]\n"
                                "mlp name:gate_proj\n"
                                "mlp name:up_proj\n"
                                "mlp name:down_proj\n"
                                "mlp name:linear[12] in:Transformer*Layer\n"
                                "mlp name:dropout in:Transformer*Layer\n"
                                "mlp name:dropout2 in:TransformerEncoderLayer\n"
                                "mlp name:dropout3 in:TransformerDecoderLayer\n";

enum component_condition_kind { NAME, CLASS, PATH, IN, BESIDE, TOP };

struct component_condition {
    enum component_condition_kind kind;
    const char *text; /* the text the text behind the colon */
    struct tmk_wildcard pattern;
};

struct component_rule {
    const char *component;
    struct component_condition conditions[MAX_CONDITIONS];
    uint32_t n_conditions;
};

struct tmk_components {
    struct component_rule *rules;
    uint64_t n_rules, room;
    struct tmk_arena texts;
};

/* ---- reading rules ---- */

/* Parse a condition: "kind:pattern", or "top" alone. */
static bool read_condition(struct tmk_components *c, const char *word, size_t n,
                           struct component_condition *ret)
{
    static const struct {
        const char *word;
        enum component_condition_kind kind;
    } kinds[] = {{"name:", NAME}, {"class:", CLASS},   {"path:", PATH},
                 {"in:", IN},     {"beside:", BESIDE}, {"top", TOP}};
    for (size_t i = 0; i < TMK_N(kinds); i++) {
        size_t n_kind = strlen(kinds[i].word);
        bool is_top = kinds[i].kind == TOP;
        if (n < n_kind || memcmp(word, kinds[i].word, n_kind) != 0 || (n == n_kind) != is_top)
            continue;
        ret->kind = kinds[i].kind;
        ret->text = tmk_arena_text(&c->texts, word + n_kind, n - n_kind);
        if (ret->text)
            tmk_wildcard_read(&ret->pattern, ret->text);
        return ret->text != NULL;
    }
    return false;
}

/* Find the next word of a line; its length is 0 at the end, or where a comment begins. */
static const char *next_word(const char **at, const char *end, size_t *ret_n)
{
    const char *word = *at;
    while (word < end && (*word == ' ' || *word == '\t' || *word == '\r'))
        word++;
    const char *stop = word;
    while (stop < end && *stop != ' ' && *stop != '\t' && *stop != '\r')
        stop++;
    *ret_n = word < end && *word == '#' ? 0 : (size_t)(stop - word);
    *at = stop;
    return word;
}

/* Parse a line. 1: it has a rule; 0: it has none; TMK_EINVAL; TMK_ENOMEM. */
static int read_rule(struct tmk_components *c, const char *line, const char *end,
                     struct component_rule *ret)
{
    size_t n;
    const char *word = next_word(&line, end, &n);
    if (n == 0)
        return 0;
    *ret = (struct component_rule){.component = tmk_arena_text(&c->texts, word, n)};
    if (!ret->component)
        return TMK_ENOMEM;
    if (memchr(word, ':', n))
        return TMK_EINVAL;
    for (;;) {
        word = next_word(&line, end, &n);
        if (n == 0)
            break;
        if (ret->n_conditions == MAX_CONDITIONS ||
            !read_condition(c, word, n, &ret->conditions[ret->n_conditions]))
            return TMK_EINVAL;
        ret->n_conditions++;
    }
    return ret->n_conditions > 0 ? 1 : TMK_EINVAL;
}

static int add_rule(struct tmk_components *c, const struct component_rule *rule)
{
    if (TMK_GROW(c->rules, c->n_rules + 1, c->room) < 0)
        return TMK_ENOMEM;
    c->rules[c->n_rules++] = *rule;
    return 0;
}

int tmk_components_read(struct tmk_components *c, const char *text, struct tmk_error *err)
{
    int result = 0;
    unsigned number = 1;
    for (const char *line = text; *line; number++) {
        const char *end = strchrnul(line, '\n');
        struct component_rule rule;
        int rc = read_rule(c, line, end, &rule);
        if (rc == TMK_EINVAL && result == 0)
            result =
                tmk_fail(err, rc, "line %u is not 'COMPONENT name:PATTERN' or the like", number);
        if (rc > 0)
            rc = add_rule(c, &rule);
        if (rc == TMK_ENOMEM)
            return tmk_fail(err, rc, "out of memory");
        line = *end ? end + 1 : end;
    }
    return result;
}

/* ---- the user's file ---- */

/* The path of the user's file, malloc'ed, and whether an environment variable named it. NULL: there
 * is no configuration folder. */
static char *file_path(bool *ret_named)
{
    const char *named = getenv("TIDEMARK_COMPONENTS");
    const char *settings = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    *ret_named = named && *named;
    if (*ret_named)
        return strdup(named);
    if (settings && *settings)
        n = asprintf(&path, "%s/tidemark/components", settings);
    else if (home && *home)
        n = asprintf(&path, "%s/.config/tidemark/components", home);
    return n < 0 ? NULL : path;
}

/* Read the file's text, malloc'ed; NULL with errno. */
static char *read_rules_file(const char *path)
{
    FILE *in = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;
    if (!in)
        return NULL;
    ssize_t n = getdelim(&text, &room, '\0', in);
    int reason = errno;
    if (n < 0) {
        free(text);
        text = ferror(in) ? NULL : calloc(1, 1); /* an empty file */
    }
    fclose(in);
    errno = reason;
    return text;
}

static void read_own_file(struct tmk_components *c, struct tmk_error *problem)
{
    bool named;
    char *path = file_path(&named);
    char *text = path ? read_rules_file(path) : NULL;
    struct tmk_error err = {0};
    if (path && !text && (named || errno != ENOENT))
        tmk_fail_os(problem, TMK_EIO, errno, "cannot read %s", path);
    else if (text && tmk_components_read(c, text, &err) < 0)
        tmk_fail(problem, TMK_EINVAL, "%s: %s", path, err.text);
    free(text);
    free(path);
}

int tmk_components_open(struct tmk_components **ret_components, struct tmk_error *ret_problem)
{
    struct tmk_components *c = calloc(1, sizeof *c);
    if (!c)
        return TMK_ENOMEM;
    *ret_problem = (struct tmk_error){0};
    read_own_file(c, ret_problem);
    if (tmk_components_read(c, own_rules, NULL) < 0) {
        tmk_components_close(c);
        return TMK_ENOMEM;
    }
    *ret_components = c;
    return 0;
}

struct tmk_components *tmk_components_close(struct tmk_components *c)
{
    if (!c)
        return NULL;
    free(c->rules);
    tmk_arena_fini(&c->texts);
    free(c);
    return NULL;
}

/* ---- matching ---- */

struct inner_module { /* a module on the way from the innermost outwards */
    const struct tmk_model_tree *tree;
    const char *path;   /* the path up to and including this module */
    const char *last;   /* last part of the path */
    const char *parent; /* path of the module around it, "" at the top */
    size_t n_path, n_last;
};

static bool class_matches(const struct component_condition *c, const char *class)
{
    if (!class)
        return false;
    const char *dot = strchr(c->text, '.') ? NULL : strrchr(class, '.');
    const char *shown = dot ? dot + 1 : class;
    return tmk_wildcard_matches(&c->pattern, shown, strlen(shown));
}

static const char *module_class_of(const struct tmk_model_tree *tree, const char *name)
{
    return tree->class_of(tree->arg, name);
}

static bool has_module_beside(const struct inner_module *m, const char *name)
{
    char path[TMK_STRING_MAX_BYTES + 1];
    int n = snprintf(path, sizeof path, "%s%s%s", m->parent, *m->parent ? "." : "", name);
    return n >= 0 && (size_t)n < sizeof path && module_class_of(m->tree, path);
}

/* Whether the module is at the top of a model: there is no module around it, or the one around it
 * is named after its class. So a program's further models are told apart. */
static bool is_top_module(const struct inner_module *m)
{
    const char *class = module_class_of(m->tree, m->parent);
    const char *dot = class ? strrchr(class, '.') : NULL;
    return !*m->parent || (class && strcmp(dot ? dot + 1 : class, m->parent) == 0);
}

static bool condition_holds(const struct component_condition *c, const struct inner_module *m)
{
    switch (c->kind) {
    case NAME:
        return tmk_wildcard_matches(&c->pattern, m->last, m->n_last);
    case CLASS:
        return class_matches(c, module_class_of(m->tree, m->path));
    case PATH:
        return tmk_wildcard_matches(&c->pattern, m->path, m->n_path);
    case IN:
        return class_matches(c, module_class_of(m->tree, m->parent));
    case BESIDE:
        return has_module_beside(m, c->text);
    case TOP:
        return is_top_module(m);
    }
    return false;
}

static const char *module_component_of(const struct tmk_components *c, const struct inner_module *m)
{
    for (uint64_t i = 0; i < c->n_rules; i++) {
        const struct component_rule *rule = &c->rules[i];
        uint32_t n = 0;
        while (n < rule->n_conditions && condition_holds(&rule->conditions[n], m))
            n++;
        if (n == rule->n_conditions)
            return rule->component;
    }
    return NULL;
}

const char *tmk_components_find(const struct tmk_components *c, const struct tmk_model_tree *tree,
                                const char *name)
{
    char path[TMK_STRING_MAX_BYTES + 1], parent[TMK_STRING_MAX_BYTES + 1];
    size_t n = strlen(name);
    if (n >= sizeof path)
        return "other";
    memcpy(path, name, n + 1);
    for (int depth = 0; *path && depth < MAX_DEPTH; depth++) {
        char *dot = strrchr(path, '.');
        size_t n_parent = dot ? (size_t)(dot - path) : 0;
        memcpy(parent, path, n_parent);
        parent[n_parent] = '\0';
        size_t n_around = n_parent + (dot ? 1 : 0);
        struct inner_module m = {tree, path, path + n_around, parent, n, n - n_around};
        const char *found = module_component_of(c, &m);
        if (found)
            return found;
        path[n_parent] = '\0';
        n = n_parent;
    }
    return "other";
}
