/* SPDX-License-Identifier: MIT */
/* interop/out/out.c - see out.h. A full buffer writes out its older half, since recent bytes are
 * changed most often. */
#include "interop/out/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tmk_out_init(struct tmk_out *o, int fd)
{
    *o = (struct tmk_out){.fd = fd, .buffer = malloc(TMK_OUT_BUFFER_BYTES)};
    return o->buffer ? 0 : TMK_ENOMEM;
}

void tmk_out_fini(struct tmk_out *o)
{
    free(o->buffer);
    o->buffer = NULL;
}

/* Write the first n bytes of the buffer to the file. */
static void write_first_bytes(struct tmk_out *o, size_t n)
{
    size_t done = 0;
    while (done < n && o->os_error == 0) {
        ssize_t part = write(o->fd, o->buffer + done, n - done);
        if (part >= 0)
            done += (size_t)part;
        else if (errno != EINTR)
            o->os_error = errno;
    }
    memmove(o->buffer, o->buffer + n, o->n - n);
    o->n -= n;
    o->before += n;
}

void tmk_out_make_room(struct tmk_out *o)
{
    write_first_bytes(o, o->n < TMK_OUT_BUFFER_BYTES / 2 ? o->n : TMK_OUT_BUFFER_BYTES / 2);
}

void tmk_out_bytes(struct tmk_out *o, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;
    while (n > 0) {
        size_t part = TMK_OUT_BUFFER_BYTES - o->n < n ? TMK_OUT_BUFFER_BYTES - o->n : n;
        memcpy(o->buffer + o->n, from, part);
        o->n += part;
        from += part;
        n -= part;
        if (n > 0)
            tmk_out_make_room(o);
    }
}

void tmk_out_change(struct tmk_out *o, uint64_t place, uint8_t byte)
{
    if (place >= o->before) {
        o->buffer[place - o->before] = byte;
        return;
    }
    if (o->os_error == 0 && pwrite(o->fd, &byte, 1, (off_t)place) != 1)
        o->os_error = errno ? errno : EIO;
}

int tmk_out_finish(struct tmk_out *o, struct tmk_error *err)
{
    write_first_bytes(o, o->n);
    return o->os_error ? tmk_fail_os(err, TMK_EIO, o->os_error, "cannot write") : 0;
}
