/* SPDX-License-Identifier: MIT */
/* cli/front/version.h - what this program is: its version, and what it was built with and for. */
#ifndef TMK_CLI_FRONT_VERSION_H
#define TMK_CLI_FRONT_VERSION_H

#include <stdbool.h>
#include <stdio.h>

/* The commit that was built, "-dirty" behind it when files had been changed; "": not known. The
 * build writes it (meson.build). */
extern const char tmk_version_commit[];

/* Write it, a line each, the name and version first; or as one object of JSON. */
void tmk_version_write(FILE *out, bool as_json);

#endif
