/* SPDX-License-Identifier: MIT */
/* cli/output/xalloc.h - memory for commands. Without memory the program ends with a message. Only
 * cli/ may give up like that; libraries report TMK_ENOMEM. */
#ifndef TMK_CLI_OUTPUT_XALLOC_H
#define TMK_CLI_OUTPUT_XALLOC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "kit/arena.h"

void *tmk_xcalloc(size_t n, size_t item_bytes) __attribute__((returns_nonnull));
char *tmk_xstrdup(const char *text) __attribute__((returns_nonnull));
char *tmk_xformat(const char *format, ...) __attribute__((returns_nonnull, format(printf, 1, 2)));
char *tmk_xformat_list(const char *format, va_list args)
    __attribute__((returns_nonnull, format(printf, 1, 0)));
/* The same in an arena (kit/arena.h). */
void *tmk_xarena_take(struct tmk_arena *a, size_t n) __attribute__((returns_nonnull));
char *tmk_xarena_text(struct tmk_arena *a, const char *text, size_t n)
    __attribute__((returns_nonnull));
char *tmk_xarena_format(struct tmk_arena *a, const char *format, ...)
    __attribute__((returns_nonnull, format(printf, 2, 3)));
/* Returns tmk_shell_word() of it, in the arena. */
const char *tmk_xshell_word(struct tmk_arena *a, const char *word) __attribute__((returns_nonnull));
/* Open a stream by open_memstream(). Close it, then *text is the caller's. */
FILE *tmk_xmemstream(char **text, size_t *n) __attribute__((returns_nonnull));

#endif
