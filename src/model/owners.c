/* SPDX-License-Identifier: MIT */
/* model/owners.c - see owners.h.
 *
 * A string may have several ids in a trace, so modules and parameters are found by text; the result
 * is kept by id. A stack is read from the outermost frame inwards: everything that a function such
 * as from_pretrained() calls is part of it. */
#include "model/owners.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "model/run.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/kinds.h"
#include "trace/layout.h"

/* ---- stages of stacks ---- */

/* A frame belongs to a stage if its file contains the part, or ends in it, and its function is one
 * of the words. The last part of a function's dotted name counts. If the rule allows any function,
 * the file must be in an installed library: a folder of the user's may have the same name. */
struct stack_rule {
    const char *stage, *file, *functions;
};

static const struct stack_rule stack_rules[] = {
    {"privacy_setup", "-packages/opacus/", "*"},
    {"privacy_setup", "/opacus/", "make_private make_private_* __init__"},
    {"wrap", "-packages/peft/", "*"},
    {"wrap", "/peft/", "get_peft_model from_pretrained add_adapter load_adapter __init__"},
    {"wrap", "/torch/nn/parallel/distributed.py", "*"},
    {"wrap", "/torch/nn/parallel/data_parallel.py", "__init__"},
    {"wrap", "/torch/distributed/fsdp/", "*"},
    {"wrap", "/torch/distributed/_composable/", "*"},
    {"wrap", "/torch/distributed/tensor/", "*"},
    {"wrap", "/deepspeed/", "initialize __init__"},
    {"wrap", "/accelerate/accelerator.py", "prepare prepare_*"},
    {"optimizer_setup", "/torch/optim/", "__init__ add_param_group load_state_dict __setstate__"},
    {"optimizer_setup", "/transformers/optimization.py", "*"},
    {"optimizer_setup", "/bitsandbytes/optim/", "__init__"},
    {"optimizer_setup", "/apex/optimizers/", "__init__"},
    {"data", "/torch/utils/data/", "*"},
    {"data", "/torchvision/datasets/", "*"},
    {"data", "/torchvision/transforms/", "*"},
    {"data", "/torchaudio/datasets/", "*"},
    {"data", "-packages/torchtext/", "*"},
    {"data", "-packages/datasets/", "*"},
    {"data", "-packages/webdataset/", "*"},
    {"data", "/transformers/data/", "*"},
    {"data", "/transformers/tokenization_", "*"},
    {"data", "", "collate collate_fn *_collate"},
    {"model_load", "/transformers/modeling_utils.py",
     "from_pretrained _from_config from_config _load_* load_* __init__ resize_token_embeddings"},
    {"model_load", "/transformers/models/", "from_pretrained from_config __init__"},
    {"model_load", "/diffusers/models/", "from_pretrained from_config __init__"},
    {"model_load", "-packages/safetensors/", "*"},
    {"model_load", "-packages/timm/models/", "*"},
    {"model_load", "-packages/torchvision/models/", "*"},
    {"model_load", "/torch/hub.py", "*"},
    {"model_load", "/torch/serialization.py", "load"},
    {"model_load", "/torch/nn/init.py", "*"},
    {"model_load", "/torch/nn/modules/module.py",
     "to cuda cpu xpu ipu half float double bfloat16 type to_empty _apply load_state_dict"
     " register_buffer register_parameter"},
    {"model_load", "/torch/nn/modules/", "__init__ reset_parameters _reset_parameters"},
    {"model_load", "/torch/nn/parameter.py", "__new__ __init__ __deepcopy__"},
};

enum { N_STACK_RULES = TMK_N(stack_rules), MAX_WORD = 64 };

/* What blocks are that certain functions make, where no tag says it. All of what `_apply()` makes,
 * and torch's modules while they are made, are parameters and buffers. Torch's reducer makes its
 * buckets directly in the functions of DDP, and FSDP its flat parameters in its own: there the
 * innermost frame decides. */
struct maker_rule {
    uint8_t category;
    bool is_innermost;
    const char *file, *functions;
    const char *module; /* shown in place of a module; NULL: none */
};

