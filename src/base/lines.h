/* SPDX-License-Identifier: MIT */
/* base/lines.h - texts of the kernel's small files: "NAME: value" lines, numbers. */
#ifndef TMK_BASE_LINES_H
#define TMK_BASE_LINES_H

#include <stdint.h>

/* What follows `name` at the start of a line, blanks left out; name has its colon or blank:
 * "NSpid:", "inactive_file ". "" when there is no such line. */
const char *tmk_lines_field(const char *text, const char *name);

/* The number that a text begins with; UINT64_MAX for what is none ("max"), and for those from 2^62
 * on, by which the kernel means that there is no limit. */
uint64_t tmk_lines_bytes(const char *text);

#endif
