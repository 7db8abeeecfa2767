/* SPDX-License-Identifier: MIT */
/* interop/out/out.h - buffered output to a file in which single bytes can still be changed later.
 *
 * Some formats need at an event what only later events tell: a block's category is known when it
 * is freed. So a provisional byte is written, its place is kept with the live block, and it is
 * changed when the category is known: mostly in the buffer, which is large for that purpose, else
 * in the file. A file that is changed must be a plain one. Errors are remembered, and finish
 * returns them. */
#ifndef TMK_INTEROP_OUT_OUT_H
#define TMK_INTEROP_OUT_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { TMK_OUT_BUFFER_BYTES = 8 << 20 };

struct tmk_out {
    int fd; /* owned by the caller */
    uint8_t *buffer;
    size_t n;        /* in the buffer */
    uint64_t before; /* in the file already */
    int os_error;    /* 0: all went well */
};

/* Start writing at the file's beginning. Returns 0 or TMK_ENOMEM. fini takes a zeroed one. */
int tmk_out_init(struct tmk_out *o, int fd);
void tmk_out_fini(struct tmk_out *o);

void tmk_out_bytes(struct tmk_out *o, const void *bytes, size_t n);
/* Write the buffer out; called when it is full. */
void tmk_out_make_room(struct tmk_out *o);

static inline void tmk_out_byte(struct tmk_out *o, uint8_t byte)
{
    if (o->n == TMK_OUT_BUFFER_BYTES)
        tmk_out_make_room(o);
    o->buffer[o->n++] = byte;
}

/* The place of the next byte. */
static inline uint64_t tmk_out_place(const struct tmk_out *o)
{
    return o->before + o->n;
}

/* Change the byte at a place that was already written. */
void tmk_out_change(struct tmk_out *o, uint64_t place, uint8_t byte);

/* Write the rest. Returns 0 or TMK_EIO. */
int tmk_out_finish(struct tmk_out *o, struct tmk_error *err);

#endif
