/* SPDX-License-Identifier: MIT */
/* cli/output/source_line.h - the text of a line of the user's code, to show it beside its number.
 */
#ifndef TMK_CLI_OUTPUT_SOURCE_LINE_H
#define TMK_CLI_OUTPUT_SOURCE_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "cli/output/sheet.h"
#include "model/run.h"
#include "trace/defs.h"

enum { TMK_SOURCE_LINE_BYTES = 128 };

/* Write the text of a line of `p`'s code, without the spaces around it and cut to the buffer of
 * TMK_SOURCE_LINE_BYTES; returns it. NULL: the file is not here, is no source file, or was written
 * to after the process began, so that its lines may be others now. Only Python, C and C++ files are
 * read, since a trace may name any file. */
const char *tmk_source_line(const struct tmk_process *p, const struct tmk_frame *frame,
                            char *buffer);

/* The same for people: "(train.py has changed since)" where the file was written to. */
const char *tmk_source_text(const struct tmk_process *p, const struct tmk_frame *frame,
                            char *buffer);

/* The same for a table, which says once below it what has changed: adds the file's name to
 * `changed`, a list in TMK_CHANGED_FILES_BYTES that begins empty. */
enum { TMK_CHANGED_FILES_BYTES = 160 };
const char *tmk_source_cell(const struct tmk_process *p, const struct tmk_frame *frame,
                            char *buffer, char *changed);

/* As tmk_frame_text(), with the file's path as a person here finds it: below the current folder or
 * below the home folder ("~/train.py") where that is shorter, else its name and one folder. */
const char *tmk_frame_place_text(const struct tmk_frame *frame, char *buffer);

/* Say below the table that these files have changed; nothing when there are none. */
void tmk_source_changed_text(struct tmk_sheet *sheet, const char *changed);

/* Return the columns of a screen `width` wide that are left for lines of code beside cells of
 * `others` columns, and cut a line of code to them: a table would wrap it. The buffer has room for
 * four bytes more than the text. */
size_t tmk_source_columns(size_t others, size_t width);
const char *tmk_source_cut(char *text, size_t columns);

#endif
