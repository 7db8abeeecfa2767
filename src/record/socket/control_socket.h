/* SPDX-License-Identifier: MIT */
/* record/socket/control_socket.h - the control socket: how our commands reach a watched process.
 *
 * RUNTIME/tidemark.PID.sock, where RUNTIME is $XDG_RUNTIME_DIR, else /run/user/UID, else
 * /dev/shm/tidemark-UID, else /tmp/tidemark-UID; only a folder that is ours alone will do, else
 * there is no door. /tmp is the last because it may be on a disk, where files that come and go by
 * the hundred, with as many children, make all others slower to create. The socket has mode 0600
 * before it has a name, and who connects must be the same user or root. base/wire.h says what is
 * spoken.
 *
 * One thread of its own serves one request after the other. A client has a few seconds to say what
 * it wants and to take each part of the answer; an eval has its own time limit. So nobody can hold
 * the door for ever. A forked child has no door until it has a trace of its own. */
#ifndef TMK_RECORD_CONTROL_SOCKET_H
#define TMK_RECORD_CONTROL_SOCKET_H

#include "base/text.h"

/* Make the socket; its path goes to `ret_path`. 0 or TMK_E*: there is none. Who comes already has
 * to wait until it is served. */
int tmk_control_socket_open(struct tmk_text *ret_path);

/* The calling thread leaves the program's table of descriptors (base/fd.h), with nothing but the
 * socket, by which it will close the door. False: it has the program's still. */
bool tmk_control_socket_keep_only(void);

/* Start the thread. `trace_path` is what ping says; it is copied. */
void tmk_control_socket_serve(const char *trace_path);

/* Remove the socket's name and let the thread end, after the request that it is at. For the packer
 * thread; takes a door that is not open. */
void tmk_control_socket_close(void);

/* How many threads serve requests at this moment. */
unsigned tmk_control_socket_n_threads(void);

#endif
