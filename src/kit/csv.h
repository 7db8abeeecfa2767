/* SPDX-License-Identifier: MIT */
/* kit/csv.h - writes rows as RFC 4180 has them, with plain newlines: commas, quotes where needed.
 * Unknown is an empty field, an empty text is "".
 *
 * Texts may come from strangers: bytes that are not UTF-8 and invisible characters (kit/utf8.h)
 * become U+FFFD; line ends and tabs stay, in quotes. With `is_safe` line ends become U+FFFD too, so
 * that a row is a line, and a text that a spreadsheet would take for a formula begins with an
 * apostrophe. */
#ifndef TMK_KIT_CSV_H
#define TMK_KIT_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tmk_csv {
    FILE *out;
    bool in_row;
    bool is_safe;
};

void tmk_csv_init(struct tmk_csv *c, FILE *out, bool is_safe);
void tmk_csv_text(struct tmk_csv *c, const char *text); /* NULL: unknown */
/* Writes a number that is a text already: it is no formula, whatever its sign. */
void tmk_csv_number(struct tmk_csv *c, const char *text);
void tmk_csv_end_row(struct tmk_csv *c);

#endif
