/* SPDX-License-Identifier: MIT */
/* cli/output/palette.c - see palette.h. */
#include "cli/output/palette.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

static const struct tmk_theme light = {
    .background = "#ffffff",
    .text = "#333333",
    .faint = "#666666",
    .axis = "#aaaaaa",
    .grid = "#e4e4e4",
    .band = "#f3f3f6",
    .warning = "#c0182b",
    .reserved = "#333333",
    .device = "#777777",
    .capacity = "#c0182b",
    .ramp = "0 '#f1f4f9', 0.25 '#c3d4e8', 0.5 '#86b0d2', 0.75 '#3f7fb5', 1 '#173f73'",
};

static const struct tmk_theme dark = {
    .background = "#16181d",
    .text = "#e6e6e6",
    .faint = "#a8acb5",
    .axis = "#6a6e78",
    .grid = "#2c3038",
    .band = "#1f222a",
    .warning = "#ff6b6b",
    .reserved = "#f0f0f0",
    .device = "#a0a4ad",
    .capacity = "#ff6b6b",
    .ramp = "0 '#1d222c', 0.25 '#234468', 0.5 '#2f6ea8', 0.75 '#5fa3d6', 1 '#d5e9f8'",
};

const struct tmk_theme *tmk_palette_theme(bool is_dark)
{
    return is_dark ? &dark : &light;
}

static const struct named {
    const char *name, *colour;
} table[] = {
    /* categories, in stacking order */
    {"parameter", "#3f9b5b"},
    {"buffer", "#8c6d46"},
    {"optimizer_state", "#dba520"},
    {"gradient", "#3f74c4"},
    {"input", "#27a5a0"},
    {"activation", "#d6604d"},
    {"kv_cache", "#4f8f8b"},
    {"autograd_detail", "#7fb2e5"},
    {"temporary", "#9970ab"},
    /* components are shown beside categories, so they have other tones */
    {"embedding", "#2a6459"},
    {"attention", "#4a3fc0"},
    {"mlp", "#f7a88f"},
    {"normalization", "#d9a3ee"},
    {"lora", "#c51b7d"},
    {"conv", "#7a2f6b"},
    {"expert", "#8a3a1c"},
    {"router", "#f0d37a"},
    {"(cuBLAS workspace)", "#b47b80"},
    {"(cuBLASLt workspace)", "#c9b08a"},
    {"head", "#7fc06a"},
    /* stages have the colour of the category that they make, if there is one */
    {"model_load", "#3f9b5b"},
    {"data", "#27a5a0"},
    {"wrap", "#7fb2e5"},
    {"optimizer_setup", "#7d5a1a"},
    {"privacy_setup", "#c51b7d"},
    {"forward", "#d6604d"},
    {"backward", "#3f74c4"},
    {"privacy", "#f7a88f"},
    {"optimizer", "#dba520"},
    {"eval", "#9970ab"},
    /* owners of segments */
    {"torch", "#ee7a32"},
    {"jax", "#3f74c4"},
    {"cupy", "#9970ab"},
    {"cublas", "#27a5a0"},
    {"cudnn", "#7fb2e5"},
    {"nccl", "#3f9b5b"},
    {"user", "#c51b7d"},
    /* the rest */
    {"other", "#9aa0a6"},
    {"unknown", "#c4c7cc"},
};

const char *tmk_palette_colour(unsigned i)
{
    static const char *const colours[] = {"#4393c3", "#e08214", "#33a05c", "#d6604d", "#9970ab",
                                          "#878787", "#35978f", "#c51b7d", "#b8860b", "#6a51a3"};
    return colours[i % TMK_N(colours)];
}

static const struct named *find_named_colour(const char *name)
{
    for (size_t i = 0; i < TMK_N(table); i++)
        if (strcmp(table[i].name, name ? name : "unknown") == 0)
            return &table[i];
    return NULL;
}

const char *tmk_palette_of(const char *name)
{
    const struct named *known = find_named_colour(name);
    if (known)
        return known->colour;
    unsigned sum = 0;
    for (; *name; name++)
        sum = 31 * sum + (unsigned char)*name;
    return tmk_palette_colour(sum);
}

const char *tmk_palette_next(const char *name, unsigned *n_others)
{
    const struct named *known = find_named_colour(name);
    return known ? known->colour : tmk_palette_colour((*n_others)++);
}

unsigned tmk_palette_rank(const char *name)
{
    const struct named *known = find_named_colour(name);
    return known ? (unsigned)(known - table) : (unsigned)TMK_N(table);
}
