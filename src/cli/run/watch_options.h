/* SPDX-License-Identifier: MIT */
/* cli/run/watch_options.h - the options that say how to watch, shared by `run` and `env`. */
#ifndef TMK_CLI_RUN_WATCH_OPTIONS_H
#define TMK_CLI_RUN_WATCH_OPTIONS_H

#include "cli/front/command.h"
#include "cli/run/watch.h"

/* Rows for a command's table of options. */
#define TMK_WATCH_OPTIONS                                                                          \
    {"max-size", 0, "SIZE", NULL, "limit of each trace, e.g. 512MiB (2GiB)"},                      \
        {"ranks", 0, "LIST", NULL, "these ranks only, e.g. 0,8-15 (all)"},                         \
        {"cpu-tensors", 0, NULL, NULL, "CPU tensors too, even when a GPU is in use"},              \
        {"native", 0, NULL, NULL, "C and C++ frames in stacks"}, TMK_WATCH_LESS

/* The rows that `attach` has too. */
#define TMK_WATCH_LESS                                                                             \
    {"step-at", 0, "FILE:LINE", NULL, "start a step at this line of Python (3.12+)"},              \
        {"no-stacks", 0, NULL, NULL, "no stacks of torch's blocks"},                               \
        {"no-modules", 0, NULL, NULL, "no modules of torch's blocks"},                             \
    {                                                                                              \
        "no-categories", 0, NULL, NULL, "no names of parameters, gradients, optimizer state"       \
    }

/* The place of --step-at in *ret, NULL without the option. False after a message. */
bool tmk_watch_step_at(const struct tmk_args *args, const char **ret);
/* Read them into *ret, and find the library; its path is the caller's. The rest of *ret is left
 * alone. Returns 0, or an exit status after a message. */
int tmk_watch_options_read(const struct tmk_args *args, struct tmk_watch *ret);

#endif
