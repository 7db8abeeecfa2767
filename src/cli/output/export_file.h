/* SPDX-License-Identifier: MIT */
/* cli/output/export_file.h - where an export goes: a file that is there whole or not at all
 * (output_file.h), or standard output. Formats that change what they wrote need a plain file, and
 * SQLite needs one with a name. Where the target is no such file (a pipe), one is made and copied
 * at the end. */
#ifndef TMK_CLI_OUTPUT_EXPORT_FILE_H
#define TMK_CLI_OUTPUT_EXPORT_FILE_H

#include "cli/output/output_file.h"

enum tmk_export_needs { TMK_EXPORT_ANY, TMK_EXPORT_PLAIN, TMK_EXPORT_NAMED };

struct tmk_export_file {
    const char *name; /* as messages call it; borrowed */
    int fd;           /* to be written to */
    const char *path; /* of what is written to; NULL: it has none */

    bool is_stdout;
    struct tmk_output_file file; /* unless is_stdout */
    char *scratch;               /* path of the plain file; NULL: none was needed */
    int unfinished;              /* number of that (unfinished.h) */
};

/* `path` "-": standard output. 0, or an exit status after a message and nothing to close. */
int tmk_export_file_open(struct tmk_export_file *f, const char *path, enum tmk_export_needs needs);
/* `keep` false: as if it had never been opened. 0, or an exit status after a message. */
int tmk_export_file_close(struct tmk_export_file *f, bool keep);

#endif
