/* SPDX-License-Identifier: MIT */
/* cli/output/export_file.c - see export_file.h. */
#include "cli/output/export_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output/say.h"
#include "cli/output/unfinished.h"
#include "cli/output/xalloc.h"

enum { COPY_BYTES = 1 << 16 };

static int complain_of_export_file(const char *name, int reason)
{
    tmk_say("cannot write %s: %s", name, strerror(reason));
    return TMK_EXIT_FINDING;
}

static int open_scratch(struct tmk_export_file *f)
{
    const char *folder = getenv("TMPDIR");
    f->scratch = tmk_xformat("%s/tidemark-XXXXXX", folder && *folder ? folder : "/tmp");
    sigset_t before;
    tmk_unfinished_hold(&before);
    f->fd = mkostemp(f->scratch, O_CLOEXEC);
    int reason = errno;
    f->unfinished = f->fd < 0 ? -1 : tmk_unfinished_add(f->scratch);
    tmk_unfinished_release(&before);
    if (f->fd >= 0) {
        f->path = f->scratch;
        return 0;
    }
    int status = complain_of_export_file(f->scratch, reason);
    free(f->scratch);
    f->scratch = NULL;
    return status;
}

static int open_target(struct tmk_export_file *f, const char *path, bool is_named)
{
    return is_named ? tmk_output_file_open_named(&f->file, path)
                    : tmk_output_file_open(&f->file, path);
}

int tmk_export_file_open(struct tmk_export_file *f, const char *path, enum tmk_export_needs needs)
{
    *f = (struct tmk_export_file){.name = path, .is_stdout = strcmp(path, "-") == 0};
    int status = f->is_stdout ? 0 : open_target(f, path, needs == TMK_EXPORT_NAMED);
    if (status != 0)
        return status;
    if (f->is_stdout)
        f->name = "standard output";
    f->fd = f->is_stdout ? STDOUT_FILENO : f->file.fd;
    f->path = f->is_stdout ? NULL : f->file.target ? f->file.temporary : path;
    if (needs == TMK_EXPORT_ANY || (!f->is_stdout && f->file.target))
        return 0;
    status = open_scratch(f);
    if (status != 0 && !f->is_stdout)
        (void)tmk_output_file_close(&f->file, false);
    return status;
}

/* Write all bytes. Returns 0, or errno. */
static int write_all_of_export(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t part = write(fd, bytes, n);
        if (part < 0 && errno != EINTR)
            return errno;
        bytes += part > 0 ? part : 0;
        n -= part > 0 ? (size_t)part : 0;
    }
    return 0;
}

static int copy_scratch(const struct tmk_export_file *f)
{
    char buffer[COPY_BYTES];
    int to = f->is_stdout ? STDOUT_FILENO : f->file.fd;
    int reason = lseek(f->fd, 0, SEEK_SET) < 0 ? errno : 0;
    ssize_t n = 1;
    while (reason == 0 && n > 0) {
        n = read(f->fd, buffer, sizeof buffer);
        reason = n < 0 ? errno : write_all_of_export(to, buffer, (size_t)n);
    }
    return reason == 0 ? 0 : complain_of_export_file(f->name, reason);
}

int tmk_export_file_close(struct tmk_export_file *f, bool keep)
{
    int status = 0;
    if (f->scratch) {
        status = keep ? copy_scratch(f) : 0;
        close(f->fd);
        unlink(f->scratch);
        tmk_unfinished_drop(f->unfinished);
        free(f->scratch);
        f->scratch = NULL;
    }
    if (f->is_stdout)
        return status;
    int closed = tmk_output_file_close(&f->file, keep && status == 0);
    return status != 0 ? status : closed;
}