static const struct maker_rule maker_rules[] = {
    {TIDEMARK_PARAMETER, false, "/torch/nn/modules/module.py", "_apply", NULL},
    {TIDEMARK_PARAMETER, true, "/torch/nn/modules/", "__init__", NULL},
    {TIDEMARK_PARAMETER, true, "/torch/nn/parameter.py", "materialize __deepcopy__", NULL},
    {TIDEMARK_GRADIENT, true, "/torch/nn/parallel/distributed.py",
     "_ddp_init_helper forward _pre_forward", NULL},
    {TIDEMARK_PARAMETER, true, "/torch/distributed/fsdp/",
     "flatten_tensors shard _get_shard init_flat_param_attributes _init_sharded_param"
     " init_all_gather_outputs alloc_all_gather_outputs alloc_storage",
     NULL},
    {TIDEMARK_PARAMETER, true, "/torch/distributed/utils.py", "_alloc_storage", NULL},
    {TIDEMARK_OTHER, true, "/torch/random.py", "get_rng_state", "(RNG state)"},
    {TIDEMARK_OTHER, true, "/torch/cuda/random.py", "get_rng_state", "(RNG state)"},
    {TIDEMARK_KV_CACHE, false, "/transformers/cache_utils.py", "*", NULL},
};

static bool is_listed_function(const char *words, const char *function)
{
    char word[MAX_WORD];
    while (*words) {
        size_t n = strcspn(words, " ");
        if (n < sizeof word) {
            memcpy(word, words, n);
            word[n] = '\0';
            if (fnmatch(word, function, 0) == 0)
                return true;
        }
        words += n + (words[n] == ' ');
    }
    return false;
}

static const struct maker_rule *maker_rule_of(const struct tmk_frame *f, bool is_innermost)
{
    if (f->address || !f->file || !f->function)
        return NULL;
    const char *dot = strrchr(f->function, '.');
    const char *function = dot ? dot + 1 : f->function;
    for (size_t i = 0; i < TMK_N(maker_rules); i++)
        if ((is_innermost || !maker_rules[i].is_innermost) &&
            strstr(f->file, maker_rules[i].file) &&
            is_listed_function(maker_rules[i].functions, function))
            return &maker_rules[i];
    return NULL;
}

/* The number of the rule that a frame matches, from 1; 0: none. */
static uint8_t rule_of_frame(const struct tmk_frame *f)
{
    if (f->address || !f->file || !f->function)
        return 0;
    const char *dot = strrchr(f->function, '.');
    const char *function = dot ? dot + 1 : f->function;
    for (uint8_t i = 0; i < N_STACK_RULES; i++)
        if (strstr(f->file, stack_rules[i].file) &&
            is_listed_function(stack_rules[i].functions, function))
            return (uint8_t)(i + 1);
    return 0;
}

/* ---- tables ---- */

struct owner_parameter {
    struct tmk_parameter def;
    uint32_t id;
    const char *module, *component; /* component NULL: not looked up yet */
};

enum { STACK_UNSEEN = 0, STACK_PLAIN = UINT8_MAX }; /* else the number of its rule */

struct owner_name {        /* a string of the trace */
    const char *component; /* the component if it is a module's name; NULL: not looked up yet */
    const struct owner_parameter *parameter; /* the parameter that it names; valid if is_sought */
    bool is_sought;
};

struct tmk_owners {
    const struct tmk_reader *r;
    const struct tmk_components *components;
    struct tmk_model_tree tree;
    uint8_t *stack_rules;  /* by stack */
    uint8_t *stack_makers; /* by stack: number of the maker rule + 1, or as above */
    uint32_t n_stacks;
    uint8_t *frame_rules; /* by frame: number of the rule + 1; 0: not looked at yet */
    uint32_t n_frames;
    struct owner_name *names; /* by string id */
    uint32_t n_names;
    struct tmk_textmap modules; /* names */
    const char **classes;       /* by number in `modules` */
    uint64_t class_room;
    struct tmk_textmap parameter_names;
    struct owner_parameter *parameters; /* by number in the map above */
    uint64_t parameter_room;
    const char *model; /* the outermost module, NULL: not known */
    struct tmk_arena texts;
};

static const char *owner_class_of(const void *arg, const char *name)
{
    const struct tmk_owners *o = arg;
    uint32_t i;
    return tmk_textmap_find(&o->modules, name, &i) ? o->classes[i] : NULL;
}

/* Whether a module is a model: it has no dot and is named after its class. It may also stand alone,
 * as a loss does. The first such module is taken for the model of parameters without a dot. */
static bool is_model(const char *name, const char *class)
{
    const char *dot = strrchr(class, '.');
    return !strchr(name, '.') && strcmp(name, dot ? dot + 1 : class) == 0;
}

