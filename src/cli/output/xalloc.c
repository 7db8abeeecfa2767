/* SPDX-License-Identifier: MIT */
/* cli/output/xalloc.c - see xalloc.h. */
#include "cli/output/xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/say.h"
#include "kit/shell.h"

void *tmk_xcalloc(size_t n, size_t item_bytes)
{
    void *p = calloc(n ? n : 1, item_bytes);
    if (!p)
        tmk_die("out of memory");
    return p;
}

char *tmk_xstrdup(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        tmk_die("out of memory");
    return copy;
}

char *tmk_xformat_list(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        tmk_die("out of memory");
    return text;
}

char *tmk_xformat(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tmk_xformat_list(format, args);
    va_end(args);
    return text;
}

void *tmk_xarena_take(struct tmk_arena *a, size_t n)
{
    void *taken = tmk_arena_take(a, n);
    if (!taken)
        tmk_die("out of memory");
    return taken;
}

char *tmk_xarena_text(struct tmk_arena *a, const char *text, size_t n)
{
    char *copy = tmk_arena_text(a, text, n);
    if (!copy)
        tmk_die("out of memory");
    return copy;
}

char *tmk_xarena_format(struct tmk_arena *a, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        tmk_die("out of memory");
    char *copy = tmk_xarena_text(a, text, (size_t)n);
    free(text);
    return copy;
}

const char *tmk_xshell_word(struct tmk_arena *a, const char *word)
{
    const char *text = tmk_shell_word(a, word);
    if (!text)
        tmk_die("out of memory");
    return text;
}

FILE *tmk_xmemstream(char **text, size_t *n)
{
    FILE *out = open_memstream(text, n);
    if (!out)
        tmk_die("out of memory");
    return out;
}
