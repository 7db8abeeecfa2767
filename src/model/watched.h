/* SPDX-License-Identifier: MIT */
/* model/watched.h - find the processes that are being watched now.
 *
 * A watched process has its ring mapped, and the ring says where its trace is. So /proc/PID/maps is
 * enough, and no list of watched processes has to be kept. A forked child has its parent's ring
 * mapped until it has events of its own, so the ring must also contain the process's own number. If
 * the process is in a container, `root` leads to its files. */
#ifndef TMK_MODEL_WATCHED_H
#define TMK_MODEL_WATCHED_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tmk_watched {
    uint32_t pid;          /* its number in our namespace */
    char root[32];         /* goes before paths of the process: "" or "/proc/PID/root" */
    char ring_path[4096];  /* with root */
    char trace_path[4096]; /* with root */
};

/* Find a watched process. 0, or TMK_EPROCESS with why not and what to do in *err: no such process,
 * another user's, not watched. */
int tmk_watched_find(uint32_t pid, struct tmk_watched *ret, struct tmk_error *err);

/* List all that this user may see (root: all), by PID. *ret_list is the caller's, for free(). 0 or
 * TMK_ENOMEM. */
int tmk_watched_list(struct tmk_watched **ret_list, uint32_t *ret_n, struct tmk_error *err);

/* Write the folder of the trace, as the process itself sees it, to `buffer`, cut to its size;
 * returns it. */
const char *tmk_watched_folder(const struct tmk_watched *w, char *buffer, size_t size);

/* This variable is set when the command is asked from another machine. Its value is the name that
 * the other machine has for this one (cli/remote/remote.h). */
#define TMK_WATCHED_HOST "TIDEMARK_ENDPOINT_HOST"

/* Return that name, NULL when the command is asked on this machine. */
const char *tmk_watched_host(void);

enum { TMK_WATCHED_NAME_BYTES = 300 };
/* Write how the user calls a process: 4242, or HOST:4242. Returns `buffer`. */
const char *tmk_watched_name(uint32_t pid, char buffer[TMK_WATCHED_NAME_BYTES]);

/* Parse a PID; 0: `text` is none. */
uint32_t tmk_watched_parse(const char *text);

#endif
