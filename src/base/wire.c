/* SPDX-License-Identifier: MIT */
/* base/wire.c - see wire.h. */
#include "base/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"

int tmk_wire_write(int fd, const void *bytes, size_t n)
{
    const char *from = bytes;
    while (n > 0) {
        ssize_t sent = send(fd, from, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return TMK_EIO;
        from += sent;
        n -= (size_t)sent;
    }
    return 0;
}

int tmk_wire_read(int fd, void *bytes, size_t n)
{
    char *to = bytes;
    while (n > 0) {
        ssize_t got = recv(fd, to, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return TMK_EIO;
        to += got;
        n -= (size_t)got;
    }
    return 0;
}

int tmk_wire_send(int fd, enum tmk_wire_kind kind, const void *bytes, size_t n)
{
    struct tmk_wire_frame frame = {.kind = (uint32_t)kind, .n_bytes = (uint32_t)n};
    int rc = tmk_wire_write(fd, &frame, sizeof frame);
    return rc < 0 ? rc : tmk_wire_write(fd, bytes, n);
}
