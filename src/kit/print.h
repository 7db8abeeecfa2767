/* SPDX-License-Identifier: MIT */
/* kit/print.h - printf for people: foreign texts among the arguments can neither drive the terminal
 * nor begin a new line. */
#ifndef TMK_KIT_PRINT_H
#define TMK_KIT_PRINT_H

#include <stdarg.h>
#include <stdio.h>

/* Prints as fprintf does. Line ends of the format are line ends; every other control character,
 * line ends of arguments included, is shown as U+FFFD (kit/utf8.h), and so are bytes that are not
 * UTF-8. */
void tmk_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tmk_vprint(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

#endif