static int note_modules(struct tmk_owners *o)
{
    for (uint32_t id = 1; id < o->n_names; id++) {
        const char *name = tmk_reader_string(o->r, id), *class = tmk_reader_class(o->r, id);
        uint32_t i;
        if (!name || !class)
            continue;
        if (TMK_GROW(o->classes, o->modules.n + 1, o->class_room) < 0)
            return TMK_ENOMEM;
        if (tmk_textmap_put(&o->modules, name, &i) < 0)
            return TMK_ENOMEM;
        o->classes[i] = class;
        if (!o->model && is_model(name, class))
            o->model = name;
    }
    return 0;
}

static int note_parameter(struct tmk_owners *o, uint32_t id, const struct tmk_parameter *def)
{
    uint32_t i;
    if (TMK_GROW(o->parameters, o->parameter_names.n + 1, o->parameter_room) < 0)
        return TMK_ENOMEM;
    if (tmk_textmap_put(&o->parameter_names, def->name, &i) < 0)
        return TMK_ENOMEM;
    const char *dot = strrchr(def->name, '.');
    const char *module =
        dot ? tmk_arena_text(&o->texts, def->name, (size_t)(dot - def->name)) : o->model;
    if (dot && !module)
        return TMK_ENOMEM;
    o->parameters[i] = (struct owner_parameter){.def = *def, .id = id, .module = module};
    return 0;
}

/* Note parameters in order of ids, so that the largest id counts. */
static int note_parameters(struct tmk_owners *o)
{
    int rc = 0;
    for (uint32_t id = 1; id < tmk_reader_n_parameters(o->r) && rc == 0; id++) {
        struct tmk_parameter def;
        if (tmk_reader_parameter(o->r, id, &def) && def.name)
            rc = note_parameter(o, id, &def);
    }
    return rc;
}

int tmk_owners_open(const struct tmk_reader *r, const struct tmk_components *c,
                    struct tmk_owners **ret_owners)
{
    struct tmk_owners *o = calloc(1, sizeof *o);
    if (!o)
        return TMK_ENOMEM;
    o->r = r;
    o->components = c;
    o->tree = (struct tmk_model_tree){.class_of = owner_class_of, .arg = o};
    o->n_stacks = tmk_reader_n_stacks(r);
    o->n_frames = tmk_reader_n_frames(r);
    o->n_names = tmk_reader_n_strings(r);
    o->stack_rules = calloc((size_t)o->n_stacks + 1, 1);
    o->frame_rules = calloc((size_t)o->n_frames + 1, 1);
    o->names = calloc((size_t)o->n_names + 1, sizeof *o->names);
    o->stack_makers = calloc((size_t)o->n_stacks + 1, 1);
    if (!o->stack_rules || !o->stack_makers || !o->frame_rules || !o->names ||
        note_modules(o) < 0 || note_parameters(o) < 0) {
        tmk_owners_close(o);
        return TMK_ENOMEM;
    }
    *ret_owners = o;
    return 0;
}

struct tmk_owners *tmk_owners_close(struct tmk_owners *o)
{
    if (!o)
        return NULL;
    free(o->stack_rules);
    free(o->stack_makers);
    free(o->frame_rules);
    free(o->names);
    free(o->classes);
    free(o->parameters);
    tmk_textmap_fini(&o->modules);
    tmk_textmap_fini(&o->parameter_names);
    tmk_arena_fini(&o->texts);
    free(o);
    return NULL;
}

/* ---- asking: stacks ---- */

static uint8_t frame_rule(struct tmk_owners *o, uint32_t frame)
{
    struct tmk_frame f;
    if (frame >= o->n_frames)
        return 0;
    if (o->frame_rules[frame] == 0)
        o->frame_rules[frame] =
            (uint8_t)(1 + (tmk_reader_frame(o->r, frame, &f) ? rule_of_frame(&f) : 0));
    return (uint8_t)(o->frame_rules[frame] - 1);
}

static uint8_t find_stack_rule(struct tmk_owners *o, uint32_t stack)
{
    struct tmk_stack frames;
    uint8_t rule = 0;
    if (!tmk_reader_stack(o->r, stack, &frames))
        return STACK_PLAIN;
    for (uint32_t i = frames.n_frames; i > 0 && rule == 0; i--)
        rule = frame_rule(o, frames.frames[i - 1]);
    return rule ? rule : STACK_PLAIN;
}

