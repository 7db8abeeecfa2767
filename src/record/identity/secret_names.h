/* SPDX-License-Identifier: MIT */
/* record/identity/secret_names.h - which names (of options, variables, keys of JSON) have secrets
 * for values, and which values are known by themselves. Tables and the one rule that reads them;
 * docs/THREATS.md says it for users. */
#ifndef TMK_RECORD_SECRET_NAMES_H
#define TMK_RECORD_SECRET_NAMES_H

#include <stddef.h>

enum tmk_secrecy {
    TMK_SECRET_NOT,
    TMK_SECRET_ONE,
    TMK_SECRET_SOME,      /* plural: an option may have several values */
    TMK_SECRET_OR_NUMBER, /* the same, but "tokens" may be a number of them, which is none */
};

enum tmk_secrecy tmk_secret_name(const char *name, size_t n);

/* Where in a word the token of a known service begins ("hf_..."); n: none does. */
size_t tmk_secret_token(const char *word, size_t n);

#endif
