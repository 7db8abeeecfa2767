/* SPDX-License-Identifier: MIT */
/* sweep/words.c - see words.h. */
#include "sweep/words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sweep/params.h"

static const char repeat_name[] = "repeat";

/* The length of the name in "{NAME}" at `at`; 0: there is none. */
static size_t name_at(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[1 + n]) || at[1 + n] == '_')
        n++;
    return at[0] == '{' && at[1 + n] == '}' && !isdigit((unsigned char)at[1]) ? n : 0;
}

static bool is_repeat(const char *name, size_t n)
{
    return n == strlen(repeat_name) && memcmp(name, repeat_name, n) == 0;
}

int tmk_word_check(const char *word, const struct tmk_results *r, struct tmk_error *err)
{
    for (const char *at = word; (at = strchr(at, '{')); at++) {
        if (at[1] == '{') {
            at++;
            continue;
        }
        size_t n = name_at(at);
        if (n == 0 || is_repeat(at + 1, n) ||
            tmk_params_find(r->params, r->n_params, at + 1, n) >= 0)
            continue;
        char name[TMK_SWEEP_MAX_NAME];
        snprintf(name, sizeof name, "%.*s", (int)n, at + 1);
        return tmk_fail(err, TMK_EINVAL,
                        "there is no parameter %s for {%s}; give --param %s=..., or write {{%s} "
                        "where the brace is meant",
                        name, name, name, name);
    }
    return 0;
}

static void put_word_value(FILE *out, const struct tmk_results *r, const struct tmk_cell *c,
                           const char *name, size_t n)
{
    int p = tmk_params_find(r->params, r->n_params, name, n);
    if (p >= 0)
        fputs(r->params[p].values[c->choice[p]], out);
    else if (is_repeat(name, n))
        fprintf(out, "%u", c->repeat);
    else
        fprintf(out, "{%.*s}", (int)n, name);
}

char *tmk_word_fill(const char *word, const struct tmk_results *r, const struct tmk_cell *c)
{
    char *text = NULL;
    size_t n_text;
    FILE *out = open_memstream(&text, &n_text);
    if (!out)
        return NULL;
    for (const char *at = word; *at; at++) {
        size_t n = name_at(at);
        if (at[0] == '{' && at[1] == '{') {
            fputc('{', out);
            at++;
        } else if (n > 0) {
            put_word_value(out, r, c, at + 1, n);
            at += n + 1;
        } else {
            fputc(*at, out);
        }
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
