/* SPDX-License-Identifier: MIT */
/* kit/glyph.h - the signs of our own that are not ASCII, and what stands for them on a terminal
 * that cannot show UTF-8: tmk_glyph("→") is "->" there.
 *
 * The program decides once, when it begins (cli/output/terminal.h). Foreign names are not changed:
 * kit/utf8.h says how they are shown. */
#ifndef TMK_KIT_GLYPH_H
#define TMK_KIT_GLYPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Choose ASCII or UTF-8 for everything that is written from now on. */
void tmk_glyph_use_ascii(bool ascii);
bool tmk_glyph_is_ascii(void);

/* Returns the sign as it may be written; it must be one of the table in glyph.c. */
const char *tmk_glyph(const char *sign);

/* Returns the ASCII character that stands for the sign at `at` of `n` bytes, in the same width; 0:
 * it is none of ours. */
char tmk_glyph_narrow(const char *at, size_t n);

/* Write a horizontal bar for `part` of `whole`, at most `width` columns wide, into `buffer` of 3 *
 * width + 4 bytes. Returns it. A part that is not 0 has something to see. */
const char *tmk_bar(uint64_t part, uint64_t whole, unsigned width, char *buffer);
/* Returns the glyph that fills a character from below, by eighths (0 to 8). */
const char *tmk_glyph_upward(unsigned eighths);
/* Returns how many of `eighths` a value fills; at least one, unless it is 0. */
unsigned tmk_eighths(uint64_t value, uint64_t whole, unsigned eighths);

#endif
