/* SPDX-License-Identifier: MIT */
/* cli/run_folder.h - the name of a new run's folder, and making way for it. The folder itself is
 * made by the recorder, at the first event. */
#ifndef TMK_CLI_RUN_FOLDER_H
#define TMK_CLI_RUN_FOLDER_H

#include <stdbool.h>

/* "PROGRAM-YYYYMMDD-hhmmss.tmk", not taken yet; the caller's. */
char *tmk_run_folder_name(const char *program);

/* What is at `folder` already is moved to the first free of `folder`.1, .2 ... and that is said
 * (of `name`, as the user wrote it). False after a message. */
bool tmk_run_folder_clear(const char *folder, const char *name);

#endif
