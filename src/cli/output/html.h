/* SPDX-License-Identifier: MIT */
/* cli/output/html.h - writes texts of strangers into a page as text, never as markup. */
#ifndef TMK_CLI_OUTPUT_HTML_H
#define TMK_CLI_OUTPUT_HTML_H

#include <stdio.h>

/* Write a text between tags or inside a quoted attribute. Bytes that are not UTF-8 and control
 * characters become U+FFFD. */
void tmk_html_text(FILE *out, const char *text);
/* Write an element such as <p> or <td> with that text in it, and a newline. `tag` may have
 * attributes. */
void tmk_html_element(FILE *out, const char *tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
