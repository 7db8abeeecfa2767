/* SPDX-License-Identifier: MIT */
/* kit/wrap.h - where a text is broken when it is wider than its place. Width is counted in columns
 * of the terminal (kit/utf8.h).
 *
 *     while (*text) {
 *         size_t columns = tmk_wrap_line(text, width, &rest);
 *         tmk_utf8_fill(out, text, columns);
 *         text = rest;
 *     }
 *
 * It is for names: paths, modules, lines of code. They are broken behind / . _ : , and at spaces,
 * which are dropped there, and beside wide characters; anywhere when that does not help. Sentences
 * are broken by tmk_utf8_piece(). */
#ifndef TMK_KIT_WRAP_H
#define TMK_KIT_WRAP_H

#include <stddef.h>

/* Returns the columns of the next line of `text`, and in *ret_rest where the line after it begins.
 * `width` is at least 2. */
size_t tmk_wrap_line(const char *text, size_t width, const char **ret_rest);

#endif
