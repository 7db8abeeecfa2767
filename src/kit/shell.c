/* SPDX-License-Identifier: MIT */
/* kit/shell.c - see shell.h. */
#include "kit/shell.h"

#include <stdbool.h>
#include <string.h>

/* Whether a shell takes the word as it is. Braces alone are plain, but bash makes several words of
 * them where a comma or dots stand between. */
static bool is_plain_in_shell(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%{}";
    const char *brace = strchr(word, '{');
    return *word && !word[strspn(word, plain)] &&
           !(brace && (strchr(brace, ',') || strstr(brace, "..")));
}

const char *tmk_shell_word(struct tmk_arena *a, const char *word)
{
    static const char quote[] = "'\\''"; /* ends what is quoted, and begins anew */
    size_t n = strlen(word), n_quotes = 0;
    if (is_plain_in_shell(word))
        return tmk_arena_text(a, word, n);
    for (const char *at = word; (at = strchr(at, '\'')); at++)
        n_quotes++;
    char *text = tmk_arena_take(a, n + n_quotes * (sizeof quote - 2) + 3), *to = text;
    if (!text)
        return NULL;
    *to++ = '\'';
    for (; *word; word++)
        if (*word == '\'')
            to = stpcpy(to, quote);
        else
            *to++ = *word;
    *to = '\'';
    return text; /* what was taken is zeros: it has its end */
}
