/* SPDX-License-Identifier: MIT */
/* cli/weights/weights_json.c - `tidemark model --json`. */
#include "cli/weights/weights_answer.h"
#include "interop/weights/weight_scan.h"
#include "interop/weights/weights.h"
#include "kit/textmap.h"
#include "kit/tree.h"
#include "model/training_memory.h"

static void put_group(struct tmk_tree *t, const struct tmk_weights_group *g)
{
    tmk_tree_u64(t, "tensors", g->n_tensors);
    tmk_tree_u64(t, "parameters", g->n_parameters);
    tmk_tree_u64(t, "bytes", g->n_bytes);
}

static void put_items(struct tmk_tree *t, const char *name_key,
                      const struct tmk_weights_groups *groups)
{
    for (uint64_t i = 0; i < groups->names.n; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, name_key, groups->all[i].name);
        put_group(t, &groups->all[i]);
        tmk_tree_end(t);
    }
}

static void put_groups(struct tmk_tree *t, const char *key, const char *name_key,
                       const struct tmk_weights_groups *groups)
{
    tmk_tree_list(t, key);
    put_items(t, name_key, groups);
    tmk_tree_end(t);
}

static void put_result(struct tmk_tree *t, const struct tmk_scan_result *r)
{
    if (!tmk_tree_object_if(t, "stats", r && r->is_scanned))
        return;
    tmk_tree_u64(t, "nan", r->n_nan);
    tmk_tree_u64(t, "inf", r->n_inf);
    tmk_tree_u64(t, "zero", r->n_zero);
    tmk_tree_u64(t, "denormal", r->n_denormal);
    tmk_tree_u64_if(t, "first_nan", r->first_nan != UINT64_MAX, r->first_nan);
    tmk_tree_u64_if(t, "first_inf", r->first_inf != UINT64_MAX, r->first_inf);
    tmk_tree_double(t, "min", r->min);
    tmk_tree_double(t, "max", r->max);
    tmk_tree_double(t, "mean", r->mean);
    tmk_tree_double(t, "std", r->std);
    tmk_tree_end(t);
}

static void put_tensor(struct tmk_tree *t, const struct tmk_weights_answer *a, uint64_t i)
{
    const struct tmk_weight *w = &a->weights.all[i];
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "name", w->name);
    tmk_tree_text(t, "file", a->weights.files[w->file].path);
    tmk_tree_text(t, "dtype", tmk_weight_dtype(w));
    tmk_tree_list(t, "shape");
    for (uint32_t d = 0; d < w->n_dims; d++)
        tmk_tree_u64(t, NULL, w->shape[d]);
    tmk_tree_end(t);
    tmk_tree_u64(t, "parameters", w->n_elements);
    tmk_tree_u64(t, "bytes", w->n_bytes);
    tmk_tree_text(t, "component", a->components[i]);
    tmk_tree_text(t, "same_as", w->same_as ? a->weights.all[w->same_as - 1].name : NULL);
    tmk_tree_bool(t, "extra", w->is_extra);
    tmk_tree_bool_if(t, "requires_grad", w->is_parameter, w->requires_grad);
    put_result(t, a->results ? &a->results[i] : NULL);
    tmk_tree_end(t);
}

static void put_training(struct tmk_tree *t, const struct tmk_training_memory *m)
{
    tmk_tree_u64(t, "trained_parameters", m->n_trained);
    tmk_tree_u64(t, "weights", m->weights);
    tmk_tree_u64(t, "gradients", m->gradients);
    tmk_tree_u64(t, "master_weights", m->master);
    tmk_tree_u64(t, "optimizer", m->optimizer);
    tmk_tree_u64(t, "total", m->total);
    tmk_tree_end(t);
}

static void put_estimates(struct tmk_tree *t, const struct tmk_weights_answer *a)
{
    tmk_tree_object(t, "training_estimate");
    tmk_tree_text(t, "not_included", "activations, temporary memory, the CUDA context");
    tmk_tree_list(t, "full");
    for (unsigned way = 0; way < TMK_TRAINING_N_WAYS; way++) {
        struct tmk_training_memory m = tmk_training_full(a->n_floats, way);
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "precision", tmk_training_way_key(way));
        put_training(t, &m);
    }
    tmk_tree_end(t);
    tmk_tree_u64(t, "lora_matrices", a->n_adapted);
    tmk_tree_list(t, "lora");
    for (uint32_t i = 0; a->n_adapted > 0 && i < a->n_ranks; i++) {
        struct tmk_training_memory m =
            tmk_training_lora(a->n_floats, a->adapted_sides, a->ranks[i]);
        tmk_tree_object(t, NULL);
        tmk_tree_u64(t, "rank", a->ranks[i]);
        put_training(t, &m);
    }
    tmk_tree_end(t);
    tmk_tree_end(t);
}

static void put_files(struct tmk_tree *t, const struct tmk_weights_answer *a)
{
    tmk_tree_list(t, "files");
    for (uint64_t i = 0; i < a->weights.n_files; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "path", a->weights.files[i].path);
        tmk_tree_text(t, "format", a->weights.files[i].format);
        tmk_tree_u64(t, "bytes", a->weights.files[i].n_bytes);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_types(struct tmk_tree *t, const struct tmk_weights_answer *a)
{
    tmk_tree_list(t, "dtypes");
    for (unsigned i = 0; i < TMK_WEIGHT_N_TYPES; i++) {
        if (a->types[i].n_tensors == 0 || i == TMK_WEIGHT_OTHER)
            continue;
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "dtype", tmk_weight_type_name(i));
        put_group(t, &a->types[i]);
        tmk_tree_end(t);
    }
    put_items(t, "dtype", &a->other_types);
    tmk_tree_end(t);
}

static void put_weight_names(struct tmk_tree *t, const char *key, const struct tmk_textmap *names)
{
    tmk_tree_list(t, key);
    for (uint64_t i = 0; i < names->n; i++)
        tmk_tree_text(t, NULL, names->texts[i]);
    tmk_tree_end(t);
}

void tmk_weights_json(const struct tmk_weights_answer *a, FILE *out)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, out, 2);
    tmk_tree_object(&t, NULL);
    put_group(&t, &a->total);
    tmk_tree_u64_if(&t, "trainable_parameters", a->says_grad, a->n_trainable);
    tmk_tree_u64_if(&t, "frozen_parameters", a->says_grad, a->n_frozen);
    tmk_tree_u64(&t, "tied", a->n_tied);
    tmk_tree_u64(&t, "tied_bytes", a->tied_bytes);
    tmk_tree_u64_if(&t, "tensors_with_nan", a->results != NULL, a->n_nan);
    tmk_tree_u64_if(&t, "tensors_with_inf", a->results != NULL, a->n_inf);
    tmk_tree_object(&t, "extra");
    put_group(&t, &a->extra);
    tmk_tree_end(&t);
    put_files(&t, a);
    put_types(&t, a);
    put_groups(&t, "layers", "layer", &a->layers);
    put_groups(&t, "components", "component", &a->parts);
    put_weight_names(&t, "in_several_files", &a->weights.twice);
    put_weight_names(&t, "not_read", &a->weights.left_out);
    put_weight_names(&t, "classes", &a->weights.classes);
    put_estimates(&t, a);
    tmk_tree_list(&t, "tensors_by_name");
    for (uint64_t i = 0; i < a->weights.n; i++)
        put_tensor(&t, a, i);
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}
