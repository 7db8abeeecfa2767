/* SPDX-License-Identifier: MIT */
/* cli/output/source_line.h - the text of a line of the user's code, to show it beside its number.
 */
#ifndef TMK_CLI_OUTPUT_SOURCE_LINE_H
#define TMK_CLI_OUTPUT_SOURCE_LINE_H

#include <stdint.h>

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

#endif
