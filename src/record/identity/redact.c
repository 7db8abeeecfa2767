/* SPDX-License-Identifier: MIT */
/* record/identity/redact.c - see redact.h.
 *
 * Names are searched for everywhere in the text, because a whole command, a URL, JSON or a list of
 * settings may be in one argument. secret_names.h says which names have a secret value,
 * secret_value.h where the value begins and ends; it may also be the next argument. */
#include "record/identity/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "record/identity/secret_names.h"
#include "record/identity/secret_value.h"

static const char hidden_text[] = "***";
static const char redact_blanks[] = " \t\n\r";

enum { SECRET_USER_BYTES = 20 };

/* ---- values that are shown ---- */

/* Values that are no secrets and tell much: `--token None`, "7 tokens". */
static bool is_shown_value(const char *value, size_t n, enum tmk_secrecy secrecy)
{
    enum { NUMBER_BYTES = 12 };
    static const char *const words[] = {"none", "null", "true", "false"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == n && strncasecmp(value, words[i], n) == 0)
            return true;
    return secrecy == TMK_SECRET_OR_NUMBER && n > 0 && n <= NUMBER_BYTES &&
           isdigit((unsigned char)value[0]) && strspn(value, "0123456789._eEkKmMbB") >= n;
}

static void put_secret_value(struct tmk_text *out, const char *value, size_t n,
                             enum tmk_secrecy secrecy)
{
    if (is_shown_value(value, n, secrecy))
        tmk_text_bytes(out, value, n);
    else
        tmk_text_string(out, hidden_text);
}

/* Write what stands between name and value. The quote of a value belongs to it only if the value
 * ends with that quote. */
static void put_between(struct tmk_text *out, const char *at, const struct tmk_secret_value *v,
                        const char *end)
{
    bool is_closed = tmk_secret_value_is_closed(v, end);
    tmk_text_bytes(out, at, (size_t)((is_closed ? v->start : v->outer) - at));
}

/* ---- users ---- */

/* True for "name:password", false for the numbers that containers are given. */
static bool has_password(const char *at, size_t n)
{
    return memchr(at, ':', n) && strspn(at, "0123456789:") < n;
}

static void put_user(struct tmk_text *out, const char *at)
{
    size_t n = strcspn(at, ":") + 1;
    tmk_text_bytes(out, at, n);
    tmk_text_string(out, hidden_text);
}

static bool is_same_word(const char *word, size_t n, const char *other)
{
    return strlen(other) == n && strncasecmp(word, other, n) == 0;
}

static bool is_user_name(const char *name, size_t n)
{
    return is_same_word(name, n, "-u") || is_same_word(name, n, "--user") ||
           is_same_word(name, n, "--proxy-user");
}

/* Length of the user in a URL, from behind the slashes to the '@'; 0: it names no user. Behind a
 * colon anything may come up to the '@', unless it is a port. */
static size_t user_length(const char *at)
{
    size_t n = strcspn(at, "/?# \t\n\"'"), user = n;
    const char *colon = memchr(at, ':', n);
    bool has_port = colon && strspn(colon + 1, "0123456789") == (size_t)(at + n - colon - 1);
    if (colon && !has_port)
        user = strcspn(at, " \t\n\"'");
    while (user > 0 && at[user] != '@')
        user--;
    return user;
}

/* ---- all of a command ---- */

/* The kind of the next argument. */
enum next { ANYTHING, A_SIGN, A_VALUE, SOME_VALUES, A_USER };

struct redactor {
    struct tmk_text *out;
    enum next next;
    enum tmk_secrecy secrecy;               /* the kind of secret that the values are */
    enum { ELSE, OPTIONS, OPTION } python;  /* the options are python's: its -u has no value */
    enum { NO_SHELL, SHELL, SCRIPT } shell; /* SCRIPT: the next argument is one */
    const char *before;                     /* the argument before this one */
};

