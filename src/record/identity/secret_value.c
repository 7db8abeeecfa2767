/* SPDX-License-Identifier: MIT */
/* record/identity/secret_value.c - see secret_value.h. */
#include "record/identity/secret_value.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char value_blanks[] = " \t\n\r";

static bool is_blank_char(char c)
{
    return c && strchr(value_blanks, c);
}

static const char *end_of_string(const char *text)
{
    return text + strlen(text);
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_-.+", c));
}

size_t tmk_name_length(const char *at)
{
    size_t n = 0;
    while (is_name_char(at[n]))
        n++;
    return n;
}

bool tmk_argument_begins(const struct tmk_argument *a, const char *name)
{
    return a->start + strspn(a->start, "~ ") == name;
}

/* ---- quotes ---- */

static struct tmk_quote quote_at(const char *at)
{
    size_t n_escapes = strspn(at, "\\");
    char c = at[n_escapes];
    return c == '"' || c == '\'' ? (struct tmk_quote){c, n_escapes} : (struct tmk_quote){0};
}

static bool is_same_quote(struct tmk_quote a, struct tmk_quote b)
{
    return a.letter == b.letter && a.n_escapes == b.n_escapes;
}

/* Behind the next quote like that; NULL: it has no end. One with fewer backslashes ends it too. */
static const char *behind_quote(const char *at, struct tmk_quote q)
{
    size_t n_escapes = 0;
    for (; *at; at++) {
        if (*at == q.letter && n_escapes <= q.n_escapes)
            return at + 1;
        n_escapes = *at == '\\' ? n_escapes + 1 : 0;
    }
    return NULL;
}

/* The quoted text that `at` is in. An apostrophe in a word opens none. */
static struct tmk_quote quote_around(const struct tmk_argument *a, const char *at)
{
    const char *p = a->start;
    struct tmk_quote around = {0};
    while (p < at) {
        struct tmk_quote q = quote_at(p);
        bool in_word = p > a->start && isalnum((unsigned char)p[-1]);
        if (q.letter && around.letter && is_same_quote(q, around))
            around.letter = 0;
        else if (q.letter && !around.letter && !in_word)
            around = q;
        p += q.letter ? q.n_escapes + 1 : *p == '\\' ? strspn(p, "\\") : 1;
    }
    return around;
}

/* ---- what stands between a name and its value ---- */

size_t tmk_sign_length(const char *at)
{
    if (strncasecmp(at, "%3d", 3) == 0 || strncasecmp(at, "%3a", 3) == 0)
        return 3;
    size_t n = strspn(at, ":=");
    return n > 0 && at[n] == '>' ? n + 1 : n;
}

/* Behind "[]", "[0]", "]" and the quote of a name. */
static const char *skip_close(const char *at, struct tmk_quote *ret_quote)
{
    enum { INDEX_BYTES = 8 };
    *ret_quote = quote_at(at);
    if (ret_quote->letter)
        at += ret_quote->n_escapes + 1;
    else if (strncmp(at, "%22", 3) == 0 || strncmp(at, "%27", 3) == 0)
        at += 3;
    size_t n = *at == '[' ? strcspn(at, "]") : 0;
    if (n > 0 && n < INDEX_BYTES && at[n])
        at += n;
    return at + strspn(at, "]");
}

struct tmk_secret_value tmk_secret_value_at(const char *at)
{
    struct tmk_quote q = quote_at(at);
    return (struct tmk_secret_value){
        .outer = at, .start = q.letter ? at + q.n_escapes + 1 : at, .quote = q};
}

struct tmk_secret_value tmk_secret_value_after(const char *at)
{
    struct tmk_quote behind;
    at = skip_close(at, &behind);
    at += strspn(at, value_blanks);
    size_t n = tmk_sign_length(at);
    if (n == 0 || strncmp(at, "://", 3) == 0)
        return (struct tmk_secret_value){0};
    struct tmk_secret_value v = tmk_secret_value_at(at + n + strspn(at + n, value_blanks));
    v.behind = behind;
    return v;
}

/* ---- where a value ends ---- */

/* Before the quote that ends at `behind`, and its backslashes. */
static const char *before_quote(const char *start, const char *behind, struct tmk_quote q)
{
    const char *at = behind - 1;
    while (at > start && at[-1] == '\\' && (size_t)(behind - at) <= q.n_escapes)
        at--;
    return at;
}

/* Behind a comma or semicolon: does something new begin? */
static bool is_new_element(const char *at)
{
    return !*at || is_blank_char(*at) || strchr(",;}])", *at) || quote_at(at).letter ||
           tmk_secret_value_after(at + tmk_name_length(at)).start;
}

/* Whether what is here cannot belong to the value in quotes or brackets before it: the end, closing
 * brackets and no more, another element, or another word. */
static bool is_separate(const char *at, struct tmk_quote around)
{
    size_t gap = strspn(at, value_blanks), n_close = strspn(at + gap, "}])");
    struct tmk_quote q = quote_at(at);
    const char *next = at + gap + n_close;
    if (!*next || (q.letter && is_same_quote(q, around)))
        return true;
    if (n_close > 0)
        return is_blank_char(*next) || strchr(",;.:&|", *next) || quote_at(next).letter;
    if (strchr(",;&|", *next))
        return is_new_element(next + 1 + strspn(next + 1, "&|"));
    return gap > 0 && (isalnum((unsigned char)*next) || strchr("_-/.$<>#@{", *next));
}

