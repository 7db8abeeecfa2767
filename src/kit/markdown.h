/* SPDX-License-Identifier: MIT */
/* kit/markdown.h - texts of others in Markdown, as CommonMark and GitHub read it: they are shown,
 * and nothing else comes of them. */
#ifndef TMK_KIT_MARKDOWN_H
#define TMK_KIT_MARKDOWN_H

#include <stdbool.h>
#include <stdio.h>

/* `text` for one paragraph, entry of a list, heading or cell of a table. `begins_line`: no text of
 * ours stands before it. Line ends are blanks; characters that are not seen (kit/utf8.h) U+FFFD.
 * Blanks at the end are left out. */
void tmk_markdown_text(FILE *out, const char *text, bool begins_line);

#endif
