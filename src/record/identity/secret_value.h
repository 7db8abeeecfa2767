/* SPDX-License-Identifier: MIT */
/* record/identity/secret_value.h - where the value of a name begins and ends in an argument of a
 * command.
 *
 * By what the argument is:
 *
 *     name=value               a name at its start: at its end
 *     bash -c 'p --name v'     a shell's script: with the shell's word
 *     {"name": "v", "a": 1}    a value in quotes or brackets: with those, if what follows could
 *                              not belong to it
 *     http://h/?name=v&a=1     a parameter of a URL: at the next one
 *     all else                 at its end, or that of the quoted text that both are in
 *
 * A cut in the wrong place would show a part of a secret. So whatever does not fit goes with it. */
#ifndef TMK_RECORD_SECRET_VALUE_H
#define TMK_RECORD_SECRET_VALUE_H

#include <stdbool.h>
#include <stddef.h>

struct tmk_argument {
    const char *start;
    bool is_script; /* of a shell */
};

/* A quote with so many backslashes before it; letter 0: none. */
struct tmk_quote {
    char letter;
    size_t n_escapes;
};

struct tmk_secret_value {
    const char *outer;       /* with its quote */
    const char *start;       /* behind that; NULL: there is no value */
    struct tmk_quote quote;  /* its own */
    struct tmk_quote behind; /* the one behind the name */
};

/* Bytes of the name at `at`; 0: there is none. */
size_t tmk_name_length(const char *at);
/* Of `=`, `:`, `:=`, `=>`, `%3D`, `%3A`; 0: none of them. */
size_t tmk_sign_length(const char *at);
/* Is there nothing before the name? */
bool tmk_argument_begins(const struct tmk_argument *a, const char *name);

/* The value of a name that ends at `at`, if a sign follows; or the value at `at`. */
struct tmk_secret_value tmk_secret_value_after(const char *at);
struct tmk_secret_value tmk_secret_value_at(const char *at);

/* Where it ends; of `--name value` within an argument. Quotes of its own are not in it unless more
 * than they hold is. */
const char *tmk_secret_value_end(const struct tmk_argument *a, const char *name,
                                 const struct tmk_secret_value *v);
const char *tmk_secret_option_end(const struct tmk_argument *a, const char *name,
                                  const struct tmk_secret_value *v);
/* Of the shell's word that `at` is in; a semicolon at its end is not part of it. */
const char *tmk_shell_word_end(const struct tmk_argument *a, const char *at);

/* Does the value end with a quote like its own? */
bool tmk_secret_value_is_closed(const struct tmk_secret_value *v, const char *end);

#endif