/* scheme://user:password@host, from behind the slashes; returns where to go on. */
static const char *redact_url_user(struct redactor *r, const char *at)
{
    size_t user = user_length(at);
    const char *colon = user ? memchr(at, ':', user) : NULL;
    if (user == 0 || (!colon && user < SECRET_USER_BYTES))
        return at;
    tmk_text_bytes(r->out, at, colon ? (size_t)(colon - at) + 1 : 0);
    tmk_text_string(r->out, hidden_text);
    return at + user;
}

/* The value of a secret name that ended at `at`; returns where to go on. */
static const char *redact_value(struct redactor *r, const struct tmk_argument *a, const char *name,
                                const char *at, const struct tmk_secret_value *v)
{
    const char *end = tmk_secret_value_end(a, name, v);
    bool is_empty = end == v->start && !*end && !v->quote.letter;
    put_between(r->out, at, v, end);
    if (is_empty && (name[0] != '-' || at[0] != '='))
        r->next = A_VALUE; /* it may be the next argument */
    if (r->next == ANYTHING || at[0] == '=')
        put_secret_value(r->out, v->start, (size_t)(end - v->start), r->secrecy);
    return end;
}

/* `--name value` in one argument; returns where to go on. */
static const char *redact_option(struct redactor *r, const struct tmk_argument *a, const char *name,
                                 const char *at)
{
    size_t gap = strspn(at, redact_blanks);
    if (name[0] != '-' || gap == 0 || !at[gap] || strncmp(at + gap, "--", 2) == 0)
        return at;
    struct tmk_secret_value v = tmk_secret_value_at(at + gap);
    const char *end = tmk_secret_option_end(a, name, &v);
    put_between(r->out, at, &v, end);
    put_secret_value(r->out, v.start, (size_t)(end - v.start), r->secrecy);
    return end;
}

/* `--user=name:password` or, within an argument, `-u name:password`; returns where to go on. */
static const char *redact_user(struct redactor *r, const struct tmk_argument *a, const char *name,
                               const char *at)
{
    size_t gap = *at == '=' ? 1 : strspn(at, redact_blanks);
    bool is_pythons = r->python != ELSE && name[1] != '-';
    if (!*at && !is_pythons)
        r->next = A_USER;
    if (gap == 0 ||
        (*at != '=' && name[1] != '-' && !memmem(a->start, (size_t)(name - a->start), "curl", 4)))
        return at;
    const char *end = a->is_script || !tmk_argument_begins(a, name)
                          ? tmk_shell_word_end(a, at + gap)
                          : at + strlen(at);
    if (!has_password(at + gap, (size_t)(end - at) - gap))
        return at;
    tmk_text_bytes(r->out, at, gap);
    put_user(r->out, at + gap);
    return end;
}

/* A name and, if that is secret, its value; returns where to go on. */
static const char *redact_name(struct redactor *r, const struct tmk_argument *a, const char *name,
                               size_t n)
{
    const char *at = name + n;
    size_t token = tmk_secret_token(name, n);
    if (strncmp(name, "-----BEGIN", 10) == 0 && strstr(name, "PRIVATE KEY")) {
        tmk_text_string(r->out, hidden_text);
        return name + strlen(name);
    }
    tmk_text_bytes(r->out, name, token);
    if (token < n) {
        tmk_text_string(r->out, hidden_text);
        return at;
    }
    if (is_user_name(name, n))
        return redact_user(r, a, name, at);
    r->secrecy = tmk_secret_name(name, n);
    if (r->secrecy == TMK_SECRET_NOT)
        return at;
    struct tmk_secret_value v = tmk_secret_value_after(at);
    if (v.start)
        return redact_value(r, a, name, at, &v);
    if (!*at)
        r->next = name[0] != '-' ? A_SIGN : r->secrecy == TMK_SECRET_ONE ? A_VALUE : SOME_VALUES;
    return redact_option(r, a, name, at);
}

static void redact_argument(struct redactor *r, const struct tmk_argument *a)
{
    const char *at = a->start;
    r->next = ANYTHING;
    while (*at) {
        size_t n = tmk_name_length(at);
        if (n > 0) {
            at = redact_name(r, a, at, n);
        } else if (strncmp(at, "://", 3) == 0) {
            tmk_text_bytes(r->out, at, 3);
            at = redact_url_user(r, at + 3);
        } else {
            tmk_text_char(r->out, *at++);
        }
    }
}

