/* SPDX-License-Identifier: MIT */
/* cli/front/locate.h - finds the files that belong to the program: its library and its example. */
#ifndef TMK_CLI_FRONT_LOCATE_H
#define TMK_CLI_FRONT_LOCATE_H

/* Returns the path of libtidemark.so, the caller's: $TIDEMARK_LIB, or beside the program, in ../lib
 * or in ../lib/tidemark. NULL when it is nowhere. */
char *tmk_locate_library(void);

/* Returns the path of a program that is installed beside this one, the caller's; NULL when it is
 * not there. */
char *tmk_locate_program(const char *name);

/* Returns the path of a program as execvp() would find it, the caller's; NULL when it is not found.
 */
char *tmk_locate_on_path(const char *name);

/* Returns the folder of this program, the caller's; "." when it cannot be told. */
char *tmk_locate_here(void);

/* Returns `path` made absolute, without slashes at its end; the caller's. */
char *tmk_absolute_path(const char *path);

#endif
