/* SPDX-License-Identifier: MIT */
/* base/filters.h - the seccomp filters that a process has, and whether a recorder may work under
 * them.
 *
 * Filters cannot be read, only counted. Most filters are harmless: those of Docker, podman and
 * Kubernetes answer with an error. Others kill. A filter is known to be harmless in two cases:
 * `tidemark run` or `attach` runs under the same filter and has tried it, or Docker or podman gives
 * it to all processes of the container. */
#ifndef TMK_BASE_FILTERS_H
#define TMK_BASE_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

/* The variable that says whether filters are safe. A user sets it to "trust": record under any
 * filter. `run` sets it to the number of filters that it has tried, or to "refuse" when trying them
 * failed. */
#define TMK_FILTERS_VARIABLE "TIDEMARK_SECCOMP"
#define TMK_FILTERS_TRUST "trust"
#define TMK_FILTERS_REFUSE "refuse"
enum { TMK_FILTERS_SAID_BYTES = 24 };

/* The variable that names a file. A program that is not recorded because of its filters opens this
 * file for reading and closes it: so `run` learns of it (cli/run/refusal_watch.h). */
#define TMK_REFUSALS_VARIABLE "TIDEMARK_REFUSALS"

struct tmk_filters {
    uint64_t n; /* 0: none. Kernels before 5.9 do not count; 1 stands for any number there */
    bool no_new_privileges;
    uint32_t pid; /* of the process, in its own PID namespace */
};

/* Reads the filters from the text of a process's /proc/PID/status. Returns false when the text is
 * cut before the line. */
bool tmk_filters_parse(const char *status, bool is_whole, struct tmk_filters *ret);

/* Reads the filters from the file at `path`. Makes only calls that the loader makes too: openat,
 * read, close. */
bool tmk_filters_read(const char *path, struct tmk_filters *ret);

/* Reads the filters of the first process of the container that a process ("/proc/self") is in.
 * Docker and podman leave a mark in the root folder, which is an overlay. Returns false when the
 * process is in no such container. Makes the same calls. */
bool tmk_filters_read_first(const char *process, struct tmk_filters *ret);

/* Whether recording under `own` is safe. `first` has the filters of the container's first process,
 * NULL when there is no container. `said` is the variable's value or NULL. `is_launched`: the
 * process was started by `tidemark run` or `env`, which would have set the variable to the number
 * of filters. */
bool tmk_filters_are_known(const struct tmk_filters *own, const struct tmk_filters *first,
                           const char *said, bool is_launched);

#endif
