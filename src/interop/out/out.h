/* SPDX-License-Identifier: MIT */
/* interop/out/out.h - bytes on their way into a file, the last of which can still be changed.
 *
 * Some formats want to know at an event what only later events tell: what a block is for is known
 * when it is freed. So a byte is written for the time being, its place is kept with the live block,
 * and it is changed when the time has come: mostly in the buffer, which is large for that, else in
 * the file. A file that is changed must be a plain one. Failing is remembered; finish says it. */
#ifndef TMK_INTEROP_OUT_OUT_H
#define TMK_INTEROP_OUT_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { TMK_OUT_BUFFER_BYTES = 8 << 20 };

struct tmk_out {
    int fd; /* the caller's */
    uint8_t *buffer;
    size_t n;        /* in the buffer */
    uint64_t before; /* in the file already */
    int os_error;    /* 0: all went well */
};

/* Writing starts at the file's beginning. 0 or TMK_ENOMEM. fini takes a zeroed one. */
int tmk_out_init(struct tmk_out *o, int fd);
void tmk_out_fini(struct tmk_out *o);

void tmk_out_bytes(struct tmk_out *o, const void *bytes, size_t n);
/* Called when the buffer is full. */
void tmk_out_make_room(struct tmk_out *o);

static inline void tmk_out_byte(struct tmk_out *o, uint8_t byte)
{
    if (o->n == TMK_OUT_BUFFER_BYTES)
        tmk_out_make_room(o);
    o->buffer[o->n++] = byte;
}

/* Where the next byte goes. */
static inline uint64_t tmk_out_place(const struct tmk_out *o)
{
    return o->before + o->n;
}

/* Change the byte at a place that was written. */
void tmk_out_change(struct tmk_out *o, uint64_t place, uint8_t byte);

/* Write what is left: 0, or TMK_EIO. */
int tmk_out_finish(struct tmk_out *o, struct tmk_error *err);

#endif
