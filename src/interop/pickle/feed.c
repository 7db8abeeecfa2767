/* SPDX-License-Identifier: MIT */
/* interop/pickle/feed.c - see feed.h. */
#include "interop/pickle/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "kit/amount.h"

enum {
    FIRST_ROOM = 1 << 18,
    PACKED_BYTES = 1 << 17,
    GZIP_WINDOW = 15 + 16,
    /* The limit of unpacking: this many times the packed bytes, and a little more. */
    UNPACKED_TIMES = 64,
    UNPACKED_LEAST_BYTES = 16 << 20,
};

struct tmk_inflate {
    z_stream stream;
    uint8_t packed[PACKED_BYTES];
    bool ended; /* a gzip member has ended; another may follow */
};

/* ---- the file ---- */

/* Standard input can be read only once. */
static int spool_input(struct tmk_error *err)
{
    FILE *copy = tmpfile();
    int fd = copy ? dup(fileno(copy)) : -1;
    if (copy)
        fclose(copy);
    if (fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot make a temporary file");
    uint8_t buffer[1 << 16];
    ssize_t n;
    while ((n = read(STDIN_FILENO, buffer, sizeof buffer)) > 0)
        for (ssize_t done = 0, now; done < n; done += now)
            if ((now = write(fd, buffer + done, (size_t)(n - done))) < 0) {
                int rc = tmk_fail_os(err, TMK_EIO, errno, "cannot keep a copy of standard input");
                close(fd);
                return rc;
            }
    if (n < 0) {
        int rc = tmk_fail_os(err, TMK_EIO, errno, "cannot read standard input");
        close(fd);
        return rc;
    }
    return fd;
}

static int open_feed_file(const char *path, struct tmk_error *err)
{
    if (strcmp(path, "-") == 0)
        return spool_input(err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tmk_fail_os(err, errno == ENOENT ? TMK_ENOENT : TMK_EIO, errno, "cannot be opened");
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return tmk_fail(err, TMK_EFORMAT, "this is a folder or a device, not a file");
}

static ssize_t read_feed_file(struct tmk_feed *f, void *to, size_t n)
{
    ssize_t got;
    do
        got = pread(f->fd, to, n, (off_t)f->file_read);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return tmk_fail_os(&f->error, TMK_EIO, errno, "cannot read the file");
    f->file_read += (uint64_t)got;
    return got;
}

/* ---- unpacking ---- */

static ssize_t inflate_bytes(struct tmk_feed *f, void *to, size_t n)
{
    struct tmk_inflate *z = f->inflate;
    z->stream.next_out = to;
    z->stream.avail_out = (uInt)n;
    while (z->stream.avail_out == n) {
        if (z->stream.avail_in == 0) {
            ssize_t got = read_feed_file(f, z->packed, sizeof z->packed);
            if (got < 0)
                return got;
            if (got == 0)
                return z->ended ? 0
                                : tmk_fail(&f->error, TMK_EDAMAGED,
                                           "the gzip file ends in the middle: it was cut");
            z->stream.next_in = z->packed;
            z->stream.avail_in = (uInt)got;
        }
        if (z->ended) /* zeros that pad the file are no further member */
            if (z->stream.next_in[0] == 0 || inflateReset(&z->stream) != Z_OK)
                return 0;
        int rc = inflate(&z->stream, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return tmk_fail(&f->error, TMK_EDAMAGED, "the gzip file is damaged: %s",
                            z->stream.msg ? z->stream.msg : "it makes no sense");
        z->ended = rc == Z_STREAM_END;
    }
    return (ssize_t)(n - z->stream.avail_out);
}

/* The packed bytes that have been unpacked. */
static uint64_t packed_bytes(const struct tmk_feed *f)
{
    return f->file_read - f->inflate->stream.avail_in;
}

/* Zeros pack to a thousandth: a file that unpacks to far more than a snapshot does is rejected. */
static int check_unpacked_bytes(struct tmk_feed *f)
{
    if (!f->inflate || f->no_limits)
        return 0;
    uint64_t unpacked = f->passed + (uint64_t)(f->end - f->buffer);
    char packed[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES];
    uint64_t most = UNPACKED_TIMES * packed_bytes(f) + UNPACKED_LEAST_BYTES;
    if (unpacked <= most)
        return 0;
    return tmk_fail(
        &f->error, TMK_EFULL,
        "the gzip file unpacks to more than %s, the limit for the %s read so far (docs/limits.md). "
        "Unpack it with gzip -d, or use --no-limits",
        tmk_size_text(most, limit), tmk_size_text(packed_bytes(f), packed));
}

static int begin_feed(struct tmk_feed *f, struct tmk_error *err)
{
    f->at = f->end = f->buffer;
    f->passed = f->file_read = f->uncounted = 0;
    f->is_over = false;
    if (!f->inflate)
        return 0;
    if (inflateReset(&f->inflate->stream) != Z_OK)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    f->inflate->stream.avail_in = 0;
    f->inflate->ended = false;
    return 0;
}

static int open_inflate(struct tmk_feed *f)
{
    f->inflate = calloc(1, sizeof *f->inflate);
    if (!f->inflate)
        return TMK_ENOMEM;
    if (inflateInit2(&f->inflate->stream, GZIP_WINDOW) == Z_OK)
        return 0;
    free(f->inflate);
    f->inflate = NULL;
    return TMK_ENOMEM;
}

/* ---- the interface ---- */

int tmk_feed_init(struct tmk_feed *f, const char *path, struct tmk_error *err)
{
    *f = (struct tmk_feed){.fd = open_feed_file(path, err)};
    if (f->fd < 0) {
        int rc = f->fd;
        f->fd = -1;
        return rc;
    }
    f->is_open = true;
    struct stat st;
    uint8_t magic[2] = {0};
    f->file_bytes = fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    f->buffer = malloc(FIRST_ROOM);
    f->room = FIRST_ROOM;
    bool is_gzip = pread(f->fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    if (!f->buffer || (is_gzip && open_inflate(f) < 0)) {
        tmk_feed_fini(f);
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    }
    return begin_feed(f, err);
}

void tmk_feed_fini(struct tmk_feed *f)
{
    if (f->is_open)
        close(f->fd);
    if (f->inflate)
        inflateEnd(&f->inflate->stream);
    free(f->inflate);
    free(f->buffer);
    *f = (struct tmk_feed){.fd = -1};
}

uint64_t tmk_feed_counted_bytes(const struct tmk_feed *f)
{
    uint64_t n = tmk_feed_offset(f);
    n = n > f->uncounted ? n - f->uncounted : 0;
    uint64_t most = f->inflate ? TMK_FEED_GZIP_TIMES * packed_bytes(f) : n;
    return n < most ? n : most;
}

int tmk_feed_rewind(struct tmk_feed *f, struct tmk_error *err)
{
    return begin_feed(f, err);
}

/* Make room after the remaining bytes, which move to the buffer's start. */
static int make_feed_room(struct tmk_feed *f, size_t n)
{
    size_t left = (size_t)(f->end - f->at);
    f->passed += (uint64_t)(f->at - f->buffer);
    memmove(f->buffer, f->at, left);
    if (n > f->room && left == f->room) {
        uint8_t *bigger = realloc(f->buffer, f->room * 2);
        if (!bigger)
            return tmk_fail(&f->error, TMK_ENOMEM, "out of memory");
        f->buffer = bigger;
        f->room *= 2;
    }
    f->at = f->buffer;
    f->end = f->buffer + left;
    return 0;
}

int tmk_feed_more(struct tmk_feed *f, size_t n)
{
    if (n > TMK_FEED_MAX_BYTES)
        return tmk_fail(&f->error, TMK_EFULL, "it has a text of %llu bytes", (unsigned long long)n);
    while ((size_t)(f->end - f->at) < n && !f->is_over) {
        int rc = make_feed_room(f, n);
        if (rc < 0)
            return rc;
        uint8_t *to = f->buffer + (f->end - f->buffer);
        size_t room = f->room - (size_t)(f->end - f->buffer);
        ssize_t got = f->inflate ? inflate_bytes(f, to, room) : read_feed_file(f, to, room);
        if (got < 0)
            return (int)got;
        f->is_over = got == 0;
        f->end += got;
        rc = check_unpacked_bytes(f);
        if (rc < 0)
            return rc;
    }
    return (size_t)(f->end - f->at) >= n;
}

/* Everything in the buffer has been passed: go on `n` bytes later. Returns 1, or 0: the file ends
 * before. */
static int seek_file_forward(struct tmk_feed *f, uint64_t n)
{
    uint64_t left = f->file_bytes > f->file_read ? f->file_bytes - f->file_read : 0;
    uint64_t now = n < left ? n : left;
    f->passed += (uint64_t)(f->end - f->buffer) + now;
    f->file_read += now;
    f->at = f->end = f->buffer;
    return now == n;
}

int tmk_feed_skip(struct tmk_feed *f, uint64_t n)
{
    tmk_feed_uncount(f, n);
    for (;;) {
        uint64_t here = (uint64_t)(f->end - f->at);
        uint64_t now = n < here ? n : here;
        f->at += now;
        n -= now;
        if (n == 0)
            return 1;
        if (!f->inflate)
            return seek_file_forward(f, n);
        int rc = tmk_feed_more(f, 1);
        if (rc <= 0)
            return rc;
    }
}
