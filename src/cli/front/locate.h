/* SPDX-License-Identifier: MIT */
/* cli/front/locate.h - find the files that belong to the program: its library and its example. */
#ifndef TMK_CLI_FRONT_LOCATE_H
#define TMK_CLI_FRONT_LOCATE_H

/* Path of libtidemark.so: $TIDEMARK_LIB, or beside the program, in ../lib or ../lib/tidemark. The
 * caller's; NULL when it is nowhere. */
char *tmk_locate_library(void);

/* Path of a program that is installed beside this one; the caller's, NULL when it is not there. */
char *tmk_locate_program(const char *name);

/* Path of a program as execvp() would find it; the caller's, NULL: not found. */
char *tmk_locate_on_path(const char *name);

/* Folder of this program; the caller's. "." when it cannot be told. */
char *tmk_locate_here(void);

/* `path` made absolute, without slashes at its end; the caller's. */
char *tmk_absolute_path(const char *path);

#endif
