/* SPDX-License-Identifier: MIT */
/* kit/utf8.h - foreign texts on a screen: decode, measure, cut.
 *
 * Bytes that are not UTF-8 and control characters count as one column and are shown as U+FFFD, so
 * that a hostile name can neither break a table nor drive the terminal. Where the terminal shows
 * ASCII only (kit/glyph.h), U+FFFD is written as "?", the "…" of a cut as "~", and signs of
 * our own within a text as one ASCII character each. */
#ifndef TMK_KIT_UTF8_H
#define TMK_KIT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TMK_UTF8_BAD = 0xfffd };

/* Reads the character at *at and moves *at behind it; 0 at the end. TMK_UTF8_BAD stands for a byte
 * that does not belong. */
uint32_t tmk_utf8_next(const char **at);

/* Whether a character is invisible: it drives a terminal, turns the direction of the text, or
 * hides. */
bool tmk_utf8_is_unseen(uint32_t c);

/* Reads the next character as it is shown, and the columns that it takes: 2 for wide ones, 0 for
 * accents that combine. A control character becomes TMK_UTF8_BAD. */
uint32_t tmk_utf8_shown(const char **at, size_t *ret_columns);
/* How many columns `text` takes. */
size_t tmk_utf8_width(const char *text);

/* Returns the bytes of `text` that a line keeps together: up to a space or line end or, in Chinese,
 * to the next place between two characters where a line may end. */
size_t tmk_utf8_piece(const char *text);

/* Finds the longest end of `text` that takes at most `width` columns, and returns its first byte.
 */
const char *tmk_utf8_tail(const char *text, size_t width);

/* Write as many characters of `text` as have room in `width` columns. Returns the columns written.
 */
size_t tmk_utf8_fill(FILE *out, const char *text, size_t width);
/* Write `text` in at most `width` columns; what does not fit becomes one "…" at the end. Returns
 * the columns written. */
size_t tmk_utf8_write(FILE *out, const char *text, size_t width);

/* Copies `text` as valid UTF-8: bytes that do not belong become U+FFFD. The copy is cut to `room`
 * bytes, zero byte included. Returns its bytes without the zero byte. */
size_t tmk_utf8_repair(const char *text, char *to, size_t room);

#endif
