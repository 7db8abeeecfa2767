/* SPDX-License-Identifier: MIT */
/* cli/output/output_file.h - a file that is there whole or not at all.
 *
 *     struct tmk_output_file o;
 *     if ((status = tmk_output_file_open(&o, path)) != 0)
 *         return status;
 *     ... write to o.fd ...
 *     status = tmk_output_file_close(&o, good);
 *
 * What is written goes to a temporary file in the same folder, which takes its place at the end; so
 * a file of before is kept until then, and when something fails or a signal ends us. The temporary
 * file has no name where the file system can do that, else one that goes with us (unfinished.h).
 * What is no plain file (/dev/stdout, a FIFO), or stands in a folder that takes no new files, is
 * written straight. */
#ifndef TMK_CLI_OUTPUT_OUTPUT_FILE_H
#define TMK_CLI_OUTPUT_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct tmk_output_file {
    const char *path; /* borrowed; as messages call it */
    char *target;     /* what links lead to; NULL: written straight */
    char *temporary;  /* NULL: it has no name */
    int fd;
    int unfinished; /* number of `temporary` there */
};

/* Check whether `path` could be written; makes nothing. 0, or an exit status after a message. */
int tmk_output_file_check(const char *path);
/* Open it. 0, or an exit status after a message, and then there is nothing to close. */
int tmk_output_file_open(struct tmk_output_file *o, const char *path);
/* Open it such that what is written has a name: `temporary` or, where there is no `target`, `path`.
 */
int tmk_output_file_open_named(struct tmk_output_file *o, const char *path);
/* Close it. `keep` false: as if it had never been opened; then the result is always 0, else 0 or an
 * exit status after a message. */
int tmk_output_file_close(struct tmk_output_file *o, bool keep);

/* Open, let `write_to` write, and close. 0, or an exit status after a message. */
int tmk_output_file_write(const char *path, void write_to(FILE *out, const void *arg),
                          const void *arg);

#endif
