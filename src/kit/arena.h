/* SPDX-License-Identifier: MIT */
/* kit/arena.h - memory that is given back all at once. Each pass, query or page has one.
 *
 * Zero is an empty arena. Nothing that was taken moves or dies before fini. */
#ifndef TMK_KIT_ARENA_H
#define TMK_KIT_ARENA_H

#include <stddef.h>

struct tmk_arena {
    struct tmk_arena_block *blocks;
    size_t n_bytes; /* taken so far */
};

/* `n` bytes of zeros, aligned for anything; NULL without memory. */
void *tmk_arena_take(struct tmk_arena *a, size_t n);
/* A copy of `n` bytes with a zero byte behind; NULL without memory. */
char *tmk_arena_text(struct tmk_arena *a, const char *text, size_t n);
/* Formats a text as printf does; NULL without memory. */
char *tmk_arena_format(struct tmk_arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tmk_arena_fini(struct tmk_arena *a);

#endif
