/* SPDX-License-Identifier: MIT */
/* record/redact.c - command lines without secrets.
 *
 * A name says whether its value is secret: one of its words (split at anything but letters and
 * digits, and where small letters turn into capitals) is in the list below. So --hf-token,
 * API_KEY=,
 * --apiKey and -password are, and --max-tokens, --tokenizer and --keyboard are not. Forms known:
 * `--name value`, `--name=value`, `name=value`, `name:value`, and user:password@ in a URL. */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "record/identity.h"

static const char *const secret_words[] = {
    "token", "key",        "apikey",     "secret",      "password", "passwd",
    "pwd",   "passphrase", "credential", "credentials", "auth",     "authorization",
};

static bool is_secret_word(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof secret_words / sizeof secret_words[0]; i++)
        if (strlen(secret_words[i]) == n && strncasecmp(word, secret_words[i], n) == 0)
            return true;
    return false;
}

static bool is_secret_name(const char *name, size_t n)
{
    size_t start = 0;
    for (size_t i = 0; i <= n; i++) {
        bool ends = i == n || !isalnum((unsigned char)name[i]);
        bool turns = !ends && i > start && isupper((unsigned char)name[i]) &&
                     islower((unsigned char)name[i - 1]);
        if ((ends || turns) && is_secret_word(name + start, i - start))
            return true;
        if (ends)
            start = i + 1;
        else if (turns)
            start = i;
    }
    return false;
}

/* scheme://user:password@host: hide the password. True when it was one. */
static bool add_url(struct tmk_text *out, const char *argument)
{
    const char *start = strstr(argument, "://");
    const char *at = start ? strchr(start, '@') : NULL;
    const char *colon = at ? memchr(start + 3, ':', (size_t)(at - start - 3)) : NULL;
    if (!colon || memchr(start + 3, '/', (size_t)(at - start - 3)))
        return false;
    tmk_text_bytes(out, argument, (size_t)(colon - argument) + 1);
    tmk_text_string(out, "***");
    tmk_text_string(out, at);
    return true;
}

/* Add one argument; true when the next one is the value of a secret. */
static bool add_argument(struct tmk_text *out, const char *argument)
{
    size_t name = strcspn(argument, "=:");
    bool secret = is_secret_name(argument, name);
    if (argument[name] && secret && strncmp(argument + name, "://", 3) != 0) {
        tmk_text_bytes(out, argument, name + 1);
        tmk_text_string(out, "***");
        return false;
    }
    if (!add_url(out, argument))
        tmk_text_string(out, argument);
    return secret && argument[0] == '-' && !argument[name];
}

/* One argument: its words one by one, since a whole command may stand in it (`sh -c "..."`). True
 * when it ends in the name of a secret, whose value is the next argument. */
static bool add_words(struct tmk_text *out, const char *argument)
{
    char word[1024];
    bool hide = false;
    while (*argument) {
        size_t gap = strspn(argument, " \t\n");
        tmk_text_bytes(out, argument, gap);
        argument += gap;
        size_t n = strcspn(argument, " \t\n");
        size_t kept = n < sizeof word ? n : sizeof word - 1;
        memcpy(word, argument, kept);
        word[kept] = '\0';
        if (n > 0 && strchr("=:", argument[n - 1]) && is_secret_name(word, kept)) {
            tmk_text_bytes(out, argument,
                           n); /* "Authorization: Bearer ...": hide all that follows */
            tmk_text_string(out, "***");
            return false;
        }
        if (hide && n > 0) {
            tmk_text_string(out, "***");
            hide = false;
        } else if (n > 0) {
            hide = add_argument(out, word);
            if (n > kept) /* no telling what the rest is */
                tmk_text_string(out, "…");
        }
        argument += n;
    }
    return hide;
}

void tmk_redact_command(const char *arguments, size_t n, struct tmk_text *out)
{
    bool hide = false;
    for (size_t at = 0; at < n; at += strnlen(arguments + at, n - at) + 1) {
        if (at > 0)
            tmk_text_char(out, ' ');
        bool is_option = strncmp(arguments + at, "--", 2) == 0;
        if (hide && !is_option)
            tmk_text_string(out, "***");
        hide = hide && !is_option ? false : add_words(out, arguments + at);
    }
}
