/* SPDX-License-Identifier: MIT */
/* cli/weights/weights_json.c - `tidemark model --json`. */
#include "cli/weights/weights_answer.h"
#include "kit/json.h"

static void put_group(struct tmk_json *j, const struct tmk_model_group *g)
{
    tmk_json_u64(j, "tensors", g->n_tensors);
    tmk_json_u64(j, "parameters", g->n_parameters);
    tmk_json_u64(j, "bytes", g->n_bytes);
}

static void put_items(struct tmk_json *j, const char *name_key,
                      const struct tmk_model_groups *groups)
{
    for (uint64_t i = 0; i < groups->names.n; i++) {
        tmk_json_object(j, NULL);
        tmk_json_text(j, name_key, groups->all[i].name);
        put_group(j, &groups->all[i]);
        tmk_json_end(j);
    }
}

static void put_groups(struct tmk_json *j, const char *key, const char *name_key,
                       const struct tmk_model_groups *groups)
{
    tmk_json_array(j, key);
    put_items(j, name_key, groups);
    tmk_json_end(j);
}

static void put_known(struct tmk_json *j, const char *key, bool is_known, uint64_t value)
{
    if (is_known)
        tmk_json_u64(j, key, value);
    else
        tmk_json_null(j, key);
}

static void put_result(struct tmk_json *j, const struct tmk_scan_result *r)
{
    if (!r || !r->is_scanned) {
        tmk_json_null(j, "stats");
        return;
    }
    tmk_json_object(j, "stats");
    tmk_json_u64(j, "nan", r->n_nan);
    tmk_json_u64(j, "inf", r->n_inf);
    tmk_json_u64(j, "zero", r->n_zero);
    tmk_json_u64(j, "denormal", r->n_denormal);
    put_known(j, "first_nan", r->first_nan != UINT64_MAX, r->first_nan);
    put_known(j, "first_inf", r->first_inf != UINT64_MAX, r->first_inf);
    tmk_json_double(j, "min", r->min);
    tmk_json_double(j, "max", r->max);
    tmk_json_double(j, "mean", r->mean);
    tmk_json_double(j, "std", r->std);
    tmk_json_end(j);
}

static void put_tensor(struct tmk_json *j, const struct tmk_model_answer *a, uint64_t i)
{
    const struct tmk_weight *t = &a->weights.all[i];
    tmk_json_object(j, NULL);
    tmk_json_text(j, "name", t->name);
    tmk_json_text(j, "file", a->weights.files[t->file].path);
    tmk_json_text(j, "dtype", tmk_weight_dtype(t));
    tmk_json_array(j, "shape");
    for (uint32_t d = 0; d < t->n_dims; d++)
        tmk_json_u64(j, NULL, t->shape[d]);
    tmk_json_end(j);
    tmk_json_u64(j, "parameters", t->n_elements);
    tmk_json_u64(j, "bytes", t->n_bytes);
    tmk_json_text(j, "component", a->components[i]);
    tmk_json_text(j, "same_as", t->same_as ? a->weights.all[t->same_as - 1].name : NULL);
    tmk_json_bool(j, "extra", t->is_extra);
    if (t->is_parameter)
        tmk_json_bool(j, "requires_grad", t->requires_grad);
    else
        tmk_json_null(j, "requires_grad");
    put_result(j, a->results ? &a->results[i] : NULL);
    tmk_json_end(j);
}

static void put_training(struct tmk_json *j, const struct tmk_training_memory *m)
{
    tmk_json_u64(j, "trained_parameters", m->n_trained);
    tmk_json_u64(j, "weights", m->weights);
    tmk_json_u64(j, "gradients", m->gradients);
    tmk_json_u64(j, "master_weights", m->master);
    tmk_json_u64(j, "optimizer", m->optimizer);
    tmk_json_u64(j, "total", m->total);
    tmk_json_end(j);
}

