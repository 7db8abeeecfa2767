/* SPDX-License-Identifier: MIT */
/* record/socket/control_socket.h - the control socket: how our commands reach a watched process.
 *
 * It is RUNTIME/tidemark.PID.sock. RUNTIME is $XDG_RUNTIME_DIR, else /run/user/UID, else
 * /dev/shm/tidemark-UID, else /tmp/tidemark-UID. Only a folder that is ours alone will do; without
 * one there is no socket. /tmp comes last because it may be on a disk, where files that come and go
 * by the hundred, with as many children, make all others slower to create. The socket has mode 0600
 * before it has a name, and clients must be the same user or root. base/wire.h is the protocol.
 *
 * One thread serves one request after the other. A client has a few seconds to send its request and
 * to take each part of the answer; an eval has its own time limit. So nobody can hold the socket
 * for ever. A forked child has no socket until it has a trace of its own. */
#ifndef TMK_RECORD_CONTROL_SOCKET_H
#define TMK_RECORD_CONTROL_SOCKET_H

#include "base/text.h"

/* Make the socket; its path goes to `ret_path`. 0, or TMK_E*: there is none. Clients that come
 * before it is served wait. */
int tmk_control_socket_open(struct tmk_text *ret_path);

/* Let the calling thread leave the program's table of descriptors (base/fd.h), keeping only the
 * socket, by which it will close it. False: it still has the program's table. */
bool tmk_control_socket_keep_only(void);

/* Start the thread. ping answers with `trace_path`, which is copied. */
void tmk_control_socket_serve(const char *trace_path);

/* Remove the socket's name and let the thread end after its current request. For the packer thread;
 * does nothing when the socket is not open. */
void tmk_control_socket_close(void);

/* How many threads serve requests at this moment. */
unsigned tmk_control_socket_n_threads(void);

#endif
