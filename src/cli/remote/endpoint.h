/* SPDX-License-Identifier: MIT */
/* cli/remote/endpoint.h - a process on another machine, as people write it: HOST:PID, USER@HOST:PID
 * or, for an IPv6 address, [ADDRESS]:PID.
 *
 * HOST is what `ssh HOST` takes, aliases of ~/.ssh/config included; a port belongs there. A file of
 * that name comes first, and a name with a slash is always a file. */
#ifndef TMK_CLI_REMOTE_ENDPOINT_H
#define TMK_CLI_REMOTE_ENDPOINT_H

#include <stdint.h>

#include "base/error.h"

enum { TMK_HOST_BYTES = 256 };

struct tmk_endpoint {
    char host[TMK_HOST_BYTES]; /* with the user, without brackets: one word for ssh */
    uint32_t pid;
};

/* Returns 1 when `text` is an endpoint; 0 when it is something else, such as a run or a PID here;
 * TMK_EINVAL when it can only be meant as one, with what is wrong in *err. */
int tmk_endpoint_parse(const char *text, struct tmk_endpoint *ret, struct tmk_error *err);

/* Takes the name of a machine. 0, or TMK_EINVAL when ssh could take it for something else. */
int tmk_endpoint_host(const char *text, char ret[TMK_HOST_BYTES], struct tmk_error *err);

#endif
