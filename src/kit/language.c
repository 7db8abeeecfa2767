/* SPDX-License-Identifier: MIT */
/* kit/language.c - see language.h.
 *
 * The catalogue is a sorted table in read-only data. glibc's gettext() was rejected: it translates
 * only under a locale that the machine has generated, and a bare container has none but C. */
#include "kit/language.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/catalogues.h"

static const struct {
    const char *name;
    const char *countries; /* that write it so; "|CN|SG|" */
    const struct tmk_catalogue *catalogue;
} languages[] = {
    {"zh", "|CN|SG|Hans|", &tmk_catalogue_zh},
};

static const struct tmk_catalogue *chosen; /* by the user; NULL: English */
static const char *chosen_name = "en";

/* Each thread has its own: a server writes a page while its other threads talk. */
static _Thread_local unsigned data_depth;
static _Thread_local bool has_own;                    /* see tmk_language_begin_people() */
static _Thread_local const struct tmk_catalogue *own; /* instead of the chosen one */

/* ---- which one ---- */

/* Returns whether "zh_CN.UTF-8" is written in UTF-8, as the catalogues are. */
static bool has_our_charset(const char *name, size_t n)
{
    const char *dot = memchr(name, '.', n);
    if (!dot)
        return true;
    return strncasecmp(dot, ".utf-8", 6) == 0 || strncasecmp(dot, ".utf8", 5) == 0;
}

/* Returns whether the country of "zh_CN.UTF-8", if there is one, is among those of the list. */
static bool is_of_countries(const char *name, size_t n, const char *countries)
{
    char wanted[16];
    size_t language = strcspn(name, "_-.@:"), end = strcspn(name, ".@:");
    if (language >= n || language >= end)
        return true;
    size_t length = strcspn(name + language + 1, "_-.@:");
    if (length + 3 > sizeof wanted)
        return false;
    wanted[0] = '|';
    memcpy(wanted + 1, name + language + 1, length);
    memcpy(wanted + 1 + length, "|", 2);
    return strcasestr(countries, wanted) != NULL;
}

/* Return the place of the language of a locale's name of `n` bytes; -1: there is no catalogue. */
static int place_of_language(const char *name, size_t n)
{
    size_t length = strcspn(name, "_-.@:");
    length = length < n ? length : n;
    for (size_t i = 0; i < TMK_N(languages); i++)
        if (strlen(languages[i].name) == length &&
            strncasecmp(languages[i].name, name, length) == 0 &&
            is_of_countries(name, n, languages[i].countries) && has_our_charset(name, n))
            return (int)i;
    return -1;
}

/* Take the language of a locale's name of `n` bytes. False: it is another one than English, and
 * there is no catalogue for it. */
static bool choose(const char *name, size_t n)
{
    int place = place_of_language(name, n);
    chosen = place < 0 ? NULL : languages[place].catalogue;
    chosen_name = place < 0 ? "en" : languages[place].name;
    tmk_error_language = tmk_translated;
    size_t length = strcspn(name, "_-.@:");
    return place >= 0 || ((length < n ? length : n) == 2 && strncasecmp(name, "en", 2) == 0);
}

int tmk_language_set(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strspn(name, letters);
    bool is_plain =
        strcmp(name, "POSIX") == 0 || strncmp(name, "C.", 2) == 0 || strcmp(name, "C") == 0;
    if (!is_plain && (n < 2 || n > 3 || (name[n] && !strchr("_-.@", name[n]))))
        return TMK_EINVAL;
    choose(name, strlen(name));
    return 0;
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

void tmk_language_from_environment(void)
{
    const char *ours = setting("TIDEMARK_LANG");
    if (ours && tmk_language_set(ours) == 0)
        return;
    const char *locale = setting("LC_ALL");
    locale = locale ? locale : setting("LC_MESSAGES");
    locale = locale ? locale : setting("LANG");
    choose("C", 1);
    if (!locale || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0)
        return;
    if (!has_our_charset(locale, strlen(locale)))
        return;
    for (const char *list = setting("LANGUAGE"); list && *list;) {
        size_t n = strcspn(list, ":");
        if (choose(list, n))
            return;
        list += n;
        list += *list == ':';
    }
    choose(locale, strlen(locale));
}

const char *tmk_language_name(void)
{
    return chosen_name;
}

/* ---- texts ---- */

void tmk_language_begin_data(void)
{
    data_depth++;
}

void tmk_language_end_data(void)
{
    data_depth--;
}

struct tmk_language_state tmk_language_begin_people(const char *name)
{
    struct tmk_language_state before = {own, has_own, data_depth};
    int place = place_of_language(name, strlen(name));
    own = place < 0 ? NULL : languages[place].catalogue;
    has_own = true;
    data_depth = 0;
    return before;
}

void tmk_language_end_people(const struct tmk_language_state *before)
{
    own = before->own;
    has_own = before->has_own;
    data_depth = before->data_depth;
}

static int compare_english(const void *key, const void *entry)
{
    return strcmp(key, ((const struct tmk_translation *)entry)->english);
}

const char *tmk_translated_for_people(const char *text)
{
    const struct tmk_catalogue *c = has_own ? own : chosen;
    const struct tmk_translation *found =
        c && text ? bsearch(text, c->entries, c->n_entries, sizeof *found, compare_english) : NULL;
    return found ? found->translated : text;
}

const char *tmk_translated(const char *text)
{
    return data_depth > 0 ? text : tmk_translated_for_people(text);
}

const char *tmk_plural(const char *one, const char *several, uint64_t n)
{
    const char *translated = tmk_translated(one);
    return translated != one ? translated : n == 1 ? one : several;
}
