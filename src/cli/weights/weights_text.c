/* SPDX-License-Identifier: MIT */
/* cli/weights/weights_text.c - `tidemark model` for people. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "cli/weights/weights_answer.h"
#include "interop/weights/weight_scan.h"
#include "interop/weights/weights.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/table.h"
#include "kit/textmap.h"
#include "model/training_memory.h"

enum { SHOWN_NAMES = 8 };

static const char *plural_text(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- the headline ---- */

static void say_total(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    char tensors[TMK_AMOUNT_BYTES], parameters[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES];
    tmk_sheet_text(sheet, "%s parameters in %s tensor%s, %s.",
                   tmk_count_text(a->total.n_parameters, parameters),
                   tmk_count_text(a->total.n_tensors, tensors), plural_text(a->total.n_tensors),
                   tmk_size_text(a->total.n_bytes, size));
    if (a->n_tied > 0)
        tmk_sheet_text(sheet,
                       "%s of them %s another's data under another name (tied: %s, counted once).",
                       tmk_count_text(a->n_tied, tensors), a->n_tied == 1 ? "is" : "are",
                       tmk_size_text(a->tied_bytes, size));
    if (a->n_frozen > 0)
        tmk_sheet_text(sheet, "%s parameters are frozen (requires_grad is False).",
                       tmk_count_text(a->n_frozen, parameters));
    if (a->extra.n_tensors > 0)
        tmk_sheet_text(sheet,
                       "Beside the model: %s tensor%s, %s (an optimizer's state and the like); not "
                       "counted above.",
                       tmk_count_text(a->extra.n_tensors, tensors), plural_text(a->extra.n_tensors),
                       tmk_size_text(a->extra.n_bytes, size));
}

static void say_weight_names(struct tmk_sheet *sheet, const char *what,
                             const struct tmk_textmap *names)
{
    char *list = tmk_xstrdup("");
    for (uint64_t i = 0; i < names->n && i < SHOWN_NAMES; i++) {
        char *longer = tmk_xformat("%s%s%s", list, i ? ", " : "", names->texts[i]);
        free(list);
        list = longer;
    }
    if (names->n > 0)
        tmk_sheet_text(sheet, "%s: %s%s.", _(what), list,
                       names->n > SHOWN_NAMES ? _(" and more") : "");
    free(list);
}

/* ---- tables ---- */

static void put_group_amounts(struct tmk_table *t, const struct tmk_weights_group *g,
                              uint64_t whole)
{
    char text[TMK_AMOUNT_BYTES];
    tmk_table_cell(t, tmk_count_text(g->n_tensors, text));
    tmk_table_cell(t, tmk_count_text(g->n_parameters, text));
    tmk_table_cell(t, tmk_size_text(g->n_bytes, text));
    tmk_table_cell(t, tmk_percent_text(g->n_bytes, whole, text));
}

