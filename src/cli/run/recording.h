/* SPDX-License-Identifier: MIT */
/* cli/run/recording.h - what commands that start a recording have in common: the library, the size,
 * the folder. Each complains for itself. */
#ifndef TMK_CLI_RUN_RECORDING_H
#define TMK_CLI_RUN_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/front/command.h"

/* Read --max-size; *ret_bytes stays as it is when the option was not given. False after a message.
 */
bool tmk_recording_max_size(const struct tmk_args *args, uint64_t *ret_bytes);

/* Returns the path of libtidemark.so, the caller's; NULL after a message. `for_preload`: the loader
 * will take it from LD_PRELOAD, so the path must fit that. */
char *tmk_recording_library(bool for_preload);

/* Returns the value of --output, or a name made from the program's name; the caller's. It has no
 * slash at its end, and no command takes it for an option. */
char *tmk_recording_name(const struct tmk_args *args, const char *program);
/* Find the same name and the folder's absolute path, and claim both (run_folder.h). False after a
 * message. */
bool tmk_recording_claim(const struct tmk_args *args, const char *program, char **ret_name,
                         char **ret_folder);

#endif
