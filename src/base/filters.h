/* SPDX-License-Identifier: MIT */
/* base/filters.h - the seccomp filters that a process has, and whether a recorder may work under
 * them.
 *
 * Filters cannot be read, only counted, and most that are met are harmless: those of Docker, podman
 * and Kubernetes answer with an error. Others kill. What is known of one comes from elsewhere: it
 * is the same that `tidemark run` or `attach` has and has tried, or the one that Docker or podman
 * gives to all processes of a container. */
#ifndef TMK_BASE_FILTERS_H
#define TMK_BASE_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

/* What a user sets it to: record under any filter. `run` sets it to the number of filters that it
 * has tried, or to "refuse" when trying them failed. */
#define TMK_FILTERS_VARIABLE "TIDEMARK_SECCOMP"
#define TMK_FILTERS_TRUST "trust"
#define TMK_FILTERS_REFUSE "refuse"
enum { TMK_FILTERS_SAID_BYTES = 24 };

/* A file that a program which is not recorded because of its filters opens for reading, and closes:
 * so `run` learns of it (cli/run/refusal_watch.h). */
#define TMK_REFUSALS_VARIABLE "TIDEMARK_REFUSALS"

struct tmk_filters {
    uint64_t n; /* 0: none. Kernels before 5.9 do not count; 1 stands for any number there */
    bool no_new_privileges;
    uint32_t pid; /* of the process, in its own PID namespace */
};

/* From the text of a process's /proc/PID/status. False when that is cut before the line. */
bool tmk_filters_parse(const char *status, bool is_whole, struct tmk_filters *ret);

/* From such a file, with the calls that the loader makes too: openat, read, close. */
bool tmk_filters_read(const char *path, struct tmk_filters *ret);

/* From the first process of the container that a process ("/proc/self") is in: Docker and podman
 * leave a mark in its root folder, which is an overlay. False: it is in no such container. The same
 * calls. */
bool tmk_filters_read_first(const char *process, struct tmk_filters *ret);

/* Whether recording under `own` is safe. `first` is what that says, NULL: it is no container.
 * `said` is the variable's value or NULL. `is_launched`: by `tidemark run` or `env`, which would
 * have said how many there were. */
bool tmk_filters_are_known(const struct tmk_filters *own, const struct tmk_filters *first,
                           const char *said, bool is_launched);

#endif