const char *tmk_stack_stage(const struct tmk_process *p, uint32_t stack)
{
    struct tmk_owners *o = p->owners;
    if (stack >= o->n_stacks)
        return NULL;
    if (o->stack_rules[stack] == STACK_UNSEEN)
        o->stack_rules[stack] = find_stack_rule(o, stack);
    uint8_t rule = o->stack_rules[stack];
    return rule == STACK_PLAIN ? NULL : stack_rules[rule - 1].stage;
}

static const struct maker_rule *find_maker_rule(const struct tmk_owners *o, uint32_t stack)
{
    struct tmk_stack frames;
    const struct maker_rule *rule = NULL;
    if (!tmk_reader_stack(o->r, stack, &frames))
        return NULL;
    bool is_innermost = true; /* of Python's */
    for (uint32_t i = 0; i < frames.n_frames && !rule; i++) {
        struct tmk_frame f;
        if (!tmk_reader_frame(o->r, frames.frames[i], &f) || f.address)
            continue;
        rule = maker_rule_of(&f, is_innermost);
        is_innermost = false;
    }
    return rule;
}

/* The rule for what a stack's functions make; NULL: none. */
static const struct maker_rule *maker_of_stack(struct tmk_owners *o, uint32_t stack)
{
    if (stack == 0 || stack >= o->n_stacks)
        return NULL;
    if (o->stack_makers[stack] == STACK_UNSEEN) {
        const struct maker_rule *rule = find_maker_rule(o, stack);
        o->stack_makers[stack] = rule ? (uint8_t)(rule - maker_rules + 1) : STACK_PLAIN;
    }
    uint8_t number = o->stack_makers[stack];
    return number == STACK_PLAIN ? NULL : &maker_rules[number - 1];
}

/* The same for a block that no tag tells; NULL: none, or it went where it was made. */
static const struct maker_rule *maker_of_block(struct tmk_owners *o, const struct tmk_block *b)
{
    bool is_untold =
        b->name == 0 && (b->category == TIDEMARK_UNKNOWN || b->category == TIDEMARK_ACTIVATION ||
                         b->category == TIDEMARK_OTHER);
    return is_untold ? maker_of_stack(o, b->stack) : NULL;
}

/* ---- asking: names ---- */

const char *tmk_name_component(const struct tmk_process *p, uint32_t name)
{
    struct tmk_owners *o = p->owners;
    const char *text = name < o->n_names ? tmk_reader_string(o->r, name) : NULL;
    if (!text)
        return "other";
    if (!o->names[name].component)
        o->names[name].component = tmk_components_find(o->components, &o->tree, text);
    return o->names[name].component;
}

/* Find the parameter that a tensor's name begins with. A piece of optimizer state has more words
 * behind the parameter's name. */
static const struct owner_parameter *find_parameter(const struct tmk_owners *o, const char *name)
{
    char part[TMK_STRING_MAX_BYTES + 1];
    size_t n = strlen(name);
    uint32_t i;
    if (n >= sizeof part)
        return NULL;
    memcpy(part, name, n + 1);
    for (char *dot = part + n; dot; dot = strrchr(part, '.')) {
        *dot = '\0';
        if (tmk_textmap_find(&o->parameter_names, part, &i))
            return &o->parameters[i];
    }
    return NULL;
}

static const struct owner_parameter *parameter_of_name(struct tmk_owners *o, uint32_t name)
{
    const char *text = name < o->n_names ? tmk_reader_string(o->r, name) : NULL;
    if (!text || o->parameter_names.n == 0)
        return NULL;
    if (!o->names[name].is_sought) {
        o->names[name].parameter = find_parameter(o, text);
        o->names[name].is_sought = true;
    }
    return o->names[name].parameter;
}

/* The parameter that the block stores, or that it is a gradient or optimizer state of. */
static const struct owner_parameter *parameter_of(struct tmk_owners *o, const struct tmk_block *b)
{
    bool is_of_one = b->category == TIDEMARK_PARAMETER || b->category == TIDEMARK_BUFFER ||
                     b->category == TIDEMARK_GRADIENT || b->category == TIDEMARK_OPTIMIZER_STATE;
    return is_of_one && b->name ? parameter_of_name(o, b->name) : NULL;
}