static void show_types(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    static const struct tmk_column columns[] = {{"dtype", TMK_LEFT, TMK_FIXED},
                                                {"tensors", TMK_RIGHT, TMK_FIXED},
                                                {"parameters", TMK_RIGHT, TMK_FIXED},
                                                {"bytes", TMK_RIGHT, TMK_FIXED},
                                                {"share", TMK_RIGHT, TMK_FIXED}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (unsigned i = 0; i < TMK_WEIGHT_N_TYPES; i++)
        if (a->types[i].n_tensors > 0 && i != TMK_WEIGHT_OTHER) {
            tmk_table_cell(t, tmk_weight_type_name(i));
            put_group_amounts(t, &a->types[i], a->total.n_bytes);
        }
    for (uint64_t i = 0; i < a->other_types.names.n; i++) {
        tmk_table_cellf(t, _("%s (unknown)"), a->other_types.all[i].name);
        put_group_amounts(t, &a->other_types.all[i], a->total.n_bytes);
    }
    tmk_sheet_heading(sheet, "By type");
    tmk_sheet_table(sheet, t);
}

static int by_group_bytes(const void *x, const void *y)
{
    const struct tmk_weights_group *a = x, *b = y;
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes > b->n_bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void show_parts(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    static const struct tmk_column columns[] = {{"component", TMK_LEFT, TMK_SHRINK},
                                                {"tensors", TMK_RIGHT, TMK_FIXED},
                                                {"parameters", TMK_RIGHT, TMK_FIXED},
                                                {"bytes", TMK_RIGHT, TMK_FIXED},
                                                {"share", TMK_RIGHT, TMK_FIXED}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    struct tmk_weights_group *sorted = tmk_xcalloc(a->parts.names.n + 1, sizeof *sorted);
    if (a->parts.names.n > 0)
        memcpy(sorted, a->parts.all, a->parts.names.n * sizeof *sorted);
    qsort(sorted, a->parts.names.n, sizeof *sorted, by_group_bytes);
    for (uint64_t i = 0; i < a->parts.names.n; i++) {
        tmk_table_cell(t, sorted[i].name);
        put_group_amounts(t, &sorted[i], a->total.n_bytes);
    }
    free(sorted);
    tmk_sheet_heading(sheet, "By component");
    tmk_sheet_table(sheet, t);
}

/* Returns whether two layers share a row: "h.0" and "h.1" of the same size. */
static bool are_alike(const struct tmk_weights_group *a, const struct tmk_weights_group *b)
{
    const char *x = strrchr(a->name, '.'), *y = strrchr(b->name, '.');
    return x && y && x - a->name == y - b->name && x[1] >= '0' && x[1] <= '9' && y[1] >= '0' &&
           y[1] <= '9' && memcmp(a->name, b->name, (size_t)(x - a->name)) == 0 &&
           a->n_tensors == b->n_tensors && a->n_parameters == b->n_parameters &&
           a->n_bytes == b->n_bytes;
}

static void show_layers(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    static const struct tmk_column columns[] = {{"layer", TMK_LEFT, TMK_SHRINK},
                                                {"tensors", TMK_RIGHT, TMK_FIXED},
                                                {"parameters", TMK_RIGHT, TMK_FIXED},
                                                {"bytes", TMK_RIGHT, TMK_FIXED},
                                                {"share", TMK_RIGHT, TMK_FIXED}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    const struct tmk_weights_group *all = a->layers.all;
    for (uint64_t i = 0, last; i < a->layers.names.n; i = last + 1) {
        for (last = i; last + 1 < a->layers.names.n && are_alike(&all[i], &all[last + 1]);)
            last++;
        uint64_t n = last - i + 1;
        if (n > 1)
            tmk_table_cellf(t, _("%s to %s, each"), all[i].name, strrchr(all[last].name, '.') + 1);
        else
            tmk_table_cell(t, all[i].name);
        put_group_amounts(t, &all[i], a->total.n_bytes);
    }
    tmk_sheet_heading(sheet, "By layer");
    tmk_sheet_table(sheet, t);
}

static void put_stat_value(struct tmk_table *t, const struct tmk_scan_result *r, double value)
{
    if (r && r->is_scanned && isfinite(value))
        tmk_table_cellf(t, "%.4g", value);
    else
        tmk_table_cell(t, NULL);
}

static void put_shape(struct tmk_table *t, const struct tmk_weight *tensor)
{
    char shape[TMK_SHAPE_TEXT], size[TMK_AMOUNT_BYTES];
    tmk_table_cell(t, tensor->name);
    tmk_table_cell(t, tmk_weights_shape(tensor, shape));
    tmk_table_cell(t, tmk_weight_dtype(tensor));
    tmk_table_cell(t, tmk_size_text(tensor->n_bytes, size));
}

static void show_largest(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    static const struct tmk_column columns[] = {{"tensor", TMK_LEFT, TMK_SHRINK},
                                                {"shape", TMK_LEFT, TMK_FIXED},
                                                {"dtype", TMK_LEFT, TMK_FIXED},
                                                {"bytes", TMK_RIGHT, TMK_FIXED}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    uint32_t *order = tmk_xcalloc(a->weights.n + 1, sizeof *order);
    uint64_t n = tmk_weights_largest(a, order);
    for (uint64_t i = 0; i < n && i < a->n_shown; i++)
        put_shape(t, &a->weights.all[order[i]]);
    free(order);
    if (a->n_shown > 0)
        tmk_sheet_heading(sheet, "Largest tensors");
    tmk_sheet_table(sheet, t);
}

/* List all tensors, with whole names whatever the width: whoever lists all looks for one. */
static void show_all(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    static const struct tmk_column columns[] = {
        {"tensor", TMK_LEFT, TMK_FIXED}, {"shape", TMK_LEFT, TMK_FIXED},
        {"dtype", TMK_LEFT, TMK_FIXED},  {"bytes", TMK_RIGHT, TMK_FIXED},
        {"min", TMK_RIGHT, TMK_FIXED},   {"max", TMK_RIGHT, TMK_FIXED},
        {"mean", TMK_RIGHT, TMK_FIXED},  {"std", TMK_RIGHT, TMK_FIXED}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    struct tmk_table_style style = {.indent = 2};
    for (uint64_t i = 0; i < a->weights.n; i++) {
        const struct tmk_scan_result *r = a->results ? &a->results[i] : NULL;
        put_shape(t, &a->weights.all[i]);
        put_stat_value(t, r, r ? r->min : 0);
        put_stat_value(t, r, r ? r->max : 0);
        put_stat_value(t, r, r ? r->mean : 0);
        put_stat_value(t, r, r ? r->std : 0);
    }
    tmk_sheet_heading(sheet, "All tensors");
    if (tmk_table_print(t, sheet->out, &style) < 0)
        tmk_die("out of memory");
    tmk_table_close(t);
}

/* ---- what is wrong with the numbers ---- */

static void say_odd(struct tmk_sheet *sheet, const struct tmk_weights_answer *a, uint64_t i)
{
    const struct tmk_scan_result *r = &a->results[i];
    char count[TMK_AMOUNT_BYTES];
    char *nan = r->n_nan ? tmk_xformat(_("%s NaN, the first at index %" PRIu64),
                                       tmk_count_text(r->n_nan, count), r->first_nan)
                         : tmk_xstrdup("");
    char *inf = r->n_inf ? tmk_xformat(_("%s infinite, the first at index %" PRIu64),
                                       tmk_count_text(r->n_inf, count), r->first_inf)
                         : tmk_xstrdup("");
    char *text =
        tmk_xformat("%s: %s%s%s", a->weights.all[i].name, nan, *nan && *inf ? "; " : "", inf);
    tmk_sheet_item(sheet, text);
    free(text);
    free(nan);
    free(inf);
}

/* Say which tensors were not scanned, and why. */
static void say_unseen(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    struct tmk_textmap types = {0};
    uint64_t n_others = 0;
    for (uint64_t i = 0; i < a->weights.n; i++) {
        const struct tmk_weight *t = &a->weights.all[i];
        uint32_t number;
        if (t->same_as || a->results[i].is_scanned)
            continue;
        if (tmk_weight_type_is_scanned(t->type))
            n_others++;
        else if (tmk_textmap_put(&types, tmk_weight_dtype(t), &number) < 0)
            tmk_die("out of memory");
    }
    say_weight_names(sheet, "Not checked, since the type is not scanned", &types);
    if (n_others > 0)
        tmk_sheet_text(sheet, "Some tensors were not checked (expanded or without data).");
    tmk_textmap_fini(&types);
}

static void show_numbers(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    uint64_t n_zero = 0, n_denormal = 0, n_shown = 0;
    char zero[TMK_AMOUNT_BYTES], denormal[TMK_AMOUNT_BYTES];
    tmk_sheet_heading(sheet, "Numbers");
    if (!a->results) {
        tmk_sheet_text(sheet, "Not checked (--no-scan).");
        return;
    }
    for (uint64_t i = 0; i < a->weights.n; i++) {
        const struct tmk_scan_result *r = &a->results[i];
        if (a->weights.all[i].same_as)
            continue;
        n_zero += r->n_zero;
        n_denormal += r->n_denormal;
        if ((r->n_nan || r->n_inf) && n_shown++ < 2 * SHOWN_NAMES)
            say_odd(sheet, a, i);
    }
    if (n_shown > 2 * SHOWN_NAMES)
        tmk_sheet_text(sheet, "... and %" PRIu64 " tensors more.", n_shown - 2 * SHOWN_NAMES);
    tmk_sheet_text(sheet, "%s%s zero, %s denormal.",
                   a->n_nan || a->n_inf ? "" : _("No NaN, no infinity. "),
                   tmk_count_text(n_zero, zero), tmk_count_text(n_denormal, denormal));
    say_unseen(sheet, a);
}

/* ---- the estimate ---- */

static void put_training_estimate(struct tmk_table *t, const struct tmk_training_memory *m)
{
    char text[TMK_AMOUNT_BYTES];
    tmk_table_cell(t, tmk_count_text(m->n_trained, text));
    tmk_table_cell(t, tmk_size_text(m->weights, text));
    tmk_table_cell(t, tmk_size_text(m->gradients, text));
    tmk_table_cell(t, tmk_size_text(m->master + m->optimizer, text));
    tmk_table_cell(t, tmk_size_text(m->total, text));
}

static void show_estimate(struct tmk_sheet *sheet, const struct tmk_weights_answer *a)
{
    static const struct tmk_column columns[] = {
        {"training", TMK_LEFT, TMK_SHRINK},  {"trained", TMK_RIGHT, TMK_FIXED},
        {"weights", TMK_RIGHT, TMK_FIXED},   {"gradients", TMK_RIGHT, TMK_FIXED},
        {"optimizer", TMK_RIGHT, TMK_FIXED}, {"together", TMK_RIGHT, TMK_FIXED}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (unsigned way = 0; way < TMK_TRAINING_N_WAYS; way++) {
        struct tmk_training_memory m = tmk_training_full(a->n_floats, way);
        tmk_table_cell(t, tmk_training_way_text(way));
        put_training_estimate(t, &m);
    }
    for (uint32_t i = 0; a->n_adapted > 0 && i < a->n_ranks; i++) {
        struct tmk_training_memory m =
            tmk_training_lora(a->n_floats, a->adapted_sides, a->ranks[i]);
        tmk_table_cellf(t, _("LoRA rank %" PRIu32), a->ranks[i]);
        put_training_estimate(t, &m);
    }
    tmk_sheet_heading(sheet, "Memory for training with AdamW: an estimate");
    tmk_sheet_table(sheet, t);
    tmk_sheet_text(sheet, "Not in it: activations (they grow with batch and sequence), temporary "
                          "memory, the CUDA context. To measure: tidemark run.");
    if (a->n_adapted > 0)
        tmk_sheet_text(sheet,
                       "LoRA: fp32 adapters on the %" PRIu64
                       " matri%s of attention and mlp, bf16 else.",
                       a->n_adapted, a->n_adapted == 1 ? "x" : "ces");
}

void tmk_weights_text(const struct tmk_weights_answer *a, FILE *out)
{
    struct tmk_sheet sheet = tmk_sheet_on(out);
    const struct tmk_weights *w = &a->weights;
    char *title = w->n_files == 1 ? tmk_xformat("%s (%s)", w->files[0].path, w->files[0].format)
                                  : tmk_xformat(_("%s and %" PRIu64 " more files"),
                                                w->files[0].path, w->n_files - 1);
    tmk_sheet_title(&sheet, title);
    free(title);
    say_total(&sheet, a);
    say_weight_names(&sheet, "In more than one file", &w->twice);
    say_weight_names(&sheet, "Tensors were read from the saved state of objects of these classes",
                     &w->classes);
    say_weight_names(&sheet,
                     "The pickle calls these, too; they were not run, and what they would make is "
                     "left out",
                     &w->left_out);
    show_types(&sheet, a);
    show_parts(&sheet, a);
    show_layers(&sheet, a);
    if (a->shows_all)
        show_all(&sheet, a);
    else
        show_largest(&sheet, a);
    show_numbers(&sheet, a);
    show_estimate(&sheet, a);
}
