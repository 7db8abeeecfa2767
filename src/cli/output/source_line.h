/* SPDX-License-Identifier: MIT */
/* cli/output/source_line.h - the text of a line of the user's code, to show it beside its number.
 */
#ifndef TMK_CLI_OUTPUT_SOURCE_LINE_H
#define TMK_CLI_OUTPUT_SOURCE_LINE_H

#include <stdint.h>

enum { TMK_SOURCE_LINE_BYTES = 128 };

/* Write the text of a line, without the spaces around it and cut to the buffer of
 * TMK_SOURCE_LINE_BYTES; returns it. NULL: the file is not here, or is no source file. Only Python,
 * C and C++ files are read, since a trace may name any file. */
const char *tmk_source_line(const char *file, uint32_t line, char *buffer);

#endif
