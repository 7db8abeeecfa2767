/* SPDX-License-Identifier: MIT */
/* cli/weights/weights_answer.c - see weights_answer.h: makes groups and totals of tensors. */
#include "cli/weights/weights_answer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "model/components.h"

/* ---- groups ---- */

/* Add, and stop at the largest number: a file may claim any size for tensors without data. */
static void add_to_group(uint64_t *sum, uint64_t value)
{
    if (__builtin_add_overflow(*sum, value, sum))
        *sum = UINT64_MAX;
}

static void count_weights(struct tmk_weights_group *g, const struct tmk_weight *t)
{
    g->n_tensors++;
    if (t->same_as)
        return;
    add_to_group(&g->n_parameters, t->n_elements);
    add_to_group(&g->n_bytes, t->n_bytes);
}

static void count_in(struct tmk_weights_groups *groups, const char *name,
                     const struct tmk_weight *t)
{
    uint32_t number;
    uint64_t before = groups->names.n;
    if (tmk_textmap_put(&groups->names, name, &number) < 0)
        tmk_die("out of memory");
    if (TMK_GROW(groups->all, groups->names.n, groups->room) < 0)
        tmk_die("out of memory");
    if (groups->names.n > before)
        groups->all[number] = (struct tmk_weights_group){.name = name};
    count_weights(&groups->all[number], t);
}

static bool is_layer_number(const char *part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)part[i]))
            return false;
    return n > 0;
}

/* Returns the length of a name up to its first number, "model.layers.0" in
 * "model.layers.0.mlp.up_proj.weight"; without a number, up to its last dot. */
static size_t layer_length(const char *name)
{
    const char *part = name;
    for (;;) {
        size_t n = strcspn(part, ".");
        if (part > name && part[n] && is_layer_number(part, n))
            return (size_t)(part - name) + n;
        if (!part[n])
            break;
        part += n + 1;
    }
    return part > name ? (size_t)(part - name) - 1 : strlen(name);
}

/* ---- what is trained ---- */

static bool weight_name_ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static bool may_be_trained(const struct tmk_weight *t)
{
    return tmk_weight_type_is_float(t->type) && !t->same_as && !t->is_extra &&
           !weight_name_ends_in(t->name, "running_mean") &&
           !weight_name_ends_in(t->name, "running_var") &&
           !weight_name_ends_in(t->name, "inv_freq");
}

static bool is_adapted(const struct tmk_weight *t, const char *component)
{
    return t->n_dims == 2 && (strcmp(component, "attention") == 0 ||
                              strcmp(component, "mlp") == 0 || strcmp(component, "expert") == 0);
}

static void count_trained(struct tmk_weights_answer *a, const struct tmk_weight *t,
                          const char *component)
{
    if (t->is_parameter && !t->same_as)
        add_to_group(t->requires_grad ? &a->n_trainable : &a->n_frozen, t->n_elements);
    if (!may_be_trained(t))
        return;
    add_to_group(&a->n_floats, t->n_elements);
    if (is_adapted(t, component)) {
        a->n_adapted++;
        add_to_group(&a->adapted_sides, t->shape[0]);
        add_to_group(&a->adapted_sides, t->shape[1]);
    }
}

/* Find what is trained. A file that has a parameter says for each tensor whether it is one; for
 * state dicts and safetensors nobody knows. */
static bool say_what_is_trained(const struct tmk_weights *w)
{
    uint64_t n = 0;
    bool *says = tmk_xcalloc(w->n_files + 1, sizeof *says);
    for (uint64_t i = 0; i < w->n; i++)
        if (w->all[i].is_parameter && !says[w->all[i].file]) {
            says[w->all[i].file] = true;
            n++;
        }
    free(says);
    return n == w->n_files;
}

/* ---- all ---- */

static const char *no_class(const void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return NULL;
}

static void count_tensor(struct tmk_weights_answer *a, uint64_t i)
{
    const struct tmk_weight *t = &a->weights.all[i];
    if (t->is_extra) {
        count_weights(&a->extra, t);
        return;
    }
    const char *layer = tmk_arena_text(&a->weights.arena, t->name, layer_length(t->name));
    if (!layer)
        tmk_die("out of memory");
    count_weights(&a->total, t);
    count_weights(&a->types[t->type], t);
    if (t->type == TMK_WEIGHT_OTHER)
        count_in(&a->other_types, tmk_weight_dtype(t), t);
    count_in(&a->layers, layer, t);
    count_in(&a->parts, a->components[i], t);
    count_trained(a, t, a->components[i]);
    if (t->same_as) {
        a->n_tied++;
        add_to_group(&a->tied_bytes, t->n_bytes);
    }
}

void tmk_weights_sum_up(struct tmk_weights_answer *a)
{
    struct tmk_components *components = NULL;
    struct tmk_error problem;
    struct tmk_model_tree tree = {no_class, NULL};
    if (tmk_components_open(&components, &problem) < 0)
        tmk_die("out of memory");
    if (problem.text[0])
        tmk_say("%s", problem.text);
    a->components = tmk_xcalloc(a->weights.n + 1, sizeof *a->components);
    for (uint64_t i = 0; i < a->weights.n; i++) {
        const char *found = tmk_components_find(components, &tree, a->weights.all[i].name);
        a->components[i] = tmk_arena_text(&a->weights.arena, found, strlen(found));
        if (!a->components[i])
            tmk_die("out of memory");
        count_tensor(a, i);
        if (a->results && a->results[i].is_scanned) {
            a->n_nan += a->results[i].n_nan > 0;
            a->n_inf += a->results[i].n_inf > 0;
        }
    }
    a->says_grad = say_what_is_trained(&a->weights);
    tmk_components_close(components);
}

void tmk_weights_answer_fini(struct tmk_weights_answer *a)
{
    tmk_textmap_fini(&a->other_types.names);
    tmk_textmap_fini(&a->layers.names);
    tmk_textmap_fini(&a->parts.names);
    free(a->other_types.all);
    free(a->layers.all);
    free(a->parts.all);
    free(a->components);
    tmk_weights_fini(&a->weights);
}

static int by_group_size(const void *x, const void *y, void *arg)
{
    const struct tmk_weight *all = arg, *a = &all[*(const uint32_t *)x],
                            *b = &all[*(const uint32_t *)y];
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes > b->n_bytes ? -1 : 1;
    return a < b ? -1 : a > b;
}

uint64_t tmk_weights_largest(const struct tmk_weights_answer *a, uint32_t *to)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < a->weights.n; i++)
        if (!a->weights.all[i].same_as)
            to[n++] = (uint32_t)i;
    qsort_r(to, n, sizeof *to, by_group_size, a->weights.all);
    return n;
}

const char *tmk_weights_shape(const struct tmk_weight *t, char *buffer)
{
    struct tmk_text text;
    tmk_text_init(&text, buffer, TMK_SHAPE_TEXT);
    tmk_text_char(&text, '[');
    for (uint32_t i = 0; i < t->n_dims; i++)
        tmk_text_add(&text, i ? ", %llu" : "%llu", (unsigned long long)t->shape[i]);
    tmk_text_char(&text, ']');
    return buffer;
}
