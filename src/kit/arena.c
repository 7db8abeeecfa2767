/* SPDX-License-Identifier: MIT */
/* kit/arena.c - see arena.h. Blocks in a list; the newest is filled. */
#include "kit/arena.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16, ALIGN = _Alignof(max_align_t) };

struct tmk_arena_block {
    struct tmk_arena_block *next;
    size_t used, size;
    _Alignas(max_align_t) uint8_t bytes[];
};

void *tmk_arena_take(struct tmk_arena *a, size_t n)
{
    if (n > SIZE_MAX / 2)
        return NULL;
    n = (n + ALIGN - 1) / ALIGN * ALIGN;
    if (!a->blocks || a->blocks->size - a->blocks->used < n) {
        size_t size = n > BLOCK_BYTES ? n : BLOCK_BYTES;
        struct tmk_arena_block *block = malloc(sizeof *block + size);
        if (!block)
            return NULL;
        *block = (struct tmk_arena_block){.next = a->blocks, .size = size};
        a->blocks = block;
    }
    void *p = a->blocks->bytes + a->blocks->used;
    a->blocks->used += n;
    a->n_bytes += n;
    return memset(p, 0, n);
}

char *tmk_arena_text(struct tmk_arena *a, const char *text, size_t n)
{
    char *copy = tmk_arena_take(a, n + 1);
    if (copy && n > 0)
        memcpy(copy, text, n);
    return copy;
}

char *tmk_arena_format(struct tmk_arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : tmk_arena_take(a, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void tmk_arena_fini(struct tmk_arena *a)
{
    while (a->blocks) {
        struct tmk_arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}
