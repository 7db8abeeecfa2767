/* SPDX-License-Identifier: MIT */
/* interop/pickle/feed.h - the bytes of a file, plain or gzip, through one buffer; to be read twice.
 *
 * A parser takes from `at` and, before it looks further than `end`, asks need() for what it wants.
 * Memory is the buffer: it grows only for a single thing that is larger than it, and only as far as
 * bytes really come, so a length that lies costs nothing. */
#ifndef TMK_INTEROP_PICKLE_FEED_H
#define TMK_INTEROP_PICKLE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    TMK_FEED_MAX_BYTES = 64 << 20, /* of one thing */
    /* A packed byte counts as so many at most: snapshots are packed to a seventh or less. */
    TMK_FEED_GZIP_TIMES = 16,
};

struct tmk_feed {
    const uint8_t *at;  /* the next byte */
    const uint8_t *end; /* of those that are here */

    /* Its own. */
    uint8_t *buffer;
    size_t room;
    uint64_t passed;    /* bytes before the buffer's first */
    uint64_t uncounted; /* those that pay for nothing; see counted_bytes() */
    bool is_over;       /* nothing comes after `end` */
    bool is_open;       /* `fd` is */
    bool no_limits;     /* the caller's: unpack whatever comes */
    int fd;
    uint64_t file_bytes, file_read; /* as the file lies on the disk */
    struct tmk_inflate *inflate;    /* NULL: plain */
    struct tmk_error error;         /* why need() failed */
};

/* `path` "-" is standard input, which is copied to a file without a name first. 0; TMK_ENOENT,
 * TMK_EFORMAT (no file), TMK_EIO, TMK_ENOMEM. fini takes a zeroed or half-made one. */
int tmk_feed_init(struct tmk_feed *f, const char *path, struct tmk_error *err);
void tmk_feed_fini(struct tmk_feed *f);

/* Bytes that limits are computed from: those before `at`, without the skipped ones and without what
 * uncount() was told. Packed bytes count as TMK_FEED_GZIP_TIMES their number at most. The size of
 * the file does not matter: nobody has to read what lies behind a pickle's end, or in a hole. */
uint64_t tmk_feed_counted_bytes(const struct tmk_feed *f);

/* `n` bytes that have been read, or are about to be, pay for nothing. */
static inline void tmk_feed_uncount(struct tmk_feed *f, uint64_t n)
{
    f->uncounted += n;
}

/* From the first byte again. */
int tmk_feed_rewind(struct tmk_feed *f, struct tmk_error *err);

/* At least `n` bytes at `at`: 1. 0: the file ends before. TMK_EIO, TMK_EDAMAGED (gzip), TMK_ENOMEM,
 * TMK_EFULL (n is too large, or the file unpacks to too much): `error` has the reason. Bytes before
 * `at` are lost. */
int tmk_feed_more(struct tmk_feed *f, size_t n);

static inline int tmk_feed_need(struct tmk_feed *f, size_t n)
{
    return (size_t)(f->end - f->at) >= n ? 1 : tmk_feed_more(f, n);
}

/* Pass over `n` bytes, however many, which do not count; results as of need(). A plain file is not
 * read there. */
int tmk_feed_skip(struct tmk_feed *f, uint64_t n);

/* Of `at`, in the unpacked bytes. */
static inline uint64_t tmk_feed_offset(const struct tmk_feed *f)
{
    return f->passed + (uint64_t)(f->at - f->buffer);
}

#endif
