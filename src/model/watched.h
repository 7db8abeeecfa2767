/* SPDX-License-Identifier: MIT */
/* model/watched.h - the processes that are being watched now.
 *
 * A watched process has its ring mapped, and the ring says where its trace is: so /proc/PID/maps is
 * all that is needed, and nothing has to be kept of who is watched. A forked child has its parent's
 * ring mapped until it has events of its own, so the ring must say the process's own number too.
 * The process may be in a container: `root` then leads to its files. */
#ifndef TMK_MODEL_WATCHED_H
#define TMK_MODEL_WATCHED_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tmk_watched {
    uint32_t pid;          /* as we see it */
    char root[32];         /* goes before paths of the process: "" or "/proc/PID/root" */
    char ring_path[4096];  /* with root */
    char trace_path[4096]; /* with root */
};

/* 0, or TMK_EPROCESS and in *err why not and what to do: no such process, another user's, not
 * watched. */
int tmk_watched_find(uint32_t pid, struct tmk_watched *ret, struct tmk_error *err);

/* All that this user may see (root: all), by PID. *ret_list is the caller's, for free(). 0 or
 * TMK_ENOMEM. */
int tmk_watched_list(struct tmk_watched **ret_list, uint32_t *ret_n, struct tmk_error *err);

/* The folder of its trace, as the process itself would say it; returns `buffer`, cut to its size.
 */
const char *tmk_watched_folder(const struct tmk_watched *w, char *buffer, size_t size);

/* The PID that `text` is, 0 when it is none. */
uint32_t tmk_watched_parse(const char *text);

#endif
