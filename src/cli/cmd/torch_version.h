/* SPDX-License-Identifier: MIT */
/* cli/cmd/torch_version.h - finds which torch a Python has, without running it: torch/version.py is
 * read as text. Importing torch would take seconds, and would run foreign code. */
#ifndef TMK_CLI_CMD_TORCH_VERSION_H
#define TMK_CLI_CMD_TORCH_VERSION_H

#include <stdbool.h>

struct tmk_torch_version {
    char python[512]; /* the program whose torch it is; "": there is no Python */
    char version[64];
    char cuda[16]; /* "13.0"; "": built without */
    char hip[32];  /* ROCm's; "": built without */
};

/* Look at `python` (a path, or a name on PATH); NULL: at $VIRTUAL_ENV, $CONDA_PREFIX, or the first
 * python3 on PATH. False: there is no torch; `python` is filled in then too. */
bool tmk_torch_version_find(const char *python, struct tmk_torch_version *ret);

#endif
