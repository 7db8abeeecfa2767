/* SPDX-License-Identifier: MIT */
/* interop/weights/checkpoint_tensors.c - finds the tensors among the values of a checkpoint's
 * pickle.
 *
 * An allow-list names a handful of torch's functions and the meaning of their arguments. A call
 * of anything else makes no tensor; its items and state are searched (so a whole module that was
 * saved shows its parameters), and its name is reported. */
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "interop/pickle/work_limit.h"
#include "interop/weights/checkpoint_pickle.h"
#include "interop/weights/weights.h"
#include "interop/weights/weights_in.h"
#include "kit/arena.h"
#include "kit/textmap.h"

enum {
    MAX_DEPTH = 64,
    /* A pickle of a few bytes can describe an endless tree. So every value that is visited costs,
     * and so does each byte of a name; checkpoints take about two steps a byte. */
    STEPS_PER_BYTE = 32,
    VISIT_STEPS = 16,
};

struct cell_walk {
    struct tmk_weights *w;
    uint32_t file;
    const struct tmk_checkpoint_entries *entries;
    struct tmk_checkpoint_limit limit;
    bool is_extra;
    struct tmk_error *err;
};

/* ---- names that are known ---- */

struct type_name {
    const char *name;
    enum tmk_weight_type type;
};

static const struct type_name storage_types[] = {
    {"torch.DoubleStorage", TMK_WEIGHT_F64},
    {"torch.FloatStorage", TMK_WEIGHT_F32},
    {"torch.HalfStorage", TMK_WEIGHT_F16},
    {"torch.BFloat16Storage", TMK_WEIGHT_BF16},
    {"torch.LongStorage", TMK_WEIGHT_I64},
    {"torch.IntStorage", TMK_WEIGHT_I32},
    {"torch.ShortStorage", TMK_WEIGHT_I16},
    {"torch.CharStorage", TMK_WEIGHT_I8},
    {"torch.ByteStorage", TMK_WEIGHT_U8},
    {"torch.BoolStorage", TMK_WEIGHT_BOOL},
    {"torch.QInt8Storage", TMK_WEIGHT_I8},
    {"torch.QUInt8Storage", TMK_WEIGHT_U8},
    {"torch.QInt32Storage", TMK_WEIGHT_I32},
    {"torch.ComplexFloatStorage", TMK_WEIGHT_C64},
    {"torch.ComplexDoubleStorage", TMK_WEIGHT_C128},
    {NULL, TMK_WEIGHT_U8},
};

/* Types of tensors in newer versions, where storages are bytes. */
static const struct type_name dtypes[] = {
    {"torch.float64", TMK_WEIGHT_F64},
    {"torch.float32", TMK_WEIGHT_F32},
    {"torch.float16", TMK_WEIGHT_F16},
    {"torch.bfloat16", TMK_WEIGHT_BF16},
    {"torch.float8_e4m3fn", TMK_WEIGHT_F8_E4M3},
    {"torch.float8_e5m2", TMK_WEIGHT_F8_E5M2},
    {"torch.float8_e4m3fnuz", TMK_WEIGHT_F8_E4M3FNUZ},
    {"torch.float8_e5m2fnuz", TMK_WEIGHT_F8_E5M2FNUZ},
    {"torch.float8_e8m0fnu", TMK_WEIGHT_F8_E8M0},
    {"torch.float4_e2m1fn_x2", TMK_WEIGHT_F4_X2},
    {"torch.int64", TMK_WEIGHT_I64},
    {"torch.int32", TMK_WEIGHT_I32},
    {"torch.int16", TMK_WEIGHT_I16},
    {"torch.int8", TMK_WEIGHT_I8},
    {"torch.uint64", TMK_WEIGHT_U64},
    {"torch.uint32", TMK_WEIGHT_U32},
    {"torch.uint16", TMK_WEIGHT_U16},
    {"torch.uint8", TMK_WEIGHT_U8},
    {"torch.bool", TMK_WEIGHT_BOOL},
    {"torch.complex64", TMK_WEIGHT_C64},
    {"torch.complex128", TMK_WEIGHT_C128},
    {NULL, TMK_WEIGHT_U8},
};

/* Indexes of the function's arguments; -1: it has no such argument. */
struct tensor_maker {
    const char *name;
    int storage, offset, size, stride, dtype;
};