static bool is_scheme(const char *argument)
{
    static const char *const schemes[] = {"bearer", "basic", "digest", "token", "negotiate"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strcasecmp(argument, schemes[i]) == 0)
            return true;
    return false;
}

/* True when the argument is not what the one before it announced. */
static bool is_unexpected(const struct redactor *r, const char *argument)
{
    switch (r->next) {
    case A_SIGN:
        return tmk_sign_length(argument) == 0;
    case A_USER:
        return !has_password(argument, strlen(argument));
    case SOME_VALUES:
        return argument[0] == '-';
    default:
        return strncmp(argument, "--", 2) == 0;
    }
}

/* An argument that the one before it announced. */
static void redact_expected(struct redactor *r, const char *argument)
{
    enum next expected = r->next;
    size_t n = tmk_sign_length(argument);
    r->next = expected == SOME_VALUES ? SOME_VALUES : ANYTHING;
    if (expected == A_USER) {
        put_user(r->out, argument);
    } else if (n > 0) { /* a sign alone, or a sign with its value */
        tmk_text_bytes(r->out, argument, n);
        r->next = argument[n] ? r->next : A_VALUE;
        if (argument[n])
            tmk_text_string(r->out, hidden_text);
    } else {
        put_secret_value(r->out, argument, strlen(argument), r->secrecy);
        r->next = is_scheme(argument) ? A_VALUE : r->next;
    }
}

/* ---- shells and python: what their arguments are ---- */

static const char *program_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_shell(const char *argument)
{
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh", "ash", "su"};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(program_name(argument), shells[i]) == 0)
            return true;
    return false;
}

/* "-c", "-lc" */
static bool is_script_option(const char *argument)
{
    size_t n = strlen(argument);
    return n >= 2 && argument[0] == '-' && argument[1] != '-' && argument[n - 1] == 'c';
}

/* True when a shell's option has a value, as in "-o pipefail" or "su - user". */
static bool option_has_value(const char *option)
{
    size_t n = strlen(option);
    return n > 0 && strchr("-+", option[0]) &&
           (n == 1 || strchr("oO", option[n - 1]) || strcmp(option, "--rcfile") == 0);
}

static void look_for_shell(struct redactor *r, const char *argument)
{
    bool is_option = strchr("-+", argument[0]) != NULL; /* or empty */
    if (is_shell(argument))
        r->shell = SHELL;
    else if (r->shell == SHELL && is_script_option(argument))
        r->shell = SCRIPT;
    else if (r->shell == SCRIPT || (!is_option && !option_has_value(r->before)))
        r->shell = NO_SHELL;
}

static void look_for_python(struct redactor *r, const char *argument)
{
    bool is_long = strcmp(argument, "-X") == 0 || strcmp(argument, "-W") == 0;
    if (strncmp(program_name(argument), "python", 6) == 0 || r->python == OPTION)
        r->python = OPTIONS;
    else if (r->python == OPTIONS && is_long)
        r->python = OPTION;
    else if (argument[0] != '-' || strcmp(argument, "-m") == 0 || strcmp(argument, "-c") == 0)
        r->python = ELSE;
}

void tmk_redact_command(const char *arguments, size_t n, struct tmk_text *out)
{
    struct redactor r = {.out = out, .before = ""};
    for (size_t at = 0; at < n; at += strnlen(arguments + at, n - at) + 1) {
        struct tmk_argument a = {arguments + at, r.shell == SCRIPT};
        if (at > 0)
            tmk_text_char(out, ' ');
        if (r.next == ANYTHING || is_unexpected(&r, a.start))
            redact_argument(&r, &a);
        else
            redact_expected(&r, a.start);
        look_for_shell(&r, a.start);
        look_for_python(&r, a.start);
        r.before = a.start;
    }
}