static void put_estimates(struct tmk_json *j, const struct tmk_model_answer *a)
{
    tmk_json_object(j, "training_estimate");
    tmk_json_text(j, "not_included", "activations, temporary memory, the CUDA context");
    tmk_json_array(j, "full");
    for (unsigned way = 0; way < TMK_TRAINING_N_WAYS; way++) {
        struct tmk_training_memory m = tmk_training_full(a->n_floats, way);
        tmk_json_object(j, NULL);
        tmk_json_text(j, "precision", tmk_training_way_key(way));
        put_training(j, &m);
    }
    tmk_json_end(j);
    tmk_json_u64(j, "lora_matrices", a->n_adapted);
    tmk_json_array(j, "lora");
    for (uint32_t i = 0; a->n_adapted > 0 && i < a->n_ranks; i++) {
        struct tmk_training_memory m =
            tmk_training_lora(a->n_floats, a->adapted_sides, a->ranks[i]);
        tmk_json_object(j, NULL);
        tmk_json_u64(j, "rank", a->ranks[i]);
        put_training(j, &m);
    }
    tmk_json_end(j);
    tmk_json_end(j);
}

static void put_files(struct tmk_json *j, const struct tmk_model_answer *a)
{
    tmk_json_array(j, "files");
    for (uint64_t i = 0; i < a->weights.n_files; i++) {
        tmk_json_object(j, NULL);
        tmk_json_text(j, "path", a->weights.files[i].path);
        tmk_json_text(j, "format", a->weights.files[i].format);
        tmk_json_u64(j, "bytes", a->weights.files[i].n_bytes);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void put_types(struct tmk_json *j, const struct tmk_model_answer *a)
{
    tmk_json_array(j, "dtypes");
    for (unsigned i = 0; i < TMK_WEIGHT_N_TYPES; i++) {
        if (a->types[i].n_tensors == 0 || i == TMK_WEIGHT_OTHER)
            continue;
        tmk_json_object(j, NULL);
        tmk_json_text(j, "dtype", tmk_weight_type_name(i));
        put_group(j, &a->types[i]);
        tmk_json_end(j);
    }
    put_items(j, "dtype", &a->other_types);
    tmk_json_end(j);
}

static void put_names(struct tmk_json *j, const char *key, const struct tmk_textmap *names)
{
    tmk_json_array(j, key);
    for (uint64_t i = 0; i < names->n; i++)
        tmk_json_text(j, NULL, names->texts[i]);
    tmk_json_end(j);
}

void tmk_model_json(const struct tmk_model_answer *a, FILE *out)
{
    struct tmk_json j;
    tmk_json_init(&j, out, 2);
    tmk_json_object(&j, NULL);
    put_group(&j, &a->total);
    put_known(&j, "trainable_parameters", a->says_grad, a->n_trainable);
    put_known(&j, "frozen_parameters", a->says_grad, a->n_frozen);
    tmk_json_u64(&j, "tied", a->n_tied);
    tmk_json_u64(&j, "tied_bytes", a->tied_bytes);
    put_known(&j, "tensors_with_nan", a->results != NULL, a->n_nan);
    put_known(&j, "tensors_with_inf", a->results != NULL, a->n_inf);
    tmk_json_object(&j, "extra");
    put_group(&j, &a->extra);
    tmk_json_end(&j);
    put_files(&j, a);
    put_types(&j, a);
    put_groups(&j, "layers", "layer", &a->layers);
    put_groups(&j, "components", "component", &a->parts);
    put_names(&j, "in_several_files", &a->weights.twice);
    put_names(&j, "not_read", &a->weights.left_out);
    put_names(&j, "classes", &a->weights.classes);
    put_estimates(&j, a);
    tmk_json_array(&j, "tensors_by_name");
    for (uint64_t i = 0; i < a->weights.n; i++)
        put_tensor(&j, a, i);
    tmk_json_end(&j);
    tmk_json_end(&j);
}
