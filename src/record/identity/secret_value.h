/* SPDX-License-Identifier: MIT */
/* record/identity/secret_value.h - find where the value of a name begins and ends in an argument of
 * a command line.
 *
 * That depends on the argument:
 *
 *     name=value               the name is at its start: the value ends with it
 *     bash -c 'p --name v'     a shell's script: the value ends with the shell's word
 *     {"name": "v", "a": 1}    a value in quotes or brackets: it ends with those, unless what
 *                              follows could belong to it
 *     http://h/?name=v&a=1     a parameter of a URL: the value ends at the next one
 *     all else                 the value ends with the argument, or with the quoted text that
 *                              name and value are in
 *
 * A cut in the wrong place would show a part of a secret. So whatever is in doubt is part of the
 * value. */
#ifndef TMK_RECORD_SECRET_VALUE_H
#define TMK_RECORD_SECRET_VALUE_H

#include <stdbool.h>
#include <stddef.h>

struct tmk_argument {
    const char *start;
    bool is_script; /* it is a shell's script */
};

/* A quote with this many backslashes before it; letter 0: no quote. */
struct tmk_quote {
    char letter;
    size_t n_escapes;
};

struct tmk_secret_value {
    const char *outer;       /* start, including its quote */
    const char *start;       /* start behind its quote; NULL: there is no value */
    struct tmk_quote quote;  /* the quote of the value */
    struct tmk_quote behind; /* the quote behind the name */
};

/* Length of the name at `at`; 0: there is none. */
size_t tmk_name_length(const char *at);
/* Length of the sign `=`, `:`, `:=`, `=>`, `%3D` or `%3A` at `at`; 0: there is none. */
size_t tmk_sign_length(const char *at);
/* True when nothing stands before the name. */
bool tmk_argument_begins(const struct tmk_argument *a, const char *name);

/* The value of a name that ends at `at`, if a sign follows; and the value that starts at `at`. */
struct tmk_secret_value tmk_secret_value_after(const char *at);
struct tmk_secret_value tmk_secret_value_at(const char *at);

/* Where the value ends; and where the value of `--name value` ends within an argument. Its own
 * quotes are not part of it, unless it goes on behind them. */
const char *tmk_secret_value_end(const struct tmk_argument *a, const char *name,
                                 const struct tmk_secret_value *v);
const char *tmk_secret_option_end(const struct tmk_argument *a, const char *name,
                                  const struct tmk_secret_value *v);
/* Where the shell's word at `at` ends; a semicolon at its end is not part of it. */
const char *tmk_shell_word_end(const struct tmk_argument *a, const char *at);

/* True when the value ends with a quote like its own. */
bool tmk_secret_value_is_closed(const struct tmk_secret_value *v, const char *end);

#endif
