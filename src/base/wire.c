/* SPDX-License-Identifier: MIT */
/* base/wire.c - see wire.h. */
#include "base/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"

enum { CONNECT_S = 10 };

void tmk_wire_address(struct sockaddr_un *ret, int folder, const char *name)
{
    struct tmk_text text;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    tmk_text_init(&text, ret->sun_path, sizeof ret->sun_path);
    tmk_text_add(&text, "/proc/self/fd/%d/%s", folder, name);
}

int tmk_wire_connect(int folder, const char *name)
{
    struct sockaddr_un address;
    tmk_wire_address(&address, folder, name);
    const struct timeval patience = {.tv_sec = CONNECT_S}; /* for a listener whose queue is full */
    int fd = tmk_fd_raise(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

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
