/* SPDX-License-Identifier: MIT */
/* passes/diff/renamed_files.h - which file of one side is which of the other under a new name.
 *
 * A file that only one side has is the same as one that only the other has where most of their
 * functions, by name, are the same; the scripts that were started are compared like any other.
 * Only files that stacks of the compared blocks name are known, so a file counts by what it
 * allocated. */
#ifndef TMK_PASSES_DIFF_RENAMED_FILES_H
#define TMK_PASSES_DIFF_RENAMED_FILES_H

#include "kit/arena.h"
#include "passes/peak.h"

struct tmk_renamed_files { /* zero: none */
    const char **from;     /* names in B without their folder */
    const char **to;       /* and in A */
    uint32_t n;
};

/* The file without its installation folder, which differs from machine to machine. */
const char *tmk_short_file(const char *file);

/* Find them; what is found lives in `memory`. Returns 0 or TMK_ENOMEM. */
int tmk_renamed_files_find(struct tmk_peak *const peaks[2], struct tmk_arena *memory,
                           struct tmk_renamed_files *ret);
/* What A calls the file that B calls `file` (short); `file` itself where it has that name. */
const char *tmk_renamed_file(const struct tmk_renamed_files *r, const char *file);

#endif
