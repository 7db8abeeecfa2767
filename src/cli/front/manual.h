/* SPDX-License-Identifier: MIT */
/* cli/front/manual.h - the files that are installed beside the program: manual pages and
 * completions. */
#ifndef TMK_CLI_FRONT_MANUAL_H
#define TMK_CLI_FRONT_MANUAL_H

/* Write them all into a folder that exists. Returns 0, or an exit status after a message. The build
 * (share/meson.build) lists their names. */
int tmk_manual_write(const char *folder);

#endif
