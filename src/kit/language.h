/* SPDX-License-Identifier: MIT */
/* kit/language.h - the language of what people read: English, as written in the source, or a
 * catalogue of po/, which the build compiles into the program (docs/decisions.md says why).
 *
 *     tmk_sheet_heading(sheet, _("Leaks"));
 *     printf(tmk_plural("%u step\n", "%u steps\n", n), n);
 *
 * The functions that only ever print for people translate what they are given, and their headers
 * say so: tmk_say(), tmk_fail() and others, listed in tools/translations. Data has no language:
 * what goes to machines is written between tmk_language_begin_data() and tmk_language_end_data(),
 * or by a command that is in that state as a whole. Numbers are the same in every language.
 *
 * For our own processes only: a watched process has no catalogue. */
#ifndef TMK_KIT_LANGUAGE_H
#define TMK_KIT_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_translation {
    const char *english, *translated;
};

/* A language: translations in the order of strcmp() of what is English. */
struct tmk_catalogue {
    const struct tmk_translation *entries;
    size_t n_entries;
};

/* Takes the language from TIDEMARK_LANG, else as gettext does: the first that is set of LC_ALL,
 * LC_MESSAGES and LANG and, unless that is C or POSIX, before it LANGUAGE, a list with colons. */
void tmk_language_from_environment(void);
/* Takes the language that `name` means, "zh", "en" or a locale's name such as zh_CN.UTF-8; English
 * for a language without a catalogue. Returns 0, or TMK_EINVAL for what is no such name. */
int tmk_language_set(const char *name);
/* Returns "en", "zh": as TIDEMARK_LANG takes it. */
const char *tmk_language_name(void);

/* Around what is written for machines: everything is as in the source. They nest. */
void tmk_language_begin_data(void);
void tmk_language_end_data(void);

/* What a thread's language was before tmk_language_begin_people(). */
struct tmk_language_state {
    const struct tmk_catalogue *own;
    bool has_own;
    unsigned data_depth;
};
/* Around sentences for people that data has in it, as a page does: in the language `name`, which
 * tmk_language_set() takes, in this thread. */
struct tmk_language_state tmk_language_begin_people(const char *name);
void tmk_language_end_people(const struct tmk_language_state *before);

/* Returns the text in the chosen language, or `text` itself, which may be NULL. What it returns
 * stays valid. */
const char *tmk_translated(const char *text) __attribute__((format_arg(1)));
/* The same even while data is written: of a message that goes to people all the same. */
const char *tmk_translated_for_people(const char *text) __attribute__((format_arg(1)));
/* The same of the text for one, or for another number, of things. */
const char *tmk_plural(const char *one, const char *several, uint64_t n)
    __attribute__((format_arg(1), format_arg(2)));

#define _(text) tmk_translated(text)
/* Also while data is written: of what a command says beside its data. */
#define P_(text) tmk_translated_for_people(text)
/* Marks a text of a table, which is translated where it is used. */
#define N_(text) text

#endif
