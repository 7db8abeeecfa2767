/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_names.c - see torch_names.h. */
#include "interop/torch/torch_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kit/grow.h"
#include "kit/seeded_hash.h"
#include "trace/layout.h"

static uint32_t fail_names(struct tmk_names *n)
{
    n->failed = true;
    return 0;
}

/* ---- strings ---- */

static uint32_t find_string(const struct tmk_names *n, uint64_t hash, const char *text,
                            uint32_t bytes)
{
    struct tmk_probe probe = tmk_index_probe(&n->string_index, hash);
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;)
        if (n->strings[i - 1].bytes == bytes && memcmp(n->strings[i - 1].text, text, bytes) == 0)
            return i;
    return 0;
}

uint32_t tmk_names_string(struct tmk_names *n, const char *text, size_t bytes)
{
    uint32_t length = bytes < TMK_STRING_MAX_BYTES ? (uint32_t)bytes : TMK_STRING_MAX_BYTES;
    uint64_t hash = tmk_hash_seeded_bytes(text, length);
    if (n->failed)
        return 0;
    uint32_t known = find_string(n, hash, text, length);
    if (known)
        return known;
    if (TMK_GROW(n->strings, n->n_strings + 1, n->string_room) < 0 ||
        tmk_grow_index(&n->string_index) < 0)
        return fail_names(n);
    char *copy = tmk_arena_text(&n->arena, text, length);
    if (!copy)
        return fail_names(n);
    n->strings[n->n_strings++] = (struct tmk_name){.text = copy, .bytes = length};
    tmk_index_add(&n->string_index, hash, (uint32_t)n->n_strings);
    return (uint32_t)n->n_strings;
}

/* ---- frames ---- */

static uint32_t find_frame(const struct tmk_names *n, uint64_t hash, const struct tmk_name_frame *f)
{
    struct tmk_probe probe = tmk_index_probe(&n->frame_index, hash);
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;) {
        const struct tmk_name_frame *g = &n->frames[i - 1];
        if (g->file == f->file && g->function == f->function && g->line == f->line)
            return i;
    }
    return 0;
}

uint32_t tmk_names_frame(struct tmk_names *n, uint32_t file, uint32_t function, uint32_t line)
{
    struct tmk_name_frame f = {.file = file, .function = function, .line = line};
    uint64_t hash = tmk_hash_mix(tmk_hash_seeded_u64((uint64_t)file << 32 | function), line);
    if (n->failed)
        return 0;
    uint32_t known = find_frame(n, hash, &f);
    if (known)
        return known;
    if (TMK_GROW(n->frames, n->n_frames + 1, n->frame_room) < 0 ||
        tmk_grow_index(&n->frame_index) < 0)
        return fail_names(n);
    n->frames[n->n_frames++] = f;
    tmk_index_add(&n->frame_index, hash, (uint32_t)n->n_frames);
    return (uint32_t)n->n_frames;
}

/* ---- stacks ---- */

static uint32_t find_stack(const struct tmk_names *n, uint64_t hash, const uint32_t *frames,
                           uint32_t n_frames)
{
    struct tmk_probe probe = tmk_index_probe(&n->stack_index, hash);
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;) {
        const struct tmk_name_stack *s = &n->stacks[i - 1];
        if (s->n == n_frames &&
            memcmp(n->stack_frames + s->first, frames, (size_t)n_frames * sizeof *frames) == 0)
            return i;
    }
    return 0;
}

uint32_t tmk_names_stack(struct tmk_names *n, const uint32_t *frames, uint32_t n_frames)
{
    n_frames = n_frames < TMK_NAMES_MAX_FRAMES ? n_frames : TMK_NAMES_MAX_FRAMES;
    if (n_frames == 0 || n->failed)
        return 0;
    uint64_t hash = tmk_hash_seeded_bytes(frames, (size_t)n_frames * sizeof *frames);
    uint32_t known = find_stack(n, hash, frames, n_frames);
    if (known)
        return known;
    if (TMK_GROW(n->stacks, n->n_stacks + 1, n->stack_room) < 0 ||
        TMK_GROW(n->stack_frames, n->n_stack_frames + n_frames, n->stack_frame_room) < 0 ||
        tmk_grow_index(&n->stack_index) < 0)
        return fail_names(n);
    memcpy(n->stack_frames + n->n_stack_frames, frames, (size_t)n_frames * sizeof *frames);
    n->stacks[n->n_stacks++] = (struct tmk_name_stack){.first = n->n_stack_frames, .n = n_frames};
    n->n_stack_frames += n_frames;
    tmk_index_add(&n->stack_index, hash, (uint32_t)n->n_stacks);
    return (uint32_t)n->n_stacks;
}

void tmk_names_fini(struct tmk_names *n)
{
    free(n->strings);
    free(n->frames);
    free(n->stacks);
    free(n->stack_frames);
    free(n->string_index.slots);
    free(n->frame_index.slots);
    free(n->stack_index.slots);
    tmk_arena_fini(&n->arena);
    *n = (struct tmk_names){0};
}
