/* SPDX-License-Identifier: MIT */
/* interop/torch/spool.c - see spool.h. */
#include "interop/torch/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_RECORDS = 4096 };

struct tmk_spool {
    int fd;
    uint32_t record_bytes;
    uint64_t n;     /* records appended */
    uint64_t n_out; /* of these, written to the file */
    uint64_t next;  /* number of the record at buffer[at] */
    uint32_t at, n_buffered;
    uint8_t *buffer; /* of records being appended, later of records being read */
};

int tmk_spool_open(const char *folder, uint32_t record_bytes, struct tmk_spool **ret_spool,
                   struct tmk_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/.tidemark-import-XXXXXX", folder) >= (int)sizeof path)
        return tmk_fail(err, TMK_EIO, "the name of the folder %s is too long", folder);
    struct tmk_spool *s = calloc(1, sizeof *s);
    uint8_t *buffer = malloc((size_t)BUFFER_RECORDS * record_bytes);
    int fd = s && buffer ? mkostemp(path, O_CLOEXEC) : -1;
    if (fd < 0) {
        int reason = errno;
        bool no_memory = !s || !buffer;
        free(s);
        free(buffer);
        return no_memory ? tmk_fail(err, TMK_ENOMEM, "out of memory")
                         : tmk_fail_os(err, TMK_EIO, reason, "cannot make a temporary file in %s",
                                       folder);
    }
    unlink(path);
    *s = (struct tmk_spool){.fd = fd, .record_bytes = record_bytes, .buffer = buffer};
    *ret_spool = s;
    return 0;
}

struct tmk_spool *tmk_spool_close(struct tmk_spool *s)
{
    if (s) {
        close(s->fd);
        free(s->buffer);
        free(s);
    }
    return NULL;
}

/* ---- putting ---- */

static int write_buffer_out(struct tmk_spool *s, struct tmk_error *err)
{
    size_t n = (size_t)(s->n - s->n_out) * s->record_bytes;
    off_t offset = (off_t)(s->n_out * s->record_bytes);
    for (size_t done = 0; done < n;) {
        ssize_t now = pwrite(s->fd, s->buffer + done, n - done, offset + (off_t)done);
        if (now < 0 && errno != EINTR)
            return tmk_fail_os(err, TMK_EIO, errno, "cannot write a temporary file");
        done += now > 0 ? (size_t)now : 0;
    }
    s->n_out = s->n;
    return 0;
}

int tmk_spool_put(struct tmk_spool *s, const void *record, struct tmk_error *err)
{
    if (s->n - s->n_out == BUFFER_RECORDS) {
        int rc = write_buffer_out(s, err);
        if (rc < 0)
            return rc;
    }
    memcpy(s->buffer + (size_t)(s->n - s->n_out) * s->record_bytes, record, s->record_bytes);
    s->n++;
    return 0;
}

/* ---- reading ---- */

int tmk_spool_rewind(struct tmk_spool *s, struct tmk_error *err)
{
    int rc = s->n_out < s->n ? write_buffer_out(s, err) : 0;
    s->next = 0;
    s->at = s->n_buffered = 0;
    return rc;
}

/* Move the rest to the front, and read as many more as there is room for. */
static int refill_buffer(struct tmk_spool *s, struct tmk_error *err)
{
    uint32_t left = s->n_buffered - s->at;
    memmove(s->buffer, s->buffer + (size_t)s->at * s->record_bytes, (size_t)left * s->record_bytes);
    uint64_t more = s->n - s->next - left;
    more = more < BUFFER_RECORDS - left ? more : BUFFER_RECORDS - left;
    size_t n = (size_t)more * s->record_bytes;
    uint8_t *to = s->buffer + (size_t)left * s->record_bytes;
    off_t offset = (off_t)((s->next + left) * s->record_bytes);
    for (size_t done = 0; done < n;) {
        ssize_t now = pread(s->fd, to + done, n - done, offset + (off_t)done);
        if (now == 0 || (now < 0 && errno != EINTR))
            return tmk_fail_os(err, TMK_EIO, now ? errno : EIO, "cannot read a temporary file");
        done += now > 0 ? (size_t)now : 0;
    }
    s->at = 0;
    s->n_buffered = left + (uint32_t)more;
    return 0;
}

int tmk_spool_peek(struct tmk_spool *s, unsigned ahead, const void **ret, struct tmk_error *err)
{
    if (s->next + ahead >= s->n)
        return 0;
    if (s->at + ahead >= s->n_buffered) {
        int rc = refill_buffer(s, err);
        if (rc < 0)
            return rc;
    }
    *ret = s->buffer + (size_t)(s->at + ahead) * s->record_bytes;
    return 1;
}

void tmk_spool_take(struct tmk_spool *s)
{
    s->at++;
    s->next++;
}
