/* SPDX-License-Identifier: MIT */
/* cli/run/private_folder.h - the folder for short-lived files that no other user may reach:
 * $XDG_RUNTIME_DIR, else /run/user/UID, else /tmp/tidemark-UID. The control sockets of watched
 * processes lie there, too (record/socket/control_socket.c). */
#ifndef TMK_CLI_RUN_PRIVATE_FOLDER_H
#define TMK_CLI_RUN_PRIVATE_FOLDER_H

#include <stddef.h>

/* Opens the first folder that belongs to this user, has mode 0700 and has a path that fits `size`
 * bytes; the path goes to `path`. Returns a descriptor (O_PATH), -1 when there is none. */
int tmk_private_folder_open(char *path, size_t size);

#endif
