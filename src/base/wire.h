/* SPDX-License-Identifier: MIT */
/* base/wire.h - the protocol between a watched process and tidemark's commands on the control
 * socket.
 *
 * It is a Unix stream socket with both ends on one machine, so numbers are as the machine has them:
 *
 *     we:       struct tmk_wire_request, then n_bytes of Python code (eval only)
 *     process:  struct tmk_wire_frame, then n_bytes; again and again; the last one is DONE
 *
 * Then the process closes the connection: a connection is one request. Texts are UTF-8, in frames
 * cut anywhere. A process that speaks another version answers FAIL with a sentence, so the layout
 * of request and frame may never change. */
#ifndef TMK_BASE_WIRE_H
#define TMK_BASE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define TMK_WIRE_MAGIC 0x444b4d54u /* "TMKD" */

enum { TMK_WIRE_VERSION = 1 };

enum {
    TMK_WIRE_CODE_MAX = 1 << 20,
    TMK_WIRE_OUTPUT_MAX = 16 << 20, /* of one eval, all frames together */
};

enum tmk_wire_verb { TMK_WIRE_PING = 1, TMK_WIRE_EVAL = 2, TMK_WIRE_DETACH = 3 };

enum tmk_wire_flag { TMK_WIRE_ON_MAIN = 1 }; /* eval: on the main thread */

struct tmk_wire_request {
    uint32_t magic;
    uint32_t version;
    uint32_t verb;
    uint32_t flags;
    uint32_t timeout_ms; /* eval */
    uint32_t n_bytes;
};

enum tmk_wire_kind {
    TMK_WIRE_STDOUT = 1, /* printed by the code */
    TMK_WIRE_STDERR = 2,
    TMK_WIRE_VALUE = 3, /* repr of the last expression */
    TMK_WIRE_ERROR = 4, /* an exception's traceback */
    TMK_WIRE_FAIL = 5,  /* a sentence: why it was not done, or not to its end */
    TMK_WIRE_NOTE = 6,  /* a sentence beside */
    TMK_WIRE_TEXT = 7,  /* the answer of ping and detach */
    TMK_WIRE_DONE = 8,
};

struct tmk_wire_frame {
    uint32_t kind;
    uint32_t n_bytes;
};

_Static_assert(sizeof(struct tmk_wire_request) == 24 && sizeof(struct tmk_wire_frame) == 8,
               "the layout may not change");

/* Makes the address of socket `name` in the folder that is open as `folder`: a path may be too long
 * for an address, and the folder that was checked is the one that is used. */
struct sockaddr_un;
void tmk_wire_address(struct sockaddr_un *ret, int folder, const char *name);
/* Connects to the socket. Returns the descriptor, or -1 and errno; ECONNREFUSED: the process that
 * made the socket is gone. */
int tmk_wire_connect(int folder, const char *name);

/* Writes or reads all of `n` bytes. Returns 0, or TMK_EIO: the other end is gone, or did not take
 * or give them before the socket's own time limit. Never raises SIGPIPE. */
int tmk_wire_write(int fd, const void *bytes, size_t n);
int tmk_wire_read(int fd, void *bytes, size_t n);

/* Sends one frame. Returns 0 or TMK_EIO. */
int tmk_wire_send(int fd, enum tmk_wire_kind kind, const void *bytes, size_t n);

#endif
