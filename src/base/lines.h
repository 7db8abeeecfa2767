/* SPDX-License-Identifier: MIT */
/* base/lines.h - texts of the kernel's small files: "NAME: value" lines, numbers. */
#ifndef TMK_BASE_LINES_H
#define TMK_BASE_LINES_H

#include <stdint.h>

/* Finds the line that begins with `name` and returns the text after it, without blanks. `name`
 * includes its colon or blank: "NSpid:", "inactive_file ". Returns "" when there is no such line.
 */
const char *tmk_lines_field(const char *text, const char *name);

/* The number that a text begins with. UINT64_MAX stands for a text without a number ("max") and for
 * numbers from 2^62 on, which the kernel writes when there is no limit. */
uint64_t tmk_lines_bytes(const char *text);

#endif
