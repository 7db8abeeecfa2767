/* SPDX-License-Identifier: MIT */
/* cli/output/html.h - texts of strangers on a page: text, never markup. */
#ifndef TMK_CLI_OUTPUT_HTML_H
#define TMK_CLI_OUTPUT_HTML_H

#include <stdio.h>

/* Between tags or inside a quoted attribute. What is not UTF-8 and control characters become
 * U+FFFD. */
void tmk_html_text(FILE *out, const char *text);
/* <p>, <h2>, <td>, ... with that text in it and a newline: `tag` may have attributes. */
void tmk_html_element(FILE *out, const char *tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