static const char *parameter_component_of(struct tmk_owners *o,
                                          const struct owner_parameter *parameter)
{
    struct owner_parameter *p = &o->parameters[parameter - o->parameters];
    if (!p->component)
        p->component = tmk_components_find(o->components, &o->tree, p->def.name);
    return p->component;
}

/* ---- asking: blocks ---- */

bool tmk_block_has_parameter(const struct tmk_process *p, const struct tmk_block *b)
{
    return parameter_of(p->owners, b) != NULL;
}

bool tmk_block_has_maker(const struct tmk_process *p, const struct tmk_block *b)
{
    const struct maker_rule *maker = maker_of_block(p->owners, b);
    return maker && maker->module;
}

const char *tmk_block_stage(const struct tmk_process *p, const struct tmk_context *contexts,
                            const struct tmk_block *b)
{
    uint32_t stage = contexts[b->context].stage;
    if (stage)
        return tmk_reader_string(p->reader, contexts[stage].name);
    if (b->serial == 0)
        return NULL; /* first seen after a gap: its allocation is unknown */
    const char *of_stack = tmk_stack_stage(p, b->stack);
    bool is_model = b->category == TIDEMARK_PARAMETER || b->category == TIDEMARK_BUFFER;
    return of_stack ? of_stack : is_model ? "model_load" : "other";
}

const char *tmk_block_module(const struct tmk_process *p, const struct tmk_context *contexts,
                             const struct tmk_block *b)
{
    const struct maker_rule *maker = maker_of_block(p->owners, b);
    uint32_t module = contexts[b->context].module;
    if (maker && maker->module)
        return maker->module;
    if (module)
        return tmk_reader_string(p->reader, contexts[module].name);
    const struct owner_parameter *parameter = parameter_of(p->owners, b);
    return parameter ? parameter->module : NULL;
}

bool tmk_block_is_without_grad(const struct tmk_process *p, const struct tmk_context *contexts,
                               const struct tmk_block *b)
{
    uint32_t c = b->context;
    while (c && contexts[c].kind != TMK_RANGE_GRAD_MODE)
        c = contexts[c].parent;
    const char *mode = c ? tmk_reader_string(p->reader, contexts[c].name) : NULL;
    return mode && strcmp(mode, TMK_RANGE_ENABLE_GRAD) != 0;
}

const char *tmk_block_component(const struct tmk_process *p, const struct tmk_context *contexts,
                                const struct tmk_block *b)
{
    const struct owner_parameter *parameter = parameter_of(p->owners, b);
    if (parameter)
        return parameter_component_of(p->owners, parameter);
    uint32_t module = contexts[b->context].module;
    if (module)
        return tmk_name_component(p, contexts[module].name);
    return b->serial ? "other" : NULL;
}

uint8_t tmk_block_category(const struct tmk_process *p, const struct tmk_context *contexts,
                           const struct tmk_block *b)
{
    const struct maker_rule *maker = maker_of_block(p->owners, b);
    if (maker)
        return maker->category;
    bool is_guess =
        b->category == TIDEMARK_UNKNOWN || (b->category == TIDEMARK_ACTIVATION && b->name == 0);
    if (!is_guess || contexts[b->context].stage || b->serial == 0)
        return b->category;
    const char *stage = tmk_stack_stage(p, b->stack);
    return stage && strcmp(stage, "data") == 0 ? TIDEMARK_INPUT : b->category;
}

/* ---- asking: the model ---- */

const char *tmk_module_component(const struct tmk_process *p, const char *module)
{
    return tmk_components_find(p->owners->components, &p->owners->tree, module);
}

const char *tmk_module_class(const struct tmk_process *p, const char *module)
{
    return owner_class_of(p->owners, module);
}

uint32_t tmk_parameters_n(const struct tmk_process *p)
{
    return (uint32_t)p->owners->parameter_names.n;
}

const struct tmk_parameter *tmk_parameter_get(const struct tmk_process *p, uint32_t i)
{
    return &p->owners->parameters[i].def;
}

uint32_t tmk_parameter_id(const struct tmk_process *p, uint32_t i)
{
    return p->owners->parameters[i].id;
}

const char *tmk_parameter_module(const struct tmk_process *p, uint32_t i)
{
    return p->owners->parameters[i].module;
}

const char *tmk_parameter_component(const struct tmk_process *p, uint32_t i)
{
    return parameter_component_of(p->owners, &p->owners->parameters[i]);
}
