/* SPDX-License-Identifier: MIT */
/* interop/pickle/feed.h - the bytes of a file, plain or gzip, through one buffer; they can be
 * read twice.
 *
 * A parser takes bytes from `at` and, before it looks further than `end`, asks need() for as many
 * as it wants. Memory is the buffer: it grows only for a single item that is larger than it, and
 * only as far as bytes really come, so a false length costs nothing. */
#ifndef TMK_INTEROP_PICKLE_FEED_H
#define TMK_INTEROP_PICKLE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    TMK_FEED_MAX_BYTES = 64 << 20, /* of one item */
    /* A packed byte counts as at most this many: snapshots are packed to a seventh or less. */
    TMK_FEED_GZIP_TIMES = 16,
};

struct tmk_feed {
    const uint8_t *at;  /* the next byte */
    const uint8_t *end; /* the end of the bytes that are here */

    /* Private to the feed. */
    uint8_t *buffer;
    size_t room;
    uint64_t passed;    /* bytes before the buffer's first */
    uint64_t uncounted; /* bytes that do not raise the limit; see counted_bytes() */
    bool is_over;       /* nothing comes after `end` */
    bool is_open;       /* `fd` is */
    bool no_limits;     /* set by the caller: unpack any amount */
    int fd;
    uint64_t file_bytes, file_read; /* size on disk */
    struct tmk_inflate *inflate;    /* NULL: plain */
    struct tmk_error error;         /* why need() failed */
};

/* Open `path`; "-" is standard input, which is copied to an unnamed file first. Returns 0,
 * TMK_ENOENT, TMK_EFORMAT (no file), TMK_EIO or TMK_ENOMEM. fini takes a zeroed or half-made one.
 */
int tmk_feed_init(struct tmk_feed *f, const char *path, struct tmk_error *err);
void tmk_feed_fini(struct tmk_feed *f);

/* The bytes from which limits are computed: those before `at`, without the skipped ones and those
 * passed to uncount(). Packed bytes count as at most TMK_FEED_GZIP_TIMES their number. The size
 * of the file does not count: nobody has to read what lies after a pickle's end, or in a hole. */
uint64_t tmk_feed_counted_bytes(const struct tmk_feed *f);

/* `n` bytes that have been read, or are about to be, do not raise the limit. */
static inline void tmk_feed_uncount(struct tmk_feed *f, uint64_t n)
{
    f->uncounted += n;
}

/* Start again at the first byte. */
int tmk_feed_rewind(struct tmk_feed *f, struct tmk_error *err);

/* Make at least `n` bytes available at `at`. Returns 1; 0: the file ends before; TMK_EIO,
 * TMK_EDAMAGED (gzip), TMK_ENOMEM, or TMK_EFULL (n is too large, or the file unpacks to too
 * much), with the reason in `error`. Bytes before `at` are lost. */
int tmk_feed_more(struct tmk_feed *f, size_t n);

static inline int tmk_feed_need(struct tmk_feed *f, size_t n)
{
    return (size_t)(f->end - f->at) >= n ? 1 : tmk_feed_more(f, n);
}

/* Skip `n` bytes, however many; they do not count. Results are those of need(). A plain file is
 * not read there. */
int tmk_feed_skip(struct tmk_feed *f, uint64_t n);

/* The offset of `at` in the unpacked bytes. */
static inline uint64_t tmk_feed_offset(const struct tmk_feed *f)
{
    return f->passed + (uint64_t)(f->at - f->buffer);
}

#endif
