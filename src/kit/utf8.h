/* SPDX-License-Identifier: MIT */
/* kit/utf8.h - texts of strangers on a screen: decode, measure, cut.
 *
 * Bytes that are not UTF-8 and control characters count as one column and are shown as U+FFFD, so
 * that a hostile name can neither break a table nor drive the terminal. */
#ifndef TMK_KIT_UTF8_H
#define TMK_KIT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TMK_UTF8_BAD = 0xfffd };

/* The character at *at, which is moved behind it; 0 at the end. TMK_UTF8_BAD for a byte that does
 * not belong. */
uint32_t tmk_utf8_next(const char **at);

/* Whether a character drives a terminal, turns the direction of the text, or hides. */
bool tmk_utf8_is_unseen(uint32_t c);

/* The next character as it is shown, and the columns that it takes: 2 for wide ones, 0 for accents
 * that combine. A control character is TMK_UTF8_BAD. */
uint32_t tmk_utf8_shown(const char **at, size_t *ret_columns);
/* Columns that `text` takes. */
size_t tmk_utf8_width(const char *text);

/* Where the longest end of `text` begins that takes at most `width` columns. */
const char *tmk_utf8_tail(const char *text, size_t width);

/* Write `text` in at most `width` columns; what does not fit becomes one "…" at the end. Returns
 * the columns written. */
size_t tmk_utf8_write(FILE *out, const char *text, size_t width);

/* `text` for whoever insists on UTF-8: bytes that do not belong become U+FFFD; what does not fit
 * into `room` bytes, zero byte included, is left off. Returns the bytes, without that. */
size_t tmk_utf8_repair(const char *text, char *to, size_t room);

#endif