static const struct tensor_maker makers[] = {
    {"torch._utils._rebuild_tensor", 0, 1, 2, 3, -1},
    {"torch._utils._rebuild_tensor_v2", 0, 1, 2, 3, -1},
    {"torch._utils._rebuild_tensor_v3", 0, 1, 2, 3, 6},
    {"torch._utils._rebuild_qtensor", 0, 1, 2, 3, -1},
    {"torch._utils._rebuild_meta_tensor_no_storage", -1, -1, 1, 2, 0},
};

static const char *const plain_names[] = {
    "collections.OrderedDict",
    "collections.defaultdict",
    "torch.Size",
    "builtins.set",
    "__builtin__.set",
    "torch.device",
    NULL,
};

static bool find_type(const struct type_name *table, const char *name, enum tmk_weight_type *ret)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0) {
            *ret = table->type;
            return true;
        }
    return false;
}

static bool is_one_of_names(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static const char *text_of_cell(const struct tmk_checkpoint_value *c)
{
    return c && (c->kind == TMK_CHECKPOINT_TEXT || c->kind == TMK_CHECKPOINT_NAME) ? c->text : NULL;
}

static const struct tmk_checkpoint_value *item_of(const struct tmk_checkpoint_value *c, int i)
{
    bool holds = c && c->kind >= TMK_CHECKPOINT_TUPLE && c->kind != TMK_CHECKPOINT_NAME &&
                 c->kind < TMK_CHECKPOINT_MARK;
    return holds && i >= 0 && (uint64_t)i < c->n ? c->items[i] : NULL;
}

/* ---- a tensor ---- */

static int fail_odd_tensor(struct cell_walk *k, const char *name)
{
    return tmk_fail(k->err, TMK_EDAMAGED, "data.pkl: the tensor %s makes no sense", name);
}

/* Read whole numbers that are not negative from a tuple or a torch.Size into the arena. */
static bool numbers_of(struct cell_walk *k, const struct tmk_checkpoint_value *c,
                       const uint64_t **ret, uint32_t *n)
{
    if (c && c->kind == TMK_CHECKPOINT_CALL) /* torch.Size((2, 3)) */
        c = item_of(item_of(c, 1), 0);
    if (!c || (c->kind != TMK_CHECKPOINT_TUPLE && c->kind != TMK_CHECKPOINT_LIST) ||
        c->n > TMK_WEIGHT_MAX_DIMS)
        return false;
    tmk_work_take(&k->limit.work, (c->n + 1) * sizeof(uint64_t));
    uint64_t *numbers = tmk_arena_take(&k->w->arena, (c->n + 1) * sizeof *numbers);
    if (!numbers)
        return false;
    for (uint64_t i = 0; i < c->n; i++) {
        if (c->items[i]->kind != TMK_CHECKPOINT_INT || c->items[i]->number < 0)
            return false;
        numbers[i] = (uint64_t)c->items[i]->number;
    }
    *ret = numbers;
    *n = (uint32_t)c->n;
    return true;
}

static bool is_tensor_contiguous(const struct tmk_weight *t)
{
    uint64_t expected = 1;
    for (uint32_t i = t->n_dims; i > 0; i--) {
        if (t->shape[i - 1] != 1 && t->strides[i - 1] != expected)
            return false;
        expected *= t->shape[i - 1];
    }
    return true;
}

/* The elements from the first to after the last; false when that exceeds 64 bits. */
static bool extent_of_tensor(const struct tmk_weight *t, uint64_t *ret)
{
    uint64_t last = 0, step;
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (__builtin_mul_overflow(t->shape[i] - 1, t->strides[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    return !__builtin_add_overflow(last, 1, ret);
}

/* Place the tensor's data, all of which must lie in its storage. */
static int place_tensor(struct cell_walk *k, struct tmk_weight *t, const char *key, uint64_t first,
                        uint64_t claimed_bytes)
{
    uint64_t offset, n_bytes, extent, end, item = tmk_weight_type_bytes(t->type);
    int rc = k->entries->find(k->entries->zip, key, &offset, &n_bytes, k->err);
    if (rc < 0)
        return rc;
    if (claimed_bytes > n_bytes)
        return tmk_fail(k->err, TMK_EDAMAGED,
                        "the storage of %s has %llu bytes, and should have %llu", t->name,
                        (unsigned long long)n_bytes, (unsigned long long)claimed_bytes);
    if (t->n_elements > 0 && (!extent_of_tensor(t, &extent) ||
                              __builtin_add_overflow(first, extent, &end) || end > n_bytes / item))
        return tmk_fail(k->err, TMK_EDAMAGED, "the tensor %s is larger than its storage", t->name);
    t->offset = t->n_elements > 0 ? offset + first * item : offset;
    if (t->n_elements == 0 || is_tensor_contiguous(t))
        t->strides = NULL;
    return 0;
}

/* Place a tensor by its persistent id: ("storage", type, key, location, elements). */
static int place_in_storage(struct cell_walk *k, struct tmk_weight *t,
                            const struct tmk_checkpoint_value *id,
                            const struct tmk_checkpoint_value *first, bool has_dtype)
{
    const struct tmk_checkpoint_value *what = item_of(id, 0), *count = item_of(what, 4);
    const char *word = text_of_cell(item_of(what, 0)), *type = text_of_cell(item_of(what, 1)),
               *key = text_of_cell(item_of(what, 2));
    uint64_t claimed = 0;
    if (!word || strcmp(word, "storage") != 0 || !type || !key || !count ||
        count->kind != TMK_CHECKPOINT_INT || count->number < 0 || !first ||
        first->kind != TMK_CHECKPOINT_INT || first->number < 0)
        return fail_odd_tensor(k, t->name);
    bool is_bytes = strcmp(type, "torch.storage.UntypedStorage") == 0 ||
                    strcmp(type, "torch.UntypedStorage") == 0;
    if (!has_dtype && !find_type(storage_types, type, &t->type))
        return tmk_fail(k->err, TMK_EFORMAT, "%s is of the type %s, which is not known here",
                        t->name, type);
    int rc = tmk_weight_measure(t, k->err);
    if (rc < 0)
        return rc;
    if (__builtin_mul_overflow((uint64_t)count->number,
                               is_bytes ? 1 : tmk_weight_type_bytes(t->type), &claimed))
        return fail_odd_tensor(k, t->name);
    return place_tensor(k, t, key, (uint64_t)first->number, claimed);
}

static int add_tensor(struct cell_walk *k, const struct tensor_maker *maker,
                      const struct tmk_checkpoint_value *arguments, const char *name,
                      const struct tmk_weight *as)
{
    struct tmk_weight *t = tmk_weights_add(k->w);
    const char *dtype = text_of_cell(item_of(arguments, maker->dtype));
    uint32_t n_strides = 0;
    if (!t)
        return TMK_ENOMEM;
    if (!tmk_work_take(&k->limit.work, sizeof *t + strlen(name)))
        return tmk_work_fail(&k->limit.work, k->err);
    t->name = name;
    t->file = k->file;
    t->is_extra = k->is_extra;
    t->is_parameter = as->is_parameter;
    t->requires_grad = as->requires_grad;
    if (!numbers_of(k, item_of(arguments, maker->size), &t->shape, &t->n_dims) ||
        !numbers_of(k, item_of(arguments, maker->stride), &t->strides, &n_strides) ||
        t->n_dims != n_strides)
        return fail_odd_tensor(k, name);
    if (maker->dtype >= 0 && (!dtype || !find_type(dtypes, dtype, &t->type)))
        return tmk_fail(k->err, TMK_EFORMAT, "%s is of the type %s, which is not known here", name,
                        dtype ? dtype : "?");
    if (maker->storage < 0) {
        t->has_data = false;
        t->strides = NULL;
        return tmk_weight_measure(t, k->err);
    }
    return place_in_storage(k, t, item_of(arguments, maker->storage),
                            item_of(arguments, maker->offset), maker->dtype >= 0);
}

/* ---- the tree ---- */

static int visit_cell(struct cell_walk *k, struct tmk_checkpoint_value *c, const char *name,
                      unsigned depth);

/* Note a call that is not executed: it would have made an object, of which we read the state or
 * nothing. */
static int note_call(struct cell_walk *k, const char *function, bool has_state)
{
    uint32_t number;
    struct tmk_textmap *to = has_state ? &k->w->classes : &k->w->left_out;
    return is_one_of_names(plain_names, function) ? 0 : tmk_textmap_put(to, function, &number);
}

/* Join "layers.0" and a key to "layers.0.weight". */
static const char *join_names(struct cell_walk *k, const char *name,
                              const struct tmk_checkpoint_value *key, uint64_t i)
{
    const char *dot = name[0] ? "." : "", *text = key ? text_of_cell(key) : NULL;
    tmk_work_take(&k->limit.work, strlen(name) + (text ? strlen(text) : 0));
    if (text)
        return tmk_arena_format(&k->w->arena, "%s%s%s", name, dot, text);
    long long number = !key ? (long long)i
                       : key->kind == TMK_CHECKPOINT_INT || key->kind == TMK_CHECKPOINT_BOOL
                           ? key->number
                           : (long long)i;
    return tmk_arena_format(&k->w->arena, "%s%s%lld", name, dot, number);
}

static bool may_hold_tensors(const struct tmk_checkpoint_value *c)
{
    return c->kind == TMK_CHECKPOINT_DICT || c->kind == TMK_CHECKPOINT_LIST ||
           c->kind == TMK_CHECKPOINT_TUPLE || c->kind == TMK_CHECKPOINT_CALL;
}

/* True for keys of a module's state after which the names of its tensors and modules follow. */
static bool is_inner_key(const struct tmk_checkpoint_value *key)
{
    static const char *const inner[] = {"_parameters", "_buffers", "_modules", NULL};
    return key->kind == TMK_CHECKPOINT_TEXT && is_one_of_names(inner, key->text);
}

static int visit_pairs(struct cell_walk *k, const struct tmk_checkpoint_value *dict,
                       const char *name, unsigned depth, bool is_state)
{
    if (!tmk_work_take(&k->limit.work, dict->n))
        return tmk_work_fail(&k->limit.work, k->err);
    for (uint64_t i = 0; i + 1 < dict->n; i += 2) {
        if (!may_hold_tensors(dict->items[i + 1]))
            continue;
        const char *inside = is_state && is_inner_key(dict->items[i])
                                 ? name
                                 : join_names(k, name, dict->items[i], i / 2);
        int rc = inside ? visit_cell(k, dict->items[i + 1], inside, depth) : TMK_ENOMEM;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int visit_items(struct cell_walk *k, const struct tmk_checkpoint_value *list,
                       const char *name, unsigned depth)
{
    if (!tmk_work_take(&k->limit.work, list->n))
        return tmk_work_fail(&k->limit.work, k->err);
    for (uint64_t i = 0; i < list->n; i++) {
        if (!may_hold_tensors(list->items[i]))
            continue;
        const char *inside = join_names(k, name, NULL, i);
        int rc = inside ? visit_cell(k, list->items[i], inside, depth) : TMK_ENOMEM;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static const struct tensor_maker *maker_of(const char *function)
{
    for (size_t i = 0; i < TMK_N(makers); i++)
        if (strcmp(makers[i].name, function) == 0)
            return &makers[i];
    return NULL;
}

/* The call that a parameter's call wraps: the one that makes its tensor. */
static const struct tmk_checkpoint_value *wrapped_tensor_call(const struct tmk_checkpoint_value *c,
                                                              struct tmk_weight *as)
{
    const char *function = text_of_cell(item_of(c, 0));
    if (!function || (strcmp(function, "torch._utils._rebuild_parameter") != 0 &&
                      strcmp(function, "torch._utils._rebuild_parameter_with_state") != 0))
        return c;
    const struct tmk_checkpoint_value *data = item_of(item_of(c, 1), 0),
                                      *grad = item_of(item_of(c, 1), 1);
    as->is_parameter = grad && grad->kind == TMK_CHECKPOINT_BOOL;
    as->requires_grad = as->is_parameter && grad->number != 0;
    return data && data->kind == TMK_CHECKPOINT_CALL ? data : c;
}

static int visit_object(struct cell_walk *k, const struct tmk_checkpoint_value *c, const char *name,
                        unsigned depth)
{
    const char *function = text_of_cell(item_of(c, 0));
    bool has_state = c->dict != NULL;
    int rc = c->dict ? visit_pairs(k, c->dict, name, depth, false) : 0;
    for (uint64_t i = 2; i < c->n && rc == 0; i++)
        if (c->items[i]->kind == TMK_CHECKPOINT_DICT) {
            rc = visit_pairs(k, c->items[i], name, depth, true);
            has_state = true;
        }
    return rc == 0 && function ? note_call(k, function, has_state) : rc;
}

static int visit_call(struct cell_walk *k, const struct tmk_checkpoint_value *c, const char *name,
                      unsigned depth)
{
    struct tmk_weight as = {0};
    const struct tmk_checkpoint_value *inner = wrapped_tensor_call(c, &as);
    const char *function = text_of_cell(item_of(inner, 0));
    const struct tmk_checkpoint_value *arguments = item_of(inner, 1);
    /* A tensor subclass: (function, class, its arguments, state). */
    if (function && strcmp(function, "torch._tensor._rebuild_from_type_v2") == 0) {
        function = text_of_cell(item_of(arguments, 0));
        arguments = item_of(arguments, 2);
    }
    const struct tensor_maker *maker = function ? maker_of(function) : NULL;
    return maker ? add_tensor(k, maker, arguments, name, &as) : visit_object(k, c, name, depth);
}

static int visit_cell(struct cell_walk *k, struct tmk_checkpoint_value *c, const char *name,
                      unsigned depth)
{
    if (c->seen || !may_hold_tensors(c))
        return 0; /* it contains itself */
    tmk_work_take(&k->limit.work, VISIT_STEPS);
    int rc = tmk_checkpoint_limit_check(&k->limit, k->err);
    if (rc < 0)
        return rc;
    if (depth == MAX_DEPTH)
        return tmk_fail(k->err, TMK_EDAMAGED, "data.pkl: values are nested without end");
    c->seen = 1;
    rc = c->kind == TMK_CHECKPOINT_DICT   ? visit_pairs(k, c, name, depth + 1, false)
         : c->kind == TMK_CHECKPOINT_CALL ? visit_call(k, c, name, depth + 1)
                                          : visit_items(k, c, name, depth + 1);
    c->seen = 0;
    return rc;
}

/* ---- where the model is ---- */

/* Checkpoints of a training have the model under one of these keys, beside other things. */
static const char *const model_keys[] = {"state_dict", "model_state_dict", "model", "module", NULL};

static uint64_t find_model(const struct tmk_checkpoint_value *dict)
{
    for (const char *const *key = model_keys; *key; key++)
        for (uint64_t i = 0; i + 1 < dict->n; i += 2) {
            const char *text = text_of_cell(dict->items[i]);
            if (text && strcmp(text, *key) == 0 && may_hold_tensors(dict->items[i + 1]))
                return i;
        }
    return dict->n;
}

static int visit_root(struct cell_walk *k, struct tmk_checkpoint_value *root)
{
    const struct tmk_checkpoint_value *dict = root->kind == TMK_CHECKPOINT_CALL ? root->dict : root;
    uint64_t model = dict && dict->kind == TMK_CHECKPOINT_DICT ? find_model(dict) : 0,
             first = k->w->n;
    if (!dict || dict->kind != TMK_CHECKPOINT_DICT || model == dict->n)
        return visit_cell(k, root, "", 0);
    int rc = visit_cell(k, dict->items[model + 1], "", 0);
    k->is_extra = k->w->n > first;
    for (uint64_t i = 0; i + 1 < dict->n && rc == 0; i += 2)
        if (i != model && may_hold_tensors(dict->items[i + 1])) {
            const char *name = join_names(k, "", dict->items[i], i / 2);
            rc = name ? visit_cell(k, dict->items[i + 1], name, 1) : TMK_ENOMEM;
        }
    return rc;
}

int tmk_checkpoint_tensors(struct tmk_weights *w, uint32_t file, const uint8_t *pickle, size_t n,
                           const struct tmk_checkpoint_entries *entries, struct tmk_error *err)
{
    struct cell_walk k = {.w = w, .file = file, .entries = entries, .err = err};
    struct tmk_checkpoint_value *root = NULL;
    tmk_checkpoint_limit_init(&k.limit, &w->arena, STEPS_PER_BYTE, w->no_limits);
    int rc = tmk_checkpoint_pickle_read(pickle, n, &w->arena, &k.limit, &root, err);
    if (rc == 0)
        rc = visit_root(&k, root);
    return rc;
}
