/* SPDX-License-Identifier: MIT */
/* cli/answers/ask.c - see ask.h.
 *
 * The trace's header says where the socket is, in the process's own view of the file system. The
 * folder is opened and the socket reached through its descriptor, because an address has room for
 * 107 bytes only. The process that listens there must be the one asked for. */
#include "cli/answers/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/output/say.h"
#include "trace/reader.h"

/* The time that a process has for each part of an answer, beyond its own time limit: another
 * request may be before ours, and a trace takes a while to close. */
enum { PATIENCE_S = 40, FRAME_MAX_BYTES = 1 << 20 };

int tmk_ask_find(const char *text, struct tmk_watched *ret)
{
    struct tmk_error err = {0};
    uint32_t pid = tmk_watched_parse(text);
    if (pid == 0) {
        tmk_say("'%s' is not the PID of a process; the watched ones: tidemark ps", text);
        return TMK_EXIT_USAGE;
    }
    if (tmk_watched_find(pid, ret, &err) == 0)
        return 0;
    tmk_say("%s", err.text);
    return TMK_EXIT_FINDING;
}

/* ---- connecting ---- */

static int socket_path(const struct tmk_watched *w, char *path, size_t size, struct tmk_error *err)
{
    struct tmk_reader *reader = NULL;
    int rc = tmk_reader_open(w->trace_path, &reader, err);
    if (rc < 0)
        return rc;
    const char *control = tmk_reader_info(reader, "control");
    if (!control || *control != '/')
        rc = tmk_fail(err, TMK_EPROCESS,
                      "process %u takes no requests: it found no folder of its own for a socket; "
                      "set XDG_RUNTIME_DIR to one with mode 0700",
                      w->pid);
    else if ((size_t)snprintf(path, size, "%s%s", w->root, control) >= size)
        rc = tmk_fail(err, TMK_EPROCESS, "the path of the control socket is too long");
    tmk_reader_close(reader);
    return rc;
}

/* Connect through a descriptor of the socket's folder. -1 and errno when that fails. */
static int connect_to(const char *path)
{
    char folder_path[4096];
    const char *slash = strrchr(path, '/');
    snprintf(folder_path, sizeof folder_path, "%.*s", (int)(slash - path), path);
    int folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int fd = tmk_wire_connect(folder, slash + 1);
    int reason = errno;
    close(folder);
    errno = reason;
    return fd;
}

static int check_peer(int fd, const struct tmk_watched *w, struct tmk_error *err)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (uint32_t)peer.pid == w->pid)
        return 0;
    return tmk_fail(err, TMK_EPROCESS, "the control socket of process %u is another process's",
                    w->pid);
}

/* Open a connection. Returns it, or TMK_E*. */
static int open_connection(const struct tmk_watched *w, uint32_t timeout_ms, struct tmk_error *err)
{
    char path[4096];
    int rc = socket_path(w, path, sizeof path, err);
    if (rc < 0)
        return rc;
    int fd = connect_to(path);
    if (fd < 0)
        return tmk_fail_os(err, TMK_EPROCESS, errno, "cannot reach process %u at %s", w->pid, path);
    struct timeval patience = {.tv_sec = PATIENCE_S + timeout_ms / 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    rc = check_peer(fd, w, err);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

/* ---- talking ---- */

static int send_request(int fd, const struct tmk_ask *ask)
{
    struct tmk_wire_request request = {
        .magic = TMK_WIRE_MAGIC,
        .version = TMK_WIRE_VERSION,
        .verb = ask->verb,
        .flags = ask->flags,
        .timeout_ms = ask->timeout_ms,
        .n_bytes = (uint32_t)ask->n_code,
    };
    int rc = tmk_wire_write(fd, &request, sizeof request);
    return rc < 0 ? rc : tmk_wire_write(fd, ask->code, ask->n_code);
}

/* Hear all frames up to DONE. */
static int hear_answer(int fd, const struct tmk_ask *ask)
{
    char *buffer = malloc(FRAME_MAX_BYTES);
    struct tmk_wire_frame frame;
    int rc = buffer ? 0 : TMK_ENOMEM;
    while (rc == 0 && (rc = tmk_wire_read(fd, &frame, sizeof frame)) == 0) {
        if (frame.kind == TMK_WIRE_DONE)
            break;
        rc = frame.n_bytes > FRAME_MAX_BYTES ? TMK_EIO : tmk_wire_read(fd, buffer, frame.n_bytes);
        if (rc == 0)
            ask->hear(ask->arg, (enum tmk_wire_kind)frame.kind, buffer, frame.n_bytes);
    }
    free(buffer);
    return rc;
}

int tmk_ask(const struct tmk_watched *w, const struct tmk_ask *ask, struct tmk_error *err)
{
    int fd = open_connection(w, ask->timeout_ms, err);
    if (fd < 0)
        return fd;
    (void)send_request(fd, ask); /* a process that refuses us answers before it has read all */
    errno = 0;
    int rc = hear_answer(fd, ask);
    if (rc < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        rc = tmk_fail(err, TMK_EPROCESS,
                      "process %u does not answer: it is stopped, or busy with another request",
                      w->pid);
    else if (rc < 0)
        rc = tmk_fail(err, TMK_EPROCESS, "process %u ended before it had answered", w->pid);
    close(fd);
    return rc;
}
