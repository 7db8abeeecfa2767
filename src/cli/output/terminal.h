/* SPDX-License-Identifier: MIT */
/* cli/output/terminal.h - what the reader's terminal is like: its width, its colours, whether it
 * shows UTF-8. Everything that prints for people asks here, so that one rule holds everywhere.
 *
 * Width: of the terminal that the stream leads to, else COLUMNS, else 80 (a pipe, a file). Tables,
 * bars and charts use all of it; prose at most 100, which reads better.
 *
 * Colours have roles, never codes, at the places that print:
 *
 *     tmk_paint(out, TMK_ROLE_BAD, "out of memory");      a text
 *     fputs(tmk_role_on(out, TMK_ROLE_DETAIL), out);      or around several
 *     ...
 *     fputs(tmk_role_off(out, TMK_ROLE_DETAIL), out);
 *
 * A stream has colours when it is a terminal, TERM is known and not "dumb", and NO_COLOR is not
 * set; CLICOLOR_FORCE gives it colours in any case but NO_COLOR, and --color WHEN beats all.
 *
 * UTF-8: unless LC_ALL, LC_CTYPE or LANG (the first one set) names C, POSIX or another charset.
 * Then our own signs are ASCII: tmk_glyph("→") of kit/glyph.h is "->". Names out of a trace are
 * shown as they are (kit/utf8.h). */
#ifndef TMK_CLI_OUTPUT_TERMINAL_H
#define TMK_CLI_OUTPUT_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TMK_WIDTH_USUAL = 80, TMK_WIDTH_PROSE = 100 };

/* What a colour says. */
enum tmk_role {
    TMK_ROLE_PLAIN,
    TMK_ROLE_BAD,    /* red: out of memory, a leak */
    TMK_ROLE_WARN,   /* yellow: it grows, or nearly ran out */
    TMK_ROLE_GOOD,   /* green: healthy */
    TMK_ROLE_DETAIL, /* dim: what may be skipped */
    TMK_ROLE_STRONG, /* bold: verdicts and headings */
    TMK_N_ROLES,
};

/* This setting says that stdout leads to a terminal on another machine (cli/remote/remote.h). */
#define TMK_SCREEN_ELSEWHERE "TIDEMARK_SCREEN"

/* This one says what it shows, "utf8" or "ascii": the locale of that machine is another. */
#define TMK_CHARSET "TIDEMARK_CHARSET"

/* Look at the environment, once, before anything is printed. */
void tmk_terminal_init(void);
/* Take what --color says: "always", "never" or "auto". False: it is none of them. */
bool tmk_terminal_choose_colour(const char *when);

/* Returns whether people read `out` on a terminal, here or elsewhere. */
bool tmk_is_screen(FILE *out);
bool tmk_wants_colour(FILE *out);
/* Whether the environment names a charset that has our signs. */
bool tmk_shows_utf8(void);

/* Return the columns that tables and charts on `out` may use, and those that prose may use. */
unsigned tmk_width_of(FILE *out);
unsigned tmk_prose_width_of(FILE *out);
/* The same of stdout, and its lines, or 24. All within reason. */
unsigned tmk_screen_width(void);
unsigned tmk_screen_height(void);

/* Return what begins and ends a role on `out`; "" without colours. */
const char *tmk_role_on(FILE *out, enum tmk_role role);
const char *tmk_role_off(FILE *out, enum tmk_role role);
/* The same for a caller that has decided about colours. */
const char *tmk_role_code(bool colour, enum tmk_role role);
/* Returns what ends any role or hue; "" without colours. */
const char *tmk_colour_end(bool colour);
/* Write a text in a role, foreign text made safe. */
void tmk_paint(FILE *out, enum tmk_role role, const char *text);

/* Writes into `buffer` what begins text in the colour "#rrggbb", as near as
 * the terminal has it. Returns it; "" without colours. tmk_colour_end() ends it. */
enum { TMK_HUE_BYTES = 24 };
const char *tmk_hue_code(bool colour, uint32_t rrggbb, char *buffer);

#endif
