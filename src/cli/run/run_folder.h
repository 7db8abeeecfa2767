/* SPDX-License-Identifier: MIT */
/* cli/run/run_folder.h - the name of a new run's folder, and making way for it. The folder itself
 * is made by the recorder, at the first event.
 *
 * What may be there already, and what becomes of it:
 *
 *   nothing                       the name is ours while the command runs (run_lock.h)
 *   an empty folder of this user  is recorded into, where it is
 *   an ended run of this user     is moved to NAME.1, NAME.2 ...
 *   a living run                  is left alone: the command is refused
 *   anything else                 the same */
#ifndef TMK_CLI_RUN_RUN_FOLDER_H
#define TMK_CLI_RUN_RUN_FOLDER_H

#include <stdbool.h>

/* "PROGRAM-YYYYMMDD-hhmmss.tmk", not taken yet; the caller's. */
char *tmk_run_folder_name(const char *program);

/* Make `folder`, an absolute path, ours until tmk_run_folder_release(): nobody else's run, and
 * nothing of anybody's at it. Messages call it `name`, as the user wrote it. False after one. */
bool tmk_run_folder_claim(const char *folder, const char *name);
/* Claim likewise a name that is made from the program's and that nobody has taken. Name and path
 * are the caller's. */
bool tmk_run_folder_claim_new(const char *program, char **ret_name, char **ret_folder);
/* Returns whether the folder claimed last was there, empty. Such a folder is the user's and stays,
 * whatever is recorded. */
bool tmk_run_folder_was_there(void);
/* Give the name up. Safe in a handler. */
void tmk_run_folder_release(void);

#endif
