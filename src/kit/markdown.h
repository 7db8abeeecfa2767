/* SPDX-License-Identifier: MIT */
/* kit/markdown.h - quoting for foreign texts in Markdown, as CommonMark and GitHub read it: a text
 * is shown and has no other effect. */
#ifndef TMK_KIT_MARKDOWN_H
#define TMK_KIT_MARKDOWN_H

#include <stdbool.h>
#include <stdio.h>

/* Writes `text` for one paragraph, entry of a list, heading or cell of a table. `begins_line`:
 * nothing stands before it on the line. Line ends become blanks, invisible characters (kit/utf8.h)
 * U+FFFD. Blanks at the end are left out. */
void tmk_markdown_text(FILE *out, const char *text, bool begins_line);

#endif
