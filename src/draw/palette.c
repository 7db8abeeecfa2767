/* SPDX-License-Identifier: MIT */
/* draw/palette.c - see palette.h. */
#include "draw/palette.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

static const struct tmk_theme light = {
    .background = 0xffffffff,
    .text = 0xff333333,
    .faint = 0xff666666,
    .axis = 0xffaaaaaa,
    .grid = 0xffe4e4e4,
    .band = 0xfff3f3f6,
    .warning = 0xffc0182b,
    .reserved = 0xff333333,
    .device = 0xff777777,
    .capacity = 0xffc0182b,
    .ramp = {0xfff1f4f9, 0xffc3d4e8, 0xff86b0d2, 0xff3f7fb5, 0xff173f73},
};

static const struct tmk_theme dark = {
    .background = 0xff16181d,
    .text = 0xffe6e6e6,
    .faint = 0xffa8acb5,
    .axis = 0xff6a6e78,
    .grid = 0xff2c3038,
    .band = 0xff1f222a,
    .warning = 0xffff6b6b,
    .reserved = 0xfff0f0f0,
    .device = 0xffa0a4ad,
    .capacity = 0xffff6b6b,
    .ramp = {0xff1d222c, 0xff234468, 0xff2f6ea8, 0xff5fa3d6, 0xffd5e9f8},
};

const struct tmk_theme *tmk_palette_theme(bool is_dark)
{
    return is_dark ? &dark : &light;
}

static const struct named {
    const char *name;
    uint32_t colour;
} table[] = {
    /* categories, in stacking order */
    {"parameter", 0xff49b477},
    {"buffer", 0xffa0580f},
    {"optimizer_state", 0xffd9a420},
    {"gradient", 0xff1a71e3},
    {"input", 0xff137885},
    {"activation", 0xffd6604d},
    {"kv_cache", 0xff5e6356},
    {"autograd_detail", 0xff62b5e8},
    {"temporary", 0xff764c9a},
    /* components are shown beside categories, so they have other tones */
    {"embedding", 0xff2a6459},
    {"attention", 0xff4a3fc0},
    {"mlp", 0xfff7a88f},
    {"normalization", 0xffd9a3ee},
    {"lora", 0xffc51b7d},
    {"conv", 0xff7a2f6b},
    {"expert", 0xff7a2f1c},
    {"router", 0xfff0d37a},
    {"(cuBLAS workspace)", 0xffb47b80},
    {"(cuBLASLt workspace)", 0xffc9b08a},
    {"head", 0xff7fc06a},
    /* stages have the colour of the category that they make, if there is one */
    {"model_load", 0xff49b477},
    {"data", 0xff137885},
    {"wrap", 0xff62b5e8},
    {"optimizer_setup", 0xff7d5a1a},
    {"privacy_setup", 0xffc51b7d},
    {"forward", 0xffd6604d},
    {"backward", 0xff1a71e3},
    {"privacy", 0xfff7a88f},
    {"optimizer", 0xffd9a420},
    {"eval", 0xff764c9a},
    /* owners of segments */
    {"torch", 0xffee7a32},
    {"jax", 0xff1a71e3},
    {"cupy", 0xff764c9a},
    {"cublas", 0xff137885},
    {"cudnn", 0xff62b5e8},
    {"nccl", 0xff49b477},
    {"user", 0xffc51b7d},
    /* the rest */
    {"other", 0xff9aa0a6},
    {"unknown", 0xffc4c7cc},
};

uint32_t tmk_palette_colour(unsigned i)
{
    static const uint32_t colours[] = {0xff4393c3, 0xffe08214, 0xff33a05c, 0xffd6604d, 0xff9970ab,
                                       0xff878787, 0xff35978f, 0xffc51b7d, 0xffb8860b, 0xff6a51a3};
    return colours[i % TMK_N(colours)];
}

uint32_t tmk_palette_ramp(const struct tmk_theme *theme, double share)
{
    double at = (share > 0 ? share < 1 ? share : 1 : 0) * (TMK_RAMP_COLOURS - 1);
    unsigned i = (unsigned)at;
    i = i > TMK_RAMP_COLOURS - 2 ? TMK_RAMP_COLOURS - 2 : i;
    uint32_t low = theme->ramp[i], high = theme->ramp[i + 1], mixed = 0xff000000;
    for (unsigned shift = 0; shift < 24; shift += 8) {
        double a = low >> shift & 255, b = high >> shift & 255;
        mixed |= (uint32_t)(a + (b - a) * (at - i) + 0.5) << shift;
    }
    return mixed;
}

static const struct named *find_named_colour(const char *name)
{
    for (size_t i = 0; i < TMK_N(table); i++)
        if (strcmp(table[i].name, name ? name : "unknown") == 0)
            return &table[i];
    return NULL;
}

uint32_t tmk_palette_of(const char *name)
{
    const struct named *known = find_named_colour(name);
    if (known)
        return known->colour;
    unsigned sum = 0;
    for (; *name; name++)
        sum = 31 * sum + (unsigned char)*name;
    return tmk_palette_colour(sum);
}

uint32_t tmk_palette_next(const char *name, unsigned *n_others)
{
    const struct named *known = find_named_colour(name);
    return known ? known->colour : tmk_palette_colour((*n_others)++);
}

unsigned tmk_palette_rank(const char *name)
{
    const struct named *known = find_named_colour(name);
    return known ? (unsigned)(known - table) : (unsigned)TMK_N(table);
}
