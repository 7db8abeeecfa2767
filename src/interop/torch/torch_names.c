/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_names.c - see torch_names.h. */
#include "interop/torch/torch_names.h"

#include <stdlib.h>
#include <string.h>

#include "kit/grow.h"
#include "kit/seeded_hash.h"
#include "trace/layout.h"

enum { FIRST_SLOTS = 1024 };

static uint32_t fail_names(struct tmk_names *n)
{
    n->failed = true;
    return 0;
}

/* ---- the tables ---- */

static uint64_t string_hash(const struct tmk_names *n, uint32_t id)
{
    return tmk_hash_seeded_bytes(n->strings[id - 1].text, n->strings[id - 1].bytes);
}

static uint64_t frame_hash_of(const struct tmk_name_frame *f)
{
    return tmk_hash_mix(tmk_hash_seeded_u64((uint64_t)f->file << 32 | f->function), f->line);
}

static uint64_t frame_hash(const struct tmk_names *n, uint32_t id)
{
    return frame_hash_of(&n->frames[id - 1]);
}

static uint64_t stack_hash_of(const uint32_t *frames, uint32_t n_frames)
{
    return tmk_hash_seeded_bytes(frames, (size_t)n_frames * sizeof *frames);
}

static uint64_t stack_hash(const struct tmk_names *n, uint32_t id)
{
    const struct tmk_name_stack *s = &n->stacks[id - 1];
    return stack_hash_of(n->stack_frames + s->first, s->n);
}

typedef uint64_t hash_function(const struct tmk_names *n, uint32_t id);

/* Make room for `n_items` and one more, at most half full. */
static bool make_table_room(struct tmk_names *n, struct tmk_names_table *t, uint64_t n_items,
                            hash_function *hash)
{
    if (n_items + 1 <= t->n_slots / 2)
        return true;
    uint32_t n_slots = t->n_slots ? 2 * t->n_slots : FIRST_SLOTS;
    uint32_t *slots = n_slots ? calloc(n_slots, sizeof *slots) : NULL;
    if (!slots)
        return false;
    for (uint32_t id = 1; id <= n_items; id++) {
        uint32_t at = (uint32_t)hash(n, id) & (n_slots - 1);
        while (slots[at])
            at = (at + 1) & (n_slots - 1);
        slots[at] = id;
    }
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    return true;
}

/* ---- strings ---- */

static uint32_t *string_slot(const struct tmk_names *n, const char *text, uint32_t bytes)
{
    const struct tmk_names_table *t = &n->string_table;
    uint32_t at = (uint32_t)tmk_hash_seeded_bytes(text, bytes) & (t->n_slots - 1);
    for (;; at = (at + 1) & (t->n_slots - 1)) {
        const struct tmk_name *s = t->slots[at] ? &n->strings[t->slots[at] - 1] : NULL;
        if (!s || (s->bytes == bytes && memcmp(s->text, text, bytes) == 0))
            return &t->slots[at];
    }
}

uint32_t tmk_names_string(struct tmk_names *n, const char *text, size_t bytes)
{
    uint32_t length = bytes < TMK_STRING_MAX_BYTES ? (uint32_t)bytes : TMK_STRING_MAX_BYTES;
    if (n->failed || !make_table_room(n, &n->string_table, n->n_strings, string_hash))
        return fail_names(n);
    uint32_t *slot = string_slot(n, text, length);
    uint32_t known = *slot;
    if (known)
        return known;
    struct tmk_name *more = tmk_grow(n->strings, n->n_strings + 1, &n->string_room, sizeof *more);
    if (more)
        n->strings = more;
    char *copy = tmk_arena_text(&n->arena, text, length);
    if (!more || !copy)
        return fail_names(n);
    n->strings[n->n_strings++] = (struct tmk_name){.text = copy, .bytes = length};
    return *slot = (uint32_t)n->n_strings;
}

/* ---- frames ---- */

static uint32_t *frame_slot(const struct tmk_names *n, const struct tmk_name_frame *f)
{
    const struct tmk_names_table *t = &n->frame_table;
    uint32_t at = (uint32_t)frame_hash_of(f) & (t->n_slots - 1);
    for (;; at = (at + 1) & (t->n_slots - 1)) {
        const struct tmk_name_frame *g = t->slots[at] ? &n->frames[t->slots[at] - 1] : NULL;
        if (!g || (g->file == f->file && g->function == f->function && g->line == f->line))
            return &t->slots[at];
    }
}

uint32_t tmk_names_frame(struct tmk_names *n, uint32_t file, uint32_t function, uint32_t line)
{
    struct tmk_name_frame f = {.file = file, .function = function, .line = line};
    if (n->failed || !make_table_room(n, &n->frame_table, n->n_frames, frame_hash))
        return fail_names(n);
    uint32_t *slot = frame_slot(n, &f);
    uint32_t known = *slot;
    if (known)
        return known;
    struct tmk_name_frame *more =
        tmk_grow(n->frames, n->n_frames + 1, &n->frame_room, sizeof *more);
    if (!more)
        return fail_names(n);
    n->frames = more;
    n->frames[n->n_frames++] = f;
    return *slot = (uint32_t)n->n_frames;
}

/* ---- stacks ---- */

static uint32_t *stack_slot(const struct tmk_names *n, const uint32_t *frames, uint32_t n_frames)
{
    const struct tmk_names_table *t = &n->stack_table;
    uint32_t at = (uint32_t)stack_hash_of(frames, n_frames) & (t->n_slots - 1);
    for (;; at = (at + 1) & (t->n_slots - 1)) {
        const struct tmk_name_stack *s = t->slots[at] ? &n->stacks[t->slots[at] - 1] : NULL;
        if (!s || (s->n == n_frames && memcmp(n->stack_frames + s->first, frames,
                                              (size_t)n_frames * sizeof *frames) == 0))
            return &t->slots[at];
    }
}

uint32_t tmk_names_stack(struct tmk_names *n, const uint32_t *frames, uint32_t n_frames)
{
    n_frames = n_frames < TMK_NAMES_MAX_FRAMES ? n_frames : TMK_NAMES_MAX_FRAMES;
    if (n_frames == 0)
        return 0;
    if (n->failed || !make_table_room(n, &n->stack_table, n->n_stacks, stack_hash))
        return fail_names(n);
    uint32_t *slot = stack_slot(n, frames, n_frames);
    uint32_t known = *slot;
    if (known)
        return known;
    struct tmk_name_stack *more =
        tmk_grow(n->stacks, n->n_stacks + 1, &n->stack_room, sizeof *more);
    if (more)
        n->stacks = more;
    uint32_t *pool =
        tmk_grow(n->stack_frames, n->n_stack_frames + n_frames, &n->stack_frame_room, sizeof *pool);
    if (pool)
        n->stack_frames = pool;
    if (!more || !pool)
        return fail_names(n);
    memcpy(pool + n->n_stack_frames, frames, (size_t)n_frames * sizeof *frames);
    n->stacks[n->n_stacks++] = (struct tmk_name_stack){.first = n->n_stack_frames, .n = n_frames};
    n->n_stack_frames += n_frames;
    return *slot = (uint32_t)n->n_stacks;
}

void tmk_names_fini(struct tmk_names *n)
{
    free(n->strings);
    free(n->frames);
    free(n->stacks);
    free(n->stack_frames);
    free(n->string_table.slots);
    free(n->frame_table.slots);
    free(n->stack_table.slots);
    tmk_arena_fini(&n->arena);
    *n = (struct tmk_names){0};
}
