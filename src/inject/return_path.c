/* SPDX-License-Identifier: MIT */
/* inject/return_path.c - see return_path.h. */
#include "inject/return_path.h"

#include <string.h>

#include "base/error.h"

enum {
    ALIGNMENT = 16,
    STACK_BYTES = 65536, /* looked through for a signal handler that will return to the path */
};

static void add_tail(const struct tmk_image *image, const struct tmk_mapping *head,
                     struct tmk_return_places *places)
{
    struct tmk_range tail;
    struct tmk_return_head taken;
    if (!tmk_module_tail(image, head, &tail))
        return;
    uint64_t at = (tail.start + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
    for (; at + TMK_RETURN_MAX_BYTES <= tail.end; at += TMK_RETURN_MAX_BYTES) {
        if (places->n == TMK_MAX_PLACES || !tmk_image_read(image, at, &taken, sizeof taken))
            return;
        places->is_taken[places->n] = taken.magic == TMK_RETURN_MAGIC;
        places->at[places->n++] = at;
    }
}

int tmk_return_places_find(const struct tmk_image *image, const struct tmk_mapping *const *heads,
                           unsigned n, struct tmk_return_places *ret)
{
    struct tmk_return_places places = {0};
    for (unsigned i = 0; i < n; i++)
        if (heads[i])
            add_tail(image, heads[i], &places);
    if (places.n == 0)
        return TMK_EINVAL;
    struct tmk_range tail;
    if (tmk_module_data_tail(image, heads[0], &tail) &&
        tail.end - tail.start >= 2 * ALIGNMENT + TMK_SCRATCH_BYTES)
        places.scratch = (tail.end - TMK_SCRATCH_BYTES) & ~(uint64_t)(ALIGNMENT - 1);
    *ret = places;
    return 0;
}

/* The memory that a thread must have left before its place is free. */
struct way_back {
    uint64_t at;
    uint64_t region, region_bytes;
};

static bool way_back_read(const struct tmk_image *image, uint64_t at, struct way_back *ret)
{
    struct tmk_return_head head;
    if (!tmk_image_read(image, at, &head, sizeof head))
        return false;
    *ret = (struct way_back){at, head.region, head.region_bytes};
    return true;
}

static bool way_back_has(const struct way_back *w, uint64_t address)
{
    return address - w->at < tmk_return_bytes ||
           (w->region && address - w->region < w->region_bytes);
}

bool tmk_return_has(const struct tmk_image *image, uint64_t at, const struct user_regs_struct *g)
{
    struct way_back w;
    return way_back_read(image, at, &w) &&
           (way_back_has(&w, tmk_general_pc(g)) || way_back_has(&w, tmk_general_sp(g)));
}

bool tmk_return_is_needed(const struct tmk_image *image, uint64_t at,
                          const struct user_regs_struct *g)
{
    static uint64_t
        stack[STACK_BYTES / 8]; /* only one of our threads looks, at one thread at a time */
    struct way_back w;
    if (!way_back_read(image, at, &w) || tmk_return_has(image, at, g))
        return true;
    size_t n = tmk_image_read_some(image, tmk_general_sp(g) & ~(uint64_t)7, stack, sizeof stack);
    for (size_t i = 0; i < n / 8; i++)
        if (way_back_has(&w, stack[i]))
            return true;
    return false;
}
