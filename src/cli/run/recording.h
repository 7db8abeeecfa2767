/* SPDX-License-Identifier: MIT */
/* cli/run/recording.h - what commands that start a recording have in common: the library, the size,
 * the folder. Each complains for itself. */
#ifndef TMK_CLI_RUN_RECORDING_H
#define TMK_CLI_RUN_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/front/command.h"

/* Value of --max-size; *ret_bytes stays as it is when that was not given. False after a message. */
bool tmk_recording_max_size(const struct tmk_args *args, uint64_t *ret_bytes);

/* Path of libtidemark.so, which the loader shall take from LD_PRELOAD if `for_preload`; the
 * caller's. NULL after a message. */
char *tmk_recording_library(bool for_preload);

/* Value of --output, or a name made from that of the program, without slashes at its end, and such
 * that no command takes it for an option; the caller's. */
char *tmk_recording_name(const struct tmk_args *args, const char *program);
/* The same, and the folder's absolute path; both are claimed (run_folder.h). False after a
 * message. */
bool tmk_recording_claim(const struct tmk_args *args, const char *program, char **ret_name,
                         char **ret_folder);

#endif