const char *tmk_shell_word_end(const struct tmk_argument *a, const char *at)
{
    char quote = 0;
    const char *p = a->start;
    for (; *p; p++) {
        if (*p == '\\' && quote != '\'' && p[1])
            p++;
        else if (quote)
            quote = *p == quote ? 0 : quote;
        else if (*p == '"' || *p == '\'')
            quote = *p;
        else if (p >= at && (is_blank_char(*p) || (*p == ';' && is_blank_char(p[1]))))
            return p;
    }
    return p;
}

/* The quoted text that a name and its value are in: not the quotes of the name itself. */
static struct tmk_quote quote_around_both(const struct tmk_argument *a, const char *name,
                                          const struct tmk_secret_value *v)
{
    struct tmk_quote around = quote_around(a, name);
    if (is_same_quote(around, v->behind))
        around.letter = 0;
    return around;
}

/* Of that text, or of the argument. */
static const char *end_of_quoted_text(const struct tmk_argument *a, const char *name,
                                      const struct tmk_secret_value *v)
{
    struct tmk_quote around = quote_around_both(a, name, v);
    if (!around.letter)
        return end_of_string(v->start);
    const char *at = v->start;
    while ((at = behind_quote(at, around)))
        if (is_separate(at, (struct tmk_quote){0}))
            return before_quote(v->start, at, around);
    return end_of_string(v->start);
}

/* Behind the bracket that closes the one at `at`; NULL: it is not closed. */
static const char *behind_bracket(const char *at)
{
    size_t depth = 0;
    for (; *at; at++) {
        struct tmk_quote q = quote_at(at);
        const char *behind = q.letter ? behind_quote(at + q.n_escapes + 1, q) : NULL;
        if (behind) {
            at = behind - 1;
            continue;
        }
        depth += *at == '{' || *at == '[' || *at == '(';
        if ((*at == '}' || *at == ']' || *at == ')') && --depth == 0)
            return at + 1;
    }
    return NULL;
}

/* NULL: it is not in quotes, or more could belong to it. */
static const char *end_of_quoted(const struct tmk_argument *a, const char *name,
                                 const struct tmk_secret_value *v)
{
    const char *behind = v->quote.letter ? behind_quote(v->start, v->quote) : NULL;
    if (!behind || !is_separate(behind, quote_around_both(a, name, v)))
        return NULL;
    return before_quote(v->start, behind, v->quote);
}

static const char *end_of_bracket(const struct tmk_argument *a, const char *name,
                                  const struct tmk_secret_value *v)
{
    bool is_open = !v->quote.letter && *v->start && strchr("{[(", *v->start);
    const char *behind = is_open ? behind_bracket(v->start) : NULL;
    return behind && is_separate(behind, quote_around_both(a, name, v)) ? behind : NULL;
}

/* A number or a word of JSON, behind a name in quotes. */
static const char *end_of_literal(const struct tmk_secret_value *v)
{
    const char *end = v->start + strspn(v->start, "0123456789.+-eE");
    static const char *const words[] = {"null", "true", "false", "None", "True", "False"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(v->start, words[i], strlen(words[i])) == 0)
            end = v->start + strlen(words[i]);
    const char *next = end + strspn(end, value_blanks);
    bool is_whole =
        v->behind.letter && !v->quote.letter && end > v->start && *next && strchr(",}]", *next);
    return is_whole ? end : NULL;
}

/* At the next parameter of a URL; NULL: it is none, or the last. */
static const char *end_of_parameter(const struct tmk_argument *a, const char *name,
                                    const struct tmk_secret_value *v, const char *end)
{
    if (name == a->start || !strchr("?&", name[-1]))
        return NULL;
    for (const char *at = v->start; at < end && !is_blank_char(*at); at++) {
        size_t n = *at == '&' ? tmk_name_length(at + 1) : 0;
        if (n > 0 && at[1 + n] == '=')
            return at;
    }
    return NULL;
}

const char *tmk_secret_value_end(const struct tmk_argument *a, const char *name,
                                 const struct tmk_secret_value *v)
{
    if (a->is_script)
        return tmk_shell_word_end(a, v->start);
    if (tmk_argument_begins(a, name))
        return end_of_string(v->start);
    const char *end = end_of_quoted(a, name, v);
    end = end ? end : end_of_bracket(a, name, v);
    end = end ? end : end_of_literal(v);
    if (end)
        return end;
    const char *whole = end_of_quoted_text(a, name, v);
    end = end_of_parameter(a, name, v, whole);
    return end ? end : whole;
}

/* In the middle of an argument, at the next option. */
const char *tmk_secret_option_end(const struct tmk_argument *a, const char *name,
                                  const struct tmk_secret_value *v)
{
    if (a->is_script)
        return tmk_shell_word_end(a, v->start);
    if (tmk_argument_begins(a, name))
        return end_of_string(v->start);
    const char *end = end_of_quoted(a, name, v);
    if (end)
        return end;
    end = end_of_quoted_text(a, name, v);
    for (const char *at = v->start; at + 1 < end; at++)
        if (is_blank_char(at[0]) && at[1] == '-')
            return at;
    return end;
}

bool tmk_secret_value_is_closed(const struct tmk_secret_value *v, const char *end)
{
    return v->quote.letter && quote_at(end).letter == v->quote.letter;
}
